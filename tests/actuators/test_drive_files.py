"""A drive in the files of BAM, Isaac Lab, mjlab, USD and URDF: read back by the parsers of their users."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_files import LOOP, TORQUE, VOLTAGE, log_of

from steelyard.actuators.actuator_formats import ACTUATOR_FORMATS, ActuatorTarget, WrittenDrive
from steelyard.actuators.drive_model import DRIVE_FRICTION, DriveModel
from steelyard.actuators.formats.randomisation import draws_table
from steelyard.actuators.simulator_drive import SimulatorDrive, simulator_drive
from steelyard.errors import SteelyardError
from steelyard.robot import load_robot

JOINT = "left/knee.joint"


def drive_of(model: DriveModel) -> SimulatorDrive:
    return simulator_drive(model, [log_of(model)])


def written(name: str, model: DriveModel, **target: Any) -> WrittenDrive:
    return ACTUATOR_FORMATS[name].write(drive_of(model), ActuatorTarget(**{"joint": JOINT, **target}))


def text_of(result: WrittenDrive) -> str:
    (content,) = (c for c in result.files.values() if isinstance(c, str))
    return content


class Call(dict[str, Any]):
    """A call of a configuration class, with its keywords."""

    def __init__(self, function: str, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.function = function


def calls(text: str) -> dict[str, Call]:
    """Assignments of calls, by the name on the left, read with Python's parser."""
    out = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            values = {}
            for keyword in node.value.keywords:
                try:
                    values[str(keyword.arg)] = ast.literal_eval(keyword.value)
                except ValueError:
                    values[str(keyword.arg)] = ast.unparse(keyword.value)
            out[node.targets[0].id] = Call(ast.unparse(node.value.func), values)
    return out


# ---------------------------------------------------------------- Isaac Lab and mjlab

