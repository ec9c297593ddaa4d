"""`Coordinate`: what a joint term acts on: a joint, a drive or a motor of a robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, Vector
from steelyard.robot.robot import Robot
from steelyard.robot.transmission import ConstantRatio


class Coordinate:
    """A scalar that a term acts on: u = F(a·q), with its rates and the way its torque reaches the joints.

    It is the joint, drive or motor (`side`) called `name`, number `index` of the `robot`'s. Its methods take joint
    positions `q` (rad, m), velocities `dq` and accelerations `ddq`, one scalar (number, array, node) per joint.
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
                    "(on=joint behind its name)."
                )
            self.weights = [float(x) for x in robot.transmission.matrix[index]]
            self.ratio = robot.transmission.ratios[index] if side == "motor" else ConstantRatio()  # type: ignore[assignment]
        back = np.eye(robot.dof) if side == "joint" else np.linalg.pinv(robot.transmission.matrix.T)  # type: ignore[union-attr]
        self._torque_weights = [float(x) for x in back[index]]
        moved = [k for k, w in enumerate(self.weights) if w != 0.0]
        self.revolute = all(robot.joints[k].kind == "revolute" for k in moved)

    def position(self, q: Vector) -> Scalar:
        return self.ratio.value(self._drive(q))

    def velocity(self, q: Vector, dq: Vector) -> Scalar:
        return self.slope(q) * self._drive(dq)

    def acceleration(self, q: Vector, dq: Vector, ddq: Vector) -> Scalar:
        return self.slope(q) * self._drive(ddq) + self._bend(q, dq) * self._drive(dq)

    def slope(self, q: Vector) -> Scalar:
        return self.ratio.slope(self._drive(q))

    def slope_rate(self, q: Vector, dq: Vector) -> Scalar:
        """d/dt of the slope."""
        return self._bend(q, dq)

    def torque(self, q: Vector, tau: Vector) -> Scalar:
        """The torque on the coordinate (N m, N) that stands for the torques `tau` of the joints."""
        own = _sum(self._torque_weights, tau)
        return own / self.slope(q) if self.side == "motor" else own

    def _bend(self, q: Vector, dq: Vector) -> Scalar:
        return self.ratio.curvature(self._drive(q)) * self._drive(dq)

    def _drive(self, x: Vector) -> Scalar:
        return _sum(self.weights, x)


def _sum(weights: Sequence[float], x: Vector) -> Scalar:
    """Σ wₖ·xₖ over what moves the coordinate; mostly a single joint, whose samples are handed on as they are."""
    parts = [x[k] if w == 1.0 else w * x[k] for k, w in enumerate(weights) if w != 0.0]
    return sum(parts[1:], parts[0]) if parts else 0.0
