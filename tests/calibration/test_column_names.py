"""Tables of other laboratories: names of columns, units and conventions of orientations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from pin_arms import Floats, TrueArm, drawn_values, point_table, pose_table, urdf
from scipy.spatial.transform import Rotation

import steelyard as sy
from steelyard.calibration.column_names import numbered_joints, plain_name
from steelyard.calibration.trust import verdict_of


@cache
def arm() -> TrueArm:
    text = urdf(5)
    return TrueArm(text, drawn_values(sy.load_robot(text, snap=0.0), 5))


@cache
def camera() -> dict[str, Floats]:
    rng = np.random.default_rng(8)
    return pose_table(arm(), rng.uniform(-1.8, 1.8, (20, 6)), 1e-4, 5e-4, rng)


@cache
def tracker() -> dict[str, Floats]:
    rng = np.random.default_rng(9)
    return point_table(arm(), rng.uniform(-1.8, 1.8, (40, 6)), 1, 5e-5, rng)


def test_units_in_brackets_are_suffixes() -> None:
    for name in ("Joint1 [deg]", "joint1_deg", "Joint1 (°)", "joint1_degrees", "Joint1(deg)"):
        assert plain_name(name) == "joint1_deg"
    assert plain_name(" X [mm]") == "x_mm"
    assert plain_name("marker_x") == "marker_x"


@pytest.mark.parametrize(
    "name", ["q{}", "Joint {}", "J{}", "A{}", "axis_{}_angle", "theta{}", "joint_{}_position", "pos{}"]
)
def test_joints_are_found_by_their_numbers(name: str) -> None:
    names = [name.format(k) for k in range(1, 7)]
    assert [numbered_joints([*names, "x", "y", "z"])[k][0] for k in range(1, 7)] == names


@pytest.mark.parametrize(
    ("joint", "place", "factors"),
    [
        ("A{} [deg]", "{} [mm]", (57.29577951308232, 1e3)),
        ("axis_{}_angle_deg", "TCP_{}_mm", (57.29577951308232, 1e3)),
        ("joint_{}_position", "marker_{}", (1.0, 1.0)),
    ],
)
def test_other_names_give_the_same_table(joint: str, place: str, factors: tuple[float, float]) -> None:
    own = tracker()
    columns = {joint.format(k): own[f"q{k}_rad"] * factors[0] for k in range(1, 7)}
    columns |= {place.format(x.upper() if "TCP" in place else x): own[f"p1{x}_m"] * factors[1] for x in "xyz"}
    table, other = sy.read_poses(own, arm().robot), sy.read_poses(columns, arm().robot)
    assert other.q == pytest.approx(table.q, abs=1e-12)
    readings = (t.measurement.readings["points"] for t in (table, other))
    assert next(readings) == pytest.approx(next(readings), abs=1e-12)


def orientations() -> tuple[dict[str, Floats], Floats]:
    """Joints and positions of the camera, and its quaternions (x, y, z, w)."""
    own = dict(camera())
    numbers = np.column_stack([own.pop(f"cam_q{x}") for x in "xyzw"])
    return own, numbers


@pytest.mark.parametrize(
    ("names", "axes"),
    [
        (("qx", "qy", "qz", "qw"), ""),
        (("quat_x", "quat_y", "quat_z", "quat_w"), ""),
        (("roll_deg", "pitch_deg", "yaw_deg"), "xyz"),
        (("A_deg", "B_deg", "C_deg"), "ZYX"),
    ],
)
def test_orientations_have_names_of_their_own(names: tuple[str, ...], axes: str) -> None:
    columns, numbers = orientations()
    values = Rotation.from_quat(numbers).as_euler(axes, degrees=True) if axes else numbers
    table = sy.read_poses(columns | dict(zip(names, values.T, strict=True)), arm().robot)
    assert table.measurement.name == "pose"
    assert table.measurement.readings["rotation"] == pytest.approx(Rotation.from_quat(numbers).as_matrix(), abs=1e-9)


def test_a_quaternion_in_another_order_is_named() -> None:
    columns, numbers = orientations()
    shifted = np.roll(numbers, 1, axis=1)
    with pytest.raises(sy.LogError, match="the scalar of the quaternion is in the column of x"):
        sy.calibrate(arm().robot, columns | {f"cam_q{x}": shifted[:, k] for k, x in enumerate("xyzw")})


def test_poses_of_the_sensor_in_the_tool_are_named() -> None:
    columns, numbers = orientations()
    back = Rotation.from_quat(numbers).inv()
    places = -back.apply(np.column_stack([columns[f"cam_{x}_m"] for x in "xyz"]))
    columns |= {f"cam_{x}_m": places[:, k] for k, x in enumerate("xyz")}
    columns |= {f"cam_q{x}": back.as_quat()[:, k] for k, x in enumerate("xyzw")}
    with pytest.raises(sy.LogError, match="write the inverse poses"):
        sy.calibrate(arm().robot, columns)


def test_a_moved_sensor_is_found_with_a_hold_out_too() -> None:
    columns = {name: column.copy() for name, column in tracker().items()}
    columns["p1x_m"][20:] += 0.05
    found = sy.calibrate(arm().robot, columns, holdout=0.2)
    assert any("moved before row 21" in f for f in found.findings)
    # The poses of the hold-out belong to the same two places of the sensor.
    assert found.holdout is not None
    assert found.errors(found.holdout)["position"].mean < 1e-3


def test_eight_poses_are_too_few_but_no_crash() -> None:
    columns = {name: column[:8] for name, column in tracker().items()}
    assert "too few" in verdict_of(sy.calibrate(arm().robot, columns)).headline


def test_columns_without_a_meaning_are_said() -> None:
    columns = tracker() | {"W_deg": tracker()["q1_rad"], "time_s": tracker()["q1_rad"]}
    assert sy.read_poses(columns, arm().robot).notes == ("Columns without a meaning here: W_deg.",)
