"""Table of suspects: every number that a fit assumes, with its regressor column.

A column is the derivative of the model's torque with respect to this number along the logged motion, filtered like the
rows of the fit. Its coefficient estimates the number (docs/theory/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from steelyard.assumptions.modelled_motion import ModelledMotion
from steelyard.assumptions.suspect import Suspect
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

# A column by joint: torques along `dense` (four samples per row) or `sparse` (one sample per row).
JointTorques = dict[int, Array]


@dataclass(frozen=True)
class Kind:
    """A kind of suspects with their columns.

    Attributes:
        suspects: Returns the suspects of a robot.
        columns: Returns their columns along a modelled motion, in the same order.
        dense: Whether columns can jump like friction and are therefore computed along `ModelledMotion.dense`.
    """

    suspects: Callable[[Robot], Iterator[Suspect]]
    columns: Callable[[ModelledMotion], Iterator[JointTorques]]
    dense: bool


def suspects_of(robot: Robot) -> list[Suspect]:
    """List all suspects of a robot, in the order of `columns_of`.

    Args:
        robot: Robot to test.
    """
    return [s for kind in KINDS for s in kind.suspects(robot)]


def columns_of(along: ModelledMotion) -> Array:
    """Compute the columns of all suspects at the rows of a motion, through its filter.

    Args:
        along: Motion with the model torque.

    Returns:
        Shape (rows, joints, suspects).
    """
    robot = along.model.robot
    out = np.zeros((sum(m.rows for m in along.motions), robot.dof, len(suspects_of(robot))))
    for dense in (True, False):
        positions: list[tuple[int, int]] = []
        raw: list[Array] = []
        number = 0
        for kind in KINDS:
            if kind.dense != dense:
                number += len(list(kind.suspects(robot)))
                continue
            for column in kind.columns(along):
                for joint, x in column.items():
                    if robot.torque_used[joint] and np.any(x):
                        positions.append((joint, number))
                        raw.append(x)
                number += 1
        if raw:
            joints, numbers = zip(*positions, strict=True)
            samples = along.dense if dense else along.sparse
            out[:, list(joints), list(numbers)] = samples.filtered(np.column_stack(raw))
    return out


def _all(torque: Array) -> JointTorques:
    return {j: torque[:, j] for j in range(torque.shape[1])}


# ---------------------------------------------------------------- zeros, gears, clock


def _zeros(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "zeros", "zero", j.name, j.unit, f"The zero position of '{j.name}' is that of the robot description.",
            f"Subtract the offset: set offset.position of '{j.name}' in the mapping.",
            "hold the arm in several poses with a large gravity torque on this joint, or compare one pose with the "
            "description",
            step=_change("slips", "slip of the zero", j.name, j.unit, f"The zero of '{j.name}'", "Check the encoder."),
        )  # fmt: skip


def _zero_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for unit in np.eye(along.model.robot.dof):
        yield _all(-along.slope(unit, 0.0 * unit, 0.0 * unit))


def _gears(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "gear ratios", "gear ratio", j.name, "", f"The position scale of '{j.name}' is correct.",
            f"Correct the position scale of '{j.name}': gear ratio, counts per turn, unit.",
            "move the joint between two marks a known, large distance apart",
        )  # fmt: skip


def _gear_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m = along.sparse
    for unit in np.eye(along.model.robot.dof):
        yield _all(-along.slope(m.q * unit, m.dq * unit, m.ddq * unit))


def _clocks(robot: Robot) -> Iterator[Suspect]:
    yield Suspect(
        "clock", "clock scale", "", "", "The time scale of the log is correct.",
        "Correct the time scale: sampling rate or unit of time.",
        "log the same motion at two speeds, or measure the duration of the log independently",
    )  # fmt: skip


def _clock_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m = along.sparse
    yield _all(along.slope(0.0 * m.q, m.dq, 2.0 * m.ddq))


# ---------------------------------------------------------------- torques


def _scales(robot: Robot) -> Iterator[Suspect]:
    test = "carry a known payload, or hold a known weight"
    yield Suspect("torque scales", "torque scale", "", "", "The common scale of all torques is correct.",
                  "Correct the torque scale: torque constants, unit, motor or joint side.", test)  # fmt: skip
    for j in robot.joints:
        yield Suspect(
            "torque scales", "torque scale", j.name, "",
            f"The torque scale of '{j.name}' is that of the other joints (−2: opposite sign).",
            f"Divide the torque of '{j.name}' by 1 + this: torque constant, gear, sign.", test,
            step=_change("scale changes", "change of the torque scale", j.name, "", f"The torque scale of '{j.name}'",
                         "Check its drive."),
        )  # fmt: skip


def _scale_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    yield _all(along.torque)
    for j in range(along.model.robot.dof):
        yield {j: along.torque[:, j]}


def _couplings(robot: Robot, quantity: str) -> Iterator[Suspect]:
    """Yield pairs of neighbours whose torques or positions may be coupled."""
    for i, j in _neighbours(robot):
        a, b = robot.joint_names[i], robot.joint_names[j]
        yield Suspect(
            "couplings", f"{quantity} coupling", a, "", f"The {quantity} of '{a}' does not depend on that of '{b}'.",
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
    """Yield pairs of consecutive joints, in both orders; their drives may be coupled."""
    for link in robot.links:
        if link.parent >= 0 and (other := robot.links[link.parent].coordinate) != link.coordinate:
            yield link.coordinate, other
            yield other, link.coordinate


def _delays(robot: Robot) -> Iterator[Suspect]:
    fix, test = "Give --delay, or log torques and positions with one clock.", "move faster, with more reversals"
    yield Suspect("delays", "delay", "", "s", "Torques have no delay relative to positions.", fix, test)
    for j in robot.joints:
        yield Suspect(
            "delays",
            "delay",
            j.name,
            "s",
            f"The torque of '{j.name}' has no delay relative to its position.",
            fix,
            test,
        )


def _delay_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    rate = along.dense.part_by_part(lambda x, m: np.gradient(x, m.filter.period, axis=0), along.frictionless_torque)
    yield _all(-rate)
    for j in range(rate.shape[1]):
        yield {j: -rate[:, j]}


def _smoothings(robot: Robot) -> Iterator[Suspect]:
    # Noisy accelerations have the same effect: smoothing the model torque improves the fit.
    fix = "Log the torque unfiltered and positions without noise, or lower the cut-off (--cutoff)."
    test = "move faster, with more reversals"
    whole = "The torques are unfiltered and the motion has no noise."
    yield Suspect("smoothing", "smoothing of the torques", "", "s²", whole, fix, test, positive=True, ambiguous=True)
    for j in robot.joints:
        own = f"The torque of '{j.name}' is unfiltered and its motion has no noise."
        kind = "smoothing of the torque"
        yield Suspect("smoothing", kind, j.name, "s²", own, fix, test, positive=True, ambiguous=True)


def _smoothing_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    bend = along.dense.part_by_part(lambda x, m: _second_derivative(x, m.filter.period), along.frictionless_torque)
    yield _all(bend)
    for j in range(bend.shape[1]):
        yield {j: bend[:, j]}


def _second_derivative(x: Array, period: float) -> Array:
    """Return the second derivative; a symmetric filter of variance σ² adds σ²/2 times it."""
    out = np.zeros_like(x)
    out[1:-1] = (x[2:] - 2.0 * x[1:-1] + x[:-2]) / period**2
    return out


# ---------------------------------------------------------------- time


def _frictions(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "drift", "friction drift", j.name, "", f"The friction of '{j.name}' is constant during the log.",
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


def _change(family: str, kind: str, joint: str, unit: str, what: str, fix: str) -> Suspect:
    """Return the suspect of a number that changes at an instant during the logs."""
    fix = f"{fix} Identify from the rows before or after."
    return Suspect(family, kind, joint, unit, f"{what} does not change during the logs.", fix, "log longer")


def _payloads(robot: Robot) -> Iterator[Suspect]:
    step = _change("load", "change of the payload", "", "kg", "The payload", "Log with a constant payload.")
    yield replace(step, kind="payload", step=step, only_steps=True)


def _payload_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    theta = np.zeros_like(along.model.theta)
    theta[10 * (len(along.model.robot.links) - 1)] = 1.0
    yield _all(along.of_parameters(theta))


def _levels(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        what, fix = f"The torque offset of '{j.name}'", "Check its sensor and drive."
        step = _change("torque jumps", "jump of the torque", j.name, j.effort_unit, what, fix)
        yield replace(step, kind="torque offset", step=step, only_steps=True)


def _level_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for j in range(along.model.robot.dof):
        yield {j: np.ones_like(along.progress)}


# ---------------------------------------------------------------- description


def _gravities(robot: Robot) -> Iterator[Suspect]:
    fix = "Set gravity in the base frame (gravity in the mapping)."
    test = "level the base, or hold several static poses"
    yield Suspect(
        "gravity", "size of gravity", "", "", "The magnitude of gravity is correct.", fix, test, "description"
    )
    for axis in "xy":
        kind = f"tilt of gravity about {axis}"
        yield Suspect("gravity", kind, "", "rad", "The base orientation is as described.", fix, test, "description")


def _gravity_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    g = np.asarray(along.model.robot.gravity)
    yield _all(along.placements.gravity_slopes(g))
    for axis in level_axes(g):
        yield _all(along.placements.gravity_slopes(np.cross(axis, g)))


def level_axes(g: Array) -> tuple[Array, Array]:
    """Compute the two horizontal axes of gravity tilts; for gravity along −z these are x and y.

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


def _placements(robot: Robot) -> Iterator[Suspect]:
    fix, test = "Measure the link and correct the robot description.", "measure the link"
    for link in _placed_links(robot):
        name = robot.links[link].joint
        for kind in (*_SHIFTS, *_TILTS):
            unit, quantity = ("m", "position") if kind in _SHIFTS else ("rad", "direction")
            assumption = f"The {quantity} of the frame of '{name}' is as described."
            yield Suspect("joint placements", kind, name, unit, assumption, fix, test, "description")


def _placement_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for link in _placed_links(along.model.robot):
        slopes = along.placements.displacement_slopes(link, along.placements.directions(link))
        for k in range(slopes.shape[2]):
            yield _all(slopes[:, :, k])


def _placed_links(robot: Robot) -> list[int]:
    """Return the links whose placement affects torques; the first link depends on the base placement only."""
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
    Kind(_levels, _level_columns, True),
    Kind(_frictions, _friction_columns, True),
    Kind(_offsets, _offset_columns, True),
    Kind(_placements, _placement_columns, False),
)
