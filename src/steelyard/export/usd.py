"""`model_to_usd`: exports a model as USD with its physics schema, for Isaac Sim and Omniverse."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import IDENTIFY_POSSIBLE, Body, bodies_of, impossible_links
from steelyard.export._simple_terms import simple_terms
from steelyard.export.capability import CAPABILITIES
from steelyard.export.formats import MODEL_FORMATS, ModelFormat
from steelyard.ground.arrays import Array
from steelyard.ground.extras import how_to_install, import_extra
from steelyard.ground.files import write_whole
from steelyard.robot.spatial import quaternion_of

_X_TO = {"revolute": "PhysicsRevoluteJoint", "prismatic": "PhysicsPrismaticJoint"}


def model_to_usd(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a model as USD text; return one sentence for each part that the file leaves out or approximates.

    Links become rigid bodies, joints become UsdPhysics joints with limits, and the base is the root of an articulation
    fixed to the world. Rotor inertia becomes PhysX's `armature`. Friction is left out, because it belongs to the joint
    settings of the simulator. Mimic joints move freely.

    Args:
        model: Model to write.
        path: Path of the file (.usda).
    """
    import_extra("pxr", "usd", "Writing USD", ExportError)
    if impossible := impossible_links(model):
        raise ExportError(
            f"The inertia of link '{impossible[0]}' is physically impossible, and PhysX refuses such bodies; "
            f"{IDENTIFY_POSSIBLE}, or export URDF or C code."
        )
    terms, bodies = simple_terms(model, CAPABILITIES["usd"].numbers), bodies_of(model)
    notes = list(terms.missing)
    if any(body.follows is not None for body in bodies):
        notes.append("UsdPhysics does not support mimic joints; they move freely.")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.usda"
        _Stage(model, file, notes).write(bodies, terms.armature)
        write_whole(path, file.read_bytes())
    return tuple(notes)


