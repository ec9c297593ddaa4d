"""Checks type, size and nesting depth of every file, ours included, before parsing it.

All files are read here. If a library opens the file itself, `regular_file` checks it first (for archives of arrays:
`steelyard.ground.archives`). The result is plain data in a `Field`, whose errors name the place.
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

# [bytes]; a design of many motions takes a few megabytes.
LARGEST_JSON = 64 * 1024 * 1024
# Our own files have up to ten levels.
DEEPEST = 64
# Digits. Python's conversion of integers takes quadratic time.
LONGEST_NUMBER = 400

# An unterminated string also matches; otherwise each quote in it would be tried as a start, in quadratic time.
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[\[{]+|[\]}]+', re.DOTALL)

_HALF = re.compile(r"\\u[dD][89abcdefABCDEF]")


def regular_file(path: AnyPath, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> int:
    """Return the size of a file [bytes]; refuse folders, pipes and devices.

    Args:
        path: Local path or remote file.
        error: Error class if the path is not a regular file.
        remedy: Advice for a missing file.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{path}: there is no such file; {remedy}.") from None
    except (OSError, ValueError) as why:  # ValueError: a name with a NUL
        raise error(f"{path}: cannot be read ({getattr(why, 'strerror', None) or why}).") from None
    if stat.S_ISDIR(status.st_mode):
        raise error(f"{path}: this is a folder; give the path of a file.")
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{path}: this is a pipe or a device; give the path of a file.")
    return status.st_size


def open_regular(path: Path, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> IO[bytes]:
    """Open a regular file for reading.

    Args:
        path: Path of the file.
        error: Error class if the path is not a regular file.
        remedy: Advice for a missing file.
    """
    regular_file(path, error, remedy)
    # O_NONBLOCK: do not wait if a pipe has replaced the file since the check.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise error(f"{path}: this is a pipe or a device; give the path of a file.")
    return open(number, "rb")


def refuse_kernel_file(path: Path, error: type[SteelyardError]) -> None:
    """Refuse a file of reported size 0 that has content: the kernel generates it (/proc), perhaps without end.

    Args:
        path: Path of a file of size 0.
        error: Error class.
    """
    try:
        with open_regular(path, error) as file:
            content = os.read(file.fileno(), 1)
    except BlockingIOError:  # content will follow
        content = b"x"
    except OSError as why:
        raise error(f"{path}: cannot be read ({why.strerror}); check its permissions.") from None
    if content:
        raise error(f"{path}: this is not a file on a disk, the system generates it while it is read; copy it first.")


def read_bytes(
    path: Path, most: int, error: type[SteelyardError] = RobotError, remedy: str = "check the path"
) -> bytes:
    """Read a regular file.

    Args:
        path: Path of the file.
        most: Largest allowed size [bytes].
        error: Error class for an unreadable or too large file.
        remedy: Advice for a missing file.
    """
    size = regular_file(path, error, remedy)
    try:
        with open_regular(path, error, remedy) as file:
            # Python allocates the requested number of bytes, so request the reported size first.
            data = file.read(min(size, most) + 1)
            if size < len(data) <= most:
                data += file.read(most + 1 - len(data))
    except OSError as why:
        raise error(f"{path}: cannot be read ({why.strerror}); check its permissions.") from None
    if len(data) > most:
        raise error(
            f"{path}: is larger than {number(most / 1e6, 3)} MB, too much for this kind of file; check the path."
        )
    return data


def read_text(path: Path, most: int, error: type[SteelyardError] = RobotError, remedy: str = "check the path") -> str:
    """Read a text file in UTF-8.

    Args:
        path: Path of the file.
        most: Largest allowed size [bytes].
        error: Error class for an unreadable or too large file.
        remedy: Advice for a missing file.
    """
    try:
        return read_bytes(path, most, error, remedy).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise error(f"{path}: is not text in UTF-8; save it as UTF-8.") from None


def parse_json(text: str, source: str, error: type[SteelyardError], remedy: str = "write it again") -> Any:
    """Parse JSON with limits of the nesting depth and of the length of numbers; NaN and infinity are refused.

    Args:
        text: JSON.
        source: Name of the text in errors.
        error: Error class for invalid JSON.
        remedy: Advice for invalid JSON.
    """
    _check_depth(text, source, error)

    def whole(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            raise error(f"{source}: contains a number of {len(digits)} digits; the file may be damaged.")
        return int(digits)

    def real(digits: str) -> float:
        number = float(digits) if len(digits) <= LONGEST_NUMBER else math.inf
        if math.isinf(number):
            raise error(
                f"{source}: contains the number {shortened(digits, 30)}, which is too large; the file may be damaged."
            )
        return number

    def constant(name: str) -> float:
        raise error(f"{source}: contains {name}, which is not valid JSON; write null for a missing number.")

    try:
        data = json.loads(text, parse_int=whole, parse_float=real, parse_constant=constant)
        if _HALF.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # fails for an unpaired surrogate
        return data
    except (json.JSONDecodeError, UnicodeEncodeError, RecursionError) as why:
        raise error(f"{source}: this is not a readable JSON file ({why}); {remedy}.") from None


def _check_depth(text: str, source: str, error: type[SteelyardError]) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        piece = match.group()
        if piece[0] != '"':
            depth += len(piece) if piece[0] in "[{" else -len(piece)
            if depth > DEEPEST:
                raise error(f"{source}: is nested deeper than {DEEPEST} levels; the file may be damaged.")


def read_json(path: Path, error: type[SteelyardError], remedy: str, exact: bool = False) -> Field:
    """Read a JSON file.

    Args:
        path: Path of the file.
        error: Error class for a missing or unreadable file.
        remedy: Advice for a missing or invalid file.
        exact: Accept numbers of any size unchanged, as in `Field`.
    """
    data = parse_json(read_text(path, LARGEST_JSON, error, remedy), str(path), error, remedy)
    return Field(data, str(path), error=error, exact=exact)
