"""`SimpleTerms`: friction, rotors, springs and offsets as single numbers per joint, which is all that files know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.term import NOT_EXPRESSIBLE, SimpleTerm, Term
from steelyard.robot.transmission import ConstantRatio

# What a format may be able to say.
DAMPING, FRICTION, ARMATURE, STIFFNESS, OFFSET = "damping", "friction", "armature", "stiffness", "offset"
# Damping, friction and armature of a drive that moves several joints at once.
COUPLED = "coupled"
_COUPLED = SimpleTerm(omission="couples several joints or depends on posture, so it is left out")
_NEGATIVE = SimpleTerm(omission="is negative, so it is left out")


@dataclass(eq=False)
class CoupledDrive:
    """Numbers of a drive that moves by `weights` @ q, in SI units; `smooth` as in `SimpleTerms`."""

    name: str
    weights: Array
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    smooth: float = 0.0


@dataclass(frozen=True, eq=False)
class SimpleTerms:
    """One number per joint each, joint side, in SI units.

    `rest` is where the springs are slack, `smooth` the speed below which dry friction is rounded off.

    `missing` says, one sentence each, what of the model's terms these numbers leave out or only approximate.
    """

    damping: Array
    friction: Array
    armature: Array
    stiffness: Array
    rest: Array
    offset: Array
    smooth: Array
    coupled: tuple[CoupledDrive, ...]
    missing: tuple[str, ...]


def simple_terms(model: Model, can: Collection[str]) -> SimpleTerms:
    """The model's terms as far as a format that `can` hold some of damping, friction, armature, … allows."""
    n = model.robot.dof
    sums = {name: np.zeros(n) for name in (DAMPING, FRICTION, ARMATURE, STIFFNESS, OFFSET)}
    pull, smooth = np.zeros(n), np.zeros(n)  # Σ stiffness · rest; the roundest friction
    missing: dict[tuple[str, str], list[str]] = {}
    drives: dict[str, CoupledDrive] = {}
    first = model.robot.inertial_count
    for term, place in model.terms.placed:
        values = model.theta[first : first + len(term.columns)]
        first += len(term.columns)
        if not np.any(values):
            continue
        if COUPLED in can and _add_to_drive(drives, term, place, [float(x) for x in values]):
            continue
        gain = _gain(place)
        said = term.simple([float(x) for x in values]) if gain else _COUPLED
        # A torque T(u, u̇) on u = g·q is g·T(g·q, g·q̇) on q: an offset goes with g, dry friction with |g|, the rest
        # with g².
        scale = {OFFSET: gain, FRICTION: abs(gain)}
        parts = {name: getattr(said, name) * scale.get(name, gain * gain) for name in sums}
        if any(value < 0.0 for name, value in parts.items() if name != OFFSET):
            parts, said = {}, _NEGATIVE
        elif any(value and name not in can for name, value in parts.items()):
            parts, said = {}, NOT_EXPRESSIBLE
        if said.omission:
            missing.setdefault((f"{term.kind} on {term.on}", said.omission), []).append(place.name)
        joint = int(np.argmax(np.abs(place.weights)))
        for name, value in parts.items():
            sums[name][joint] += value
            if name == STIFFNESS and value:
                pull[joint] += value * said.rest / gain
            if name == FRICTION and value:
                smooth[joint] = max(smooth[joint], said.smooth / abs(gain))
    rest = np.divide(pull, sums[STIFFNESS], out=np.zeros(n), where=sums[STIFFNESS] > 0.0)
    notes = tuple(f"{what} ({', '.join(names)}) {why}." for (what, why), names in missing.items())
    return SimpleTerms(**sums, rest=rest, smooth=smooth, coupled=tuple(drives.values()), missing=notes)


def _add_to_drive(drives: dict[str, CoupledDrive], term: Term, place: Coordinate, values: list[float]) -> bool:
    """Add a term of a drive that moves several joints to `drives`; whether all of it has a place there."""
    if np.count_nonzero(place.weights) < 2 or not isinstance(place.ratio, ConstantRatio):
        return False
    said, ratio = term.simple(values), place.ratio.ratio
    if said.stiffness or said.offset or min(said.damping, said.friction, said.armature) < 0.0:
        return False
    if not (said.damping or said.friction or said.armature):
        return False
    drive = drives.setdefault(place.name, CoupledDrive(place.name, np.array(place.weights)))
    drive.damping += said.damping * ratio**2
    drive.friction += said.friction * abs(ratio)
    drive.armature += said.armature * ratio**2
    drive.smooth = max(drive.smooth, said.smooth / abs(ratio) if said.friction else 0.0)
    return True


def _gain(place: Coordinate) -> float:
    """du/dq where one joint moves the coordinate through a constant gear; 0 where it is not as simple as that."""
    moved = [weight for weight in place.weights if weight != 0.0]
    if len(moved) != 1 or not isinstance(place.ratio, ConstantRatio):
        return 0.0
    return moved[0] * place.ratio.ratio
