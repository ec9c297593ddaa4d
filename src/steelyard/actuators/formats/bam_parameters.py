"""BAM: `params/<motor>/<model>.json`, as its `load_model` reads it."""

from __future__ import annotations

from typing import Any

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.drive_model import DriveModel
from steelyard.actuators.simulator_drive import SimulatorDrive
from steelyard.ground.outcome import json_text

# BAM's names of our parameters, where they differ.
_NAMES = {
    "offset": "q_offset",
    "delay": "command_delay",
    "load_friction": "load_friction_base",
    "stribeck_velocity": "dtheta_stribeck",
}
_SHARED = (
    "armature", "offset", "delay", "friction_base", "friction_stribeck", "load_friction", "load_friction_stribeck",
    "load_friction_motor", "load_friction_external", "load_friction_motor_stribeck", "load_friction_external_stribeck",
    "load_friction_motor_quad", "load_friction_external_quad", "stribeck_velocity", "friction_viscous",
)  # fmt: skip


def bam_parameters(model: DriveModel, actuator: str) -> dict[str, Any]:
    """Return the content of BAM's parameter file.

    Args:
        model: Drive.
        actuator: Name of the actuator in BAM.
    """
    out: dict[str, Any] = {}
    if model.kind == "voltage":
        out |= {"kt": model.kt, "R": model.resistance}
    else:  # BAM's torque drive scales the logged gain and limits the torque
        if "kp_gain" in model.parameters:
            out["ratio"] = model["kp_gain"]
        if "torque_limit" in model.parameters:
            out["max_torque"] = model["torque_limit"]
    out |= {_NAMES.get(name, name): model[name] for name in _SHARED if name in model.parameters}
    if "stribeck_velocity" in model.parameters:
        out["alpha"] = model.stribeck_exponent
    # BAM's loader ignores keys that its model does not have.
    out["intervals_95"] = {
        _NAMES.get(name, name): list(model.interval(name)) for name in model.names() if name in model.estimated
    }
    return out | {"model": model.friction.lower(), "actuator": actuator}


def _notes(model: DriveModel, actuator: str, volts: float) -> tuple[str, ...]:
    notes = [f"BAM's actuator '{actuator}' states supply and error_gain itself: check them against this drive."]
    if model.kind == "voltage":
        notes = [
            f"BAM's actuator '{actuator}' states vin and error_gain itself; this drive has a duty of "
            f"{model['duty_gain']:.6g} per unit of kp and radian at {volts:g} V."
        ]
    if model.kind == "position-loop":
        notes.append("BAM does not support drives with unknown gains; register an actuator with this stiffness.")
    for name, effect in (
        ("goal_time", "the filter of the goal"),
        ("backlash", "play"),
        ("feedback_delay", "a delayed feedback"),
        ("no_load_speed", "the speed line"),
        ("load_friction_quad", "friction per squared torque through the gears"),
    ):
        if name in model.parameters:
            notes.append(f"BAM does not model {effect}.")
    return tuple(notes)


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    actuator = target.bam_actuator or drive.name
    model = drive.for_bam or drive.model
    notes = _notes(drive.model, actuator, drive.volts)
    if drive.for_bam is not None:
        notes = ("Fitted to the logs again without the effects that BAM does not model.", *notes)
    return WrittenDrive({f"bam-{model.friction.lower()}.json": json_text(bam_parameters(model, actuator))}, notes)


ACTUATOR_FORMATS.register("bam")(ActuatorFormat("BAM: parameter file with all friction terms", _write))
