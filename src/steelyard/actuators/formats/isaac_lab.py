"""Isaac Lab: configurations of an actuator, and events that randomise it."""

from __future__ import annotations

import math

from steelyard.actuators._python_text import Argument, call, literal, quoted, regex_quoted, variable
from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.simulator_drive import SimulatorDrive

# The torque-speed line is the only limit of a voltage drive: the continuous limit exceeds any braking torque.
_BEYOND = 2.0


def isaac_text(drive: SimulatorDrive, target: ActuatorTarget) -> str:
    """Return Python text with Isaac Lab's configurations and events of a drive.

    Args:
        drive: Drive at one setting.
        target: Joint and physics step.
    """
    name = variable(drive.name)
    head = [
        f"Drive '{one_line(drive.name)}' ({drive.setting()}), identified by Steelyard; comments: 95 % intervals.",
        "Use one of the configurations in ArticulationCfg(actuators={...}); the names are from Isaac Lab 2.",
        *isaac_notes(drive, target),
    ]
    lines = [f"# {line}" for line in head]
    lines += ["", "import isaaclab.envs.mdp as mdp", "from isaaclab.actuators import DCMotorCfg, DelayedPDActuatorCfg,"
              " ImplicitActuatorCfg", "from isaaclab.managers import EventTermCfg as EventTerm",
              "from isaaclab.managers import SceneEntityCfg", ""]  # fmt: skip
    if math.isfinite(drive["torque_limit"]) and math.isfinite(drive["no_load_speed"]):
        lines += ["# Exactly the torque of these numbers, except for delay and filter of the goal."]
        lines += [*call(f"{name}_DC", "DCMotorCfg", {**_shared(drive, target), **dc_motor(drive), **_joint(drive)}), ""]
    steps = _steps(drive, target)
    if steps[1]:
        lines += [f"# With the delay in whole physics steps of {target.step:g} s; the torque limit does not fall with "
                  "the speed."]  # fmt: skip
        delayed = {**_pd(drive, target, "effort_limit"), "min_delay": (str(steps[0]), drive.numbers["delay"].shown()),
                   "max_delay": (str(steps[1]), "")}  # fmt: skip
        lines += [*call(f"{name}_DELAYED", "DelayedPDActuatorCfg", delayed), ""]
    lines += ["# Solved with the physics, for large steps; all friction of the drive inside the torque limit."]
    lines += [*call(f"{name}_IMPLICIT", "ImplicitActuatorCfg", _pd(drive, target, "effort_limit_sim")), ""]
    lines += [*_events(drive, target, name), ""]
    return "\n".join(lines)


