"""Closed loops of a gripper: once locked, the robot is the tree of MuJoCo and Pinocchio; otherwise the error names
joints.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from steelyard import Log, Model, load_robot
from steelyard.cli import app
from steelyard.errors import RobotError
from steelyard.robot import read_mjcf, read_urdf

GEOM = '<geom type="box" size="0.05 0.02 0.02" pos="0.06 0 0" mass="{}"/>'
# A two-joint arm with a finger of two links, whose tip is tied to a second bar: a four-bar gripper.
MJCF = f"""<mujoco model="arm"><compiler angle="radian"/><worldbody>
<body name="upper"><joint name="shoulder" axis="0 1 0" range="-2 2"/>{GEOM.format(2)}
 <body name="fore" pos="0.3 0 0"><joint name="elbow" axis="0 1 0.3" range="-2 2"/>{GEOM.format(1)}
  <body name="bar" pos="0.2 0 0"><joint name="driver" axis="0 0 1"/>{GEOM.format(0.2)}
   <body name="tip" pos="0.1 0 0"><joint name="coupler" axis="0 0 1"/>{GEOM.format(0.1)}</body></body>
  <body name="other" pos="0.2 0.05 0"><joint name="follower" axis="0 0 1"/>{GEOM.format(0.2)}</body>
 </body></body></worldbody>
<equality><connect body1="tip" body2="other" anchor="0.05 0 0"/></equality></mujoco>"""
HELD = {"driver": 0.4, "coupler": -0.7, "follower": 0.3}


def moving(count: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(np.random.default_rng(0).normal(size=(3, count, 2)))


def mujoco_torque(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
    """Of the open tree with the gripper's joints where they are held, by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(MJCF.replace("<connect", '<connect active="false"'))
    data, out = mujoco.MjData(model), []
    for row in zip(q, dq, ddq, strict=True):
        for state, values, held in zip((data.qpos, data.qvel, data.qacc), row, (1.0, 0.0, 0.0), strict=True):
            state[:] = [*values, *(held * x for x in HELD.values())]
        mujoco.mj_inverse(model, data)
        out.append(data.qfrc_inverse[:2].copy())
    return np.array(out)


def test_a_locked_loop_is_the_tree_that_mujoco_moves(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(MJCF)
    for source in (tmp_path / "arm.xml", MJCF, mujoco.MjModel.from_xml_string(MJCF)):
        robot = load_robot(source, locked=HELD)
        assert robot.joint_names == ("shoulder", "elbow")
        assert robot.loops == ()
        assert_allclose(Model.nominal(robot).torque(*moving()), mujoco_torque(*moving()), atol=1e-9)
    assert load_robot(MJCF, joints=["shoulder", "elbow"]).joint_names == ("shoulder", "elbow")


def test_a_loop_that_is_not_fully_locked_names_the_joints_to_lock(tmp_path: Path) -> None:
    for source in (MJCF, mujoco.MjModel.from_xml_string(MJCF)):
        with pytest.raises(RobotError, match=r"closes a loop.*--lock driver=0 --lock coupler=0 --lock follower=0"):
            load_robot(source)
        with pytest.raises(RobotError, match=r"lock its joints at their positions \(--lock coupler=0, or"):
            load_robot(source, locked={"driver": 0.1, "follower": 0.2})
    (tmp_path / "arm.xml").write_text(MJCF)
    with pytest.raises(RobotError, match="line 8: <connect>"):
        read_mjcf(tmp_path / "arm.xml")
    done = CliRunner().invoke(app, ["excite", str(tmp_path / "arm.xml")])
    assert (done.exit_code, "--lock driver=0" in " ".join(done.stderr.split())) == (2, True)


@pytest.mark.parametrize(
    "closing",
    [
        '<weld body1="tip" body2="other"/>',
        '<joint joint1="driver" joint2="coupler" polycoef="0 1 0.5 0 0"/>',
    ],
)
def test_welds_and_curves_are_locked_alike(closing: str) -> None:
    text = MJCF.replace('<connect body1="tip" body2="other" anchor="0.05 0 0"/>', closing)
    with pytest.raises(RobotError, match="--lock driver=0 --lock coupler=0"):
        load_robot(text)
    assert load_robot(text, locked=HELD).joint_names == ("shoulder", "elbow")


def link(name: str, mass: float) -> str:
    inertia = 'ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"'
    return (
        f'<link name="{name}"><inertial><origin xyz="0.1 0.02 0"/><mass value="{mass}"/><inertia {inertia}/></inertial>'
        "</link>"
    )


def joint(name: str, parent: str, child: str, inside: str = "") -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 1 0.2"/>'
        f'<origin xyz="0.2 0 0"/><limit lower="-2" upper="2" effort="9" velocity="9"/>{inside}</joint>'
    )


