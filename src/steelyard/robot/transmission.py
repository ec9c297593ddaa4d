"""Transmissions between motors and joints: coupled gears, parallelograms, tendons and ball screws."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.scalars import Scalar, cos, sin, sqrt


class Ratio(Protocol):
    """The angle F(`u`) of a motor as a function of its drive coordinate [rad, m], with `slope` dF/du and `curvature`
    d²F/du².

    All three take scalars of `steelyard.ground.scalars`, so that they can be traced and differentiated.
    """

    def value(self, u: Scalar) -> Scalar: ...
    def slope(self, u: Scalar) -> Scalar: ...
    def curvature(self, u: Scalar) -> Scalar: ...


@dataclass(frozen=True)
class ConstantRatio:
    """A gear: F = ratio · `u`."""

    ratio: float = 1.0

    def value(self, u: Scalar) -> Scalar:
        return self.ratio * u

    def slope(self, u: Scalar) -> Scalar:
        return self.ratio

    def curvature(self, u: Scalar) -> Scalar:
        return 0.0


@dataclass(frozen=True)
class BallScrew:
    """A motor with a ball screw that closes a triangle of two cranks a and b; the ratio depends on the posture `u`
    [rad].

    The screw's length is s(u) = √(x2² − x1² sin(phase − u)) and the motor turns by F = 2π s / pitch.
    Kozłowski & Dutkiewicz 1996, section 5.1 (IRp-6, joints 2 and 3).

    Attributes:
        pitch: Pitch of the screw [m].
        x1_squared: x1² = 2ab [m²].
        x2_squared: x2² = a² + b² [m²].
        phase: Angle of the triangle at u = 0 [rad].
    """

    pitch: float
    x1_squared: float
    x2_squared: float
    phase: float

    def _length(self, u: Scalar) -> Scalar:
        return sqrt(self.x2_squared - self.x1_squared * sin(self.phase - u))

    def value(self, u: Scalar) -> Scalar:
        return 2.0 * np.pi / self.pitch * self._length(u)

    def slope(self, u: Scalar) -> Scalar:
        return np.pi / self.pitch * self.x1_squared * cos(self.phase - u) / self._length(u)

    def curvature(self, u: Scalar) -> Scalar:
        s = self._length(u)
        k = np.pi / self.pitch * self.x1_squared
        moment = self.x1_squared * cos(self.phase - u)
        return k * sin(self.phase - u) / s - k * cos(self.phase - u) * moment / (2.0 * s * s * s)


@dataclass(frozen=True, eq=False)
class Transmission:
    """The coupling between motors and joints.

    Drive coordinates are u = `matrix` · q, on the output side of the gears, so du = `matrix` · dq and joint torques are
    τ = `matrix`ᵀ · (drive torques). More motors than joints (tendons) are allowed; fewer leave joints passive.

    Attributes:
        matrix: One row per motor, one column per joint.
        motors: Names of the motors; numbered by default.
        ratios: Gear of each motor: motor k turns by F_k(u_k).
    """

    matrix: Array
    motors: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()

    def __post_init__(self) -> None:
        matrix = frozen(self.matrix)
        if matrix.ndim != 2 or not np.all(np.isfinite(matrix)):
            raise RobotError(
                "A transmission needs a matrix of finite numbers, one row per motor, one column per joint."
            )
        object.__setattr__(self, "matrix", matrix)
        count = matrix.shape[0]
        if not self.motors:
            object.__setattr__(self, "motors", tuple(f"motor{k + 1}" for k in range(count)))
        if not self.ratios:
            object.__setattr__(self, "ratios", (ConstantRatio(),) * count)
        if len(self.motors) != count or len(self.ratios) != count:
            raise RobotError(
                f"A transmission with {count} rows needs {count} motor names and ratios, "
                f"not {len(self.motors)} and {len(self.ratios)}."
            )

    @classmethod
    def from_motor_to_joint(cls, matrix: ArrayLike, motors: Sequence[str] = ()) -> Transmission:
        """Build a transmission from the inverse coupling, q = C u.

        Args:
            matrix: Invertible matrix C from drive to joint coordinates.
            motors: Names of the motors; numbered by default.
        """
        c = np.asarray(matrix, dtype=float)
        if c.ndim != 2 or c.shape[0] != c.shape[1] or abs(np.linalg.det(c)) < 1e-12:
            raise RobotError(
                "The motor-to-joint matrix must be square and invertible; state its inverse by rows instead."
            )
        return cls(np.linalg.inv(c), tuple(motors))

    @property
    def joints(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.matrix.tobytes())
        digest.update(repr(self.ratios).encode())
        return digest.hexdigest()

    def drive(self, q: ArrayLike) -> Array:
        """Convert joint to drive coordinates (or velocities, or accelerations); the last axis of `q` runs over
        joints.
        """
        return np.asarray(q, dtype=float) @ self.matrix.T

    def joint(self, u: ArrayLike) -> Array:
        """Convert drive coordinates `u` to joint coordinates; least squares if there are more motors than joints."""
        joints: Array = np.asarray(u, dtype=float) @ np.linalg.pinv(self.matrix).T
        return joints

    def joint_torque(self, drive_torque: ArrayLike) -> Array:
        """Convert `drive_torque` [N m, N], after the gears, to joint torques: τ = matrixᵀ τ_drive."""
        torque: Array = np.asarray(drive_torque, dtype=float) @ self.matrix
        return torque

    def slopes(self, q: ArrayLike) -> Array:
        """Compute dF_k/du_k of every motor at joint positions `q` [rad, m]."""
        u = self.drive(q)
        return np.stack(
            [np.broadcast_to(np.asarray(r.slope(u[..., k]), float), u.shape[:-1]) for k, r in enumerate(self.ratios)],
            -1,
        )
