"""`Capability`: which joint terms a file format holds exactly, and the terms of the best model that it can hold."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.dynamics.model import Model
from steelyard.export._simple_terms import ARMATURE, COUPLED, DAMPING, FRICTION, OFFSET, STIFFNESS
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, coupled_drives, terms, terms_named
from steelyard.robot.robot import Robot

# The term that is each number of a format. Dry friction is smoothed in a fit, since the sign of a slow velocity is
# that of noise; the file states its level.
_TERMS = {ARMATURE: "rotor", DAMPING: "viscous", FRICTION: "coulomb", OFFSET: "offset"}


@dataclass(frozen=True)
class Capability:
    """What the joints of a file format can hold beside the inertias of the links.

    Args:
        numbers: which of damping, friction, armature, stiffness and offset the format has a place for, and whether it
            has one for drives that move several joints.
    """

    numbers: tuple[str, ...]

    def terms(self, robot: Robot, model: Terms) -> Terms:
        """The terms of the best model of `robot` that the format can hold.

        Args:
            robot: whose joints they act on.
            model: the terms of the full model. What it has nothing of (rotors, friction, offsets) the file has not
                either; springs, which are rare, are taken from there.
        """
        rubs = any(t.dissipative for t in model.terms)
        there = {ARMATURE: any(t.inertial for t in model.terms), DAMPING: rubs, FRICTION: rubs}
        there[OFFSET] = any(t.kind == _TERMS[OFFSET] for t in model.terms)
        wanted = [n for n in _TERMS if n in self.numbers and there[n]]
        made: list[Term] = [t for n in wanted for t in terms_named(robot, _TERMS[n])]
        if COUPLED in self.numbers:
            made += [t for t in coupled_drives(robot) if t.kind in {_TERMS[n] for n in wanted}]
        return terms(robot, *made, *(t for t in model.terms if self._is_spring(t)))

    def _is_spring(self, term: Term) -> bool:
        return STIFFNESS in self.numbers and term.kind == "spring" and term.on == "joint"

    def left_out(self, model: Model, joint: int) -> list[str]:
        """The terms of `model` on a `joint` (from 0) that the format has no exact place for, with their numbers."""
        held = {_TERMS[n] for n in _TERMS if n in self.numbers}
        first, out = model.robot.inertial_count, []
        parameters = model.dynamics.parameters
        for term, place in model.terms.placed:
            own = slice(first, first + len(term.columns))
            first = own.stop
            # Dry friction that differs from the format's only by its smoothing is the format's.
            has_place = term.kind in held and (
                term.on == "joint" or (COUPLED in self.numbers and term.kind != "offset")
            )
            if place.weights[joint] and not (has_place or self._is_spring(term)):
                pairs = zip(model.theta[own], parameters[own], strict=True)
                out.append(f"{term.kind} {', '.join(f'{value:.3g} {p.unit}' for value, p in pairs)}")
        return out


# What each format of a robot holds. C code, FMU, sidecar and table hold the full model and are not listed.
CAPABILITIES: dict[str, Capability] = {
    "urdf": Capability((DAMPING, FRICTION)),
    "xacro": Capability((DAMPING, FRICTION)),
    "sdf": Capability((DAMPING, FRICTION, STIFFNESS)),
    # A constant torque is a spring so soft and so far from rest that it pulls alike everywhere.
    # A drive that moves several joints is a fixed tendon.
    "mjcf": Capability((ARMATURE, DAMPING, FRICTION, STIFFNESS, OFFSET, COUPLED)),
    "usd": Capability((ARMATURE,)),
}
# The formats that models are fitted for, and for each format the one whose model it is written from. USD leaves
# friction to the simulator's own settings; fitted without friction, its inertias would stand in for it.
FITTED = ("urdf", "mjcf")
FITTED_AS = {"urdf": "urdf", "xacro": "urdf", "sdf": "urdf", "mjcf": "mjcf", "usd": "mjcf"}
