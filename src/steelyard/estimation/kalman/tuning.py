"""`Tuning`: where a filter starts and how much it trusts what; all that is not given comes from the data."""

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
from steelyard.estimation.simulated._start import Start
from steelyard.estimation.simulated.experiment import Experiment, Run
from steelyard.ground.arrays import Array
from steelyard.ground.renamed import renamed
from steelyard.regression.base_parameters import BaseParameters
from steelyard.simulation.plant import Plant

_Level = float | Sequence[float] | None
# Torque that integration and rounding leave unexplained, relative to the joint's own.
_SMALLEST_TORQUE = 1e-4
# Positions are never better than this part of their range: the covariance of the innovation must stay regular.
_SMALLEST_POSITION = 1e-7
# The part of a least-squares variance that no other parameter shares.
_OWN = 1e-3


@renamed(prior_spread="prior_relative_std", parameter_spread="parameter_std", state_spread="state_std")
@dataclass(frozen=True)
class Tuning:
    """Standard deviations; None means: from the data.

    `position_noise` (rad, m) of the measured positions and `torque_noise` (N m, N) per sample: those under which the
    log is likeliest, with the parameters of a first pass. (`likeliest` False: what the low-pass of the preparation took
    away, scaled up to the whole band, and the residual of least squares below the cut-off; several times too large on
    clean logs.) `state_noise` is added to position and velocity at every sample, `drift` to the parameters (both none
    by default; `drift` is a standard deviation per square root of a second).

    `start` "prior": the prior's numbers, which have not seen the log, every parameter of links and terms uncertain by
    `prior_relative_std` of its size; moments and products of inertia by that of what a link's mass and extension make
    of them, a term's that is zero by that of the largest of its kind. "least-squares": weighted least squares of this
    log with `inflation` times its standard errors, so that the log is used twice. "auto": the prior where there is one.
    `parameter_std` replaces the standard deviations of the base parameters; `state_std` (position, velocity) those
    of the first state.
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
    def says_all_noise(self) -> bool:
        return self.position_noise is not None and self.torque_noise is not None

    def __post_init__(self) -> None:
        if self.start not in ("auto", "prior", "least-squares"):
            raise EstimationError(f'start is "auto", "prior" or "least-squares", not "{self.start}".')
        for name in ("inflation", "prior_relative_std"):
            if not getattr(self, name) > 0.0:
                raise EstimationError(f"{name} must be positive, not {getattr(self, name)}.")


# A description knows no friction: a filter that starts from it loses its way, one that starts from the log does not.
LOG_SETTINGS = MappingProxyType({"tuning": Tuning(start="least-squares")})


@dataclass(frozen=True, eq=False)
class Tuned:
    """The numbers: first parameters with covariance and where they come from, standard deviations of the rest."""

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
    def started(self) -> str:
        """Where the filter began, in a sentence."""
        if self.source == "prior":
            return "The filter started from the prior, which has not seen the log."
        return "The filter started from least squares of the same log; with start=prior it starts from the description."

    def first_state_std(self) -> Array:
        """Standard deviations of a run's first state (position, velocity)."""
        n = len(self.positions)
        if self.state_std is not None:
            return np.repeat(self.state_std, n)
        return np.concatenate([self.positions, self.speeds])


