"""mjlab: configurations of an actuator, and events that randomise it."""

from __future__ import annotations

import math

from steelyard.actuators._python_text import Argument, call, literal, quoted, regex_quoted, variable
from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.formats.isaac_lab import _ranges, _steps, dc_motor, one_line
from steelyard.actuators.simulator_drive import SimulatorDrive


def mjlab_text(drive: SimulatorDrive, target: ActuatorTarget) -> str:
    """Return Python text with mjlab's configurations and events of a drive.

    Args:
        drive: Drive at one setting.
        target: Joint and physics step.
    """
    name = variable(drive.name)
    head = [
        f"Drive '{one_line(drive.name)}' ({drive.setting()}), identified by Steelyard; comments: 95 % intervals.",
        "Use one of the configurations, in EntityArticulationInfoCfg(actuators=(...,)), with the names of mjlab 1.",
        *mjlab_notes(drive, target),
    ]
    lines = [f"# {line}" for line in head]
    dc = math.isfinite(drive["torque_limit"]) and math.isfinite(drive["no_load_speed"])
    lines += ["", f"from mjlab.actuator import BuiltinPositionActuatorCfg{', DcMotorActuatorCfg' if dc else ''}",
              "from mjlab.envs.mdp import dr", "from mjlab.managers.event_manager import EventTermCfg",
              "from mjlab.managers.scene_entity_config import SceneEntityCfg", ""]  # fmt: skip
    if dc:
        lines += ["# Exactly the torque of these numbers, except for the filter of the goal and parts of steps."]
        lines += [*call(f"{name}_DC", "DcMotorActuatorCfg", _dc(drive, target)), ""]
    lines += ["# MuJoCo's own position actuator; the drag of the back-EMF is part of the joint's viscous damping."]
    lines += [*call(f"{name}_POSITION", "BuiltinPositionActuatorCfg", _position(drive, target)), ""]
    return "\n".join([*lines, *_events(drive, target, name), ""])


def mjlab_notes(drive: SimulatorDrive, target: ActuatorTarget) -> list[str]:
    """Return remarks on effects that the configurations do not represent.

    Args:
        drive: Drive at one setting.
        target: Joint and physics step.
    """
    notes = list(drive.missing)
    if drive["goal_time"]:
        notes.append(
            f"The firmware filters its goal with a time constant of {drive['goal_time']:.4g} s: filter the actions."
        )
    if drive["delay"]:
        notes.append(f"The delay is in whole physics steps of {target.step:g} s.")
    notes += drive.supply_note()
    if drive.missing:
        notes.append("bam-….json has all friction terms, for BamActuatorCfg(json_path=…) of BAM's mjlab module.")
    return notes


def _shared(drive: SimulatorDrive, target: ActuatorTarget) -> dict[str, Argument]:
    low, high = _steps(drive, target)
    out = {
        "armature": (literal(drive["armature"]), drive.numbers["armature"].shown()),
        "frictionloss": (literal(drive["frictionloss"]), drive.numbers["frictionloss"].shown()),
    }
    if high:
        out["delay_min_lag"] = (str(low), drive.numbers["delay"].shown())
        out["delay_max_lag"] = (str(high), "")
    return out


def _names(target: ActuatorTarget) -> dict[str, Argument]:
    return {"target_names_expr": (f"({regex_quoted(target.joint)},)", "")}


def _dc(drive: SimulatorDrive, target: ActuatorTarget) -> dict[str, Argument]:
    viscous = {"viscous_damping": (literal(drive["viscous"]), drive.numbers["viscous"].shown())}
    return {**_names(target), **dc_motor(drive), **viscous, **_shared(drive, target)}


def _position(drive: SimulatorDrive, target: ActuatorTarget) -> dict[str, Argument]:
    out: dict[str, Argument] = {
        **_names(target),
        "stiffness": (literal(drive["stiffness"]), drive.numbers["stiffness"].shown()),
        "damping": (literal(drive["damping"]), drive.numbers["damping"].shown()),
    }
    most = min(drive["torque_limit"], drive["effort_limit"])
    if math.isfinite(most):
        out["effort_limit"] = (literal(most), drive.numbers["torque_limit"].shown())
    note = drive.numbers["viscous"].shown() + (f"; and drag {drive.numbers['drag'].shown()}" if drive["drag"] else "")
    out["viscous_damping"] = (literal(drive["viscous"] + drive["drag"]), note)
    return {**out, **_shared(drive, target)}


def _events(drive: SimulatorDrive, target: ActuatorTarget, name: str) -> list[str]:
    joints = f'SceneEntityCfg("robot", joint_names=({regex_quoted(target.joint)},))'
    actuators = f'SceneEntityCfg("robot", actuator_names=({regex_quoted(target.joint)},))'
    drag = "drag" if drive["drag"] else "damping"
    gains = _ranges(drive, {"kp_range": "stiffness", "kd_range": drag})
    if "kp_range" in gains and "kd_range" not in gains:
        value = literal(drive["damping"] + drive["drag"])
        gains["kd_range"] = f"({value}, {value})"
    lags = _steps(drive, target)
    parts = [
        ("ARMATURE", "dr.joint_armature", joints, _ranges(drive, {"ranges": "armature"})),
        ("DRIVE_FRICTION", "dr.joint_friction", joints, _ranges(drive, {"ranges": "frictionloss"})),
        ("GAINS", "dr.pd_gains", actuators, gains if "kp_range" in gains else {}),
        ("LIMIT", "dr.effort_limits", actuators, {} if drive["drag"] else _ranges(
            drive, {"effort_limit_range": "torque_limit"})),
        ("DELAY", "dr.sync_actuator_delays", actuators, {"lag_range": str(lags)} if lags[1] > lags[0] else {}),
    ]  # fmt: skip
    lines = ["# Ranges are 95 % intervals. They ignore correlations; randomisation.csv has correlated draws.",
             "# GAINS are for the DC configuration; with the POSITION one the drag is in the joint."]  # fmt: skip
    for label, function, asset, ranges in parts:
        if ranges:
            inside = [f'"asset_cfg": {asset}', *(f"{quoted(k)}: {v}" for k, v in ranges.items())]
            if label != "DELAY":
                inside.append('"operation": "abs"')
            lines += call(f"{name}_{label}_EVENT", "EventTermCfg",
                          {"func": (function, ""), "mode": ('"startup"', ""),
                           "params": ("{" + ", ".join(inside) + "}", "")})  # fmt: skip
    return lines


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    return WrittenDrive({"mjlab.py": mjlab_text(drive, target)}, tuple(mjlab_notes(drive, target)))


ACTUATOR_FORMATS.register("mjlab")(ActuatorFormat("mjlab: actuator configurations and events", _write))
