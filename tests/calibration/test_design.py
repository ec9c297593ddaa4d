"""Designed poses are better than random ones, within limits, seen by the sensor, without collisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from oracles import public_robot_path
from pin_arms import TrueArm, drawn_values, point_table, urdf
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli.app import app


def test_designed_poses_leave_less_error_than_as_many_random_ones() -> None:
    """Mean over two arms of the errors all over the workspace, in which random poses have about half more."""
    errors = []
    for seed in (0, 1):
        text = urdf(seed)
        arm = TrueArm(text, drawn_values(sy.load_robot(text, snap=0.0), seed, ("offsets", "axes")))
        rng = np.random.default_rng(seed)
        fresh = sy.read_poses(point_table(arm, rng.uniform(-2.0, 2.0, (150, 6)), 1, 0.0, rng), arm.robot)
        designed = sy.design_poses(arm.robot, 25, limits={"q": 2.0}, points=[[0.12, 0.02, 0.05]]).q
        assert np.all(np.abs(designed) <= 2.0)
        assert len(np.unique(designed, axis=0)) == 25
        errors.append([
            sy.calibrate(arm.robot, point_table(arm, q, 1, 5e-5, rng), effects=("offsets", "axes"))
            .errors(fresh)["position"].mean
            for q in (designed, rng.uniform(-2.0, 2.0, (25, 6)))
        ])  # fmt: skip
    designed_error, random_error = np.mean(errors, axis=0)
    assert designed_error < 0.9 * random_error


def test_no_designed_pose_collides_and_no_link_hides_the_tool() -> None:
    path = public_robot_path("ur10")
    sensor = np.array([1.5, 0.8, 0.6])
    poses = sy.design_poses(path, 20, limits={"q": 2.5}, collision=True, sensor=sensor.tolist())
    model = pin.buildModelFromUrdf(str(path))
    shapes = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION, package_dirs=[str(path.parents[4])])
    shapes.addAllCollisionPairs()
    data, own = model.createData(), shapes.createData()
    # Neighbours touch at their joint.
    parents = [o.parentJoint for o in shapes.geometryObjects]
    apart = np.array([abs(parents[p.first] - parents[p.second]) > 1 for p in shapes.collisionPairs])
    for q in poses.q:
        pin.computeCollisions(model, data, shapes, own, q, False)
        assert not np.any(np.array([r.isCollision() for r in own.collisionResults]) & apart)
    with pytest.raises(sy.SteelyardError, match="place it elsewhere"):
        sy.design_poses(path, 20, limits={"q": 2.5}, collision=False, sensor=[0.05, 0.0, 0.05])


def test_both_commands_design_the_same_poses(tmp_path: Path) -> None:
    robot = tmp_path / "arm.urdf"
    robot.write_text(urdf(2), encoding="utf-8")
    for folder, words in (
        ("a", ["excite", str(robot), "--calibrate", "20", "--q", "2", "--snap", "0"]),
        ("b", ["calibrate", str(robot), "--design", "20", "--q", "2"]),
    ):
        result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / folder)])
        assert result.exit_code == 0, result.output
    first, second = ((tmp_path / x / "poses.csv").read_text() for x in "ab")
    assert first == second
    assert len(first.splitlines()) == 21


def test_too_few_poses_are_refused_with_the_number_that_is_needed() -> None:
    robot = sy.load_robot(urdf(0), snap=0.0)
    with pytest.raises(sy.SteelyardError, match="5 poses are too few for 27 unknowns; give 9 or more"):
        sy.design_poses(robot, 5)
    with pytest.raises(sy.SteelyardError, match="points and pose, not for 'wire'"):
        sy.design_poses(robot, 20, kind="wire")
