"""`Records`: runs on disk as they are finished, one line each, so that nothing is lost but what was being computed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.compare_estimators.fit import Run
from steelyard.errors import SteelyardError

FORMAT = "steelyard-runs-1"


class Records:
    """A file of lines that only grows: a header that says what was compared, then runs in the order they ended."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self._header = {"format": FORMAT, "key": _key(header), **header}

    def load(self) -> list[Run]:
        """The runs there are; a last line that was being written when the power went is left out."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")
        runs: list[Run] = []
        for number, line in enumerate(lines):
            document = _parsed(line)
            if number == 0:
                if document is not None:
                    self._check(document)
            elif document is not None:
                runs.append(Run.from_json(document))
        return runs

    def _check(self, document: dict[str, Any]) -> None:
        if document.get("format") != FORMAT or document.get("key") != self._header["key"]:
            raise SteelyardError(
                f"{self.path} holds runs of another comparison (another robot, seed, version or setting); resume with "
                "the same options, or give another folder."
            )

    @contextmanager
    def writing(self) -> Iterator[_Writer]:
        """To add runs; a torn last line is cut off first."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            whole = self.path.read_bytes()
            kept = whole[: whole.rfind(b"\n") + 1]
            if len(kept) < len(whole):
                os.truncate(self.path, len(kept))
        with self.path.open("ab") as file:
            writer = _Writer(file)
            if file.tell() == 0:
                writer.line(self._header)
            yield writer


class _Writer:
    def __init__(self, file: Any) -> None:
        self._file = file

    def add(self, run: Run) -> None:
        self.line(run.to_json())

    def line(self, document: dict[str, Any]) -> None:
        # One write of a whole line, then down to the disk.
        self._file.write(json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _key(header: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()
