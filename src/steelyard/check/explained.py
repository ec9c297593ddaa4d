"""Does a joint's motion explain its torque at all, and does its friction take energy rather than give it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from steelyard.check.channels import STILL
from steelyard.check.entry import Entry
from steelyard.check.evidence import Evidence
from steelyard.check.fitted import Fit, fit

MOST_ROWS = 4000
# More than half of a torque's variance unexplained by any rigid body with any friction: it is not this joint's torque.
UNEXPLAINED = 0.5
# Negative friction by so many standard errors is no accident.
CERTAIN = 6.0
DISSIPATIVE = ("viscous", "coulomb", "coulomb-asymmetric", "viscous-asymmetric", "quadratic")


def free_fits(seen: Evidence) -> dict[int, Fit]:
    """For every joint whose torque is used, the fit of its own equation by itself."""
    rows = seen.thinned(MOST_ROWS)
    return {joint: fit(A[rows], y[rows]) for joint, A, y in zip(seen.joints, seen.A, seen.y, strict=True)}


def check_explained(seen: Evidence, fits: Mapping[int, Fit]) -> Iterator[Entry]:
    """Torques that the motion does not explain."""
    for joint, found in fits.items():
        name, kind = seen.robot.joints[joint].name, seen.robot.joints[joint].kind
        if found.left > UNEXPLAINED and np.ptp(seen.q[:, joint]) > STILL[kind]:
            share = f"{100 * found.left:.0f} %"
            message = f"{share} of the torque of '{name}' is explained neither by its motion nor by friction."
            advice = f"Check the torque channel of '{name}'; if it is what it is, leave it out of torque_used."
            yield Entry("unexplained", "warning", message, advice, name)


def friction_columns(seen: Evidence) -> list[list[int]]:
    """For every equation, where in its columns the joint's own friction stands."""
    links = 10 * len(seen.robot.links)
    kinds: list[tuple[str, int]] = []
    for term, coordinate in seen.base.terms.placed:
        on = coordinate.index if coordinate.side == "joint" else -1
        kinds += [(term.kind, on)] * len(term.columns)
    out: list[list[int]] = []
    for joint, columns in zip(seen.joints, seen.columns, strict=True):
        places = [seen.base.independent[int(c)] - links for c in columns]
        out.append([k for k, p in enumerate(places) if p >= 0 and kinds[p][1] == joint and kinds[p][0] in DISSIPATIVE])
    return out


def friction_power(seen: Evidence, fits: Mapping[int, Fit]) -> dict[int, float]:
    """Power that each joint's fitted friction takes, in standard errors; negative: it gives energy."""
    out: dict[int, float] = {}
    rows = seen.thinned(MOST_ROWS)
    for e, (joint, columns) in enumerate(zip(seen.joints, friction_columns(seen), strict=True)):
        found = fits[joint]
        usable = [k for k in columns if np.isfinite(found.errors[k])]
        shares = np.mean(seen.A[e][rows][:, usable] * seen.dq[rows, joint][:, None], axis=0)
        error = float(np.linalg.norm(found.errors[usable] * shares))
        if error > 0.0:
            out[joint] = float(found.values[usable] @ shares) / error
    return out


def friction_share(seen: Evidence, fits: Mapping[int, Fit]) -> dict[int, float]:
    """Standard deviation of each joint's fitted friction against that of its torque."""
    out: dict[int, float] = {}
    for e, (joint, columns) in enumerate(zip(seen.joints, friction_columns(seen), strict=True)):
        part = seen.A[e][:, columns] @ fits[joint].values[columns]
        out[joint] = float(np.std(part)) / max(float(np.std(seen.y[e])), 1e-300)
    return out


def giving(seen: Evidence, fits: Mapping[int, Fit], powers: Mapping[int, float]) -> Iterator[Entry]:
    """Joints whose friction gives energy: their torque, or their motion, has the wrong sign."""
    for joint, power in powers.items():
        if power < -CERTAIN and fits[joint].left < UNEXPLAINED:
            yield wrong_sign(seen.robot.joints[joint].name, "its friction would give energy instead of taking it")


def wrong_sign(name: str, reason: str) -> Entry:
    advice = f"Turn the sign of the torque of '{name}' (sign.torque, or torque_constants, in the mapping)."
    return Entry("sign", "problem", f"The torque of '{name}' has the wrong sign: {reason}.", advice, name)
