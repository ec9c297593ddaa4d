"""The logs of a studio's folder and their roles in the project file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from steelyard.ground.untrusted_files import read_bytes
from steelyard.project import ROLES
from steelyard.signals.table import has_reader
from steelyard.studio.containment import is_inside
from steelyard.studio.log_folders import folder_state, is_log_folder
from steelyard.studio.studio_folder import StudioError, StudioFolder

LOGS = "logs"
_VERSION = b"1"
# Largest robot file or mapping [bytes].
_LARGEST_DESCRIPTION = 64_000_000


@dataclass(frozen=True)
class ListedLog:
    """A log of the project or of the folder for logs.

    Attributes:
        text: Its path relative to the studio's folder, as in the project file.
        path: Its absolute path.
        roles: Its roles in the project; empty if unused.
        size: Size [bytes], of a folder that of its files; −1 if it does not exist.
    """

    text: str
    path: Path
    roles: tuple[str, ...]
    size: int

    @property
    def role(self) -> str:
        """Its first role, or ""."""
        return self.roles[0] if self.roles else ""


def listed_logs(folder: StudioFolder) -> dict[str, ListedLog]:
    """List all logs of a `folder` by path: those of the project in order of their roles, then the others."""
    project = folder.project()
    roles: dict[str, list[str]] = {}
    for role in ROLES:
        for path in project.log_paths(role):
            roles.setdefault(_from(folder, os.path.abspath(path)), []).append(role)
    with suppress(OSError):
        for file in sorted((folder.root / LOGS).iterdir()):
            if not file.name.startswith(".") and is_inside(folder.root, file) and _is_log(file):
                roles.setdefault(_from(folder, file), [])
    return {
        text: ListedLog(text, folder.root / text, tuple(of), _size(folder.root / text)) for text, of in roles.items()
    }


def log_named(folder: StudioFolder, text: str) -> ListedLog:
    """Return a log of `listed_logs`, or raise a StudioError.

    Args:
        folder: The studio's folder.
        text: Path of the log, from a browser.
    """
    log = listed_logs(folder).get(text)
    if log is None:
        raise StudioError(f"'{text[:120]}' is not a log of this folder; reload the page.")
    return log


def _from(folder: StudioFolder, path: str | Path) -> str:
    return Path(os.path.relpath(path, folder.root)).as_posix()


def _is_log(path: Path) -> bool:
    return is_log_folder(path) if path.is_dir() else has_reader(path)


def _size(path: Path) -> int:
    try:
        return folder_state(path)[0] if path.is_dir() else path.stat().st_size
    except OSError:
        return -1


def set_role(folder: StudioFolder, text: str, role: str) -> None:
    """Give a log one role in the project file.

    Args:
        folder: The studio's folder.
        text: Path of the log.
        role: One of `steelyard.project.ROLES`; "" for none.
    """
    if role and role not in ROLES:
        raise StudioError(f"'{role[:40]}' is not a role of logs; choose one of {', '.join(ROLES)}.")

    def edit(document: Any) -> None:
        logs = document.setdefault("logs", {})
        for one in ROLES:
            if one in logs:
                left = _without(folder.root, logs[one], text)
                if not left:
                    del logs[one]
                elif left != logs[one]:
                    logs[one] = left
        if role:
            value = logs.get(role, [])
            if isinstance(value, Mapping):
                logs[role][Path(text).stem] = [text]
            else:
                logs[role] = [*([value] if isinstance(value, str) else value), text]
        if not logs:
            document.pop("logs")

    folder.edit_project(edit)


def role_of_name(stem: str) -> str:
    """Guess the role of a log from a word such as "val" or "friction" in the `stem` of its name; "" if none."""
    words = [word for word in re.split(r"[^a-z]+", stem.lower()) if len(word) >= 3]
    return next((role for word in words for role in ROLES if role.startswith(word[:5])), "")


def first_needed(folder: StudioFolder) -> str:
    """Return the role of a new log of `folder`: the second log validates, all others identify."""
    used = {role for log in listed_logs(folder).values() for role in log.roles}
    return "validate" if "identify" in used and "validate" not in used else "identify"


def _without(root: Path, value: Any, text: str) -> Any:
    """Remove a log from the value of a role; a pattern that matches it is replaced by its other matches."""
    if isinstance(value, Mapping):
        return {name: left for name, texts in value.items() if (left := _without(root, texts, text))}
    texts: Sequence[str] = [value] if isinstance(value, str) else list(value)
    if not any(os.path.normpath(text) in _matches(root, one) for one in texts):
        return value
    return [path for one in texts for path in _matches(root, one) if path != os.path.normpath(text)]


def _matches(root: Path, text: str) -> list[str]:
    if any(c in text for c in "*?["):
        return [os.path.normpath(path) for path in sorted(glob(text, root_dir=root, recursive=True))]
    return [os.path.normpath(text)]


# ---------------------------------------------------------------- plots


def pyramid_file(folder: StudioFolder, log: ListedLog) -> Path:
    """Return the path of a log's pyramid, which depends on its file, the mapping and the robot.

    Args:
        folder: The studio's folder.
        log: The log.
    """
    project = folder.project()
    changed = folder_state(log.path)[1] if log.path.is_dir() else log.path.stat().st_mtime_ns if log.size >= 0 else ""
    parts = [_VERSION, str(log.size).encode(), str(changed).encode()]
    keys = (project.robot, project.joints, dict(project.lock), project.snap, project.mapping)
    parts.append(repr(keys).encode())
    for text in (project.robot, project.mapping):
        with suppress(StudioError):
            parts.append(read_bytes(folder.root / text, _LARGEST_DESCRIPTION, StudioError) if text else b"")
    state = hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]
    return folder.state_path("pyramids", f"{_stem(log)}-{state}")


def forget_pyramids(folder: StudioFolder, log: ListedLog, but: Path | None = None) -> None:
    """Remove pyramids of a log; they are built again on demand.

    Args:
        folder: The studio's folder.
        log: The log.
        but: Path of a pyramid to keep.
    """
    for path in folder.state_path("pyramids", "x").parent.glob(f"{_stem(log)}-*"):
        if path != but:
            path.unlink(missing_ok=True)


def _stem(log: ListedLog) -> str:
    return hashlib.sha256(log.text.encode()).hexdigest()[:16]
