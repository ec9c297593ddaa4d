"""`SimpleTerms`: friction, rotors and springs as single numbers per joint, which is all that URDF and MJCF know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.library import StribeckAtan
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Coordinate
from steelyard.robot.transmission import ConstantRatio

# What a format may be able to say.
DAMPING, FRICTION, ARMATURE, STIFFNESS = "damping", "friction", "armature", "stiffness"


@dataclass(frozen=True, eq=False)
class SimpleTerms:
    """One number per joint each, joint side, in SI units; `rest` is where the springs are slack.

    `missing` says, one sentence each, what of the model's terms these numbers leave out or only approximate.
    """

    damping: Array
    friction: Array
    armature: Array
    stiffness: Array
    rest: Array
    missing: tuple[str, ...]


def simple_terms(model: Model, can: Collection[str]) -> SimpleTerms:
    """The model's terms as far as a format that `can` say some of damping, friction, armature, stiffness allows."""
    n = model.robot.dof
    sums = {name: np.zeros(n) for name in (DAMPING, FRICTION, ARMATURE, STIFFNESS)}
    pull = np.zeros(n)  # Σ stiffness · rest
    missing: dict[tuple[str, str], list[str]] = {}
    first = 10 * len(model.robot.links)
    for term, place in model.terms.placed:
        values = model.theta[first : first + len(term.columns)]
        first += len(term.columns)
        if not np.any(values):
            continue
        parts, reason = _parts(term, place, values)
        if any(value < 0.0 for value in parts.values()):
            parts, reason = {}, "is negative, so it is left out"
        elif any(name not in can for name in parts):
            parts, reason = {}, "cannot be expressed, so it is left out"
        if reason:
            missing.setdefault((f"{term.kind} on {term.on}", reason), []).append(place.name)
        joint = int(np.argmax(np.abs(place.weights)))
        for name, value in parts.items():
            sums[name][joint] += value
            if name == STIFFNESS:
                pull[joint] += value * getattr(term, "rest", 0.0) / _gain(place)
    rest = np.divide(pull, sums[STIFFNESS], out=np.zeros(n), where=sums[STIFFNESS] > 0.0)
    notes = tuple(f"{what} ({', '.join(names)}) {why}." for (what, why), names in missing.items())
    return SimpleTerms(sums[DAMPING], sums[FRICTION], sums[ARMATURE], sums[STIFFNESS], rest, notes)


def _gain(place: Coordinate) -> float:
    """du/dq where one joint moves the coordinate through a constant gear; 0 where it is not as simple as that."""
    moved = [weight for weight in place.weights if weight != 0.0]
    if len(moved) != 1 or not isinstance(place.ratio, ConstantRatio):
        return 0.0
    return moved[0] * place.ratio.ratio


def _parts(term: Term, place: Coordinate, values: Array) -> tuple[dict[str, float], str]:
    """What the term is in single numbers at its joint, and in what way that is less than the term itself."""
    g = _gain(place)
    if g == 0.0:
        return {}, "couples several joints or depends on posture, so it is left out"
    # A torque T(u, u̇) on u = g·q is g·T(g·q, g·q̇) on q.
    linear, dry = g * g, abs(g)
    v = [float(x) for x in values]
    match term.kind:
        case "viscous":
            return {DAMPING: linear * v[0]}, ""
        case "coulomb":
            sharp = not (getattr(term, "smooth", 0.0) or getattr(term, "dead_band", 0.0))
            return {FRICTION: dry * v[0]}, "" if sharp else "is smoothed; plain dry friction is written"
        case "rotor":
            return {ARMATURE: linear * v[0]}, ""
        case "spring":
            return {STIFFNESS: linear * v[0]}, ""
        case "viscous-asymmetric":
            return {DAMPING: linear * 0.5 * (v[0] + v[1])}, "differs between the directions; the mean is written"
        case "coulomb-asymmetric":
            return {FRICTION: dry * 0.5 * (v[0] + v[1])}, "differs between the directions; the mean is written"
        case StribeckAtan.kind:
            return {
                FRICTION: dry * (v[0] + v[1]),
                DAMPING: linear * v[2],
            }, "is a curve; its asymptote at high speed is written"
    return {}, "cannot be expressed, so it is left out"
