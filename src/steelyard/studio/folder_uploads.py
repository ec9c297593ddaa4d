"""Folders from a browser: their files arrive one by one in a hidden place, and the complete folder is moved at once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from steelyard.ground.atomic_files import rename_new
from steelyard.studio.studio_folder import StudioError, StudioFolder

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
