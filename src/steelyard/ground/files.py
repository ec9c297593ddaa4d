"""Files that appear whole: written aside, then put in place by one rename; and what is written into them."""

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
from steelyard.ground.interrupt import unfinished
from steelyard.ground.places import abandoned, aside_of, rename_new
from steelyard.ground.untrusted import LARGEST_JSON, read_bytes


def plain(value: Any) -> Any:
    """`value`, made of dictionaries, lists and numbers, with tuples as lists, and None for what is not finite."""
    if isinstance(value, dict):
        return {key: plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says against writing a file, of a full disk for example, names the file that people know: `path`,
    not the one aside."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a library's own words
            raise OSError(errno.EIO, str(error), os.fspath(path)) from None
        error.filename = os.fspath(path)
        raise


@contextmanager
def whole_file(path: str | os.PathLike[str], new: bool = False, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, piece by piece, which is put in its place by one rename at the end; a failure leaves what was
    there, and nothing beside it.

    Args:
        path: its place.
        new: nothing may be at `path`, else FileExistsError; otherwise what is there is replaced.
        private: nobody but this user may read it.
    """
    target = Path(path)
    aside = aside_of(target)
    with named(target), unfinished(aside):
        try:
            with open(aside, "xb", opener=partial(os.open, mode=0o600 if private else 0o666)) as file:
                yield file
            (rename_new if new else os.replace)(aside, target)
        finally:
            with contextlib.suppress(OSError):
                aside.unlink()


def write_whole(path: str | os.PathLike[str], content: str | bytes, new: bool = False, private: bool = False) -> None:
    """Write `content`, text as UTF-8, to the file `path`, as `whole_file` does (`new`, `private`)."""
    with whole_file(path, new, private) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def check_file(path: str | os.PathLike[str], new: bool = True) -> None:
    """Refuse early a file that could not be written at the end.

    Args:
        path: where it is to go.
        new: nothing may be there.
    """
    target = Path(path)
    if target.is_dir():
        raise SteelyardError(f"{target} is a folder; name a file in it.")
    if new and os.path.lexists(target):
        raise SteelyardError(f"{target} exists and is not replaced; name another file, or move it away.")
    for left in abandoned(target.parent):
        with contextlib.suppress(OSError):
            left.path.unlink()  # files: folders are for who writes folders
    probe = aside_of(target)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise SteelyardError(f"{target}: cannot be written ({error.strerror}); choose another place.") from None


class OwnFile:
    """A file at `path` that this process writes again and again: what another one puts there meanwhile is not replaced.

    It is refused at once where it could not be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_file(path, new=False)
        self.path = Path(path)
        self._last = read_bytes(self.path, LARGEST_JSON, SteelyardError) if self.path.exists() else None

    def write(self, content: str) -> None:
        """Replace what the file holds by `content`, whole."""
        try:
            new = self._last is None or not self.path.exists()
            if not new and read_bytes(self.path, LARGEST_JSON, SteelyardError) != self._last:
                raise FileExistsError
            write_whole(self.path, content, new)
        except FileExistsError:
            raise SteelyardError(
                f"{self.path} was written by another process meanwhile, and is not replaced; name another file."
            ) from None
        self._last = content.encode("utf-8")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """`rows` of values as the text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
