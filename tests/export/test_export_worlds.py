"""A model as SDF, xacro, USD and FMU: rebuilt in Pinocchio, expanded, simulated."""

from __future__ import annotations

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
import pytest
from exported import FLAGS, our_torque, rigid_part
from oracles import public_robot_path, relative, states

import steelyard as sy
from steelyard.dynamics.model import Model
from steelyard.export import ExportError, model_to_fmu, model_to_sdf, model_to_usd, model_to_xacro
from steelyard.parameters import StopElement, terms
from steelyard.robot import load_robot

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")


def model_of(name, *kinds):
    """A public or built-in robot with terms of these kinds, all of their parameters 0.3."""
    robot = load_robot(public_robot_path(name)) if name in ("ur10", "panda") else sy.load_robot(name)
    bound = terms(robot, *kinds)
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, np.full(len(bound), 0.3)]))


class Rebuilt:
    """A tree in Pinocchio, built joint by joint from a file."""

    def __init__(self, gravity):
        self.model, self.ids = pin.Model(), {}
        self.model.gravity = pin.Motion(np.array(gravity), np.zeros(3))

    def add(self, link, parent, joint, kind, placement, axis, mass, com, tensor):
        turns = kind == "revolute"
        kind = (pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned)(np.array(axis))
        self.ids[link] = self.model.addJoint(self.ids.get(parent, 0), kind, placement, joint)
        self.model.appendBodyToJoint(self.ids[link], pin.Inertia(mass, com, tensor), pin.SE3.Identity())

    def torque(self, robot):
        s = states(robot, 4)
        rows = (s.q, s.dq, s.ddq)
        data = self.model.createData()
        place = [self.model.joints[self.model.getJointId(n)].idx_v for n in robot.joint_names]
        out = []
        for row in zip(*rows, strict=True):
            full = [np.zeros(self.model.nv) for _ in row]
            for vector, values in zip(full, row, strict=True):
                vector[place] = values
            out.append(pin.rnea(self.model, data, *full)[place])
        return np.array(out)


def pose(text):
    x, y, z, *rpy = (float(v) for v in text.split())
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array([x, y, z]))


@pytest.mark.parametrize("name", ["szabo3r", "arm7", "ur10"])
def test_sdf_is_the_model(name, tmp_path):
    model = model_of(name, "viscous", "coulomb")
    assert model_to_sdf(model, tmp_path / "arm.sdf") == ()
    root = ET.parse(tmp_path / "arm.sdf").getroot().find("model")
    links = {link.get("name"): link for link in root.findall("link")}
    rebuilt = Rebuilt(model.robot.gravity)
    for joint in root.findall("joint"):
        if joint.get("type") == "fixed":
            assert joint.findtext("parent") == "world"
            continue
        link = links[joint.findtext("child")]
        assert link.find("pose").get("relative_to") == joint.findtext("parent")
        i = {x.tag: float(x.text) for x in link.find("inertial/inertia")}
        tensor = np.array(
            [[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]]
        )
        axis = [float(x) for x in joint.findtext("axis/xyz").split()]
        com = pose(link.findtext("inertial/pose")).translation
        rebuilt.add(link.get("name"), joint.findtext("parent"), joint.get("name"), joint.get("type"),
                    pose(link.findtext("pose")), axis, float(link.findtext("inertial/mass")), com, tensor)  # fmt: skip
        k = model.robot.joint_index(joint.get("name"))
        assert float(joint.findtext("axis/dynamics/damping")) == 0.3
        assert float(joint.findtext("axis/dynamics/friction")) == 0.3
        if np.isfinite(model.robot.joints[k].upper):
            assert float(joint.findtext("axis/limit/upper")) == model.robot.joints[k].upper
    assert relative(rebuilt.torque(model.robot), our_torque(rigid_part(model))) < 1e-9


