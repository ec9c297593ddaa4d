"""Parts of a page, for tests of its content."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any


def unpacked(data: str) -> str:
    return gzip.decompress(base64.b64decode(data)).decode("utf-8")


def figures(page: str) -> list[dict[str, Any]]:
    """The figures of a page, in order."""
    return [json.loads(unpacked(x)) for x in re.findall(r'class="plot-data"[^>]*>(.*?)</script>', page)]


def own_part(page: str) -> str:
    """The page as we write it: without the compressed library and the compressed data."""
    return re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)


def undashed(page: str) -> list[str]:
    """The titles of tables with a dash or NaN in a cell and without an explanation below."""
    out = []
    for table in re.finditer(r'<table(.*?)</table></div>\s*(<p class="dash">)?', own_part(page), flags=re.DOTALL):
        cells = set(re.findall(r"<td[^>]*>(.*?)</td>", table[1]))
        if cells & {"–", "nan", "inf", "-inf", "None"} and not table[2]:
            out.append((re.findall(r'aria-label="(.*?)"', table[1]) or [""])[0])
    return out