# Fields of the configuration classes, by their documentation.
ISAAC = {
    "DCMotorCfg": {"saturation_effort", "effort_limit", "velocity_limit"},
    "DelayedPDActuatorCfg": {"effort_limit", "min_delay", "max_delay"},
    "ImplicitActuatorCfg": {"effort_limit_sim"},
}
ISAAC_JOINT = {
    "joint_names_expr",
    "stiffness",
    "damping",
    "armature",
    "friction",
    "dynamic_friction",
    "viscous_friction",
}
MJLAB = {
    "DcMotorActuatorCfg": {"saturation_effort", "velocity_limit", "effort_limit"},
    "BuiltinPositionActuatorCfg": {"effort_limit"},
}
MJLAB_JOINT = {
    "target_names_expr", "stiffness", "damping", "armature", "frictionloss", "viscous_damping", "delay_min_lag",
    "delay_max_lag",
}  # fmt: skip
MODELS = {
    "voltage": VOLTAGE,
    "torque": TORQUE,
    "torque with line and delay": replace(
        TORQUE, parameters={**TORQUE.parameters, "no_load_speed": 9.0, "delay": 0.012, "load_friction": 0.1},
        friction="M3",
    ),
    "loop": LOOP,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("simulator", "classes", "shared"), [("isaaclab", ISAAC, ISAAC_JOINT), ("mjlab", MJLAB, MJLAB_JOINT)]
)
def test_the_configurations_parse_and_have_the_fields_of_their_classes(
    simulator: str, classes: dict[str, set[str]], shared: set[str], name: str
) -> None:
    text = text_of(written(simulator, MODELS[name]))
    found = calls(text)
    configurations = [call for call in found.values() if call.function in classes]
    assert configurations
    drive = drive_of(MODELS[name])
    for call in configurations:
        assert set(call) <= classes[call.function] | shared
        assert call["stiffness"] == pytest.approx(drive["stiffness"], rel=1e-8)
        assert call["armature"] == pytest.approx(drive["armature"], rel=1e-8)
        names = call["joint_names_expr" if simulator == "isaaclab" else "target_names_expr"]
        assert re.fullmatch(names[0], JOINT)
        assert not re.fullmatch(names[0], JOINT.replace(".", "x"))
    imported = {a.name for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert {call.function for call in configurations} <= imported


def clipped_by_the_speed_line(call: Call, error: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """The documented law of both DC motor classes."""
    effort = call["stiffness"] * error - call["damping"] * dq
    top = np.minimum(call["saturation_effort"] * (1.0 - dq / call["velocity_limit"]), call["effort_limit"])
    bottom = np.maximum(call["saturation_effort"] * (-1.0 - dq / call["velocity_limit"]), -call["effort_limit"])
    return np.clip(effort, bottom, top)


@pytest.mark.parametrize("simulator", ["isaaclab", "mjlab"])
@pytest.mark.parametrize("name", ["voltage", "torque with line and delay"])
def test_the_dc_motor_of_the_simulator_has_the_torque_of_the_drive(simulator: str, name: str) -> None:
    model, rng = MODELS[name], np.random.default_rng(0)
    drive = drive_of(model)
    (call,) = (
        c for c in calls(text_of(written(simulator, model))).values() if c.function.lower().startswith("dcmotor")
    )
    # Within the speeds of the motor's four quadrants; beyond them simulators and our model differ on purpose.
    error, dq = rng.uniform(-3.0, 3.0, 2000), rng.uniform(-0.95, 0.95, 2000) * drive["no_load_speed"]
    ours = model.motor_torque(error, dq, kp=drive.kp, kd=drive.kd, volts=drive.volts)
    assert clipped_by_the_speed_line(call, error, dq) == pytest.approx(ours, abs=1e-7 * drive["torque_limit"])


def test_delays_are_whole_steps_around_the_delay() -> None:
    model = MODELS["torque with line and delay"]
    delayed = [c for c in calls(text_of(written("isaaclab", model, step=0.005))).values() if "max_delay" in c]
    assert (delayed[0]["min_delay"], delayed[0]["max_delay"]) == (2, 2)  # 12 ms in steps of 5 ms
    mjlab = [c for c in calls(text_of(written("mjlab", model, step=0.002))).values() if "delay_max_lag" in c]
    assert {(c["delay_min_lag"], c["delay_max_lag"]) for c in mjlab} == {(6, 6)}


@pytest.mark.parametrize(("simulator", "event"), [("isaaclab", "EventTerm"), ("mjlab", "EventTermCfg")])
def test_the_events_have_the_intervals(simulator: str, event: str) -> None:
    text = text_of(written(simulator, VOLTAGE))
    drive = drive_of(VOLTAGE)
    events = {k: v for k, v in calls(text).items() if v.function == event}
    assert events
    stated = [float(x) for x in re.findall(r"[-+]?\d+\.\d+(?:e-?\d+)?", "".join(v["params"] for v in events.values()))]
    for name in ("stiffness", "armature", "frictionloss"):
        for end in (drive.numbers[name].low, drive.numbers[name].high):
            assert any(x == pytest.approx(end, rel=1e-7) for x in stated), (name, end)


def test_a_number_that_the_data_do_not_determine_is_not_randomised() -> None:
    vague = replace(VOLTAGE, covariance=np.diag([0.01, 8.0, 0.05]) ** 2)
    assert not drive_of(vague).numbers["armature"].known
    assert "armature_distribution_params" not in text_of(written("isaaclab", vague))
    assert "joint_armature" not in text_of(written("mjlab", vague))
    assert any("armature" in note for note in written("randomisation", vague).notes)


def test_hostile_names_stay_inside_their_strings() -> None:
    odd = replace(VOLTAGE, name='x"\n__import__("os")#')
    for simulator in ("isaaclab", "mjlab"):
        text = text_of(written(simulator, odd, joint='a"]\nimport os\n#'))
        tree = ast.parse(text)
        assert not [n for n in tree.body if isinstance(n, ast.Expr)]
        assert {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names} <= {"isaaclab.envs.mdp"}


# ---------------------------------------------------------------- BAM

# Parameters of BAM's friction models beyond those of the actuator, as its loader reads them.
BAM_FRICTION = {
    "M1": {"friction_base", "friction_viscous"},
    "M2": {"friction_stribeck", "dtheta_stribeck", "alpha"},
    "M3": {"load_friction_base"},
    "M4": {"friction_stribeck", "load_friction_base", "load_friction_stribeck", "dtheta_stribeck", "alpha"},
    "M5": {
        "load_friction_motor", "load_friction_external", "load_friction_motor_stribeck",
        "load_friction_external_stribeck", "friction_stribeck", "dtheta_stribeck", "alpha",
    },
    "M6": {
        "load_friction_motor", "load_friction_external", "load_friction_motor_stribeck",
        "load_friction_external_stribeck", "load_friction_motor_quad", "load_friction_external_quad",
        "friction_stribeck", "dtheta_stribeck", "alpha",
    },
}  # fmt: skip


def full(friction: str) -> DriveModel:
    rng = np.random.default_rng(0)
    names = DRIVE_FRICTION[friction]
    values = {name: float(rng.uniform(0.01, 0.2)) for name in names}
    return replace(
        VOLTAGE, friction=friction, parameters={**VOLTAGE.parameters, **values, "offset": 0.01, "delay": 0.003}
    )


@pytest.mark.parametrize("friction", BAM_FRICTION)
def test_bams_file_has_every_parameter_that_its_model_reads(friction: str) -> None:
    model = full(friction)
    data = json.loads(text_of(written("bam", model, bam_actuator="xl330")))
    wanted = {"kt", "R", "armature", "q_offset", "command_delay", "friction_base", "friction_viscous"}
    assert set(data) == wanted | BAM_FRICTION[friction] | {"model", "actuator", "intervals_95"}
    assert (data["model"], data["actuator"]) == (friction.lower(), "xl330")
    # τ = (kt/R)·V − (kt²/R)·q̇
    assert data["kt"] / data["R"] == pytest.approx(model["torque_per_volt"])
    assert data["kt"] ** 2 / data["R"] == pytest.approx(model["back_emf"])
    assert all(isinstance(data[k], float) for k in wanted)


def bam_friction(p: dict[str, float], motor: float, external: float, dq: float, friction: str) -> float:
    """The friction of the extended models, as their paper states it (Duclusaud et al., ICRA 2025)."""
    fade = np.exp(-(abs(dq / p["dtheta_stribeck"]) ** p["alpha"])) if "dtheta_stribeck" in p else 0.0
    total = p["friction_base"] + fade * p.get("friction_stribeck", 0.0)
    if friction in ("M3", "M4"):
        through = abs(external - motor)
        return total + through * (p["load_friction_base"] + fade * p.get("load_friction_stribeck", 0.0))
    if friction in ("M5", "M6"):
        total += abs(external * p["load_friction_external"] - motor * p["load_friction_motor"])
        total += fade * abs(external * p["load_friction_external_stribeck"] - motor * p["load_friction_motor_stribeck"])
    if friction == "M6" and np.sign(external) != np.sign(motor):
        lifting, driven = abs(external) < abs(motor), abs(external) > abs(motor)
        total += fade * lifting * p["load_friction_external_quad"] * external**2
        total += fade * driven * p["load_friction_motor_quad"] * motor**2
    return float(total)


@pytest.mark.parametrize("friction", BAM_FRICTION)
def test_bams_friction_from_its_file_is_ours(friction: str) -> None:
    model, rng = full(friction), np.random.default_rng(1)
    data = json.loads(text_of(written("bam", model)))
    for motor, external, dq in rng.normal(size=(50, 3)):
        theirs = bam_friction(data, motor, external, dq, friction) + data["friction_viscous"] * abs(dq)
        assert float(model.friction_torque(dq, motor, external)) == pytest.approx(theirs, rel=1e-12)


# ---------------------------------------------------------------- USD and URDF

URDF = """<robot name="r"><!-- kept --><link name="w"/><link name="x"><inertial><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="knee" type="revolute"><parent link="w"/><child link="x"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="10" velocity="2"/>{dynamics}</joint></robot>"""


@pytest.mark.parametrize("dynamics", ["", '<dynamics damping="9" friction="9"/>'])
def test_a_urdf_gets_friction_and_limits(tmp_path: Path, dynamics: str) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(URDF.format(dynamics=dynamics))
    result = written("urdf", VOLTAGE, joint="knee", robot=path)
    (name,) = result.files
    result.files[name](tmp_path / "out.urdf")  # type: ignore[operator]
    text, drive = (tmp_path / "out.urdf").read_text(), drive_of(VOLTAGE)
    assert "<!-- kept -->" in text
    joint = load_robot(tmp_path / "out.urdf").joints[0]
    assert (joint.lower, joint.upper) == (-1.0, 1.0)
    assert joint.effort == pytest.approx(drive["torque_limit"])
    assert joint.velocity == pytest.approx(drive["no_load_speed"])
    values = re.search(r'<dynamics damping="([^"]+)" friction="([^"]+)"', text)
    assert values is not None
    assert float(values[1]) == pytest.approx(0.033)  # viscous friction and back-EMF
    assert float(values[2]) == pytest.approx(0.02)


def test_a_usd_layer_over_the_users_file(tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="USD's own reader is the oracle (pip install usd-core)")
    from pxr import Usd, UsdPhysics

    source = tmp_path / "robot.usda"
    stage = Usd.Stage.CreateNew(str(source))
    UsdPhysics.RevoluteJoint.Define(stage, "/robot/joints/knee").CreateLowerLimitAttr(-30.0)
    UsdPhysics.PrismaticJoint.Define(stage, "/robot/joints/slide")
    stage.GetRootLayer().Save()
    before = source.read_bytes()
    result = written("usd", LOOP, joint="knee", robot=source)
    (name,) = result.files
    result.files[name](tmp_path / name)  # type: ignore[operator]
    assert source.read_bytes() == before
    over = Usd.Stage.Open(str(tmp_path / name))
    prim, drive = over.GetPrimAtPath("/robot/joints/knee"), drive_of(LOOP)
    assert UsdPhysics.RevoluteJoint(prim).GetLowerLimitAttr().Get() == -30.0
    api = UsdPhysics.DriveAPI(prim, "angular")
    # UsdPhysics has degrees; its numbers are single.
    assert api.GetStiffnessAttr().Get() == pytest.approx(drive["stiffness"] * np.pi / 180.0, rel=1e-6)
    assert api.GetDampingAttr().Get() == pytest.approx(drive["damping"] * np.pi / 180.0, rel=1e-6)
    assert api.GetMaxForceAttr().Get() == pytest.approx(drive["torque_limit"], rel=1e-6)
    for attribute, value in (
        ("physxJoint:armature", drive["armature"]),
        ("physxJointAxis:angular:armature", drive["armature"]),
        ("physxJointAxis:angular:staticFrictionEffort", drive["frictionloss"]),
        ("physxJointAxis:angular:viscousFrictionCoefficient", drive["viscous"] * np.pi / 180.0),
    ):
        assert prim.GetAttribute(attribute).Get() == pytest.approx(value, rel=1e-6)
    # PhysX's schemas are not part of usd-core, so it lists them only as they are written.
    applied = set(prim.GetMetadata("apiSchemas").GetAddedOrExplicitItems())
    assert {"PhysxJointAPI", "PhysxJointAxisAPI:angular"} <= applied
    # A stage keeps the layers that it has opened, so the second one has another name.
    written("usd", LOOP, joint="slide", robot=source).files[name](tmp_path / "slide.usda")  # type: ignore[operator]
    moved = Usd.Stage.Open(str(tmp_path / "slide.usda"))
    slide = moved.GetPrimAtPath("/robot/joints/slide")
    assert UsdPhysics.DriveAPI(slide, "linear").GetStiffnessAttr().Get() == pytest.approx(drive["stiffness"], rel=1e-6)
    with pytest.raises(SteelyardError, match="knee"):
        written("usd", LOOP, joint="kne", robot=source)


# ---------------------------------------------------------------- draws and settings


def test_the_draws_are_correlated_as_the_parameters_are() -> None:
    covariance = np.array([[4e-4, 3e-4, 0.0], [3e-4, 4e-4, 0.0], [0.0, 0.0, 1e-4]])
    model = replace(VOLTAGE, covariance=covariance)
    names, rows = draws_table(drive_of(model), 1000)
    column = dict(zip(names, np.log(np.abs(rows) + 1e-300).T, strict=True))
    # 1,000 draws of a correlation of 0.75 have a standard error of 0.014.
    assert np.corrcoef(column["torque_limit"], column["armature"])[0, 1] == pytest.approx(0.75, abs=0.05)
    assert np.array_equal(column["armature"], column["drive.armature"])
    # Each row is one drive: its stiffness is that of its own parameters.
    of_row = rows[:, names.index("drive.torque_per_volt")] * 7.4 * 0.00288 * 400
    assert rows[:, names.index("stiffness")] == pytest.approx(of_row)


def test_gains_and_voltage_come_from_the_runs_or_are_stated() -> None:
    logs = [replace(log_of(VOLTAGE), kp=float(kp)) for kp in (100, 200, 800)]
    assert simulator_drive(VOLTAGE, logs).kp == 200.0
    assert simulator_drive(VOLTAGE, logs, kp=50.0, volts=5.0)["torque_limit"] == pytest.approx(0.4)
    # A fit without gains or voltage has them in its own parameters.
    unknown = simulator_drive(VOLTAGE, [replace(logs[0], kp=float("nan"), volts=float("nan"))])
    assert (unknown.kp, unknown.volts) == (1.0, 1.0)
    measured = replace(logs[0], supply=np.full(len(logs[0]), 6.9))
    assert simulator_drive(VOLTAGE, [measured]).volts == pytest.approx(6.9)


def test_every_format_says_what_it_does_not_hold() -> None:
    model = replace(full("M4"), parameters={**full("M4").parameters, "backlash": 0.01})
    for name in ("mjcf", "isaaclab", "mjlab", "urdf"):
        notes = " ".join(written(name, model).notes)
        assert "load_friction" in notes, name
        assert "backlash" in notes, name
    assert len(ACTUATOR_FORMATS) >= 8
