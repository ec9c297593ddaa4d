"""Stores the running command, so that its outputs can state how to repeat it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

# All words of the command, and those that affect the result.
_words: ContextVar[tuple[tuple[str, ...], tuple[str, ...]]] = ContextVar("command", default=((), ()))


@contextmanager
def running_command(words: Sequence[str], of_result: Sequence[str]) -> Iterator[None]:
    """Set the current command; inside this context, results record how to repeat it.

    Args:
        words: Words of the command with all options written out.
        of_result: The same without options that only affect the output, such as its folder.
    """
    before = _words.set((tuple(words), tuple(of_result)))
    try:
        yield
    finally:
        _words.reset(before)


def repeat_command(*more: str) -> str:
    """Return the shell command that repeats the result, followed by the words `more`; "" outside of a command.

    It contains no output options, so that the same inputs give the same bytes in any folder.
    """
    words = _words.get()[1]
    return shlex.join([*words, *more]) if words else ""


def with_command(data: Any) -> Any:
    """Add the command that repeats a result to its `data`, if there is one."""
    command = repeat_command()
    return {**data, "command": command} if command and isinstance(data, Mapping) and "command" not in data else data


def command_and_folder(place: Path) -> dict[str, str]:
    """Return the command and the relative path from the run folder `place` to its working folder; {} without one."""
    words = _words.get()[0]
    if not words:
        return {}
    try:
        there = os.path.relpath(os.getcwd(), place)
    except (ValueError, OSError):  # another drive, or a deleted working folder
        there = ""
    return {"command": shlex.join(words), "command_in": there}
