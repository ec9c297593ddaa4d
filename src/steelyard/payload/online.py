"""`weigh_online`: what a robot carries, sample by sample while it works, from the torques of a known arm.

A load on a link adds K θ to the arm's base parameters β, with K the link's columns of the base matrix. The rows of a
scheme that needs no acceleration, [A y] with y = A(β + K θ), leave y − A β = (A K) θ for the load alone: ten unknowns.
Recursive least squares learns them. What is old fades towards what was expected before anything was seen,
P⁻¹ ← λP⁻¹ + (1 − λ)P₀⁻¹ + (AK)ᵀ(AK), so that a robot at rest neither winds up nor forgets its prior; rows that surprise
beyond all noise mean that the load has changed, and learning begins anew.
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
from steelyard.ground.arrays import Array
from steelyard.payload.load import Load, between, own_frame
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import Scheme, make_scheme, scheme_names
from steelyard.signals.log import Log

# Residuals so many times as large as the noise and the estimate's uncertainty explain come from another load.
_SURPRISE = 4.0


@dataclass(frozen=True, eq=False)
class OnlineLoad:
    """The load as it is known at time t (s).

    Its ten `parameters` (kg, kg m, kg m²) stand about the origin of `frame`, with their `covariance`.
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
        """Standard error of the mass, kg."""
        return float(np.sqrt(max(self.covariance[0, 0], 0.0)))

    @property
    def load(self) -> Load:
        """With all that a weighed load can do."""
        return Load(self.frame, self.parameters, self.covariance)


def weigh_online(
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
) -> Iterator[OnlineLoad]:
    """The load after every sample of a log or of a live stream of (t, q, dq, tau).

    Args:
        arm: a model of the bare arm, friction included, taken as exact.
        stream: a log with velocities and torques, or samples as they come.
        frame: where the load is described; default: the last link's.
        noise: standard deviation of the torques beside the model, N m (N), one number or one per joint whose torque is
            used. Error bars are as honest as this number: it must cover what the arm's friction model misses, too.
        memory: seconds in which what was seen fades to a third.
        settle: seconds after a change of load in which nothing is learnt: the scheme's filter still mixes old and new.
        heaviest, size: a load of up to so many kg within so many metres of the frame is expected; nothing else is.
        scheme: one that needs no acceleration.
    """
    robot = arm.robot
    place = robot.moving_frame(frame)
    if not memory > 0.0:
        raise SteelyardError(f"A memory of {memory:g} s keeps nothing; give a positive time.")
    made = make_scheme(scheme)
    if made.uses_acceleration:
        others = scheme_names(uses_acceleration=False)
        raise SteelyardError(f"The scheme '{made.name}' needs accelerations; use {others}.")
    base = base_parameters(robot, arm.terms)
    rows = live_rows(Dynamics(robot, arm.terms), base, made)
    to_frame = between(own_frame(robot.links[place.host], place.host), place)
    # Columns of the load in `frame`: K of the link's own frame, times the way there.
    K = base.matrix[:, 10 * place.host : 10 * place.host + 10] @ np.linalg.inv(to_frame)
    sigma = _noise(noise, rows.equations)
    state = _Learner(expected_load(heaviest, size))
    beta = base.values(arm.theta)
    parts = rows.sample.reshape(3, robot.dof)
    name, before, settled = frame or robot.link_names[place.host], np.nan, -np.inf
    for t, *signals in _samples(stream, arm):
        for part, value in zip(parts, signals, strict=False):
            part[:] = value
        if rows.add(t):
            A, y = rows.out[:, : base.rank], rows.out[:, base.rank]
            fading = float(np.exp(-(t - before) / memory)) if np.isfinite(before) else 1.0
            if t >= settled and state.learn(A @ K / sigma[:, None], (y - A @ beta) / sigma, fading):
                settled = t + settle
            yield OnlineLoad(t, name, *state.known())
        before = t


def expected_load(heaviest: float, size: float) -> Array:
    """Standard deviations of a load's ten parameters before anything was seen.

    Args:
        heaviest: kg, of which loads are expected to be, or less.
        size: m, within which of the frame's origin they are.
    """
    return np.array([heaviest, *[heaviest * size] * 3, *[heaviest * size**2] * 6])


class _Learner:
    """Ten numbers, each in units of what is expected of it: information N and its right side, N x = b."""

    def __init__(self, expected: Array) -> None:
        self._unit = expected
        self._N, self._b = np.eye(10), np.zeros(10)

    def learn(self, A: Array, y: Array, fading: float) -> bool:
        """Take rows in, unless they tell of another load: then all is forgotten, and True is returned."""
        A = A * self._unit
        self._N = fading * self._N + (1.0 - fading) * np.eye(10)
        self._b = fading * self._b
        P = np.linalg.inv(self._N)
        surprise = y - A @ (P @ self._b)
        if surprise @ np.linalg.solve(np.eye(len(y)) + A @ P @ A.T, surprise) > _SURPRISE**2 * len(y):
            self._N, self._b = np.eye(10), np.zeros(10)
            return True
        self._N = self._N + A.T @ A
        self._b = self._b + A.T @ y
        return False

    def known(self) -> tuple[Array, Array]:
        """The parameters and their covariance."""
        P = np.linalg.inv(self._N)
        return self._unit * (P @ self._b), np.outer(self._unit, self._unit) * P


def _noise(noise: ArrayLike, equations: int) -> Array:
    given = np.asarray(noise, dtype=float)
    if given.shape not in ((), (equations,)) or not np.all(np.isfinite(given) & (given > 0.0)):
        raise SteelyardError(f"noise must be a positive number, or {equations} of them (one per joint).")
    return np.broadcast_to(given, (equations,)).astype(float)


def _samples(stream: Log | Iterable[Any], arm: Model) -> Iterator[Any]:
    if not isinstance(stream, Log):
        return iter(stream)
    if stream.joints != arm.robot.joint_names:
        raise LogError(f"The log has the joints {', '.join(stream.joints)}; the arm has others.")
    if stream.dq is None or stream.tau is None:
        raise LogError("The log has no velocity or no torque; both are needed to weigh online.")
    return zip(stream.t.tolist(), stream.q, stream.dq, stream.tau, strict=True)
