"""Checks whether the masses, weight and friction of a model are plausible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from steelyard.identification._verdict import Objection
    from steelyard.identification.identification import Identification

# Mass of all links over the cube of the reach [kg/m³]. Wide limits: they detect wrong units.
LIGHTEST, HEAVIEST = 0.3, 1000.0
# Allowed ratio of a link's mass to the described mass. CAD masses can be wrong by half, and a payload that the
# description lacks can double the last link. Links below this share of the described mass are not checked.
MASS_RATIO, CHECKED_SHARE = 4.0, 0.05
# Allowed ratio of the weight torque to the joint's described effort limit. No robot is built that cannot hold half of
# its own arm.
WEIGHT_RATIO = 2.0
_POSTURES = 200


def plausibility_objections(result: Identification) -> Iterator[Objection]:
    """List properties of a model that are implausible or contradict the robot's description.

    Args:
        result: Identification to check.
    """
    yield from _friction(result)
    if not result.settings.physical:
        return  # Link masses of a free fit are not unique.
    robot, links = result.robot, result.robot.inertial_count
    masses = result.model.theta[:links:10]
    mass, reach = float(np.sum(masses)), reach_of(robot)
    density = mass / reach**3 if reach > 0.05 else 10.0
    if not LIGHTEST < density < HEAVIEST:
        word = "heavy" if density > 1.0 else "light"
        yield (
            "poor",
            f"The total link mass of {mass:.3g} kg is too {word} for a robot with a reach of {reach:.2g} m. Check the "
            "units of time and torque.",
        )
    if result.settings.prior == "nominal" and robot.has_inertia:
        yield from _masses(robot, masses, () if result.description is None else result.description.links)
    yield from _weight(result)


def _masses(robot: Robot, masses: Array, resting: Sequence[str]) -> Iterator[Objection]:
    """Name links whose mass contradicts the description; those `resting` on it contradict nothing."""
    described = robot.inertial_parameters[::10]
    counted = (described > CHECKED_SHARE * described.sum()) & ~_is_ball(robot)
    if 2 * np.max(np.unique(described[counted], return_counts=True)[1], initial=0) > np.sum(counted) > 2:
        return  # Most links have the same mass: placeholders.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(counted, masses / described, 1.0)
    measured = np.array([name not in resting for name in robot.link_names])
    odd = np.flatnonzero(measured & ((ratio > MASS_RATIO) | (ratio < 1.0 / MASS_RATIO)))
    if len(odd):
        named = ", ".join(
            f"'{robot.link_names[k]}' {masses[k]:.3g} kg instead of {described[k]:.3g} kg" for k in odd[:3]
        )
        yield (
            "usable",
            f"Link masses differ from the description by more than a factor of {MASS_RATIO:g} ({named}). Check the "
            "torque scale, the clock and the description.",
        )


def _is_ball(robot: Robot) -> NDArray[np.bool_]:
    """Mark links that are described as spheres centred at their joints: placeholders."""
    bodies = dict(zip(INERTIAL_NAMES, robot.inertial_parameters.reshape(-1, 10).T, strict=True))
    centred = [bodies[name] == 0.0 for name in ("mx", "my", "mz", "Ixy", "Ixz", "Iyz")]
    return np.asarray(np.all([*centred, bodies["Ixx"] == bodies["Iyy"], bodies["Ixx"] == bodies["Izz"]], axis=0))


def _weight(result: Identification) -> Iterator[Objection]:
    """Name joints whose drives could not hold the identified arm in postures within the limits."""
    robot = result.robot
    allowed = np.array([j.effort if 0.0 < j.effort < np.inf else np.inf for j in robot.joints])
    ends = np.array([(max(j.lower, -np.pi), min(j.upper, np.pi)) for j in robot.joints])
    q = np.random.default_rng(0).uniform(ends[:, 0], ends[:, 1], (_POSTURES, robot.dof))
    still = np.zeros_like(q)
    weight = np.abs(result.model.rigid_torque(q, still, still)).max(axis=0)
    for joint, torque, limit in zip(robot.joints, weight, allowed, strict=True):
        if torque > WEIGHT_RATIO * limit:
            unit = joint.effort_unit
            yield (
                "usable",
                f"To hold the weight of the identified arm, joint '{joint.name}' needs {torque:.3g} {unit}. Its limit "
                f"is {limit:.3g} {unit}. Check the torque scale and the limit in the description.",
            )


def _friction(result: Identification) -> Iterator[Objection]:
    """Name joints whose drives could not overcome their own dry friction."""
    robot, links = result.robot, result.robot.inertial_count
    owners = result.model.terms.per_parameter(lambda term, c: c.index if c.side == "joint" and term.dissipative else -1)
    values = zip(result.model.dynamics.parameters[links:], result.model.theta[links:], owners, strict=True)
    dry = np.zeros(robot.dof)
    for parameter, value, k in values:
        if k >= 0 and parameter.unit == robot.joints[k].effort_unit:
            dry[k] += value
    for joint, friction in zip(robot.joints, dry, strict=True):
        if 0.0 < joint.effort < friction:
            yield (
                "usable",
                f"The dry friction of '{joint.name}', {friction:.3g} {joint.effort_unit}, exceeds its drive's limit of "
                f"{joint.effort:.3g} {joint.effort_unit}. Check the torque scale and the limit in the description.",
            )


def reach_of(robot: Robot) -> float:
    """Return the longest distance along the links from the base to a joint [m].

    The travel of prismatic joints does not count. It is unrelated to mass, and many descriptions state just a large
    number.
    """
    distances = [0.0] * len(robot.links)
    for k, link in enumerate(robot.links):
        before = distances[link.parent] if link.parent >= 0 else 0.0
        distances[k] = before + float(np.linalg.norm(link.translation))
    return max(distances, default=0.0)
