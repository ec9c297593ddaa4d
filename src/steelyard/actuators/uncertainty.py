"""`covariance_of`: covariance of a drive's parameters, with residuals that are correlated over time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.actuators.fit_drive import DriveFit
from steelyard.actuators.rollout import Rollouts
from steelyard.ground.arrays import Array

# Residuals with a longer memory than this, in samples, are errors of the model and not noise of the encoder.
_WHITE = 1.5
# Fewest blocks per parameter of the sandwich estimator; with fewer blocks it is too uncertain.
_BLOCKS = 4


def covariance_of(fit: DriveFit, rollouts: Rollouts) -> tuple[Array, float]:
    """Return the covariance of the free parameters, and the memory of the residuals in samples.

    The covariance includes the numerical error of the simulation, estimated by a simulation with twice the step.

    White residuals: the classical covariance. Correlated residuals: the sandwich estimator over blocks that are longer
    than the memory, or, with few blocks, the classical covariance times the memory.

    Args:
        fit: Fit.
        rollouts: Its runs.
    """
    r = fit.residual
    # Score and curvature of the robust loss: its first and second derivative by the residual.
    relative = 1.0 + (r / fit.scale) ** 2
    first, second = r / np.sqrt(relative), relative**-1.5
    j = _without_starts(fit.jacobian, fit.starts, second, rollouts.stretch)
    unit = np.sqrt(np.mean(j**2, axis=0))
    unit = np.where(unit > 0.0, unit, 1.0)
    j = j / unit
    p = j.shape[1]
    hessian = (j * second[:, None]).T @ j
    # A direction without any effect gets a large variance instead of a division by zero.
    values, vectors = np.linalg.eigh(hessian)
    inverse = (vectors / np.maximum(values, 1e-14 * max(float(values[-1]), 1e-300))) @ vectors.T
    memory = _memory(first, rollouts.stretch)
    score = j * first[:, None]
    blocks = _blocks(rollouts.stretch, int(np.ceil(4.0 * memory)))
    count = int(blocks[-1]) + 1
    if memory > _WHITE and count >= _BLOCKS * p:
        sums = np.zeros((count, p))
        np.add.at(sums, blocks, score)
        middle = sums.T @ sums * count / (count - p)
    else:
        middle = score.T @ score * memory * len(r) / max(len(r) - p, 1)
    bias = inverse @ (j * second[:, None]).T @ _numerical_error(fit, rollouts)
    covariance = (inverse @ middle @ inverse + np.outer(bias, bias)) / np.outer(unit, unit)
    return 0.5 * (covariance + covariance.T), memory


def _without_starts(jacobian: Array, starts: Array | None, weight: Array, stretch: Array) -> Array:
    """Remove the part of the sensitivities that first positions and velocities explain as well as the drive."""
    if starts is None:
        return jacobian
    out = jacobian.copy()
    for k in np.unique(stretch):
        rows = np.flatnonzero(stretch == k)
        root = np.sqrt(weight[rows])[:, None]
        own, scaled = root * starts[rows], root * jacobian[rows]
        # A sticking joint has no sensitivity to its first velocity.
        coefficients, *_ = np.linalg.lstsq(own, scaled, rcond=1e-9)
        out[rows] -= starts[rows] @ coefficients
    return out


def memory_of(fit: DriveFit, rollouts: Rollouts) -> float:
    """Return the number of samples over which the residuals of a fit are correlated; 1 for independent ones.

    Args:
        fit: Fit.
        rollouts: Its runs.
    """
    return _memory(fit.residual / np.sqrt(1.0 + (fit.residual / fit.scale) ** 2), rollouts.stretch)


def _numerical_error(fit: DriveFit, rollouts: Rollouts) -> Array:
    fine, _ = rollouts.simulate(fit.structure, fit.values)
    coarse, _ = rollouts.with_step(2.0 * rollouts.step).simulate(fit.structure, fit.values)
    return np.nan_to_num(fine - coarse)


def _memory(residual: Array, stretch: Array) -> float:
    """The integrated autocorrelation of the residuals [samples], up to its first zero."""
    size = min(int(np.min(np.bincount(stretch))), 4000)
    lags = max(size // 3, 1)
    total = np.zeros(lags)
    for k in np.unique(stretch):
        own = residual[stretch == k]
        n = 1 << int(2 * len(own) - 1).bit_length()
        spectrum = np.abs(np.fft.rfft(own, n)) ** 2
        total += np.fft.irfft(spectrum)[:lags]
    if total[0] <= 0.0:
        return 1.0
    correlation = total / total[0]
    negative = np.flatnonzero(correlation <= 0.0)
    end = int(negative[0]) if len(negative) else lags
    return float(max(1.0 + 2.0 * np.sum(correlation[1:end]), 1.0))


def _blocks(stretch: Array, length: int) -> NDArray[np.intp]:
    """The number of the block of each sample; a block does not extend beyond its part of the run."""
    out = np.empty(len(stretch), dtype=np.intp)
    first = 0
    for k in np.unique(stretch):
        own = np.flatnonzero(stretch == k)
        parts = max(len(own) // max(length, 1), 1)
        out[own] = first + np.arange(len(own)) * parts // len(own)
        first += parts
    return out
