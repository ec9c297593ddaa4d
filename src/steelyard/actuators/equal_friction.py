"""`equal_friction`: friction models that the runs of a drive cannot tell from the chosen one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from steelyard.actuators.actuator_identification import Inseparable
from steelyard.actuators.drive_model import DRIVE_PARAMETERS
from steelyard.actuators.fit_drive import DriveFit, usual_values
from steelyard.actuators.rollout import Rollouts
from steelyard.actuators.uncertainty import covariance_of

# A term is visible if it exceeds its standard error by this factor, once in 40 by chance.
_VISIBLE = 2.0
# The terms that a friction model adds; of two terms, their difference.
_TERMS = {
    "M2": (("friction_stribeck",),),
    "M3": (("load_friction",),),
    "M4": (("friction_stribeck",), ("load_friction",), ("load_friction_stribeck",)),
    "M5": (
        ("load_friction_motor", "load_friction_external"),
        ("load_friction_motor_stribeck", "load_friction_external_stribeck"),
    ),
    "M6": (("load_friction_motor_quad",), ("load_friction_external_quad",)),
}
_EXPERIMENT = {
    "friction_stribeck": "A slow motion with reversals, such as a sine of 0.1 Hz.",
    "load_friction": "The same motions with a second mass, of half or double the torque.",
    "load_friction_stribeck": "A slow sine of 0.1 Hz with a second mass, of half or double the torque.",
    "load_friction_motor": "Slow lifting and lowering, and a free fall with the drive off, with two masses.",
    "load_friction_motor_stribeck": "Slow lifting and lowering of two masses, with pauses.",
    "load_friction_motor_quad": "Slow lowering of two masses, with pauses, at low gains.",
    "load_friction_external_quad": "Slow lifting of two masses, with pauses.",
}


def equal_friction(chosen: DriveFit, larger: Sequence[DriveFit], rollouts: Rollouts) -> list[Inseparable]:
    """Return what the runs cannot tell about larger friction models; nothing if their usual effects would be visible.

    Args:
        chosen: Fit of the chosen structure.
        larger: Fits of structures with larger friction models.
        rollouts: Runs of all fits.
    """
    hidden = {fit.structure.friction: each for fit in larger if (each := _hidden(chosen, fit, rollouts))}
    if not hidden:
        return []
    terms, smallest = next(iter(hidden.values()))
    unit = DRIVE_PARAMETERS[terms[0]].unit
    what = f"{terms[0]} below" if len(terms) == 1 else f"a difference of {terms[0]} and {terms[1]} below"
    own = chosen.structure.friction
    reason = (
        f"Friction {own} cannot be separated from {' and '.join(hidden)}: these runs do not show {what} "
        f"{smallest:.2g}{f' {unit}' if unit else ''}."
    )
    return [Inseparable(terms, reason, _EXPERIMENT[terms[0]], f"{own}, the simplest")]


def _hidden(chosen: DriveFit, larger: DriveFit, rollouts: Rollouts) -> tuple[tuple[str, ...], float] | None:
    """The first additional term that is hidden at its usual size, and its smallest visible size."""
    usual = usual_values(rollouts)
    covariance, _ = covariance_of(larger, rollouts)
    for terms in _TERMS[larger.structure.friction]:
        if set(terms) <= set(chosen.structure.names) or any(n not in larger.free for n in terms):
            continue
        slope = np.array([(n == terms[0]) - (n in terms[1:]) for n in larger.free], dtype=float)
        smallest = _VISIBLE * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
        if smallest > usual[terms[0]]:
            return terms, smallest
    return None
