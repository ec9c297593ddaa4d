"""`RecursivePayload`: a payload estimated recursively from sums of rows, alone or along with numbers of every joint.

The estimate is Gaussian: mean x and covariance P, in units of the prior standard deviations. New rows enter by their
sums N = Σ AᵀA/σ² and b = Σ Aᵀy/σ². When old information loses weight and how a new payload is detected depends on
the rows, so `track_payload` (samples) and the live monitor (seconds) decide that.

`track_payload` estimates the payload sample by sample, from the torques of a known arm. A payload on a link adds K θ to
the arm's base parameters β, with K the columns of the link in the base matrix. The rows [A y] of a scheme without
accelerations satisfy y − A β = (A K) θ, with ten unknowns θ for recursive least squares. Old information fades towards
the prior, P⁻¹ ← λP⁻¹ + (1 − λ)P₀⁻¹ + (AK)ᵀ(AK), so the estimate of a robot at rest does not wind up and keeps its
prior. Residuals far above the noise indicate a new payload and reset the estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SteelyardError
from steelyard.estimation.recursion.live_rows import live_rows
from steelyard.estimation.recursion.posterior import posterior
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.payload.payload import Payload, frame_transfer, link_frame
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import Scheme, make_scheme, scheme_names
from steelyard.signals.log import Log

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


# Residuals above this multiple of their expected size (noise and uncertainty of the estimate) reset the estimate.
_CHANGE_THRESHOLD = 4.0


@short_repr
@dataclass(frozen=True, eq=False)
class TrackedPayload:
    """The estimate of a payload at one time.

    Attributes:
        t: Time [s].
        frame: Frame of the parameters.
        parameters: Ten inertial parameters about the origin of the frame [kg, kg m, kg m²].
        covariance: Covariance of the parameters.
    """

    t: float
    frame: str
    parameters: Array
    covariance: Array

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def mass_error(self) -> float:
        """Standard error of the mass [kg]."""
        return float(np.sqrt(max(self.covariance[0, 0], 0.0)))

    @property
    def load(self) -> Payload:
        """The estimate as a `Payload`."""
        return Payload(self.frame, self.parameters, self.covariance)


def track_payload(
    arm: Model,
    stream: Log | Iterable[Any],
    *,
    frame: str = "",
    noise: ArrayLike = 1.0,
    memory: float = 2.0,
    settle: float = 0.5,
    heaviest: float = 20.0,
    size: float = 0.3,
    scheme: str | Scheme = "filtered-dynamic:cutoff_hz=0.795775,torque=trapezoid",
) -> Iterator[TrackedPayload]:
    """Estimate the payload after every sample of a log or a live stream.

    Args:
        arm: Model of the bare arm with friction, taken as exact.
        stream: A log with velocities and torques, or an iterable of samples (t, q, dq, tau).
        frame: Frame of the payload; default: the last link.
        noise: Standard deviation of the torques about the model [N m or N], one number or one per joint. It determines
            the error bars, so it must include the errors of the friction model.
        memory: Time until information fades to 1/e [s].
        settle: Pause of the estimation after a change of payload [s], while the filter of the scheme mixes both.
        heaviest: Expected upper limit of the mass [kg].
        size: Expected distance of the payload from the frame [m].
        scheme: A scheme that needs no accelerations.
    """
    robot = arm.robot
    place = robot.moving_frame(frame)
    if not memory > 0.0:
        raise SteelyardError(f"The memory is {memory:g} s; give a positive time.")
    chosen = make_scheme(scheme)
    if chosen.uses_acceleration:
        others = scheme_names(uses_acceleration=False)
        raise SteelyardError(f"The scheme '{chosen.name}' needs accelerations; use {others}.")
    base = base_parameters(robot, arm.terms)
    rows = live_rows(Dynamics(robot, arm.terms), base, chosen)
    to_frame = frame_transfer(link_frame(robot.links[place.host], place.host), place)
    # Columns of the payload in `frame`: K in the frame of the link, times the transfer.
    K = base.matrix[:, 10 * place.host : 10 * place.host + 10] @ np.linalg.inv(to_frame)
    sigma = _noise(noise, rows.equations)
    estimate = RecursivePayload(expected_payload(heaviest, size))
    beta = base.values(arm.theta)
    parts = rows.sample.reshape(3, robot.dof)
    name, before, settled = frame or robot.link_names[place.host], np.nan, -np.inf
    for t, *signals in _samples(stream, arm):
        for part, value in zip(parts, signals, strict=False):
            part[:] = value
        if rows.add(t):
            A, y = rows.out[:, : base.rank], rows.out[:, base.rank]
            if t >= settled:
                estimate.fade(float(np.exp(-(t - before) / memory)) if np.isfinite(before) else 1.0)
                if not _add_rows(estimate, A @ K / sigma[:, None], (y - A @ beta) / sigma):
                    settled = t + settle
            yield TrackedPayload(t, name, estimate.parameters, estimate.covariance)
        before = t


def _add_rows(estimate: RecursivePayload, A: Array, y: Array) -> bool:
    """Add rows y = A θ with noise of variance 1. If they contradict the estimate, reset it instead and return False."""
    A = A * estimate.unit
    residual = y - A @ estimate.x
    expected = np.eye(len(y)) + A @ estimate.P @ A.T
    if residual @ np.linalg.solve(expected, residual) > _CHANGE_THRESHOLD**2 * len(y):
        estimate.reset()
        return False
    estimate.add(A.T @ A, A.T @ y)
    return True


def _noise(noise: ArrayLike, equations: int) -> Array:
    sigma = np.asarray(noise, dtype=float)
    if sigma.shape not in ((), (equations,)) or not np.all(np.isfinite(sigma) & (sigma > 0.0)):
        raise SteelyardError(f"noise must be a positive number, or {equations} of them (one per joint).")
    return np.broadcast_to(sigma, (equations,)).astype(float)


def _samples(stream: Log | Iterable[Any], arm: Model) -> Iterator[Any]:
    if not isinstance(stream, Log):
        return iter(stream)
    if stream.joints != arm.robot.joint_names:
        raise LogError(f"The log has the joints {', '.join(stream.joints)}; the arm has other joints.")
    if stream.dq is None or stream.tau is None:
        raise LogError("The log has no velocity or no torque; track_payload needs both.")
    return zip(stream.t.tolist(), stream.q, stream.dq, stream.tau, strict=True)
