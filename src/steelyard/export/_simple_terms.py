"""`SimpleTerms`: friction, rotors and springs as single numbers per joint, which is all that URDF and MJCF know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.term import LEFT_OUT, Simple
from steelyard.robot.transmission import ConstantRatio

# What a format may be able to say.
DAMPING, FRICTION, ARMATURE, STIFFNESS = "damping", "friction", "armature", "stiffness"
_COUPLED = Simple(less="couples several joints or depends on posture, so it is left out")
_NEGATIVE = Simple(less="is negative, so it is left out")


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
    first = model.robot.inertial_count
    for term, place in model.terms.placed:
        values = model.theta[first : first + len(term.columns)]
        first += len(term.columns)
        if not np.any(values):
            continue
        gain = _gain(place)
        said = term.simple([float(x) for x in values]) if gain else _COUPLED
        # A torque T(u, u̇) on u = g·q is g·T(g·q, g·q̇) on q: dry friction goes with |g|, the rest with g².
        parts = {name: getattr(said, name) * (abs(gain) if name == FRICTION else gain * gain) for name in sums}
        if any(value < 0.0 for value in parts.values()):
            parts, said = {}, _NEGATIVE
        elif any(value and name not in can for name, value in parts.items()):
            parts, said = {}, LEFT_OUT
        if said.less:
            missing.setdefault((f"{term.kind} on {term.on}", said.less), []).append(place.name)
        joint = int(np.argmax(np.abs(place.weights)))
        for name, value in parts.items():
            sums[name][joint] += value
            if name == STIFFNESS and value:
                pull[joint] += value * said.rest / gain
    rest = np.divide(pull, sums[STIFFNESS], out=np.zeros(n), where=sums[STIFFNESS] > 0.0)
    notes = tuple(f"{what} ({', '.join(names)}) {why}." for (what, why), names in missing.items())
    return SimpleTerms(sums[DAMPING], sums[FRICTION], sums[ARMATURE], sums[STIFFNESS], rest, notes)


def _gain(place: Coordinate) -> float:
    """du/dq where one joint moves the coordinate through a constant gear; 0 where it is not as simple as that."""
    moved = [weight for weight in place.weights if weight != 0.0]
    if len(moved) != 1 or not isinstance(place.ratio, ConstantRatio):
        return 0.0
    return moved[0] * place.ratio.ratio
