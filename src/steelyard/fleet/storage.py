"""Where logs lie: folders, patterns and addresses expanded to files, and by what a change of a file is told.

A location is a text: a path of this machine, or a URL that fsspec understands (`steelyard.ground.remote`).
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.errors import LogError, SteelyardError
from steelyard.ground.addresses import file_system, forget_silence, is_url, shown_address, translate_errors
from steelyard.ground.folders import MANIFEST
from steelyard.ground.remote import RemoteFile, any_path, content_hash
from steelyard.ground.untrusted import read_bytes, regular_file
from steelyard.signals.table import READERS, has_reader

WILD = "*?["
# What tells one content of an object from another, as back-ends call it: the first that there is.
_TAGS = ("version_id", "VersionId", "generation", "ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "CRC")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime")


class FleetError(SteelyardError):
    """A fleet that cannot be used: names the table, the robot or the location, and what would help."""


def location_in(base: str, text: str) -> str:
    """The location that `text` is, seen from the folder `base`; what is absolute stays as it is."""
    if is_url(text):
        return text
    if not is_url(base):
        return os.path.abspath(os.path.join(base, text))
    first, chain, rest = base.partition("::")
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or text.startswith("/"):
        raise FleetError(f"{text}: leads out of {base}; write the whole address.")
    end = "/" if text.endswith("/") else ""
    return f"{first.rstrip('/')}/{'/'.join(parts)}{end}{chain}{rest}"


def folder_of(location: str) -> str:
    """The folder in which the file at `location` lies."""
    if not is_url(location):
        return os.path.dirname(os.path.abspath(location))
    first, chain, rest = location.partition("::")
    return f"{first.partition('?')[0].rpartition('/')[0]}{chain}{rest}"


def read_location(location: str, most: int, error: type[SteelyardError] = FleetError) -> bytes:
    """What the file at a `location` holds, at most so many (`most`) bytes; `error` where it cannot be read."""
    path = any_path(location, error)
    return path.read_bytes(most) if isinstance(path, RemoteFile) else read_bytes(path, most, error)


def is_folder(location: str) -> bool:
    """Whether there is a folder at `location`; an address is asked only where its name leaves it open."""
    if not is_url(location):
        return os.path.isdir(location)
    first = location.partition("::")[0]
    if first.endswith("/"):
        return True
    place = RemoteFile(location, FleetError)
    return not place.suffix and place.is_dir()


def is_pattern(location: str) -> bool:
    """Whether `location` stands for many: *, ? and [ ] are taken for signs of a pattern, unless a file is called so."""
    if not is_url(location):
        return any(sign in location for sign in WILD) and not os.path.lexists(location)
    return any(sign in shown_address(location).partition("::")[0] for sign in WILD)


# File systems whose listings are remembered: what they say of an object is then known without asking for it.
_listed: dict[int, Any] = {}


def look_anew() -> None:
    """Forget what folders elsewhere held when they were last looked at, and which servers were silent."""
    forget_silence()
    for system in _listed.values():
        system.invalidate_cache()
    _listed.clear()


def _listing(location: str) -> tuple[Any, str]:
    system, path = file_system(location, FleetError)
    _listed[id(system)] = system
    return system, path


def files_at(location: str) -> list[str]:
    """The logs at a `location`, in order: the file itself, those of a pattern, or all in a folder and below it.

    A single file is not looked for: whether it can be read is seen when it is. What is hidden (its name begins with a
    dot or an underscore) and what has no log's name is passed over in folders, and what a run has written.
    """
    if is_pattern(location):
        found = _remote_matches(location) if is_url(location) else glob.glob(location, recursive=True)
        named = {each for each in found if has_reader(any_path(each))}
        # What is no log by its name may be a folder of them.
        others = {each for each in found if each not in named and not any_path(each).suffix}
        logs = sorted({*named, *(path for each in others for path in _below(each))})
        if not logs:
            raise FleetError(
                f"{shown_address(location)}: no log has such a name; correct the pattern, or leave it out."
            )
        return logs
    if not is_folder(location):
        return [location]
    logs = sorted(_below(location))
    if not logs:
        raise FleetError(f"{shown_address(location)}: this folder holds no log; correct the path, or leave it out.")
    return logs


def children(location: str) -> tuple[list[str], list[str]]:
    """The names of the folders and of the files in the folder at `location`, in order, without hidden ones."""
    if is_url(location):
        system, path = _listing(location)
        with translate_errors(shown_address(location), FleetError):
            entries = [
                (str(entry["name"]).rstrip("/").rpartition("/")[2], entry["type"] == "directory")
                for entry in system.ls(path, detail=True)
                if str(entry["name"]).rstrip("/") != str(path).rstrip("/")
            ]
    else:
        try:
            # os.path.isdir says no to a link that leads to itself, which DirEntry.is_dir does not endure.
            entries = [(name, os.path.isdir(os.path.join(location, name))) for name in os.listdir(location)]
        except OSError as why:
            raise FleetError(f"{location}: cannot be read ({why.strerror}); check the path.") from None
    seen = sorted((name, folder) for name, folder in entries if name and not name.startswith((".", "_")))
    return [name for name, folder in seen if folder], [name for name, folder in seen if not folder]


def tree(location: str) -> list[tuple[str, bool]]:
    """All files in the folder `location` and below it, as paths from there, in order; and of each, whether it is a log.

    What is hidden (its name begins with a dot or an underscore) is passed over, and folders that a run has written. On
    disks a folder may be a log: a bag, or a file for each signal. What lies elsewhere is listed in one go.
    """
    if is_url(location):
        system, path = _listing(location)
        with translate_errors(shown_address(location), FleetError):
            base = str(path).rstrip("/")
            names = [str(name).removeprefix(base).strip("/") for name in system.find(path)]
        found = [(name, has_reader(Path(name))) for name in names if name]
    else:
        found = list(_walk(location, "", set()))
    runs = {name.rpartition("/")[0] for name, _ in found if name.rpartition("/")[2] == MANIFEST} - {""}
    return sorted(
        (name, is_log)
        for name, is_log in found
        if not any(part.startswith((".", "_")) for part in name.split("/"))
        and not any(name.startswith(f"{run}/") for run in runs)
    )


def _walk(root: str, inside: str, seen: set[str]) -> Iterator[tuple[str, bool]]:
    """As `tree`, of a folder of this machine; one that links lead to again counts once."""
    place = os.path.join(root, inside)
    if os.path.realpath(place) in seen:
        return
    seen.add(os.path.realpath(place))
    if any(kind.folders and kind.claims(Path(place)) for kind in READERS.values()):
        yield inside.rstrip("/"), True
        return
    folders, files = children(place)
    yield from ((inside + name, has_reader(Path(name))) for name in files)
    for name in folders:
        yield from _walk(root, f"{inside}{name}/", seen)


def _below(location: str) -> list[str]:
    """All logs in a folder and below it."""
    if not is_url(location) and not os.path.isdir(location):
        return []
    # A folder that is itself a log has no path from there.
    return [location_in(location, name) if name else location for name, is_log in tree(location) if is_log]


def _remote_matches(pattern: str) -> list[str]:
    system, path = _listing(pattern)
    with translate_errors(shown_address(pattern), FleetError):
        return [_address(pattern, str(name)) for name in system.glob(path)]


def _address(like: str, name: str) -> str:
    """The address of what a file system calls `name`, written as the address `like` another in it."""
    if is_url(name):
        return name
    first, chain, rest = like.partition("::")
    return f"{first.partition('://')[0]}://{name.lstrip('/')}{chain}{rest}"


# ------------------------------------------------------------------------------ contents


def how_it_lies(location: str) -> dict[str, Any]:
    """What tells a change of the file at `location` without reading it: size, time and number, or what its keeper says.

    A folder that is one log is told by all its files.
    """
    path = any_path(location)
    if isinstance(path, RemoteFile):
        info = path.info
        said = {"size": path.stat().st_size}
        tag = next((f"{key} {info[key]}" for key in (*_TAGS, *_TIMES) if info.get(key) not in (None, "")), "")
        return {**said, "tag": tag} if tag else said
    try:
        if not path.is_dir():
            stat = path.stat()
            regular_file(path, LogError)
            return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino}
        stats = [(str(file.relative_to(path)), file.stat()) for file in _files_of(path)]
    except OSError as why:
        raise LogError(f"{path}: cannot be read ({why.strerror}).") from None
    listing = "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}" for name, stat in stats)
    newest = max((stat.st_mtime_ns for _, stat in stats), default=0)
    return {"listing": hashlib.sha256(listing.encode()).hexdigest(), "mtime_ns": newest}


def content_identity(location: str, lies: dict[str, Any] | None = None) -> str:
    """What stands for the content of the log at `location`: the SHA-256 of its bytes.

    Of an object that its keeper marks (a version, an ETag), that of its address, mark and size: it is not read. One
    that nobody marks is read.

    Args:
        location: of the file.
        lies: what `how_it_lies` says of it, where that is known.
    """
    path = any_path(location)
    if isinstance(path, RemoteFile):
        lies = how_it_lies(location) if lies is None else lies
        if "tag" not in lies:
            return content_hash(path)
        return hashlib.sha256(f"{path}\n{lies['tag']}\n{lies['size']}".encode()).hexdigest()
    try:
        if not path.is_dir():
            return content_hash(path)
        digest = hashlib.sha256()
        for file in _files_of(path):
            digest.update(f"{file.relative_to(path)} {content_hash(file)}\n".encode())
        return digest.hexdigest()
    except OSError as why:
        raise LogError(f"{path}: cannot be read ({why.strerror}).") from None


def _files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())
