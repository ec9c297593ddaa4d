"""Write files whole: a reader sees the old one or the new one, never half of either."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write `content` (text as UTF-8) aside, then put it in place by one rename; a failure leaves what was there."""
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        aside.write_bytes(data)
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
