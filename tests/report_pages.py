"""What a page holds, for tests that look inside."""

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
