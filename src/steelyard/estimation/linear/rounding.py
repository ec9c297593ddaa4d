"""What the rounding of positions does to parameters: measured by rounding once more.

Noise in the positions is noise in the columns of y = A β, and least squares then leans towards zero (errors in
variables). The lean grows with the variance of that noise, so a second rounding error of the same kind doubles it, and
the change of the estimate is the lean itself: simulation extrapolation (Cook & Stefanski 1994, "Simulation-
extrapolation estimation in parametric measurement error models"), with the error known instead of assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from steelyard.estimation.estimate import Estimate, Estimator, LinearEstimator, Prior
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.signals.filters import LowPass
from steelyard.signals.log import Log
from steelyard.signals.rounding import acceleration_noise, position_steps, round_again

# Rounding noise below this part of the acceleration's own standard deviation is not worth a second fit. The lean grows
# with its square; at 1.2 % (14 bits) it was at most 0.4 standard errors on the built-in robots (error-bars.md).
NEGLIGIBLE = 0.005
# Roundings that are averaged; the scatter of each is small against the lean where the lean matters.
_TIMES = 3

Change = Callable[[Log], Log]


def rounding_noise(logs: Sequence[Log], cutoff_hz: float) -> tuple[Array, Array]:
    """By joint of `logs`: the step of positions (0: none seen), and its noise in ddq, low-passed at `cutoff_hz`,
    over the standard deviation of ddq.
    """
    steps = np.max([position_steps(log) for log in logs], axis=0)
    if not steps.any():
        return steps, np.zeros_like(steps)
    longest = max(logs, key=len)
    period = float(np.median(np.diff(longest.t))) if len(longest) > 1 else 1.0
    low_pass = LowPass(min(cutoff_hz, 0.45 / period), period)
    noise = steps / np.sqrt(12.0) * acceleration_noise(low_pass)
    std = np.std(_accelerations(longest, low_pass), axis=0)
    return steps, noise / np.maximum(std, 1e-12)


def _accelerations(log: Log, low_pass: LowPass) -> Array:
    first, last = max(log.segments or ((0, len(log)),), key=lambda s: s[1] - s[0])
    q = low_pass(log.q[first:last])
    h = low_pass.period
    inner = slice(low_pass.memory // 3, max(last - first - low_pass.memory // 3, low_pass.memory // 3 + 1))
    return np.asarray(low_pass(np.gradient(low_pass(np.gradient(q, h, axis=0)), h, axis=0))[inner])


def rounding_shift(
    logs: Sequence[Log], cutoff_hz: float, beta: Array, refit: Callable[[Change], Array]
) -> Array | None:  # fmt: skip
    """How far rounding has moved each base parameter; None where there are no ticks, or too fine ones to matter.

    `logs` and `cutoff_hz` are as for `rounding_noise`; `beta` are the base parameters found, and the function `refit`
    of a change gives those of the same fit to changed logs.
    """
    steps, noise = rounding_noise(logs, cutoff_hz)
    if not np.any(noise > NEGLIGIBLE):
        return None
    moved = []
    for k in range(_TIMES):
        rng = np.random.default_rng(k)
        moved.append(refit(lambda log, rng=rng: round_again(log, steps, cutoff_hz, rng)) - beta)  # type: ignore[misc]
    return np.asarray(np.mean(moved, axis=0))


def beta_alone(
    estimator: Estimator[RegressionData], data: RegressionData, base: BaseParameters, prior: Prior | None
) -> Array:
    """The base parameters that `estimator` finds in `data`, without error bars where it can do without.

    `base` and `prior` are as for its `fit`.
    """
    if isinstance(estimator, LinearEstimator) and type(estimator).fit is LinearEstimator.fit:
        return estimator.free(replace(data, spectral=False), base).beta
    return estimator.fit(data, base, prior).beta


def widened(estimate: Estimate, shift: Array) -> Estimate:
    """`estimate` with its lean `shift` in the error bars: not known well enough to be taken off, but it is known."""
    errors = estimate.standard_errors
    shift = np.where(errors > 0.0, shift, 0.0)  # what was taken away stays away
    relative = np.divide(np.abs(shift), errors, out=np.zeros_like(shift), where=errors > 0.0)
    worst = int(np.argmax(relative))
    size = float(relative[worst])
    note = (
        f"Rounding of the positions has moved base parameters by up to {size:.1f} standard errors "
        f"({estimate.base.names[worst]}); the error bars are widened by as much."
    )
    return replace(
        estimate,
        covariance=estimate.covariance + np.outer(shift, shift),
        notes=(*estimate.notes, note) if size > 0.5 else estimate.notes,
        details={**estimate.details, "rounding_shift": tuple(shift.tolist())},
    )
