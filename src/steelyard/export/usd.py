"""`model_to_usd`: the identified model as USD with its physics schema, for Isaac Sim and Omniverse."""

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
    """Write `model` as USD text to `path` (.usda); returns, one sentence each, what it leaves out or approximates.

    Every link is a rigid body with mass, centre, principal moments and axes, every joint a joint of UsdPhysics with its
    limits, and the base an articulation's root that is fixed to the world. Rotor inertia is PhysX's `armature`.
    Friction is left to the simulator's own joint settings, and said. Joints that follow others move freely.
    """
    import_extra("pxr", "usd", "Writing USD", ExportError)
    if impossible := impossible_links(model):
        raise ExportError(
            f"The inertia of link '{impossible[0]}' is not physically possible, and PhysX refuses such bodies; "
            f"{IDENTIFY_POSSIBLE}, or export URDF or C code."
        )
    terms, bodies = simple_terms(model, CAPABILITIES["usd"].numbers), bodies_of(model)
    notes = list(terms.missing)
    if any(body.follows is not None for body in bodies):
        notes.append("Joints that follow others have no law in UsdPhysics; they move freely.")
    with TemporaryDirectory() as place:
        file = Path(place) / "model.usda"
        _Stage(model, file, notes).write(bodies, terms.armature)
        write_whole(path, file.read_bytes())
    return tuple(notes)


class _Stage:
    """A stage that is being filled with a robot."""

    def __init__(self, model: Model, file: Path, notes: list[str]) -> None:
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics

        self.gf, self.physics, self.geometry, self.sdf, self.tf = Gf, UsdPhysics, UsdGeom, Sdf, Tf
        self.model, self.stage = model, Usd.Stage.CreateNew(str(file))
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        said = [f"The model of robot '{model.robot.name}', written by Steelyard.", *notes]
        self.stage.SetMetadata("comment", "\n".join(said))
        self._names: set[str] = set()

    def write(self, bodies: list[Body], armature: Array) -> None:
        """All of it; `armature` (kg m², kg) by joint."""
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
        """A path below `parent` for something of that name, which need not be one in USD."""
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
        """A joint whose x axis is the body's axis, on both sides."""
        joint = self._prim(root.GetPath(), body.joint, _X_TO[body.kind])
        made = self.physics.RevoluteJoint(joint) if body.kind == "revolute" else self.physics.PrismaticJoint(joint)
        made.CreateAxisAttr("X")
        made.CreateBody0Rel().SetTargets([parent.GetPath()])
        made.CreateBody1Rel().SetTargets([link.GetPath()])
        to_axis = _frame_along(body.axis)
        made.CreateLocalPos0Attr(self.gf.Vec3f(*body.translation.tolist()))
        made.CreateLocalRot0Attr(self.gf.Quatf(*quaternion_of(body.rotation @ to_axis).tolist()))
        made.CreateLocalPos1Attr(self.gf.Vec3f(0.0))
        made.CreateLocalRot1Attr(self.gf.Quatf(*quaternion_of(to_axis).tolist()))
        unit = 180.0 / np.pi if body.kind == "revolute" else 1.0  # UsdPhysics counts angles in degrees
        for value, create in (
            (body.limits.lower, made.CreateLowerLimitAttr),
            (body.limits.upper, made.CreateUpperLimitAttr),
        ):
            if np.isfinite(value):
                create(float(unit * value))
        return joint


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
