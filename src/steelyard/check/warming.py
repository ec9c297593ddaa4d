"""Does friction change while the log is taken, as it does when a robot warms up?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from steelyard.check.entry import Entry
from steelyard.check.evidence import Evidence
from steelyard.check.explained import friction_columns
from steelyard.check.fitted import Fit
from steelyard.friction.drift import drift_of

# A change counts beyond so many standard errors (of twelve blocks of time), and this part of the dry friction.
_CERTAIN, _MUCH = 4.0, 0.1
_DIRECTION_KNOWN = 0.02  # rad/s, m/s; slower than this the direction fades in


def check_warming(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Entry]:
    """One note for every joint whose friction rises or falls from the log's beginning to its end."""
    time = np.concatenate([m.t[m.keep] for m in seen.motions])
    for e, (joint, places) in enumerate(zip(seen.joints, friction_columns(seen), strict=True)):
        if not places:
            continue
        rest = seen.y[e] - seen.A[e] @ fits[joint].values
        way = np.tanh(seen.dq[:, joint] / _DIRECTION_KNOWN)
        (change,), (error,) = drift_of(time, (rest * way)[:, None], (way**2)[:, None])
        friction = np.abs(seen.A[e][:, places] @ fits[joint].values[places])
        dry = float(np.mean(friction))
        if abs(change) > _CERTAIN * error and abs(change) > _MUCH * dry:
            name, unit = seen.robot.joints[joint].name, seen.robot.joints[joint].effort_unit
            word = "falls" if change < 0.0 else "rises"
            message = f"Friction of '{name}' {word} by {abs(change):.2g} ± {error:.1g} {unit} during the log."
            advice = "Warm the robot up before logging, or identify from a shorter piece."
            yield Entry("warming", "note", message, advice, name)
