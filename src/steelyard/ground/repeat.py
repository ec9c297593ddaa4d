"""The command that is being run, so that whatever it writes can say how to repeat it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

_words: ContextVar[tuple[str, ...]] = ContextVar("command", default=())


@contextmanager
def run_by(words: Sequence[str]) -> Iterator[None]:
    """In here the program runs the command of these `words`, every option spelled out."""
    before = _words.set(tuple(words))
    try:
        yield
    finally:
        _words.reset(before)


def repeat_command(*more: str) -> str:
    """The command being run as a shell takes it, with `more` words behind it; "" where Python was called instead."""
    return shlex.join([*_words.get(), *more]) if _words.get() else ""


def with_command(data: Any) -> Any:
    """`data` of a result, with the command that repeats it where there is one."""
    known = repeat_command()
    return {**data, "command": known} if known and isinstance(data, Mapping) and "command" not in data else data


def command_and_folder(place: Path) -> dict[str, str]:
    """The command, and the way from `place`, the run folder, to the folder that it was given in; empty if none was."""
    known = repeat_command()
    if not known:
        return {}
    try:
        there = os.path.relpath(os.getcwd(), place)
    except (ValueError, OSError):  # another drive; or the folder is gone
        there = ""
    return {"command": known, "command_in": there}
