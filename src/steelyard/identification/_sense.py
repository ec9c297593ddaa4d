"""Masses, weight and friction of a model against common sense and against the robot's description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from steelyard.identification._verdict import Against
    from steelyard.identification.identification import Identification

# Mass of all links over the cube of the reach, kg/m³; wide limits, for mistakes of a unit.
LIGHTEST, HEAVIEST = 0.3, 1000.0
# A link's mass over the described one. Drawings err by a half, loads that nobody described double the last link;
# counted are links that make up this part of the described mass.
OTHERWISE, COUNTS = 4.0, 0.05
# Weight over the torque that a joint's description allows: one that cannot hold half of its own arm is no robot's.
HOLDS = 2.0
_POSTURES = 200


def against_sense(found: Identification) -> Iterator[Against]:
    """What no robot would be built like, and what the description says otherwise, of what was `found`."""
    yield from _friction(found)
    if not found.settings.physical:
        return  # masses of a free fit are shares of others
    robot, links = found.robot, found.robot.inertial_count
    masses = found.model.theta[:links:10]
    mass, reach = float(np.sum(masses)), reach_of(robot)
    density = mass / reach**3 if reach > 0.05 else 10.0
    if not LIGHTEST < density < HEAVIEST:
        word = "heavy" if density > 1.0 else "light"
        yield (
            "poor",
            f"The links weigh {mass:.3g} kg together, too {word} for a robot that reaches {reach:.2g} m: check the "
            "units of time and torque.",
        )
    if found.settings.prior == "nominal" and robot.has_inertia:
        yield from _masses(robot, masses)
    yield from _weight(found)


def _masses(robot: Robot, masses: Array) -> Iterator[Against]:
    described = robot.inertial_parameters[::10]
    counted = (described > COUNTS * described.sum()) & ~_is_ball(robot)
    if 2 * np.max(np.unique(described[counted], return_counts=True)[1], initial=0) > np.sum(counted) > 2:
        return  # most weigh the same: nobody has weighed them
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(counted, masses / described, 1.0)
    odd = np.flatnonzero((ratio > OTHERWISE) | (ratio < 1.0 / OTHERWISE))
    if len(odd):
        named = ", ".join(f"'{robot.link_names[k]}' {masses[k]:.3g} kg and not {described[k]:.3g}" for k in odd[:3])
        yield (
            "usable",
            f"Links weigh several times more or less than described ({named}): check the torques' scale and the clock, "
            "or the description.",
        )


def _is_ball(robot: Robot) -> NDArray[np.bool_]:
    """Mark links that are described as balls about their joints, as no link is built: placeholders."""
    bodies = dict(zip(INERTIAL_NAMES, robot.inertial_parameters.reshape(-1, 10).T, strict=True))
    centred = [bodies[name] == 0.0 for name in ("mx", "my", "mz", "Ixy", "Ixz", "Iyz")]
    return np.asarray(np.all([*centred, bodies["Ixx"] == bodies["Iyy"], bodies["Ixx"] == bodies["Izz"]], axis=0))


def _weight(found: Identification) -> Iterator[Against]:
    """Joints whose drives could not hold the arm that was found, in postures within the limits."""
    robot = found.robot
    allowed = np.array([j.effort if 0.0 < j.effort < np.inf else np.inf for j in robot.joints])
    ends = np.array([(max(j.lower, -np.pi), min(j.upper, np.pi)) for j in robot.joints])
    q = np.random.default_rng(0).uniform(ends[:, 0], ends[:, 1], (_POSTURES, robot.dof))
    still = np.zeros_like(q)
    weight = np.abs(found.model.rigid_torque(q, still, still)).max(axis=0)
    for joint, asked, limit in zip(robot.joints, weight, allowed, strict=True):
        if asked > HOLDS * limit:
            unit = joint.effort_unit
            yield (
                "usable",
                f"The weight of the arm that was found asks {asked:.3g} {unit} of '{joint.name}', whose limit is "
                f"{limit:.3g}: check the torques' scale, or the description's limit.",
            )


def _friction(found: Identification) -> Iterator[Against]:
    """Joints whose drives could not overcome their own dry friction."""
    robot, links = found.robot, found.robot.inertial_count
    rubs = found.model.terms.per_parameter(lambda term, c: c.index if c.side == "joint" and term.dissipative else -1)
    values = zip(found.model.dynamics.parameters[links:], found.model.theta[links:], rubs, strict=True)
    dry = np.zeros(robot.dof)
    for parameter, value, k in values:
        if k >= 0 and parameter.unit == robot.joints[k].effort_unit:
            dry[k] += value
    for joint, rubbing in zip(robot.joints, dry, strict=True):
        if 0.0 < joint.effort < rubbing:
            yield (
                "usable",
                f"The dry friction of '{joint.name}', {rubbing:.3g} {joint.effort_unit}, is more than its drive's "
                f"limit of {joint.effort:.3g}: check the torque's scale, or the description's limit.",
            )


def reach_of(robot: Robot) -> float:
    """The longest way from the base to a link's joint, along the links, m.

    The way of a slide is not in it: how far a carriage travels says nothing about how heavy it is, and in many
    descriptions it is only a large number.
    """
    ways = [0.0] * len(robot.links)
    for k, link in enumerate(robot.links):
        before = ways[link.parent] if link.parent >= 0 else 0.0
        ways[k] = before + float(np.linalg.norm(link.translation))
    return max(ways, default=0.0)