def test_sdf_names_the_parts_that_it_leaves_out(tmp_path):
    (note,) = model_to_sdf(model_of("szabo3r", "rotor"), tmp_path / "arm.sdf")
    assert "rotor" in note
    assert note in (tmp_path / "arm.sdf").read_text()
    model = Model.nominal(load_robot(public_robot_path("panda")))  # one finger mimics the other
    model_to_sdf(model, tmp_path / "panda.sdf")
    root = ET.parse(tmp_path / "panda.sdf").getroot()
    assert root.get("version") == "1.11"
    assert root.find(".//mimic").get("joint") == "panda_finger_joint1"
    assert root.find(".//mimic/multiplier").text == "1.0"


def test_xacro_expands_to_the_inertias_of_the_model(tmp_path):
    """ROS's xacro expands the macros in a description, and Pinocchio reads the result."""
    xacro = pytest.importorskip("xacro")
    ET.register_namespace("xacro", "http://www.ros.org/wiki/xacro")  # xacro needs the prefix
    model = model_of("ur10", "viscous", "coulomb")
    model_to_xacro(model, tmp_path / "identified.xacro")
    tree = ET.parse(public_robot_path("ur10"))
    root = tree.getroot()
    moving = set(model.robot.link_names)
    for link in root.findall("link"):
        for old in link.findall("inertial"):
            link.remove(old)
        if link.get("name") in moving:
            ET.SubElement(link, f"{{http://www.ros.org/wiki/xacro}}inertial_{link.get('name')}")
    for joint in root.findall("joint"):
        for old in joint.findall("dynamics"):
            joint.remove(old)
        if joint.get("name") in model.robot.joint_names:
            ET.SubElement(joint, f"{{http://www.ros.org/wiki/xacro}}dynamics_{joint.get('name')}")
    include = ET.Element("{http://www.ros.org/wiki/xacro}include", {"filename": str(tmp_path / "identified.xacro")})
    root.insert(0, include)
    tree.write(tmp_path / "arm.urdf.xacro")
    text = xacro.process_file(str(tmp_path / "arm.urdf.xacro")).toxml()
    assert "xacro:" not in text.replace("xmlns:xacro", "")
    theirs = pin.buildModelFromXML(text)
    data = theirs.createData()
    s = states(model.robot, 4)
    tau = np.array([pin.rnea(theirs, data, *row) for row in zip(s.q, s.dq, s.ddq, strict=True)])
    assert relative(tau, our_torque(rigid_part(model))) < 1e-9
    damping = [float(x.get("damping")) for x in ET.fromstring(text).iter("dynamics")]
    assert damping == [0.3] * 6


