"""`RecursivePayload`: a payload estimated recursively from sums of rows, alone or along with numbers of every joint.

The estimate is Gaussian: mean x and covariance P, in units of the prior standard deviations. New rows enter by their
sums N = Σ AᵀA/σ² and b = Σ Aᵀy/σ². When old information loses weight and how a new payload is detected depends on
the rows, so `track_payload` (samples) and the live monitor (seconds) decide that.
"""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.estimation.recursion.posterior import posterior
from steelyard.ground.arrays import Array

# Largest expected payload of a robot without a rated value: a share of the robot's mass, as for lightweight robots, and
# at least this mass [kg].
_SHARE_OF_ROBOT, _MIN_KG = 0.2, 0.1
# Expected distance of the payload from the flange [m]: length of a gripper and size of a part.
EXPECTED_SIZE_M = 0.3


def expected_payload(heaviest: float, size: float) -> Array:
    """Return the prior standard deviations of the ten parameters of a payload.

    Args:
        heaviest: Expected upper limit of the mass [kg].
        size: Expected distance from the origin of the frame [m].
    """
    return np.array([heaviest, *[heaviest * size] * 3, *[heaviest * size**2] * 6])


def heaviest_payload(model: Model) -> float:
    """Return the largest expected payload of the robot of a `model`, without a rated value [kg]."""
    masses = np.maximum(model.theta[: model.robot.inertial_count : 10], 0.0)
    return max(_SHARE_OF_ROBOT * float(masses.sum()), _MIN_KG)


class RecursivePayload:
    """Recursive estimate of the ten parameters of a payload and of further numbers of each joint, such as offsets.

    Args:
        unit: Prior standard deviations: ten of the payload [kg, kg m, kg m²], then those of each joint.
        joints: Number of joints with individual numbers.

    Attributes:
        unit: Prior standard deviations.
        x: Mean, in units of `unit`.
        P: Covariance, in the same units.
        indices: Indices of the unknowns in each joint's rows, shape (joints, 10 + own).
    """

    def __init__(self, unit: Array, joints: int = 0) -> None:
        self.unit = unit
        own = np.arange(10, len(unit)).reshape(joints, -1) if joints else np.zeros((0, 0), dtype=np.int64)
        self.indices = np.hstack([np.tile(np.arange(10), (joints, 1)), own])
        self.reset()

    def reset(self) -> None:
        """Return to the prior."""
        self.x: Array = np.zeros(len(self.unit))
        self.P: Array = np.eye(len(self.unit))

    def fade(self, share: float) -> None:
        """Keep a `share` of the information and replace the rest by that of the prior."""
        mixed = share * np.eye(len(self.x)) + (1.0 - share) * self.P
        both = np.linalg.solve(mixed, np.column_stack([share * self.x, self.P]))
        self.x, self.P = np.asarray(both[:, 0], dtype=float), np.asarray(both[:, 1:], dtype=float)

    def add(self, N: Array, b: Array) -> None:
        """Add rows by their sums.

        Args:
            N: Σ AᵀA/σ² of columns in units of `unit`.
            b: Σ Aᵀy/σ².
        """
        self.x, self.P = posterior(self.x, self.P, N, b)

    def sums(self, gram: Array, weight: Array) -> tuple[Array, Array]:
        """Return N and b of all joints; only the payload is common to them.

        Args:
            gram: Gram matrices of each joint's columns and right side, shape (joints, 11 + own, 11 + own).
            weight: 1/σ² of each joint.
        """
        m = len(self.unit)
        N, b = np.zeros((m, m)), np.zeros(m)
        unit, joint = self.unit[self.indices], self.indices[:, 10:]
        squares = gram[:, :-1, :-1] * (weight[:, None, None] * unit[:, :, None] * unit[:, None, :])
        rows = gram[:, :-1, -1] * (weight[:, None] * unit)
        N[:10, :10], b[:10] = squares[:, :10, :10].sum(axis=0), rows[:, :10].sum(axis=0)
        N[:10, 10:], b[10:] = squares[:, :10, 10:].swapaxes(0, 1).reshape(10, m - 10), rows[:, 10:].ravel()
        N[10:, :10] = N[:10, 10:].T
        N[joint[:, :, None], joint[:, None, :]] = squares[:, 10:, 10:]
        return N, b

    def residuals(self, gram: Array) -> Array:
        """Return each joint's sum of squared residuals.

        Args:
            gram: Gram matrices as in `sums`.
        """
        z = (self.unit * self.x)[self.indices]
        squares = gram[:, -1, -1] - 2.0 * np.sum(z * gram[:, :-1, -1], axis=1)
        return np.asarray(np.maximum(squares + np.einsum("ja,jab,jb->j", z, gram[:, :-1, :-1], z), 0.0))

    @property
    def parameters(self) -> Array:
        """The ten parameters of the payload [kg, kg m, kg m²]."""
        return np.asarray(self.unit[:10] * self.x[:10])

    @property
    def covariance(self) -> Array:
        """Covariance of the ten parameters."""
        return np.asarray(np.outer(self.unit[:10], self.unit[:10]) * self.P[:10, :10])
