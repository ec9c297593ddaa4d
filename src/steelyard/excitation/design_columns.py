"""`DesignColumns`: the columns, equations and scheme that a motion is designed for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ExcitationError, ShapeError, UnknownNameError
from steelyard.excitation._motion_rows import SchemeRows, TorqueRows, Windows
from steelyard.excitation.constraints import Limits
from steelyard.excitation.criteria import Linear, MarginalInformation, UnitColumns, View, criterion_named
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.goal import Goal, Observation
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.parameters.terms import as_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.factor import Factor
from steelyard.robot.robot import Robot

# Squared remainder of a unit column after projection on the earlier ones: 1e-7 or more for independent base columns of
# random motions, 1e-13 or less (rounding) for dependent ones.
_INDEPENDENT = 1e-10


def independent_of(gram: Array) -> list[int]:
    """Return the indices of columns that are no combination of earlier ones (Cholesky pivots of the scaled `gram`)."""
    scale = np.sqrt(np.diag(gram))
    excited = scale > 1e-12 * scale.max(initial=0.0)
    left = gram / np.outer(np.where(excited, scale, 1.0), np.where(excited, scale, 1.0))
    identifiable: list[int] = []
    for k in range(len(gram)):
        if excited[k] and left[k, k] > _INDEPENDENT:
            identifiable.append(k)
            left = left - np.outer(left[:, k], left[k]) / left[k, k]
    return identifiable


def _named_columns(base: BaseParameters, names: Sequence[str] | None) -> list[int]:
    """Return the positions of these names among the base parameters (default: all)."""
    if names is None:
        return list(range(base.rank))
    for name in names:
        if name not in base.names:
            raise UnknownNameError("base parameter", name, base.names)
    chosen = sorted({base.names.index(name) for name in names})
    if not chosen:
        raise ExcitationError("`parameters` is empty; leave it out to design for all of them.")
    return chosen


SCALINGS = ("natural", "unit", "orthonormal")
# Number of random motions that together excite all identifiable parameters.
_MOTIONS = 4


class DesignColumns:
    """The parameters that the moving joints can excite in the chosen equations, and their observation along motions.

    Args:
        robot: The robot.
        families: Family of each joint.
        limits: Limits of the joints.
        options: Options of the design; their terms are objects.
    """

    def __init__(
        self,
        robot: Robot,
        families: Sequence[Family],
        limits: Limits,
        options: ExciteOptions,
    ) -> None:
        rate, scheme, equations = options.rate, options.scheme, options.equations
        terms = as_terms(robot, options.terms)
        self.robot, self.families, self.limits = robot, tuple(families), limits
        if terms is not None:
            terms.refuse_history("The design of a motion")
        self.base = base_parameters(robot, terms)
        used = [j for j in range(robot.dof) if robot.torque_used[j]]
        rows = used if equations is None else [robot.joint_index(n) for n in equations]
        if not rows:
            raise ExcitationError("The torque of at least one joint must count; name it in `equations`.")
        times = Trajectory.standing(families, np.zeros(robot.dof)).times(rate)
        sampled = SampledMotions(families, times)

        def observe(places: Sequence[int]) -> Observation:
            columns = [self.base.independent[k] for k in places]
            if scheme == "dynamic":
                return TorqueRows(self.base.structure.dynamics, columns, sampled, rows)
            windows = Windows.along(len(times), rate, options.window or 1.0 / rate, options.long_windows)
            return SchemeRows(self.base.structure.dynamics, columns, sampled, scheme, rows, windows)

        chosen = _named_columns(self.base, options.parameters)
        first = observe(chosen)
        identifiable = independent_of(self._random_gram(first, len(chosen), options.seed))
        if not identifiable:
            raise ExcitationError("No parameter is identifiable: the moving joints excite none in these equations.")
        self.chosen = [chosen[k] for k in identifiable]
        self.observation = first if len(identifiable) == len(chosen) else observe(self.chosen)
        if len(times) * len(self.observation.names) < len(self.chosen):
            raise ExcitationError(
                f"{len(times)} samples are too few for {len(self.chosen)} parameters; give a longer motion."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.base.names[k] for k in self.chosen)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(self.base.units[k] for k in self.chosen)

    def _random_gram(self, observation: Observation, size: int, seed: int) -> Array:
        """Compute WᵀW of random motions of the moving joints."""
        rng = np.random.default_rng([seed, 1])
        total = np.zeros((size, size))
        for _ in range(_MOTIONS):
            still = Trajectory.standing(self.families, self.limits.middle).coefficients
            x = still + rng.normal(size=len(still))
            for place, gram in zip(observation.places, observation.grams(x), strict=True):
                total[np.ix_(place, place)] += gram
        return total

    def goal(self, options: ExciteOptions) -> Goal:
        """Return the objective of the search by the criterion, scaling, weights and prior of the `options`."""
        numbers, weighting = self._weights(options.weights)
        return Goal(
            self.observation,
            criterion_named(options.criterion),
            self.columns,
            self._views(options.scaling, options.wanted),
            numbers,
            self._prior(options.prior, numbers),
            weighting,
        )

    def _views(self, scaling: str, wanted: Sequence[str] | None) -> tuple[View, ...]:
        if scaling not in SCALINGS:
            raise UnknownNameError("scaling", scaling, SCALINGS)
        views: list[View] = []
        if scaling == "orthonormal":
            if len(self.chosen) != self.base.rank or wanted is not None:
                raise ExcitationError(
                    "An orthonormal basis is one of all base parameters; for some use --scaling unit (in Python: "
                    "scaling='unit')."
                )
            # W = W_b M = (W_b Rᵀ) Qᵀ with Mᵀ = Q R: in the orthonormal basis Q the columns are W_b Rᵀ.
            R = np.asarray(np.linalg.qr(self.base.matrix.T, mode="r"))
            views.append(Linear(R.T, "in an orthonormal basis"))
        if wanted is not None:
            for name in wanted:
                if name not in self.columns:
                    raise UnknownNameError("column", name, self.columns)
            views.append(MarginalInformation([self.columns.index(n) for n in wanted], self.columns))
        if scaling == "unit":
            views.append(UnitColumns())
        return tuple(views)

    def _weights(self, weights: str | ArrayLike | None) -> tuple[Array | None, str]:
        names = self.observation.names
        if weights is None:
            return None, "rows unweighted"
        if isinstance(weights, str):
            if weights not in ("torque", "torque-inverse"):
                raise UnknownNameError("weighting", weights, ("torque", "torque-inverse"))
            if names == ("energy",):
                raise ExcitationError("An energy balance has one equation; weights change nothing there.")
            torque = np.array([self.limits.tau[self.robot.joint_index(n)] for n in names])
            if not np.all(np.isfinite(torque)):
                raise ExcitationError("Torque weights need the torque limit of every joint; give limits['tau'].")
            scale = torque / torque.max()
            printed = weights == "torque"
            return scale if printed else 1.0 / scale, f"rows times τ{'' if printed else '⁻¹'} of their joint"
        numbers = np.asarray(weights, dtype=float)
        if numbers.shape != (len(names),) or not np.all(numbers > 0.0):
            raise ExcitationError(f"weights must be {len(names)} positive numbers, one for each of {', '.join(names)}.")
        return numbers, "rows weighted"

    def _prior(self, prior: Array | Factor | None, weights: Array | None) -> Array | None:
        if prior is None:
            return None
        if isinstance(prior, Factor):
            columns = [self.base.independent[k] for k in self.chosen]
            R = prior.combined_triangle(weights, columns)[:, :-1]
            return np.asarray(R.T @ R)
        matrix = np.asarray(prior, dtype=float)
        size = len(self.chosen)
        if matrix.shape == (size,):
            matrix = np.diag(matrix)
        if matrix.shape != (size, size) or not np.allclose(matrix, matrix.T):
            raise ShapeError(f"prior has shape {matrix.shape}; give a symmetric ({size}, {size}) or its diagonal.")
        return matrix
