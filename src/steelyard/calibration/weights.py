"""Robust weights of residuals: those of Student's t, whose scale and degrees of freedom come from the data."""

from __future__ import annotations

from collections.abc import Mapping
from math import lgamma

import numpy as np

from steelyard.calibration.measurement import Measurement
from steelyard.ground.arrays import Array

# Degrees of freedom of Student's t to choose from: from heavy tails to normal.
_FREEDOMS = (2.0, 3.0, 4.0, 6.0, 10.0, 30.0, 100.0)
# Rounds of the fixed point for the scale; it has then settled to six digits.
_SCALE_ROUNDS = 20
# Rows of a product that stay in the processor's cache and in one thread: on busy machines, threads of such small
# products wait for each other up to a hundred times as long as they compute.
_BLOCK = 64


def distances(measurement: Measurement, residuals: Array) -> Array:
    """Compute the size of the residual of each block, shape (poses, blocks).

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
    """
    return np.column_stack([np.linalg.norm(residuals[:, rows], axis=1) for rows, _ in measurement.blocks])


def scales(measurement: Measurement, residuals: Array, freedom: float) -> tuple[dict[str, float], Array]:
    """Compute the residual standard deviation of every channel and the weight of every block.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
        freedom: Degrees of freedom of Student's t.
    """
    size = distances(measurement, residuals)
    stds: dict[str, float] = {}
    weights = np.zeros_like(size)
    for channel in dict.fromkeys(name for _, name in measurement.blocks):
        own = [k for k, (_, name) in enumerate(measurement.blocks) if name == channel]
        rows = measurement.blocks[own[0]][0]
        width = rows.stop - rows.start
        r = size[:, own]
        known = np.isfinite(r)
        # The fixed point of the scale of a t distribution; the median is its start.
        variance = max(float(np.median(r[known]) ** 2) / width, 1e-30)
        for _ in range(_SCALE_ROUNDS):
            w = (freedom + width) / (freedom + np.where(known, r, 0.0) ** 2 / variance)
            before = variance
            variance = max(float(np.sum(w[known] * r[known] ** 2)) / (width * int(known.sum())), 1e-30)
            if abs(variance - before) < 1e-4 * variance:
                break
        w = (freedom + width) / (freedom + np.where(known, r, 0.0) ** 2 / variance)
        weights[:, own] = np.where(known, w, 0.0)
        stds[channel] = float(np.sqrt(variance))
    return stds, weights


def best_freedom(measurement: Measurement, residuals: Array) -> float:
    """Choose the degrees of freedom of the residuals' distribution by its likelihood.

    Args:
        measurement: Measurement with its blocks.
        residuals: Residuals.
    """
    size = distances(measurement, residuals)
    best, chosen = -np.inf, _FREEDOMS[-1]
    for freedom in _FREEDOMS:
        stds, _ = scales(measurement, residuals, freedom)
        total = 0.0
        for k, (rows, channel) in enumerate(measurement.blocks):
            d, s = rows.stop - rows.start, stds[channel]
            r = size[np.isfinite(size[:, k]), k]
            constant = lgamma((freedom + d) / 2) - lgamma(freedom / 2) - d / 2 * np.log(freedom * np.pi) - d * np.log(s)
            total += len(r) * constant - (freedom + d) / 2 * float(np.sum(np.log1p((r / s) ** 2 / freedom)))
        if total > best:
            best, chosen = total, freedom
    return chosen


def row_weights(measurement: Measurement, stds: Mapping[str, float], weights: Array) -> Array:
    """Compute the weight of every row of residuals, 1/variance.

    Args:
        measurement: Measurement with its blocks.
        stds: Standard deviation by channel.
        weights: Weights of blocks.
    """
    out = np.zeros((len(weights), max(rows.stop for rows, _ in measurement.blocks)))
    for k, (rows, channel) in enumerate(measurement.blocks):
        out[:, rows] = weights[:, k, None] / stds[channel] ** 2
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
