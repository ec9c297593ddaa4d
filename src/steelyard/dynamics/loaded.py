"""Friction that grows with what a joint carries, over scalars: the torque of links and rotors, and solving for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, Vector, absolute, maximum, minimum, sign
from steelyard.parameters.coordinate import Coordinate

if TYPE_CHECKING:
    from steelyard.dynamics.engine import Dynamics

# Friction under load never takes more than 1 − this of what drives it, whatever coefficients a search may try.
_LEAST_SHARE = 0.05


def with_rotors(dynamics: Dynamics, torque: Vector, q: Vector, dq: Vector, ddq: Vector, theta: Vector) -> list[Scalar]:
    """The torque of links and rotors, where a term of `dynamics` goes by it.

    `torque` is the links' alone at positions `q` (rad, m), velocities `dq` and accelerations `ddq`; `theta` are all
    parameters.
    """
    out = list(torque)
    if dynamics.terms.needs_rigid:
        links = dynamics.robot.inertial_count
        rotors = [theta[int(c)] for c in dynamics.rigid_columns[links:]]
        for (joint, k), value in dynamics.rigid.terms.torque(q, dq, ddq).items():
            out[joint] = out[joint] + rotors[k] * value
    return out


def less_loaded(dynamics: Dynamics, q: Vector, dq: Vector, tau: Vector, theta: Vector, history: Vector) -> list[Scalar]:
    """The joint torques `tau` (N m, N) less the friction that the robot's load adds, at `q` (rad, m) and `dq`.

    With x = τ less all other terms, x = τ_rigid + Σ kᵢ min(|τ_rigid|, limitᵢ) on every coordinate that rubs so, which
    `_carried` solves. `dynamics` has the parameters `theta`; `history` are its signals without loads.
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
        lost = x - _carried(x, by_limit)
        lever = c.slope(q)
        for joint, weight in enumerate(c.weights):
            if weight != 0.0:
                out[joint] = out[joint] - weight * (lever * lost)
    return out


def _carried(x: Scalar, by_limit: dict[float, Scalar]) -> Scalar:
    """Solve x = τ + Σ k·min(|τ|, limit) for the torque τ of links and rotors.

    The right side is a line with a bend at every limit, and rises because the sum of all |k| is below 1. Between two
    limits its slope is 1 + sign(x) times the sum of the coefficients k whose limit lies above.

    Args:
        x: torque of the coordinate less all other terms [N m, N].
        by_limit: sum of the coefficients k by limit [N m, N]; infinite: none.
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
    """Loads of joints and of drives depend on each other, and more drives than joints share theirs in many ways."""
    sides = {c.side for c in coordinates}
    matrix = np.eye(1) if dynamics.robot.transmission is None else dynamics.robot.transmission.matrix
    if len(sides) > 1 or ("joint" not in sides and matrix.shape[0] != matrix.shape[1]):
        raise SteelyardError(
            "Friction under load can be solved for on joints alone, or on as many drives as joints; "
            "put all such terms on one side (on=joint behind their names)."
        )
