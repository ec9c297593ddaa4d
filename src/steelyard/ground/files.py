"""Writes files atomically: content goes to a staging file, which one rename puts in place."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from steelyard.errors import SteelyardError
from steelyard.ground.atomic_files import leftovers, rename_new, staging_path
from steelyard.ground.interrupt import unfinished
from steelyard.ground.untrusted_files import LARGEST_JSON, read_bytes


def plain(value: Any) -> Any:
    """Convert nested data for JSON: tuples in `value` become lists, and numbers that are not finite become None."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let system errors (such as a full disk) name the final `path` instead of the staging file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # raised by a library, not by the system
            raise OSError(errno.EIO, str(error), os.fspath(path)) from None
        error.filename = os.fspath(path)
        raise


@contextmanager
def whole_file(path: str | os.PathLike[str], new: bool = False, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears at its path only when it is complete; a failure leaves no trace.

    Args:
        path: Final path.
        new: Raise FileExistsError if the path exists, instead of replacing it.
        private: Let only this user read the file.
    """
    target = Path(path)
    staging = staging_path(target)
    with name_in_errors(target), unfinished(staging):
        try:
            with open(staging, "xb", opener=partial(os.open, mode=0o600 if private else 0o666)) as file:
                yield file
            (rename_new if new else os.replace)(staging, target)
        finally:
            with contextlib.suppress(OSError):
                staging.unlink()


def write_whole(path: str | os.PathLike[str], content: str | bytes, new: bool = False, private: bool = False) -> None:
    """Write a file atomically.

    Args:
        path: Final path.
        content: Bytes, or text to encode as UTF-8.
        new: Raise FileExistsError if the path exists, instead of replacing it.
        private: Let only this user read the file.
    """
    with whole_file(path, new, private) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def check_file(path: str | os.PathLike[str], new: bool = True) -> None:
    """Check early that a file can be written later.

    Args:
        path: Final path.
        new: Refuse an existing file.
    """
    target = Path(path)
    if target.is_dir():
        raise SteelyardError(f"{target} is a folder; give the path of a file.")
    if new and os.path.lexists(target):
        raise SteelyardError(f"{target} exists and is not replaced; give another path, or move the file away.")
    for leftover in leftovers(target.parent):
        with contextlib.suppress(OSError):
            leftover.path.unlink()  # fails for folders, which `folders.sweep_up` removes
    probe = staging_path(target)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise SteelyardError(f"{target}: cannot be written ({error.strerror}); choose another path.") from None


class OwnFile:
    """A file at `path` that this process rewrites repeatedly, unless another process has changed it in between."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_file(path, new=False)
        self.path = Path(path)
        self._last = read_bytes(self.path, LARGEST_JSON, SteelyardError) if self.path.exists() else None

    def write(self, content: str) -> None:
        """Replace the file's content atomically by `content`."""
        try:
            new = self._last is None or not self.path.exists()
            if not new and read_bytes(self.path, LARGEST_JSON, SteelyardError) != self._last:
                raise FileExistsError
            write_whole(self.path, content, new)
        except FileExistsError:
            raise SteelyardError(
                f"{self.path} was changed by another process and is not replaced; give another path."
            ) from None
        self._last = content.encode("utf-8")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Format `rows` of values as CSV text."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
