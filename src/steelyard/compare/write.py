"""The folder of a comparison: runs as they end, and the figures and the page when all are there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground.files import RunFolderError, check_target, write_whole

RUNS = "runs.jsonl"


def begin(folder: Path, overwrite: bool, resume: bool) -> None:
    """Make the folder ready: a new one, an old one emptied, or one that was broken off to go on with."""
    if resume:
        if overwrite:
            raise SteelyardError("--resume keeps the runs of a folder, --overwrite throws them away; give one.")
        if not (folder / RUNS).exists():
            raise RunFolderError(f"{folder} holds no runs to go on with (no {RUNS} in it); start without --resume.")
        return
    if (folder / RUNS).exists() and not overwrite:
        raise RunFolderError(f"{folder} holds runs already; --resume goes on with them, --overwrite starts anew.")
    if not (folder / RUNS).exists():
        check_target(folder, overwrite)
    if folder.exists():
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be written ({error.strerror}); choose another folder.") from None


def finish(folder: Path, result: Mapping[str, Any], page: str) -> None:
    """result.json last: where it is, the rest is."""
    write_whole(folder / "report.html", page)
    text = json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(folder / "result.json", text + "\n")
