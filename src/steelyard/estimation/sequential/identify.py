"""Sequential identification: a few parameters per movement, using the results of earlier movements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import EstimationError, LinearEstimator
from steelyard.estimation.linear._free import FreeFit
from steelyard.estimation.linear._instants import simultaneous
from steelyard.estimation.registry import estimator_names, make_estimator
from steelyard.estimation.sequential.movement import Combination, Movement, coordinates, functional
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.progress import steps
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.schemes import Scheme, make_scheme, paper_motion
from steelyard.regression.unknowns import Unknowns
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.as_logs import as_logs
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

# Relative standard error of exact numbers, so that covariances can be inverted.
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class _Sums:
    """Estimated sums of base parameters, by name.

    Attributes:
        names: Names of the sums.
        functionals: Coefficients of the sums, one row each.
        values: Values of `functionals` · β.
        covariance: Covariance of the values.
    """

    names: tuple[str, ...]
    functionals: Array
    values: Array
    covariance: Array

    @classmethod
    def start(cls, stated: Mapping[str, tuple[Array, float, float]], count: int) -> _Sums:
        """Create independent values with standard errors."""
        for name, (_, value, error) in stated.items():
            if not (np.isfinite(value) and np.isfinite(error) and error >= 0.0):
                raise EstimationError(
                    f"The known value of {name} is {value} ± {error}; both must be finite, the second ≥ 0."
                )
        rows = np.array([row for row, _, _ in stated.values()]).reshape(-1, count)
        values = np.array([value for _, value, _ in stated.values()])
        errors = np.array([max(error, _EXACT * abs(value), 1e-300) for _, value, error in stated.values()])
        return cls(tuple(stated), rows, values, np.diag(errors**2))

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.diag(self.covariance))

    def part(self, names: Sequence[str]) -> _Sums:
        k = [self.names.index(n) for n in names]
        return _Sums(tuple(names), self.functionals[k], self.values[k], self.covariance[np.ix_(k, k)])

    def join(
        self, new: Mapping[str, Array], values: Array, own: Array, known: Sequence[int], sensitivity: Array
    ) -> _Sums:
        """Add values of another experiment, with their `own` errors and those that known values cause.

        Existing names are averaged with their new values.
        """
        cross = sensitivity @ self.covariance[list(known)]
        total = own + cross[:, list(known)] @ sensitivity.T
        covariance = np.block([[self.covariance, cross.T], [cross, total]])
        names = (*self.names, *(n for n in new if n not in self.names))
        design = np.array([[float(n == m) for m in names] for n in (*self.names, *new)])
        row_of = {**dict(zip(self.names, self.functionals, strict=True)), **new}
        everything = np.concatenate([self.values, values])
        if len(names) == len(everything):
            return _Sums(names, np.array([row_of[n] for n in names]), everything, covariance)
        joined, smaller = _weighted_mean(design, everything, covariance)
        return _Sums(names, np.array([row_of[n] for n in names]), joined, smaller)

    def combine(self, row: Array, used: Sequence[int]) -> tuple[float, float] | None:
        """Value and standard error of a sum row · β over the parameters `kept` (others are zero); None if
        undetermined."""
        F, target = self.functionals[:, list(used)], row[list(used)]
        if not np.any(target != 0.0):
            return 0.0, 0.0
        # Overlapping sums are averaged: weights with the sum as result and the smallest variance.
        scale = np.where((size := np.abs(F).max(axis=0, initial=0.0)) > 0.0, size, 1.0)
        share = np.linalg.lstsq((F / scale).T, target / scale, rcond=None)[0]
        if np.abs(share @ F - target).max() > 1e-9 * np.abs(target).max():
            return None
        u, s, _ = np.linalg.svd(F / scale)
        free = u[:, int(np.sum(s > 1e-9 * s[0])) :]  # directions of shares that do not change the sum
        if free.shape[1]:
            error = 1.0 / self.standard_errors
            C = self.covariance * error * error[:, None]
            Z = free / error[:, None]
            share = share - free @ np.linalg.solve(Z.T @ C @ Z, Z.T @ C @ (share / error))
        return float(share @ self.values), sqrt(max(float(share @ self.covariance @ share), 0.0))


def _weighted_mean(design: Array, values: Array, covariance: Array) -> tuple[Array, Array]:
    """Generalised least squares: x of values = design · x for errors with this covariance, and the covariance of x."""
    scale = 1.0 / np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance * scale * scale[:, None])
    whitened = np.linalg.solve(root, design * scale[:, None])
    lengths = np.linalg.norm(whitened, axis=0)
    q, r = np.linalg.qr(whitened / lengths)
    inverse = np.linalg.inv(r) / lengths[:, None]
    return inverse @ (q.T @ np.linalg.solve(root, values * scale)), inverse @ inverse.T


# Largest part of a movement's entries that the listed parameters may leave unexplained.
_UNEXPLAINED = 1e-6


@short_repr
@dataclass(frozen=True, eq=False)
class Step:
    """Result of one movement.

    Attributes:
        movement: Name of the movement.
        names: Names of the estimated sums.
        values: Values of the sums.
        own_errors: Standard errors from the noise of this movement only.
        standard_errors: Standard errors including those of known values.
        known: Names of the known values.
        sensitivity: Change of each value per unit of a known one, shape (values, known).
        residual_std: Standard deviation of the residuals per equation.
        rows: Number of rows.
    """

    movement: str
    names: tuple[str, ...]
    values: Array
    own_errors: Array
    standard_errors: Array
    known: tuple[str, ...]
    sensitivity: Array
    residual_std: Array
    rows: int


@short_repr
@dataclass(frozen=True, eq=False)
class SequentialIdentification:
    """Combined result of all movements.

    Attributes:
        base: Base parameters.
        sums: Estimated sums by name, with their joint covariance.
        neglected: Names of parameters that count as zero.
        steps: Result of each movement.
    """

    base: BaseParameters
    sums: _Sums
    neglected: tuple[str, ...]
    steps: tuple[Step, ...]

    def value(self, combination: Combination) -> tuple[float, float]:
        """Return value and standard error of a `combination`: an estimated name, a parameter, or a determined sum."""
        if isinstance(combination, str) and combination in self.sums.names:
            k = self.sums.names.index(combination)
            return float(self.sums.values[k]), float(self.sums.standard_errors[k])
        result = self.sums.combine(functional(self.base, combination), self._considered)
        if result is None:
            raise EstimationError(
                f"The movements do not determine {combination}; no movement estimates "
                f"{', '.join(self.undetermined) or 'it'}; add one to the plan."
            )
        return result

    @property
    def beta(self) -> Array:
        """Base parameters; zero if neglected, NaN if no movement determines them."""
        return self._over_base()[0]

    @property
    def standard_errors(self) -> Array:
        return self._over_base()[1]

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of base parameters that the plan does not determine."""
        return tuple(n for n, b in zip(self.base.names, self.beta, strict=True) if np.isnan(b))

    def _over_base(self) -> tuple[Array, Array]:
        out = np.full((2, self.base.rank), np.nan)
        for k, row in enumerate(np.eye(self.base.rank)):
            if (result := self.sums.combine(row, self._considered)) is not None:
                out[:, k] = result
        return out[0], out[1]

    @property
    def _considered(self) -> list[int]:
        return [k for k, name in enumerate(self.base.names) if name not in self.neglected]


