"""Error bars that hold for correlated residuals: the sandwich covariance with a noise spectrum per joint.

Least squares gives β̂ − β = H⁻¹ Σ_e w_e² A_eᵀ u_e with H = Σ_e w_e² A_eᵀA_e, so that

    cov β̂ = H⁻¹ (Σ_e w_e⁴ A_eᵀ C_e A_e) H⁻¹,     C_e = cov u_e.

Residuals of robots are not white: C_e is far from σ²·1, and error bars that say otherwise are too short by factors.
A stationary C_e is diagonal in frequency (Hannan 1963, "Regression for time series"), so A_eᵀC_eA_e = Σ_b S_b G_b with
the noise power S_b in frequency band b and G_b the part of A_eᵀA_e in that band; both come from the Fourier
transforms of gap-free blocks. A single band is the textbook formula. The powers are estimated without bias: the fit
takes noise out of the residuals just where the columns live, and mixes the joints; with the expected residual power
I_i = Σ_j T_ij S_j, T known, the system is solved for S.
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

# What a residual does to the estimate, ψ(u), and the mean slope ψ': (equation, residuals) → (ψ, ψ'). None: ψ(u) = u.
Influence = Callable[[int, Array], tuple[Array, Array]]

# Bands are joined from below until so many degrees of freedom are left in each. Few keep the lowest band narrow, where
# noise is strongest and the columns live; chosen by coverage (docs/theory/error-bars.md).
_DEGREES = 6.0
# Fewer degrees of freedom than this are not believed (a variance of ν/(ν−2) times another is infinite at 2).
_FEWEST = 4.0
# Rounds of the iteration for the powers at most, and the relative change at which it ends.
_SWEEPS, _SETTLED = 200, 1e-6


@dataclass(frozen=True, eq=False)
class Covariance:
    """`matrix` for the base parameters; `white` is what it would be if residuals were not correlated in time.

    `degrees` are the degrees of freedom ν of each variance (Satterthwaite). `matrix` allows for them: its variances are
    those of Student's t, ν/(ν−2) times the plain ones, so that twice the standard error is what it is taken for.
    """

    matrix: Array
    white: Array
    degrees: Array

    @property
    def inflation(self) -> Array:
        """Variance of each parameter over what white residuals of the same size would give."""
        white = np.diag(self.white)
        return np.divide(np.diag(self.matrix), white, out=np.ones_like(white), where=white > 0.0)

    def details(self) -> dict[str, Any]:
        return {"inflation": tuple(self.inflation.tolist()), "degrees_of_freedom": tuple(self.degrees.tolist())}


@dataclass(eq=False)
class _Band:
    """One frequency band of one equation: how many real Fourier coefficients, their power, their columns."""

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
    sharpest: tuple[Array, Array] | None = None,
) -> Covariance:
    """The covariance of base parameters `beta` that were found with `weights` (1/σ per equation) from `data`.

    `base` says which columns they are. `influence` is the ψ of a robust fit. `bread` replaces H where the estimator's
    equations have another matrix. `sharpest`: β and weights of a better fit, whose residuals tell the noise: under
    equal weights the noisiest joint leaks into the residuals of all others.
    """
    with one_blas_thread():
        best, best_weights = (beta, weights) if sharpest is None else sharpest
        bands, slopes = _bands(data, base, best, influence)
        square, best_square = weights**2, best_weights**2
        outer = _inverse(_normal(bands, square * slopes) if bread is None else bread)
        inverse = _inverse(_normal(bands, best_square * slopes))
        merged = _merge(bands, best_square * slopes, inverse)
        power, left = _powers(merged, best_square, slopes, inverse)
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
    scatter = np.sum(own**2 / left[:, None], axis=0)
    degrees = np.divide(total**2, scatter, out=np.full_like(total, left.sum()), where=scatter > 0.0)
    degrees = np.maximum(degrees, _FEWEST)
    wider = np.sqrt(degrees / (degrees - 2.0))
    return Covariance(0.5 * (matrix + matrix.T) * wider * wider[:, None], white, degrees)


def score_covariances(spectra: Spectra, base: Columns, beta: Array, weights: Array, inverse: Array) -> Array:
    """The covariances of the scores w²Aᵀu of every equation, `(equations, rank, rank)`, for noise of this spectrum.

    Args:
        spectra: of the rows.
        base: which columns are looked at.
        beta: their parameters, whose residuals tell the noise.
        weights: 1/σ of each equation.
        inverse: H⁻¹ of the fit that `beta` came from, or what the rows show of it.
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
    """Power of the residuals and Gram matrices of the columns, by equation and band; and the mean slopes ψ'."""
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
    """The bands with the power of y − Aβ in each."""
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
        way = np.zeros(equation.width)
        way[own], way[-1] = -beta[where], 1.0
        powers = np.maximum(whole @ way @ way, 0.0)
        out += [_Band(e, spectra.counts[key], float(s), g) for key, s, g in zip(mine, powers, grams, strict=True)]
    return out


