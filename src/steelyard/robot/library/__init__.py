"""The built-in robots: five from the literature and a modern seven-axis arm, each with a physically possible truth."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from steelyard.errors import UnknownNameError
from steelyard.ground.documents import parse_document
from steelyard.robot.dh import robot_from_dh
from steelyard.robot.robot import Robot

_SUFFIX = ".yaml"


@cache
def builtin_names() -> tuple[str, ...]:
    """The names that `builtin` knows, in alphabetical order."""
    names = [entry.name for entry in files(__name__).iterdir()]
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


@cache
def builtin(name: str) -> Robot:
    """A robot of the library. Robots do not change, so everybody gets the same one."""
    if name not in builtin_names():
        raise UnknownNameError("robot", name, builtin_names())
    source = name + _SUFFIX
    text = files(__name__).joinpath(source).read_text(encoding="utf-8")
    return robot_from_dh(parse_document(text, source), source)


__all__ = ["builtin", "builtin_names"]
