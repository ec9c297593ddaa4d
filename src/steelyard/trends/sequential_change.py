"""Sequential change detection with a given false-alarm rate.

A change in a series z with variances v is a template f (a step, or a ramp for wear) times an unknown amplitude with
prior standard deviation s. With N = Σ f²/v and b = Σ f z/v, T² = b²/N has Student's distribution without a change, if v
is known from ν values, and T²/(1 + s²N) has it with a change. The ratio of the two densities is an e-value: without a
change it exceeds c with a probability below 1/c. For many series, however dependent, the procedure e-BH (Wang and
Ramdas 2022) controls the false discoveries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.trends.change_points import change_template

# Each health alarm triggers a site visit, so we allow one false alarm per year [1/s].
YEARLY_HZ = 1.0 / (365.0 * 86400.0)


@short_repr
@dataclass(frozen=True, eq=False)
class SeriesChange:
    """The most probable change in each series; all arrays have the shape (series,).

    Args:
        evidence: Logarithm of the e-value.
        start: Index of the first changed value.
        size: Change of the newest value.
        error: Standard error of `size`.
        ramp: Whether the change grows.
    """

    evidence: Array
    start: NDArray[np.int64]
    size: Array
    error: Array
    ramp: NDArray[np.bool_]


def step_evidence(
    z: Array, v: Array, common: Array, s: Array, degrees: Array | float, ramps: bool = False
) -> SeriesChange:
    """Search for a change in the newest part of series.

    Args:
        z: Values, newest last, shape (length, series); their mean is 0 without a change.
        v: Variances of independent errors, shape (length, series); inf for missing values.
        common: Variance of an error that all values after the change share, shape (series,).
        s: Prior standard deviation of a change, shape (series,).
        degrees: Degrees of freedom of the variances.
        ramps: Whether changes may also grow linearly, by s over seven values.
    """
    length = len(z)
    w = 1.0 / v
    N, b = (np.cumsum(x[::-1], axis=0)[::-1] for x in (w, np.where(w > 0.0, w * z, 0.0)))  # from each index to the end
    fits = [_fit_template(N, b, common, s, degrees)]
    if ramps:
        steps = np.arange(float(length))
        f = change_template(steps, steps - 1.0, True).T
        grown = s * (length - steps)[:, None] / 7.0
        fits.append(_fit_template(f**2 @ w, f @ np.where(w > 0.0, w * z, 0.0), common, grown, degrees))
    evidence, size, error, fit = (np.concatenate([x[k] for x in fits]) for k in range(4))
    valid = np.tile(w > 0.0, (len(fits), 1))  # a change begins at a value
    # The evidence (with the common error) decides whether there is a change; the best fit gives its time and its shape.
    best = np.argmax(np.where(valid, fit, -np.inf), axis=0)
    pick = best, np.arange(z.shape[1])
    largest = np.max(np.where(valid, evidence, -np.inf), axis=0)
    return SeriesChange(largest, best % length, size[pick], error[pick], best >= length)


def _fit_template(
    N: Array, b: Array, common: Array, s: Array, degrees: Array | float
) -> tuple[Array, Array, Array, Array]:
    """Return log e-value, size, error and fit of a change for every start."""
    valid = N > 0.0
    size = np.where(valid, b / np.where(valid, N, 1.0), 0.0)
    information = np.where(valid, N / (1.0 + common * N), 0.0)  # the common error does not average out
    T2, grows = size**2 * information, 1.0 + s**2 * information
    power = 0.5 * (degrees + 1.0)
    evidence = power * (np.log1p(T2 / degrees) - np.log1p(T2 / (degrees * grows))) - 0.5 * np.log(grows)
    return evidence, size, np.where(valid, 1.0 / np.sqrt(np.where(valid, information, 1.0)), np.inf), size**2 * N
