"""`nearest_possible`: the robot that can exist nearest to an estimate, by the estimate's own error bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.possible.boundary import boundary_shares
from steelyard.estimation.possible.formulate import formulate
from steelyard.estimation.possible.interior import solve_interior
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.blas import one_blas_thread


def nearest_possible(
    estimate: Estimate, prior: Prior | None = None, *, strength: float = 0.05, margin: float = 1e-6
) -> Estimate:
    """min ½(β − β̂)ᵀ Σ⁻¹ (β − β̂) + strength·(log-det divergence from the reference bodies), pseudo-inertias ≻ 0.

    A physically consistent form for estimators that have none of their own: instruments, likelihood.
    What `PhysicallyConsistent` does with the triangle of the rows is done with the covariance Σ of any estimate; for
    weighted least squares with white residuals the two are the same. The error bars are those of the free estimate.
    """
    base = estimate.base
    with one_blas_thread():
        errors = estimate.standard_errors
        if not np.all(np.isfinite(errors)) or not np.all(errors > 0.0):
            raise EstimationError("The estimate has no error bars, and nearness cannot be measured without.")
        correlation = estimate.covariance / np.outer(errors, errors)
        values, vectors = np.linalg.eigh(correlation)
        # Rounding leaves directions of no variance at all; nothing is known better than to a millionth.
        roots = 1.0 / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        R = (vectors * roots).T / errors
        made = formulate(base, R, estimate.beta, prior, strength, margin, None, {})
        found = solve_interior(made.program)
    theta = made.theta(found.x)
    smallest = smallest_pseudo_eigenvalues(theta[: 10 * len(base.robot.links)])
    if smallest.min() <= 0.0:
        raise EstimationError(f"Link '{base.robot.links[int(smallest.argmin())].name}' came out impossible.")
    beta = base.values(theta)
    rise = float(np.sum((R @ (beta - estimate.beta)) ** 2))
    shares = boundary_shares(made, found.x)
    result = estimate.result
    if not found.converged:
        result = Result.NOT_CONVERGED
    elif shares and result is Result.CONVERGED:
        result = Result.BOUNDARY
    details = {**estimate.details, "free_beta": estimate.beta, "cost_rise": rise, "boundary": shares}
    return replace(
        estimate, beta=beta, theta=theta, physical=True, result=result, details=details,
        notes=(*estimate.notes, *made.notes),
    )  # fmt: skip
