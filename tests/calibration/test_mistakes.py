"""Wrong readings and wrong tables are named in one sentence, with the remedy."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pin_arms import Floats, TrueArm, drawn_values, pin, point_table, pose_table, urdf

import steelyard as sy
from steelyard.ground.files import csv_text


@cache
def true_arm(seed: int) -> TrueArm:
    text = urdf(seed)
    return TrueArm(text, drawn_values(sy.load_robot(text, snap=0.0), seed))


@cache
def _table(seed: int) -> dict[str, Floats]:
    rng = np.random.default_rng([seed, 3])
    return point_table(true_arm(seed), rng.uniform(-1.8, 1.8, (100, 6)), 3, 5e-5, rng)


def table(seed: int = 0) -> dict[str, Floats]:
    return {name: column.copy() for name, column in _table(seed).items()}


def findings(seed: int, columns: dict[str, Floats]) -> tuple[str, ...]:
    return sy.calibrate(true_arm(seed).robot, columns).findings


def test_one_wrong_reading_in_twenty_is_found_and_no_good_one() -> None:
    seed = 0
    columns, rng = table(seed), np.random.default_rng(seed)
    rows = np.sort(rng.choice(100, 5, replace=False))
    for k in rows:
        # From six times what is usual after calibration to half a metre.
        column = f"p{rng.integers(1, 4)}{'xyz'[rng.integers(3)]}_m"
        columns[column][k] += rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2.5, -0.3)
    (sentence,) = findings(seed, columns)
    assert f"rows {', '.join(str(k + 1) for k in rows)}, by up to" in sentence
    assert findings(seed, table(seed)) == ()


def test_exchanged_reflectors_are_exchanged_back() -> None:
    columns, rows = table(), [7, 16, 40, 44]
    for x in "xyz":
        a, b = columns[f"p1{x}_m"], columns[f"p2{x}_m"]
        a[rows], b[rows] = b[rows].copy(), a[rows].copy()
    (sentence,) = findings(0, columns)
    assert "exchanged in rows 8, 17, 41, 45" in sentence
    found = sy.calibrate(true_arm(0).robot, columns)
    fresh = sy.read_poses(table(), true_arm(0).robot)
    assert found.errors(fresh)["position"].mean < 1e-4


def test_a_tracker_that_was_moved_divides_the_poses_into_sessions() -> None:
    columns, rng = table(1), np.random.default_rng(8)
    moved = pin.SE3(pin.exp3(1e-3 * rng.normal(size=3)), 2e-3 * rng.normal(size=3))
    for k in range(60, 100):
        for point in (1, 2, 3):
            seen = moved.act(np.array([columns[f"p{point}{x}_m"][k] for x in "xyz"]))
            for x, value in zip("xyz", seen, strict=True):
                columns[f"p{point}{x}_m"][k] = value
    (sentence,) = findings(1, columns)
    assert "moved before row 61:" in sentence
    stated = columns | {"session": np.repeat(["morning", "evening"], [60, 40])}
    assert findings(1, stated) == ()


def _scaled(prefix: str, factor: float):
    return lambda t: {n: factor * c if n.startswith(prefix) else c for n, c in t.items()}


def _exchanged(a: str, b: str):
    return lambda t: t | {a: t[b], b: t[a]}


MISTAKES = {
    "degrees": (_scaled("q", 180.0 / np.pi), r"row \d+, column 'q1_rad': .* suffix _deg"),
    "millimetres": (_scaled("p", 1e3), "in millimetres; name the columns with the suffix _mm"),
    "centimetres": (_scaled("p", 1e2), "in centimetres; name the columns with the suffix _cm"),
    "inches": (_scaled("p", 1.0 / 0.0254), "in inches; name the columns with the suffix _in"),
    "left-handed": (lambda t: t | {f"p{k}x_m": -t[f"p{k}x_m"] for k in (1, 2, 3)}, "coordinates are mirrored"),
    "sign": (lambda t: t | {"q3_rad": -t["q3_rad"]}, "joint 'joint3' counts the other way"),
    "exchanged joints": (_exchanged("q2_rad", "q3_rad"), "joints 'joint2' and 'joint3' are exchanged"),
    "quarter turn": (lambda t: t | {"q3_rad": t["q3_rad"] + np.pi / 2}, r"zero of joint 'joint3' .* add -90°"),
    "late": (lambda t: {n: c[1:] if n[0] == "q" else c[:-1] for n, c in t.items()}, "late: move the readings by one"),
    "no joint": (lambda t: {n: c for n, c in t.items() if n != "q3_rad"}, "no column for joint 'joint3'; name it"),
    "few": (lambda t: {n: c[:6] for n, c in t.items()}, "has 6 poses; 8 are needed"),
    "empty": (lambda t: {n: c[:0] for n, c in t.items()}, "holds no samples"),
    "text": (lambda t: t | {"p1x_m": np.array(["a"] * 100)}, "column 'p1x_m' has text"),
    "no reading": (lambda t: {n: c for n, c in t.items() if n[0] == "q"}, "has no readings; name the columns"),
    "blank": (lambda t: {n: c if n[0] == "q" else c * np.nan for n, c in t.items()}, "no row has both"),
    "sigma": (lambda t: t | {"sigma_m": np.full(100, -1.0)}, "row 1, column 'sigma_m': -1 is no standard deviation"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_its_remedy(name: str) -> None:
    change, message = MISTAKES[name]
    with pytest.raises(sy.SteelyardError, match=message) as caught:
        sy.calibrate(true_arm(0).robot, change(table()))
    assert "\n" not in str(caught.value)


def test_degrees_of_a_camera_that_looks_at_small_angles() -> None:
    arm, rng = true_arm(0), np.random.default_rng(2)
    columns = pose_table(arm, rng.uniform(-0.15, 0.15, (60, 6)), 5e-5, 2e-4, rng)
    wrong = {n: np.degrees(c) if n.startswith("q") else c for n, c in columns.items()}
    with pytest.raises(sy.LogError, match="in degrees: name their columns with the suffix _deg"):
        sy.calibrate(arm.robot, wrong)
    assert not sy.calibrate(arm.robot, columns).findings


def test_readings_of_other_postures_are_no_calibration() -> None:
    columns, rng = table(), np.random.default_rng(1)
    mixed = rng.permutation(100)
    other = {n: c if n.startswith("q") else c[mixed] for n, c in columns.items()}
    verdict = sy.calibrate(true_arm(0).robot, other).to_json()["verdict"]
    assert verdict["kind"] == "bad"
    assert "do not fit" in verdict["headline"]


def test_bad_options_are_named(tmp_path: Path) -> None:
    robot = true_arm(0).robot
    for options, message in (
        ({"holdout": 1.5}, "hold-out is 1.5; give a share"),
        ({"effects": ("offset",)}, "offset"),
        ({"kind": "poinst"}, "kind"),
        ({"points": ("p9",)}, "no columns p9x"),
        ({"only": ("good",)}, "no column 'good' for --only"),
        ({"frame": "hand"}, "hand"),
        ({"sigma": -1.0}, "standard deviation of the sensor is -1"),
    ):
        with pytest.raises(sy.SteelyardError, match=message):
            sy.calibrate(robot, table(), **options)
    path = tmp_path / "poses.csv"
    names = list(table())
    rows = np.column_stack([table()[n] for n in names]).tolist()
    path.write_text(csv_text([names, *([*rows[0][:-1], "far"], *rows[1:])]), encoding="utf-8")
    with pytest.raises(sy.LogError, match="p3z_m"):
        sy.calibrate(robot, path)