ARM = '<link name="base"/>' + link("upper", 2.0) + link("fore", 1.0) + joint("shoulder", "base", "upper")
ARM += joint("elbow", "upper", "fore")
FINGERS = link("bar", 0.2) + link("tip", 0.1) + joint("driver", "fore", "bar") + joint("coupler", "bar", "tip")


def urdf_torque(text: str, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, held: list[float]) -> np.ndarray:
    """By Pinocchio, the joints of the gripper held."""
    model = pin.buildModelFromXML(text)
    data, still = model.createData(), np.zeros(len(held))
    states = (
        (np.append(a, held), np.append(b, still), np.append(c, still)) for a, b, c in zip(q, dq, ddq, strict=True)
    )
    return np.array([pin.rnea(model, data, *s)[:2] for s in states])


def test_a_urdf_whose_link_has_two_parents_is_locked_at_both(tmp_path: Path) -> None:
    """The joint that closes the loop is not in the tree, and may be named among those that are locked."""
    text = f'<robot name="arm">{ARM}{FINGERS}{joint("rod", "fore", "tip")}</robot>'
    (tmp_path / "arm.urdf").write_text(text)
    tree = f'<robot name="arm">{ARM}{link("bar", 0.2)}{link("tip", 0.1)}{joint("driver", "fore", "bar")}'
    with pytest.raises(RobotError, match=r"second parent and closes a loop.*--lock"):
        load_robot(tmp_path / "arm.urdf")
    with pytest.raises(RobotError, match="closes a loop"):
        read_urdf(tmp_path / "arm.urdf")
    robot = load_robot(tmp_path / "arm.urdf", locked={"driver": 0.3, "coupler": -0.2, "rod": 0.0})
    assert robot.joint_names == ("shoulder", "elbow")
    # The walk from the root comes to the tip by the rod first.
    open_tree = f"{tree}{joint('rod', 'fore', 'tip')}</robot>"
    expected = urdf_torque(open_tree, *moving(), [0.3, 0.0])
    assert_allclose(Model.nominal(robot).torque(*moving()), expected, atol=1e-9)


def test_mimics_in_a_circle_are_locked_or_named() -> None:
    circle = FINGERS.replace('</joint><joint name="coupler"', '<mimic joint="coupler"/></joint><joint name="coupler"')
    circle = circle[: -len("</joint>")] + '<mimic joint="driver"/></joint>'
    text = f'<robot name="arm">{ARM}{circle}</robot>'
    with pytest.raises(RobotError, match=r"follows itself in a loop.*--lock"):
        load_robot(text)
    robot = load_robot(text, locked={"driver": 0.3, "coupler": -0.2})
    expected = urdf_torque(f'<robot name="arm">{ARM}{FINGERS}</robot>', *moving(), [0.3, -0.2])
    assert_allclose(Model.nominal(robot).torque(*moving()), expected, atol=1e-9)


def test_an_arm_with_a_looped_gripper_is_identified_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(MJCF)
    t = np.arange(0.0, 8.0, 0.01)
    w, size = 2.0 * np.pi * np.array([[0.3, 0.7], [0.5, 1.1]]), np.array([[0.6, 0.3], [0.5, 0.25]])
    angle = t[:, None, None] * w
    q, dq = (size * np.sin(angle)).sum(axis=2), (size * w * np.cos(angle)).sum(axis=2)
    tau = mujoco_torque(q, dq, -(size * w**2 * np.sin(angle)).sum(axis=2))
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    Log(("shoulder", "elbow"), t, q, tau=tau).save(tmp_path / "log.csv")
    locks = [word for name, at in HELD.items() for word in ("--lock", f"{name}={at}")]
    words = ["identify", tmp_path / "arm.xml", tmp_path / "log.csv", *locks, "--plain", "-o", tmp_path / "run"]
    done = CliRunner().invoke(app, [str(w) for w in words])
    assert done.exit_code == 1, done.output  # the plant is the description itself: "computed, not measured"
    assert "computed, not measured" in " ".join(done.output.split())
    assert (tmp_path / "run" / "arm.steelyard.json").exists()