def _merge(bands: list[_Band], leverage: Array, inverse: Array) -> list[_Band]:
    """Join neighbouring bands of an equation, from low to high, until each keeps enough degrees of freedom."""
    used = np.array([b.gram for b in bands]).reshape(len(bands), -1) @ inverse.ravel()
    left = [b.count - float(leverage[b.equation] * u) for b, u in zip(bands, used, strict=True)]  # by the fit
    out: list[tuple[_Band, float]] = []
    for band, own in zip(bands, left, strict=True):
        if out and out[-1][0].equation == band.equation and out[-1][1] < _DEGREES:
            last, before = out.pop()
            last += band
            out.append((last, before + own))
        else:
            out.append((_Band(band.equation, band.count, band.power, band.gram), own))
    merged: list[_Band] = []
    for band, own in out:  # a last band that is too small goes to the one below
        if merged and merged[-1].equation == band.equation and own < _DEGREES:
            merged[-1] += band
        else:
            merged.append(band)
    return merged


def _powers(
    bands: list[_Band], square: Array, slopes: Array, inverse: Array, quick: bool = False
) -> tuple[Array, Array]:
    """Noise power of every band without bias, and its degrees of freedom; `quick`: what comes out negative is zero.

    The residuals are u_i − m_i A_i H⁻¹ Σ_j w_j² A_jᵀu_j (m: mean slope of ψ), of which the expected power is taken.
    """
    projections = inverse @ np.array([b.gram for b in bands])
    w2 = np.array([square[b.equation] for b in bands])
    m = np.array([slopes[b.equation] for b in bands])
    count = np.array([b.count for b in bands])
    own = np.trace(projections, axis1=1, axis2=2)
    left = np.maximum(count - m * w2 * own, 1.0)
    flat = projections.reshape(len(bands), -1)
    traces = flat @ projections.transpose(0, 2, 1).reshape(len(bands), -1).T
    T = m[:, None] ** 2 * traces * w2**2
    T[np.diag_indices(len(bands))] += count - 2.0 * m * w2 * own
    seen = np.array([b.power for b in bands])
    scale = np.where(seen > 0.0, seen / left, 1.0)  # powers of joints and bands differ by decades
    T = T * scale / scale[:, None]
    if not quick:
        return _no_less_than_zero(T, seen / scale) * scale, left
    return np.maximum(np.linalg.lstsq(T, seen / scale, rcond=None)[0], 0.0) * scale, left


def _no_less_than_zero(T: Array, seen: Array) -> Array:
    """Powers s ≥ 0 with (T s)ᵢ = seenᵢ wherever sᵢ > 0, by Gauss and Seidel's iteration.

    Where the plain solution of T s = seen is not negative, it is the answer. Otherwise some bands show less power than
    what the fit is expected to carry into them from others: these have none of their own. Least squares over s ≥ 0
    would take it from the others instead: a band with a millionth of their power outweighs them in relative terms, and
    error bars came out too short by factors of a hundred.
    """
    try:
        plain = np.linalg.solve(T, seen)
        if plain.min(initial=0.0) >= 0.0:
            return np.asarray(plain)
    except np.linalg.LinAlgError:
        pass
    own = np.maximum(np.diag(T), 1e-300)
    power = np.maximum(seen / own, 0.0)
    # What a band carries into others is what scales put there: those that give most come first.
    order = np.argsort(np.sum(T, axis=1))
    for _ in range(_SWEEPS):
        before = power.copy()
        for k in order:
            power[k] = max(power[k] + (seen[k] - T[k] @ power) / own[k], 0.0)
        if np.all(np.abs(power - before) <= _SETTLED * np.maximum(power, before)):
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
    """H⁻¹, columns scaled to one."""
    scale = 1.0 / np.sqrt(np.diag(H))
    try:
        return np.asarray(np.linalg.inv(H * scale * scale[:, None]) * scale * scale[:, None])
    except np.linalg.LinAlgError as error:
        raise EstimationError("The data do not show all base parameters; no error bars can be given.") from error


def relative_standard_deviations(estimate: Estimate) -> Array:
    """Standard error of each base parameter of `estimate` in percent of its value; infinite where the value is zero."""
    size = np.abs(estimate.beta)
    return np.asarray(
        np.divide(100.0 * estimate.standard_errors, size, out=np.full_like(size, np.inf), where=size > 0.0)
    )


def confidence_intervals(estimate: Estimate, level: float = 0.95) -> Array:
    """Lower and upper end for each base parameter of `estimate`, `(rank, 2)`, at `level` (of 1), with t quantiles."""
    from scipy.special import stdtrit  # takes a fifth of a second to import

    if not 0.0 < level < 1.0:
        raise EstimationError(f"level is {level}; give a number between 0 and 1, such as 0.95.")
    given = estimate.details.get("degrees_of_freedom", np.full(len(estimate.beta), 1e9))
    degrees = np.asarray(given, dtype=float)
    plain = estimate.standard_errors * np.sqrt((degrees - 2.0) / degrees)
    half = stdtrit(degrees, 0.5 + 0.5 * level) * plain
    return np.stack([estimate.beta - half, estimate.beta + half], axis=1)
