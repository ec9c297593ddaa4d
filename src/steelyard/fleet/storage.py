"""Locations of logs: expands folders, patterns and addresses to files, and identifies the content of files.

A location is a text: a local path, or a URL that fsspec supports (`steelyard.ground.remote`).
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
from steelyard.ground.untrusted_files import read_bytes, regular_file
from steelyard.signals.table import READERS, has_reader

WILD = "*?["
# Names that back-ends use for a mark of an object's content, in the order of preference.
_TAGS = ("version_id", "VersionId", "generation", "ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "CRC")
_TIMES = ("LastModified", "last_modified", "Last-Modified", "mtime")


class FleetError(SteelyardError):
    """A fleet cannot be used; the message names the table, the robot or the location, and the remedy."""


def location_in(base: str, text: str) -> str:
    """Resolve a location relative to a folder; absolute locations are returned unchanged.

    Args:
        base: Path or URL of the folder.
        text: The location.
    """
    if is_url(text):
        return text
    if not is_url(base):
        return os.path.abspath(os.path.join(base, text))
    first, chain, rest = base.partition("::")
    parts = [part for part in text.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or text.startswith("/"):
        raise FleetError(f"{text}: leads out of {base}; write the complete address.")
    end = "/" if text.endswith("/") else ""
    return f"{first.rstrip('/')}/{'/'.join(parts)}{end}{chain}{rest}"


def folder_of(location: str) -> str:
    """Return the folder of the file at `location`."""
    if not is_url(location):
        return os.path.dirname(os.path.abspath(location))
    first, chain, rest = location.partition("::")
    return f"{first.partition('?')[0].rpartition('/')[0]}{chain}{rest}"


def read_location(location: str, most: int, error: type[SteelyardError] = FleetError) -> bytes:
    """Read a file.

    Args:
        location: Location of the file.
        most: Largest number of bytes.
        error: Type of the error if it cannot be read.
    """
    path = any_path(location, error)
    return path.read_bytes(most) if isinstance(path, RemoteFile) else read_bytes(path, most, error)


def is_folder(location: str) -> bool:
    """Whether there is a folder at `location`; a server is asked only if the address is ambiguous."""
    if not is_url(location):
        return os.path.isdir(location)
    first = location.partition("::")[0]
    if first.endswith("/"):
        return True
    place = RemoteFile(location, FleetError)
    return not place.suffix and place.is_dir()


def is_pattern(location: str) -> bool:
    """Whether `location` is a pattern: it contains *, ? or [ ], and there is no file of this name."""
    if not is_url(location):
        return any(sign in location for sign in WILD) and not os.path.lexists(location)
    return any(sign in shown_address(location).partition("::")[0] for sign in WILD)


# File systems with cached listings, which describe objects without further requests.
_listed: dict[int, Any] = {}


def forget_listings() -> None:
    """Forget cached listings of remote folders, and which servers did not answer."""
    forget_silence()
    for system in _listed.values():
        system.invalidate_cache()
    _listed.clear()


def _listing(location: str) -> tuple[Any, str]:
    system, path = file_system(location, FleetError)
    _listed[id(system)] = system
    return system, path


def files_at(location: str) -> list[str]:
    """List the logs at a `location`, sorted: the file itself, those of a pattern, or all below a folder.

    A single file need not exist; reading it reports that. In folders hidden files (whose names start with a dot or an
    underscore), files that are not logs by their name, and run folders are skipped.
    """
    if is_pattern(location):
        found = _remote_matches(location) if is_url(location) else glob.glob(location, recursive=True)
        named = {each for each in found if has_reader(any_path(each))}
        # Other matches may be folders of logs.
        others = {each for each in found if each not in named and not any_path(each).suffix}
        logs = sorted({*named, *(path for each in others for path in _below(each))})
        if not logs:
            raise FleetError(
                f"{shown_address(location)}: no log matches this pattern; correct the pattern, or leave it out."
            )
        return logs
    if not is_folder(location):
        return [location]
    logs = sorted(_below(location))
    if not logs:
        raise FleetError(f"{shown_address(location)}: this folder contains no log; correct the path, or leave it out.")
    return logs


def children(location: str) -> tuple[list[str], list[str]]:
    """List the names of folders and of files in the folder at `location`, sorted, without hidden ones."""
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
            # os.path.isdir is False for a link to itself; DirEntry.is_dir would fail.
            entries = [(name, os.path.isdir(os.path.join(location, name))) for name in os.listdir(location)]
        except OSError as why:
            raise FleetError(f"{location}: cannot be read ({why.strerror}); check the path.") from None
    seen = sorted((name, folder) for name, folder in entries if name and not name.startswith((".", "_")))
    return [name for name, folder in seen if folder], [name for name, folder in seen if not folder]


def tree(location: str) -> list[tuple[str, bool]]:
    """List all files below the folder `location` as relative paths, sorted, each with whether it is a log.

    Hidden files (whose names start with a dot or an underscore) and run folders are skipped. A local folder may itself
    be a log: a bag, or one file per signal. A remote folder is listed with one request.
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


def _walk(root: str, inside: str, visited: set[str]) -> Iterator[tuple[str, bool]]:
    """Walk a local folder as `tree` does; a folder that several links lead to counts once."""
    place = os.path.join(root, inside)
    if os.path.realpath(place) in visited:
        return
    visited.add(os.path.realpath(place))
    if any(kind.folders and kind.claims(Path(place)) for kind in READERS.values()):
        yield inside.rstrip("/"), True
        return
    folders, files = children(place)
    yield from ((inside + name, has_reader(Path(name))) for name in files)
    for name in folders:
        yield from _walk(root, f"{inside}{name}/", visited)


def _below(location: str) -> list[str]:
    """List all logs below a folder."""
    if not is_url(location) and not os.path.isdir(location):
        return []
    # A folder that is itself a log has an empty relative path.
    return [location_in(location, name) if name else location for name, is_log in tree(location) if is_log]


def _remote_matches(pattern: str) -> list[str]:
    system, path = _listing(pattern)
    with translate_errors(shown_address(pattern), FleetError):
        return [_address(pattern, str(name)) for name in system.glob(path)]


def _address(like: str, name: str) -> str:
    """Convert the name of a file system to an address in the style of the address `like`."""
    if is_url(name):
        return name
    first, chain, rest = like.partition("::")
    return f"{first.partition('://')[0]}://{name.lstrip('/')}{chain}{rest}"


# ------------------------------------------------------------------------------ contents


def file_state(location: str) -> dict[str, Any]:
    """Describe the state of the file at `location`, which changes with its content, without reading it.

    It has size, time and inode of a local file, or size and tag of an object; of a folder that is one log those of all
    its files.
    """
    path = any_path(location)
    if isinstance(path, RemoteFile):
        info = path.info
        size = {"size": path.stat().st_size}
        tag = next((f"{key} {info[key]}" for key in (*_TAGS, *_TIMES) if info.get(key) not in (None, "")), "")
        return {**size, "tag": tag} if tag else size
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


def content_identity(location: str, state: dict[str, Any] | None = None) -> str:
    """Hash the content of a log.

    An object with a tag (a version, an ETag) is not read: its address, tag and size are hashed.

    Args:
        location: Location of the log.
        state: `file_state` of the log, if known.
    """
    path = any_path(location)
    if isinstance(path, RemoteFile):
        state = file_state(location) if state is None else state
        if "tag" not in state:
            return content_hash(path)
        return hashlib.sha256(f"{path}\n{state['tag']}\n{state['size']}".encode()).hexdigest()
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
