"""`ResultCache`: stores results that take hours, so that an interrupted run can resume."""

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
class ResultCache:
    """Plain data by name.

    Attributes:
        folder: Folder of the files; None: nothing is stored.
        key: Everything that the data depends on; another key computes it again.
    """

    folder: Path | None = None
    key: str = ""

    def __call__(self, name: str, make: Callable[[], Any]) -> Field:
        """Return the data of a name, from its file or computed.

        Args:
            name: Name of the data.
            make: Computes the data.
        """
        if self.folder is None:
            return Field(plain(make()), name, error=SteelyardError, exact=True)
        words = re.sub(r"\W+", "-", name)
        digest = hashlib.sha256(f"{self.key} {name}".encode()).hexdigest()[:8]
        file = self.folder / f"piece-{words}-{digest}.json"
        if not file.exists():
            write_whole(file, json.dumps(plain(make()), ensure_ascii=False))
        return read_json(file, SteelyardError, "delete it to compute it again", exact=True)
