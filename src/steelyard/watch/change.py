"""Whether a number has changed, and since when: sequential evidence with a stated rate of false alarms.

Of a series z with variances v, a change from a moment on is a template f (a step, or a ramp for what wears) times an
amplitude of which only the size s is expected. With N = Σ f²/v and b = Σ f z/v, T² = b²/N is Student's where nothing
has changed and v is known from ν values, and T²/(1 + s²N) where something has. The ratio of both densities exceeds c
with a probability of less than 1/c without change (it is an e-value), and that is how error rates are kept: over many
numbers at once, none knows how dependent, by the procedure e-BH (Wang and Ramdas 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array

# An alarm of health brings somebody to the robot: one without cause a year is what people bear.
YEARLY_HZ = 1.0 / (365.0 * 86400.0)


@dataclass(frozen=True, eq=False)
class SeriesChange:
    """The best account of a change in each series, all (series,).

    Args:
        evidence: log of the e-value.
        start: the place in the series at which it begins.
        size: by how much the newest value differs, with its standard `error`.
        ramp: whether it grows.
    """

    evidence: Array
    start: NDArray[np.int64]
    size: Array
    error: Array
    ramp: NDArray[np.bool_]


def step_evidence(
    z: Array, v: Array, common: Array, s: Array, degrees: Array | float, ramps: bool = False
) -> SeriesChange:
    """Look for a change in the newest part of series.

    Args:
        z: (length, series), the newest last; the mean is 0 where nothing has changed.
        v: their variances, independent from one to the next; inf where there is no value.
        common: variance that all values of a stretch share, (series,).
        s: expected size of a change, (series,).
        degrees: of freedom that the variances are known with.
        ramps: whether changes may also grow steadily, by s over seven values.
    """
    length = len(z)
    w = 1.0 / v
    N, b = (np.cumsum(x[::-1], axis=0)[::-1] for x in (w, np.where(w > 0.0, w * z, 0.0)))  # from each place on
    found = [_of_templates(N, b, common, s, degrees, np.ones(length))]
    if ramps:
        f = np.maximum(np.arange(length)[None, :] - np.arange(length)[:, None] + 1.0, 0.0)
        found.append(_of_templates(f**2 @ w, f @ np.where(w > 0.0, w * z, 0.0), common, s / 7.0, degrees,
                                   length - np.arange(float(length))))  # fmt: skip
    evidence, size, error, fit = (np.concatenate([x[k] for x in found]) for k in range(4))
    seen = np.tile(w > 0.0, (len(found), 1))  # changes begin where something was seen
    # Whether is a question of evidence, in which what is shared counts; since when and how, of the best fit.
    best = np.argmax(np.where(seen, fit, -np.inf), axis=0)
    pick = best, np.arange(z.shape[1])
    most = np.max(np.where(seen, evidence, -np.inf), axis=0)
    return SeriesChange(most, best % length, size[pick], error[pick], best >= length)


def _of_templates(
    N: Array, b: Array, common: Array, s: Array, degrees: Array | float, newest: Array
) -> tuple[Array, Array, Array, Array]:
    """log e-value, size, error and fit of a change for every beginning; `newest` is the template's last value."""
    known = N > 0.0
    common = common / newest[:, None] ** 2  # it is one of the level that is reached
    amplitude = np.where(known, b / np.where(known, N, 1.0), 0.0)
    information = np.where(known, N / (1.0 + common * N), 0.0)  # what is shared does not average out
    T2, grows = amplitude**2 * information, 1.0 + s**2 * information
    power = 0.5 * (degrees + 1.0)
    evidence = power * (np.log1p(T2 / degrees) - np.log1p(T2 / (degrees * grows))) - 0.5 * np.log(grows)
    error = 1.0 / np.sqrt(np.where(known, information, 1.0))
    return evidence, amplitude * newest[:, None], np.where(known, error * newest[:, None], np.inf), amplitude**2 * N


def real_changes(evidence: Array, rate: float) -> NDArray[np.bool_]:
    """Which of many changes are real: of those that are told, at most the part `rate` is not, on the average.

    Args:
        evidence: logs of e-values.
        rate: of false discoveries; per look, if one looks again and again.
    """
    order = np.argsort(-evidence)
    ranks = np.arange(1, len(evidence) + 1)
    enough = np.flatnonzero(evidence[order] >= np.log(len(evidence) / (rate * ranks)))
    real = np.zeros(len(evidence), dtype=bool)
    if len(enough):
        real[order[: enough[-1] + 1]] = True
    return real
