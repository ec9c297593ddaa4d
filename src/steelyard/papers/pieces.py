"""`Pieces`: what a paper's laboratory finds in hours, kept one by one, so that a run that was broken off goes on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground import Field, plain, read_json, write_whole


@dataclass(frozen=True)
class Pieces:
    """Plain data by name, in a `folder` (None: nowhere, all is made when it is asked for). `key` tells what it depends
    on: with another one it is made anew."""

    folder: Path | None = None
    key: str = ""

    def __call__(self, name: str, make: Callable[[], Any]) -> Field:
        """What is called `name`: read, or found by `make` and kept."""
        if self.folder is None:
            return Field(plain(make()), name, error=SteelyardError, exact=True)
        words = re.sub(r"\W+", "-", name)
        digest = hashlib.sha256(f"{self.key} {name}".encode()).hexdigest()[:8]
        file = self.folder / f"piece-{words}-{digest}.json"
        if not file.exists():
            write_whole(file, json.dumps(plain(make()), ensure_ascii=False))
        return read_json(file, SteelyardError, "delete it to have it made again", exact=True)
