"""Atomic renames, staging names and locks on Linux, macOS, Windows and file systems with fewer features.

A staging file is named `.NAME.steelyard-new-HOST-PID-START-RANDOM`. Process number and start time show whether its
writer still runs, so that the next run can delete leftovers of a killed process.
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

# Flags of renameat2 (Linux) and renamex_np (macOS): fail if the target exists; exchange two names.
_NO_REPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)
_AT_FDCWD = -100


def rename_new(source: Path, target: Path) -> None:
    """Rename in one step, or raise FileExistsError if the target exists.

    If the system has no such call, a folder may still replace an empty folder.

    Args:
        source: Current path.
        target: New path.
    """
    if not _rename_with_flag(source, target, _NO_REPLACE):
        _rename_new_fallback(source, target)


def exchange(a: Path, b: Path) -> bool:
    """Exchange two names in one step; False, without any change, if the system cannot.

    Args:
        a: Path of a file or folder.
        b: Path of another one.
    """
    return _rename_with_flag(a, b, _EXCHANGE)


def _rename_with_flag(source: Path, target: Path, flag: int) -> bool:
    """Rename with a flag; False if this system or file system does not support it."""
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
    except (AttributeError, OSError):  # old C library
        return None


def _rename_new_fallback(source: Path, target: Path) -> None:
    there = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    if os.path.lexists(target):
        raise there
    if os.name == "nt" or source.is_dir():
        # os.rename never replaces anything on Windows; on POSIX a folder replaces only an empty folder.
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
    except OSError:  # file system without hard links: reserve the name first
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(source, target)
    else:
        os.unlink(source)


# ---------------------------------------------------------------- staging names

_STAGING_NAME = re.compile(
    r"\.(?P<name>.+)\.steelyard-(?P<kind>new|old)-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)-\w+"
)


class Leftover(NamedTuple):
    """A staging file or folder whose process has ended.

    Attributes:
        path: Current path.
        target: Final path of new content (`new`), or original path of replaced content (`old`).
        kind: "new" or "old".
    """

    path: Path
    target: Path
    kind: str


def staging_path(target: Path, kind: Literal["new", "old"] = "new") -> Path:
    """Return an unused path in the same folder whose name identifies this process.

    Args:
        target: Final path of a new file or folder, or previous path of an old one.
        kind: "new" for content that is being written, "old" for content that is being replaced.
    """
    # A name may have 255 bytes, so a long one is cut; only an old name is needed again, to restore it.
    name = target.name if kind == "old" else os.fsencode(target.name)[:120].decode(errors="ignore")
    pid = os.getpid()
    return target.with_name(f".{name}.steelyard-{kind}-{_host()}-{pid}-{_start_ticks(pid)}-{secrets.token_hex(4)}")


def leftovers(folder: Path) -> Iterator[Leftover]:
    """Yield the staging files and folders in `folder` whose process, on this machine, has ended."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = _STAGING_NAME.fullmatch(entry.name)
            if name and name["host"] == _host() and not _is_running(int(name["pid"]), name["start"]):
                yield Leftover(folder / entry.name, folder / name["name"], name["kind"])


@cache
def _host() -> str:
    """Hash of machine and process namespace: a process number is only meaningful inside them."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(f"{platform.node()} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:8]
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _start_ticks(pid: int) -> str:
    """Start of a process in clock ticks since boot, independent of clock changes; "0" if unknown."""
    process = _process(pid)
    return process[1] if process else "0"


def _process(pid: int) -> tuple[str, str] | None:
    """State and start of a process; None without /proc or if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), fields[19].decode()
    except (OSError, IndexError):
        return None


def _is_running(pid: int, start: str) -> bool:
    if _process(os.getpid()) is not None:
        process = _process(pid)
        return process is not None and process[0] not in "ZX" and process[1] == start
    if sys.platform == "win32":  # os.kill(pid, 0) would end the process there
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if not handle:
            return bool(kernel.GetLastError() == 5)  # access denied: a process of another user
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


# ---------------------------------------------------------------- permissions and locks


def is_private(status: os.stat_result, *, secret: bool = False) -> bool:
    """Whether only this user may write to a file or folder.

    Always True on Windows: it stores permissions elsewhere, and protects a user's folders by default.

    Args:
        status: `stat` of the file or folder.
        secret: Also require that others may not read it.
    """
    if not hasattr(os, "geteuid"):
        return True
    closed = not status.st_mode & (0o077 if secret else stat.S_IWGRP | stat.S_IWOTH)
    return closed and status.st_uid == os.geteuid()


def lock_file(file: IO[Any]) -> bool:
    """Lock an open `file` for this process until it is closed; False if another process has the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0x7FFF0000)  # a byte beyond the content
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Without lock support of the file system, continue unlocked.
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
