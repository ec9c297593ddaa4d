"""`SimpleTerms`: friction, rotors, springs and offsets as one number per joint, as file formats need them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.coordinate import Coordinate
from steelyard.parameters.term import NOT_EXPRESSIBLE, SimpleTerm, Term
from steelyard.robot.transmission import ConstantRatio

# Quantities that a format may support.
DAMPING, FRICTION, ARMATURE, STIFFNESS, OFFSET = "damping", "friction", "armature", "stiffness", "offset"
# Damping, friction and armature of a drive that moves several joints at once.
COUPLED = "coupled"
_COUPLED = SimpleTerm(omission="couples several joints or depends on posture, so it is left out")
_NEGATIVE = SimpleTerm(omission="is negative, so it is left out")


@dataclass(eq=False)
class CoupledDrive:
    """Numbers of a drive with the position `weights` @ q, in SI units; `smooth` as in `SimpleTerms`."""

    name: str
    weights: Array
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    smooth: float = 0.0


@dataclass(frozen=True, eq=False)
class SimpleTerms:
    """Numbers of the joints, on the joint side, in SI units.

    Attributes:
        damping: Viscous friction.
        friction: Dry friction.
        armature: Rotor inertia.
        stiffness: Spring stiffness.
        rest: Position without spring force.
        offset: Constant torque.
        smooth: Speed below which dry friction is smoothed.
        coupled: Drives that move several joints.
        missing: One sentence for each omitted or approximated term.
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
    """Convert the terms of a model to the quantities of a format.

    Args:
        model: The model.
        can: Supported quantities: damping, friction, armature, …
    """
    n = model.robot.dof
    sums = {name: np.zeros(n) for name in (DAMPING, FRICTION, ARMATURE, STIFFNESS, OFFSET)}
    pull, smooth = np.zeros(n), np.zeros(n)  # Σ stiffness · rest; largest smoothing speed
    missing: dict[tuple[str, str], list[str]] = {}
    drives: dict[str, CoupledDrive] = {}
    first = model.robot.inertial_count
    for term, place in model.terms.with_coordinates:
        values = model.theta[first : first + len(term.columns)]
        first += len(term.columns)
        if not np.any(values):
            continue
        if COUPLED in can and _add_to_drive(drives, term, place, [float(x) for x in values]):
            continue
        gain = _gain(place)
        simple = term.simple([float(x) for x in values]) if gain else _COUPLED
        # A torque T(u, u̇) on u = g·q is g·T(g·q, g·q̇) on q: an offset scales with g, dry friction with |g|, the
        # others with g².
        scale = {OFFSET: gain, FRICTION: abs(gain)}
        parts = {name: getattr(simple, name) * scale.get(name, gain * gain) for name in sums}
        if any(value < 0.0 for name, value in parts.items() if name != OFFSET):
            parts, simple = {}, _NEGATIVE
        elif any(value and name not in can for name, value in parts.items()):
            parts, simple = {}, NOT_EXPRESSIBLE
        if simple.omission:
            missing.setdefault((f"{term.kind} on {term.on}", simple.omission), []).append(place.name)
        joint = int(np.argmax(np.abs(place.weights)))
        for name, value in parts.items():
            sums[name][joint] += value
            if name == STIFFNESS and value:
                pull[joint] += value * simple.rest / gain
            if name == FRICTION and value:
                smooth[joint] = max(smooth[joint], simple.smooth / abs(gain))
    rest = np.divide(pull, sums[STIFFNESS], out=np.zeros(n), where=sums[STIFFNESS] > 0.0)
    notes = tuple(f"{kind} ({', '.join(names)}) {why}." for (kind, why), names in missing.items())
    return SimpleTerms(**sums, rest=rest, smooth=smooth, coupled=tuple(drives.values()), missing=notes)


def _add_to_drive(drives: dict[str, CoupledDrive], term: Term, place: Coordinate, values: list[float]) -> bool:
    """Add a term of a drive that moves several joints; False if it does not fit there completely."""
    if np.count_nonzero(place.weights) < 2 or not isinstance(place.ratio, ConstantRatio):
        return False
    simple, ratio = term.simple(values), place.ratio.ratio
    if simple.stiffness or simple.offset or min(simple.damping, simple.friction, simple.armature) < 0.0:
        return False
    if not (simple.damping or simple.friction or simple.armature):
        return False
    drive = drives.setdefault(place.name, CoupledDrive(place.name, np.array(place.weights)))
    drive.damping += simple.damping * ratio**2
    drive.friction += simple.friction * abs(ratio)
    drive.armature += simple.armature * ratio**2
    drive.smooth = max(drive.smooth, simple.smooth / abs(ratio) if simple.friction else 0.0)
    return True


def _gain(place: Coordinate) -> float:
    """du/dq if one joint moves the coordinate through a constant gear; else 0."""
    moved = [weight for weight in place.weights if weight != 0.0]
    if len(moved) != 1 or not isinstance(place.ratio, ConstantRatio):
        return 0.0
    return moved[0] * place.ratio.ratio