def identify_sequentially(
    robot: RobotLike,
    plan: Sequence[Movement],
    *,
    terms: TermsLike | None = None,
    known: Mapping[str, tuple[float, float]] | None = None,
    scheme: str | Scheme = "dynamic",
    estimator: str = "wls",
    preparation: Preparation | Literal["as logged"] | None = None,
    base: BaseParameters | None = None,
) -> SequentialIdentification:
    """Identify a robot movement by movement.

    Results of a movement are subtracted in later ones, together with their errors: the covariance is that of all
    values. A sum from several movements is averaged according to its error bars.

    Args:
        robot: The robot, as `load_robot` takes it.
        plan: The movements, in order.
        terms: Joint terms to identify with the links; None: links only.
        known: Known parameters: value and standard error by name.
        scheme: Scheme of the rows; see `regression.schemes`.
        estimator: Estimator of each movement: "wls", "huber" or another whose class accepts any columns.
        preparation: Filter and derivatives; "as logged" uses q, dq, ddq and tau without changes.
        base: Base parameters; saves computing them (`terms` are then theirs).
    """
    if not plan:
        raise EstimationError("The plan has no movements; give at least one.")
    robot = as_robot(robot)
    plan = [replace(movement, log=as_logs(movement.log, robot)) for movement in plan]
    base = base_parameters(robot, terms) if base is None else base
    scheme_ = make_scheme(scheme)
    method = make_estimator(estimator)
    if not (isinstance(method, LinearEstimator) and method.any_columns):
        raise UnknownNameError("estimator of a movement", estimator, estimator_names(any_columns=True))
    sums = _Sums.start({n: (functional(base, n), *v) for n, v in (known or {}).items()}, base.rank)
    rest = _rest(base, plan, sums)
    neglected: set[str] = set()
    results = []
    for movement in steps(plan, "Movement", lambda m: m.name):
        neglects = rest if movement.neglects == "rest" else tuple(movement.neglects)
        for name in neglects:
            if name not in base.names:
                raise UnknownNameError("base parameter", name, base.names)
        neglected.update(neglects)
        data = _data(Dynamics(robot, base.terms), base, movement, scheme_, preparation)
        step, sums = _Problem(base, movement, sums, neglects).solve(data, method)
        results.append(step)
    return SequentialIdentification(base, sums, tuple(n for n in base.names if n in neglected), tuple(results))


