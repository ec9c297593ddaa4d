"""Take gravity off the torque of plateaus: by symmetry, by pairing directions, or by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.friction.plateaus import Plateau, error_of_mean
from steelyard.ground.arrays import Array

# Two plateaus are a pair if their speeds agree to this part and they share at least this part of their ways.
_SAME_SPEED = 0.05
_SHARED_WAY = 0.3
_GRID = 64


def by_symmetry(plateaus: Sequence[Plateau], middle: float) -> list[Plateau]:
    """The mean over a way that is symmetric about position `middle`, where the gravity torque is odd: it averages out.

    Right for a link about its vertical posture; for one about its horizontal posture gravity does not cancel
    (Kozłowski & Dutkiewicz 1996 tune a counterweight instead).
    """
    out = []
    for p in plateaus:
        q = p.q[:, p.joint]
        reach = min(middle - float(q.min()), float(q.max()) - middle)
        if reach <= 0.0:
            continue
        inside = np.abs(q - middle) <= reach
        if np.count_nonzero(inside) >= 8:
            # Over the way, not over time: at constant speed they are the same but for ripple of the speed.
            even = 0.5 * (_over(p, middle + _steps(reach)) + _over(p, middle - _steps(reach)))
            out.append(replace(p, torque=float(np.mean(even)), error=error_of_mean(even)))
    return out


def by_pairs(plateaus: Sequence[Plateau]) -> list[Plateau]:
    """Half the difference of the two directions at equal speed and position: gravity is the same in both.

    What differs between the directions stays with gravity, so that the curve comes out symmetric.
    """
    out = []
    backward = [p for p in plateaus if p.velocity < 0.0]
    for p in (p for p in plateaus if p.velocity > 0.0):
        # The nearest in time, so that both are equally warm.
        for n in sorted(backward, key=lambda other: abs(other.start - p.start)):
            way = _common_way(p, n) if abs(p.velocity + n.velocity) <= _SAME_SPEED * p.velocity else None
            if way is None:
                continue
            half = 0.5 * (_over(p, way) - _over(n, way))
            mean, error = float(np.mean(half)), error_of_mean(half)
            out += [replace(p, torque=mean, error=error), replace(n, torque=-mean, error=error)]
            backward.remove(n)
            break
    return out


def by_model(plateaus: Sequence[Plateau], model: Model) -> list[Plateau]:
    """Less the torque that a model needs to hold the robot; its friction and offsets do not count."""
    rigid = Model(model.robot, model.terms, np.where(_rigid(model), model.theta, 0.0))
    out = []
    for p in plateaus:
        held = rigid.gravity_torque(p.q)[:, p.joint]
        rest = p.tau - held
        load = float(np.mean(np.abs(held)))
        out.append(replace(p, torque=float(np.mean(rest)), error=error_of_mean(rest), tau=rest, load=load))
    return out


def remove_gravity(
    plateaus: Sequence[Plateau], how: str, model: Model | None = None, middle: float | None = None
) -> list[Plateau]:
    """One of "pairs", "symmetry" (about `middle`), "model" or "none"."""
    if how == "none":
        return list(plateaus)
    if how == "pairs":
        return by_pairs(plateaus)
    if how == "symmetry":
        if middle is None:
            raise SteelyardError("Symmetry needs the position about which gravity is odd.")
        return by_symmetry(plateaus, middle)
    if how == "model":
        if model is None:
            raise SteelyardError("To take gravity off by a model, give an identified model.")
        return by_model(plateaus, model)
    raise SteelyardError(f"Gravity is removed by pairs, symmetry, model or none, not by '{how}'.")


def _rigid(model: Model) -> Array:
    """The parameters of links, springs and balancers: what depends on position alone."""
    conservative = [
        not (term.inertial or term.dissipative or term.bias) for term, _ in model.terms.placed for _ in term.columns
    ]
    return np.array([True] * model.robot.inertial_count + conservative)


def _steps(reach: float) -> Array:
    return np.linspace(0.0, reach, _GRID)


def _over(p: Plateau, way: Array) -> Array:
    """The torque at positions of the way."""
    q = p.q[:, p.joint]
    order = np.argsort(q)
    return np.asarray(np.interp(way, q[order], p.tau[order]))


def _common_way(a: Plateau, b: Plateau) -> Array | None:
    qa, qb = a.q[:, a.joint], b.q[:, b.joint]
    low, high = max(qa.min(), qb.min()), min(qa.max(), qb.max())
    shorter = min(np.ptp(qa), np.ptp(qb))
    return np.linspace(low, high, _GRID) if high - low >= _SHARED_WAY * shorter else None
