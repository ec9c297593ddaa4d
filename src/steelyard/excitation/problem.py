"""`SearchProblem`: a goal, the motions to choose from, and what they must keep to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits, Limits, Plane, Point
from steelyard.excitation.constraints.traced_limit import power_limit, torque_limit, workspace
from steelyard.excitation.goal import Goal
from steelyard.excitation.settle import grid_settled, settle
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

FreeSpace = tuple[Sequence[Point], Sequence[Plane]]

# Grid points per coefficient of a joint. A series of M harmonics has 2 M: 40 points per coefficient are 80 per
# period of the fastest one, between which it overshoots by 8e-4 at most; what is left is settled in the end.
_LINEAR_GRID = 40
# Torques and places cost more; what they overshoot is found by `certify` and answered by tightening.
_TRACED_GRID = 20


def requirements(
    robot: Robot,
    families: Sequence[Family],
    limits: Limits,
    model: Model | None,
    torque_margin: float,
    regions: Sequence[FreeSpace],
    constraints: Sequence[Constraint | Callable[[Sequence[Family]], Constraint]] = (),
) -> tuple[Constraint, ...]:
    """All that a motion must keep to: joint limits, torque and power limits where they are finite, regions, more.

    Torque and power limits are lazy: most motions within velocity and acceleration limits never come near them. They
    are for `families`, one per joint of `robot`; the other arguments are those of `excite`: `limits`, `model` (None:
    the nominal one), `torque_margin`, `regions` and `constraints`.
    """
    out: list[Constraint] = [JointLimits(limits, families, _grid(families, _LINEAR_GRID), robot.joint_names)]
    coarse = _grid(families, _TRACED_GRID)
    drives = [x for x in ("tau", "power") if np.any(np.isfinite(getattr(limits, x)))]
    if model is None and robot.has_inertia:
        model = Model.nominal(robot)
    if "power" in drives and model is None:
        raise ExcitationError(
            f"Power limits need a model, and robot '{robot.name}' states no inertias; lift them (--power none), or "
            "give a description with inertias (in Python: model=…)."
        )
    if model is not None:
        if "tau" in drives:
            out.append(torque_limit(model, limits, families, coarse, torque_margin, lazy=True))
        if "power" in drives:
            out.append(power_limit(model, limits, families, coarse, torque_margin, lazy=True))
    elif torque_margin:
        raise ExcitationError(f"A torque margin needs a model, and robot '{robot.name}' states no inertias.")
    for points, planes in regions:
        out.append(workspace(robot, points, planes, families, coarse))
    return (*out, *(c(families) if callable(c) else c for c in constraints))


def _grid(families: Sequence[Family], per_coefficient: int) -> Array:
    """Times all over the motion, both ends included."""
    count = max(64, per_coefficient * max(f.size for f in families))
    return np.linspace(0.0, families[0].duration, count + 1)


def families_of(robot: Robot, family: Family | Sequence[Family]) -> tuple[Family, ...]:
    """One family per joint of `robot`, from one `family` for all joints or from as many."""
    families = (family,) * robot.dof if isinstance(family, Family) else tuple(family)
    if len(families) != robot.dof:
        raise ExcitationError(f"{len(families)} families are given; robot '{robot.name}' has {robot.dof} joints.")
    return families


def _start(keep: JointLimits, calm: Array, rng: np.random.Generator) -> Array:
    """Any motion inside the limits, joint by joint up to 80 % of them: at the edge all would be about the limits."""
    wild = calm + 1e3 * rng.normal(size=len(calm))
    return calm + 0.8 * (keep.drawn_back(wild, calm) - calm)


def comparison_motion(
    families: Sequence[Family],
    limits: Limits,
    seed: int = 0,
    needs: Sequence[Constraint] = (),
    centre: Trajectory | None = None,
) -> Trajectory:
    """A motion that nobody designed: what a careful person might play, and what a design is held against.

    Random coefficients, every joint up to 80 % of its limits, drawn back until `needs` hold at every instant.
    `families` has one per joint, `limits` are kept, `seed` draws; `centre` is a calm motion (None: standing in the
    middle).
    """
    calm = centre or Trajectory.standing(families, limits.middle)
    keep = JointLimits(limits, families, _grid(families, 40))
    edge = _start(keep, calm.coefficients, np.random.default_rng([seed, 8]))
    return settle(calm.with_coefficients(edge), calm, (keep, *needs))


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """Coefficients `x` of motions around `centre`, a calm motion that keeps to all constraints. `sharpness` as in
    `Criterion`."""

    goal: Goal
    centre: Trajectory
    constraints: tuple[Constraint, ...]

    @property
    def joint_limits(self) -> JointLimits:
        return next(c for c in self.constraints if isinstance(c, JointLimits))

    def objective(self, x: Array, sharpness: float) -> tuple[float, Array]:
        return self.goal.objective(x, sharpness)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Any motion, drawn by `rng`, that keeps to all limits at the times of their grids."""
        calm = self.centre.coefficients
        return grid_settled(_start(self.joint_limits, calm, rng), calm, self.constraints)

    def candidate(self, x: Array, active: Sequence[Constraint]) -> tuple[Array, float]:
        """`x` drawn back until joint limits and `active` constraints hold at the times of their grids, and its rank."""
        calm = self.centre.coefficients
        inside = self.joint_limits.drawn_back(x, calm)
        others = [c for c in active if not isinstance(c, JointLimits)]
        if others:
            inside = grid_settled(inside, calm, others)
        return inside, self.rank(inside)

    def rank(self, x: Array) -> float:
        """The objective without smoothing: smaller is better, whatever the criterion."""
        return self.goal.criterion.gradient(self.goal.seen(self.goal.gram(x)))[0]
