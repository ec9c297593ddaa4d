"""Check whether the motion explains the torques, and judge the excitation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from steelyard.check._channels import STILL
from steelyard.check._evidence import Evidence, Fit, fit
from steelyard.check.excitation import Excitation, JointMotion
from steelyard.robot.robot import Joint, Robot
from steelyard.signals.log import Finding

_MOST_ROWS = 4000
# Unexplained share of variance above which a torque does not belong to its joint.
UNEXPLAINED = 0.5
# cond₂ of the weighted, scaled base columns: beyond 100 the worst combination is a hundred times less certain.
HIGH_CONDITION = 100.0


def free_fits(evidence: Evidence) -> dict[int, Fit]:
    """Fit the rows of each joint in `evidence` alone; return the fits by joint number."""
    rows = evidence.thinned(_MOST_ROWS)
    return {joint: fit(A[rows], y[rows]) for joint, A, y in zip(evidence.joints, evidence.A, evidence.y, strict=True)}


def check_explained(evidence: Evidence, fits: Mapping[int, Fit]) -> Iterator[Finding]:
    """Report torques that the motion does not explain.

    Args:
        evidence: Prepared rows of the log.
        fits: Fit of every joint's torque alone, by joint number.
    """
    for joint, found in fits.items():
        name, kind = evidence.robot.joints[joint].name, evidence.robot.joints[joint].kind
        if found.left > UNEXPLAINED and np.ptp(evidence.q[:, joint]) > STILL[kind]:
            share = f"{100 * found.left:.0f} %"
            message = f"{share} of the torque of '{name}' is explained neither by its motion nor by friction."
            advice = f"Check the torque channel of '{name}'; if it is right, leave it out of torque_used."
            yield Finding("unexplained", "warning", message, advice, name)


def friction_columns(evidence: Evidence) -> list[list[int]]:
    """List the columns of the joint's own friction, for every equation of `evidence`."""
    links = evidence.robot.inertial_count
    # Joint on which the friction parameter acts, -1 for other parameters.
    rubs = evidence.base.terms.per_parameter(lambda term, c: c.index if c.side == "joint" and term.dissipative else -1)
    out: list[list[int]] = []
    for joint, columns in zip(evidence.joints, evidence.columns, strict=True):
        places = [evidence.base.independent[int(c)] - links for c in columns]
        out.append([k for k, p in enumerate(places) if p >= 0 and rubs[p] == joint])
    return out


def friction_share(evidence: Evidence, fits: Mapping[int, Fit]) -> dict[int, float]:
    """Compute the standard deviation of each joint's friction relative to that of its torque.

    Args:
        evidence: Prepared rows of the log.
        fits: Fit of every joint's torque alone, by joint number.
    """
    out: dict[int, float] = {}
    for e, (joint, columns) in enumerate(zip(evidence.joints, friction_columns(evidence), strict=True)):
        part = evidence.A[e][:, columns] @ fits[joint].values[columns]
        out[joint] = float(np.std(part)) / max(float(np.std(evidence.y[e])), 1e-300)
    return out


# Share of time at rest above which a log shows little of a joint's friction and inertia.
MOSTLY_STANDING = 0.6
# Share of hidden base parameters above which the whole motion is poor.
POOR = 0.25
# A motion is small below this share of a joint's range, or without limits below this range [rad, m].
SMALL_SHARE = 0.3
# No encoder shows a smaller motion [rad, m].
_MEASURED = 1e-9
ROOM = {"revolute": 1.0, "prismatic": 0.1}


def check_motion(robot: Robot, excitation: Excitation) -> Iterator[Finding]:
    """Report joints that hardly move and parameters that the motion does not show.

    Args:
        robot: Robot of the log.
        excitation: Excitation of the log.
    """
    still = []
    for joint, motion in zip(robot.joints, excitation.joints, strict=True):
        if motion.highest - motion.lowest < STILL[joint.kind]:
            still.append(joint.name)
            yield _still(joint, motion)
        elif motion.standing > MOSTLY_STANDING:
            message = f"'{joint.name}' stands still for {100 * motion.standing:.0f} % of the time."
            yield Finding(
                "standing", "note", message, f"Cut the pauses of '{joint.name}', or move it longer.", joint.name
            )
    moving = [(j, m) for j, m in zip(robot.joints, excitation.joints, strict=True) if j.name not in still and m.hidden]
    hidden = sum(len(m.hidden) for m in excitation.joints)
    if excitation.rank < excitation.count:
        yield Finding(
            "rank",
            "warning",
            f"The motion shows {excitation.rank} of {excitation.count} combinations of parameters.",
            "Move every joint through its range with several joints at a time, or lock those that stand still.",
        )
    elif excitation.condition_number is not None and excitation.condition_number > HIGH_CONDITION:
        yield Finding(
            "condition",
            "warning" if hidden > POOR * excitation.count else "note",  # a few hidden parameters need no better motion
            f"cond₂ of the weighted base columns of unit length is {excitation.condition_number:.0f}: the motion shows "
            "some combinations a hundred times less than others.",
            "Plan a motion with `steelyard excite`, or vary postures and directions more.",
        )
    else:
        number = excitation.condition_number or 0.0
        message = f"All {excitation.count} base columns are independent; cond₂ {number:.0f} (weighted, unit length)."
        yield Finding("rank", "ok", message)
    for joint, motion in moving:
        total = motion.shown + motion.small + len(motion.hidden)
        poor = len(motion.hidden) > 0.5 * total and hidden > POOR * excitation.count
        yield _hidden(joint, motion, total, poor)


def _still(joint: Joint, motion: JointMotion) -> Finding:
    moved = motion.highest - motion.lowest
    message = f"'{joint.name}' hardly moves: by {moved:.2g} {joint.unit} in all."
    if moved < _MEASURED:
        message = f"'{joint.name}' does not move."
    advice = f"Move '{joint.name}' as well, or lock it: leave it out of --joints."
    return Finding("motionless", "warning", message, advice, joint.name)


def _hidden(joint: Joint, motion: JointMotion, total: int, poor: bool) -> Finding:
    names = ", ".join(motion.hidden[:6]) + (", …" if len(motion.hidden) > 6 else "")
    message = (
        f"Of the {total} base parameters of '{joint.name}' this motion does not show {len(motion.hidden)}: {names}."
    )
    moved = motion.highest - motion.lowest
    small = motion.range_share < SMALL_SHARE if motion.range_share is not None else moved < ROOM[joint.kind]
    slow = motion.speed < 0.3 * joint.velocity if np.isfinite(joint.velocity) else motion.speed < ROOM[joint.kind]
    how = "farther" if small else "faster" if slow else "longer, with other joints in varied postures"
    advice = f"Move '{joint.name}' {how} (now {moved:.2g} {joint.unit}, up to {motion.speed:.2g} {joint.unit}/s)."
    return Finding("hidden", "warning" if poor else "note", message, advice, joint.name)
