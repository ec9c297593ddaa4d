"""The lengths in a robot's placements, and the same robot with all of them changed.

A coefficient of a base parameter is recognised as a formula only if the formula remains true when the lengths change:
0.25 may be l², l/2 or a pure number, and one robot alone cannot decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

# Lengths closer than this (relative) are equal.
_SAME = 1e-9
# Changes between 5 % and 35 %, all different: multiples of the golden ratio spread evenly and never repeat.
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True)
class Length:
    """A distance within some joint frames: its name or digits, its value [m], and its value in the changed robot
    [m].
    """

    text: str
    value: float
    changed: float
    frames: frozenset[int]


def lengths_of(robot: Robot) -> tuple[Length, ...]:
    """List the lengths in the placements of `robot`, with names if the robot defines them.

    Equal components within one joint frame are one length. If several names have one value, they are assigned to the
    distances of that value in order from base to tip, provided that their numbers agree.
    """
    places: dict[tuple[int, int, float], None] = {}
    for k, link in enumerate(robot.links):
        for frame, vector in ((link.parent, link.translation), (k, link.frame_translation)):
            for axis, x in enumerate(vector):
                if x != 0.0:
                    places.setdefault((frame, axis, _canonical(places, frame, axis, abs(float(x)))))
    by_value: list[list[tuple[int, int, float]]] = []
    for place in sorted(places):
        for group in by_value:
            if _close(group[0][2], place[2]):
                group.append(place)
                break
        else:
            by_value.append([place])
    found: list[tuple[str, float, frozenset[int]]] = []
    for group in by_value:
        value = group[0][2]
        names = [name for name, x in robot.lengths.items() if _close(abs(x), value)]
        if len(names) == 1:
            found.append((names[0], value, frozenset(frame for frame, _, _ in group)))
        elif len(names) == len(group):
            found.extend((name, value, frozenset({place[0]})) for name, place in zip(names, group, strict=True))
        else:
            found.extend((f"{value:.10g}", value, frozenset({place[0]})) for place in group)
    return tuple(
        Length(text, value, value * (1.05 + 0.3 * ((k + 1) * _GOLDEN % 1.0)), frames)
        for k, (text, value, frames) in enumerate(found)
    )


def with_changed_lengths(robot: Robot, lengths: tuple[Length, ...]) -> Robot:
    """Return a copy of the robot in which every length has its changed value.

    Args:
        robot: Robot.
        lengths: Lengths with their changed values.
    """

    def moved(vector: Array, frame: int) -> Array:
        out = np.array(vector)
        for axis, x in enumerate(vector):
            for length in lengths:
                if x != 0.0 and frame in length.frames and _close(abs(float(x)), length.value):
                    out[axis] = np.sign(x) * length.changed
        return out

    links = tuple(
        replace(
            link,
            translation=moved(link.translation, link.parent),
            frame_translation=moved(link.frame_translation, k),
        )
        for k, link in enumerate(robot.links)
    )
    return replace(robot, links=links)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _SAME * max(abs(a), abs(b))


def _canonical(places: dict[tuple[int, int, float], None], frame: int, axis: int, value: float) -> float:
    """Return the stored value for this place, if there is one."""
    for other_frame, other_axis, x in places:
        if (other_frame, other_axis) == (frame, axis) and _close(x, value):
            return x
    return value
