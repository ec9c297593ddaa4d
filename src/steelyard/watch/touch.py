"""`locate`: which link was touched, and roughly from where, by the torques that the joints feel.

A force on a link is felt by the joints between it and the base, and by none behind it. So it is the link that the last
joint which feels anything moves, or one further out, where the force happens to pass through all axes behind. Points
along all of these links are tried: at each the force is estimated, τ = J(x)ᵀ f with a prior on its strength and with a
moment, since links are thick and nobody touches them at their axis; and each counts as much as it explains (its
evidence). The force is the mean of them, and its covariance has their spread, since
where on a link it was touched is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

# N: the strength that is expected: what people may be pressed with (ISO/TS 15066 names 65 to 210 N for most of a body).
_EXPECTED = 150.0
# m: from the line between two joints to the surface of a link.
_THICK = 0.1
# Levers and the torque itself, which still rises, are known to such a part.
_ROUGHLY = 0.1
# Points that are tried along a link, from its joint to the next; of the last link to twice as far as its mass.
_POINTS = 5


@dataclass(frozen=True, eq=False)
class Touch:
    """Where something pushes.

    Args:
        link: the name of the touched link.
        force: on it, in the base frame, N; zero in directions that no joint feels.
        covariance: of the force, N².
        point: where it was taken to act, in the base frame, m.
    """

    link: str
    force: Array
    covariance: Array
    point: Array

    @property
    def strength(self) -> float:
        """The size of the force, N."""
        return float(np.linalg.norm(self.force))

    @property
    def seen(self) -> int:
        """Directions of the force that the joints feel: 3 is all of it."""
        return int(np.sum(np.linalg.eigvalsh(self.covariance) < 0.5 * _EXPECTED**2))

    @property
    def angle_error_deg(self) -> float:
        """How far the direction may be off (one standard deviation), degrees; 90 where it is not known."""
        size = self.strength
        if not size > 0.0:
            return 90.0
        way = self.force / size
        across = np.eye(3) - np.outer(way, way)
        spread = float(np.sqrt(max(np.trace(across @ self.covariance @ across) / 2.0, 0.0)))
        return float(np.degrees(np.arctan2(spread, size)))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        size = self.strength
        way = self.force / size if size > 0.0 else self.force
        return {
            "link": self.link,
            "force": size,
            "direction": [float(x) for x in way],
            "angle_error_deg": self.angle_error_deg,
            "directions_seen": self.seen,
        }


def locate(robot: Robot, q: Array, torque: Array, sigma: Array, felt: NDArray[np.bool_]) -> Touch | None:
    """Where and how something pushes a robot; None where no joint feels it.

    Args:
        robot: the tree of links.
        q: its posture, rad or m.
        torque: external torques on the joints, N m (N).
        sigma: their standard deviations; infinite where a joint does not count.
        felt: the joints at which the torque is more than noise.
    """
    if not felt.any():
        return None
    reach = [{robot.links[k].coordinate for k in robot.ancestors(i)} for i in range(len(robot.links))]
    wanted = set(np.flatnonzero(felt).tolist())
    least = min(len(wanted - joints) for joints in reach)  # not zero where two fingers of a hand are touched at once
    rotations, origins = link_poses(robot, q)
    rough = np.sqrt(
        sigma**2 + (_ROUGHLY * np.abs(torque)) ** 2 + (_ROUGHLY * np.max(np.abs(torque / sigma)) * sigma) ** 2
    )
    counted = np.flatnonzero(np.isfinite(rough))
    y = torque[counted] / rough[counted]
    tried = []
    for link in (i for i, joints in enumerate(reach) if len(wanted - joints) == least):
        places = _points(robot, link, rotations, origins)
        for x in places:
            J = _EXPECTED * _columns(robot, link, x, rotations, origins)[counted] / rough[counted, None]
            information = J.T @ J + np.eye(6)
            covariance = np.linalg.inv(information)
            wrench = covariance @ (J.T @ y)
            fit = y @ (y - J @ wrench) + np.linalg.slogdet(information)[1]
            evidence = -0.5 * float(fit) - np.log(len(places))
            tried.append((link, evidence, _EXPECTED * wrench[:3], _EXPECTED**2 * covariance[:3, :3], x))
    shares = np.array([t[1] for t in tried])
    shares = np.exp(shares - shares.max())
    shares /= shares.sum()
    links = np.bincount([t[0] for t in tried], weights=shares)
    force = sum((s * t[2] for s, t in zip(shares, tried, strict=True)), np.zeros(3))
    spread = [s * (t[3] + np.outer(t[2] - force, t[2] - force)) for s, t in zip(shares, tried, strict=True)]
    best = tried[int(np.argmax(shares))]
    return Touch(robot.link_names[int(np.argmax(links))], force, np.sum(spread, axis=0), best[4])


def _points(robot: Robot, link: int, rotations: Array, origins: Array) -> list[Array]:
    """Points along a link: from its joint to those of its children, or to where its mass is."""
    ends = [origins[k] for k, other in enumerate(robot.links) if other.parent == link]
    body = robot.links[link].inertia
    if not ends and body is not None and body[0] > 0.0:
        own = robot.links[link]
        centre = own.frame_rotation @ (body[1:4] / body[0]) + own.frame_translation
        ends = [origins[link] + 2.0 * rotations[link] @ centre]
    shares = np.linspace(0.0, 1.0, _POINTS)
    return [origins[link] + share * (end - origins[link]) for end in ends for share in shares] or [origins[link]]


def _columns(robot: Robot, link: int, x: Array, rotations: Array, origins: Array) -> Array:
    """Torque on every joint per unit of force at the point x of a link, and of `_THICK` times a moment, (joints, 6)."""
    out = np.zeros((robot.dof, 6))
    for k in robot.ancestors(link):
        joint = robot.links[k]
        axis = rotations[k] @ joint.axis
        turns = joint.kind != "prismatic"
        out[joint.coordinate, :3] += joint.ratio * (np.cross(axis, x - origins[k]) if turns else axis)
        out[joint.coordinate, 3:] += joint.ratio * _THICK * turns * axis
    return out
