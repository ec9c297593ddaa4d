"""The built-in robots: five from the literature and a modern seven-axis arm, with physically possible parameters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from steelyard.errors import UnknownNameError
from steelyard.ground.documents import parse_document
from steelyard.ground.outcome import Outcome
from steelyard.ground.short_repr import short_repr
from steelyard.robot.dh import robot_from_dh
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

_SUFFIX = ".yaml"


@cache
def builtin_names() -> tuple[str, ...]:
    """List the names of built-in robots, in alphabetical order."""
    names = [entry.name for entry in files(__name__).iterdir()]
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


@cache
def builtin(name: str) -> Robot:
    """Load the built-in robot `name`; all callers share one immutable robot."""
    if name not in builtin_names():
        raise UnknownNameError("robot", name, builtin_names())
    source = name + _SUFFIX
    text = files(__name__).joinpath(source).read_text(encoding="utf-8")
    return robot_from_dh(parse_document(text, source), source)


@dataclass(frozen=True)
class Builtin:
    """Name, number of joints and one-sentence description of a built-in robot."""

    name: str
    joints: int
    description: str


@short_repr
@dataclass(frozen=True)
class Catalogue(Outcome):
    """All built-in robots, by name."""

    robots: tuple[Builtin, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(robot) for robot in self.robots]

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import table

        rows = [[r.name, str(r.joints), r.description] for r in self.robots]
        out.print(table("Built-in robots", ["name", "joints", "description"], rows, right=("joints",)))


def catalogue() -> Catalogue:
    """List all built-in robots, by name."""
    return Catalogue(tuple(Builtin(name, builtin(name).dof, _first_sentence(name)) for name in builtin_names()))


def _first_sentence(name: str) -> str:
    """Return the first sentence of the comment at the head of the description."""
    text = files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    prose = " ".join(line.removeprefix("#").strip() for line in comment)
    end = prose.find(". ")
    return prose if end < 0 else prose[: end + 1]


__all__ = ["Builtin", "Catalogue", "builtin", "builtin_names", "catalogue"]
