"""The logs of a studio's folder: which there are, what each is for, and how the project file says so."""

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

from steelyard.ground.untrusted import read_bytes
from steelyard.project import ROLES
from steelyard.signals.table import has_reader
from steelyard.studio.containment import is_inside
from steelyard.studio.place import StudioError, StudioFolder

LOGS = "logs"
_VERSION = b"1"
# Bytes of a robot description or a mapping.
_LARGEST_DESCRIPTION = 64_000_000


@dataclass(frozen=True)
class ListedLog:
    """A log that the project names, or that lies in the folder for logs.

    Attributes:
        text: its path as the project file says it, from the folder.
        path: where it is.
        roles: what it is for; none: it is not used.
        size: in bytes; −1 where there is no such file.
    """

    text: str
    path: Path
    roles: tuple[str, ...]
    size: int

    @property
    def role(self) -> str:
        """The first of its roles, or ""."""
        return self.roles[0] if self.roles else ""


def listed_logs(place: StudioFolder) -> dict[str, ListedLog]:
    """Every log of `place` by its path, those of the project first, in the order of their roles."""
    project = place.project()
    roles: dict[str, list[str]] = {}
    for role in ROLES:
        for path in project.log_paths(role):
            roles.setdefault(_from(place, os.path.abspath(path)), []).append(role)
    with suppress(OSError):
        for file in sorted((place.root / LOGS).iterdir()):
            if not file.name.startswith(".") and has_reader(file) and is_inside(place.root, file):
                roles.setdefault(_from(place, file), [])
    return {text: ListedLog(text, place.root / text, tuple(of), _size(place.root / text)) for text, of in roles.items()}


def log_named(place: StudioFolder, text: str) -> ListedLog:
    """The log that a browser names `text`: one of those that are listed of `place`, nothing else."""
    found = listed_logs(place).get(text)
    if found is None:
        raise StudioError(f"'{text[:120]}' is none of the logs here; reload the page.")
    return found


def _from(place: StudioFolder, path: str | Path) -> str:
    return Path(os.path.relpath(path, place.root)).as_posix()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def set_role(place: StudioFolder, text: str, role: str) -> None:
    """Let the project of `place` use the log `text` for one `role`, or for none ("")."""
    if role and role not in ROLES:
        raise StudioError(f"Logs have no role '{role[:40]}'; choose one of {', '.join(ROLES)}.")

    def edit(document: Any) -> None:
        logs = document.setdefault("logs", {})
        for one in ROLES:
            if one in logs:
                left = _without(place.root, logs[one], text)
                if not left:
                    del logs[one]
                elif left != logs[one]:
                    logs[one] = left
        if role:
            given = logs.get(role, [])
            if isinstance(given, Mapping):
                logs[role][Path(text).stem] = [text]
            else:
                logs[role] = [*([given] if isinstance(given, str) else given), text]
        if not logs:
            document.pop("logs")

    place.change(edit)


def role_of_name(stem: str) -> str:
    """The role that the `stem` of a file's name tells by a word such as "val" or "friction"; "" if none."""
    words = [word for word in re.split(r"[^a-z]+", stem.lower()) if len(word) >= 3]
    return next((role for word in words for role in ROLES if role.startswith(word[:5])), "")


def first_needed(place: StudioFolder) -> str:
    """The role of a log that comes to `place`: the first is fitted to, the second judges, others are fitted to."""
    taken = {role for log in listed_logs(place).values() for role in log.roles}
    return "validate" if "identify" in taken and "validate" not in taken else "identify"


def _without(root: Path, given: Any, text: str) -> Any:
    """What a role holds, without a log; a pattern that finds it is written out."""
    if isinstance(given, Mapping):
        return {name: left for name, texts in given.items() if (left := _without(root, texts, text))}
    texts: Sequence[str] = [given] if isinstance(given, str) else list(given)
    if not any(os.path.normpath(text) in _found(root, one) for one in texts):
        return given
    return [path for one in texts for path in _found(root, one) if path != os.path.normpath(text)]


def _found(root: Path, text: str) -> list[str]:
    if any(c in text for c in "*?["):
        return [os.path.normpath(path) for path in sorted(glob(text, root_dir=root, recursive=True))]
    return [os.path.normpath(text)]


# ---------------------------------------------------------------- what is drawn of them


def pyramid_file(place: StudioFolder, log: ListedLog) -> Path:
    """Where the pyramid of a `log` of `place` lies: another one for another file, mapping or robot."""
    project = place.project()
    parts = [_VERSION, str(log.size).encode(), str(log.path.stat().st_mtime_ns).encode() if log.size >= 0 else b""]
    said = (project.robot, project.joints, dict(project.lock), project.snap, project.mapping)
    parts.append(repr(said).encode())
    for text in (project.robot, project.mapping):
        with suppress(StudioError):
            parts.append(read_bytes(place.root / text, _LARGEST_DESCRIPTION, StudioError) if text else b"")
    state = hashlib.sha256(b"\0".join(parts)).hexdigest()[:24]
    return place.own("pyramids", f"{_stem(log)}-{state}")


def forget_pyramids(place: StudioFolder, log: ListedLog, but: Path | None = None) -> None:
    """Remove the pyramids of a `log` of `place`, all `but` one: they are made again when they are looked at."""
    for path in place.own("pyramids", "x").parent.glob(f"{_stem(log)}-*"):
        if path != but:
            path.unlink(missing_ok=True)


def _stem(log: ListedLog) -> str:
    return hashlib.sha256(log.text.encode()).hexdigest()[:16]
