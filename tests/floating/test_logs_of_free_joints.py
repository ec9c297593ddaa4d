"""Logs of spherical and planar joints without a drive: bodies that MuJoCo moved come back."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard import identify_floating, load_robot
from steelyard.errors import LogError
from steelyard.floating.motion import Preparer
from steelyard.floating.setup import FloatingMapping

mujoco = pytest.importorskip("mujoco")

INERTIAL = (
    '<inertial><origin xyz="{c}"/><mass value="{m}"/>'
    '<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'
)
URDF = """<robot name="two"><link name="world"/><link name="body">{body}</link><link name="arm">{arm}</link>
<joint name="free" type="{kind}"><parent link="world"/><child link="body"/><axis xyz="0 0 1"/></joint>
<joint name="drive" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="{axis}"/>
<origin xyz="0.1 0 -0.2"/></joint></robot>"""
JOINTS = {
    "spherical": '<joint name="free" type="ball"/>',
    "planar": '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>'
    '<joint name="free" axis="0 0 1"/>',
}
AXES = {"spherical": "1 1 0", "planar": "0 0 1"}
TRUE = {"body": ("0.02 -0.01 -0.1", 2.0, 0.02), "arm": ("0.15 0.05 -0.1", 0.8, 0.006)}
DESCRIBED = {"body": ("0 0 -0.1", 2.5, 0.03), "arm": ("0.1 0 -0.1", 0.6, 0.004)}


def urdf(kind: str, bodies: dict) -> str:
    parts = {n: INERTIAL.format(c=c, m=m, i=i) for n, (c, m, i) in bodies.items()}
    return URDF.format(kind=kind, axis=AXES[kind], **parts)


def moved(kind: str, seconds: float = 12.0) -> dict[str, np.ndarray]:
    """Columns of a log: a drive swings its arm, and the body on the free joint follows."""
    (cb, mb, ib), (ca, ma, ia) = TRUE["body"], TRUE["arm"]
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.0005" integrator="RK4"/><worldbody><body>{JOINTS[kind]}'
        f'<inertial pos="{cb}" mass="{mb}" diaginertia="{ib} {ib} {ib}"/><body pos="0.1 0 -0.2">'
        f'<joint name="drive" axis="{AXES[kind]}"/><inertial pos="{ca}" mass="{ma}" diaginertia="{ia} {ia} {ia}"/>'
        '</body></body></worldbody><actuator><motor joint="drive"/></actuator></mujoco>'
    )
    data = mujoco.MjData(model)
    k, v = int(model.joint("drive").qposadr[0]), int(model.joint("drive").dofadr[0])
    rows = []
    for step in range(int(seconds / 0.0005)):
        t = 0.0005 * step
        goal = 0.6 * np.sin(2.0 * t) + 0.4 * np.sin(5.3 * t) + 0.3 * np.sin(8.1 * t)
        if step % 4 == 0:  # the torque is constant between the samples of the log
            data.ctrl[0] = 6.0 * (goal - data.qpos[k]) - 0.5 * data.qvel[v]
            rows.append([t, *data.qpos[:k], data.qpos[k], data.ctrl[0]])
        mujoco.mj_step(model, data)
    names = ["qw", "qx", "qy", "qz"] if kind == "spherical" else ["x", "y", "yaw"]
    rng = np.random.default_rng(0)
    table = dict(zip(["t", *names, "q", "tau"], np.array(rows).T, strict=True))
    table["tau"] = table["tau"] + 0.005 * rng.standard_normal(len(rows))
    return table


FREE = {
    "spherical": {"orientation": ["qw", "qx", "qy", "qz"]},
    "planar": {"position": ["x", "y"], "angle": "yaw"},
}
MAPPING = {"time": "t", "joints": ["drive"], "position": ["q"], "torque": ["tau"]}


@pytest.mark.parametrize("kind", ["spherical", "planar"])
def test_bodies_on_a_free_joint_come_back(kind: str, tmp_path) -> None:
    table = moved(kind)
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack(list(table.values())), delimiter=",", header=",".join(table), comments="")
    mapping = {**MAPPING, "free": {"free": FREE[kind]}}
    robot = load_robot(urdf(kind, DESCRIBED))
    result = identify_floating(robot, path, mapping=mapping, terms=(), cutoff_hz=20.0, holdout=0.3)
    truth = load_robot(urdf(kind, TRUE)).inertial_parameters
    base = result.fit.estimate.base
    wanted, made = base.matrix @ truth, base.matrix @ result.model.theta
    described = base.matrix @ robot.inertial_parameters
    assert np.linalg.norm(made - wanted) < 0.02 * np.linalg.norm(described - wanted)
    assert result.scores[0].error < 2.0  # percent of the torque, with noise and a zero-order hold
    assert result.model.possible


def test_a_free_joint_without_its_table_is_refused() -> None:
    robot = load_robot(urdf("spherical", TRUE))
    with pytest.raises(LogError, match=r"joint 'free' is spherical.*\[free.free\].*orientation"):
        Preparer(robot, FloatingMapping.of(MAPPING, robot))
    with pytest.raises(LogError, match=r"orientation.*quaternion"):
        FloatingMapping.of({**MAPPING, "free": {"free": {"orientation": ["a", "b", "c", "d"]}}}, robot)
    with pytest.raises(LogError, match="'drive'"):
        FloatingMapping.of({**MAPPING, "free": {"drive": {"orientation": ["qw", "qx", "qy", "qz"]}}}, robot)
