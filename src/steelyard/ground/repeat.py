"""The command that is being run, so that whatever it writes can say how to repeat it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

# The words that were typed, and those of them that the result depends on.
_words: ContextVar[tuple[tuple[str, ...], tuple[str, ...]]] = ContextVar("command", default=((), ()))


@contextmanager
def run_by(words: Sequence[str], of_result: Sequence[str]) -> Iterator[None]:
    """In here the program runs the command of these `words`, every option spelled out; without those that only say
    where and how the result is handed out they are `of_result`."""
    before = _words.set((tuple(words), tuple(of_result)))
    try:
        yield
    finally:
        _words.reset(before)


def repeat_command(*more: str) -> str:
    """The command that gives the same result, as a shell takes it, with `more` words behind it; "" where Python was
    called instead. Where it is written does not matter: the same inputs give the same bytes, wherever."""
    words = _words.get()[1]
    return shlex.join([*words, *more]) if words else ""


def with_command(data: Any) -> Any:
    """`data` of a result, with the command that repeats it where there is one."""
    known = repeat_command()
    return {**data, "command": known} if known and isinstance(data, Mapping) and "command" not in data else data


def command_and_folder(place: Path) -> dict[str, str]:
    """The command as it was given, and the way from `place`, the run folder, to where it was; empty if none was."""
    words = _words.get()[0]
    if not words:
        return {}
    try:
        there = os.path.relpath(os.getcwd(), place)
    except (ValueError, OSError):  # another drive; or the folder is gone
        there = ""
    return {"command": shlex.join(words), "command_in": there}