class _Stage:
    """Builds a USD stage with a robot."""

    def __init__(self, model: Model, file: Path, notes: list[str]) -> None:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics

        self.gf, self.physics, self.geometry, self.sdf, self.tf = Gf, UsdPhysics, UsdGeom, Sdf, Tf
        self.model, self.stage = model, Usd.Stage.CreateNew(str(file))
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        comment = [f"The model of robot '{model.robot.name}', written by Steelyard.", *notes]
        self.stage.SetMetadata("comment", "\n".join(comment))
        self._names: set[str] = set()

    def write(self, bodies: list[Body], armature: Array) -> None:
        """Write all bodies and joints; `armature` is by joint [kg m² or kg]."""
        robot = self.model.robot
        root = self._prim("/", robot.name, "Xform")
        self.stage.SetDefaultPrim(root)
        self.physics.ArticulationRootAPI.Apply(root)
        self._gravity(root)
        base = self._prim(root.GetPath(), "base", "Xform")
        self.physics.RigidBodyAPI.Apply(base)
        fixed = self.physics.FixedJoint.Define(self.stage, self._path(root.GetPath(), "base_to_world"))
        fixed.CreateBody1Rel().SetTargets([base.GetPath()])
        links: list[tuple[Any, Array, Array]] = []
        for body in bodies:
            parent, rotation, place = links[body.parent] if body.parent >= 0 else (base, np.eye(3), np.zeros(3))
            turned, moved = rotation @ body.rotation, place + rotation @ body.translation
            link = self._link(root, body, turned, moved)
            links.append((link, turned, moved))
            joint = self._joint(root, body, parent, link)
            if body.follows is None and (rotor := float(armature[robot.joint_index(body.joint)])):
                joint.AddAppliedSchema("PhysxJointAPI")
                joint.CreateAttribute("physxJoint:armature", self.sdf.ValueTypeNames.Float).Set(rotor)
        self.stage.GetRootLayer().Save()

    def _path(self, parent: Any, name: str) -> Any:
        """An unused path below `parent` for a name, which is changed if USD does not allow it."""
        plain = self.tf.MakeValidIdentifier(name)
        while str(path := self.sdf.Path(parent).AppendChild(plain)) in self._names:
            plain += "_"
        self._names.add(str(path))
        return path

    def _prim(self, parent: Any, name: str, kind: str) -> Any:
        prim = self.stage.DefinePrim(self._path(parent, name), kind)
        prim.SetDisplayName(name)
        return prim

    def _gravity(self, root: Any) -> None:
        gravity = np.asarray(self.model.robot.gravity, dtype=float)
        size = float(np.linalg.norm(gravity))
        scene = self.physics.Scene.Define(self.stage, self._path(root.GetPath(), "scene"))
        scene.CreateGravityMagnitudeAttr(size)
        scene.CreateGravityDirectionAttr(self.gf.Vec3f(*(gravity / size if size else (0.0, 0.0, -1.0))))

    def _link(self, root: Any, body: Body, rotation: Array, place: Array) -> Any:
        link = self._prim(root.GetPath(), body.name, "Xform")
        shape = self.geometry.Xformable(link)
        shape.AddTranslateOp(self.geometry.XformOp.PrecisionDouble).Set(self.gf.Vec3d(*place.tolist()))
        turn = quaternion_of(rotation).tolist()
        shape.AddOrientOp(self.geometry.XformOp.PrecisionDouble).Set(self.gf.Quatd(*turn))
        self.physics.RigidBodyAPI.Apply(link)
        moments, axes = np.linalg.eigh(body.inertial.tensor)
        axes = axes if np.linalg.det(axes) > 0.0 else -axes
        mass = self.physics.MassAPI.Apply(link)
        mass.CreateMassAttr(body.inertial.mass)
        mass.CreateCenterOfMassAttr(self.gf.Vec3f(*body.inertial.com.tolist()))
        mass.CreateDiagonalInertiaAttr(self.gf.Vec3f(*moments.tolist()))
        mass.CreatePrincipalAxesAttr(self.gf.Quatf(*quaternion_of(axes).tolist()))
        return link

    def _joint(self, root: Any, body: Body, parent: Any, link: Any) -> Any:
        """A joint whose x axis, on both sides, is the axis of the body."""
        prim = self._prim(root.GetPath(), body.joint, _X_TO[body.kind])
        joint = self.physics.RevoluteJoint(prim) if body.kind == "revolute" else self.physics.PrismaticJoint(prim)
        joint.CreateAxisAttr("X")
        joint.CreateBody0Rel().SetTargets([parent.GetPath()])
        joint.CreateBody1Rel().SetTargets([link.GetPath()])
        to_axis = _frame_along(body.axis)
        joint.CreateLocalPos0Attr(self.gf.Vec3f(*body.translation.tolist()))
        joint.CreateLocalRot0Attr(self.gf.Quatf(*quaternion_of(body.rotation @ to_axis).tolist()))
        joint.CreateLocalPos1Attr(self.gf.Vec3f(0.0))
        joint.CreateLocalRot1Attr(self.gf.Quatf(*quaternion_of(to_axis).tolist()))
        unit = 180.0 / np.pi if body.kind == "revolute" else 1.0  # UsdPhysics has angles in degrees
        for value, create in (
            (body.limits.lower, joint.CreateLowerLimitAttr),
            (body.limits.upper, joint.CreateUpperLimitAttr),
        ):
            if np.isfinite(value):
                create(float(unit * value))
        return prim


def _frame_along(axis: Array) -> Array:
    """A rotation whose first column is `axis`."""
    x = axis / np.linalg.norm(axis)
    y = np.eye(3)[int(np.argmin(np.abs(x)))]
    y = y - (x @ y) * x
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


MODEL_FORMATS.register("usd")(
    ModelFormat(
        "USD with UsdPhysics, for Isaac Sim; needs usd-core",
        lambda model, name, _: {f"{name}.usda": lambda p: model_to_usd(model, p)},
        lacking=lambda: "" if find_spec("pxr") else how_to_install("usd"),
    )
)
