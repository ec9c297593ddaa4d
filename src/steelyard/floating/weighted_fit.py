"""The fit of a mechanism with little excitation: possible bodies near the bodies of the description.

    min ½ Σ_e ‖y_e − A_e θ‖²/σ_e² + w·Σ_i D(P_i, P⁰_i),   P_i ≻ 0

with the log-det divergence D from the described bodies (Lee, Wensing & Park 2020). Standing robots, people and short
logs determine only a part of θ, and model errors dominate (soft feet, markers on skin), so σ and w are unknown before
the fit. Left-out stretches of time determine both: w minimises their error, and σ_e is their error in equation e.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import Estimate, EstimationError, Prior, Result
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear.block_jackknife import JACKKNIFE_BLOCKS, block_deviations
from steelyard.estimation.linear.problem import LeastSquaresProblem
from steelyard.estimation.linear.widening import motion_variance
from steelyard.estimation.possible._formulate import Formulation, Program, formulate
from steelyard.estimation.possible._solve import LAST_WITH_PRIOR, solve_interior
from steelyard.floating.row_information import determined, row_sums, squares, varying
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.progress import report_progress
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import Factor

# Weights of the divergence, in variances of the noise: from almost none to almost the description alone.
WEIGHTS = tuple(0.0125 * 4.0**k for k in range(9))
_TYPICAL = WEIGHTS[2]
# Number of left-out stretches of time.
FOLDS = 5
# Distance of the bodies from the boundary, as in `PhysicallyConsistent`.
_MARGIN = 1e-6
# Iterations of weight and noise; the noise changes little after the first.
_ROUNDS = 2


# Computes, from the parameters, the covariance of the base parameters that the error model of the fit does not contain.
Wider = Callable[[BaseParameters, Array], Array]


@dataclass(frozen=True, eq=False)
class PriorWeight:
    """A weight of the description, with the error of left-out stretches.

    Attributes:
        weight: Weight of the divergence; infinite: the description alone.
        error: Error of left-out rows, relative to the rows [%].
        deviation: The same in standard deviations of each equation's noise (rms).
    """

    weight: float
    error: float
    deviation: float


@dataclass(frozen=True, eq=False)
class PossibleFit:
    """Possible bodies that predict left-out stretches best.

    Attributes:
        estimate: The result; error bars are those of the data alone.
        free: The free fit to the same rows; None if they do not determine all base parameters.
        base: Combinations of parameters that the rows determine.
        candidates: All weights, the description alone last.
        weight: The chosen weight.
        noise: Standard deviation of each equation, from left-out stretches.
        structure: Base parameters of the mechanism, identifiable from a perfect motion.
        theta_error: Standard error of each parameter as far as rows and description determine it.
        varying: Variation of the measurements about their means, relative to the measurements.
        data_share: Share of the information about each parameter from the rows, 0 to 1.
    """

    estimate: Estimate
    free: Estimate | None
    base: BaseParameters
    candidates: tuple[PriorWeight, ...]
    weight: float
    noise: Array
    structure: BaseParameters
    theta_error: Array
    data_share: Array
    varying: float

    @property
    def variation(self) -> float:
        """Error of left-out stretches relative to the variation of the measurements [%]."""
        return self.chosen.error / self.varying

    @property
    def chosen(self) -> PriorWeight:
        return next(c for c in self.candidates if c.weight == self.weight)

    @property
    def described(self) -> PriorWeight | None:
        """The description alone, if there is one."""
        return next((c for c in self.candidates if np.isinf(c.weight)), None)


def fit_possible(
    parts: Sequence[RegressionData], base: BaseParameters, prior: Prior | None,
    structure: BaseParameters | None = None, wider: Wider | None = None, whole: RegressionData | None = None,
) -> PossibleFit:  # fmt: skip
    """Fit possible bodies to rows.

    Args:
        parts: Rows of consecutive stretches of time, at least `FOLDS`.
        base: Base parameters of the robot and its terms.
        prior: Bodies of the description; None: default bodies of fitted density.
        structure: Base parameters of the mechanism, if contacts hide some of them; default: `base`.
        wider: Covariance of base parameters due to errors of sensors, at the identified parameters.
        whole: The same rows in whole stretches, whose spectra show slow errors for error bars; default: `parts`.
    """
    if len(parts) < FOLDS:
        raise SteelyardError(
            f"The rows have {len(parts)} stretches of time; the fit needs {FOLDS} for cross-validation."
        )
    with one_blas_thread():
        factors = [part.reduction().factor for part in parts]  # also the sums for `varying`
        folds = [factors[k * len(factors) // FOLDS : (k + 1) * len(factors) // FOLDS] for k in range(FOLDS)]
        search = _Search(base, prior, [_merged(fold) for fold in folds])
        candidates, noise = search.run()
        best = min((c for c in candidates if np.isfinite(c.weight)), key=lambda c: c.deviation)
        report_progress("Fitting", 0.7, "possible bodies", {"weight": best.weight})
        own, formulation, x, converged = search.fit(_merged(factors), 1.0 / noise, best.weight)
        theta = formulation.theta(x)
        data = RegressionData.concatenate(parts) if whole is None else whole
        free, covariance, degrees = _free(data, own, noise)
        if wider is not None:
            covariance = covariance + (more := wider(own, theta))
            free = None if free is None else replace(free, covariance=free.covariance + more)
        theta_error, share = _errors_and_shares(formulation, x, covariance)
        cost = float(np.sum(row_sums(_merged(factors), base, theta) / noise**2))
    estimate = Estimate(
        base=own,
        beta=own.matrix @ theta,
        covariance=covariance,
        theta=theta,
        residual_std=noise,
        cost=cost,
        result=Result.CONVERGED if converged else Result.NOT_CONVERGED,
        physical=True,
        notes=formulation.notes,
        details={"degrees_of_freedom": degrees, "rows": _merged(factors).rows, "inflation": ()},
    )
    return PossibleFit(
        estimate,
        free,
        own,
        tuple(candidates),
        best.weight,
        noise,
        structure or base,
        theta_error,
        share,
        varying(parts),
    )


def _errors_and_shares(formulation: Formulation, x: Array, covariance: Array) -> tuple[Array, Array]:
    """Return the standard error of every parameter and the share of the data in it.

    At the optimum, the Hessian of the cost is the sum of the Hessians of rows and divergence; the rows enter with their
    measured covariance.
    """
    prior = _description_hessian(formulation.program, x)
    L = formulation.base.matrix @ formulation.lift
    data = L.T @ np.linalg.pinv(covariance, rcond=1e-13, hermitian=True) @ L
    # Directions that neither rows nor description determine get a huge, finite variance.
    scale = np.sqrt(np.maximum(np.diag(prior) + np.diag(data), 1e-300))
    both = np.linalg.inv((prior + data) / scale / scale[:, None] + 1e-12 * np.eye(len(x))) / scale / scale[:, None]
    alone = np.linalg.inv(prior / scale / scale[:, None] + 1e-12 * np.eye(len(x))) / scale / scale[:, None]
    after = np.einsum("ij,jk,ik->i", formulation.lift, both, formulation.lift)
    before = np.einsum("ij,jk,ik->i", formulation.lift, alone, formulation.lift)
    share = 1.0 - np.divide(after, before, out=np.ones_like(after), where=before > 0.0)
    return np.sqrt(np.maximum(after, 0.0)), np.clip(share, 0.0, 1.0)


def _description_hessian(p: Program, x: Array) -> Array:
    """Compute the Hessian of the description's divergence."""
    inverse = np.asarray(np.linalg.inv(p.matrices(x)), dtype=float)
    prior = np.zeros((len(x), len(x)))
    for weight, cone, kron in zip(p.cone_weights, p.cones, _kron(inverse), strict=True):
        prior += weight * (cone.T @ kron @ cone)
    scalars = p.D @ x + p.d
    return np.asarray(prior + (p.D.T * (p.scalar_weights / scalars**2)) @ p.D + p.F.T @ p.F)


