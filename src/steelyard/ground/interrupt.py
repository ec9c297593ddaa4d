"""Ctrl-C: the program ends at once, in one line, and leaves nothing half-written.

Only the program asks for this (`on_interrupt`); who calls the package from Python gets Python's KeyboardInterrupt. The
handler itself takes away what is being written and ends the process: an exception would have to find its way out
through code that is not ours, some of which swallows it or dies of it with other words.
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

# What is being written aside by this process.
_unfinished: set[Path] = set()
_state = {"held": 0, "waiting": 0, "gentle": 0, "wanted": 0}


def on_interrupt() -> None:
    """From now on Ctrl-C, and being told to end (SIGTERM), end this process in one line."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup, and shells that put a command in the background
            signal.signal(number, _interrupted)


def stop_wanted() -> bool:
    """Whether who waits for a search wants the best that is found so far."""
    return bool(_state["wanted"])


@contextmanager
def best_on_interrupt(what: str) -> Iterator[None]:
    """In here the first Ctrl-C asks for the best so far (see `stop_wanted`); the second ends the process.

    Args:
        what: will be delivered, for the line that is printed.
    """
    _state["gentle"] += 1
    _gentle_words[:] = [what]
    try:
        yield
    finally:
        _state["gentle"] -= 1


_gentle_words = [""]


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """In here `path`, a file or a folder, is being written, and goes if the process is ended."""
    _unfinished.add(path)
    try:
        yield
    finally:
        _unfinished.discard(path)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """In here Ctrl-C waits: for the few steps that put what was written in its place."""
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
    """Processes that are started in here do not hear Ctrl-C, which a terminal sends to all: their parent ends them."""
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
        _say(f"stopping; {_gentle_words[0]} so far is delivered (Ctrl-C again ends without it).")
        return
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.terminate()
    for path in tuple(_unfinished):
        if path.is_dir():
            import shutil  # who has a folder to be taken away has it, and others need not wait for it

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
            stream.flush()
    _say("stopped.")
    os._exit(128 + number)


def _say(what: str) -> None:
    # Past whatever bar is being drawn, with the cursor that it has hidden.
    clear = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b""
    with contextlib.suppress(OSError):
        os.write(2, clear + f"steelyard: {what}\n".encode())
