"""Position drives in an MJCF: each matched joint gets one; it replaces the joint's actuator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard.export._xml_text import Document, number, numbers, tag
from steelyard.ground.arrays import Array
from steelyard.matching.joint_drives import Drives
from steelyard.matching.match_coordinates import GAIN_FACTORS, JOINT_BLOCKS
from steelyard.matching.window_fit import WindowFit, fit_windows
from steelyard.matching.window_rollout import Physics

# Shortest supported step of a simulation [s]; the buffer of commands needs one sample per step of the delay.
_SHORTEST_STEP = 1e-4


def fit_for_mujoco(fit: WindowFit, physics: Physics) -> WindowFit:
    """Return a fit with a delay of the goals alone, since MuJoCo delays commands but not feedback.

    With q(t − T) ≈ q − T q̇, delayed feedback has the effect of a damping kd − kp T. Starting there, the function fits
    kd and the other numbers to the same windows again.

    Args:
        fit: Fit.
        physics: Robot.
    """
    drives = fit.point.drives
    if drives.delayed == "goal" or drives.delay == 0.0:
        return fit
    old = fit.coordinates
    less = np.maximum(drives.kd - drives.kp * drives.delay, 0.1 * drives.kd)
    # The encoder zeros stay fixed: they are properties of the robot and do not depend on the form of its drives.
    blocks = tuple(name for name in JOINT_BLOCKS if name in (*old.fit, "kd") and name != "bias")
    # Gains and limits start from their fitted values.
    own = replace(drives, kd=less, delayed="goal")
    first = {**old.first, "delay": np.array([drives.delay]), "bias": np.asarray(fit.point.bias)}
    new = replace(old, drives=own, fit=blocks, first=first)
    z = new.centre
    for name in ("links", *old.fit):
        if name not in (*GAIN_FACTORS, "bias"):
            z[new.blocks[name]] = fit.z[old.blocks[name]]
    return fit_windows(physics, new, z, fit.windows)


def with_position_drives(path: Path, joints: Sequence[str], drives: Drives, bias: Array) -> bytes:
    """Return an MJCF with τ = sat(kp (goal − q − bias) − kd q̇) on each joint; `ctrl` is the logged goal.

    The actuators keep their names and their order, so that sensors and key frames remain valid.

    Args:
        path: MJCF.
        joints: Names of the joints.
        drives: Drives without delayed feedback.
        bias: Measured minus true positions [rad, m].
    """
    document = Document(path)
    lines = {name: _attributes(name, k, drives, bias) for k, name in enumerate(joints)}
    with_drive = set()
    for section in document.root.all("actuator"):
        for element in section.children:
            joint = element.attributes.get("joint", "")
            if joint in lines and joint not in with_drive:
                name = element.attributes.get("name", f"{joint}_drive")
                document.replace(element, tag("general", {"name": name, **lines[joint]}))
                with_drive.add(joint)
            elif joint in lines:
                document.remove(element)
    rest = [tag("general", {"name": f"{j}_drive", **a}) for j, a in lines.items() if j not in with_drive]
    if rest:
        document.insert_first(document.root, ["<actuator>", *(f"  {line}" for line in rest), "</actuator>"])
    return document.edited()


def _attributes(joint: str, k: int, drives: Drives, bias: Array) -> dict[str, str]:
    kp, kd, limit = (float(x[k]) for x in (drives.kp, drives.kd, drives.limit))
    out = {
        "joint": joint, "gear": "1", "ctrllimited": "false", "gaintype": "fixed", "gainprm": number(kp),
        "biastype": "affine", "biasprm": numbers([-kp * float(bias[k]), -kp, -kd]), "dyntype": "none",
    }  # fmt: skip
    out |= {"forcerange": numbers([-limit, limit]), "forcelimited": "true"} if np.isfinite(limit) else {
        "forcelimited": "false"
    }  # fmt: skip
    if drives.delay > 0.0:
        samples = int(np.ceil(drives.delay / _SHORTEST_STEP)) + 1
        out |= {"delay": number(drives.delay), "nsample": str(samples), "interp": "zoh"}
    return out