def _kron(inverse: Array) -> Array:
    """Return X⁻¹ ⊗ X⁻¹ of every link, shape (links, 16, 16)."""
    return np.asarray(np.einsum("lij,lkm->likjm", inverse, inverse).reshape(len(inverse), 16, 16))


def quick_fit(data: RegressionData, base: BaseParameters, prior: Prior | None) -> Array:
    """Fit all parameters with equations of equal relative noise and a typical weight of the description.

    Args:
        data: Rows.
        base: Base parameters.
        prior: Bodies of the description.
    """
    with one_blas_thread():
        factor = data.factor()
        _, formulation, x, _ = _Search(base, prior, [factor]).fit(factor, 1.0 / _sizes([factor]), _TYPICAL)
    return formulation.theta(x)


def left_out_error(
    parts: Sequence[RegressionData], judged: Sequence[RegressionData], base: BaseParameters, prior: Prior | None
) -> float:
    """Compute the error of left-out stretches (rms, relative to the size of each equation).

    Args:
        parts: Rows of the fit by stretch.
        judged: Rows of the same stretches for the score, perhaps prepared differently.
        base: Base parameters.
        prior: Bodies of the description.
    """
    return left_out_errors(parts, [judged], base, prior)[0]


def left_out_errors(
    parts: Sequence[RegressionData],
    judged: Sequence[Sequence[RegressionData]],
    base: BaseParameters,
    prior: Prior | None,
) -> list[float]:
    """Compute the errors of left-out stretches, as `left_out_error`, on rows of several preparations.

    Args:
        parts: Rows of the fit by stretch.
        judged: Rows of the same stretches for each score.
        base: Base parameters.
        prior: Bodies of the description.
    """
    with one_blas_thread():
        factors = [part.factor() for part in parts]
        scored = [[part.factor() for part in some] for some in judged]
        sizes, own = [_sizes(some) for some in scored], _sizes(factors)
        totals = np.zeros(len(judged))
        for k in range(len(factors)):
            others = _merged([f for i, f in enumerate(factors) if i != k])
            _, formulation, x, _ = _Search(base, prior, factors).fit(others, 1.0 / own, _TYPICAL)
            theta = formulation.theta(x)
            for j, (some, size) in enumerate(zip(scored, sizes, strict=True)):
                totals[j] += float(np.sum(row_sums(some[k], base, theta) / size**2)) if k < len(some) else 0.0
        return [float(np.sqrt(x / sum(sum(f.rows) for f in some))) for x, some in zip(totals, scored, strict=True)]


