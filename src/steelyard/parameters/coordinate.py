"""`Coordinate`: a joint, a drive or a motor of a robot, on which a joint term acts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, Vector
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import ConstantRatio


class Coordinate:
    """A scalar u = F(a·q) that a term acts on, with its rates and the mapping of its torque to the joints.

    Methods take one scalar (number, array, node) per joint.

    Args:
        robot: Robot with the coordinate.
        side: "joint", "drive" or "motor".
        name: Name of the joint or motor.
        index: Index of the joint or motor.
        q: Joint positions [rad, m].
        dq: Joint velocities [rad/s, m/s].
        ddq: Joint accelerations [rad/s², m/s²].
        tau: Joint torques [N m, N].
    """

    def __init__(self, robot: Robot, side: str, name: str, index: int) -> None:
        self.side, self.name, self.index = side, name, index
        if side == "joint":
            self.weights = [1.0 if k == index else 0.0 for k in range(robot.dof)]
            self.ratio = ConstantRatio()
        else:
            if robot.transmission is None:
                raise SteelyardError(
                    f"A term acts on '{side}', but robot '{robot.name}' has no transmission; let it act on joints "
                    "(add on=joint to its name)."
                )
            self.weights = [float(x) for x in robot.transmission.matrix[index]]
            self.ratio = robot.transmission.ratios[index] if side == "motor" else ConstantRatio()  # type: ignore[assignment]
        back = np.eye(robot.dof) if side == "joint" else np.linalg.pinv(robot.transmission.matrix.T)  # type: ignore[union-attr]
        self._torque_weights = [float(x) for x in back[index]]
        moved = [k for k, w in enumerate(self.weights) if w != 0.0]
        self.revolute = all(robot.joints[k].kind == "revolute" for k in moved)

    def position(self, q: Vector) -> Scalar:
        """Compute u at joint positions `q` [rad, m]."""
        return self.ratio.value(self._drive(q))

    def velocity(self, q: Vector, dq: Vector) -> Scalar:
        """Compute du/dt."""
        return self.slope(q) * self._drive(dq)

    def acceleration(self, q: Vector, dq: Vector, ddq: Vector) -> Scalar:
        """Compute d²u/dt²."""
        return self.slope(q) * self._drive(ddq) + self._curvature(q, dq) * self._drive(dq)

    def slope(self, q: Vector) -> Scalar:
        """Compute dF at joint positions `q` [rad, m]."""
        return self.ratio.slope(self._drive(q))

    def slope_rate(self, q: Vector, dq: Vector) -> Scalar:
        """Compute the time derivative of the slope."""
        return self._curvature(q, dq)

    def torque(self, q: Vector, tau: Vector) -> Scalar:
        """Compute the torque on the coordinate [N m, N] that is equivalent to joint torques."""
        own = _sum(self._torque_weights, tau)
        return own / self.slope(q) if self.side == "motor" else own

    def _curvature(self, q: Vector, dq: Vector) -> Scalar:
        return self.ratio.curvature(self._drive(q)) * self._drive(dq)

    def _drive(self, x: Vector) -> Scalar:
        return _sum(self.weights, x)


def _sum(weights: Sequence[float], x: Vector) -> Scalar:
    """Compute Σ wₖ·xₖ; a single joint with weight 1 is returned unchanged."""
    parts = [x[k] if w == 1.0 else w * x[k] for k, w in enumerate(weights) if w != 0.0]
    return sum(parts[1:], parts[0]) if parts else 0.0
