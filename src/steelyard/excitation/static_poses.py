"""`static_poses`: static postures for the identification of gravity parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, Limits
from steelyard.excitation.constraints._space import options_in_space
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.criteria import CRITERIA, condition_number
from steelyard.excitation.design_columns import independent_of
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.search_problem import requirements
from steelyard.excitation.trajectories import Family
from steelyard.excitation.trajectories.fixed_pieces import Idle
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.progress import steps
from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import with_changes
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.load import RobotLike, as_robot

if TYPE_CHECKING:
    from rich.console import Console

_CANDIDATES = 400
_ROUNDS = 20
# Smallest gain of an exchange (log det); less is rounding.
_GAIN = 1e-9
# Options that matter at standstill.
_USED = (
    "terms", "limits", "model", "torque_margin", "box", "frame", "floor", "collision", "clearance", "packages", "srdf",
    "regions", "constraints", "seed",
)  # fmt: skip


@short_repr
@dataclass(frozen=True, eq=False)
class Poses(Outcome):
    """Static postures and the parameters that they identify.

    Dry friction biases a static torque by up to its own size: approach every posture from both sides and take the mean.

    Attributes:
        q: Postures in an order of short ways [rad, m], shape (poses, joints).
        joint_names: Names of the joints.
        columns: Base parameters that standstill can identify (gravity parameters and torque offsets).
        units: Units of the base parameters.
        gram: WᵀW over them.
    """

    q: Array
    joint_names: tuple[str, ...]
    columns: tuple[str, ...]
    units: tuple[str, ...]
    gram: Array

    @property
    def condition_number(self) -> float:
        """cond₂ of W, with the base's own columns."""
        return condition_number(self.gram)

    def standard_errors(self, noise: float) -> Array:
        """Compute the standard error of every column for one reading per posture with torque `noise` [N m]."""
        return noise * np.sqrt(np.diag(np.linalg.inv(self.gram)))

    def to_json(self) -> dict[str, Any]:
        errors = self.standard_errors(1.0)
        return {
            "joints": list(self.joint_names),
            "postures": self.q.tolist(),
            "condition_number": self.condition_number,
            "base_parameters": [
                {"name": n, "unit": u, "standard_error_per_newton_metre_of_noise": float(e)}
                for n, u, e in zip(self.columns, self.units, errors, strict=True)
            ],
        }

    def files(self) -> dict[str, Content]:
        """Return poses.csv: a row per posture, a column per joint [rad, m]."""
        return {"poses.csv": csv_text([self.joint_names, *([f"{x:.10g}" for x in row] for row in self.q)])}

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import number
        from steelyard.report.terminal import say, table

        rows = [[str(k + 1), *(number(x) for x in q)] for k, q in enumerate(self.q)]
        names = list(self.joint_names)
        out.print(table("Static postures, rad (m)", ["", *names], rows, right=names))
        say(
            out,
            f"They identify {len(self.columns)} base parameters, condition number {number(self.condition_number)}. "
            "Approach each from both sides and take the mean, which cancels dry friction.",
        )
        if folder:
            say(out, f"\nWritten to {folder}: poses.csv, result.json.")


