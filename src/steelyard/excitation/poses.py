"""`static_poses`: postures in which standing still tells most about gravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, Limits
from steelyard.excitation.constraints._space import keeps_apart, stays_in
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.criteria import CRITERIA, condition_number
from steelyard.excitation.design import independent_of
from steelyard.excitation.problem import FreeSpace, requirements
from steelyard.excitation.trajectories import Family
from steelyard.excitation.trajectories.fixed import Idle
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.progress import steps
from steelyard.parameters.terms import TermsLike
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.load import RobotLike, as_robot

if TYPE_CHECKING:
    from rich.console import Console

_CANDIDATES = 400
_ROUNDS = 20
# A share of what the best exchange must gain; less is rounding.
_GAIN = 1e-9


@dataclass(frozen=True, eq=False)
class Poses(Outcome):
    """Postures `q` (poses, joints) in an order of short ways, and what they show.

    `columns` are the base parameters that standing still can show (gravity's, and offsets of torque); `gram` is WᵀW
    over them. Dry friction hides up to its own size of a static torque: approach every posture from both sides and
    take the mean.
    """

    q: Array
    joint_names: tuple[str, ...]
    columns: tuple[str, ...]
    units: tuple[str, ...]
    gram: Array

    @property
    def condition_number(self) -> float:
        """cond₂ of W, columns as they stand in the base."""
        return condition_number(self.gram)

    def standard_errors(self, noise: float) -> Array:
        """Of every column, for one reading per posture with this `noise` of torque (N m)."""
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
        """poses.csv: a row per posture, a column per joint, rad (m)."""
        return {"poses.csv": csv_text([self.joint_names, *([f"{x:.10g}" for x in row] for row in self.q)])}

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.ground.numbers import number
        from steelyard.report.terminal import say, table

        rows = [[str(k + 1), *(number(x) for x in q)] for k, q in enumerate(self.q)]
        names = list(self.joint_names)
        out.print(table("Postures to stand in, rad (m)", ["", *names], rows, right=names))
        say(
            out,
            f"Standing still in them shows {len(self.columns)} base parameters, condition number "
            f"{number(self.condition_number)}. Come to each from both sides and take the mean: friction hides there.",
        )
        if folder:
            say(out, f"\nWritten to {folder}: poses.csv, result.json.")


def static_poses(
    robot: RobotLike,
    count: int,
    *,
    terms: TermsLike | None = None,
    limits: Mapping[str, ArrayLike] | Limits | None = None,
    model: Model | None = None,
    torque_margin: float = 0.0,
    box: Sequence[float] | None = None,
    frame: str = "",
    floor: float | None = None,
    collision: bool | None = False,
    clearance: float = 0.02,
    packages: Sequence[str | Path] = (),
    srdf: str | Path | None = None,
    regions: Sequence[FreeSpace] = (),
    constraints: Sequence[Any] = (),
    seed: int = 0,
) -> Poses:
    """Choose `count` postures that maximise det(WᵀW) of the static torque rows, within all limits.

    Random postures that keep to the limits are exchanged one by one for better ones (Fedorov 1972), then moved along
    the exact gradient. The other arguments are those of `excite`: `robot`, `terms`, `limits`, `model`, `torque_margin`,
    `box`, `frame`, `floor`, `collision`, `clearance`, `packages`, `srdf`, `regions`, `constraints` and `seed`.
    """
    robot = as_robot(robot)
    regions = [*stays_in(robot, box, floor, frame), *regions]
    constraints = [*keeps_apart(robot, collision, clearance, packages, srdf)[0], *constraints]
    bounds = limits_from(robot, limits)
    base = base_parameters(robot, terms)
    families: tuple[Family, ...] = (Idle(1.0, None),) * robot.dof
    needs = requirements(robot, families, bounds, model, torque_margin, regions, constraints)
    candidates = _candidates(bounds, needs, seed)
    dynamics, joints = base.structure.dynamics, np.flatnonzero(robot.torque_used)
    every = np.array(base.independent)
    rows = _rows(dynamics, candidates, joints, every)
    kept = independent_of(np.einsum("njk,njl->kl", rows, rows))
    if not kept:
        raise ExcitationError(
            f"Standing still shows nothing of robot '{robot.name}': gravity loads none of its joints."
        )
    least = -(-len(kept) // len(joints))
    if count < least:
        raise ExcitationError(
            f"{count} postures are too few for {len(kept)} parameters of gravity; give {least} or more."
        )
    columns = every[kept]
    chosen = _exchanged(rows[:, :, kept], count, np.random.default_rng([seed, 2]))
    q = _moved(dynamics, candidates[chosen], joints, columns, bounds, needs)
    W = _rows(dynamics, q, joints, columns).reshape(-1, len(columns))
    names, units = tuple(base.names[k] for k in kept), tuple(base.units[k] for k in kept)
    return Poses(_short_way(q, bounds), robot.joint_names, names, units, W.T @ W)


def _candidates(bounds: Limits, needs: Sequence[Constraint], seed: int) -> Array:
    """Random postures that keep to everything; joints without position limits turn once."""
    low, high = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
    drawn = np.random.default_rng(seed).uniform(low, high, (_CANDIDATES, len(low)))
    good = np.array([q for q in drawn if _kept(q, needs)])
    if len(good) < 2:
        raise ExcitationError(
            f"Of {_CANDIDATES} random postures only {len(good)} keep to all limits; give wider limits or regions."
        )
    return good


def _kept(q: Array, needs: Sequence[Constraint]) -> bool:
    return all(float(c.at_rest(q)[0].max(initial=-1.0)) <= 0.0 for c in needs)


def _rows(dynamics: Dynamics, q: Array, joints: Any, columns: Any) -> Array:
    still = np.zeros_like(q)
    Y = dynamics.torque_regressor(q, still, still)
    return np.asarray(Y[np.ix_(np.arange(len(q)), joints, columns)])


def _exchanged(rows: Array, count: int, rng: np.random.Generator) -> list[int]:
    """Indices of a set that no exchange of one posture improves (or after some rounds of them)."""
    scale = np.sqrt(np.einsum("njk,njk->k", rows, rows) / len(rows))
    scaled = rows / scale
    ridge = 1e-9 * np.eye(rows.shape[2])  # a first draw may leave directions unseen
    chosen = [int(k) for k in rng.choice(len(rows), size=count, replace=count > len(rows))]
    for _ in steps(range(_ROUNDS), "Choosing postures", lambda _: "", 0.0, 0.9):
        changed = False
        for place in range(count):
            others = [k for n, k in enumerate(chosen) if n != place]
            rest = np.einsum("njk,njl->kl", scaled[others], scaled[others]) + ridge
            inner = np.einsum("njk,kl,nml->njm", scaled, np.linalg.inv(rest), scaled)
            # det(G + RᵀR) = det(G) det(1 + R G⁻¹ Rᵀ)
            gains = np.linalg.slogdet(np.eye(rows.shape[1]) + inner)[1]
            best = int(np.argmax(gains))
            if gains[best] > gains[chosen[place]] + _GAIN:
                chosen[place], changed = best, True
        if not changed:
            break
    return chosen


def _moved(
    dynamics: Dynamics, start: Array, joints: Any, columns: Any, bounds: Limits, needs: Sequence[Constraint]
) -> Array:
    """The postures improved together by exact gradients, where what comes out keeps to everything."""
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
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 200})
    better = np.asarray(found.x).reshape(shape)
    moved = np.array([new if _kept(new, needs) else old for new, old in zip(better, start, strict=True)])
    return moved if objective(moved.ravel())[0] < objective(start.ravel())[0] else start


def _short_way(q: Array, bounds: Limits) -> Array:
    """The postures from the one nearest to the middle on, always to the nearest that is left."""
    left, order = list(range(len(q))), list[int]()
    here: Array = bounds.middle
    while left:
        nearest = min(left, key=lambda k: float(np.max(np.abs(q[k] - here) / bounds.dq)))
        left.remove(nearest)
        order.append(nearest)
        here = q[nearest]
    return np.asarray(q[order])
