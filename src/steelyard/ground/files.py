"""A run is a folder that appears whole: built aside, then put in place by one rename."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import io
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steelyard.errors import SteelyardError


def plain(value: Any) -> Any:
    """`value`, made of dictionaries, lists and numbers, with tuples as lists, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write `content` (text as UTF-8) aside, then put it at `path` by one rename; a failure leaves what was there."""
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        aside.write_bytes(data)
        os.replace(aside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def read_json(path: Path, error: type[SteelyardError], remedy: str) -> Any:
    """What a JSON file holds.

    Args:
        path: the file.
        error: what is raised where there is none, or none that can be read.
        remedy: what to do where there is none.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path}: there is no such file; {remedy}.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as why:
        raise error(f"{path}: this is not a readable JSON file ({why}).") from None


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """`rows` of values as the text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class RunFolderError(SteelyardError):
    """A folder that a run cannot be written to: names it, and what would help."""


@contextmanager
def run_folder(target: str | os.PathLike[str], overwrite: bool = False) -> Iterator[Path]:
    """Yields a folder to fill; at the end it becomes `target`. If anything goes wrong nothing is left behind.

    With `overwrite` an existing run is exchanged for the new one in a single step of the file system where it has
    one (Linux), so that a kill at any moment leaves the old run or the new one.
    """
    place = Path(target)
    check_target(place, overwrite)
    aside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            aside.mkdir()
        except OSError as error:
            raise RunFolderError(f"{place}: cannot be written ({error.strerror}); choose another folder.") from None
        yield aside
        _put_in_place(aside, place)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(aside)


def check_target(place: Path, overwrite: bool) -> None:
    """Refuse early what would be refused at the end: a `place` that exists, unless `overwrite` and it holds a run."""
    if place.exists() and not overwrite:
        raise RunFolderError(f"{place} exists; give another folder, or --overwrite to replace it whole.")
    if place.exists() and not place.is_dir():
        raise RunFolderError(f"{place} is a file; a run is a folder.")
    if place.is_dir() and any(place.iterdir()) and not (place / "result.json").exists():
        raise RunFolderError(f"{place} holds no run (no result.json in it); it is not replaced, for safety's sake.")


def _put_in_place(aside: Path, place: Path) -> None:
    if not place.exists():
        os.rename(aside, place)
        return
    if _exchange(aside, place):
        return  # the old run is aside now, and is removed
    old = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    os.rename(place, old)
    os.rename(aside, place)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step; False where the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library without a name
        return False
    names = os.fsencode(a), os.fsencode(b)
    return bool(swap(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0)
