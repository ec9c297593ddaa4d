"""`SearchProblem`: an objective, the motions to choose from, and their constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits, Limits, Plane, Point
from steelyard.excitation.constraints.traced_limit import power_limit, torque_limit, workspace
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.goal import Goal
from steelyard.excitation.settle import settle, settle_on_grid
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

FreeSpace = tuple[Sequence[Point], Sequence[Plane]]

# Grid points per coefficient of a joint. A series of M harmonics has 2 M coefficients: 40 points for each are 80 per
# period of the fastest harmonic, which overshoots by 8e-4 at most between them. Settling removes the rest.
_LINEAR_GRID = 40
# Torques and positions of points cost more; the certified bound finds their overshoot, and the search tightens them.
_TRACED_GRID = 20


def requirements(
    robot: Robot, families: Sequence[Family], limits: Limits, options: ExciteOptions
) -> tuple[Constraint, ...]:
    """Return all constraints of a motion: joint limits, finite torque and power limits, regions and others.

    Torque and power limits are lazy: most motions within velocity and acceleration limits are far from them.

    Args:
        robot: The robot.
        families: Family of each joint.
        limits: Limits of the joints.
        options: Options of the search; model, torque margin, regions and constraints are used.
    """
    out: list[Constraint] = [JointLimits(limits, families, _grid(families, _LINEAR_GRID), robot.joint_names)]
    coarse = _grid(families, _TRACED_GRID)
    drives = [x for x in ("tau", "power") if np.any(np.isfinite(getattr(limits, x)))]
    model = Model.nominal(robot) if options.model is None and robot.has_inertia else options.model
    if "power" in drives and model is None:
        raise ExcitationError(
            f"Power limits need a model, and robot '{robot.name}' states no inertias; lift them (--power none), or "
            "give a description with inertias (in Python: model=…)."
        )
    if model is not None:
        if "tau" in drives:
            out.append(torque_limit(model, limits, families, coarse, options.torque_margin, lazy=True))
        if "power" in drives:
            out.append(power_limit(model, limits, families, coarse, options.torque_margin, lazy=True))
    elif options.torque_margin:
        raise ExcitationError(f"A torque margin needs a model, and robot '{robot.name}' states no inertias.")
    for points, planes in options.regions:
        out.append(workspace(robot, points, planes, families, coarse))
    return (*out, *(c(families) if callable(c) else c for c in options.constraints))


def _grid(families: Sequence[Family], per_coefficient: int) -> Array:
    """Return evenly spaced times over the motion, both ends included."""
    count = max(64, per_coefficient * max(f.size for f in families))
    return np.linspace(0.0, families[0].duration, count + 1)


def families_of(robot: Robot, family: Family | Sequence[Family]) -> tuple[Family, ...]:
    """Return one family per joint.

    Args:
        robot: The robot.
        family: One family for all joints, or one for each.
    """
    families = (family,) * robot.dof if isinstance(family, Family) else tuple(family)
    if len(families) != robot.dof:
        raise ExcitationError(f"Robot '{robot.name}' has {robot.dof} joints, but {len(families)} families are given.")
    return families


def _start(keep: JointLimits, calm: Array, rng: np.random.Generator) -> Array:
    """Draw a motion with each joint up to 80 % of its limits: at 100 % all starts would be dominated by the limits."""
    wild = calm + 1e3 * rng.normal(size=len(calm))
    return calm + 0.8 * (keep.draw_back(wild, calm) - calm)


def comparison_motion(
    families: Sequence[Family],
    limits: Limits,
    seed: int = 0,
    needs: Sequence[Constraint] = (),
    centre: Trajectory | None = None,
) -> Trajectory:
    """Draw a random motion, the reference for a design.

    Random coefficients, every joint up to 80 % of its limits, drawn back until `needs` hold at every instant.

    Args:
        families: Family of each joint.
        limits: Limits of the joints.
        seed: Seed of the coefficients.
        needs: Further constraints.
        centre: A calm motion that keeps all constraints; None: standstill in the middle.
    """
    calm = centre or Trajectory.standing(families, limits.middle)
    keep = JointLimits(limits, families, _grid(families, 40))
    edge = _start(keep, calm.coefficients, np.random.default_rng([seed, 8]))
    return settle(calm.with_coefficients(edge), calm, (keep, *needs))


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """Coefficients `x` of motions around a centre.

    Attributes:
        goal: The objective.
        centre: A calm motion that keeps all constraints.
        constraints: All constraints.
    """

    goal: Goal
    centre: Trajectory
    constraints: tuple[Constraint, ...]

    @property
    def joint_limits(self) -> JointLimits:
        return next(c for c in self.constraints if isinstance(c, JointLimits))

    def objective(self, x: Array, sharpness: float) -> tuple[float, Array]:
        """Compute the objective and its gradient.

        Args:
            x: Coefficients.
            sharpness: Exponent of the p-norm, as in `Criterion`.
        """
        return self.goal.objective(x, sharpness)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Draw, with `rng`, a motion within all limits at the times of their grids."""
        calm = self.centre.coefficients
        return settle_on_grid(_start(self.joint_limits, calm, rng), calm, self.constraints)

    def candidate(self, x: Array, active: Sequence[Constraint]) -> tuple[Array, float]:
        """Draw x back until constraints hold at the times of their grids; return it with its rank.

        Args:
            x: Coefficients.
            active: Constraints besides the joint limits.
        """
        calm = self.centre.coefficients
        inside = self.joint_limits.draw_back(x, calm)
        others = [c for c in active if not isinstance(c, JointLimits)]
        if others:
            inside = settle_on_grid(inside, calm, others)
        return inside, self.rank(inside)

    def rank(self, x: Array) -> float:
        """Return the objective without smoothing; smaller is better for every criterion."""
        return self.goal.criterion.gradient(self.goal.criterion_matrix(self.goal.gram(x)))[0]
