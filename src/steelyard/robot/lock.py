"""Lock joints of a robot: bodies behind a locked joint become part of the link below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.robot._tree import Tree
from steelyard.robot.free import moved as shifted
from steelyard.robot.free import turned
from steelyard.robot.loop_constraints import moved_loops, unlocked_loops
from steelyard.robot.robot import FREE_WIDTHS, NominalTerm, Robot
from steelyard.robot.spatial import LinkFrame, rotation_about
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission

_IN_PARTS = "{}: joint '{}' is free: all of its coordinates move together, in their order, or all are locked."


def lock_joints(robot: Robot, names: Sequence[str], locked: Mapping[str, float] | None = None) -> Robot:
    """Return `robot` with only some joints; the others are locked.

    Links keep the order of the tree. A locked link is merged into the link that carries it; if its inertia is unknown,
    so is the sum (None). Links without a moving joint towards the base vanish. Followers of a locked joint lock with
    it. Motors that move only locked joints are dropped with their terms. A closed chain becomes part of the tree once
    all its joints are locked.

    Args:
        robot: Robot.
        names: Joints that move, in this order.
        locked: Positions of locked joints [rad, m]; default 0.
    """
    cut = {name for loop in robot.loops for name in loop.cut}
    moving = _moving_joints(robot, names)
    values = _values(robot, moving, {name: value for name, value in (locked or {}).items() if name not in cut})
    coordinate = {old: new for new, old in enumerate(moving)}

    tree = Tree()
    places: list[LinkFrame] = []
    fixed: dict[str, float] = {}
    for link in robot.links:
        above = places[link.parent] if link.parent >= 0 else LinkFrame()
        foot = above.at(link.rotation, link.translation)
        if link.coordinate in coordinate:
            new = coordinate[link.coordinate]
            if [coordinate.get(c) for c in link.coordinates] != list(range(new, new + len(link.coordinates))):
                raise RobotError(_IN_PARTS.format(robot.name, link.joint))
            place = tree.hang(foot, replace(link, coordinate=new))
            if link.inertia is None:
                tree.weld(place, None)
        elif link.kind in FREE_WIDTHS:
            if any(c in coordinate for c in link.coordinates):
                raise RobotError(_IN_PARTS.format(robot.name, link.joint))
            own = [float(values[c]) for c in link.coordinates]
            place = foot.at(np.array(turned(link, own), dtype=float), np.array(shifted(link, own), dtype=float))
            tree.weld(place.at(link.frame_rotation, link.frame_translation), link.inertia)
        else:
            value = fixed[link.joint] = link.ratio * float(values[link.coordinate]) + link.offset
            if link.kind == "revolute":
                place = foot.at(rotation_about(link.axis, value), np.zeros(3))
            else:
                place = foot.at(np.eye(3), value * link.axis)
            tree.weld(place.at(link.frame_rotation, link.frame_translation), link.inertia)
        places.append(place)
        if link.coordinate not in coordinate:
            tree.frames[link.name] = place.at(link.frame_rotation, link.frame_translation)
    for name, frame in robot.frames.items():
        host = places[frame.host] if frame.host >= 0 else LinkFrame()
        tree.frames[name] = host.at(frame.rotation, frame.translation)

    transmission, motors = _transmission(robot, moving, values)
    own_names = [robot.joint_names[k] for k in moving]
    return replace(
        robot,
        joints=tuple(robot.joints[k] for k in moving),
        links=tree.links(),
        torque_used=tuple(robot.torque_used[k] for k in moving),
        transmission=transmission,
        frames=tree.frames,
        nominal_terms=tuple(
            _term(robot, term, moving if term.on == "joint" or motors is None else motors)
            for term in robot.nominal_terms
        ),
        loops=unlocked_loops(moved_loops(robot.loops, places, fixed), own_names),
        start={name: x for name, x in robot.start.items() if name in own_names},
        actuated=tuple(name for name in own_names if name in robot.actuated),
    )


def refuse_loops(robot: Robot) -> Robot:
    """Return `robot` if it is a tree.

    Raises:
        RobotError: If a closed chain is not locked; names the joints to lock.
    """
    if robot.loops:
        raise RobotError(robot.loops[0].sentence)
    return robot


def refuse_unknown_loops(robot: Robot) -> Robot:
    """Return `robot` if the equations of all its closed loops are known.

    Raises:
        RobotError: If a loop has no equations, such as mimic joints that follow each other.
    """
    unknown = [loop for loop in robot.loops if loop.constraint is None]
    if unknown:
        raise RobotError(unknown[0].sentence)
    return robot


def _moving_joints(robot: Robot, names: Sequence[str]) -> list[int]:
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise RobotError(
            f"{robot.name}: no joint is left to move; name at least one of {', '.join(robot.joint_names)}."
        )
    moving = [robot.joint_index(name) for name in names]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RobotError(f"{robot.name}: joint '{name}' is named twice; name each joint to keep once.")
    return moving


def _values(robot: Robot, moving: Sequence[int], locked: Mapping[str, float]) -> Array:
    """Return positions of all joints, 0 by default."""
    values = np.zeros(robot.dof)
    for name, value in locked.items():
        index = robot.joint_index(name)
        if index in moving:
            raise RobotError(
                f"{robot.name}: joint '{name}' is both moving and locked; take it out of one of the two lists."
            )
        if not np.isfinite(value):
            raise RobotError(f"{robot.name}: joint '{name}' is locked at {value}; give a finite position.")
        values[index] = value
    return values


def _transmission(robot: Robot, moving: Sequence[int], values: Array) -> tuple[Transmission | None, list[int] | None]:
    """Reduce the coupling to moving joints; also return the remaining motors (None: no coupling, motors are joints)."""
    coupling = robot.transmission
    if coupling is None:
        return None, None
    matrix = coupling.matrix[:, list(moving)]
    motors = [int(k) for k in np.flatnonzero(np.any(matrix != 0.0, axis=1))]
    if not motors:
        raise RobotError(f"{robot.name}: no motor moves any of the remaining joints; keep at least one driven joint.")
    shifts = coupling.matrix @ values
    ratios = tuple(_shifted_ratio(robot, coupling, k, float(shifts[k])) for k in motors)
    return Transmission(matrix[motors], tuple(coupling.motors[k] for k in motors), ratios), motors


def _shifted_ratio(robot: Robot, coupling: Transmission, motor: int, shift: float) -> Ratio:
    """Return the motor's ratio when locked joints add a constant `shift` to its drive coordinate."""
    ratio = coupling.ratios[motor]
    if shift == 0.0 or isinstance(ratio, ConstantRatio):  # a constant in the motor's angle changes no slope
        return ratio
    if isinstance(ratio, BallScrew):
        return replace(ratio, phase=ratio.phase - shift)
    raise RobotError(
        f"{robot.name}: motor '{coupling.motors[motor]}' has a ratio that depends on a locked joint's position; "
        f"lock that joint at 0."
    )


def _term(robot: Robot, term: NominalTerm, chosen: Sequence[int]) -> NominalTerm:
    count = robot.transmission.matrix.shape[0] if robot.transmission and term.on != "joint" else robot.dof
    for row in term.values:
        if len(row) != count:
            raise RobotError(
                f"{robot.name}: the term '{term.kind}' has {len(row)} values; give one per {term.on}: {count}."
            )
    return replace(term, values=tuple(tuple(row[k] for k in chosen) for row in term.values))
