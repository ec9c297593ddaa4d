"""MuJoCo: edits the joint and its actuator in the user's MJCF; the rest of the file stays unchanged."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.simulator_drive import SimulatorDrive
from steelyard.errors import ExportError, UnknownNameError
from steelyard.export._xml_text import Document, comment, number, numbers, tag
from steelyard.export.soft_friction import SHARP
from steelyard.ground.xml import Element, parse_xml

# Kinds of actuators on a joint that are replaced. Muscles and plug-ins are not drives.
_REPLACED = ("motor", "position", "velocity", "intvelocity", "general", "pid", "dcmotor", "damper", "cylinder")
# Attributes that a new actuator takes from the replaced one.
_KEPT = ("name", "class", "group", "user")
_USUAL_TIMESTEP = 0.002
# Torque limit of a motor without a limit except its voltage, as a multiple of its torque at standstill.
_BEYOND = 4.0


def joint_attributes(drive: SimulatorDrive, kind: str = "position") -> dict[str, str]:
    """Return the attributes of the joint.

    Args:
        drive: Drive at one setting.
        kind: "position" or "dcmotor"; a dcmotor contains the drag of the back-EMF.
    """
    damping = drive["viscous"] + (drive["drag"] if kind == "position" else 0.0)
    values = {"armature": drive["armature"], "damping": damping, "frictionloss": drive["frictionloss"]}
    sharp = SHARP if drive["frictionloss"] else {}
    return {name: number(value) for name, value in values.items()} | dict(sharp)


def actuator_element(
    drive: SimulatorDrive, joint: str, kind: str = "position", *, timestep: float = _USUAL_TIMESTEP,
    others: dict[str, str] | None = None,
) -> str:  # fmt: skip
    """Return the actuator's element.

    Args:
        drive: Drive at one setting.
        joint: Name of the joint.
        kind: "position" or "dcmotor".
        timestep: Time step of the model [s], for the length of the delay's buffer.
        others: Further attributes.
    """
    attributes = {**(others or {}), "joint": joint}
    if drive["delay"] > 0.0:
        # One sample more than the length of the delay, because the interpolation needs two.
        size = math.ceil(drive["delay"] / timestep - 1e-9) + 1
        attributes |= {"nsample": str(size), "interp": "linear", "delay": number(drive["delay"])}
    limit, gear = drive["torque_limit"], {"gear": "1"}
    if kind == "dcmotor" and drive["goal_time"] == 0.0:
        volts = drive.volts
        k = volts / drive["no_load_speed"]
        # The controller adds K·dq to its voltage, like a current loop; the same drag in its gain cancels this term.
        gain = drive["damping"] + drive["drag"]
        attributes |= {
            "motorconst": numbers((k, k)), "resistance": number(k * volts / limit), "input": "pos",
            "controller": numbers((drive["stiffness"], 0.0, gain, 0.0, 0.0, volts)),
        }  # fmt: skip
        # Without drag, the torque limit also applies while the motor brakes.
        most = drive["effort_limit"] if drive["drag"] else limit
        # A stated saturation clears the force range of a default class; braking stays below it up to three times the
        # no-load speed.
        attributes["saturation"] = numbers((min(most, _BEYOND * limit), 0.0, 0.0))
        return tag("dcmotor", attributes | gear)
    attributes |= {"kp": number(drive["stiffness"]), "kv": number(drive["damping"])}
    # Write these attributes even without a filter or a limit: a default class may have other values.
    attributes["timeconst"] = number(drive["goal_time"])
    limit = min(limit, drive["effort_limit"])
    if math.isfinite(limit):
        attributes |= {"forcelimited": "true", "forcerange": numbers((-limit, limit))}
    else:
        attributes["forcelimited"] = "false"
    servo = tag("position", attributes | gear)
    if kind == "position":
        return servo
    # A dcmotor cannot filter its goal. An additional passive dcmotor generates the drag; it is off with the servo.
    speed = drive["no_load_speed"]
    name = {"name": f"{(others or {}).get('name', joint)}_back_emf"}
    group = {k: v for k, v in (others or {}).items() if k == "group"}
    k = drive.volts / speed
    passive = {"motorconst": numbers((k, k)), "resistance": number(k * drive.volts / drive["torque_limit"])}
    return f"{servo}\n    {tag('dcmotor', {**name, **group, 'joint': joint, **passive, 'input': 'none'})}"


def holds_dcmotor(drive: SimulatorDrive) -> bool:
    """Whether `<dcmotor>` can represent a `drive`: torque–speed line, and a filter of the goal only with back-EMF."""
    return (
        math.isfinite(drive["torque_limit"]) and drive["torque_limit"] > 0.0
        and math.isfinite(drive["no_load_speed"]) and (drive["goal_time"] == 0.0 or drive["drag"] > 0.0)
        and drive.volts > 0.0
    )  # fmt: skip


def mjcf_notes(drive: SimulatorDrive, kind: str) -> list[str]:
    """Return remarks on effects that the file does not represent, and on its requirements.

    Args:
        drive: Drive at one setting.
        kind: "position" or "dcmotor".
    """
    notes = list(drive.missing)
    if kind == "position" and drive["drag"]:
        notes.append(
            "The back-EMF's drag is part of the joint's damping, so it also acts while the drive is off; a dcmotor has "
            "it only while the drive is on."
        )
    if kind == "position" and not drive["drag"] and math.isfinite(drive["no_load_speed"]):
        notes.append("The torque limit does not fall with the speed; a dcmotor has the torque-speed line.")
    notes += drive.supply_note()
    if drive["delay"]:
        notes.append("The delay needs MuJoCo 3.5 or newer; remove nsample, interp and delay for an older one.")
    if kind == "dcmotor":
        notes.append("The gains of the dcmotor's controller are in torque units, for MuJoCo 3.12 and newer.")
    return notes


def edited_drive(source: Path, joint: str, drive: SimulatorDrive, kind: str = "position") -> bytes:
    """Return the bytes of an MJCF whose joint has the drive; comments, geometry and sensors stay.

    Args:
        source: Original MJCF.
        joint: Name of the joint.
        drive: Drive at one setting.
        kind: "position" or "dcmotor".
    """
    document = Document(source)
    root = document.root
    world = root.find("worldbody")
    joints = {e.attributes.get("name", ""): e for e in world.walk() if e.tag == "joint"} if world is not None else {}
    if joint not in joints:
        included = ", ".join(e.attributes.get("file", "?") for e in root.walk() if e.tag == "include")
        if included:
            raise ExportError(
                f"{source}: joint '{joint}' is not in this file; give the included file that contains it: {included}."
            )
        raise UnknownNameError("joint", joint, sorted(name for name in joints if name))
    element = joints[joint]
    if element.attributes.get("type", "hinge") in ("ball", "free"):
        raise ExportError(f"{source}: joint '{joint}' is a {element.attributes['type']} joint; a drive turns one axis.")
    others = {k: v for k, v in element.attributes.items() if k != "springdamper"}  # it would replace the damping
    text = tag("joint", {**others, **joint_attributes(drive, kind)}, closed=document.span(element).empty)
    document.replace_tag(element, text)
    _put_actuator(document, joint, drive, kind, _timestep(root))
    head = [f"Joint '{joint}': drive '{drive.name}' ({drive.setting()}), identified by Steelyard.", *drive.comments()]
    document.insert_first(root, comment([*head, *mjcf_notes(drive, kind)]).splitlines())
    return document.edited()


def _timestep(root: Element) -> float:
    for option in root.all("option"):
        if "timestep" in option.attributes:
            return float(option.vector("timestep", 1)[0])
    return _USUAL_TIMESTEP


def integration(source: Path | None) -> tuple[float, str]:
    """Return time step [s] and integrator of an MJCF; without an MJCF, MuJoCo's defaults.

    Args:
        source: MJCF of the user.
    """
    if source is None or not is_mjcf_file(source):
        return _USUAL_TIMESTEP, "Euler"
    root = parse_xml(source)
    stated = [o.attributes["integrator"] for o in root.all("option") if "integrator" in o.attributes]
    return _timestep(root), stated[-1] if stated else "Euler"


def _put_actuator(document: Document, joint: str, drive: SimulatorDrive, kind: str, timestep: float) -> None:
    sections = document.root.all("actuator")
    own = [
        e for section in sections for e in section.children
        if e.tag in _REPLACED and joint in (e.attributes.get("joint"), e.attributes.get("jointinparent"))
    ]  # fmt: skip
    others = {k: v for k, v in own[0].attributes.items() if k in _KEPT} if own else {"name": f"{joint}_drive"}
    if own and _takes_positions(own[0]):
        others |= {k: v for k, v in own[0].attributes.items() if k in ("ctrlrange", "ctrllimited")}
    elif own:
        others["ctrllimited"] = "false"  # the old range, perhaps from a default class, is one of torques or speeds
    element = actuator_element(drive, joint, kind, timestep=timestep, others=others)
    if own:
        gear = own[0].attributes.get("gear", "1").split()
        if gear and gear[0] not in ("1", "1.0"):
            remark = f"the actuator of joint '{joint}' had gear {gear[0]}; the drive's goal is the angle of the joint"
            element = f"{comment([remark])}\n    {element}"
        document.replace(own[0], element)
        for extra in own[1:]:
            document.replace(extra, comment([f"a second actuator of joint '{joint}' is replaced by its drive"]))
    elif sections:
        document.insert_first(sections[0], [element])
    else:
        document.insert_first(document.root, ["<actuator>", f"  {element}", "</actuator>"])


def _takes_positions(element: Element) -> bool:
    """Whether the control of an actuator is a position, like the control of the drive."""
    if element.tag == "general":
        return element.attributes.get("biastype") == "affine"
    return element.tag == "position"


def is_mjcf_file(path: Path | None) -> bool:
    """Whether `path` is an MJCF."""
    return (
        path is not None and path.suffix.lower() == ".xml" and path.is_file() and parse_xml(path).tag == "mujoco"
    )  # fmt: skip


def _write(drive: SimulatorDrive, target: ActuatorTarget, kind: str) -> WrittenDrive:
    if kind == "dcmotor" and not holds_dcmotor(drive):
        return WrittenDrive({})
    end = "" if kind == "position" else "-dcmotor"
    notes = tuple(mjcf_notes(drive, kind))
    if is_mjcf_file(target.robot):
        assert target.robot is not None
        data = edited_drive(target.robot, target.joint, drive, kind)
        return WrittenDrive({f"{target.robot.stem}{end}.xml": partial(_bytes, data)}, notes)
    head = [f"Drive '{drive.name}' ({drive.setting()}), identified by Steelyard.", *drive.comments(), *notes,
            "Paste the attributes into the joint, and the element into <actuator>."]  # fmt: skip
    lines = [
        comment(head), "<mujoco>", "  <default>",
        f'    {tag("default", {"class": "drive"}, closed=False)}',
        f"      {tag('joint', joint_attributes(drive, kind))}", "    </default>", "  </default>", "  <actuator>",
        f"    {actuator_element(drive, target.joint, kind, others={'name': f'{target.joint}_drive'})}",
        "  </actuator>", "</mujoco>", "",
    ]  # fmt: skip
    return WrittenDrive({f"mujoco{end}.xml": "\n".join(lines)}, notes)


def _bytes(data: bytes, path: Path) -> None:
    path.write_bytes(data)


for _kind, _about in (
    ("position", "MuJoCo: joint and <position> actuator, in place"),
    ("dcmotor", "MuJoCo: joint and <dcmotor> actuator, in place; for drives with a torque-speed line"),
):
    ACTUATOR_FORMATS.register("mjcf" if _kind == "position" else "mjcf-dcmotor")(
        ActuatorFormat(_about, partial(_write, kind=_kind))
    )
