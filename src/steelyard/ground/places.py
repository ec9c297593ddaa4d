"""Putting things in their place: all that differs between Linux, macOS, Windows and poorer file systems.

What is written aside carries who wrote it in its name, `.NAME.steelyard-new-HOST-PID-START-RANDOM`, so that the next
run knows the litter of one that was killed from the work of one that lives.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

# Flags of renameat2 (Linux) and renamex_np (macOS): fail where something is there; exchange two names.
_NEW, _SWAP = (4, 2) if sys.platform == "darwin" else (1, 2)
_AT_FDCWD = -100


def rename_new(source: Path, target: Path) -> None:
    """Give `source` the name `target`, in one step, and only if nothing has that name: else FileExistsError.

    Where the system has no such step a folder is still put on nothing but an empty folder, and a file on nothing.
    """
    if not _flagged(source, target, _NEW):
        _rename_new_plainly(source, target)


def exchange(a: Path, b: Path) -> bool:
    """Let `a` and `b` change names in one step; False, and nothing done, where the system cannot."""
    return _flagged(a, b, _SWAP)


def _flagged(source: Path, target: Path, flag: int) -> bool:
    """Rename with a flag that the plain call has not; False where this system or this file system cannot."""
    call = _system_call()
    if call is None:
        return False
    names = os.fsencode(source), os.fsencode(target)
    at = () if sys.platform == "darwin" else (_AT_FDCWD,)
    if call(*at, names[0], *at, names[1], ctypes.c_uint(flag)) == 0:
        return True
    if ctypes.get_errno() == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    return False


@cache
def _system_call() -> Any:
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name) if name else None
    except (AttributeError, OSError):  # an old C library
        return None


def _rename_new_plainly(source: Path, target: Path) -> None:
    there = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if os.path.lexists(target):
        raise there
    if os.name == "nt" or source.is_dir():
        # Windows renames onto nothing; POSIX renames a folder onto nothing but an empty one.
        try:
            os.rename(source, target)
        except OSError:
            if os.path.lexists(target):
                raise there from None
            raise
        return
    try:
        os.link(source, target)
    except FileExistsError:
        raise there from None
    except OSError:  # a file system without links: the name is claimed first
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(source, target)
    else:
        os.unlink(source)


# ---------------------------------------------------------------- names aside, and whether who wrote them still lives

_ASIDE = re.compile(
    r"\.(?P<name>.+)\.steelyard-(?P<kind>new|old)-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)-\w+"
)


class Aside(NamedTuple):
    """A thing that was written, or put, aside.

    Attributes:
        path: where it is.
        place: where it was to go (`new`), or where it came from (`old`).
        kind: which of the two.
    """

    path: Path
    place: Path
    kind: str


def aside_of(place: Path, kind: Literal["new", "old"] = "new") -> Path:
    """A name beside `place` that nothing has yet, by which others know who is at work there.

    Args:
        place: where the thing is to go, or where it came from.
        kind: `new` for what is being written, `old` for what has to make room.
    """
    # A name may have 255 bytes; long ones are cut, for nobody reads them back but to restore an `old` one.
    name = place.name if kind == "old" else os.fsencode(place.name)[:120].decode(errors="ignore")
    pid = os.getpid()
    return place.with_name(f".{name}.steelyard-{kind}-{_host()}-{pid}-{_started(pid)}-{secrets.token_hex(4)}")


def abandoned(folder: Path) -> Iterator[Aside]:
    """What processes of this machine that are dead have left aside in `folder`, and nothing else."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _ASIDE.fullmatch(entry.name)
            if found and found["host"] == _host() and not _lives(int(found["pid"]), found["start"]):
                yield Aside(folder / entry.name, folder / found["name"], found["kind"])


@cache
def _host() -> str:
    """This machine, and the part of its processes that we see: a number of a process means nothing elsewhere."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(f"{platform.node()} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did, which no change of the clock moves; 0 if not known."""
    found = _process(pid)
    return found[1] if found else "0"


def _process(pid: int) -> tuple[str, str] | None:
    """State and start of a process, where the system has /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), fields[19].decode()
    except (OSError, IndexError):
        return None


def _lives(pid: int, start: str) -> bool:
    if _process(os.getpid()) is not None:
        found = _process(pid)
        return found is not None and found[0] not in "ZX" and found[1] == start
    if sys.platform == "win32":  # os.kill(pid, 0) would end the process there
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if not handle:
            return bool(kernel.GetLastError() == 5)  # it is another's
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return code.value == 259  # STILL_ACTIVE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# ---------------------------------------------------------------- who may write, and one at a time


def is_private(found: os.stat_result, *, secret: bool = False) -> bool:
    """Whether nobody but this user may write to a file or folder.

    Windows keeps rights elsewhere; there a user's own folders are closed to others, and this is True.

    Args:
        found: its `stat`.
        secret: nobody else may read it either.
    """
    if not hasattr(os, "geteuid"):
        return True
    closed = not found.st_mode & (0o077 if secret else stat.S_IWGRP | stat.S_IWOTH)
    return closed and found.st_uid == os.geteuid()


def hold(file: IO[Any]) -> bool:
    """Lock an open `file` for this process as long as it is open; False where another process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0x7FFF0000)  # a byte that nobody reads
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A file system without locks holds nobody back.
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