def tuned(
    settings: Tuning, experiment: Experiment, base: BaseParameters, prior: Prior | None, start: Start, plant: Plant
) -> tuple[Tuned, Array]:
    """All that `settings` leave open, noise levels from residuals; and the covariance of a start from least squares.

    `base` is looked for in the measured motion of `experiment`, `prior` known before (or None); `start` is the
    least-squares fit, `plant` steps the model.
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
    return Tuned(beta, covariance, positions, step, drift, speeds, settings.state_std, source), from_log


def refined(settings: Tuning, experiment: Experiment, rough: Tuned, found: tuple[Array, Array] | None) -> Tuned:
    """With noise levels `found` from the log's likelihood in place of the `rough` ones.

    What `settings` or the `experiment` give stays; None for `found` leaves all, with a note.
    """
    if found is None:
        note = "No likeliest noise levels were found; those of least squares' residuals, often too large, stand."
        return replace(rough, notes=(note,))
    torque, positions = found
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
    # Parameters that least squares knows to rounding still need a covariance that can be inverted.
    least = 1e-8 * np.maximum(np.abs(start.beta), 1e-3 * float(np.abs(start.beta).max(initial=0.0)))
    errors = start.free.covariance.matrix
    # Scores of few stretches leave directions without any scatter, of which a filter must not be certain.
    own = np.diag(least**2 + _OWN * settings.inflation**2 * np.diag(errors))
    return np.asarray(settings.inflation**2 * errors + own)


def _first(
    settings: Tuning, base: BaseParameters, prior: Prior | None, start: Start, from_log: Array
) -> tuple[Array, Array, Literal["prior", "least squares"]]:
    from_prior = settings.start == "prior" or (settings.start == "auto" and prior is not None)
    if from_prior and prior is None:
        raise EstimationError(
            "A filter that starts from the prior needs one; leave out --prior none (Python: give Prior(model.theta))."
        )
    beta = base.values(prior_theta(base, prior)) if from_prior else start.beta
    source: Literal["prior", "least squares"] = "prior" if from_prior else "least squares"
    if settings.parameter_std is not None:
        given = np.asarray(settings.parameter_std, dtype=float)
        if given.shape != (base.rank,) or not np.all(given > 0.0):
            raise EstimationError(f"parameter_std needs {base.rank} positive numbers, one per base parameter.")
        return beta, np.diag(given**2), source
    if not from_prior:
        return beta, from_log, source
    std = settings.prior_relative_std * prior_sizes(base, prior_theta(base, prior))
    covariance = (base.matrix * std**2) @ base.matrix.T
    silent = [name for name, v in zip(base.names, np.diag(covariance), strict=True) if not v > 0.0]
    if silent:
        raise EstimationError(
            f"The prior says nothing about the size of {', '.join(silent[:6])}: a filter cannot start from it. Give "
            "parameter_std, a description with numbers for them, or let it start from least squares "
            "(start=least-squares behind the estimator's name)."
        )
    return beta, np.asarray(covariance), source


def prior_sizes(base: BaseParameters, theta: Array) -> Array:
    """How large each parameter of a prior may be: its own size, or that of its like where it is zero.

    Args:
        base: the base parameters, whose `parameters` these are.
        theta: full parameters of the prior.
    """
    out = np.abs(theta)
    count = base.robot.inertial_count
    for link in out[:count].reshape(-1, 10):  # a view: m, three moments, Ixx Ixy Iyy Ixz Iyz Izz
        largest = float(link[[4, 6, 9]].max())
        link[4:] = np.maximum(link[4:], largest)
        link[1:4] = np.maximum(link[1:4], (link[0] * largest) ** 0.5)
    kinds = [p.name.rstrip("0123456789") for p in base.parameters]
    for k in range(count, len(out)):
        alike = [float(out[i]) for i in range(count, len(out)) if kinds[i] == kinds[k]]
        out[k] = out[k] or max(alike)
    return np.asarray(out)


def _position_noise(experiment: Experiment) -> Array:
    """What the low-pass took away, per joint; white noise has the part 1 − 2·cut-off·period of its power there."""
    if experiment.position_noise is not None:
        found = experiment.position_noise
    else:
        runs = experiment.runs
        lost = [np.mean((run.q - run.motion.q)[run.motion.keep] ** 2, axis=0) for run in runs]
        share = [max(1.0 - 2.0 * run.motion.filter.cutoff_hz * run.period, 0.05) for run in runs]
        found = np.sqrt(np.mean([x / s for x, s in zip(lost, share, strict=True)], axis=0))
    return np.asarray(np.maximum(found, _smallest_positions(experiment)))


def _smallest_positions(experiment: Experiment) -> Array:
    ranges = np.max([np.ptp(run.q, axis=0) for run in experiment.runs], axis=0)
    return np.asarray(_SMALLEST_POSITION * np.maximum(ranges, 1e-3 * float(ranges.max(initial=1.0))))


def _torque_noise(experiment: Experiment, plant: Plant, theta: Array) -> Array:
    """The white noise per sample that has the residual's power below the cut-off."""
    powers = []
    for run in experiment.runs:
        m = experiment.beside_torque(run)
        with compiled_at_once():  # or the last digits would depend on what was computed before
            residual = run.tau - plant.smooth.inverse_dynamics(m.q, m.dq, m.ddq, theta)
        start, stop, _ = m.keep.indices(len(m.t))
        length = max(1, round(0.5 / (m.filter.cutoff_hz * run.period)))
        count = max((stop - start) // length, 1)
        used = residual[start : start + count * length]
        means = used[: count * length].reshape(count, -1, residual.shape[1]).mean(axis=1)
        powers.append(length * np.mean(means**2, axis=0))
    found = np.maximum(np.sqrt(np.mean(powers, axis=0)), _smallest_torque(experiment))
    return np.asarray(found if experiment.torque_noise is None else np.maximum(found, experiment.torque_noise))


def _smallest_torque(experiment: Experiment) -> Array:
    size = np.sqrt(np.mean([np.mean(run.tau**2, axis=0) for run in experiment.runs], axis=0))
    return np.asarray(_SMALLEST_TORQUE * np.maximum(size, 1e-3 * size.max()))


def _speed_noise(run: Run, positions: Array) -> Array:
    """The first velocity comes from the filter's edge: noise over its time constant, and a hundredth of the motion."""
    return np.asarray(2.0 * np.pi * run.motion.filter.cutoff_hz * positions + 0.01 * np.std(run.motion.dq, axis=0))


def _levels(value: Any, n: int, name: str) -> Array | None:
    if value is None:
        return None
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != (n,)) or not np.all(np.isfinite(array) & (array >= 0.0)):
        raise EstimationError(f"{name} is {value}; give one standard deviation, or one per joint ({n}), not negative.")
    return np.broadcast_to(array, (n,)).copy()
