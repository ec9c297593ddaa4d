"""The one door for files, ours included: what kind of file, how large, how deep, before anything is parsed.

Everything that is read comes in here or, where a library opens the file itself, is looked at here first
(`regular_file`; archives of arrays: `steelyard.ground.archives`). What comes out is plain data in a `Field`, which
names the place of whatever is wrong with it.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from steelyard.errors import RobotError, SteelyardError, shortened
from steelyard.ground.field import Field
from steelyard.ground.numbers import number

if TYPE_CHECKING:
    from steelyard.ground.remote import AnyPath

# A design of many motions takes a few megabytes.
LARGEST_JSON = 64 * 1024 * 1024
# Ours are nested up to ten levels deep.
DEEPEST = 64
# Of a double there are at most 767 digits that mean anything, and Python takes quadratic time for whole numbers.
LONGEST_NUMBER = 400

# A string that never ends counts as one, or each of its quotes would be tried as another's beginning.
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[\[{]+|[\]}]+', re.DOTALL)

_HALF = re.compile(r"\\u[dD][89abcdefABCDEF]")


def regular_file(path: AnyPath, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> int:
    """The size in bytes of the file at `path`, which must be one: a pipe or a device would never end.

    Args:
        path: of the file.
        error: what is raised where it is none.
        remedy: what to do where there is none.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{path}: there is no such file; {remedy}.") from None
    except (OSError, ValueError) as why:  # ValueError: a name with a NUL
        raise error(f"{path}: cannot be read ({getattr(why, 'strerror', None) or why}).") from None
    if stat.S_ISDIR(found.st_mode):
        raise error(f"{path}: this is a folder; give the path of a file.")
    if not stat.S_ISREG(found.st_mode):
        raise error(f"{path}: this is not a file but a pipe or a device; give the path of a file.")
    return found.st_size


def open_regular(path: Path, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> IO[bytes]:
    """The file at `path`, open to be read; `error` and `remedy` as in `regular_file`."""
    regular_file(path, error, remedy)
    # Not to wait, should a pipe have taken the file's place meanwhile.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise error(f"{path}: this is not a file but a pipe or a device; give the path of a file.")
    return open(number, "rb")


def refuse_kernel_file(path: Path, error: type[SteelyardError]) -> None:
    """Refuse the file at `path`, which says that it has no bytes, if it has some: the kernel makes them up as they are
    read (/proc), and some of its files never end.

    Args:
        path: of a file of size 0.
        error: what is raised.
    """
    try:
        with open_regular(path, error) as file:
            shown = os.read(file.fileno(), 1)
    except BlockingIOError:  # there will be some
        shown = b"x"
    except OSError as why:
        raise error(f"{path}: cannot be read ({why.strerror}); check its permissions.") from None
    if shown:
        raise error(f"{path}: this is not a file of a disk, but the system makes it up as it is read; copy it.")


def read_bytes(
    path: Path, most: int, error: type[SteelyardError] = RobotError, remedy: str = "check the path"
) -> bytes:
    """What the file at `path` holds: at most so many (`most`) bytes; `error` and `remedy` as in `regular_file`."""
    size = regular_file(path, error, remedy)
    try:
        with open_regular(path, error, remedy) as file:
            # No more than its size, should it have grown.
            data = file.read(min(size, most) + 1)  # what is asked for is set aside, whatever there is
            if size < len(data) <= most:
                data += file.read(most + 1 - len(data))
    except OSError as why:
        raise error(f"{path}: cannot be read ({why.strerror}); check its permissions.") from None
    if len(data) > most:
        raise error(
            f"{path}: is larger than {number(most / 1e6, 3)} MB, too much for what it should be; is it the right file?"
        )
    return data


def read_text(path: Path, most: int, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> str:
    """The text, in UTF-8, of the file at `path`; `most`, `error` and `remedy` as in `read_bytes`."""
    try:
        return read_bytes(path, most, error, remedy).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path}: is not text in UTF-8; save it as UTF-8.") from None


def parse_json(text: str, source: str, error: type[SteelyardError], remedy: str = "write it anew") -> Any:
    """The plain data of a JSON `text`: nested no deeper than `DEEPEST`, numbers finite and of sensible length.

    Args:
        text: JSON.
        source: what it is called in errors.
        error: what is raised where it cannot be read.
        remedy: what to do then.
    """
    _check_depth(text, source, error)

    def whole(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            raise error(f"{source}: holds a number of {len(digits)} digits; is it damaged?")
        return int(digits)

    def real(digits: str) -> float:
        number = float(digits) if len(digits) <= LONGEST_NUMBER else math.inf
        if math.isinf(number):
            raise error(f"{source}: holds the number {shortened(digits, 30)}, which is too large; is it damaged?")
        return number

    def constant(name: str) -> float:
        raise error(f"{source}: holds {name}, which JSON does not have; write null where there is no number.")

    try:
        data = json.loads(text, parse_int=whole, parse_float=real, parse_constant=constant)
        if _HALF.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # half of a pair alone is no character, and cannot be written
        return data
    except (json.JSONDecodeError, UnicodeEncodeError, RecursionError) as why:
        raise error(f"{source}: this is not a readable JSON file ({why}); {remedy}.") from None


def _check_depth(text: str, source: str, error: type[SteelyardError]) -> None:
    depth = 0
    for found in _BRACKETS.finditer(text):
        piece = found.group()
        if piece[0] != '"':
            depth += len(piece) if piece[0] in "[{" else -len(piece)
            if depth > DEEPEST:
                raise error(f"{source}: is nested deeper than {DEEPEST} levels; is it damaged?")


def read_json(path: Path, error: type[SteelyardError], remedy: str, exact: bool = False) -> Field:
    """What a JSON file holds.

    Args:
        path: the file.
        error: what is raised where there is none, or none that can be read.
        remedy: what to do where there is none.
        exact: numbers are taken as they stand, as in `Field`.
    """
    data = parse_json(read_text(path, LARGEST_JSON, error, remedy), str(path), error, remedy)
    return Field(data, str(path), error=error, exact=exact)
