"""Table of suspects: every number that a fit assumes, with its regressor column.

A column is the derivative of the model's torque with respect to this number along the logged motion, filtered like the
rows of the fit. Its coefficient estimates the number (docs/theory/assumptions.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.assumptions import _torque_suspects as of_torques
from steelyard.assumptions.modelled_motion import JointTorques, ModelledMotion, all_joints
from steelyard.assumptions.suspect import Suspect, change_of
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot


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


# ---------------------------------------------------------------- zeros, gears, clock


def _zeros(robot: Robot) -> Iterator[Suspect]:
    for j in robot.joints:
        yield Suspect(
            "zeros", "zero", j.name, j.unit, f"The zero position of '{j.name}' is that of the robot description.",
            f"Subtract the offset: set offset.position of '{j.name}' in the mapping.",
            "hold the arm in several poses with a large gravity torque on this joint, or compare one pose with the "
            "description",
            change=change_of("zero", "zeros", j.name, j.unit, f"The zero of '{j.name}'", "Check the encoder."),
        )  # fmt: skip


def _zero_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    for unit in np.eye(along.model.robot.dof):
        yield all_joints(-along.slope(unit, 0.0 * unit, 0.0 * unit))


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
        yield all_joints(-along.slope(m.q * unit, m.dq * unit, m.ddq * unit))


def _clocks(robot: Robot) -> Iterator[Suspect]:
    yield Suspect(
        "clock", "clock scale", "", "", "The time scale of the log is correct.",
        "Correct the time scale: sampling rate or unit of time.",
        "log the same motion at two speeds, or measure the duration of the log independently",
        change=change_of("clock scale", "clock", "", "", "The time scale of the log", "Check the clock."),
    )  # fmt: skip


def _clock_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m = along.sparse
    yield all_joints(along.slope(0.0 * m.q, m.dq, 2.0 * m.ddq))


def _shafts(robot: Robot) -> Iterator[Suspect]:
    for i, j in of_torques.neighbours(robot):
        yield of_torques.coupling(robot, "position", i, j)


def _shaft_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    m, units = along.sparse, np.eye(along.model.robot.dof)
    for i, j in of_torques.neighbours(along.model.robot):
        yield all_joints(-along.slope(*(x[:, j, None] * units[i] for x in (m.q, m.dq, m.ddq))))


# ---------------------------------------------------------------- description


def _gravities(robot: Robot) -> Iterator[Suspect]:
    fix = "Set gravity in the base frame (gravity in the mapping)."
    test = "level the base, or hold several static poses"
    yield Suspect(
        "gravity", "size of gravity", "", "", "The magnitude of gravity is correct.", fix, test, "description"
    )
    for name in tilt_axes(np.asarray(robot.gravity)):
        kind = f"tilt of gravity about {name}"
        yield Suspect("gravity", kind, "", "rad", "The base orientation is as described.", fix, test, "description")


def _gravity_columns(along: ModelledMotion) -> Iterator[JointTorques]:
    g = np.asarray(along.model.robot.gravity)
    yield all_joints(along.placements.gravity_slopes(g))
    for axis in tilt_axes(g).values():
        yield all_joints(along.placements.gravity_slopes(np.cross(axis, g)))


def tilt_axes(g: Array) -> dict[str, Array]:
    """Compute the two horizontal axes of gravity tilts, by name: "x" and "y" for gravity along −z.

    Args:
        g: Gravity in the base frame [m/s²].
    """
    size = float(np.linalg.norm(g))
    down = g / size if size > 0.0 else np.array([0.0, 0.0, -1.0])
    x = np.eye(3)[0] if abs(down[0]) < 0.9 else np.eye(3)[1]
    first = x - (x @ down) * down
    first = first / np.linalg.norm(first)
    return {_axis_name(axis): axis for axis in (first, np.cross(-down, first))}


def _axis_name(axis: Array) -> str:
    """Return the letter of a base axis, or the direction."""
    nearest = int(np.argmax(np.abs(axis)))
    if abs(axis[nearest]) > 0.999:
        return ("" if axis[nearest] > 0.0 else "−") + "xyz"[nearest]
    return "({:.2f}, {:.2f}, {:.2f})".format(*axis)


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
            yield all_joints(slopes[:, :, k])


def _placed_links(robot: Robot) -> list[int]:
    """Return the links whose placement affects torques; the first link depends on the base placement only."""
    return [k for k, link in enumerate(robot.links) if link.parent >= 0]


KINDS = (
    Kind(_zeros, _zero_columns, False),
    Kind(of_torques.scales, of_torques.scale_columns, True),
    Kind(_gears, _gear_columns, False),
    Kind(_clocks, _clock_columns, False),
    Kind(of_torques.delays, of_torques.delay_columns, True),
    Kind(of_torques.smoothings, of_torques.smoothing_columns, True),
    Kind(of_torques.nonlinearities, of_torques.nonlinearity_columns, True),
    Kind(_gravities, _gravity_columns, False),
    Kind(of_torques.couplings, of_torques.coupling_columns, True),
    Kind(_shafts, _shaft_columns, False),
    Kind(of_torques.payloads, of_torques.payload_columns, True),
    Kind(of_torques.offsets, of_torques.offset_columns, True),
    Kind(of_torques.frictions, of_torques.friction_columns, True),
    Kind(_placements, _placement_columns, False),
)
