"""Lock joints of a robot: what they carry becomes part of the links below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.robot._tree import Tree
from steelyard.robot.robot import Loop, NominalTerm, Robot
from steelyard.robot.spatial import Place, rotation_about
from steelyard.robot.transmission import BallScrew, ConstantRatio, Ratio, Transmission


def lock_joints(robot: Robot, names: Sequence[str], locked: Mapping[str, float] | None = None) -> Robot:
    """`robot` with just the joints `names`, in that order; the others are locked at `locked` (rad or m, else 0).

    Links keep the order of the tree. A locked link is folded into the link that carries it, which becomes
    unknown (None) if the locked one is: a sum with a missing part would look like knowledge. Links that are
    left without a moving joint towards the base vanish. Followers of a locked joint lock with it. Motors that
    move only locked joints are dropped, together with their terms. Closed chains all of whose joints are locked are
    part of the tree.
    """
    cut = {name for loop in robot.loops for name in loop.cut}
    kept = _kept(robot, names)
    values = _values(robot, kept, {name: value for name, value in (locked or {}).items() if name not in cut})
    coordinate = {old: new for new, old in enumerate(kept)}

    tree = Tree()
    places: list[Place] = []
    for link in robot.links:
        above = places[link.parent] if link.parent >= 0 else Place()
        foot = above.at(link.rotation, link.translation)
        if link.coordinate in coordinate:
            place = tree.hang(foot, replace(link, coordinate=coordinate[link.coordinate]))
            if link.inertia is None:
                tree.weld(place, None)
        else:
            value = link.ratio * float(values[link.coordinate]) + link.offset
            if link.kind == "revolute":
                place = foot.at(rotation_about(link.axis, value), np.zeros(3))
            else:
                place = foot.at(np.eye(3), value * link.axis)
            tree.weld(place.at(link.frame_rotation, link.frame_translation), link.inertia)
        places.append(place)
        if link.coordinate not in coordinate:
            tree.frames[link.name] = place.at(link.frame_rotation, link.frame_translation)
    for name, frame in robot.frames.items():
        host = places[frame.host] if frame.host >= 0 else Place()
        tree.frames[name] = host.at(frame.rotation, frame.translation)

    transmission, motors = _transmission(robot, kept, values)
    return replace(
        robot,
        joints=tuple(robot.joints[k] for k in kept),
        links=tree.links(),
        torque_used=tuple(robot.torque_used[k] for k in kept),
        transmission=transmission,
        frames=tree.frames,
        nominal_terms=tuple(
            _term(robot, term, kept if term.on == "joint" or motors is None else motors) for term in robot.nominal_terms
        ),
        loops=still_closed(robot.loops, [robot.joint_names[k] for k in kept]),
    )


def still_closed(loops: Sequence[Loop], moving: Sequence[str]) -> tuple[Loop, ...]:
    """The `loops` of which a joint is still `moving`, with the joints that are left to lock."""
    left = [replace(loop, joints=tuple(name for name in loop.joints if name in moving)) for loop in loops]
    return tuple(loop for loop in left if loop.joints)


def without_loops(robot: Robot) -> Robot:
    """`robot`, if it is a tree.

    Raises:
        RobotError: If a closed chain is not locked, with the joints to lock.
    """
    if robot.loops:
        raise RobotError(robot.loops[0].sentence)
    return robot


def _kept(robot: Robot, names: Sequence[str]) -> list[int]:
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise RobotError(
            f"{robot.name}: no joint is left to move; name at least one of {', '.join(robot.joint_names)}."
        )
    kept = [robot.joint_index(name) for name in names]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise RobotError(f"{robot.name}: joint '{name}' is named twice; name each joint to keep once.")
    return kept


def _values(robot: Robot, kept: Sequence[int], locked: Mapping[str, float]) -> Array:
    """Positions of all joints, 0 where nothing is said."""
    values = np.zeros(robot.dof)
    for name, value in locked.items():
        index = robot.joint_index(name)
        if index in kept:
            raise RobotError(
                f"{robot.name}: joint '{name}' is both kept and locked; take it out of one of the two lists."
            )
        if not np.isfinite(value):
            raise RobotError(f"{robot.name}: joint '{name}' is locked at {value}; give a finite position.")
        values[index] = value
    return values


def _transmission(robot: Robot, kept: Sequence[int], values: Array) -> tuple[Transmission | None, list[int] | None]:
    """What is left of the coupling, and the motors that are left (None: there is no coupling, motors are joints)."""
    coupling = robot.transmission
    if coupling is None:
        return None, None
    matrix = coupling.matrix[:, list(kept)]
    motors = [int(k) for k in np.flatnonzero(np.any(matrix != 0.0, axis=1))]
    if not motors:
        raise RobotError(f"{robot.name}: no motor moves any of the joints that are left; keep a driven joint too.")
    shifts = coupling.matrix @ values
    ratios = tuple(_shifted(robot, coupling, k, float(shifts[k])) for k in motors)
    return Transmission(matrix[motors], tuple(coupling.motors[k] for k in motors), ratios), motors


def _shifted(robot: Robot, coupling: Transmission, motor: int, shift: float) -> Ratio:
    """The motor's ratio where the locked joints add a constant `shift` to its drive coordinate."""
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
