"""Every kind of measurement finds the geometry of arms whose kinematics and sensors come from Pinocchio."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from pin_arms import (
    SPOTS,
    Floats,
    TrueArm,
    contact_table,
    distance_table,
    drawn_values,
    joint_columns,
    point_table,
    pose_table,
    urdf,
)

import steelyard as sy

NOISE = 5e-5  # of a laser tracker [m]
ANCHORS = np.array([[1.5, 0.0, 0.0], [-1.0, 1.5, 0.2], [0.0, -1.5, 1.0], [0.2, 0.3, 2.0]])
KINDS = ("points", "pose", "plane", "sphere", "contact", "distances")


@cache
def true_arm() -> TrueArm:
    text = urdf(1)
    return TrueArm(text, drawn_values(sy.load_robot(text, snap=0.0), 1, ("offsets", "axes")))


@cache
def table(kind: str, count: int = 80, seed: int = 0) -> dict[str, Floats]:
    arm, rng = true_arm(), np.random.default_rng(seed)
    q = rng.uniform(-1.8, 1.8, (count, arm.robot.dof))
    if kind == "points":
        return point_table(arm, q, 2, NOISE, rng)
    if kind == "pose":
        return pose_table(arm, q, NOISE, 2e-4, rng)
    if kind == "distances":
        return distance_table(arm, q, ANCHORS, NOISE, rng)
    name = "hole" if kind == "contact" else kind
    return contact_table(arm, name, count // 3, {"plane": 3, "sphere": 2, "contact": 4}[kind], 3e-5, seed)[0]


@cache
def calibration(kind: str) -> sy.Calibration:
    return sy.calibrate(true_arm().robot, table(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_name_the_kind_and_left_out_poses_are_predicted_ten_times_better(kind: str) -> None:
    found = calibration(kind)
    assert found.table.measurement.name == kind
    before, after = found.left_out["nominal"].mean, found.left_out["full"].mean
    channel = next(iter(after))
    assert after[channel] < 0.1 * before[channel]


@pytest.mark.parametrize("kind", ["points", "pose", "sphere", "distances"])
def test_the_tool_is_where_pinocchio_says_all_over_the_workspace(kind: str) -> None:
    """Kinds with a length. Errors of 1.7 mm; the parameters alone then leave about the noise of one reading."""
    found, arm = calibration(kind), true_arm()
    q = np.random.default_rng(9).uniform(-1.8, 1.8, (100, arm.robot.dof))
    truth = np.array([arm.tip(x).act(SPOTS[0]) for x in q])
    spot = found.stages["geometry"].fit.setup.points[0]
    before, after = (_misfit(found, robot, q, truth, spot) for robot in (arm.robot, found.robot))
    assert before > 1e-3
    assert after < 1.5 * NOISE


def _misfit(found: sy.Calibration, robot: sy.Robot, q: Floats, truth: Floats, spot: Floats) -> float:
    """Mean distance to the truth after the best rigid motion of the base (Kabsch 1976)."""
    tips = sy.calibration.Chain(robot, robot.frame()).tips(q)
    points = tips.position + tips.rotation @ spot
    a, b = points - points.mean(axis=0), truth - truth.mean(axis=0)
    u, _, v = np.linalg.svd(a.T @ b)
    turn = u @ np.diag([1.0, 1.0, np.linalg.det(u @ v)]) @ v
    return float(np.mean(np.linalg.norm(a @ turn - b, axis=1)))


def test_contacts_without_a_length_say_that_the_size_stays_as_described() -> None:
    for kind in ("plane", "contact"):
        assert any("no length" in point for point in calibration(kind).to_json()["verdict"]["points"])
    assert not any("no length" in point for point in calibration("sphere").to_json()["verdict"]["points"])


def test_cells_that_no_sensor_filled_are_left_out() -> None:
    holes = {name: np.array(column) for name, column in table("points").items()}
    rng = np.random.default_rng(3)
    for k in (1, 2):
        hidden = rng.random(80) < 0.2  # a reflector that the tracker does not see
        for x in "xyz":
            holes[f"p{k}{x}_m"][hidden] = np.nan
    found = sy.calibrate(true_arm().robot, holes)
    full = calibration("points")
    assert found.left_out["full"].mean["position"] == pytest.approx(full.left_out["full"].mean["position"], rel=0.3)
    assert not found.findings


def test_degrees_millimetres_and_rotation_vectors_by_their_suffix() -> None:
    from scipy.spatial.transform import Rotation

    plain = table("pose")
    other = {f"joint{j + 1}_deg": np.degrees(plain[f"q{j + 1}_rad"]) for j in range(6)}
    other |= {f"cam_{x}_mm": 1e3 * plain[f"cam_{x}_m"] for x in "xyz"}
    turns = Rotation.from_quat(np.column_stack([plain[f"cam_q{x}"] for x in "xyzw"])).as_rotvec(degrees=True)
    other |= {f"cam_r{x}_deg": turns[:, k] for k, x in enumerate("xyz")}
    a, b = (sy.read_poses(t, true_arm().robot) for t in (plain, other))
    assert b.q == pytest.approx(a.q, abs=1e-12)
    for name, values in a.measurement.readings.items():
        assert b.measurement.readings[name] == pytest.approx(values, abs=1e-9)


def test_poses_of_a_good_and_a_bad_sensor_are_weighed_by_their_sigma() -> None:
    """Half of the poses have eight times the noise; with σ the tool is as well known as from the good half alone."""
    arm, rng = true_arm(), np.random.default_rng(6)
    q = rng.uniform(-1.8, 1.8, (100, arm.robot.dof))
    sigma = np.where(np.arange(100) % 2, 8.0 * NOISE, NOISE)
    exact = point_table(arm, q, 1, 0.0, rng)
    noisy = {n: c + (sigma * rng.normal(size=100) if n.startswith("p") else 0.0) for n, c in exact.items()}
    fresh = sy.read_poses(table("points", 100, 5), arm.robot, points=["p1"])
    known, unknown, half = (
        sy.calibrate(arm.robot, t) for t in (noisy | {"sigma_m": sigma}, noisy, {n: c[::2] for n, c in noisy.items()})
    )
    errors = [found.errors(fresh)["position"].mean for found in (known, half)]
    assert errors[0] < 1.1 * errors[1]
    # What remains beside the sensor is next to nothing, as the arm has no other errors.
    stds = [found.stages["full"].fit.stds["position"] for found in (known, unknown)]
    assert stds[0] < 0.5 * NOISE < NOISE < stds[1]


def test_joint_columns_come_by_name_or_number() -> None:
    arm = true_arm()
    q = np.random.default_rng(2).uniform(-1.0, 1.0, (9, 6))
    points = {f"p1{x}_m": q[:, 0] for x in "xyz"}
    by_number = sy.read_poses(joint_columns(q) | points, arm.robot)
    by_name = sy.read_poses({f"joint{j + 1}": q[:, j] for j in range(6)} | points, arm.robot)
    from_zero = sy.read_poses({f"q{j}": q[:, j] for j in range(6)} | points, arm.robot)
    assert np.array_equal(by_number.q, q)
    assert np.array_equal(by_name.q, q)
    assert np.array_equal(from_zero.q, q)