def _sizes(factors: Sequence[Factor]) -> Array:
    """Return the root mean square of each equation's measurements; the largest one for equations without rows."""
    rows = np.maximum(np.sum([f.rows for f in factors], axis=0), 1)
    size = np.sqrt(np.sum([squares(f) for f in factors], axis=0) / rows)
    return np.where(size > 1e-9 * size.max(), size, max(float(size.max()), 1e-9))


def _merged(factors: Sequence[Factor]) -> Factor:
    first, *others = factors
    return first.merge(*others)


@dataclass(eq=False)
class _Search:
    """The choice of weight and noise by folds."""

    base: BaseParameters
    prior: Prior | None
    folds: Sequence[Factor]

    def run(self) -> tuple[list[PriorWeight], Array]:
        """Return the candidates and the noise of each equation."""
        rows = np.sum([f.rows for f in self.folds], axis=0)
        size = np.sqrt(np.sum([squares(f) for f in self.folds], axis=0) / np.maximum(rows, 1))
        floor = 1e-9 * max(float(size.max()), 1e-9)
        described = None if self.prior is None or not all(self.prior.mask[: self.base.robot.inertial_count]) else (
            np.where(self.prior.mask, self.prior.theta, 0.0)
        )  # fmt: skip
        noise = np.maximum(size, floor)
        if described is not None:
            sums = np.sum([row_sums(f, self.base, described) for f in self.folds], axis=0)
            noise = np.maximum(np.sqrt(sums / np.maximum(rows, 1)), floor)
        rest = [_merged([f for f in self.folds if f is not fold]) for fold in self.folds]
        candidates: list[PriorWeight] = []
        for number in range(_ROUNDS):
            errors = np.zeros((len(WEIGHTS), len(noise)))
            for fold, others in zip(self.folds, rest, strict=True):
                errors += self._left_out(fold, others, noise)
                report_progress("Fitting", 0.1 + 0.3 * number, "stretches left out in turn")
            if described is not None:
                errors = np.vstack([errors, sums])
            deviations = np.sqrt(errors @ (1.0 / noise**2) / rows.sum())
            shares = 100.0 * np.sqrt(errors.sum(axis=1) / np.sum(size**2 * rows))
            weights = [*WEIGHTS, *([np.inf] if described is not None else [])]
            candidates = [
                PriorWeight(w, float(s), float(d)) for w, s, d in zip(weights, shares, deviations, strict=True)
            ]
            best = int(np.argmin(deviations[: len(WEIGHTS)]))
            noise = np.maximum(np.sqrt(errors[best] / np.maximum(rows, 1)), floor)
        return candidates, noise

    def _left_out(self, fold: Factor, others: Factor, noise: Array) -> Array:
        """Sum the squared errors of a left-out fold by weight and equation."""
        formulation: Formulation | None = None
        out = np.zeros((len(WEIGHTS), len(noise)))
        x = None
        for k in reversed(range(len(WEIGHTS))):  # largest weight first: each solution is the start of the next
            formulation = formulation or self.formulation(others, 1.0 / noise)[1]
            program = replace(
                formulation.program,
                cone_weights=np.full_like(formulation.program.cone_weights, WEIGHTS[k]),
                start=formulation.program.start if x is None else x,
            )
            x = _solution(program, formulation.program.start, warm=x is not None)
            out[k] = row_sums(fold, self.base, formulation.theta(x))
        return out

    def fit(self, factor: Factor, weights: Array, weight: float) -> tuple[BaseParameters, Formulation, Array, bool]:
        """Return the identifiable combinations, the program, its solution, and whether it converged."""
        base, formulation = self.formulation(factor, weights, weight)
        solution = solve_interior(formulation.program)
        return base, formulation, solution.x, solution.converged

    def formulation(self, factor: Factor, weights: Array, weight: float = 1.0) -> tuple[BaseParameters, Formulation]:
        base, R, beta = determined(self.base, factor, weights)
        return base, formulate(base, R, beta, self.prior, weight, _MARGIN, None, {})


