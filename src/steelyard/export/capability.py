"""`Capability`: joint terms that a file format supports, and the terms of the best model for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.export._simple_terms import ARMATURE, COUPLED, DAMPING, FRICTION, OFFSET, STIFFNESS
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, coupled_drives, terms, terms_named
from steelyard.robot.robot import Robot

# Term for each quantity of a format. A fit smooths dry friction, because the sign of a slow velocity is noise; the file
# contains only its level.
_TERMS = {ARMATURE: "rotor", DAMPING: "viscous", FRICTION: "coulomb", OFFSET: "offset"}
# A parameter at its bound of zero is a remainder of the solver below this [SI units]; no drive is that small.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Capability:
    """Joint quantities of a file format, in addition to the inertias of the links.

    Args:
        numbers: Supported quantities of damping, friction, armature, stiffness, offset, and drives that move several
            joints.
    """

    numbers: tuple[str, ...]

    def terms(self, robot: Robot, model: Terms) -> Terms:
        """Return the terms of the best model for the format.

        Args:
            robot: Robot with the joints.
            model: Terms of the full model. The result has rotors, friction and offsets only if the full model has
                them; springs are copied.
        """
        friction = any(t.dissipative for t in model.terms)
        present = {ARMATURE: any(t.inertial for t in model.terms), DAMPING: friction, FRICTION: friction}
        present[OFFSET] = any(t.kind == _TERMS[OFFSET] for t in model.terms)
        quantities = [n for n in _TERMS if n in self.numbers and present[n]]
        chosen: list[Term] = [t for n in quantities for t in terms_named(robot, _TERMS[n])]
        if COUPLED in self.numbers:
            chosen += [t for t in coupled_drives(robot) if t.kind in {_TERMS[n] for n in quantities}]
        return terms(robot, *chosen, *(t for t in model.terms if self._is_spring(t)))

    def _is_spring(self, term: Term) -> bool:
        return STIFFNESS in self.numbers and term.kind == "spring" and term.on == "joint"

    def left_out(self, model: Model, joint: int) -> list[str]:
        """Describe the terms on a joint that the format does not support exactly, with their numbers.

        Args:
            model: The model.
            joint: Index of the joint.
        """
        supported = {_TERMS[n] for n in _TERMS if n in self.numbers}
        first, out = model.robot.inertial_count, []
        parameters = model.dynamics.parameters
        for term, place in model.terms.with_coordinates:
            own = slice(first, first + len(term.columns))
            first = own.stop
            # Dry friction is supported whatever its smoothing.
            has_place = term.kind in supported and (
                term.on == "joint" or (COUPLED in self.numbers and term.kind != "offset")
            )
            matters = bool(np.any(np.abs(model.theta[own]) > _NOTHING))
            if matters and place.weights[joint] and not (has_place or self._is_spring(term)):
                pairs = zip(model.theta[own], parameters[own], strict=True)
                out.append(f"{term.kind} {', '.join(f'{value:.3g} {p.unit}' for value, p in pairs)}")
        return out


# Formats with limited joint quantities. C code, FMU, sidecar and table contain the full model.
CAPABILITIES: dict[str, Capability] = {
    "urdf": Capability((DAMPING, FRICTION)),
    "xacro": Capability((DAMPING, FRICTION)),
    "sdf": Capability((DAMPING, FRICTION, STIFFNESS)),
    # A constant torque becomes a very soft spring far from its rest position, a drive of several joints a fixed tendon.
    "mjcf": Capability((ARMATURE, DAMPING, FRICTION, STIFFNESS, OFFSET, COUPLED)),
    "usd": Capability((ARMATURE,)),
}
# Formats with a fitted model, and for each format the fitted model that it uses. USD leaves friction to the settings of
# the simulator; a fit without friction would put its effect into the inertias.
FITTED = ("urdf", "mjcf")
FITTED_AS = {"urdf": "urdf", "xacro": "urdf", "sdf": "urdf", "mjcf": "mjcf", "usd": "mjcf"}
