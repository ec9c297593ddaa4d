"""Receives files from a browser: streams them to the disk with a size limit, and keeps complete files only."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from steelyard.ground.atomic_files import rename_new
from steelyard.studio.folder_uploads import upload_place
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
