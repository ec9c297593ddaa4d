"""The table of suspects: every number that a fit assumes, with the column that would show it.

A column is the derivative of the model's torque by that number along the logged motion. It goes through the same filter
as the rows of the fit; its coefficient is the number (docs/theory/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.assumptions.modelled import ModelledMotion
from steelyard.assumptions.suspect import Suspect
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

# A column by joint: torques along `dense` (with four samples a row) or along `sparse` (with one).
JointTorques = dict[int, Array]


@dataclass(frozen=True)
class Kind:
    """A kind of suspects: which of them a robot has, and their columns in the same order.

    Attributes:
        suspects: Of a robot.
        columns: Along a modelled motion.
        dense: Whether columns jump as friction does, and are computed along `ModelledMotion.dense`.
    """

    suspects: Callable[[Robot], Iterator[Suspect]]
    columns: Callable[[ModelledMotion], Iterator[JointTorques]]
    dense: bool


def suspects_of(robot: Robot) -> list[Suspect]:
    """List all suspects of a robot, in the order of `columns_of`.

    Args:
        robot: The robot.
    """
    return [s for kind in KINDS for s in kind.suspects(robot)]


def columns_of(along: ModelledMotion) -> Array:
    """Compute the columns of all suspects at the rows of a motion, through its filter.

    Args:
        along: The motion, and the model along it.

    Returns:
        Shape (rows, joints, suspects).
    """
    robot = along.model.robot
    out = np.zeros((sum(m.rows for m in along.motions), robot.dof, len(suspects_of(robot))))
    for dense in (True, False):
        places: list[tuple[int, int]] = []
        raw: list[Array] = []
        number = 0
        for kind in KINDS:
            if kind.dense != dense:
                number += len(list(kind.suspects(robot)))
                continue
            for column in kind.columns(along):
                for joint, x in column.items():
                    if robot.torque_used[joint] and np.any(x):
                        places.append((joint, number))
                        raw.append(x)
                number += 1
        if raw:
            joints, numbers = zip(*places, strict=True)
            samples = along.dense if dense else along.sparse
            out[:, list(joints), list(numbers)] = samples.filtered(np.column_stack(raw))
    return out


def _all(torque: Array) -> JointTorques:
    return {j: torque[:, j] for j in range(torque.shape[1])}


# ---------------------------------------------------------------- zeros, gears, clock


def _zeros(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "zeros", "zero", j.name, j.unit, f"The position of '{j.name}' is counted from the description's zero.",
            f"Take the offset off: offset.position of '{j.name}' in the mapping.",
            "hold the arm in several poses with much weight on this joint, or compare one pose with the description's",
        )  # fmt: skip


def _zero_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for unit in np.eye(along.model.robot.dof):
        yield _all(-along.slope(unit, 0.0 * unit, 0.0 * unit))


def _gears(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "gear ratios", "gear ratio", j.name, "", f"The position of '{j.name}' has the right scale.",
            f"Divide the position of '{j.name}' by it: gear ratio, counts per turn, unit.",
            "move the joint farther, between two marks whose distance is known",
        )  # fmt: skip


def _gear_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m = along.sparse
    for unit in np.eye(along.model.robot.dof):
        yield _all(-along.slope(m.q * unit, m.dq * unit, m.ddq * unit))


def _clocks(robot: Robot) -> Iterator[Suspect]:
    yield Suspect(
        "clock", "clock scale", "", "", "A second of the log is a second.",
        "Divide the time by it: the sampling rate, or the unit of the time.",
        "log the same motion at two speeds, or compare the log's length with a watch",
    )  # fmt: skip


def _clock_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m = along.sparse
    yield _all(along.slope(0.0 * m.q, m.dq, 2.0 * m.ddq))


# ---------------------------------------------------------------- torques


def _scales(robot: Robot) -> Iterator[Suspect]:
    test = "carry a known payload, or hold a known weight"
    yield Suspect("torque scales", "torque scale", "", "", "All torques have the right scale.",
                  "Divide the torques by it: torque constants, unit, side of the gears.", test)  # fmt: skip
    for j in robot.joints:
        yield Suspect(
            "torque scales", "torque scale", j.name, "",
            f"The torque of '{j.name}' has the scale of the others' (−2: the other sign).",
            f"Divide the torque of '{j.name}' by 1 + this: torque constant, gear, sign.", test,
        )  # fmt: skip


def _scale_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    yield _all(along.torque)
    for j in range(along.model.robot.dof):
        yield {j: along.torque[:, j]}


def _couplings(robot: Robot, quantity: str) -> Iterator[Suspect]:
    """Neighbours of which one's torque or position may hold a part of the other's."""
    for i, j in _neighbours(robot):
        a, b = robot.joint_names[i], robot.joint_names[j]
        yield Suspect(
            "couplings", f"{quantity} coupling", a, "", f"The {quantity} of '{a}' holds nothing of '{b}'s.",
            "State the coupling of the drives (coupling, side) in the mapping.",
            "move one of the two joints at a time", other=b,
        )  # fmt: skip


def _leaks(robot: Robot) -> Iterator[Suspect]:
    return _couplings(robot, "torque")


def _leak_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for i, j in _neighbours(along.model.robot):
        yield {i: along.torque[:, j]}


def _shafts(robot: Robot) -> Iterator[Suspect]:
    return _couplings(robot, "position")


def _shaft_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m, units = along.sparse, np.eye(along.model.robot.dof)
    for i, j in _neighbours(along.model.robot):
        yield _all(-along.slope(*(x[:, j, None] * units[i] for x in (m.q, m.dq, m.ddq))))


def _neighbours(robot: Robot) -> Iterator[tuple[int, int]]:
    """Pairs of joints of which one carries the other next: drives that may be coupled."""
    for link in robot.links:
        if link.parent >= 0 and (other := robot.links[link.parent].coordinate) != link.coordinate:
            yield link.coordinate, other
            yield other, link.coordinate


def _delays(robot: Robot) -> Iterator[Suspect]:
    fix, test = "Give the delay (--delay), or log both with one clock.", "move faster, with more reversals"
    yield Suspect("delays", "delay", "", "s", "Torques and positions have the same clock.", fix, test)
    for j in robot.joints:
        yield Suspect("delays", "delay", j.name, "s", f"The torque of '{j.name}' comes with its position.", fix, test)


def _delay_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    rate = along.dense.part_by_part(lambda x, m: np.gradient(x, m.filter.period, axis=0), along.carried_torque)
    yield _all(-rate)
    for j in range(rate.shape[1]):
        yield {j: -rate[:, j]}


def _smoothings(robot: Robot) -> Iterator[Suspect]:
    # Noise of accelerations looks the same: a model that follows it is improved by smoothing.
    fix = "Log the torque unfiltered and positions without noise, or lower the cut-off (--cutoff)."
    test = "move faster, with more reversals"
    whole = "The torques are not filtered, nor the motion noisy."
    yield Suspect("smoothing", "smoothing of the torques", "", "s²", whole, fix, test, positive=True, ambiguous=True)
    for j in robot.joints:
        own = f"The torque of '{j.name}' is not filtered, nor its motion noisy."
        kind = "smoothing of the torque"
        yield Suspect("smoothing", kind, j.name, "s²", own, fix, test, positive=True, ambiguous=True)


def _smoothing_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    bend = along.dense.part_by_part(lambda x, m: _bend(x, m.filter.period), along.carried_torque)
    yield _all(bend)
    for j in range(bend.shape[1]):
        yield {j: bend[:, j]}


def _bend(x: Array, period: float) -> Array:
    """Second derivative; an even filter of variance σ² adds σ²/2 of it."""
    out = np.zeros_like(x)
    out[1:-1] = (x[2:] - 2.0 * x[1:-1] + x[:-2]) / period**2
    return out


# ---------------------------------------------------------------- time


def _frictions(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "drift", "friction drift", j.name, "", f"The friction of '{j.name}' is the same throughout the log.",
            "Warm the robot up before logging, or identify from a shorter piece.", "log longer, from cold to warm",
        )  # fmt: skip


def _friction_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j in range(along.model.robot.dof):
        yield {j: along.friction[:, j] * along.progress}


def _offsets(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "drift", "torque drift", j.name, j.effort_unit, f"The torque sensor of '{j.name}' does not drift.",
            "Zero the sensor before logging, or identify from a shorter piece.", "log longer",
        )  # fmt: skip


def _offset_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j in range(along.model.robot.dof):
        yield {j: along.progress}


def _payloads(robot: Robot) -> Iterator[Suspect]:
    yield Suspect(
        "load", "payload in the second half", "", "kg", "The robot carries the same load throughout the log.",
        "Cut the log where the load changes, and identify from one part.", "log with one load",
    )  # fmt: skip


def _payload_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    theta = np.zeros_like(along.model.theta)
    theta[10 * (len(along.model.robot.links) - 1)] = 1.0
    yield _all(along.of_parameters(theta) * (along.progress > 0.0)[:, None])


# ---------------------------------------------------------------- description


def _gravities(robot: Robot) -> Iterator[Suspect]:
    fix = "State gravity in the base's frame (gravity in the mapping)."
    test = "level the base, or hold several static poses"
    yield Suspect("gravity", "size of gravity", "", "", "Gravity has the stated size.", fix, test, "description")
    for axis in "xy":
        yield Suspect("gravity", f"tilt of gravity about {axis}", "", "rad", "The base stands as described.", fix, test,
                      "description")  # fmt: skip


def _gravity_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    g = np.asarray(along.model.robot.gravity)
    yield _all(along.placements.pulled(g))
    for axis in level_axes(g):
        yield _all(along.placements.pulled(np.cross(axis, g)))


def level_axes(g: Array) -> tuple[Array, Array]:
    """Compute the two horizontal axes that tilts of gravity are about; for gravity along −z those of x and y.

    Args:
        g: Gravity in the base frame [m/s²].
    """
    size = float(np.linalg.norm(g))
    down = g / size if size > 0.0 else np.array([0.0, 0.0, -1.0])
    x = np.eye(3)[0] if abs(down[0]) < 0.9 else np.eye(3)[1]
    first = x - (x @ down) * down
    first = first / np.linalg.norm(first)
    return first, np.cross(-down, first)


_SHIFTS = ("shift along its axis", "first shift across", "second shift across")
_TILTS = ("first tilt of the axis", "second tilt of the axis")


def _places(robot: Robot) -> Iterator[Suspect]:
    fix, test = "Measure the link, and correct the description.", "measure the link"
    for link in _carried(robot):
        name = robot.links[link].joint
        for kind in (*_SHIFTS, *_TILTS):
            unit, what = ("m", "stands where") if kind in _SHIFTS else ("rad", "has the direction that")
            assumption = f"The frame of '{name}' {what} the description says."
            yield Suspect("places of joints", kind, name, unit, assumption, fix, test, "description")


def _place_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for link in _carried(along.model.robot):
        slopes = along.placements.displaced(link, along.placements.directions(link))
        for k in range(slopes.shape[2]):
            yield _all(slopes[:, :, k])


def _carried(robot: Robot) -> list[int]:
    """Links whose place matters: where the first one stands, only gravity knows."""
    return [k for k, link in enumerate(robot.links) if link.parent >= 0]


KINDS = (
    Kind(_zeros, _zero_columns, False),
    Kind(_scales, _scale_columns, True),
    Kind(_gears, _gear_columns, False),
    Kind(_clocks, _clock_columns, False),
    Kind(_delays, _delay_columns, True),
    Kind(_smoothings, _smoothing_columns, True),
    Kind(_gravities, _gravity_columns, False),
    Kind(_leaks, _leak_columns, True),
    Kind(_shafts, _shaft_columns, False),
    Kind(_payloads, _payload_columns, True),
    Kind(_frictions, _friction_columns, True),
    Kind(_offsets, _offset_columns, True),
    Kind(_places, _place_columns, False),
)
