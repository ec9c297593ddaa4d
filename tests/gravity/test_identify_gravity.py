"""Gravity from poses at rest: torques from Pinocchio, code that a compiler builds, and a real arm."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from log_files import real_logs
from standing_plants import gravity_torque, public_robot, table

import steelyard as sy
from steelyard.gravity.next_poses import next_poses
from steelyard.signals.held_poses import HeldPosesError, rows_are_poses
from steelyard.signals.log import Log

NAME = "ur10"


def part(log: Log, start: int, stop: int) -> Log:
    return Log(log.joints, log.t[start:stop], log.q[start:stop], dq=log.dq[start:stop], tau=log.tau[start:stop])


def true_base(found: sy.GravityModel) -> np.ndarray:
    """Base parameters of the description, without the offsets."""
    theta = np.zeros(len(found.columns.columns))
    for k, link in enumerate(found.robot.links):
        theta[4 * k : 4 * k + 4] = link.inertia[:4]
    return found.columns.groups @ theta


def of_links(found: sy.GravityModel) -> list[int]:
    return [k for k, column in enumerate(found.columns.independent) if column < 4 * len(found.robot.links)]


def test_without_friction_the_torque_is_that_of_pinocchio() -> None:
    found = sy.identify_gravity(public_robot(NAME), table(NAME, 30, 0, noise=0.0), terms="offset")
    q = np.random.default_rng(9).uniform(-3.0, 3.0, (20, 6))
    offsets = found.model.theta[found.robot.inertial_count :]
    # 1e-6 of the largest torque: the least noise that a fit takes for possible.
    expected = gravity_torque(NAME, q)
    assert np.abs(found.torque(q) - offsets - expected).max() < 3e-5 * np.abs(expected).max()
    assert found.headline().kind == "good"
    assert np.all(found.model.theta[: found.robot.inertial_count : 10] > 0.0)


@pytest.mark.parametrize("friction", ["side", "edge"])
def test_friction_of_one_kind_is_separated_from_gravity(friction: str) -> None:
    """Both leave an error far below the friction, of a tenth of the largest torque."""
    log = table(NAME, 40, 1, friction, share=0.1, noise=0.002)
    found = sy.identify_gravity(public_robot(NAME), log)
    kinds = [f.kind for f in found.friction]
    assert kinds.count("side" if friction == "side" else "tube") >= 5
    q = np.random.default_rng(9).uniform(-2.5, 2.5, (50, 6))
    error = found.torque(q) - gravity_torque(NAME, q)
    error = error - error.mean(axis=0)  # offsets
    size = np.maximum(np.abs(log.tau).max(axis=0), 1.0)
    assert np.all(np.sqrt((error**2).mean(axis=0)) < 0.02 * size)


def test_poses_approached_from_both_sides_cancel_friction_that_depends_on_the_load() -> None:
    robot, rng = public_robot(NAME), np.random.default_rng(8)
    q = np.repeat(rng.uniform(-2.5, 2.5, (30, 6)), 2, axis=0) + 1e-5 * rng.normal(size=(60, 6))
    tau = gravity_torque(NAME, q)
    size = np.maximum(np.abs(tau).max(axis=0), 1.0)
    friction = (0.1 * size + 0.1 * np.abs(tau)) * np.tile([[1.0], [-1.0]], (30, 1))
    noise = 0.002 * size * rng.normal(size=q.shape)
    found = sy.identify_gravity(robot, Log(robot.joint_names, np.arange(60.0), q, tau=tau + friction + noise))
    assert len(found.poses) == 30
    error = found.torque(q) - tau
    assert np.all(np.sqrt((error**2).mean(axis=0)) < 0.004 * size)
    inside = (np.abs(found.beta - true_base(found)) < found.half_widths)[of_links(found)]
    assert inside.mean() >= 0.8


def test_few_poses_leave_parameters_open_and_the_next_poses_close_them() -> None:
    robot, log = public_robot(NAME), table(NAME, 60, 2)
    # Only the last two joints move.
    q = log.q.copy()
    q[:, :4] = q[0, :4]
    few = Log(
        log.joints,
        log.t,
        q,
        dq=log.dq,
        tau=gravity_torque(NAME, q) + 0.01 * np.random.default_rng(0).normal(size=q.shape),
    )
    found = sy.identify_gravity(robot, few)
    assert any(found.open)
    assert found.headline().kind != "good"
    wanted, bands = next_poses(found, 6)
    assert np.all(np.diff(bands.max(axis=1)) <= 1e-9)
    both = np.vstack([q, wanted])
    more = Log(
        log.joints,
        np.arange(66.0),
        both,
        dq=np.zeros_like(both),
        tau=gravity_torque(NAME, both) + 0.01 * np.random.default_rng(1).normal(size=both.shape),
    )
    assert sum(sy.identify_gravity(robot, more).open) < sum(found.open)


def test_intervals_contain_the_truth() -> None:
    """A quick look; `test_coverage.py` counts. A share of 0.8 of 20 would come once in 600 at 95 %."""
    inside = []
    for seed in range(2):
        found = sy.identify_gravity(public_robot(NAME), table(NAME, 30, seed, "tube"))
        inside += list((np.abs(found.beta - true_base(found)) < found.half_widths)[of_links(found)])
    assert np.mean(inside) > 0.8


def test_a_touched_robot_and_a_wrong_number_are_named_and_left_out() -> None:
    log = table(NAME, 40, 4, "tube", share=0.02)
    q, tau = log.q.copy(), log.tau.copy()
    tau[11] += 40.0  # a hand that pushes
    q[23, 2] = np.rad2deg(q[23, 2])
    found = sy.identify_gravity(public_robot(NAME), Log(log.joints, log.t, q, dq=log.dq, tau=tau))
    assert found.outliers == ((1, 12), (1, 24))
    assert any("row 12, row 24" in point for point in found.headline().points)
    assert not sy.identify_gravity(public_robot(NAME), log).outliers


def test_a_table_needs_no_time(tmp_path: Path) -> None:
    log = table(NAME, 20, 6)
    head = ",".join(f"{x}{k}" for x in ("q", "tau") for k in range(1, 7))
    np.savetxt(tmp_path / "poses.csv", np.hstack([log.q, log.tau]), delimiter=",", header=head, comments="")
    found = sy.identify_gravity(public_robot(NAME), tmp_path / "poses.csv")
    assert np.allclose(found.beta, sy.identify_gravity(public_robot(NAME), log).beta, atol=1e-6)
    # A motion without time stays refused.
    smooth = np.cumsum(np.full((200, 6), 1e-3), axis=0)
    np.savetxt(tmp_path / "motion.csv", np.hstack([smooth, smooth]), delimiter=",", header=head, comments="")
    with pytest.raises(sy.LogError, match="time"):
        sy.identify_gravity(public_robot(NAME), tmp_path / "motion.csv")


def test_the_code_in_c_computes_the_same_torque(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    found = sy.identify_gravity(public_robot(NAME), table(NAME, 30, 0))
    found.save(tmp_path / "run")
    (source,) = (tmp_path / "run").glob("*.c")
    library = tmp_path / "gravity.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(library)), f"{source.stem}_gravity")
    q = np.random.default_rng(3).uniform(-2.0, 2.0, (5, 6))
    doubles = ctypes.POINTER(ctypes.c_double)
    for row in q:
        tau, here = np.zeros(6), np.ascontiguousarray(row)
        function(here.ctypes.data_as(doubles), tau.ctypes.data_as(doubles))
        assert np.allclose(tau, found.torque(row[None])[0], rtol=0.0, atol=1e-9)
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"poses.csv", "next_poses.csv", "result.json", "report.html", f"{source.stem}.h"} <= names


def test_a_motion_is_no_table_of_poses_and_its_standing_phases_are_poses() -> None:
    robot, rng = public_robot(NAME), np.random.default_rng(5)
    stops, rows, rate = rng.uniform(-2.0, 2.0, (6, 6)), [], 100.0
    for a, b in pairwise(stops):
        s = np.linspace(0.0, 1.0, 150)[:, None]
        rows += [np.tile(a, (100, 1)), a + (b - a) * (10 * s**3 - 15 * s**4 + 6 * s**5)]
    q = np.vstack(rows)
    tau = gravity_torque(NAME, q)
    log = Log(robot.joint_names, np.arange(len(q)) / rate, q + 1e-6 * rng.normal(size=q.shape), tau=tau)
    assert not rows_are_poses(robot, log)
    found = sy.identify_gravity(robot, log)
    assert len(found.poses) == 5
    assert np.allclose(found.poses.q, stops[:5], atol=1e-3)
    assert np.array_equal(found.poses.side[1:], np.sign(np.diff(stops[:5], axis=0)))


def test_poses_of_several_rows_each_are_held_poses() -> None:
    """A jump from one row to the next between two rests is no motion; a log of motions validates nothing at rest."""
    robot, poses = public_robot(NAME), table(NAME, 30, 0)
    assert poses.tau is not None
    q, tau = (np.repeat(x, 50, axis=0) for x in (poses.q, poses.tau))
    log = Log(
        robot.joint_names, 0.01 * np.arange(len(q)), q + 1e-6 * np.sin(np.arange(q.size)).reshape(q.shape), tau=tau
    )
    assert rows_are_poses(robot, log)
    t = 0.01 * np.arange(1000)
    motion = Log(robot.joint_names, t, np.sin(t)[:, None] * np.ones(6), tau=np.zeros((1000, 6)))
    with pytest.warns(UserWarning, match="no pose at rest"):
        found = sy.identify_gravity(robot, log, motion)
    assert len(found.poses) == 30
    assert "validation" not in found.scores


def test_identification_of_a_whole_model_refuses_held_poses_by_name() -> None:
    with pytest.raises(HeldPosesError, match="steelyard gravity"):
        sy.identify(public_robot(NAME), table(NAME, 30, 0))


def test_a_real_arm_is_predicted_better_than_by_least_squares() -> None:
    folder = real_logs("kuka_iiwa7_static")
    robot = sy.load_robot(folder / "robot.urdf")
    log = sy.read_log(folder / "poses.parquet", robot)
    score = sy.identify_gravity(robot, part(log, 0, 200), part(log, 200, 304)).scores["validation"]
    percent = 100.0 * score.rms_with_friction / score.std
    # Joints 2 to 6 carry gravity; the published baseline of the data (WLS with offsets) has these errors.
    assert np.all(percent[1:6] <= [1.9, 1.2, 2.5, 5.7, 12.0])
