"""Error bars that hold for correlated residuals: the sandwich covariance with a noise spectrum per joint.

Least squares gives β̂ − β = H⁻¹ Σ_e w_e² A_eᵀ u_e with H = Σ_e w_e² A_eᵀA_e, so that

    cov β̂ = H⁻¹ (Σ_e w_e⁴ A_eᵀ C_e A_e) H⁻¹,     C_e = cov u_e.

Residuals of robots are not white: C_e differs from σ²·1, and standard errors from white noise are too small by factors.
A stationary C_e is diagonal in frequency (Hannan 1963, "Regression for time series"), so A_eᵀC_eA_e = Σ_b S_b G_b with
the noise power S_b in frequency band b and G_b the part of A_eᵀA_e in that band; both come from the Fourier
transforms of gap-free blocks. With a single band this is the textbook formula. The estimated powers are unbiased: the
fit reduces the residuals in the bands of the columns and mixes the joints; the expected residual power is
I_i = Σ_j T_ij S_j with known T, and this system is solved for S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.data import RegressionData
from steelyard.regression.spectra import Spectra
from steelyard.regression.unknowns import Columns

# Influence of a residual on the estimate, ψ(u), and the mean slope ψ': (equation, residuals) → (ψ, ψ'). None: ψ(u) = u.
Influence = Callable[[int, Array], tuple[Array, Array]]

# Bands are merged from the lowest until each has this many degrees of freedom. A small number keeps the lowest band
# narrow, where noise and columns are strongest; chosen by coverage (docs/theory/error-bars.md).
_BAND_DEGREES = 6.0
# Lower limit of the degrees of freedom (the variance factor ν/(ν−2) is infinite at 2).
_MIN_DEGREES = 4.0
# Scaled powers are about one; beyond this the iteration has left every sensible solution.
_DIVERGED = 1e9
# Largest number of sweeps for the powers, and the relative change that ends the iteration.
_MAX_SWEEPS, _SWEEP_TOLERANCE = 200, 1e-6


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of base parameters.

    Attributes:
        matrix: The covariance. Its variances are those of Student's t, ν/(ν−2) times the plain ones, so that two
            standard errors have their usual meaning.
        white: Covariance for residuals without correlation in time.
        degrees: Degrees of freedom ν of each variance (Satterthwaite).
    """

    matrix: Array
    white: Array
    degrees: Array

    @property
    def inflation(self) -> Array:
        """Ratio of each variance to that of white residuals of the same size."""
        white = np.diag(self.white)
        return np.divide(np.diag(self.matrix), white, out=np.ones_like(white), where=white > 0.0)

    def details(self) -> dict[str, Any]:
        return {"inflation": tuple(self.inflation.tolist()), "degrees_of_freedom": tuple(self.degrees.tolist())}


@dataclass(eq=False)
class _Band:
    """One frequency band of one equation: number of real Fourier coefficients, their power, Gram matrix of the
    columns."""

    equation: int
    count: float
    power: float
    gram: Array

    def __iadd__(self, other: _Band) -> _Band:
        self.count += other.count
        self.power += other.power
        self.gram = self.gram + other.gram
        return self


def covariance(
    data: RegressionData,
    base: Columns,
    beta: Array,
    weights: Array,
    influence: Influence | None = None,
    bread: Array | None = None,
    best: tuple[Array, Array] | None = None,
) -> Covariance:
    """Compute the covariance of base parameters.

    Args:
        data: Rows of the fit.
        base: Columns of the base parameters.
        beta: Estimated base parameters.
        weights: Weight of each equation in the fit (1/σ).
        influence: ψ of a robust fit.
        bread: Replacement of H, if the estimator's equations have another matrix.
        best: β and weights of a better fit, whose residuals define the noise. Under equal weights the noisiest joint
            would leak into the residuals of the others.
    """
    with one_blas_thread():
        best_beta, best_weights = (beta, weights) if best is None else best
        bands, slopes = _bands(data, base, best_beta, influence)
        square, best_square = weights**2, best_weights**2
        outer = _inverse(_normal(bands, square * slopes) if bread is None else bread)
        inverse = _inverse(_normal(bands, best_square * slopes))
        merged = _merge(bands, best_square * slopes, inverse)
        power, free = _powers(merged, best_square, slopes, inverse)
        parts = np.array(
            [square[b.equation] ** 2 * s * (outer @ b.gram @ outer) for b, s in zip(merged, power, strict=True)]
        )
        flat = _white(merged, power)
        white = sum(
            (square[b.equation] ** 2 * flat[b.equation] * (outer @ b.gram @ outer) for b in merged),
            np.zeros_like(outer),
        )
    matrix = parts.sum(axis=0)
    own = np.array([np.diag(p) for p in parts])
    total = own.sum(axis=0)
    scatter = np.sum(own**2 / free[:, None], axis=0)
    degrees = np.divide(total**2, scatter, out=np.full_like(total, free.sum()), where=scatter > 0.0)
    degrees = np.maximum(degrees, _MIN_DEGREES)
    wider = np.sqrt(degrees / (degrees - 2.0))
    return Covariance(0.5 * (matrix + matrix.T) * wider * wider[:, None], white, degrees)


