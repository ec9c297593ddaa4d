"""Measures the bias of parameters from rounded positions by rounding the positions once more.

Noise in the positions is noise in the columns of y = A β, which biases least squares towards zero (errors in
variables). The bias is proportional to the variance of that noise. A second rounding error of the same kind doubles it,
so the change of the estimate equals the bias: simulation extrapolation (Cook & Stefanski 1994, "Simulation-
extrapolation estimation in parametric measurement error models"), with a known error.
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

# Rounding noise below this part of the acceleration's standard deviation does not justify a second fit. The bias grows
# with its square; at 1.2 % (14 bits) it was at most 0.4 standard errors on the built-in robots (error-bars.md).
NEGLIGIBLE = 0.005
# Number of roundings in the mean; their scatter is small compared with a relevant bias.
_REPEATS = 3

Change = Callable[[Log], Log]


def rounding_noise(logs: Sequence[Log], cutoff_hz: float) -> tuple[Array, Array]:
    """Estimate the rounding of positions and its effect on accelerations, by joint.

    Args:
        logs: The logs.
        cutoff_hz: Cut-off of the low-pass filter [Hz].

    Returns:
        Step of the positions [rad, m] (0: no rounding visible), and its noise in ddq over the standard deviation of
        ddq.
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
    """Estimate the bias of each base parameter from rounding; None if there is no rounding or it is negligible.

    Args:
        logs: The logs.
        cutoff_hz: Cut-off of the low-pass filter [Hz].
        beta: Estimated base parameters.
        refit: Gives the base parameters of the same fit to changed logs.
    """
    steps, noise = rounding_noise(logs, cutoff_hz)
    if not np.any(noise > NEGLIGIBLE):
        return None
    shifts = []
    for k in range(_REPEATS):
        rng = np.random.default_rng(k)
        shifts.append(refit(lambda log, rng=rng: round_again(log, steps, cutoff_hz, rng)) - beta)  # type: ignore[misc]
    return np.asarray(np.mean(shifts, axis=0))


def fit_beta(
    estimator: Estimator[RegressionData], data: RegressionData, base: BaseParameters, prior: Prior | None
) -> Array:
    """Estimate base parameters, without error bars if the estimator allows it.

    Args:
        estimator: The estimator.
        data: The rows.
        base: Base parameters.
        prior: Prior knowledge.
    """
    if isinstance(estimator, LinearEstimator) and type(estimator).fit is LinearEstimator.fit:
        return estimator.free(replace(data, spectral=False), base).beta
    return estimator.fit(data, base, prior).beta


def include_bias(estimate: Estimate, shift: Array) -> Estimate:
    """Widen the error bars of an estimate by a bias, which is not known well enough to be subtracted.

    Args:
        estimate: The estimate.
        shift: Bias of each base parameter.
    """
    errors = estimate.standard_errors
    shift = np.where(errors > 0.0, shift, 0.0)  # removed parameters stay zero
    relative = np.divide(np.abs(shift), errors, out=np.zeros_like(shift), where=errors > 0.0)
    worst = int(np.argmax(relative))
    size = float(relative[worst])
    note = (
        f"Rounding of the positions biases base parameters by up to {size:.1f} standard errors "
        f"({estimate.base.names[worst]}); the error bars include this bias."
    )
    return replace(
        estimate,
        covariance=estimate.covariance + np.outer(shift, shift),
        notes=(*estimate.notes, note) if size > 0.5 else estimate.notes,
        details={**estimate.details, "rounding_shift": tuple(shift.tolist())},
    )
