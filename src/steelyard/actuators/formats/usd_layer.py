"""USD: a layer over the user's file with the drive, the armature and the friction of a joint."""

from __future__ import annotations

import math
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorFormat, ActuatorTarget, WrittenDrive
from steelyard.actuators.simulator_drive import SimulatorDrive
from steelyard.errors import ExportError, UnknownNameError
from steelyard.ground.extras import import_extra
from steelyard.ground.untrusted_files import regular_file

_SUFFIXES = (".usd", ".usda", ".usdc")
# UsdPhysics has angles in degrees.
_DEGREE = math.pi / 180.0


def drive_layer(source: Path, joint: str, drive: SimulatorDrive) -> bytes:
    """Return a USD layer, as text, over a robot's file: drive, armature and friction of a joint.

    Args:
        source: USD file of the robot.
        joint: Name of the joint's prim, or its path.
        drive: Drive at one setting.
    """
    import_extra("pxr", "usd", "Writing USD", ExportError)
    from pxr import Sdf, Usd, UsdPhysics

    regular_file(source, ExportError)
    original = Sdf.Layer.FindOrOpen(str(source))
    if original is None:
        raise ExportError(f"{source}: is not a readable USD file; export it again.")
    with TemporaryDirectory() as folder:
        layer = Sdf.Layer.CreateNew(str(Path(folder) / "layer.usda"))
        layer.subLayerPaths.append(str(source.resolve()))
        stage = Usd.Stage.Open(layer)
        prim = _joint_prim(stage, source, joint, UsdPhysics)
        layer.comment = "\n".join(
            [f"Drive '{drive.name}' ({drive.setting()}), identified by Steelyard.", *drive.comments(), *_notes(drive)]
        )
        _author(prim, drive, UsdPhysics, Sdf)
        text: str = layer.ExportToString()
        # The layer must be in the folder of the robot's file, because the reference is relative.
        return text.replace(f"@{source.resolve()}@", f"@./{source.name}@").encode()


def _joint_prim(stage: Any, source: Path, joint: str, physics: Any) -> Any:
    joints = {}
    for prim in stage.Traverse():
        if prim.IsA(physics.Joint):
            joints[str(prim.GetPath())] = prim
    matches = [p for path, p in joints.items() if joint in (path, p.GetName(), p.GetDisplayName())]
    if not matches:
        raise UnknownNameError("joint", joint, [p.GetName() for p in joints.values()])
    if len(matches) > 1:
        raise ExportError(f"{source}: {len(matches)} joints are called '{joint}'; give the path of one of them.")
    return matches[0]


def _author(prim: Any, drive: SimulatorDrive, physics: Any, sdf: Any) -> None:
    turns = prim.IsA(physics.RevoluteJoint)
    per_degree, axis = (_DEGREE, "angular") if turns else (1.0, "linear")
    api = physics.DriveAPI.Apply(prim, axis)
    api.CreateTypeAttr("force")
    api.CreateStiffnessAttr(drive["stiffness"] * per_degree)
    api.CreateDampingAttr((drive["damping"] + drive["drag"]) * per_degree)
    if math.isfinite(drive["torque_limit"]):
        api.CreateMaxForceAttr(drive["torque_limit"])
    kind = sdf.ValueTypeNames.Float
    # Both names of the armature: the attribute of the joint is older; where supported, the axis has priority.
    prim.AddAppliedSchema("PhysxJointAPI")
    prim.CreateAttribute("physxJoint:armature", kind).Set(drive["armature"])
    prim.AddAppliedSchema(f"PhysxJointAxisAPI:{axis}")
    for name, value in (
        ("armature", drive["armature"]),
        ("staticFrictionEffort", drive["frictionloss"]),
        ("dynamicFrictionEffort", drive["frictionloss"]),
        ("viscousFrictionCoefficient", drive["viscous"] * per_degree),
    ):
        prim.CreateAttribute(f"physxJointAxis:{axis}:{name}", kind).Set(value)


def _notes(drive: SimulatorDrive) -> list[str]:
    notes = list(drive.missing)
    for name, effect in (("delay", "delay"), ("goal_time", "filter of the goal")):
        if drive[name]:
            notes.append(f"USD does not represent the {effect}.")
    if math.isfinite(drive["no_load_speed"]):
        notes.append("The torque limit of USD's drive does not fall with the speed.")
    notes += drive.supply_note()
    return notes


def _write(drive: SimulatorDrive, target: ActuatorTarget) -> WrittenDrive:
    robot = target.robot
    if robot is None or robot.suffix.lower() not in _SUFFIXES or find_spec("pxr") is None:
        return WrittenDrive({})
    data = drive_layer(robot, target.joint, drive)
    return WrittenDrive({f"{robot.stem}-drive.usda": partial(_bytes, data)}, tuple(_notes(drive)))


def _bytes(data: bytes, path: Path) -> None:
    path.write_bytes(data)


ACTUATOR_FORMATS.register("usd")(
    ActuatorFormat("USD: a layer over the robot's file with drive, armature and friction; needs usd-core", _write)
)