def _solution(program: Program, inside: Array, warm: bool) -> Array:
    """Solve from the start of the program if it is near the solution; rounding can make the start infeasible."""
    if warm:
        try:
            return solve_interior(program, first=LAST_WITH_PRIOR).x
        except EstimationError:
            program = replace(program, start=inside)
    return solve_interior(program).x


def _free(data: RegressionData, base: BaseParameters, noise: Array) -> tuple[Estimate | None, Array, tuple[float, ...]]:
    """Return the free fit under the noise of left-out stretches, with error bars for noise and model errors."""
    problem = LeastSquaresProblem.of(data, base)
    weights = 1.0 / noise
    joined = problem.combined_triangle(weights)
    beta = np.asarray(np.linalg.solve(joined[:-1, :-1], joined[:-1, -1]), dtype=float)
    fit = FreeFit(problem, beta, weights, joined, problem.residual_std(beta, joined, weights))
    estimate = fit.estimate(None)
    own = np.maximum(np.diag(estimate.covariance), 0.0)
    wander = np.sum(block_deviations(data, base, noise) ** 2, axis=0)
    more = motion_variance(own, wander, JACKKNIFE_BLOCKS)
    widening = np.sqrt(1.0 + more / np.maximum(own, 1e-300))
    covariance = estimate.covariance * widening * widening[:, None]
    return replace(estimate, covariance=covariance), covariance, tuple(estimate.details["degrees_of_freedom"])