def one_line(text: str) -> str:
    """Return a `text` without line breaks, for a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)


def isaac_notes(drive: SimulatorDrive, target: ActuatorTarget) -> list[str]:
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
        notes.append("Only DelayedPDActuatorCfg has the delay, and only in whole steps.")
    notes += drive.supply_note()
    notes.append("Friction: in Isaac Sim before 5.0, `friction` is a coefficient without unit; leave it out there.")
    return notes


def _shared(drive: SimulatorDrive, target: ActuatorTarget) -> dict[str, Argument]:
    return {"joint_names_expr": (f"[{regex_quoted(target.joint)}]", "")}


def _joint(drive: SimulatorDrive) -> dict[str, Argument]:
    return {
        "armature": (literal(drive["armature"]), drive.numbers["armature"].shown()),
        "friction": (literal(drive["frictionloss"]), drive.numbers["frictionloss"].shown()),
        "dynamic_friction": (literal(drive["frictionloss"]), "the same: no additional friction at standstill"),
        "viscous_friction": (literal(drive["viscous"]), drive.numbers["viscous"].shown()),
    }


def dc_motor(drive: SimulatorDrive) -> dict[str, Argument]:
    """Return the common arguments of the DC motors of Isaac Lab and mjlab.

    Args:
        drive: Drive at one setting.
    """
    drag, limit = drive["drag"] > 0.0, drive["torque_limit"]
    effort = min(_BEYOND * limit, drive["effort_limit"]) if drag else limit
    return {
        "stiffness": (literal(drive["stiffness"]), drive.numbers["stiffness"].shown()),
        "damping": (literal(drive["damping"] + drive["drag"]), drive.numbers["drag" if drag else "damping"].shown()),
        "saturation_effort": (literal(limit), drive.numbers["torque_limit"].shown()),
        "effort_limit": (literal(effort), _effort_note(drive)),
        "velocity_limit": (literal(drive["no_load_speed"]), drive.numbers["no_load_speed"].shown()),
    }


def _effort_note(drive: SimulatorDrive) -> str:
    if math.isfinite(drive["effort_limit"]):
        return drive.numbers["effort_limit"].shown()
    return "above any braking torque" if drive["drag"] else "torque limit"


def _pd(drive: SimulatorDrive, target: ActuatorTarget, limit: str) -> dict[str, Argument]:
    drag = "drag" if drive["drag"] else "damping"
    out = {
        **_shared(drive, target),
        "stiffness": (literal(drive["stiffness"]), drive.numbers["stiffness"].shown()),
        "damping": (literal(drive["damping"] + drive["drag"]), drive.numbers[drag].shown()),
    }
    most = min(drive["torque_limit"], drive["effort_limit"])
    if math.isfinite(most):
        out[limit] = (literal(most), drive.numbers["torque_limit"].shown())
    return {**out, **_joint(drive)}


def _steps(drive: SimulatorDrive, target: ActuatorTarget) -> tuple[int, int]:
    """Whole physics steps within the interval of the delay."""
    delay = drive.numbers["delay"]
    if delay.value <= 0.0:
        return 0, 0
    high = delay.high if delay.known else delay.value
    low = delay.low if delay.known else delay.value
    return max(round(low / target.step), 0), max(round(high / target.step), 1)


def _events(drive: SimulatorDrive, target: ActuatorTarget, name: str) -> list[str]:
    asset = f'SceneEntityCfg("robot", joint_names=[{regex_quoted(target.joint)}])'
    drag = "drag" if drive["drag"] else "damping"
    gains = _ranges(drive, {"stiffness_distribution_params": "stiffness", "damping_distribution_params": drag})
    joint = _ranges(
        drive,
        {"friction_distribution_params": "frictionloss", "armature_distribution_params": "armature"},
    )
    lines = ["# Ranges are 95 % intervals. They ignore correlations; randomisation.csv has correlated draws."]
    for label, function, ranges in (
        ("GAINS", "mdp.randomize_actuator_gains", gains),
        ("JOINT", "mdp.randomize_joint_parameters", joint),
    ):
        if ranges:
            inside = [f'"asset_cfg": {asset}', *(f"{quoted(k)}: {v}" for k, v in ranges.items()),
                      '"operation": "abs"', '"distribution": "uniform"']  # fmt: skip
            params = "{" + ", ".join(inside) + "}"
            lines += call(f"{name}_{label}_EVENT", "EventTerm",
                          {"func": (function, ""), "mode": ('"startup"', ""), "params": (params, "")})  # fmt: skip
    return lines


def _ranges(drive: SimulatorDrive, names: dict[str, str]) -> dict[str, str]:
    """Ranges of numbers that the data determine."""
    out = {}
    for key, name in names.items():
        x = drive.numbers[name]
        if x.known and x.high > x.low and x.value > 0.0:
            out[key] = f"({literal(max(x.low, 0.0))}, {literal(x.high)})"
    return out


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    return WrittenDrive({"isaaclab.py": isaac_text(drive, target)}, tuple(isaac_notes(drive, target)))


ACTUATOR_FORMATS.register("isaaclab")(ActuatorFormat("Isaac Lab: actuator configurations and events", _write))
