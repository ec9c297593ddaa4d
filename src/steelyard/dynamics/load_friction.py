"""Friction under load over scalars: the transmitted torque of links and rotors, and solving for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, Vector, absolute, maximum, minimum, sign
from steelyard.parameters.coordinate import Coordinate

if TYPE_CHECKING:
    from steelyard.dynamics.engine import Dynamics

# Friction under load is at most 1 − this fraction of the driving torque, whatever coefficients a search tries.
_LEAST_SHARE = 0.05


def with_rotors(dynamics: Dynamics, torque: Vector, q: Vector, dq: Vector, ddq: Vector, theta: Vector) -> list[Scalar]:
    """Add the torque of rotors to that of links, if a term depends on the load.

    Args:
        dynamics: Physics with the terms.
        torque: Torque of the links [N m, N].
        q, dq, ddq: Positions [rad, m], velocities and accelerations.
        theta: All parameters.
    """
    out = list(torque)
    if dynamics.terms.needs_rigid:
        links = dynamics.robot.inertial_count
        rotors = [theta[int(c)] for c in dynamics.rigid_columns[links:]]
        for (joint, k), value in dynamics.rigid.terms.torque(q, dq, ddq).items():
            out[joint] = out[joint] + rotors[k] * value
    return out


def without_load_friction(
    dynamics: Dynamics, q: Vector, dq: Vector, tau: Vector, theta: Vector, history: Vector
) -> list[Scalar]:
    """Subtract friction under load from joint torques.

    With x = τ less all other terms, x = τ_rigid + Σ kᵢ min(|τ_rigid|, limitᵢ) on every coordinate with such friction,
    which `_solve_load` solves.

    Args:
        dynamics: Physics with the terms.
        q, dq: Positions [rad, m] and velocities.
        tau: Joint torques [N m, N].
        theta: All parameters.
        history: Signals of the terms, without loads.
    """
    terms, links, still = dynamics.terms, dynamics.robot.inertial_count, [0.0] * dynamics.robot.dof
    rotors = {int(c) for c in dynamics.rigid_columns}
    others = list(tau)
    for (joint, column), value in terms.torque(q, dq, still, history).items():
        if links + column not in rotors:
            others[joint] = others[joint] - theta[links + column] * value
    shares: dict[tuple[str, int], tuple[Coordinate, dict[float, Scalar]]] = {}
    for c, column, value, load in terms.load_forces(q, dq, history):
        _, by_limit = shares.setdefault((c.side, c.index), (c, {}))
        limit = load.limit or np.inf
        by_limit[limit] = by_limit.get(limit, 0.0) + theta[links + column] * value
    _check_sides(dynamics, [c for c, _ in shares.values()])
    out = list(tau)
    for c, by_limit in shares.values():
        x = c.torque(q, others)
        lost = x - _solve_load(x, by_limit)
        lever = c.slope(q)
        for joint, weight in enumerate(c.weights):
            if weight != 0.0:
                out[joint] = out[joint] - weight * (lever * lost)
    return out


def _solve_load(x: Scalar, by_limit: dict[float, Scalar]) -> Scalar:
    """Solve x = τ + Σ k·min(|τ|, limit) for the torque τ of links and rotors.

    The right side is piecewise linear with a bend at every limit, and increases because the sum of all |k| is below 1.
    Between two limits its slope is 1 + sign(x) times the sum of the coefficients k with larger limits.

    Args:
        x: Torque of the coordinate less all other terms [N m, N].
        by_limit: Sum of the coefficients k by limit [N m, N]; infinite: no limit.
    """
    out, rest, below = 0.0, absolute(x), 0.0
    for limit in sorted({*by_limit, np.inf}):
        slope = 1.0
        for other, k in by_limit.items():
            if other >= limit:
                slope = slope + k * sign(x)
        slope = maximum(slope, _LEAST_SHARE)
        part = rest / slope
        if limit < np.inf:
            part = minimum(part, limit - below)
            rest = maximum(rest - slope * part, 0.0)
        out, below = out + part, limit
    return sign(x) * out


def _check_sides(dynamics: Dynamics, coordinates: list[Coordinate]) -> None:
    """Refuse loads on both joints and drives, and on more drives than joints: they do not have a unique solution
    here.
    """
    sides = {c.side for c in coordinates}
    matrix = np.eye(1) if dynamics.robot.transmission is None else dynamics.robot.transmission.matrix
    if len(sides) > 1 or ("joint" not in sides and matrix.shape[0] != matrix.shape[1]):
        raise SteelyardError(
            "Friction under load is supported on joints alone, or on as many drives as joints; "
            "put all such terms on one side (add on=joint to their names)."
        )