def score_covariances(spectra: Spectra, base: Columns, beta: Array, weights: Array, inverse: Array) -> Array:
    """Compute the covariances of the scores w²Aᵀu of every equation for noise of this spectrum.

    Args:
        spectra: Spectra of the rows.
        base: Columns of interest.
        beta: Parameters of these columns, whose residuals define the noise.
        weights: 1/σ of each equation.
        inverse: H⁻¹ of the fit of `beta`, or an approximation of it.

    Returns:
        Covariances, shape (equations, rank, rank).
    """
    with one_blas_thread():
        square = weights**2
        merged = _merge(_from_spectra(spectra, base, beta), square, inverse)
        power, _ = _powers(merged, square, np.ones(len(weights)), inverse, quick=True)
        out = np.zeros((len(weights), base.rank, base.rank))
        for band, s in zip(merged, power, strict=True):
            out[band.equation] += square[band.equation] ** 2 * s * band.gram
    return out


def _normal(bands: list[_Band], weights: Array) -> Array:
    """H = Σ w AᵀA over all bands."""
    return np.asarray(sum(weights[b.equation] * b.gram for b in bands))


def _bands(data: RegressionData, base: Columns, beta: Array, influence: Influence | None) -> tuple[list[_Band], Array]:
    """Power of the residuals and Gram matrices of the columns by equation and band, and the mean slopes ψ'."""
    if influence is None:
        return _from_spectra(data.reduction().spectra, base, beta), np.ones(len(data.equations))
    shaped = Spectra(data.equations)
    slope, rows = np.zeros(len(data.equations)), np.zeros(len(data.equations))
    for block in data.blocks():
        e = block.equation
        own, where = data.equations[e].among(base.independent)
        residual, slopes = influence(e, block.y - block.A[:, own] @ beta[where])
        slope[e] += slopes.sum()
        rows[e] += len(block.y)
        shaped.add(e, np.column_stack([block.A, residual]))
    return _from_spectra(shaped, base, np.zeros_like(beta)), slope / np.maximum(rows, 1.0)


def _from_spectra(spectra: Spectra, base: Columns, beta: Array) -> list[_Band]:
    """Return, for each equation, frequency bands with the power of the residuals y − Aβ."""
    out = []
    keys = sorted(spectra.grams)
    for e, equation in enumerate(spectra.equations):
        mine = [key for key in keys if key[0] == e]
        if not mine:
            continue
        own, where = equation.among(base.independent)
        whole = np.array([spectra.grams[key] for key in mine])
        grams = np.zeros((len(mine), base.rank, base.rank))
        grams[np.ix_(range(len(mine)), where, where)] = whole[np.ix_(range(len(mine)), own, own)]
        direction = np.zeros(equation.width)
        direction[own], direction[-1] = -beta[where], 1.0
        powers = np.maximum(whole @ direction @ direction, 0.0)
        out += [_Band(e, spectra.counts[key], float(s), g) for key, s, g in zip(mine, powers, grams, strict=True)]
    return out


def _merge(bands: list[_Band], leverage: Array, inverse: Array) -> list[_Band]:
    """Merge neighbouring bands of an equation from low to high until each has enough degrees of freedom."""
    used = np.array([b.gram for b in bands]).reshape(len(bands), -1) @ inverse.ravel()
    free = [b.count - float(leverage[b.equation] * u) for b, u in zip(bands, used, strict=True)]  # not used by the fit
    out: list[tuple[_Band, float]] = []
    for band, own in zip(bands, free, strict=True):
        if out and out[-1][0].equation == band.equation and out[-1][1] < _BAND_DEGREES:
            last, before = out.pop()
            last += band
            out.append((last, before + own))
        else:
            out.append((_Band(band.equation, band.count, band.power, band.gram), own))
    merged: list[_Band] = []
    for band, own in out:  # a last band that is too small is merged into the one below
        if merged and merged[-1].equation == band.equation and own < _BAND_DEGREES:
            merged[-1] += band
        else:
            merged.append(band)
    return merged


