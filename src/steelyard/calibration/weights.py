"""Robust weights of residuals: those of Student's t, whose scale and degrees of freedom come from the data."""

from __future__ import annotations

from collections.abc import Mapping
from math import lgamma

import numpy as np

from steelyard.calibration.measurement import Measurement
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number

# Degrees of freedom of Student's t to choose from: from heavy tails to normal.
_FREEDOMS = (2.0, 3.0, 4.0, 6.0, 10.0, 30.0, 100.0)
# Rounds of the fixed point for the scale; it has then settled to six digits.
_SCALE_ROUNDS = 20
# No sensor of positions [m] or angles [rad] repeats to this; smaller residuals are rounding.
_EXACT = 1e-9
# Rows of a product that stay in the processor's cache and in one thread: on busy machines, threads of such small
# products wait for each other up to a hundred times as long as they compute.
_BLOCK = 64

_UNITS = {"position": (1e3, "mm"), "rotation": (57.29577951308232, "°"), "distance": (1e3, "mm")}


def distances(measurement: Measurement, residuals: Array) -> Array:
    """Compute the size of the residual of each block, shape (poses, blocks).

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
    """
    return np.column_stack([np.linalg.norm(residuals[:, rows], axis=1) for rows, _ in measurement.blocks])


def sensor_stds(measurement: Measurement) -> Array:
    """Return the stated standard deviation of the sensor for every pose and block of a `measurement`; 0: not stated."""
    out = np.zeros((len(measurement), len(measurement.blocks)))
    for k, (_, channel) in enumerate(measurement.blocks):
        stated = measurement.readings.get("sigma_rotation" if channel == "rotation" else "sigma")
        if stated is not None:
            out[:, k] = stated
    return out


def block_stds(measurement: Measurement, stds: Mapping[str, float]) -> Array:
    """Compute the standard deviation of every pose and block: that of the channel, and that of the sensor.

    Args:
        measurement: Measurement with its blocks.
        stds: Standard deviation by channel, apart from that of the sensor.
    """
    own = np.array([stds[channel] for _, channel in measurement.blocks])
    return np.asarray(np.hypot(own, sensor_stds(measurement)))


def pose_means(sizes: Array) -> Array:
    """Compute the mean of the `sizes` of each pose over its measured blocks; NaN for a pose without any."""
    finite = np.isfinite(sizes)
    count = finite.sum(axis=1)
    return np.asarray(np.where(count > 0, np.nansum(sizes, axis=1) / np.maximum(count, 1), np.nan))


def without_spent(measurement: Measurement, residuals: Array, spent: Mapping[str, float]) -> Array:
    """Enlarge residuals to the size that they have on average without a fit: unknowns take a part of each.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals of a fit; NaN: not measured.
        spent: Number of readings of each channel that the unknowns of the fit use up.
    """
    out = residuals.copy()
    for channel in spent:
        own = np.concatenate([np.r_[rows] for rows, name in measurement.blocks if name == channel])
        count = float(np.count_nonzero(np.isfinite(residuals[:, own])))
        out[:, own] *= np.sqrt(count / max(count - spent[channel], 1.0))
    return out


def scales(measurement: Measurement, residuals: Array, freedom: float) -> tuple[dict[str, float], Array]:
    """Compute the residual standard deviation of every channel and the weight of every block.

    A stated error of the sensor is not part of the standard deviation: the variances add.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
        freedom: Degrees of freedom of Student's t.
    """
    size = distances(measurement, residuals)
    stds: dict[str, float] = {}
    weights = np.zeros_like(size)
    sensor = sensor_stds(measurement) ** 2
    for channel in dict.fromkeys(name for _, name in measurement.blocks):
        own = [k for k, (_, name) in enumerate(measurement.blocks) if name == channel]
        rows = measurement.blocks[own[0]][0]
        width = rows.stop - rows.start
        r = size[:, own]
        finite = np.isfinite(r)
        # The fixed point of the scale of a t distribution; the median is its start.
        variance = max(float(np.median(r[finite]) ** 2) / width, _EXACT**2)
        square, known_variance = np.where(finite, r, 0.0) ** 2, sensor[:, own]
        for _ in range(_SCALE_ROUNDS):
            total = variance + known_variance
            w = (freedom + width) / (freedom + square / total)
            before = variance
            above = float(np.sum((w * square / total**2)[finite]))
            variance = max(variance * above / (width * float(np.sum(1.0 / total[finite]))), _EXACT**2)
            if abs(variance - before) < 1e-4 * float(np.median(total)):
                break
        w = (freedom + width) / (freedom + square / (variance + known_variance))
        weights[:, own] = np.where(finite, w, 0.0)
        stds[channel] = float(np.sqrt(variance))
    return stds, weights


