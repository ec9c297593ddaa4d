"""Files from a browser: streamed to the disk piece by piece, with a limit, and there whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from steelyard.ground.atomic_files import rename_new
from steelyard.studio.place import StudioError, StudioFolder

# What is left free on the disk, bytes.
_SPARE = 500_000_000
# Bytes that are written at a time.
_PIECE = 4_000_000
FOLDERS = ("logs", "robot")


async def receive(
    place: StudioFolder, folder: str, name: str, pieces: AsyncIterator[bytes], announced: int, most: int
) -> Path:  # fmt: skip
    """Write a file that a browser sends, and return where it is.

    Args:
        place: the studio's folder.
        folder: one of `FOLDERS`.
        name: as the browser calls it; made safe, and free.
        pieces: what comes, piece by piece.
        announced: bytes that were announced; −1 if none were.
        most: bytes that a file may have.
    """
    if folder not in FOLDERS:
        raise StudioError(f"Files go to {' or '.join(FOLDERS)}.")
    if announced > most:
        raise StudioError(f"{name} has {announced / 1e9:.1f} GB; {most / 1e9:g} GB are allowed (--upload-limit).")
    room = place.free_bytes() - _SPARE
    if announced > room:
        raise StudioError(f"{name} needs {announced / 1e9:.1f} GB; the disk has room for {max(room, 0) / 1e9:.1f} GB.")
    aside = place.data("uploads", secrets.token_hex(8))
    got, held = 0, bytearray()
    try:
        with aside.open("xb") as file:
            async for piece in pieces:
                got += len(piece)
                if got > most:
                    raise StudioError(f"{name} has more than the {most / 1e9:g} GB that are allowed (--upload-limit).")
                held += piece
                if len(held) > _PIECE:  # not by the server itself, which has others to answer
                    await asyncio.to_thread(file.write, bytes(held))
                    held.clear()
            if announced >= 0 and got != announced:
                raise StudioError(f"{name} broke off after {got} of {announced} bytes; send it again.")
            file.write(held)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        while True:
            target = place.free_name(folder, name)
            try:
                rename_new(aside, target)
            except FileExistsError:
                continue
            return target
    except OSError as error:
        raise StudioError(f"{name}: {error.strerror or error}; make room, and send it again.") from None
    finally:
        aside.unlink(missing_ok=True)
