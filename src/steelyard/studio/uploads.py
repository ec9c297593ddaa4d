"""Receives files and folders from a browser, and keeps complete ones only.

Files are streamed to the disk with a size limit. The files of a folder arrive one by one in a hidden folder, which is
moved to its place at once when it is complete.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from steelyard.ground.atomic_files import rename_new
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Disk space that uploads leave free, and size of one write [bytes].
_SPARE, _PIECE = 500_000_000, 4_000_000
UPLOAD_FOLDERS = ("logs", "robot", "poses", "drives")


async def receive(
    folder: StudioFolder, subfolder: str, name: str, pieces: AsyncIterator[bytes], announced: int, most: int,
    key: str = "",
) -> Path:  # fmt: skip
    """Write a file that a browser sends and return its path.

    Args:
        folder: The studio's folder.
        subfolder: One of `UPLOAD_FOLDERS`.
        name: File name from the browser; made safe and unique. With a key: path in the sent folder.
        pieces: The content, piece by piece.
        announced: Announced size [bytes]; −1 if unknown.
        most: Largest allowed size [bytes].
        key: Key of the folder that the file belongs to; "" for a single file.
    """
    if subfolder not in UPLOAD_FOLDERS:
        raise StudioError(f"Files go to {', '.join(UPLOAD_FOLDERS)}.")
    if announced > most:
        raise StudioError(f"{name} has {announced / 1e9:.1f} GB; {most / 1e9:g} GB are allowed (--upload-limit).")
    room = folder.free_bytes() - _SPARE
    if announced > room:
        raise StudioError(
            f"{name} needs {announced / 1e9:.1f} GB; the disk has {max(room, 0) / 1e9:.1f} GB free. Free some space."
        )
    if key:
        upload_place(folder, key, name)  # refuses a bad name before anything is written
    partial = folder.hidden_path("uploads", secrets.token_hex(8))
    size, buffer = 0, bytearray()
    try:
        with partial.open("xb") as file:
            async for piece in pieces:
                size += len(piece)
                if size > most:
                    raise StudioError(f"{name} has more than the allowed {most / 1e9:g} GB (--upload-limit).")
                buffer += piece
                if len(buffer) > _PIECE:  # in a thread: the server must stay responsive
                    await asyncio.to_thread(file.write, bytes(buffer))
                    buffer.clear()
            if announced >= 0 and size != announced:
                raise StudioError(f"The upload of {name} stopped after {size} of {announced} bytes; send it again.")
            file.write(buffer)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        while True:
            target = upload_place(folder, key, name) if key else folder.free_path(subfolder, name)
            try:
                rename_new(partial, target)
            except FileExistsError:
                if key:
                    raise StudioError(f"{name} was sent twice; drop the folder again.") from None
                continue
            return target
    except OSError as error:
        raise StudioError(f"{name}: {error.strerror or error}; free disk space and send it again.") from None
    finally:
        partial.unlink(missing_ok=True)


# Folder of unfinished uploads in the studio's hidden folder; each upload has a random key.
_UPLOADS = "uploads"
_KEY = re.compile(r"[0-9a-f]{16}")
# Allowed names inside an uploaded folder. A bag's metadata names its files, so names are refused, never changed.
_NAME = re.compile(r"[\w+=@ -][\w.+=@ -]{0,119}", re.UNICODE)
_MOST_DEPTH, _MOST_FILES = 8, 3000


def upload_place(folder: StudioFolder, key: str, name: str) -> Path:
    """Return the path for a file of a folder that a browser sends, and create its parents.

    Args:
        folder: The studio's folder.
        key: Key of the upload, sixteen hexadecimal digits.
        name: Path of the file in the sent folder, with forward slashes.
    """
    home, parts = _home(folder, key), name.split("/")
    bad = next((part for part in parts if not _NAME.fullmatch(part)), None)
    if bad is not None or len(parts) > _MOST_DEPTH:
        raise StudioError(f"'{name[:120]}' cannot be a file of an uploaded folder; rename it, or leave it out.")
    place = home.joinpath(*parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    if sum(1 for _ in home.rglob("*")) >= _MOST_FILES:
        shutil.rmtree(home, ignore_errors=True)
        raise StudioError(f"The folder has more than {_MOST_FILES} files; drop the folder of one log.")
    return place


def accept_folder(folder: StudioFolder, sent: str, subfolder: str) -> Path:
    """Move a complete uploaded folder below `subfolder` and return its new path.

    Args:
        folder: The studio's folder.
        sent: "KEY:NAME" of the upload, from a browser.
        subfolder: Target folder below the studio's folder.
    """
    key, _, name = sent.partition(":")
    home = _home(folder, key)
    if not home.is_dir() or home.is_symlink() or not any(home.iterdir()):
        raise StudioError(f"The folder {name[:120]} did not arrive; drop it again.")
    while True:
        target = folder.free_path(subfolder, name)
        try:
            rename_new(home, target)
        except FileExistsError:
            continue
        return target


def _home(folder: StudioFolder, key: str) -> Path:
    if not _KEY.fullmatch(key):
        raise StudioError("The upload of this folder has no valid key; reload the page and drop it again.")
    return folder.hidden_path(_UPLOADS, key)
