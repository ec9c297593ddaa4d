"""Verdict of a gravity model, from left-out poses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.display import Headline
from steelyard.ground.numbers import number, percent

if TYPE_CHECKING:
    from steelyard.gravity.gravity_model import GravityModel

# With a larger error [% of the torque's standard deviation], a user who moves the arm by hand feels that the
# compensation is wrong.
_ROUGH = 25.0


def gravity_verdict(gravity: GravityModel) -> Headline:
    """Judge a `gravity` model by its errors at left-out poses."""
    score = gravity.scores["left-out poses"]
    joints, used = gravity.robot.joints, gravity.robot.torque_used
    carrying = [k for k, c in enumerate(gravity.carries) if c and used[k]]
    points = []
    if not carrying:
        kind: Any = "bad"
        sentence = "The model explains the torque of no joint at left-out poses; do not use it."
        points.append("Check signs, units and the order of the joints (`steelyard check`).")
    else:
        worst = max(carrying, key=lambda k: score.percent[k])
        shares = ", ".join(percent(float(score.percent[k])) for k in carrying)
        names = ", ".join(joints[k].name for k in carrying)
        kind = "warning" if score.percent[worst] > _ROUGH or any(gravity.open) else "good"
        sentence = f"At left-out poses the torque error is {shares} of the torque's std ({names})."
    rest = [joints[k].name for k in range(len(joints)) if k not in carrying and used[k]]
    if rest and carrying:
        points.append(
            f"Gravity explains less than half of the torque of {', '.join(rest)}: friction and offset remain."
        )
    if any(gravity.open):
        hidden = [n for n, o in zip(gravity.columns.base_names, gravity.open, strict=True) if o]
        points.append(f"The poses leave open: {'; '.join(hidden)}. Hold further poses (next_poses.csv).")
    for k in carrying:
        f = gravity.friction[k]
        if f.kind != "noise":
            how = "depends on the side of approach" if f.kind == "side" else "has any value in a tube"
            points.append(
                f"{joints[k].name}: dry friction of ± {number(abs(f.limit), 2)} {joints[k].effort_unit} {how}."
            )
    if gravity.odd:
        places = ", ".join(f"row {row}" + (f" of log {log}" if log > 1 else "") for log, row in gravity.odd[:8])
        points.append(
            f"Left out: {places}, whose torques fit no friction; was the robot touched, or is a number wrong?"
        )
    if gravity.border:
        points.append(
            f"At a bound (zero mass, or centre of mass at the end of its reach): {', '.join(gravity.border)}."
        )
    points.append(
        "Poses at rest show no inertia and no friction in motion; log a motion for these (`steelyard identify`)."
    )
    if not np.any(gravity.poses.side):
        points.append("Approach each pose from both sides to separate friction from gravity.")
    return Headline(kind, sentence, tuple(points))