def best_freedom(measurement: Measurement, residuals: Array, spent: Mapping[str, float]) -> float:
    """Choose the degrees of freedom of the residuals' distribution by its likelihood.

    Few readings with many unknowns exclude heavy tails: these would allow a fit that meets some poses exactly and
    ignores the others.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
        spent: Number of readings of each channel that the unknowns of the fit use up.
    """
    size, sensor = distances(measurement, residuals), sensor_stds(measurement)
    best, result = -np.inf, _FREEDOMS[-1]
    least = _least_freedom(measurement, residuals, spent)
    for freedom in (f for f in _FREEDOMS if f >= min(least, _FREEDOMS[-1])):
        stds, _ = scales(measurement, residuals, freedom)
        total = 0.0
        for k, (rows, channel) in enumerate(measurement.blocks):
            d, finite = rows.stop - rows.start, np.isfinite(size[:, k])
            r, s = size[finite, k], np.hypot(stds[channel], sensor[finite, k])
            constant = lgamma((freedom + d) / 2) - lgamma(freedom / 2) - d / 2 * np.log(freedom * np.pi)
            total += len(r) * constant - d * float(np.sum(np.log(s)))
            total -= (freedom + d) / 2 * float(np.sum(np.log1p((r / s) ** 2 / freedom)))
        if total > best:
            best, result = total, freedom
    return result


def _least_freedom(measurement: Measurement, residuals: Array, spent: Mapping[str, float]) -> float:
    """Degrees of freedom above which the likelihood is bounded.

    With k of n blocks of d rows met exactly, the likelihood grows without limit for a vanishing scale if
    n d > (n - k) (freedom + d); the unknowns meet k = spent / d of them.
    """
    least = 0.0
    for channel, used in spent.items():
        own = [rows for rows, name in measurement.blocks if name == channel]
        count = sum(int(np.count_nonzero(np.isfinite(residuals[:, rows]))) for rows in own)
        least = max(least, (own[0].stop - own[0].start) * used / max(count - used, 1.0))
    return least


def row_weights(measurement: Measurement, stds: Mapping[str, float], weights: Array) -> Array:
    """Compute the weight of every row of residuals, 1/variance.

    Args:
        measurement: Measurement with its blocks.
        stds: Standard deviation by channel.
        weights: Weights of blocks.
    """
    out = np.zeros((len(weights), max(rows.stop for rows, _ in measurement.blocks)))
    variances = block_stds(measurement, stds) ** 2
    for k, (rows, _) in enumerate(measurement.blocks):
        out[:, rows] = (weights / variances)[:, k, None]
    return out


def shared_error(measurement: Measurement, residuals: Array, weights: Array) -> float:
    """Compute by how much several points of one pose count too often, because they share the error of the robot.

    This is the design effect of cluster samples, 1 + (points − 1) · correlation, of points in one pose.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
        weights: Weights of blocks.
    """
    own = [rows for rows, channel in measurement.blocks if channel == measurement.blocks[0][1]]
    if len(own) < 2:
        return 1.0
    parts = np.stack([np.nan_to_num(residuals[:, rows]) for rows in own], axis=1)
    parts = parts * np.sqrt(weights[:, : len(own), None])
    each = float(np.sum(parts**2))
    together = float(np.sum(np.sum(parts, axis=1) ** 2))
    return min(max(together / max(each, 1e-300), 1.0), float(len(own)))


def products(residuals: Array, jacobian: Array, weights: Array) -> Array:
    """Compute [J r]ᵀ W [J r] over all measured rows.

    Args:
        residuals: Residuals, shape (poses, rows).
        jacobian: Derivatives, shape (poses, rows, unknowns).
        weights: Weights, shape (poses, rows); 0: not measured.
    """
    root = np.sqrt(weights)[..., None]
    columns = np.concatenate([jacobian * root, residuals[..., None] * root], axis=2).reshape(-1, jacobian.shape[2] + 1)
    out = np.zeros((columns.shape[1], columns.shape[1]))
    for start in range(0, len(columns), _BLOCK):
        part = columns[start : start + _BLOCK]
        out += part.T @ part
    return out


def spent_readings(
    measurement: Measurement, jacobian: Array, weights: Array, gram: Array, precision: Array
) -> dict[str, float]:
    """Compute how many readings of each channel the unknowns use up: the trace of the hat matrix.

    Args:
        measurement: Measurement with its blocks.
        jacobian: Derivatives, shape (poses, rows, unknowns).
        weights: Weights, shape (poses, rows).
        gram: Products of `products` for all channels.
        precision: Prior precision of the deviations, which are the last unknowns.
    """
    whole = gram[:-1, :-1]
    first, *others = dict.fromkeys(name for _, name in measurement.blocks)
    grams = {}
    for channel in others:
        own = np.concatenate([np.r_[rows] for rows, name in measurement.blocks if name == channel])
        part = jacobian[:, own]
        grams[channel] = products(np.zeros(part.shape[:2]), part, weights[:, own])[:-1, :-1]
    grams[first] = whole - np.sum(list(grams.values()), axis=0)
    total = whole + np.diag(np.concatenate([np.zeros(len(whole) - len(precision)), precision]))
    size = np.sqrt(np.maximum(np.diag(total), 1e-300))
    inverse = np.linalg.pinv(total / np.outer(size, size), rcond=1e-12, hermitian=True) / np.outer(size, size)
    return {channel: float(np.sum(inverse * own)) for channel, own in grams.items()}


def shown_error(value: float, channel: str) -> str:
    """Format an error with its unit.

    Args:
        value: Error [m, rad].
        channel: Channel, such as "position".
    """
    factor, unit = _UNITS[channel]
    return f"{number(factor * value, 3)} {unit}"
