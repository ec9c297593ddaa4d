"""How well rows determine the parameters: error bars of one preparation of the signals, to compare several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from steelyard.estimation.estimate import Prior
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS
from steelyard.estimation.possible._formulate import Formulation
from steelyard.floating.weighted_fit import _TYPICAL, _description_hessian, _free, _Search
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData

# Relative uncertainty of error bars from the scatter of so many blocks.
_UNSURE = 1.0 / np.sqrt(2.0 * (JACKKNIFE_BLOCKS - 1))


def white_fit(data: RegressionData, base: BaseParameters, prior: Prior | None) -> tuple[Formulation, Array, Array]:
    """Fit all parameters to rows of unit noise; return the program, θ, and the Hessian of the description.

    Args:
        data: Rows.
        base: Base parameters.
        prior: Bodies of the description.
    """
    with one_blas_thread():
        factor = data.factor()
        _, formulation, x, _ = _Search(base, prior, [factor]).fit(factor, np.ones(len(factor.rows)), _TYPICAL)
        return formulation, formulation.theta(x), _description_hessian(formulation.program, x)


@dataclass(frozen=True, eq=False)
class Precision:
    """How well rows determine the parameters.

    Attributes:
        base: Combinations of parameters that the rows determine.
        beta, errors: Free fit of the combinations and its standard errors, which include the scatter between stretches.
        theta: Parameters with a weak weight of the description.
        size: Mean logarithm of the standard errors of θ.
    """

    base: BaseParameters
    beta: Array
    errors: Array
    theta: Array
    size: float

    def distance(self, theta: Array) -> float:
        """Compute the squared difference of parameters from this fit in error bars, relative to its limit (χ² at 5 %).

        The errors of base parameters are correlated: four of them count as one.

        Args:
            theta: All parameters.
        """
        from scipy.special import chdtri

        squares = (self.base.matrix @ theta - self.beta) ** 2 / np.maximum(self.errors, 1e-300) ** 2
        degrees = max(len(squares) / 4.0, 1.0)
        return float(np.mean(squares) * degrees / chdtri(degrees, 0.05))


def precision(data: RegressionData, base: BaseParameters, prior: Prior | None) -> Precision:
    """Compute how well rows of unit noise determine the parameters.

    Args:
        data: Rows.
        base: Base parameters.
        prior: Bodies of the description.
    """
    data.reduction()  # its triangle serves both fits
    formulation, theta, hessian = white_fit(data, base, prior)
    own = formulation.base
    free, covariance, _ = _free(data, own, np.ones(len(data.equations)))
    L = own.matrix @ formulation.lift
    information = L.T @ np.linalg.pinv(covariance, rcond=1e-13, hermitian=True) @ L + hessian
    scale = 1.0 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    inverse = np.linalg.inv(information * scale * scale[:, None] + 1e-12 * np.eye(len(scale))) * scale * scale[:, None]
    variances = np.einsum("ij,jk,ik->i", formulation.lift, inverse, formulation.lift)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    size = float(np.mean(0.5 * np.log(variances[variances > 0.0])))
    return Precision(own, np.asarray(free.beta if free else own.matrix @ theta), errors, theta, size)


def most_precise(fits: Mapping[float, Precision]) -> float:
    """Return the cut-off with the smallest error bars among those without a visible bias [Hz].

    Noise of accelerations and impacts bias the fit of a high cut-off: it differs from the fit of the next lower one by
    more than the error bars of the latter (the idea of Lepski's rule). Where the difference grows again towards lower
    cut-offs, and the bars with it, the low-pass removes and distorts motion. Among bars of about the same size without
    a difference, the lowest cut-off passes the least noise.

    Args:
        fits: Fit of each cut-off [Hz], in rising order.
    """
    order, last = [*fits], np.inf
    while len(order) > 1:
        lower, upper = fits[order[-2]], fits[order[-1]]
        far = lower.distance(upper.theta)
        if far <= 1.0 or (far > last and lower.size > upper.size):
            break
        order.pop()
        last = far
    chosen = order.pop()
    least = min(fits[c].size for c in (*order, chosen))
    if fits[chosen].size > least + _UNSURE:
        chosen = min((*order, chosen), key=lambda c: fits[c].size)
    for below in reversed([c for c in order if c < chosen]):
        if fits[below].size > least + _UNSURE or fits[below].distance(fits[chosen].theta) > 1.0:
            break
        chosen = below
    return chosen
