"""Simulates a written MJCF in MuJoCo on the logs of a drive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.actuators.simulator_drive import SimulatorDrive, at_setting, supply_volts
from steelyard.export._xml_text import number, numbers, tag

if TYPE_CHECKING:
    from steelyard.actuators.command_log import CommandLog
    from steelyard.actuators.drive_load import Load
    from steelyard.ground.arrays import Array

# Standard gravity of the loads.
_GRAVITY = 9.81
# Share of the inertia in the point mass of the bench; the rest is rotational inertia, since MuJoCo does not allow zero.
_POINT = 0.99
BENCH_JOINT = "drive"


def bench_mjcf(
    joint: Mapping[str, str], actuator: str, load: Load, *, offset: float = 0.0, timestep: float = 0.002,
    integrator: str = "Euler", name: str = "bench",
) -> str:  # fmt: skip
    """Return the MJCF of a load on one hinge, with the joint attributes and the actuator of a written file.

    Args:
        joint: Attributes of the joint.
        actuator: Element of the actuator; the name of its joint is "drive".
        load: Load.
        offset: True angle from the load's rest position minus the stated one [rad].
        timestep: Time step [s].
        integrator: Integrator of MuJoCo.
        name: Name of the model.
    """
    inertia = max(load.inertia, 1e-9)
    if load.gravity > 0.0:
        arm = _POINT * inertia * _GRAVITY / load.gravity  # m·l² = 0.99·I and m·g·l = G
        mass = load.gravity / (_GRAVITY * arm)
        own = (1.0 - _POINT) * inertia
    else:
        arm, mass, own = 0.0, 1e-3, inertia
    turn = offset - load.rest_angle
    place = (-arm * math.sin(turn), 0.0, -arm * math.cos(turn))
    attributes = {"name": BENCH_JOINT, "type": "hinge", "axis": "0 1 0", **joint}
    return "\n".join(
        [
            tag("mujoco", {"model": name}, closed=False),
            "  " + tag("compiler", {"angle": "radian", "autolimits": "true"}),
            "  " + tag("option", {"timestep": number(timestep), "integrator": integrator,
                                  "gravity": numbers((0.0, 0.0, -_GRAVITY))}),
            "  <worldbody>",
            "    " + tag("body", {"name": "load"}, closed=False),
            "      " + tag("joint", attributes),
            "      " + tag("inertial", {"pos": numbers(place), "mass": number(mass),
                                        "diaginertia": numbers((own, own, own))}),
            "    </body>",
            "  </worldbody>",
            "  <actuator>",
            f"    {actuator}",
            "  </actuator>",
            "</mujoco>",
            "",
        ]
    )  # fmt: skip


def replay_mjcf(xml: str, log: CommandLog) -> Array:
    """Simulate a run with an MJCF of one joint and one actuator; return the positions [rad] at the times of the run.

    The goal is constant until the next sample; while the drive is off, MuJoCo's actuator is disabled.

    Args:
        xml: Text of the MJCF.
        log: Run.
    """
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(xml)
    out = log.position.copy()
    for part in log.segments():
        out[part] = _replayed(model, log.part(part))
    return out


def _replayed(model: Any, log: CommandLog) -> Array:
    """Simulate a part of a run without gaps."""
    import mujoco

    data: Any = mujoco.MjData(model)
    step = float(model.opt.timestep)
    goal = np.where(np.isfinite(log.goal), log.goal, log.position)
    data.qpos[0], data.qvel[0], data.ctrl[0] = log.position[0], first_velocity(log), goal[0]
    if data.act.size:  # the filter of the goal
        data.act[0] = goal[0] if log.enabled[0] else log.position[0]
    count = math.ceil(log.duration / step) + 1
    times = log.time[0] + step * np.arange(count)
    # Rounding errors must not delay a goal by one step.
    places = np.clip(np.searchsorted(log.time, times + 1e-6 * step, side="right") - 1, 0, len(log) - 1)
    held, on = goal[places], log.enabled[places]
    off_mask = 1 << int(model.actuator_group[0])
    if hasattr(model, "actuator_history") and (size := int(model.actuator_history[0, 0])):
        # Before the run, the goal has its first value.
        mujoco.mj_initCtrlHistory(model, data, 0, -step * np.arange(size, 0, -1.0), np.full((size, 1), goal[0]))
    out = np.empty(count)
    for k in range(count):
        out[k] = data.qpos[0]
        data.ctrl[0] = held[k]
        model.opt.disableactuator = 0 if on[k] else off_mask
        mujoco.mj_step(model, data)
    return np.asarray(np.interp(log.time, times, out))


def first_velocity(log: CommandLog) -> float:
    """Return the velocity at the first sample of a run `log` [rad/s], as in the rollouts of the fit."""
    from steelyard.actuators import rollout

    speed, deviation = rollout.first_speed(log, slice(0, len(log)))
    return speed if abs(speed) > 3.0 * deviation else 0.0


def replay_drive(
    drive: SimulatorDrive, log: CommandLog, kind: str = "position", timestep: float = 0.002, integrator: str = "Euler"
) -> Array:
    """Write joint and actuator of a drive for a run and simulate them in MuJoCo; return positions [rad].

    Args:
        drive: Drive at any setting; the run's gains and voltage replace the setting.
        log: Run.
        kind: "position" or "dcmotor".
        timestep: Time step [s].
        integrator: Integrator of MuJoCo.
    """
    from steelyard.actuators.formats.mujoco_drive import actuator_element, joint_attributes

    own = drive_at(drive, log)
    element = actuator_element(own, BENCH_JOINT, kind, timestep=timestep)
    joint = joint_attributes(own, kind)
    xml = bench_mjcf(joint, element, log.load, offset=drive.values.get("offset", 0.0), timestep=timestep,
                     integrator=integrator)  # fmt: skip
    return replay_mjcf(xml, log)


def can_replay() -> bool:
    """Whether the installed MuJoCo reads the written files with delays and dcmotors: version 3.12 or newer."""
    if not find_spec("mujoco"):
        return False
    from importlib.metadata import version

    parts = version("mujoco").split(".")
    return (int(parts[0]), int(parts[1])) >= (3, 12)


def drive_at(drive: SimulatorDrive, log: CommandLog) -> SimulatorDrive:
    """Return a drive at the gains and the voltage of a run, without draws.

    Args:
        drive: Drive at any setting.
        log: Run.
    """
    kp, kd, volts = (own if math.isfinite(own) else usual for own, usual in
                     ((log.kp, drive.kp), (log.kd, drive.kd), (supply_volts(log), drive.volts)))  # fmt: skip
    if drive.model.kind == "position-loop":
        return drive
    return at_setting(drive, kp, kd, volts)


def mean_error(positions: Sequence[Array], logs: Sequence[CommandLog]) -> float:
    """Return the mean absolute difference [rad] of simulated and measured positions over all samples.

    Args:
        positions: Simulated positions of each run.
        logs: Runs.
    """
    total = sum(float(np.abs(p - log.position).sum()) for p, log in zip(positions, logs, strict=True))
    return total / max(sum(len(log) for log in logs), 1)
