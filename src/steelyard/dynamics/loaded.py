"""Friction that grows with what a joint carries, over scalars: the torque of links and rotors, and solving for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, Vector, maximum, sign
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

    With x = τ less all other terms, x = τ_rigid + k |τ_rigid| on every coordinate that rubs so, with the sum k of its
    coefficients: τ_rigid = x / (1 + k sign x), as |k| < 1. `dynamics` has the parameters `theta`; `history` are its
    signals without loads.
    """
    terms, links, still = dynamics.terms, dynamics.robot.inertial_count, [0.0] * dynamics.robot.dof
    rotors = {int(c) for c in dynamics.rigid_columns}
    others = list(tau)
    for (joint, column), value in terms.torque(q, dq, still, history).items():
        if links + column not in rotors:
            others[joint] = others[joint] - theta[links + column] * value
    shares: dict[tuple[str, int], tuple[Coordinate, Scalar]] = {}
    for c, column, value in terms.loaded(q, dq, history):
        _, before = shares.get((c.side, c.index), (c, 0.0))
        shares[c.side, c.index] = c, before + theta[links + column] * value
    _check_sides(dynamics, [c for c, _ in shares.values()])
    out = list(tau)
    for c, k in shares.values():
        x = c.torque(q, others)
        lost = x - x / maximum(1.0 + k * sign(x), _LEAST_SHARE)
        lever = c.slope(q)
        for joint, weight in enumerate(c.weights):
            if weight != 0.0:
                out[joint] = out[joint] - weight * (lever * lost)
    return out


def _check_sides(dynamics: Dynamics, coordinates: list[Coordinate]) -> None:
    """Loads of joints and of drives depend on each other, and more drives than joints share theirs in many ways."""
    sides = {c.side for c in coordinates}
    matrix = np.eye(1) if dynamics.robot.transmission is None else dynamics.robot.transmission.matrix
    if len(sides) > 1 or ("joint" not in sides and matrix.shape[0] != matrix.shape[1]):
        raise SteelyardError(
            "Friction under load can be solved for on joints alone, or on as many drives as joints; "
            "put all such terms on one side (on=joint behind their names)."
        )
