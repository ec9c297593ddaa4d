"""Command logs of a simulated servo, in the files of their recorders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_load import Load
from steelyard.actuators.drive_model import DriveModel

VOLTAGE = DriveModel(
    "voltage", "M1",
    {"torque_per_volt": 0.08, "back_emf": 0.03, "duty_gain": 0.00288, "armature": 0.0016, "friction_base": 0.02,
     "friction_viscous": 0.003},
    ("torque_per_volt", "armature", "friction_base"), np.diag([0.01, 0.02, 0.05]) ** 2,
    frozenset(("torque_per_volt", "armature", "friction_base")), name="servo",
)  # fmt: skip
TORQUE = DriveModel(
    "torque", "M1",
    {"kp_gain": 1.02, "kd_gain": 1.0, "torque_limit": 3.0, "armature": 0.02, "friction_base": 0.05,
     "friction_viscous": 0.02},
    ("kp_gain", "armature"), np.diag([0.01, 0.02]) ** 2, frozenset(("kp_gain", "armature")), name="leg",
)  # fmt: skip
LOOP = DriveModel(
    "position-loop", "M1",
    {"stiffness": 12.0, "damping": 0.5, "torque_limit": 2.0, "goal_time": 0.03, "armature": 0.01, "friction_base": 0.03,
     "friction_viscous": 0.05},
    ("stiffness",), np.array([[1e-4]]), frozenset(("stiffness",)), name="loop",
)  # fmt: skip


def goals(rate: float = 200.0, duration: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Times, and a goal of two sines and a step."""
    t = np.arange(0.0, duration, 1.0 / rate)
    return t, 0.9 * np.sin(2.0 * t) + 0.3 * np.sin(7.0 * t) + 0.4 * (t > duration / 2.0)


def bam_document(rows: int = 60, *, load: Any = None, **top: Any) -> dict[str, Any]:
    """A raw log of BAM; `load` makes the register of a duty."""
    t = np.arange(rows) * 0.005
    entries = [
        {
            "position": float(np.sin(x)), "speed": float(np.cos(x)), "load": 0 if load is None else load(k),
            "input_volts": 7.4, "temp": 28, "timestamp": float(x), "goal_position": float(np.sin(x) + 0.1),
            "torque_enable": k < rows // 2,
        }
        for k, x in enumerate(t)
    ]  # fmt: skip
    return {"mass": 0.5, "length": 0.1, "kp": 400, "vin": 7.4, "motor": "xl330", "trajectory": "sin_sin",
            "entries": entries, **top}  # fmt: skip


def write_bam(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


def write_sage(
    folder: Path, *, scale: float = 1.0, joints: tuple[str, ...] = ("hip", "knee"), kind: str = "STATE_MOTOR",
    begin: float = 0.0,
) -> Path:  # fmt: skip
    """A folder of SAGE whose commands come at 50 Hz and whose states come at 200 Hz, 3 ms later."""
    folder.mkdir(parents=True)
    t = np.arange(0.0, 2.0, 0.005)
    sent = np.arange(0.0, 2.0, 0.02)
    goal = lambda x: [float(np.sin(x) + k) for k in range(len(joints))]  # noqa: E731
    state = ["type,timestamp,positions,velocities,torques"]
    for x in t:
        speed, torque = [float(np.cos(x))] * len(joints), [0.5] * len(joints)
        state.append(f'{kind},{float((begin + x + 0.003) * scale)!r},"{goal(x)}","{speed}","{torque}"')
    control = ["type,timestamp,positions,velocities,torques"]
    control += [f'CONTROL,{float((begin + x) * scale)!r},"{goal(x + 0.1)}","[]","[]"' for x in sent]
    (folder / "state_motor.csv").write_text("\n".join(state) + "\n")
    (folder / "control.csv").write_text("\n".join(control) + "\n")
    (folder / "joint_list.txt").write_text("\n".join(joints) + "\n")
    return folder


def log_of(
    model: DriveModel, *, off: bool = False, kp: float = 400.0, kd: float = 1.0, volts: float = 7.4
) -> CommandLog:
    """A run with the goal as position, to be replaced by a rollout."""
    t, goal = goals()
    load = Load.pendulum(0.49, 0.1, 0.05) if model.kind == "voltage" else Load.pendulum(1.0, 0.15)
    on = (t < 1.5) | (t > 2.5) if off else None
    kp = kp if model.kind == "voltage" else 15.0
    return CommandLog("run", t, goal, np.full(len(t), goal[0]), load, kp=kp, kd=kd, volts=volts, torque_enable=on)
