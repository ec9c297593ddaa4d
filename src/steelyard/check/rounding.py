"""Are the positions fine enough to be differentiated twice?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.check.entry import Entry, Severity
from steelyard.check.evidence import Evidence
from steelyard.estimation.linear.rounding import rounding_noise
from steelyard.signals.log import Log

# Rounding noise in the prepared accelerations against their spread. At 2 % a base parameter was moved by about one
# standard error (rotradi), at 5 % by 1.6 to 3.6 (all built-in robots; docs/theory/error-bars.md).
NOTED, COARSE = 0.01, 0.02


def check_rounding(log: Log, seen: Evidence) -> Iterator[Entry]:
    """One entry for all joints whose encoder steps show in the accelerations."""
    if all(m.velocity == "measured" for m in seen.motions):
        return  # accelerations are then made from velocities, which nothing here knows the steps of
    steps, noise = rounding_noise([log], min(m.filter.cutoff for m in seen.motions))
    rough = np.flatnonzero(noise > NOTED)
    if not len(rough):
        return
    worst = int(np.argmax(noise))
    joint = seen.robot.joints[worst]
    unit = "rad" if joint.kind == "revolute" else "m"
    severity: Severity = "warning" if noise[worst] > COARSE else "note"
    names = ", ".join(seen.robot.joints[k].name for k in rough)
    message = (
        f"The steps of the positions ({steps[worst]:.2g} {unit} on '{joint.name}') make {100 * noise[worst]:.1f} % of "
        f"its acceleration; seen on {names}. Inertias lean towards zero by it."
    )
    advice = "Log finer positions or the drive's own velocity, lower --cutoff, or play a faster motion."
    yield Entry("position_steps", severity, message, advice, joint.name if len(rough) == 1 else None)
