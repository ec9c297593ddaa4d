"""Error bars of a calibration: covariance of the deviations, and of the tool's position anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.calibration.chain import skews
from steelyard.calibration.deviation_fit import Fit, Problem, reduced
from steelyard.calibration.measurement import by_tip
from steelyard.calibration.weights import block_stds, distances, products, row_weights, shared_error
from steelyard.ground.arrays import Array


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Covariance of the deviations.

    Attributes:
        covariance: Covariance, shape (deviations, deviations).
        informed: Part of each deviation's prior variance that the readings removed, 0 to 1.
        rank: Number of deviations that the readings determine, as a sum of parts.
        by_deviations: Change of the setup per deviation.
    """

    covariance: Array
    informed: Array
    rank: float
    by_deviations: Array

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def uncertainty_of(problem: Problem, fit: Fit) -> Uncertainty:
    """Compute the covariance of the deviations of a fit.

    In directions that the poses determine, the scatter of the residuals gives the covariance. The scatter may differ
    between poses, and the points of one pose may share an error. In the other directions the prior gives the variance.

    Args:
        problem: Poses and parameters.
        fit: Fit.
    """
    measurement, count = problem.measurement, len(fit.values)
    residuals, J = problem.jacobian(fit.setup, fit.values)
    share = shared_error(measurement, residuals, fit.weights)
    clean, weights = np.nan_to_num(residuals), row_weights(measurement, fit.stds, fit.weights) / share
    gram = products(clean, J, weights)
    first = len(gram) - 1 - count
    equations = reduced(gram, fit.values)
    scores = np.einsum("nmp,nm->np", J, weights * clean)
    # The setup follows the deviations, so its scores count with them.
    own = scores[:, first:] + scores[:, :first] @ equations.by_deviations
    precision = 1.0 / fit.variances
    curvature = _curvature(problem, fit, residuals) * equations.gram
    inverse = np.linalg.inv(curvature + np.diag(precision))
    informed = 1.0 - np.diag(
        np.linalg.inv(np.eye(count) + np.sqrt(fit.variances)[:, None] * curvature * np.sqrt(fit.variances))
    )
    rank = float(np.sum(informed))
    readings = (
        float(np.sum(fit.weights > 0.0)) * (measurement.blocks[0][0].stop - measurement.blocks[0][0].start) / share
    )
    correction = readings / max(readings - rank - first, 1.0)
    scatter = correction * (own.T @ own)
    return Uncertainty(inverse @ (scatter + np.diag(precision)) @ inverse, informed, rank, equations.by_deviations)


def _curvature(problem: Problem, fit: Fit, residuals: Array) -> float:
    """Mean curvature of the likelihood over that of the weighted squares: far residuals pull less than their weight."""
    size = np.nan_to_num(distances(problem.measurement, residuals))
    stds, above, below = block_stds(problem.measurement, fit.stds), 0.0, 0.0
    for k, (rows, _) in enumerate(problem.measurement.blocks):
        u = (size[:, k] / stds[:, k]) ** 2
        w = fit.weights[:, k]
        below += float(np.sum(w))
        above += float(np.sum(w * (1.0 - 2.0 * u / (fit.freedom + u) / (rows.stop - rows.start))))
    return max(above / max(below, 1e-300), 0.1)


def tool_stds(fitted: Problem, anywhere: Problem, fit: Fit, uncertainty: Uncertainty) -> tuple[Array, Array]:
    """Compute the standard deviation of the tool's position by the parameters alone, at the fitted poses and elsewhere.

    The sensor and the tool follow the deviations by the fitted poses, and so does the base if the readings do not
    determine it.

    Args:
        fitted: Fitted poses.
        anywhere: Other poses.
        fit: Fit.
        uncertainty: Covariance of the fit.
    """
    if not len(fitted.deviations):
        return np.zeros(len(fitted.postures)), np.zeros(len(anywhere.postures))
    parts = []
    for problem in (fitted, anywhere):
        tips = problem.tips(fit.values, twists=True)
        assert tips.twists is not None
        n, arm = len(problem.postures), tips.rotation @ fit.setup.points[0]
        one = np.broadcast_to(np.eye(3), (n, 3, 3))
        deviated = tips.twists[:, :, problem.deviations.places] * problem.features[:, None]
        names = problem.measurement.setup_names(fit.setup)
        own = [names.index(f"{'tool' if 'tool.x' in names else 'point 1'}.{x}") for x in "xyz"]
        columns = by_tip(one, arm) @ deviated + tips.rotation @ uncertainty.by_deviations[own]
        parts.append((columns, np.concatenate([one, -skews(tips.position + arm)], axis=2)))
    # The pose of the base is also uncertain: remove the part of the errors that a shift of the base explains best in
    # the poses of the fit.
    (inside, base), (outside, other_base) = parts
    follow = np.linalg.lstsq(base.reshape(-1, 6), inside.reshape(-1, inside.shape[2]), rcond=None)[0]
    both = (inside - base @ follow, outside - other_base @ follow)
    first, second = (np.einsum("nip,pq,niq->n", c, uncertainty.covariance, c) for c in both)
    return np.sqrt(np.maximum(first, 0.0)), np.sqrt(np.maximum(second, 0.0))
