"""`locate_contact`: estimates the contact link and force from the external joint torques.

A force on a link loads only the joints between the link and the base. So the contact is on the link of the last loaded
joint, or further out if the force passes through the remaining axes. Candidate points lie along these links. At each
point the force is estimated from τ = J(x)ᵀ f with a prior on its size and with a moment, since the contact is on the
surface and not on the axis. The result is the mean over all points, weighted by their evidence; its covariance includes
the spread between the points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.robot.kinematics.poses import link_poses
from steelyard.robot.robot import Robot

# Prior standard deviation of the force [N]; ISO/TS 15066 allows 65 to 210 N for most body regions.
_PRIOR_FORCE = 150.0
# Distance from the line between two joints to the surface of a link [m].
_RADIUS = 0.1
# Relative error of the levers, and of the torque, which still rises.
_RELATIVE_ERROR = 0.1
# Candidate points on a link, from its joint to the next; on the last link to twice the distance of its centre of mass.
_POINTS = 5


@dataclass(frozen=True, eq=False)
class ContactEstimate:
    """Estimated location and force of a contact.

    Args:
        link: Name of the link.
        force: Force on the link in the base frame [N]; zero in directions that load no joint.
        covariance: Covariance of the force [N²].
        point: Most probable point in the base frame [m].
    """

    link: str
    force: Array
    covariance: Array
    point: Array

    @property
    def strength(self) -> float:
        """Magnitude of the force [N]."""
        return float(np.linalg.norm(self.force))

    @property
    def observed_directions(self) -> int:
        """Number of directions of the force that load the joints: 0 to 3."""
        return int(np.sum(np.linalg.eigvalsh(self.covariance) < 0.5 * _PRIOR_FORCE**2))

    @property
    def angle_error_deg(self) -> float:
        """Standard deviation of the direction [degrees]; 90 if unknown."""
        size = self.strength
        if not size > 0.0:
            return 90.0
        direction = self.force / size
        across = np.eye(3) - np.outer(direction, direction)
        spread = float(np.sqrt(max(np.trace(across @ self.covariance @ across) / 2.0, 0.0)))
        return float(np.degrees(np.arctan2(spread, size)))

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        size = self.strength
        direction = self.force / size if size > 0.0 else self.force
        return {
            "link": self.link,
            "force": size,
            "direction": [float(x) for x in direction],
            "angle_error_deg": self.angle_error_deg,
            "directions_seen": self.observed_directions,
        }


def locate_contact(
    robot: Robot, q: Array, torque: Array, sigma: Array, loaded: NDArray[np.bool_]
) -> ContactEstimate | None:
    """Estimate where and how strongly a contact acts; None if no joint is loaded.

    Args:
        robot: The robot.
        q: Positions [rad, m].
        torque: External torques [N m, N].
        sigma: Standard deviations of the torques [N m, N]; infinite for unused joints.
        loaded: Joints whose torque is more than noise.
    """
    if not loaded.any():
        return None
    reach = [{robot.links[k].coordinate for k in robot.ancestors(i)} for i in range(len(robot.links))]
    loaded_joints = set(np.flatnonzero(loaded).tolist())
    # Not zero if two fingers of a hand are touched at once.
    unreached = min(len(loaded_joints - joints) for joints in reach)
    rotations, origins = link_poses(robot, q)
    rough = np.sqrt(
        sigma**2
        + (_RELATIVE_ERROR * np.abs(torque)) ** 2
        + (_RELATIVE_ERROR * np.max(np.abs(torque / sigma)) * sigma) ** 2
    )
    counted = np.flatnonzero(np.isfinite(rough))
    y = torque[counted] / rough[counted]
    candidates = []
    for link in (i for i, joints in enumerate(reach) if len(loaded_joints - joints) == unreached):
        points = _points(robot, link, rotations, origins)
        for x in points:
            J = _PRIOR_FORCE * _columns(robot, link, x, rotations, origins)[counted] / rough[counted, None]
            information = J.T @ J + np.eye(6)
            covariance = np.linalg.inv(information)
            wrench = covariance @ (J.T @ y)
            fit = y @ (y - J @ wrench) + np.linalg.slogdet(information)[1]
            evidence = -0.5 * float(fit) - np.log(len(points))
            candidates.append((link, evidence, _PRIOR_FORCE * wrench[:3], _PRIOR_FORCE**2 * covariance[:3, :3], x))
    shares = np.array([t[1] for t in candidates])
    shares = np.exp(shares - shares.max())
    shares /= shares.sum()
    links = np.bincount([t[0] for t in candidates], weights=shares)
    force = sum((s * t[2] for s, t in zip(shares, candidates, strict=True)), np.zeros(3))
    spread = [s * (t[3] + np.outer(t[2] - force, t[2] - force)) for s, t in zip(shares, candidates, strict=True)]
    best = candidates[int(np.argmax(shares))]
    return ContactEstimate(robot.link_names[int(np.argmax(links))], force, np.sum(spread, axis=0), best[4])


def _points(robot: Robot, link: int, rotations: Array, origins: Array) -> list[Array]:
    """Candidate points on a link, from its joint to its children's joints or towards its centre of mass."""
    ends = [origins[k] for k, other in enumerate(robot.links) if other.parent == link]
    body = robot.links[link].inertia
    if not ends and body is not None and body[0] > 0.0:
        own = robot.links[link]
        centre = own.frame_rotation @ (body[1:4] / body[0]) + own.frame_translation
        ends = [origins[link] + 2.0 * rotations[link] @ centre]
    shares = np.linspace(0.0, 1.0, _POINTS)
    return [origins[link] + share * (end - origins[link]) for end in ends for share in shares] or [origins[link]]


def _columns(robot: Robot, link: int, x: Array, rotations: Array, origins: Array) -> Array:
    """Joint torques per unit force at the point x of a link, and per moment of `_RADIUS`, shape (joints, 6)."""
    out = np.zeros((robot.dof, 6))
    for k in robot.ancestors(link):
        joint = robot.links[k]
        axis = rotations[k] @ joint.axis
        turns = joint.kind != "prismatic"
        out[joint.coordinate, :3] += joint.ratio * (np.cross(axis, x - origins[k]) if turns else axis)
        out[joint.coordinate, 3:] += joint.ratio * _RADIUS * turns * axis
    return out
