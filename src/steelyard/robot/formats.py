"""`RobotFormat`: a kind of file that describes a robot, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import RobotError
from steelyard.ground.registry import Registry
from steelyard.ground.xml import Element, parse_xml
from steelyard.robot.lock import without_loops
from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class RobotFormat:
    """A kind of file that describes a robot.

    It is entered in `ROBOT_FORMATS` at the end of the file of its reader; other packages announce theirs as entry
    points of the group `steelyard.robots`.

    Args:
        suffixes: of its files, in lower case, with the dot.
        description: what it is, in a few words.
        read: makes the robot of a file, closed chains left open (`Robot.loops`); what it cannot read is a `RobotError`
            that begins with the path.
        root: the name of the root element, by which formats in XML that share a suffix are told apart.
        parse: makes the robot of a document in XML, for one that stands in no file.
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
    """The robot of a file, by the format that its suffix and, where formats share that, its root element tell.

    Args:
        path: a file of any format in `ROBOT_FORMATS`.
        loops: leave closed chains open, for who locks them; otherwise they are refused.
    """
    robot = _format_of(path).read(path)
    return robot if loops else without_loops(robot)


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
    raise document.error(f"is not a robot's; a {suffix} file begins with {known}.")
