"""`load_robot` loads every robot, explains wrong names, and changes only what its arguments ask for."""

from __future__ import annotations

import sys
import types
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from steelyard.cli.options import RobotSource
from steelyard.errors import RobotError, ShapeError, SteelyardError, UnknownNameError
from steelyard.ground import registry
from steelyard.ground.registry import PluginWarning, Registry
from steelyard.robot import Robot, formats, link_poses, load_robot
from steelyard.robot.formats import ROBOT_FORMATS, RobotFormat
from steelyard.robot.load import nearly_aligned

TEXT = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<origin xyz="1 0 0" rpy="ROLL 0 0"/></joint></robot>"""
MJCF = '<mujoco><worldbody><body name="a"><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'


def arm(folder: Path, roll: str = "1.57079632679", name: str = "arm.urdf") -> Path:
    path = folder / name
    path.write_text(TEXT.replace("ROLL", roll))
    return path


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Robot:
    """A library with one robot in place of the built-in one, so that these tests are about loading only."""
    robot = load_robot(arm(tmp_path))
    fake = types.ModuleType("steelyard.robot.library")

    def builtin(name: str) -> Robot:
        return robot

    fake.builtin = builtin  # type: ignore[attr-defined]
    fake.builtin_names = lambda: ("planar-2r",)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "steelyard.robot.library", fake)
    return robot


def test_suffix_and_root_select_the_format(tmp_path: Path) -> None:
    assert load_robot(arm(tmp_path)).joint_names == ("j1", "j2")
    assert load_robot(str(arm(tmp_path, name="arm.xml"))).joint_names == ("j1", "j2")
    (tmp_path / "mujoco.xml").write_text(MJCF)
    assert load_robot(tmp_path / "mujoco.xml").joint_names == ("j",)


def test_changes_are_applied(tmp_path: Path) -> None:
    robot = load_robot(arm(tmp_path), joints=["j2"], locked={"j1": 1.0}, gravity=(0, 0, 1.62), torque_used=[])
    assert robot.joint_names == ("j2",)
    assert robot.gravity.tolist() == [0.0, 0.0, 1.62]
    assert robot.torque_used == (False,)
    assert load_robot(arm(tmp_path), locked={"j2": 0.1}).joint_names == ("j1",)
    again = load_robot(load_robot(arm(tmp_path)), torque_used=["j2"])
    assert again.torque_used == (False, True)


def test_a_robot_is_returned_as_it_is(tmp_path: Path) -> None:
    robot = load_robot(arm(tmp_path))
    assert load_robot(robot) is robot


def test_a_name_without_suffix_is_looked_up_in_the_library(library: Robot) -> None:
    assert load_robot("planar-2r").joint_names == library.joint_names
    with pytest.raises(UnknownNameError, match="Did you mean 'planar-2r'"):
        load_robot("planar2r")


def test_wrong_paths_are_named(library: Robot, tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "nothing.urdf", "there is no such file"),
        (tmp_path / "nothing", "there is no such file"),
        (tmp_path, "this is a folder"),
    ):
        with pytest.raises(RobotError, match=words):
            load_robot(path)
    (tmp_path / "arm.step").write_text("")
    with pytest.raises(RobotError, match=r"'\.step'"):
        load_robot(tmp_path / "arm.step")


def test_wrong_changes_are_named(tmp_path: Path) -> None:
    path = arm(tmp_path)
    for change in ({"joints": ["x"]}, {"locked": {"x": 0.0}}, {"torque_used": ["x"]}):
        with pytest.raises(UnknownNameError, match="no joint 'x'"):
            load_robot(path, **change)  # type: ignore[arg-type]
    with pytest.raises(SteelyardError, match="gravity"):
        load_robot(path, gravity=(0, 0))
    with pytest.raises(RobotError, match="snap"):
        load_robot(path, snap=1.0)


def test_angles_with_few_digits_become_right_angles_by_default(tmp_path: Path) -> None:
    """1.57079632679 is a right angle to 5e-12; 1.5708 is one to 4e-6; 1.571 misses it by 2e-4 and is meant."""
    exact = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    robot = load_robot(arm(tmp_path))
    assert robot.links[1].rotation.tolist() == exact
    assert robot.snap_distances == {}
    coarse = load_robot(arm(tmp_path, "1.5708"))
    assert coarse.links[1].rotation.tolist() == exact
    assert coarse.snap_distances == pytest.approx(
        {"j2": 1.5708 - np.pi / 2}, rel=1e-6
    )  # cos x ≈ π/2 − x, to third order
    kept = load_robot(arm(tmp_path, "1.5708"), snap=0.0)
    assert kept.snap_distances == {}
    assert [name for name, _ in nearly_aligned(kept)] == ["j2"]
    assert load_robot(kept, snap=1e-4).links[1].rotation.tolist() == exact
    assert load_robot(arm(tmp_path, "1.571")).snap_distances == {}


def test_a_small_rotation_is_kept(tmp_path: Path) -> None:
    """cos 0.01 = 1 − 5e-5, but sin 0.01 says that the joint is turned."""
    robot = load_robot(arm(tmp_path, "0.01"))
    assert robot.snap_distances == {}
    assert robot.links[1].rotation[2, 1] == pytest.approx(np.sin(0.01), rel=1e-12)


def test_a_small_product_of_larger_rotations_is_kept(tmp_path: Path) -> None:
    """π written as 3.14 in two angles leaves an entry of 2.5e-6, the product of two of 1.6e-3."""
    path = tmp_path / "turned.urdf"
    path.write_text(TEXT.replace("ROLL 0 0", "3.14 3.14 0"))
    robot, kept = load_robot(path), load_robot(path, snap=0.0)
    assert robot.snap_distances == {}
    assert robot.links[1].rotation.tolist() == kept.links[1].rotation.tolist()


def test_a_snapped_rotation_is_still_a_rotation(tmp_path: Path) -> None:
    robot = load_robot(arm(tmp_path, "0.03"), snap=0.05)
    rotation = robot.links[1].rotation
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-15)
    assert rotation.tolist() == np.eye(3).tolist()


def test_poses_of_a_planar_arm(tmp_path: Path) -> None:
    robot = load_robot(arm(tmp_path, "0"))
    q = np.array([[0.3, 0.4], [-1.0, 2.0]])
    rotations, origins = link_poses(robot, q)
    assert rotations.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(origins[:, 1], np.column_stack([np.cos(q[:, 0]), np.sin(q[:, 0]), [0, 0]]), atol=1e-15)
    np.testing.assert_allclose(rotations[:, 1, 1, 0], np.sin(q.sum(axis=1)), atol=1e-15)
    single = link_poses(robot, q[0])
    np.testing.assert_array_equal(single[0], rotations[0])
    with pytest.raises(ShapeError, match="one column per joint"):
        link_poses(robot, np.zeros(3))


def test_formats_of_other_packages(tmp_path, monkeypatch):
    """A plug-in reads a format that shares its suffix with two others; a broken one is reported and stops nothing."""
    points = [
        EntryPoint("broken", "steelyard_that_is_not_there:FORMAT", "steelyard.robots"),
        EntryPoint("sdf", "format_of_another_package:SDF", "steelyard.robots"),
    ]
    package = types.ModuleType("format_of_another_package")
    package.SDF = RobotFormat((".sdf", ".xml"), "SDF", lambda path: load_robot("arm7"), root="sdf")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setattr(registry, "entry_points", lambda group: [p for p in points if p.group == group])
    fresh = Registry(ROBOT_FORMATS.noun, (), group=ROBOT_FORMATS.group)
    for name, kind in ROBOT_FORMATS.items():
        fresh.register(name)(kind)
    monkeypatch.setattr(formats, "ROBOT_FORMATS", fresh)
    (tmp_path / "arm.xml").write_text("<sdf/>")
    with pytest.warns(PluginWarning, match="The robot format 'broken' is left out"):
        assert load_robot(tmp_path / "arm.xml").dof == 7
    (tmp_path / "arm.xml").write_text("<svg/>")
    with pytest.raises(RobotError, match=r"begins with <mujoco> \(MJCF.*\) or <robot> .* or <sdf> \(SDF\)"):
        load_robot(tmp_path / "arm.xml")
    (tmp_path / "arm.step").write_text("")
    with pytest.raises(RobotError, match=r"a robot is read from \.sdf, .* or \.yml, not from '\.step'"):
        load_robot(tmp_path / "arm.step")


def test_help_and_pages_name_every_format():
    page = Path(__file__).parents[2] / "docs" / "guides" / "own-robot.md"
    texts = [RobotSource.__metadata__[0].help, page.read_text(encoding="utf-8")]
    for kind in ROBOT_FORMATS.values():
        assert all(any(suffix in text for suffix in kind.suffixes) for text in texts), kind.description


def test_a_long_chain_warns_once_about_compile_time(tmp_path: Path) -> None:
    from steelyard.dynamics.engine import LONG_MOVED, Dynamics, LongChainWarning

    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'

    def chain(joints: int) -> Robot:
        links = "".join(f'<link name="l{k}">{body}</link>' for k in range(joints + 1))
        moves = "".join(
            f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 0 1"/>'
            '<origin xyz="0 0 1" rpy="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
            for k in range(joints)
        )
        path = tmp_path / f"chain{joints}.urdf"
        path.write_text(f'<robot name="chain">{links}{moves}</robot>')
        return load_robot(path)

    assert LONG_MOVED <= 28 * 29 // 2
    robot = chain(28)
    with pytest.warns(LongChainWarning, match=r"chain28\.urdf: computing the dynamics of 28 joints.*--joints"):
        Dynamics(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Dynamics(robot)
        Dynamics(chain(12))
