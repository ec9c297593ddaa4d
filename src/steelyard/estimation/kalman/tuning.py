"""Initial values and noise levels of a filter; missing settings are computed from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.estimation.estimate import EstimationError, Prior
from steelyard.estimation.kalman.rules import StepNoise
from steelyard.estimation.linear._free import prior_theta
from steelyard.estimation.simulation_error._start import Start
from steelyard.estimation.simulation_error.experiment import Experiment, Run
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.simulation.plant import Plant

_Level = float | Sequence[float] | None
# Smallest torque noise, relative to the joint's torque: the error of integration and rounding.
_SMALLEST_TORQUE = 1e-4
# Smallest position noise, relative to the range: keeps the covariance of the innovation regular.
_SMALLEST_POSITION = 1e-7
# Part of a least-squares variance that is independent of the other parameters.
_INDEPENDENT_PART = 1e-3


@dataclass(frozen=True)
class Tuning:
    """Standard deviations for a filter; None: from the data.

    Attributes:
        position_noise: Noise of the measured positions per sample [rad, m]; None: the most likely one, with the
            parameters of a first pass.
        torque_noise: Torque noise per sample [N m, N]; None: as above.
        state_noise: Noise added to position and velocity at every sample.
        drift: Drift of the parameters per square root of a second.
        start: Initial parameters. "prior": those of the prior, which is independent of the log; each parameter of
            links and terms is uncertain by `prior_relative_std` of its size (for moments and products of inertia the
            size that follows from mass and extension of the link; for a zero of a term the largest of its kind).
            "least-squares": weighted least squares of this log with `inflation` times its standard errors, which uses
            the log twice. "auto": the prior if there is one.
        inflation: Factor on the standard errors of least squares.
        prior_relative_std: Relative standard deviation of the prior's parameters.
        parameter_std: Replaces the standard deviations of the base parameters.
        state_std: Standard deviations of position and velocity of the first state.
        likeliest: False: noise of positions from the part that the low-pass removed, scaled to the full band, and of
            torques from the residual of least squares below the cut-off; several times too large for clean logs.
    """

    position_noise: _Level = None
    torque_noise: _Level = None
    state_noise: tuple[float, float] = (0.0, 0.0)
    drift: float | Sequence[float] = 0.0
    start: Literal["auto", "prior", "least-squares"] = "auto"
    inflation: float = 10.0
    prior_relative_std: float = 0.3
    parameter_std: Sequence[float] | None = None
    state_std: tuple[float, float] | None = None
    likeliest: bool = True

    @property
    def has_all_noise(self) -> bool:
        return self.position_noise is not None and self.torque_noise is not None

    def __post_init__(self) -> None:
        if self.start not in ("auto", "prior", "least-squares"):
            raise EstimationError(f'start is "auto", "prior" or "least-squares", not "{self.start}".')
        for name in ("inflation", "prior_relative_std"):
            if not getattr(self, name) > 0.0:
                raise EstimationError(f"{name} must be positive, not {getattr(self, name)}.")


# A description has no friction values: a filter from it diverges, one from the log does not.
LOG_SETTINGS = MappingProxyType({"tuning": Tuning(start="least-squares")})


@dataclass(frozen=True, eq=False)
class FilterTuning:
    """Computed settings: initial parameters with covariance and source, standard deviations of the rest."""

    beta: Array
    covariance: Array
    positions: Array
    step: StepNoise
    drift: Array
    speeds: Array
    state_std: tuple[float, float] | None
    source: Literal["prior", "least squares"]
    notes: tuple[str, ...] = ()

    @property
    def start_note(self) -> str:
        """One sentence on the initial values."""
        if self.source == "prior":
            return "The initial values are from the prior, which is independent of the log."
        return "The initial values are from least squares of the same log; start=prior uses the description instead."

    def first_state_std(self) -> Array:
        """Return the standard deviations of a run's first state (position, velocity)."""
        n = len(self.positions)
        if self.state_std is not None:
            return np.repeat(self.state_std, n)
        return np.concatenate([self.positions, self.speeds])


