"""`identify_sequentially`: a few parameters at a time, each movement resting on what the ones before it found."""

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
from steelyard.ground.renamed import renamed
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import Block, RegressionData
from steelyard.regression.rows import Equation
from steelyard.regression.schemes import Scheme, make_scheme, paper_motion
from steelyard.regression.unknowns import Unknowns
from steelyard.robot.load import RobotLike, as_robot
from steelyard.signals.given import as_logs
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

# A number that is said to be exact is known to this part of itself, so that covariances can be inverted.
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class _Found:
    """Sums of base parameters, by name.

    Attributes:
        names: of the sums.
        functionals: their coefficients, a row each.
        values: of `functionals` · β.
        covariance: of the values.
    """

    names: tuple[str, ...]
    functionals: Array
    values: Array
    covariance: Array

    @classmethod
    def start(cls, given: Mapping[str, tuple[Array, float, float]], count: int) -> _Found:
        """Numbers with standard errors, independent of one another."""
        for name, (_, value, error) in given.items():
            if not (np.isfinite(value) and np.isfinite(error) and error >= 0.0):
                raise EstimationError(f"{name} is known as {value} ± {error}; both must be numbers, the second ≥ 0.")
        rows = np.array([row for row, _, _ in given.values()]).reshape(-1, count)
        values = np.array([value for _, value, _ in given.values()])
        errors = np.array([max(error, _EXACT * abs(value), 1e-300) for _, value, error in given.values()])
        return cls(tuple(given), rows, values, np.diag(errors**2))

    @property
    def standard_errors(self) -> Array:
        return np.sqrt(np.diag(self.covariance))

    def part(self, names: Sequence[str]) -> _Found:
        k = [self.names.index(n) for n in names]
        return _Found(tuple(names), self.functionals[k], self.values[k], self.covariance[np.ix_(k, k)])

    def join(
        self, new: Mapping[str, Array], values: Array, own: Array, known: Sequence[int], sensitivity: Array
    ) -> _Found:
        """With the values of another experiment, whose errors are its `own` and what the `known` ones pass on.

        A name that was there already is averaged with its new value.
        """
        cross = sensitivity @ self.covariance[list(known)]
        total = own + cross[:, list(known)] @ sensitivity.T
        covariance = np.block([[self.covariance, cross.T], [cross, total]])
        names = (*self.names, *(n for n in new if n not in self.names))
        design = np.array([[float(n == m) for m in names] for n in (*self.names, *new)])
        row_of = {**dict(zip(self.names, self.functionals, strict=True)), **new}
        everything = np.concatenate([self.values, values])
        if len(names) == len(everything):
            return _Found(names, np.array([row_of[n] for n in names]), everything, covariance)
        joined, smaller = _weighted_mean(design, everything, covariance)
        return _Found(names, np.array([row_of[n] for n in names]), joined, smaller)

    def combine(self, row: Array, kept: Sequence[int]) -> tuple[float, float] | None:
        """A sum row · β with its standard error, of the parameters `kept` (the others are zero); None: not found."""
        F, wanted = self.functionals[:, list(kept)], row[list(kept)]
        if not np.any(wanted != 0.0):
            return 0.0, 0.0
        # Averaged where sums overlap: weights that make the sum, of the least variance.
        scale = np.where((size := np.abs(F).max(axis=0, initial=0.0)) > 0.0, size, 1.0)
        share = np.linalg.lstsq((F / scale).T, wanted / scale, rcond=None)[0]
        if np.abs(share @ F - wanted).max() > 1e-9 * np.abs(wanted).max():
            return None
        u, s, _ = np.linalg.svd(F / scale)
        free = u[:, int(np.sum(s > 1e-9 * s[0])) :]  # directions of shares that add nothing
        if free.shape[1]:
            error = 1.0 / self.standard_errors
            C = self.covariance * error * error[:, None]
            Z = free / error[:, None]
            share = share - free @ np.linalg.solve(Z.T @ C @ Z, Z.T @ C @ (share / error))
        return float(share @ self.values), sqrt(max(float(share @ self.covariance @ share), 0.0))


def _weighted_mean(design: Array, values: Array, covariance: Array) -> tuple[Array, Array]:
    """Generalised least squares: x of values = design · x, for errors of a given covariance; and x's covariance."""
    scale = 1.0 / np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance * scale * scale[:, None])
    left = np.linalg.solve(root, design * scale[:, None])
    lengths = np.linalg.norm(left, axis=0)
    q, r = np.linalg.qr(left / lengths)
    inverse = np.linalg.inv(r) / lengths[:, None]
    return inverse @ (q.T @ np.linalg.solve(root, values * scale)), inverse @ inverse.T


