"""The built-in robots at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import takewhile

from steelyard.robot.library import builtin, builtin_names


@dataclass(frozen=True)
class Entry:
    """A built-in robot: its name, how many joints it has, and what it is in one sentence."""

    name: str
    joints: int
    description: str


def catalogue() -> tuple[Entry, ...]:
    """All built-in robots, by name."""
    return tuple(Entry(name, builtin(name).dof, _first_sentence(name)) for name in builtin_names())


def _first_sentence(name: str) -> str:
    """The first sentence of the comment at the head of the description."""
    text = files("steelyard.robot.library").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    prose = " ".join(line.removeprefix("#").strip() for line in comment)
    end = prose.find(". ")
    return prose if end < 0 else prose[: end + 1]