@pytest.mark.parametrize("name", ["szabo3r", "ur10"])
def test_usd_is_the_model_as_pxr_reads_it(name, tmp_path):
    pytest.importorskip("pxr", reason="USD is the extra usd")
    from pxr import Usd, UsdGeom, UsdPhysics

    model = model_of(name, "rotor")
    assert model_to_usd(model, tmp_path / "arm.usda") == ()
    stage = Usd.Stage.Open(str(tmp_path / "arm.usda"))
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)) == (1.0, 1.0)
    root = stage.GetDefaultPrim()
    assert root.HasAPI(UsdPhysics.ArticulationRootAPI)
    scene = next(UsdPhysics.Scene(p) for p in root.GetChildren() if p.IsA(UsdPhysics.Scene))
    gravity = scene.GetGravityMagnitudeAttr().Get() * np.array(scene.GetGravityDirectionAttr().Get())
    assert gravity == pytest.approx(model.robot.gravity)

    def se3(position, rotation):
        quaternion = pin.Quaternion(rotation.GetReal(), *rotation.GetImaginary())
        quaternion.normalize()  # single precision
        return pin.SE3(quaternion.matrix(), np.array(position, dtype=float))

    rebuilt, places = Rebuilt(gravity), {}
    for prim in root.GetChildren():
        if not prim.IsA(UsdPhysics.Joint) or prim.IsA(UsdPhysics.FixedJoint):
            continue
        joint = UsdPhysics.RevoluteJoint(prim)
        parent, child = (rel.GetTargets()[0] for rel in (joint.GetBody0Rel(), joint.GetBody1Rel()))
        before = se3(joint.GetLocalPos0Attr().Get(), joint.GetLocalRot0Attr().Get())
        after = se3(joint.GetLocalPos1Attr().Get(), joint.GetLocalRot1Attr().Get())
        placement = before * after.inverse()
        mass = UsdPhysics.MassAPI(stage.GetPrimAtPath(child))
        axes = se3(np.zeros(3), mass.GetPrincipalAxesAttr().Get()).rotation
        tensor = axes @ np.diag(np.array(mass.GetDiagonalInertiaAttr().Get(), dtype=float)) @ axes.T
        com = np.array(mass.GetCenterOfMassAttr().Get(), dtype=float)
        rebuilt.add(child, parent, prim.GetDisplayName(), "revolute", placement, after.rotation[:, 0],
                    mass.GetMassAttr().Get(), com, tensor)  # fmt: skip
        assert prim.GetAttribute("physxJoint:armature").Get() == pytest.approx(0.3)
        # The bodies are displayed at the zero position of the joints.
        places[child] = places.get(parent, pin.SE3.Identity()) * placement
        drawn = np.array(UsdGeom.Xformable(stage.GetPrimAtPath(child)).ComputeLocalToWorldTransform(0.0)).T
        assert drawn == pytest.approx(places[child].homogeneous, abs=1e-6)
    # UsdPhysics has single precision: seven digits.
    assert relative(rebuilt.torque(model.robot), our_torque(rigid_part(model))) < 1e-5


def test_usd_needs_its_library_and_possible_bodies(tmp_path, monkeypatch):
    model = model_of("szabo3r")
    impossible = Model(model.robot, model.terms, np.where(np.arange(len(model.theta)) == 4, -1.0, model.theta))
    pytest.importorskip("pxr")
    with pytest.raises(ExportError, match=r"physically impossible.*--physical"):
        model_to_usd(impossible, tmp_path / "arm.usda")
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ExportError, match="Writing USD needs the package pxr"):
        model_to_usd(model, tmp_path / "arm.usda")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    model, path = model_of("szabo3r", "viscous", "coulomb", "rotor"), tmp_path_factory.mktemp("fmu") / "arm.fmu"
    assert model_to_fmu(model, path) == ()
    return model, path