# A column that the listed parameters leave over counts from this part of its movement's largest entry on.
_LEFT_OVER = 1e-6


@renamed(spread="residual_std")
@dataclass(frozen=True, eq=False)
class Step:
    """What one movement gave: values with error bars of its own noise alone, and with those of what was known.

    `sensitivity` (found × known) says by how much a value changes with one unit of a known one.
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


@dataclass(frozen=True, eq=False)
class SequentialIdentification:
    """All that the movements found, put together. `found` holds the sums by name with their joint covariance."""

    base: BaseParameters
    found: _Found
    neglected: tuple[str, ...]
    steps: tuple[Step, ...]

    def value(self, combination: Combination) -> tuple[float, float]:
        """Value and standard error of `combination`: a found name, a parameter, or a sum that the movements show."""
        if isinstance(combination, str) and combination in self.found.names:
            k = self.found.names.index(combination)
            return float(self.found.values[k]), float(self.found.standard_errors[k])
        made = self.found.combine(functional(self.base, combination), self._kept)
        if made is None:
            raise EstimationError(
                f"The movements together do not determine {combination}; no movement finds "
                f"{', '.join(self.undetermined) or 'it'}; add one to the plan."
            )
        return made

    @property
    def beta(self) -> Array:
        """Base parameters; zero where neglected, not a number where no movement shows them."""
        return self._over_base()[0]

    @property
    def standard_errors(self) -> Array:
        return self._over_base()[1]

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Base parameters that the plan does not find."""
        return tuple(n for n, b in zip(self.base.names, self.beta, strict=True) if np.isnan(b))

    def _over_base(self) -> tuple[Array, Array]:
        out = np.full((2, self.base.rank), np.nan)
        for k, row in enumerate(np.eye(self.base.rank)):
            if (made := self.found.combine(row, self._kept)) is not None:
                out[:, k] = made
        return out[0], out[1]

    @property
    def _kept(self) -> list[int]:
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

    Args:
        robot: the robot, as `load_robot` takes it.
        plan: the movements, in order.
        terms: joint terms to be identified with the links; None: links alone.
        known: parameters that are known from elsewhere: value and standard error by name.
        scheme: how rows are written; see `regression.schemes`.
        estimator: "wls", "huber" or another whose class takes any columns, within each movement.
        preparation: filtering and derivatives; "as logged" takes q, dq, ddq and tau as they are.
        base: the base parameters, where they are at hand already (then `terms` are theirs).

    What one movement finds, the next ones subtract, and its errors go along: covariances are those of all that was
    found together. A sum that several movements find is averaged by its error bars.
    """
    if not plan:
        raise EstimationError("The plan has no movement; give at least one.")
    robot = as_robot(robot)
    plan = [replace(movement, log=as_logs(movement.log, robot)) for movement in plan]
    base = base_parameters(robot, terms) if base is None else base
    written = make_scheme(scheme)
    made = make_estimator(estimator)
    if not (isinstance(made, LinearEstimator) and made.any_columns):
        raise UnknownNameError("estimator of a movement", estimator, estimator_names(any_columns=True))
    found = _Found.start({n: (functional(base, n), *v) for n, v in (known or {}).items()}, base.rank)
    rest = _rest(base, plan, found)
    neglected: set[str] = set()
    made_steps = []
    for movement in steps(plan, "Movement", lambda m: m.name):
        neglects = rest if movement.neglects == "rest" else tuple(movement.neglects)
        for name in neglects:
            if name not in base.names:
                raise UnknownNameError("base parameter", name, base.names)
        neglected.update(neglects)
        data = _data(Dynamics(robot, base.terms), base, movement, written, preparation)
        step, found = _Problem(base, movement, found, neglects).solve(data, made)
        made_steps.append(step)
    return SequentialIdentification(base, found, tuple(n for n in base.names if n in neglected), tuple(made_steps))


def _rest(base: BaseParameters, plan: Sequence[Movement], found: _Found) -> tuple[str, ...]:
    """Base parameters that appear in nothing that is found or known."""
    rows = [functional(base, c) for m in plan for c in m.combinations.values()]
    used = np.any(np.vstack([*rows, *found.functionals]) != 0.0, axis=0)
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
    """One movement over what it finds, with what is known taken off.

    Attributes:
        base: the base parameters.
        movement: what moved, and what it is to find.
        before: what earlier movements found.
        neglects: parameters that are taken for zero.
    """

    base: BaseParameters
    movement: Movement
    before: _Found
    neglects: tuple[str, ...]

    def solve(self, data: RegressionData, estimator: Any) -> tuple[Step, _Found]:
        wanted = {n: functional(self.base, c) for n, c in self.movement.combinations.items()}
        known = self._known(tuple(wanted))
        places = [self.before.names.index(n) for n in known]
        rows = self._rows(data, np.array(list(wanted.values())), self.before.functionals[places])
        count = len(wanted)
        G, H, y = rows[..., :count], rows[..., count:-1], rows[..., -1]
        right = y - H @ self.before.values[places]
        unknowns = Unknowns(tuple(wanted))
        fit: FreeFit = estimator.free(_as_data(G, right, data.period), unknowns)
        sensitivity = _sensitivity(G, H, fit.weights)
        own = fit.covariance.matrix
        after = self.before.join(wanted, fit.beta, own, places, sensitivity)
        part = after.part(tuple(wanted))
        step = Step(
            self.movement.name, tuple(wanted), fit.beta, np.sqrt(np.diag(own)), part.standard_errors, known,
            sensitivity, fit.residual_std, int(y.size),
        )  # fmt: skip
        return step, after

    def _known(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        if self.movement.known is None:
            return tuple(n for n in self.before.names if n not in wanted)
        for name in self.movement.known:
            if name not in self.before.names:
                raise UnknownNameError("known parameter", name, self.before.names)
        return tuple(self.movement.known)

    def _rows(self, data: RegressionData, wanted: Array, known: Array) -> Array:
        """[G H y] `(instants, equations, found + known + 1)`: the columns as sums of those found, known, neglected."""
        zero = np.eye(self.base.rank)[[self.base.names.index(n) for n in self.neglects]]
        listed = np.vstack([wanted, known, zero])
        _check_independent(listed, self.movement)
        with one_blas_thread():
            turn = np.linalg.pinv(listed)
            out = []
            for table in self._stretches(data):
                A = table[..., :-1] @ turn
                self._check_complete(table[..., :-1], A @ listed)
                out.append(np.concatenate([A[..., : len(wanted) + len(known)], table[..., -1:]], axis=2))
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

    def _check_complete(self, A: Array, made: Array) -> None:
        left = np.abs(A - made).max(axis=(0, 1))
        more = np.flatnonzero(left > _LEFT_OVER * np.abs(A).max(initial=1e-300))
        if more.size:
            names = [self.base.names[k] for k in more[np.argsort(-left[more])][:6]]
            raise EstimationError(
                f"Movement '{self.movement.name}' also shows {', '.join(names)}; find them, find them before, or "
                "neglect them."
            )


def _check_independent(listed: Array, movement: Movement) -> None:
    lengths = np.linalg.norm(listed, axis=1)
    if np.any(lengths == 0.0) or np.linalg.matrix_rank(listed / lengths[:, None], tol=1e-9) < len(listed):
        raise EstimationError(
            f"Movement '{movement.name}': what it finds, knows and neglects is not independent; one of them is a sum "
            "of the others."
        )


def _as_data(G: Array, y: Array, period: float) -> RegressionData:
    columns = np.arange(G.shape[2])
    equations = tuple(Equation(f"equation {e + 1}", columns) for e in range(G.shape[1]))
    blocks = [Block(e, np.ascontiguousarray(G[:, e]), y[:, e].copy()) for e in range(G.shape[1])]
    return RegressionData(equations, G.shape[2], lambda: blocks, period)


def _sensitivity(G: Array, H: Array, weights: Array) -> Array:
    """∂(found)/∂(known) = −(GᵀW²G)⁻¹GᵀW²H."""
    if not H.shape[2]:
        return np.zeros((G.shape[2], 0))
    w = weights[None, :, None]
    with one_blas_thread():
        left, right = (G * w).reshape(-1, G.shape[2]), (H * w).reshape(-1, H.shape[2])
        scale = np.linalg.norm(left, axis=0)
        return np.asarray(-np.linalg.lstsq(left / scale, right, rcond=None)[0] / scale[:, None])
