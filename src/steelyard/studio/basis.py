"""What a result stands on: the parts of the project file and the files that it was found from. A run of which this has
changed since is not the present project's any more."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from steelyard.ground.files import plain, write_whole
from steelyard.ground.folders import MANIFEST
from steelyard.studio.place import StudioFolder
from steelyard.studio.shelf import shelved_runs

# Keys of the project file on which what is found in a log depends.
_KEYS = ("robot", "joints", "lock", "snap", "gravity", "mapping", "terms", "controller")


def log_texts(place: StudioFolder, role: str = "") -> list[str]:
    """The logs of a `role` in the project of a `place`, or of all roles, as commands in its folder say them."""
    paths = place.project().log_paths(role)
    return [Path(os.path.relpath(path, place.root)).as_posix() for path in paths]


def basis_of(place: StudioFolder, roles: Sequence[str] = ("",)) -> dict[str, Any]:
    """What a result of logs of these `roles` ("": all) would stand on in a `place` now, as plain data."""
    project = place.project()
    keys = {key: getattr(project, key) for key in _KEYS}
    logs = [text for role in roles for text in log_texts(place, role)]
    files = {text: _state(place.root / text) for text in (project.robot, project.mapping, project.controller, *logs)}
    found = plain({"keys": {key: dict(x) if key == "lock" else x for key, x in keys.items()}, "files": files})
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def remember_basis(place: StudioFolder, run: str, basis: dict[str, Any]) -> None:
    """Keep the `basis` that a `run`, a folder of the `place` that a job will write, stands on."""
    write_whole(_file(place, run), json.dumps(basis))


def kept_basis(place: StudioFolder, run: str) -> dict[str, Any] | None:
    """What a `run` of the `place` stands on; None where nobody kept it."""
    with suppress(OSError, ValueError):
        found = json.loads(_file(place, run).read_text("utf-8"))
        return found if isinstance(found, dict) else None
    return None


def fits_now(place: StudioFolder, run: Path, basis: dict[str, Any]) -> bool:
    """Whether a `run` in a `place` stands on this `basis`. Of one that was made elsewhere, by a command that somebody
    typed, all that is known is whether anything has changed since."""
    kept = kept_basis(place, place.relative(run))
    if kept is not None:
        return kept == basis
    made = (run / MANIFEST).stat().st_mtime_ns
    states = [*basis["files"].values(), _state(place.project_file)]
    return all(state is None or state[1] <= made for state in states)


def runs_of(place: StudioFolder, command: str) -> list[Path]:
    """The runs of a `command` in a `place`, the newest first."""
    return [run.path for run in shelved_runs(place) if run.kind == command]


def _file(place: StudioFolder, run: str) -> Path:
    return place.own("basis", run.replace("/", "~") + ".json")


def _state(path: Path) -> list[int] | None:
    """Size and time of a file; None where there is none, as of the name of a built-in robot."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns] if path.is_file() else None
