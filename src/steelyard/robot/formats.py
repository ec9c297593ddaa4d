"""`RobotFormat`: a robot file format, and the registry of all formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import RobotError
from steelyard.ground.registry import Registry
from steelyard.ground.xml import Element, parse_xml
from steelyard.robot.lock import refuse_loops
from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class RobotFormat:
    """A robot file format.

    Each reader registers its format in `ROBOT_FORMATS` at the end of its file; other packages use entry points of the
    group `steelyard.robots`.

    Args:
        suffixes: File suffixes in lower case, with the dot.
        description: The format in a few words.
        read: Reads a file without refusing closed chains (`Robot.loops`); raises a `RobotError` that begins with the
            path.
        root: Name of the XML root element, which distinguishes XML formats with the same suffix.
        parse: Converts a parsed XML document that does not come from a file.
    """

    suffixes: tuple[str, ...]
    description: str
    read: Callable[[Path], Robot]
    root: str = ""
    parse: Callable[[Element], Robot] | None = None


ROBOT_FORMATS: Registry[RobotFormat] = Registry(
    "robot format", tuple(f"steelyard.robot.{name}" for name in ("urdf", "mjcf", "dh")), group="steelyard.robots"
)


def read_robot(path: Path, loops: bool = False) -> Robot:
    """Read a robot file; the suffix and, if several formats share it, the root element select the format.

    Args:
        path: File of any format in `ROBOT_FORMATS`.
        loops: Accept closed chains, which the caller must lock; otherwise they are refused.
    """
    robot = _format_of(path).read(path)
    return robot if loops else refuse_loops(robot)


def _format_of(path: Path) -> RobotFormat:
    suffix = path.suffix.lower()
    fitting = [kind for kind in ROBOT_FORMATS.values() if suffix in kind.suffixes]
    if not fitting:
        *most, last = sorted({suffix for kind in ROBOT_FORMATS.values() for suffix in kind.suffixes})
        raise RobotError(
            f"{path}: a robot is read from {', '.join(most)} or {last}, not from "
            f"'{suffix or 'a file without suffix'}'; rename or convert the file."
        )
    if len(fitting) == 1:
        return fitting[0]
    document = parse_xml(path)
    for kind in fitting:
        if kind.root == document.tag:
            return kind
    known = " or ".join(sorted(f"<{kind.root}> ({kind.description})" for kind in fitting))
    raise document.error(f"is not the root of a robot; a {suffix} file begins with {known}.")
