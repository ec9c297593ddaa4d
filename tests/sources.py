"""The package's files, parsed once for all tests that look at how they are written."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """A file of the package, as its tree."""
    return ast.parse(path.read_text(encoding="utf-8"))