def compute_tuning(
    settings: Tuning, experiment: Experiment, base: BaseParameters, prior: Prior | None, start: Start, plant: Plant
) -> tuple[FilterTuning, Array]:
    """Compute missing settings, with noise levels from residuals, and the covariance of initial values from least
    squares.

    Args:
        settings: Settings of the user.
        experiment: The motions.
        base: Base parameters.
        prior: Prior knowledge.
        start: Least-squares fit.
        plant: Model for the steps.
    """
    n = experiment.robot.dof
    positions = _levels(settings.position_noise, n, "position_noise")
    if positions is None:
        positions = _position_noise(experiment)
    torque = _levels(settings.torque_noise, n, "torque_noise")
    if torque is None:
        torque = _torque_noise(experiment, plant, start.theta)
    from_log = _from_log(settings, start)
    beta, covariance, source = _first(settings, base, prior, start, from_log)
    drift = np.broadcast_to(np.asarray(settings.drift, dtype=float), (base.rank,))
    state = np.repeat(np.asarray(settings.state_noise, dtype=float), n)
    speeds = np.max([_speed_noise(run, positions) for run in experiment.runs], axis=0)
    step = StepNoise(torque, state)
    return FilterTuning(beta, covariance, positions, step, drift, speeds, settings.state_std, source), from_log


def refine_noise(
    settings: Tuning, experiment: Experiment, rough: FilterTuning, likeliest: tuple[Array, Array] | None
) -> FilterTuning:
    """Replace noise levels by the most likely ones, except those of the user.

    Args:
        settings: Settings of the user.
        experiment: The motions.
        rough: Tuning from residuals.
        likeliest: Most likely torque and position noise; None: keep the old ones and add a note.
    """
    if likeliest is None:
        note = (
            "The search for the most likely noise failed; noise from the residuals is used, which is often too large."
        )
        return replace(rough, notes=(note,))
    torque, positions = likeliest
    if settings.torque_noise is not None:
        torque = rough.step.torque
    if settings.position_noise is not None or experiment.position_noise is not None:
        positions = rough.positions
    least_torque = _smallest_torque(experiment) if experiment.torque_noise is None else experiment.torque_noise
    step = replace(rough.step, torque=np.maximum(torque, 0.0 if settings.torque_noise is not None else least_torque))
    positions = np.maximum(positions, np.minimum(_smallest_positions(experiment), rough.positions))
    speeds = np.max([_speed_noise(run, positions) for run in experiment.runs], axis=0)
    return replace(rough, positions=positions, step=step, speeds=speeds)


def _from_log(settings: Tuning, start: Start) -> Array:
    # Parameters that are exact except for rounding still need an invertible covariance.
    smallest = 1e-8 * np.maximum(np.abs(start.beta), 1e-3 * float(np.abs(start.beta).max(initial=0.0)))
    errors = start.free.covariance.matrix
    # Few stretches leave directions without scatter; a filter must not be certain of them.
    independent = np.diag(smallest**2 + _INDEPENDENT_PART * settings.inflation**2 * np.diag(errors))
    return np.asarray(settings.inflation**2 * errors + independent)


def _first(
    settings: Tuning, base: BaseParameters, prior: Prior | None, start: Start, from_log: Array
) -> tuple[Array, Array, Literal["prior", "least squares"]]:
    from_prior = settings.start == "prior" or (settings.start == "auto" and prior is not None)
    if from_prior and prior is None:
        raise EstimationError(
            "A filter that starts from the prior needs one; omit --prior none (Python: give Prior(model.theta))."
        )
    beta = base.values(prior_theta(base, prior)) if from_prior else start.beta
    source: Literal["prior", "least squares"] = "prior" if from_prior else "least squares"
    if settings.parameter_std is not None:
        std = np.asarray(settings.parameter_std, dtype=float)
        if std.shape != (base.rank,) or not np.all(std > 0.0):
            raise EstimationError(f"parameter_std needs {base.rank} positive numbers, one per base parameter.")
        return beta, np.diag(std**2), source
    if not from_prior:
        return beta, from_log, source
    std = settings.prior_relative_std * prior_sizes(base, prior_theta(base, prior))
    covariance = (base.matrix * std**2) @ base.matrix.T
    missing = [name for name, v in zip(base.names, np.diag(covariance), strict=True) if not v > 0.0]
    if missing:
        raise EstimationError(
            f"The prior gives no size for {', '.join(missing[:6])}, so a filter cannot start from it. Give "
            "parameter_std, a description with values for them, or start from least squares (start=least-squares "
            "behind the estimator's name)."
        )
    return beta, np.asarray(covariance), source


