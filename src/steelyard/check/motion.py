"""What the excitation means: joints that hardly move, parameters that do not show, and which joint should move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.assessment.verdict import HIGH_CONDITION
from steelyard.check.channels import STILL
from steelyard.check.entry import Entry
from steelyard.check.excitation import Excitation, JointMotion
from steelyard.robot.robot import Joint, Robot

# A joint that stands still for more of the log than this teaches little about its friction and inertia.
MOSTLY_STANDING = 0.6
# Up to this share of base parameters may stay in the dark before the motion as a whole is called poor.
POOR = 0.25
# A motion that covers less of a joint's range (rad, m where it has no limits) could well be larger.
SMALL_SHARE = 0.3
ROOM = {"revolute": 1.0, "prismatic": 0.1}


def check_motion(robot: Robot, seen: Excitation) -> Iterator[Entry]:
    """Remarks on the excitation."""
    still = []
    for joint, motion in zip(robot.joints, seen.joints, strict=True):
        if motion.highest - motion.lowest < STILL[joint.kind]:
            still.append(joint.name)
            yield _still(joint, motion)
        elif motion.standing > MOSTLY_STANDING:
            message = f"'{joint.name}' stands still for {100 * motion.standing:.0f} % of the time."
            yield Entry(
                "standing", "note", message, f"Cut the pauses of '{joint.name}', or move it longer.", joint.name
            )
    moving = [(j, m) for j, m in zip(robot.joints, seen.joints, strict=True) if j.name not in still and m.hidden]
    hidden = sum(len(m.hidden) for m in seen.joints)
    if seen.rank < seen.count:
        yield Entry(
            "rank",
            "warning",
            f"The motion shows {seen.rank} of {seen.count} combinations of parameters.",
            "Move every joint through its range with several joints at a time, or lock those that stand still.",
        )
    elif seen.condition_number is not None and seen.condition_number > HIGH_CONDITION:
        yield Entry(
            "condition",
            "warning" if hidden > POOR * seen.count else "note",  # what is shown anyway needs no better motion
            f"cond₂ of the weighted base columns of unit length is {seen.condition_number:.0f}: the motion shows some "
            "combinations a hundred times less than others.",
            "Plan a motion with `steelyard excite`, or vary postures and directions more.",
        )
    else:
        number = seen.condition_number or 0.0
        message = f"All {seen.count} base columns are independent; cond₂ {number:.0f} (weighted, unit length)."
        yield Entry("rank", "ok", message)
    for joint, motion in moving:
        total = motion.shown + motion.small + len(motion.hidden)
        poor = len(motion.hidden) > 0.5 * total and hidden > POOR * seen.count
        yield _hidden(joint, motion, total, poor)


def _still(joint: Joint, motion: JointMotion) -> Entry:
    moved = motion.highest - motion.lowest
    message = f"'{joint.name}' hardly moves: by {moved:.2g} {joint.unit} in all."
    advice = f"Move '{joint.name}' as well, or lock it: leave it out of --joints."
    return Entry("motionless", "warning", message, advice, joint.name)


def _hidden(joint: Joint, motion: JointMotion, total: int, poor: bool) -> Entry:
    names = ", ".join(motion.hidden[:6]) + (", …" if len(motion.hidden) > 6 else "")
    message = (
        f"Of the {total} base parameters of '{joint.name}' this motion does not show {len(motion.hidden)}: {names}."
    )
    moved = motion.highest - motion.lowest
    small = motion.range_share < SMALL_SHARE if motion.range_share is not None else moved < ROOM[joint.kind]
    slow = motion.speed < 0.3 * joint.velocity if np.isfinite(joint.velocity) else motion.speed < ROOM[joint.kind]
    how = "farther" if small else "faster" if slow else "longer, with other joints in varied postures"
    advice = f"Move '{joint.name}' {how} (now {moved:.2g} {joint.unit}, up to {motion.speed:.2g} {joint.unit}/s)."
    return Entry("hidden", "warning" if poor else "note", message, advice, joint.name)
