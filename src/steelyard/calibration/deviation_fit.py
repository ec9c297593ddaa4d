"""`fit_deviations`: Gauss–Newton over setup and deviations, with robust weights and priors from the data.

Residuals are weighted as those of Student's t, whose degrees of freedom come from the data. The deviations of a group
have a normal prior around zero with a variance estimated from the data (MacKay 1992, "Bayesian interpolation"). A group
that the poses do not excite gets a small variance and keeps the nominal geometry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from steelyard.calibration.chain import ALONG, Tips
from steelyard.calibration.joint_effects import Deviations, Postures
from steelyard.calibration.measurement import Measurement, Setup
from steelyard.calibration.weights import (
    best_freedom,
    block_stds,
    distances,
    products,
    row_weights,
    scales,
    shared_error,
    spent_readings,
    without_spent,
)
from steelyard.ground.arrays import Array, RowSelection

_ROUNDS, _HALVINGS = 40, 12
_PRIOR_ROUNDS = 30
_FIRST_ROUNDS = 3
# Degrees of freedom of the first steps: robust against wrong readings while the fit is far from its end.
_FIRST_FREEDOM = 3.0
# A step below this part of a standard error ends the search.
_SMALL_STEP = 0.02
# Part of the diagonal added to unobservable directions, such as a tool point along the axis of a single joint.
_RIDGE = 1e-12
# Displacement of the tool by a typical deviation, relative to its distance: links are manufactured to a thousandth,
# zeros are set by marks to tenths of a degree, gears and encoders are accurate to a ten-thousandth. The data may change
# the size of a group of deviations; the typical size counts as this many parameters of the group.
_TYPICAL = {"offsets": 3e-3, "axes": 1e-3}
_TYPICAL_SMALL, _TYPICAL_COUNT = 1e-4, 1.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Poses with their readings, and the deviations to fit.

    Attributes:
        deviations: Parameters.
        postures: Postures.
        features: Features of the parameters.
        measurement: Readings.
    """

    deviations: Deviations
    postures: Postures
    features: Array
    measurement: Measurement

    @classmethod
    def of(cls, deviations: Deviations, postures: Postures, measurement: Measurement) -> Problem:
        """Join deviations with data.

        Args:
            deviations: Parameters.
            postures: Postures.
            measurement: Readings.
        """
        return cls(deviations, postures, deviations.features(postures), measurement)

    def rows(self, rows: RowSelection) -> Problem:
        """Select poses by index or mask (`rows`)."""
        return replace(
            self,
            postures=self.postures.rows(rows),
            features=self.features[rows],
            measurement=self.measurement.rows(rows),
        )

    def tips(self, values: Array, twists: bool = False) -> Tips:
        """Compute the poses of the tool.

        Args:
            values: Values of the deviations.
            twists: Also compute the derivatives.
        """
        corrections = self.deviations.corrections(values, self.features)
        return self.deviations.chain.tips(self.postures.q, corrections, twists)

    def residuals(self, setup: Setup, values: Array) -> Array:
        """Compute predicted minus measured readings.

        Args:
            setup: Setup.
            values: Values of the deviations.
        """
        return self.measurement.residuals(setup, self.tips(values))

    def jacobian(self, setup: Setup, values: Array) -> tuple[Array, Array]:
        """Compute residuals and their derivatives, shape (poses, rows, setup numbers + deviations).

        Args:
            setup: Setup.
            values: Values of the deviations.
        """
        tips = self.tips(values, twists=True)
        assert tips.twists is not None
        linear = self.measurement.linear(setup, tips)
        columns = tips.twists[:, :, self.deviations.places] * self.features[:, None]
        return self.measurement.residuals(setup, tips), np.concatenate(
            [linear.by_setup, linear.by_twist @ columns], axis=2
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted setup and deviations.

    Attributes:
        setup: Setup.
        values: Values of the deviations.
        variances: Prior variance of each deviation.
        stds: Residual standard deviation of each channel [m, rad].
        freedom: Degrees of freedom of the residuals' distribution.
        weights: Weight of every pose and block, from 0 to about 1.
        spent: Number of readings of each channel that setup and deviations use up.
    """

    setup: Setup
    values: Array
    variances: Array
    stds: Mapping[str, float]
    freedom: float
    weights: Array
    spent: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Reduced:
    """Linear equations of the deviations alone, and the setup that follows from them.

    Attributes:
        gram: JᵀWJ of the deviations, after elimination of the setup.
        gradient: JᵀW y.
        by_deviations: Change of the setup per deviation.
        at_zero: Setup's step without deviations.
    """

    gram: Array
    gradient: Array
    by_deviations: Array
    at_zero: Array


def reduced(gram: Array, values: Array) -> Reduced:
    """Eliminate the setup from the normal equations.

    Args:
        gram: Products of `products`, the setup's columns first.
        values: Values of the deviations for these products.
    """
    first = len(gram) - 1 - len(values)
    cross, beyond = gram[:first, first:-1], gram[first:-1, first:-1]
    # Readings minus predictions, as they would be without deviations.
    y = gram[:-1, first:-1] @ values - gram[:-1, -1]
    size = np.sqrt(np.maximum(np.diag(gram)[:first], 1e-300))
    s, v = np.linalg.eigh(gram[:first, :first] / np.outer(size, size))
    regular = s > _RIDGE * s[-1]
    v = v[:, regular] / size[:, None]
    solution = v / s[regular] @ (v.T @ np.column_stack([cross, y[:first]]))
    return Reduced(
        beyond - cross.T @ solution[:, :-1], y[first:] - cross.T @ solution[:, -1], -solution[:, :-1], solution[:, -1]
    )


def prior_variances(
    deviations: Deviations,
    equations: Reduced,
    variances: Array,
    typical: Array,
    rounds: int = _PRIOR_ROUNDS,
    lengths: bool = True,
) -> tuple[Array, Array]:
    """Estimate the prior variance of every group, and the deviations with them.

    Args:
        deviations: Parameters.
        equations: Linear equations.
        variances: First prior variances.
        typical: Variances that are typical of robots; they count as much as `_TYPICAL_COUNT` parameters.
        rounds: Number of rounds.
        lengths: Whether the readings have a length; without one, a robot shrunk to a point would fit best.

    Returns:
        Prior variances, and the values of the deviations.
    """
    members = [np.array(m) for m in groups(deviations).values()]
    H, b = equations.gram, equations.gradient
    variances = variances.copy()
    fixed = [k for k, p in enumerate(deviations.parameters) if p.group == "axis places" and not lengths]
    variances[fixed] = typical[fixed]
    for turn in range(rounds + 1):
        root = np.sqrt(variances)
        inverse = _inverse(np.eye(len(H)) + root[:, None] * H * root)
        x = root * (inverse @ (root * b))
        before = variances.copy()
        if turn == rounds:
            break
        for own in members:
            # MacKay's update is faster than that of expectation and maximisation, and has the same fixed point.
            informed = max(float(np.sum(1.0 - np.diag(inverse)[own])), 0.0)
            sizes = float(np.sum(x[own] ** 2 / typical[own]))
            if own[0] not in fixed:
                variances[own] = typical[own] * (sizes + _TYPICAL_COUNT) / (informed + _TYPICAL_COUNT)
        if np.max(np.abs(np.log(variances / before)), initial=0.0) < 1e-2:
            break
    return variances, np.asarray(x)


def _inverse(matrix: Array) -> Array:
    """Inverse of the identity plus a matrix without negative eigenvalues, which few exact poses make very large."""
    try:
        return np.asarray(np.linalg.inv(matrix), dtype=float)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors / np.maximum(values, 1.0) @ vectors.T, dtype=float)


def groups(deviations: Deviations) -> dict[str, list[int]]:
    """Return the indices of the parameters of every group of `deviations`."""
    out: dict[str, list[int]] = {}
    for k, p in enumerate(deviations.parameters):
        out.setdefault(p.group, []).append(k)
    return out


def fit_deviations(problem: Problem, setup: Setup, values: Array | None = None, variances: Array | None = None) -> Fit:
    """Fit setup and deviations to the readings.

    Args:
        problem: Poses, readings and parameters.
        setup: First setup.
        values: First values of the deviations; default: zero.
        variances: First prior variances; default: wide.
    """
    p, measurement = problem.deviations, problem.measurement

    x = np.zeros(len(p)) if values is None else values.copy()
    freedom = _FIRST_FREEDOM
    typical = typical_variances(problem)
    # At first wide, ten times the typical size, so that nothing is forced.
    prior = 100.0 * typical if variances is None else variances
    spent: dict[str, float] = {}
    for turn in range(_ROUNDS):
        residuals, J = problem.jacobian(setup, x)
        free = without_spent(measurement, residuals, spent)
        if turn in (_FIRST_ROUNDS - 1, _FIRST_ROUNDS + 1, _FIRST_ROUNDS + 3):
            freedom = best_freedom(measurement, free, spent)
        stds, weights = scales(measurement, free, freedom)
        share = shared_error(measurement, residuals, weights)
        rows = row_weights(measurement, stds, weights) / share
        gram = products(np.nan_to_num(residuals), J, rows)
        equations = reduced(gram, x)
        # The residuals equal the noise only near the solution, which the first steps reach.
        prior, solution = prior_variances(
            p, equations, prior, typical, 0 if turn < _FIRST_ROUNDS else _PRIOR_ROUNDS, measurement.has_length
        )
        used = spent_readings(measurement, J, rows, gram, 1.0 / prior)
        spent = {channel: share * count for channel, count in used.items()}
        step = np.concatenate([equations.at_zero + equations.by_deviations @ solution, solution - x])
        change = float(np.sqrt(max(step @ gram[:-1, :-1] @ step, 0.0) / len(step)))
        longest = _longest_turn(measurement, setup, step)
        part = min(1.0, 0.5 / max(longest, 1e-12))
        here = _objective(problem, residuals, x, stds, freedom, share, prior)
        for _ in range(_HALVINGS):
            trial = measurement.moved(setup, part * step[: len(step) - len(p)])
            x_trial = x + part * step[len(step) - len(p) :]
            if _objective(problem, problem.residuals(trial, x_trial), x_trial, stds, freedom, share, prior) <= here:
                setup, x = trial, x_trial
                break
            part /= 2.0
        else:
            break
        if change < _SMALL_STEP and turn > _FIRST_ROUNDS + 3:
            break
    free = without_spent(measurement, problem.residuals(setup, x), spent)
    stds, weights = scales(measurement, free, freedom)
    return Fit(setup, x, prior, stds, freedom, weights, spent)


def _objective(
    problem: Problem,
    residuals: Array,
    values: Array,
    stds: Mapping[str, float],
    freedom: float,
    share: float,
    prior: Array,
) -> float:
    """Minus the logarithm of the posterior density, up to a constant."""
    size = distances(problem.measurement, residuals)
    relative, total = size / block_stds(problem.measurement, stds), 0.0
    for k, (rows, _) in enumerate(problem.measurement.blocks):
        r = relative[np.isfinite(size[:, k]), k]
        total += (freedom + rows.stop - rows.start) / 2.0 * float(np.sum(np.log1p(r**2 / freedom)))
    return total / share + 0.5 * float(np.sum(values**2 / prior))


def typical_variances(problem: Problem) -> Array:
    """Compute the variances of typical deviations of a `problem`, in the units of the parameters."""
    size = problem.deviations.chain.size
    scale = np.sqrt(np.mean(problem.features**2, axis=0))
    out = np.zeros(len(scale))
    for k, p in enumerate(problem.deviations.parameters):
        link = problem.deviations.chain.links[p.link]
        linear = p.direction < 2 or (p.direction == ALONG and link.kind == "prismatic")
        out[k] = _TYPICAL.get(p.effect, _TYPICAL_SMALL) * (size if linear else 1.0) / max(float(scale[k]), 1e-12)
    return out**2


def _longest_turn(measurement: Measurement, setup: Setup, step: Array) -> float:
    """Largest angle in a step of the setup [rad]; 0 without an angle."""
    names = measurement.setup_names(setup)
    return float(
        max(
            (abs(s) for s, n in zip(step, names, strict=False) if n.rsplit(".", 1)[-1] in ("rx", "ry", "rz")),
            default=0.0,
        )
    )