def prior_sizes(base: BaseParameters, theta: Array) -> Array:
    """Compute the size of each parameter of a prior: its absolute value, or that of similar ones if it is zero.

    Args:
        base: Base parameters.
        theta: Full parameters of the prior.
    """
    out = np.abs(theta)
    count = base.robot.inertial_count
    for link in out[:count].reshape(-1, 10):  # a view: m, three moments, Ixx Ixy Iyy Ixz Iyz Izz
        largest = float(link[[4, 6, 9]].max())
        link[4:] = np.maximum(link[4:], largest)
        link[1:4] = np.maximum(link[1:4], (link[0] * largest) ** 0.5)
    kinds = [p.name.rstrip("0123456789") for p in base.parameters]
    for k in range(count, len(out)):
        similar = [float(out[i]) for i in range(count, len(out)) if kinds[i] == kinds[k]]
        out[k] = out[k] or max(similar)
    return np.asarray(out)


def _position_noise(experiment: Experiment) -> Array:
    """Noise that the low-pass removed, per joint; white noise has the part 1 − 2·cut-off·period of its power there."""
    if experiment.position_noise is not None:
        noise = experiment.position_noise
    else:
        runs = experiment.runs
        removed = [np.mean((run.q - run.motion.q)[run.motion.keep] ** 2, axis=0) for run in runs]
        share = [max(1.0 - 2.0 * run.motion.filter.cutoff_hz * run.period, 0.05) for run in runs]
        noise = np.sqrt(np.mean([x / s for x, s in zip(removed, share, strict=True)], axis=0))
    return np.asarray(np.maximum(noise, _smallest_positions(experiment)))


def _smallest_positions(experiment: Experiment) -> Array:
    ranges = np.max([np.ptp(run.q, axis=0) for run in experiment.runs], axis=0)
    return np.asarray(_SMALLEST_POSITION * np.maximum(ranges, 1e-3 * float(ranges.max(initial=1.0))))


def _torque_noise(experiment: Experiment, plant: Plant, theta: Array) -> Array:
    """White noise per sample with the power of the residual below the cut-off."""
    powers = []
    for run in experiment.runs:
        m = experiment.motion_at_torques(run)
        with compiled_at_once():  # makes the last digits independent of previous computations
            residual = run.tau - plant.smooth.inverse_dynamics(m.q, m.dq, m.ddq, theta)
        start, stop, _ = m.keep.indices(len(m.t))
        length = max(1, round(0.5 / (m.filter.cutoff_hz * run.period)))
        count = max((stop - start) // length, 1)
        used = residual[start : start + count * length]
        means = used[: count * length].reshape(count, -1, residual.shape[1]).mean(axis=1)
        powers.append(length * np.mean(means**2, axis=0))
    noise = np.maximum(np.sqrt(np.mean(powers, axis=0)), _smallest_torque(experiment))
    return np.asarray(noise if experiment.torque_noise is None else np.maximum(noise, experiment.torque_noise))


def _smallest_torque(experiment: Experiment) -> Array:
    size = np.sqrt(np.mean([np.mean(run.tau**2, axis=0) for run in experiment.runs], axis=0))
    return np.asarray(_SMALLEST_TORQUE * np.maximum(size, 1e-3 * size.max()))


def _speed_noise(run: Run, positions: Array) -> Array:
    """Error of the first velocity, from the edge of the filter: noise over its time constant and 1 % of the motion."""
    return np.asarray(2.0 * np.pi * run.motion.filter.cutoff_hz * positions + 0.01 * np.std(run.motion.dq, axis=0))


def _levels(value: Any, n: int, name: str) -> Array | None:
    if value is None:
        return None
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (n,)) or not np.all(np.isfinite(array) & (array >= 0.0)):
        raise EstimationError(f"{name} is {value}; give one standard deviation, or one per joint ({n}), not negative.")
    return np.broadcast_to(array, (n,)).copy()
