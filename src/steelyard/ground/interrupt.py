"""Ctrl-C ends the program at once with one line, and leaves no partial files.

Only the program installs these handlers (`on_interrupt`); in Python scripts Ctrl-C raises KeyboardInterrupt as usual.
The handler itself deletes partial files and ends the process, because an exception can be lost in code of libraries.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# Staging files and folders of this process.
_unfinished: set[Path] = set()
_state = {"held": 0, "waiting": 0, "gentle": 0, "wanted": 0}


def on_interrupt() -> None:
    """Install handlers so that Ctrl-C and SIGTERM end this process with one line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # ignored under nohup and for background jobs of a shell
            signal.signal(number, _interrupted)


def stop_wanted() -> bool:
    """Whether the user asked a search to stop and return its best result so far."""
    return bool(_state["wanted"])


@contextmanager
def best_on_interrupt(what: str) -> Iterator[None]:
    """Inside this context, the first Ctrl-C requests the best result so far (`stop_wanted`), the next ends the process.

    Args:
        what: Name of the result, for the printed line.
    """
    _state["gentle"] += 1
    _result_name[:] = [what]
    try:
        yield
    finally:
        _state["gentle"] -= 1


_result_name = [""]


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Inside this context, an interrupt deletes the partial file or folder at `path`."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _unfinished.discard(path)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside this context, Ctrl-C is delayed: for the few steps that put a result in place."""
    _state["held"] += 1
    try:
        yield
    finally:
        _state["held"] -= 1
        if not _state["held"] and (number := _state["waiting"]):
            _state["waiting"] = 0
            _interrupted(number, None)


@contextmanager
def children_undisturbed() -> Iterator[None]:
    """Inside this context, new child processes ignore Ctrl-C, which a terminal sends to all; their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(number: int, frame: Any) -> None:
    if _state["held"]:
        _state["waiting"] = number
        return
    if _state["gentle"] and not _state["wanted"] and number == signal.SIGINT:
        _state["wanted"] = 1
        _print(f"stopping; {_result_name[0]} so far is returned (Ctrl-C again: end without it).")
        return
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.terminate()
    for path in tuple(_unfinished):
        if path.is_dir():
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
            stream.flush()
    _print("stopped.")
    os._exit(128 + number)


def _print(message: str) -> None:
    # Erase a progress bar, and show the cursor that it hid.
    clear = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b""
    with contextlib.suppress(OSError):
        os.write(2, clear + f"steelyard: {message}\n".encode())
