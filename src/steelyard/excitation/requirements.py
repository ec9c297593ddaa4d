"""All that a motion must keep to, from limits, models and regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError
from steelyard.excitation.constraints import Constraint, JointLimits, Limits, Plane, Point
from steelyard.excitation.constraints.traced_limit import power_limit, torque_limit, workspace
from steelyard.excitation.settle import settle
from steelyard.excitation.trajectories import Family, Trajectory
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot

Region = tuple[Sequence[Point], Sequence[Plane]]

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
    regions: Sequence[Region],
) -> tuple[Constraint, ...]:
    """Joint limits, torque and power limits where they are finite, regions.

    Torque and power limits are lazy: most motions within velocity and acceleration limits never come near them.
    """
    out: list[Constraint] = [JointLimits(limits, families, grid(families, _LINEAR_GRID), robot.joint_names)]
    coarse = grid(families, _TRACED_GRID)
    drives = [x for x in ("tau", "power") if np.any(np.isfinite(getattr(limits, x)))]
    if model is None and robot.has_inertia:
        model = Model.nominal(robot)
    if "power" in drives and model is None:
        raise ExcitationError(f"Power limits need a model, and robot '{robot.name}' states no inertias; give model=….")
    if model is not None:
        if "tau" in drives:
            out.append(torque_limit(model, limits, families, coarse, torque_margin, lazy=True))
        if "power" in drives:
            out.append(power_limit(model, limits, families, coarse, torque_margin, lazy=True))
    elif torque_margin:
        raise ExcitationError(f"A torque margin needs a model, and robot '{robot.name}' states no inertias.")
    for points, planes in regions:
        out.append(workspace(robot, points, planes, families, coarse))
    return tuple(out)


def grid(families: Sequence[Family], per_coefficient: int) -> Array:
    """Times all over the motion, both ends included."""
    count = max(64, per_coefficient * max(f.size for f in families))
    return np.linspace(0.0, families[0].duration, count + 1)


# A motion that nobody designed: what a careful person might play, and what a design is held against.


# As starts of a search do: limits are neared, not touched.
_SHARE = 0.8


def random_motion(
    families: Sequence[Family],
    limits: Limits,
    seed: int = 0,
    needs: Sequence[Constraint] = (),
    centre: Trajectory | None = None,
) -> Trajectory:
    """Random coefficients, every joint up to 80 % of its limits, drawn back until `needs` hold at every instant."""
    calm = centre or Trajectory.standing(families, limits.middle)
    keep = JointLimits(limits, families, grid(families, 40))
    wild = calm.coefficients + 1e3 * np.random.default_rng([seed, 8]).normal(size=calm.size)
    edge = calm.coefficients + _SHARE * (keep.drawn_back(wild, calm.coefficients) - calm.coefficients)
    return settle(calm.with_coefficients(edge), calm, (keep, *needs))