def static_poses(
    robot: RobotLike,
    count: int,
    options: ExciteOptions | None = None,
    **changes: Any,
) -> Poses:
    """Choose postures that maximise det(WᵀW) of the static torque rows, within all limits.

    Random postures within the limits are exchanged one by one for better ones (Fedorov 1972), then moved along the
    exact gradient.

    Args:
        robot: As in `excite`.
        count: Number of postures.
        options: Options of the design; their terms, limits, model, space and seed count.
        **changes: Fields of `ExciteOptions` that replace those of `options`.
    """
    robot = as_robot(robot)
    o = with_changes(options or ExciteOptions(), changes, "static_poses", _USED)
    o, _ = options_in_space(robot, o)
    bounds = limits_from(robot, o.limits)
    base = base_parameters(robot, o.terms)
    families: tuple[Family, ...] = (Idle(1.0, None),) * robot.dof
    needs = requirements(robot, families, bounds, o)
    candidates = feasible_postures(bounds, needs, o.seed)
    dynamics, joints = base.structure.dynamics, np.flatnonzero(robot.torque_used)
    all_columns = np.array(base.independent)
    rows = _rows(dynamics, candidates, joints, all_columns)
    identifiable = independent_of(np.einsum("njk,njl->kl", rows, rows))
    if not identifiable:
        raise ExcitationError(
            f"Standstill identifies no parameter of robot '{robot.name}': gravity loads none of its joints."
        )
    least = -(-len(identifiable) // len(joints))
    if count < least:
        raise ExcitationError(
            f"{count} postures are too few for {len(identifiable)} gravity parameters; give {least} or more."
        )
    columns = all_columns[identifiable]
    chosen = exchange_postures(rows[:, :, identifiable], count, np.random.default_rng([o.seed, 2]))
    q = _move_along_gradient(dynamics, candidates[chosen], joints, columns, bounds, needs)
    W = _rows(dynamics, q, joints, columns).reshape(-1, len(columns))
    names, units = tuple(base.names[k] for k in identifiable), tuple(base.units[k] for k in identifiable)
    return Poses(order_by_distance(q, bounds), robot.joint_names, names, units, W.T @ W)


def feasible_postures(bounds: Limits, needs: Sequence[Constraint], seed: int) -> Array:
    """Draw random postures within all limits; joints without position limits get one turn.

    Args:
        bounds: Limits of the joints.
        needs: Constraints.
        seed: Seed.
    """
    low, high = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    samples = np.random.default_rng(seed).uniform(low, high, (_CANDIDATES, len(low)))
    good = np.array([q for q in samples if _is_feasible(q, needs)])
    if len(good) < 2:
        raise ExcitationError(
            f"Of {_CANDIDATES} random postures only {len(good)} keep to all limits; give wider limits or regions."
        )
    return good


def _is_feasible(q: Array, needs: Sequence[Constraint]) -> bool:
    return all(float(c.at_rest(q)[0].max(initial=-1.0)) <= 0.0 for c in needs)


def _rows(dynamics: Dynamics, q: Array, joints: Any, columns: Any) -> Array:
    still = np.zeros_like(q)
    Y = dynamics.torque_regressor(q, still, still)
    return np.asarray(Y[np.ix_(np.arange(len(q)), joints, columns)])


def exchange_postures(rows: Array, count: int, rng: np.random.Generator, repeats: bool = True) -> list[int]:
    """Return the indices of a set that no exchange of one posture improves (or that of the last round).

    Args:
        rows: Rows of every candidate, shape (candidates, rows, columns).
        count: Number of postures.
        rng: Random numbers for the first set.
        repeats: Whether a posture may be chosen twice, if there are enough.
    """
    repeats = repeats or count > len(rows)
    scale = np.sqrt(np.einsum("njk,njk->k", rows, rows) / len(rows))
    scaled = rows / scale
    ridge = 1e-9 * np.eye(rows.shape[2])  # the first draw may leave directions without excitation
    chosen = [int(k) for k in rng.choice(len(rows), size=count, replace=count > len(rows))]
    for _ in steps(range(_ROUNDS), "Choosing postures", lambda _: "", 0.0, 0.9):
        changed = False
        for slot in range(count):
            others = [k for n, k in enumerate(chosen) if n != slot]
            rest = np.einsum("njk,njl->kl", scaled[others], scaled[others]) + ridge
            inner = np.einsum("njk,kl,nml->njm", scaled, np.linalg.inv(rest), scaled)
            # det(G + RᵀR) = det(G) det(1 + R G⁻¹ Rᵀ)
            gains = np.linalg.slogdet(np.eye(rows.shape[1]) + inner)[1]
            if not repeats:
                gains[others] = -np.inf
            best = int(np.argmax(gains))
            if gains[best] > gains[chosen[slot]] + _GAIN:
                chosen[slot], changed = best, True
        if not changed:
            break
    return chosen


def _move_along_gradient(
    dynamics: Dynamics, start: Array, joints: Any, columns: Any, bounds: Limits, needs: Sequence[Constraint]
) -> Array:
    """Improve all postures together by exact gradients; a posture that leaves the limits keeps its start."""
    from scipy.optimize import minimize

    shape, criterion = start.shape, CRITERIA["d"]
    parameters = len(dynamics.parameters)

    def objective(x: Array) -> tuple[float, Array]:
        q = x.reshape(shape)
        W = _rows(dynamics, q, joints, columns)
        value, slope = criterion.gradient(np.einsum("njk,njl->kl", W, W))
        cotangent = np.zeros((*shape, parameters))
        cotangent[np.ix_(np.arange(len(q)), joints, columns)] = 2.0 * W @ slope
        still = np.zeros_like(q)
        pull = dynamics.adjoint("torque_regressor", cotangent, q=q, dq=still, ddq=still)["q"]
        return value, np.asarray(pull).ravel()

    box = [pair for _ in start for pair in zip(bounds.lower, bounds.upper, strict=True)]
    result = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 200})
    better = np.asarray(result.x).reshape(shape)
    moved = np.array([new if _is_feasible(new, needs) else old for new, old in zip(better, start, strict=True)])
    return moved if objective(moved.ravel())[0] < objective(start.ravel())[0] else start


def order_by_distance(q: Array, bounds: Limits) -> Array:
    """Order the postures: first the one nearest to the middle, then always the nearest remaining one.

    Args:
        q: Postures, shape (poses, joints).
        bounds: Limits of the joints.
    """
    left, order = list(range(len(q))), list[int]()
    here: Array = bounds.middle
    while left:
        nearest = min(left, key=lambda k: float(np.max(np.abs(q[k] - here) / bounds.dq)))
        left.remove(nearest)
        order.append(nearest)
        here = q[nearest]
    return np.asarray(q[order])
