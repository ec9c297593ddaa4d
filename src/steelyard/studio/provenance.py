"""The inputs of a run: keys of the project file and states of files. A run is out of date if they have changed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from steelyard.ground.files import plain, write_whole
from steelyard.ground.folders import MANIFEST
from steelyard.studio.log_folders import folder_state
from steelyard.studio.run_entries import run_entries
from steelyard.studio.studio_folder import StudioFolder

# Keys of the project file that affect results from logs.
_KEYS = ("robot", "joints", "lock", "snap", "gravity", "mapping", "terms", "controller")


def log_texts(folder: StudioFolder, role: str = "") -> list[str]:
    """List the project's logs of a role, relative to the folder.

    Args:
        folder: The studio's folder.
        role: One of `steelyard.project.ROLES`; "" for all.
    """
    paths = folder.project().log_paths(role)
    return [Path(os.path.relpath(path, folder.root)).as_posix() for path in paths]


def provenance_of(folder: StudioFolder, roles: Sequence[str] = ("",)) -> dict[str, Any]:
    """Return the current inputs of a run, as plain data.

    Args:
        folder: The studio's folder.
        roles: Roles of the logs that it reads; "" for all.
    """
    project = folder.project()
    keys = {key: getattr(project, key) for key in _KEYS}
    logs = [text for role in roles for text in log_texts(folder, role)]
    names = (project.robot, project.mapping, project.controller, *logs)
    files = {text: _state(folder.root / text) if text else None for text in names}
    inputs = plain({"keys": {key: dict(x) if key == "lock" else x for key, x in keys.items()}, "files": files})
    return json.loads(json.dumps(inputs))  # type: ignore[no-any-return]


def save_provenance(folder: StudioFolder, run: str, provenance: dict[str, Any]) -> None:
    """Save the inputs of a run that a job will write.

    Args:
        folder: The studio's folder.
        run: Relative path of the run.
        provenance: Its inputs, from `provenance_of`.
    """
    write_whole(_file(folder, run), json.dumps(provenance))


def saved_provenance(folder: StudioFolder, run: str) -> dict[str, Any] | None:
    """Return the saved inputs of a run; None if the studio did not start it.

    Args:
        folder: The studio's folder.
        run: Relative path of the run.
    """
    with suppress(OSError, ValueError):
        saved = json.loads(_file(folder, run).read_text("utf-8"))
        return saved if isinstance(saved, dict) else None
    return None


def is_current(folder: StudioFolder, run: Path, provenance: dict[str, Any]) -> bool:
    """Whether a run has the inputs of the project as it is now.

    For a run that was started in a terminal only the times of the files are compared.

    Args:
        folder: The studio's folder.
        run: Path of the run.
        provenance: Current inputs, from `provenance_of`.
    """
    saved = saved_provenance(folder, folder.relative(run))
    if saved is not None:
        return saved == provenance
    written = (run / MANIFEST).stat().st_mtime_ns
    states = [*provenance["files"].values(), _state(folder.project_file)]
    return all(state is None or state[1] <= written for state in states)


def runs_of(folder: StudioFolder, command: str) -> list[Path]:
    """List the runs of a command, newest first.

    Args:
        folder: The studio's folder.
        command: Name of the command.
    """
    return [run.path for run in run_entries(folder) if run.kind == command]


def _file(folder: StudioFolder, run: str) -> Path:
    return folder.state_path("basis", run.replace("/", "~") + ".json")


def _state(path: Path) -> list[int] | None:
    """Return size and time of a file or folder; None if it does not exist (such as the name of a built-in robot)."""
    try:
        if path.is_dir():
            return list(folder_state(path))
        state = path.stat()
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns] if path.is_file() else None