def stepped(path: Path, model: Model, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Torques of a unit in FMPy along a motion of 100 Hz."""
    fmpy = pytest.importorskip("fmpy")
    t = 0.01 * np.arange(len(q))
    names = [f"{x}_{joint}" for x in ("q", "dq", "ddq") for joint in model.robot.joint_names]
    table = np.zeros(len(t), dtype=[("time", float), *((n, float) for n in names)])
    table["time"] = t
    for name, column in zip(names, np.hstack([q, dq, ddq]).T, strict=True):
        table[name] = column
    outputs = [f"tau_{joint}" for joint in model.robot.joint_names]
    end = float(t[-1])
    out = fmpy.simulate_fmu(str(path), stop_time=end, output_interval=0.01, step_size=0.01, input=table, output=outputs)
    return np.column_stack([out[name] for name in outputs])


def to_and_fro() -> tuple[np.ndarray, ...]:
    angle = np.linspace(0.0, 2.0, 201)[:, None] * np.array([1.0, 2.0, 3.0])
    return np.sin(angle), np.cos(angle) * [1.0, 2.0, 3.0], -np.sin(angle) * [1.0, 4.0, 9.0]


def test_an_fmu_has_the_torques_of_the_model_friction_included(unit):
    """FMPy validates the unit and steps it along a motion."""
    pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    model, path = unit
    assert validate_fmu(str(path)) == []
    motion = to_and_fro()
    # Inputs are set before a step and outputs read after it: the row at t + 0.01 belongs to the input at t.
    assert relative(stepped(path, model, *motion)[1:], model.torque(*motion)[:-1]) < 1e-9


def test_an_fmu_stores_the_hysteresis_of_friction(tmp_path):
    """Each step updates the stops, and the sources compile without warnings."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    robot = sy.load_robot("szabo3r")
    bound = terms(robot, "viscous", StopElement(width=0.05))
    model = Model(robot, bound, np.r_[robot.inertial_parameters, 0.2, 0.2, 0.2, 2.0, 1.0, 1.5])
    assert model_to_fmu(model, tmp_path / "arm.fmu") == ()
    q, dq, ddq = to_and_fro()
    found, expected = stepped(tmp_path / "arm.fmu", model, q, dq, ddq)[1:], model.torque(q, dq, ddq)[:-1]
    # A unit starts with stops without force, the model does not: they agree after one width of travel.
    start = int(np.argmax((np.abs(q - q[0]) > 0.05).all(axis=1)))
    assert 0 < start < 20
    assert relative(found[start:], expected[start:]) < 1e-9
    with zipfile.ZipFile(tmp_path / "arm.fmu") as archive:
        archive.extractall(tmp_path)
    for source in (tmp_path / "sources").glob("*.c"):
        subprocess.run(["cc", *FLAGS, "-c", str(source), "-o", str(tmp_path / "x.o")], check=True)


def test_the_sources_of_an_fmu_compile_without_a_warning(unit, tmp_path):
    with zipfile.ZipFile(unit[1]) as archive:
        archive.extractall(tmp_path)
    sources = sorted((tmp_path / "sources").glob("*.c"))
    assert [x.name for x in sources] == ["arm.c", "arm_fmi.c"]
    for source in sources:
        subprocess.run(["cc", *FLAGS, "-c", str(source), "-o", str(tmp_path / "x.o")], check=True)


def test_an_fmu_without_a_compiler_contains_only_sources_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (note,) = model_to_fmu(model_of("szabo3r"), tmp_path / "arm.fmu")
    assert "only sources" in note
    with zipfile.ZipFile(tmp_path / "arm.fmu") as archive:
        assert not [x for x in archive.namelist() if x.startswith("binaries")]
        description = ET.fromstring(archive.read("modelDescription.xml"))
    files = [x.get("name") for x in description.iter("File")]
    assert files == ["arm_fmi.c", "arm.c"]


def test_special_characters_in_names_are_preserved(tmp_path):
    """Characters with a meaning in XML, C or USD are preserved."""
    name = 'a<b> & "c" é/1'
    file = tmp_path / "arm.yaml"
    body = "mass: 1.0, com: [0.1, 0.0, 0.0], inertia_com: {xx: 0.1, yy: 0.1, zz: 0.1}"
    row = f"  - joint: {name!r}\n    dh: [q, 0, 0.5, 0]\n    link: {{name: {name!r}, {body}}}\n"
    file.write_text(f"name: {name!r}\nconvention: standard\nrows:\n{row}", "utf-8")
    model = Model.nominal(sy.load_robot(file))
    model_to_sdf(model, tmp_path / "arm.sdf")
    root = ET.parse(tmp_path / "arm.sdf").getroot().find("model")
    assert root.get("name") == name
    assert [j.findtext("child") for j in root.findall("joint")][1:] == [name]
    model_to_fmu(model, tmp_path / "arm.fmu")
    with zipfile.ZipFile(tmp_path / "arm.fmu") as archive:
        description = ET.fromstring(archive.read("modelDescription.xml"))
    assert [v.get("name") for v in description.iter("ScalarVariable")] == [
        f"{x}_{name}" for x in ("q", "dq", "ddq", "tau")
    ]
    model_to_xacro(model, tmp_path / "arm.xacro")
    assert ET.parse(tmp_path / "arm.xacro").getroot().tag == "robot"
    usd = pytest.importorskip("pxr.Usd")
    model_to_usd(model, tmp_path / "arm.usda")
    stage = usd.Stage.Open(str(tmp_path / "arm.usda"))
    assert [p.GetDisplayName() for p in stage.GetDefaultPrim().GetChildren()].count(name) == 2  # the link and its joint