def _powers(
    bands: list[_Band], square: Array, slopes: Array, inverse: Array, quick: bool = False
) -> tuple[Array, Array]:
    """Unbiased noise power of every band, and its degrees of freedom; `quick` clips negative powers to zero.

    The residuals are u_i − m_i A_i H⁻¹ Σ_j w_j² A_jᵀu_j (m: mean slope of ψ); T gives their expected power.
    """
    projections = inverse @ np.array([b.gram for b in bands])
    w2 = np.array([square[b.equation] for b in bands])
    m = np.array([slopes[b.equation] for b in bands])
    count = np.array([b.count for b in bands])
    own = np.trace(projections, axis1=1, axis2=2)
    free = np.maximum(count - m * w2 * own, 1.0)
    flat = projections.reshape(len(bands), -1)
    traces = flat @ projections.transpose(0, 2, 1).reshape(len(bands), -1).T
    T = m[:, None] ** 2 * traces * w2**2
    T[np.diag_indices(len(bands))] += count - 2.0 * m * w2 * own
    observed = np.array([b.power for b in bands])
    scale = np.where(observed > 0.0, observed / free, 1.0)  # powers of joints and bands differ by decades
    T = T * scale / scale[:, None]
    if not quick:
        return _nonnegative_solution(T, observed / scale) * scale, free
    return np.maximum(np.linalg.lstsq(T, observed / scale, rcond=None)[0], 0.0) * scale, free


def _nonnegative_solution(T: Array, observed: Array) -> Array:
    """Powers s ≥ 0 with (T s)ᵢ = observedᵢ wherever sᵢ > 0, by Gauss-Seidel iteration.

    A nonnegative plain solution of T s = observed is used directly. Otherwise some bands have less power than the fit
    is expected to transfer into them from others, and their own power is zero. Least squares over s ≥ 0 would reduce
    the others instead, because a band with a millionth of their power outweighs them in relative terms, and standard
    errors came out too small by factors of a hundred.
    """
    try:
        plain = np.linalg.solve(T, observed)
        if plain.min(initial=0.0) >= 0.0:
            return np.asarray(plain)
    except np.linalg.LinAlgError:
        pass
    # Almost as many parameters as rows: bands cannot be told apart, so each has the power of its residuals.
    alike = np.asarray(observed > 0.0, dtype=float)
    if np.diag(T).min(initial=1.0) <= 1e-9:
        return alike
    own = np.diag(T)
    power = np.maximum(observed / own, 0.0)
    # The bands that transfer most power into others come first.
    order = np.argsort(np.sum(T, axis=1))
    for _ in range(_MAX_SWEEPS):
        before = power.copy()
        for k in order:
            power[k] = max(power[k] + (observed[k] - T[k] @ power) / own[k], 0.0)
        if power.max(initial=0.0) > _DIVERGED:
            return alike
        if np.all(np.abs(power - before) <= _SWEEP_TOLERANCE * np.maximum(power, before)):
            break
    return np.asarray(power)


def _white(bands: list[_Band], power: Array) -> Array:
    """Mean noise power of every equation."""
    total = np.zeros(max(b.equation for b in bands) + 1)
    count = np.zeros_like(total)
    for band, s in zip(bands, power, strict=True):
        total[band.equation] += s * band.count
        count[band.equation] += band.count
    return total / np.maximum(count, 1.0)


def _inverse(H: Array) -> Array:
    """Compute H⁻¹; for accuracy, H is scaled to a unit diagonal before the inversion."""
    scale = 1.0 / np.sqrt(np.diag(H))
    try:
        return np.asarray(np.linalg.inv(H * scale * scale[:, None]) * scale * scale[:, None])
    except np.linalg.LinAlgError as error:
        raise EstimationError(
            "Not all base parameters are identifiable from the data; error bars are not available."
        ) from error


def relative_standard_deviations(estimate: Estimate) -> Array:
    """Compute the standard errors of an `estimate` in percent of the values; infinite for a value of zero."""
    size = np.abs(estimate.beta)
    return np.asarray(
        np.divide(100.0 * estimate.standard_errors, size, out=np.full_like(size, np.inf), where=size > 0.0)
    )


def confidence_intervals(estimate: Estimate, level: float = 0.95) -> Array:
    """Compute confidence intervals of the base parameters with t quantiles.

    Args:
        estimate: The estimate.
        level: Probability of the intervals, 0 to 1.

    Returns:
        Lower and upper ends, shape (rank, 2).
    """
    from scipy.special import stdtrit  # takes a fifth of a second to import

    if not 0.0 < level < 1.0:
        raise EstimationError(f"level is {level}; it must be between 0 and 1, such as 0.95.")
    degrees = np.asarray(estimate.details.get("degrees_of_freedom", np.full(len(estimate.beta), 1e9)), dtype=float)
    plain = estimate.standard_errors * np.sqrt((degrees - 2.0) / degrees)
    half = stdtrit(degrees, 0.5 + 0.5 * level) * plain
    return np.stack([estimate.beta - half, estimate.beta + half], axis=1)