def _rest(base: BaseParameters, plan: Sequence[Movement], sums: _Sums) -> tuple[str, ...]:
    """Base parameters without any estimated or known sum."""
    rows = [functional(base, c) for m in plan for c in m.combinations.values()]
    used = np.any(np.vstack([*rows, *sums.functionals]) != 0.0, axis=0)
    return tuple(n for n, u in zip(base.names, used, strict=True) if not u)


def _data(
    dynamics: Dynamics, base: BaseParameters, movement: Movement, scheme: Scheme, preparation: Any
) -> RegressionData:
    if preparation == "as logged":
        motions = [m for log in movement.logs for m in paper_motion(log)]
    else:
        motions = list(Study.of(dynamics.robot, movement.logs, base.terms, preparation).motions())
    for motion in motions:
        movement.check_still(dynamics.robot, motion)
    return scheme.data(dynamics, base, lambda: motions)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The estimation of one movement, after subtraction of known values.

    Attributes:
        base: Base parameters.
        movement: The movement.
        before: Results of earlier movements.
        neglects: Names of parameters that count as zero.
    """

    base: BaseParameters
    movement: Movement
    before: _Sums
    neglects: tuple[str, ...]

    def solve(self, data: RegressionData, estimator: Any) -> tuple[Step, _Sums]:
        target = {n: functional(self.base, c) for n, c in self.movement.combinations.items()}
        known = self._known(tuple(target))
        positions = [self.before.names.index(n) for n in known]
        rows = self._rows(data, np.array(list(target.values())), self.before.functionals[positions])
        count = len(target)
        G, H, y = rows[..., :count], rows[..., count:-1], rows[..., -1]
        right = y - H @ self.before.values[positions]
        unknowns = Unknowns(tuple(target))
        fit: FreeFit = estimator.free(_as_data(G, right, data.period), unknowns)
        sensitivity = _sensitivity(G, H, fit.weights)
        own = fit.covariance.matrix
        after = self.before.join(target, fit.beta, own, positions, sensitivity)
        part = after.part(tuple(target))
        step = Step(
            self.movement.name, tuple(target), fit.beta, np.sqrt(np.diag(own)), part.standard_errors, known,
            sensitivity, fit.residual_std, int(y.size),
        )  # fmt: skip
        return step, after

    def _known(self, target: tuple[str, ...]) -> tuple[str, ...]:
        if self.movement.known is None:
            return tuple(n for n in self.before.names if n not in target)
        for name in self.movement.known:
            if name not in self.before.names:
                raise UnknownNameError("known parameter", name, self.before.names)
        return tuple(self.movement.known)

    def _rows(self, data: RegressionData, target: Array, known: Array) -> Array:
        """[G H y] (instants, equations, estimated + known + 1): columns of estimated and known sums."""
        zero = np.eye(self.base.rank)[[self.base.names.index(n) for n in self.neglects]]
        listed = np.vstack([target, known, zero])
        _check_independent(listed, self.movement)
        with one_blas_thread():
            inverse = np.linalg.pinv(listed)
            out = []
            for table in self._stretches(data):
                A = table[..., :-1] @ inverse
                self._check_complete(table[..., :-1], A @ listed)
                out.append(np.concatenate([A[..., : len(target) + len(known)], table[..., -1:]], axis=2))
        return np.concatenate(out)

    def _stretches(self, data: RegressionData) -> Iterator[Array]:
        """[A y] of the equations that count."""
        robot = self.base.robot
        if len(data.equations) == 1 and robot.dof > 1 and data.equations[0].name not in robot.joint_names:
            torques = np.eye(1)  # energy or power: one equation for all
        else:
            chosen = tuple(self.movement.equations or self.movement.moves)
            torques = coordinates(robot, chosen)[0]
            used = [j for j in range(robot.dof) if robot.torque_used[j]]
            lost = [robot.joint_names[j] for j in range(robot.dof) if j not in used and np.any(torques[:, j] != 0.0)]
            if lost:
                raise SteelyardError(f"Movement '{self.movement.name}' needs the torque of '{lost[0]}', not used here.")
            torques = torques[:, used]
        for table in simultaneous(data, self.base):
            if table is None:
                raise SteelyardError("Sequential identification needs all rows of an instant; set mask to 0.")
            yield np.einsum("ue,nep->nup", torques, table)

    def _check_complete(self, A: Array, result: Array) -> None:
        whitened = np.abs(A - result).max(axis=(0, 1))
        more = np.flatnonzero(whitened > _UNEXPLAINED * np.abs(A).max(initial=1e-300))
        if more.size:
            names = [self.base.names[k] for k in more[np.argsort(-whitened[more])][:6]]
            raise EstimationError(
                f"Movement '{self.movement.name}' also depends on {', '.join(names)}; estimate them here or before, or "
                "neglect them."
            )


def _check_independent(listed: Array, movement: Movement) -> None:
    lengths = np.linalg.norm(listed, axis=1)
    if np.any(lengths == 0.0) or np.linalg.matrix_rank(listed / lengths[:, None], tol=1e-9) < len(listed):
        raise EstimationError(
            f"Movement '{movement.name}': the estimated, known and neglected sums are not independent; remove one that "
            "is a sum of the others."
        )


def _as_data(G: Array, y: Array, period: float) -> RegressionData:
    columns = np.arange(G.shape[2])
    equations = tuple(Equation(f"equation {e + 1}", columns) for e in range(G.shape[1]))
    blocks = [Block(e, np.ascontiguousarray(G[:, e]), y[:, e].copy()) for e in range(G.shape[1])]
    return RegressionData(equations, G.shape[2], lambda: blocks, period)


def _sensitivity(G: Array, H: Array, weights: Array) -> Array:
    """∂(estimated)/∂(known) = −(GᵀW²G)⁻¹GᵀW²H."""
    if not H.shape[2]:
        return np.zeros((G.shape[2], 0))
    w = weights[None, :, None]
    with one_blas_thread():
        whitened, right = (G * w).reshape(-1, G.shape[2]), (H * w).reshape(-1, H.shape[2])
        scale = np.linalg.norm(whitened, axis=0)
        return np.asarray(-np.linalg.lstsq(whitened / scale, right, rcond=None)[0] / scale[:, None])
