"""URDF: the `<dynamics>` and the `<limit>` of a joint, edited in place."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.simulator_drive import SimulatorDrive
from steelyard.errors import ExportError, UnknownNameError
from steelyard.export._xml_text import Document, comment, number, tag
from steelyard.ground.xml import parse_xml


def edited_urdf(source: Path, joint: str, drive: SimulatorDrive) -> bytes:
    """Return the bytes of a URDF whose joint has the friction and the limits of a drive.

    Args:
        source: Original URDF.
        joint: Name of the joint.
        drive: Drive at one setting.
    """
    document = Document(source)
    joints = {e.attributes.get("name", ""): e for e in document.root.all("joint")}
    if joint not in joints:
        raise UnknownNameError("joint", joint, sorted(joints))
    element = joints[joint]
    if element.attributes.get("type") in ("fixed", "floating", "planar"):
        raise ExportError(f"{source}: joint '{joint}' is {element.attributes['type']}; a drive turns one axis.")
    lines = [comment([f"drive '{drive.name}' ({drive.setting()}), identified by Steelyard", *drive.comments()])]
    dynamics = element.find("dynamics")
    text = tag("dynamics", {**({} if dynamics is None else dynamics.attributes), **_dynamics(drive)})
    limit = element.find("limit")
    if math.isfinite(drive["torque_limit"]):
        limits = {"effort": number(drive["torque_limit"])}
        if math.isfinite(drive["no_load_speed"]):
            limits["velocity"] = number(drive["no_load_speed"])
        if limit is not None:
            document.replace(limit, tag("limit", {**limit.attributes, **limits}))
        elif "velocity" in limits:  # URDF needs both
            lines.append(tag("limit", limits))
    if dynamics is not None:
        document.replace(dynamics, text)
    else:
        lines.append(text)
    document.insert_first(element, [part for line in lines for part in line.splitlines()])
    return document.edited()


def _dynamics(drive: SimulatorDrive) -> dict[str, str]:
    return {"damping": number(drive["viscous"] + drive["drag"]), "friction": number(drive["frictionloss"])}


def _notes(drive: SimulatorDrive) -> tuple[str, ...]:
    notes = [
        *drive.missing,
        "URDF lacks armature, position gain and delay; use the files of the simulators for them.",
    ]
    if drive["drag"]:
        notes.append("The damping includes the back-EMF's drag, so it also acts while the drive is off.")
    return tuple(notes)


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    robot = target.robot
    if robot is not None and robot.is_file() and robot.suffix.lower() in (".urdf", ".xml"):
        if parse_xml(robot).tag != "robot":
            return WrittenDrive({})
        data = edited_urdf(robot, target.joint, drive)
        return WrittenDrive({f"{robot.stem}.urdf": partial(_bytes, data)}, _notes(drive))
    if robot is not None:
        return WrittenDrive({})
    lines = [comment([f"Drive '{drive.name}' ({drive.setting()}).", *drive.comments(), *_notes(drive)]),
             tag("dynamics", _dynamics(drive)), ""]  # fmt: skip
    return WrittenDrive({"urdf-dynamics.xml": "\n".join(lines)}, _notes(drive))


def _bytes(data: bytes, path: Path) -> None:
    path.write_bytes(data)


ACTUATOR_FORMATS.register("urdf")(ActuatorFormat("URDF: <dynamics> and <limit> of the joint, in place", _write))
