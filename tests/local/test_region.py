"""Regions, checked against closed forms and against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_cases import LEFT, RIGHT, ROBOT
from numpy.testing import assert_allclose

from steelyard import load_robot
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.local import (
    CartesianRegion,
    JointRegion,
    LocalError,
    check_regions,
    home_posture,
    overlap,
    read_regions,
    sample_postures,
)
from steelyard.local.region import region_from_dict

NS16 = load_robot("ns16")
BOX = CartesianRegion("A", [0.8, -0.3, 0.9], [1.3, 0.3, 1.4])


def test_the_point_of_a_cartesian_region_is_where_geometry_puts_it() -> None:
    # Upright and outstretched: a1 − a3 forwards; base height, a2 and d4 upwards (Table II's lengths).
    assert_allclose(BOX.coordinates(NS16, np.zeros(6)), [0.3 - 0.185, 0.0, 0.6 + 0.7 + 0.624], atol=1e-12)
    flange = CartesianRegion("A", BOX.lower, BOX.upper, offset=(0.0, 0.0, 0.135))
    assert_allclose(flange.coordinates(NS16, np.zeros(6))[2], 0.6 + 0.7 + 0.624 + 0.135, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3))
def test_depth_is_the_distance_to_the_border(q: list[float]) -> None:
    x = np.array(q)
    depth = float(LEFT.depth(ROBOT, x))
    nearest = np.clip(x, LEFT.lower, LEFT.upper)
    if np.array_equal(nearest, x):
        faces = np.concatenate([x - LEFT.lower, LEFT.upper - x])
        assert depth == pytest.approx(faces.min(), abs=1e-12)
        assert LEFT.contains(ROBOT, x)
    else:
        assert depth == pytest.approx(-np.linalg.norm(x - nearest), abs=1e-12)
        assert not LEFT.contains(ROBOT, x)


@settings(max_examples=100, deadline=None)
@given(st.floats(-1.0, 1.0), st.floats(-0.6, 0.6), st.floats(-0.8, 0.8), st.floats(0.01, 0.15))
def test_weights_of_neighbours_add_up_to_one(a: float, b: float, c: float, blend: float) -> None:
    q = np.array([a, b, c])  # far from all faces but the shared one
    both = LEFT.membership(ROBOT, q, blend) + RIGHT.membership(ROBOT, q, blend)
    assert both == pytest.approx(1.0, abs=1e-12)


def test_membership_is_once_continuously_differentiable() -> None:
    blend, h = 0.1, 1e-5
    x = np.arange(-0.3, 0.3, h)
    q = np.column_stack([x, np.zeros((len(x), 2))])
    slope = np.gradient(LEFT.membership(ROBOT, q, blend), h)
    # 3u² − 2u³ of u = x/2b has a curvature of at most 6/(2b)²: the slope changes by no more between samples.
    assert np.max(np.abs(np.diff(slope))) <= 1.01 * h * 6.0 / (2.0 * blend) ** 2


def test_postures_are_drawn_inside() -> None:
    home = home_posture(NS16, BOX)
    q = sample_postures(NS16, BOX, 12, np.random.default_rng(0), home)
    assert np.all(BOX.depth(NS16, q) >= -1e-6)  # accuracy of inverse kinematics
    assert np.ptp(BOX.coordinates(NS16, q), axis=0).min() > 0.1  # spread over the box
    low, high = np.array([[j.lower, j.upper] for j in NS16.joints]).T
    assert np.all((q >= low) & (q <= high))


def test_overlap_is_a_share_of_the_smaller_box() -> None:
    assert overlap(ROBOT, LEFT, RIGHT) == 0.0
    half = JointRegion("half", LEFT.middle, LEFT.upper)
    assert overlap(ROBOT, LEFT, half) == 1.0
    shift = np.array([0.25, 0.0, 0.0])  # half the box
    assert overlap(NS16, BOX, CartesianRegion("B", BOX.lower + shift, BOX.upper + shift)) == pytest.approx(0.5)
    around = JointRegion.of(NS16, "all")
    assert overlap(NS16, BOX, around) == 1.0  # boxes of different kinds are compared by random postures


def test_regions_survive_being_written() -> None:
    for region in (BOX, LEFT, CartesianRegion("x", BOX.lower, BOX.upper, "q5", (0.1, 0.0, 0.0), 0.3)):
        back = region_from_dict(region.name, region.to_dict())
        assert type(back) is type(region)
        assert back.to_dict() == region.to_dict()


def test_a_file_of_regions(tmp_path: Path) -> None:
    file = tmp_path / "regions.yaml"
    file.write_text(
        "units: deg\nregions:\n  A: {lower: [0.8, -0.3, 0.9], upper: [1.3, 0.3, 1.4]}\n  B: {joints: {q1: [0, 90]}}\n"
    )
    a, b = read_regions(file, NS16)
    assert (a.kind, b.kind) == ("cartesian", "joints")
    assert_allclose([b.lower[0], b.upper[0]], [0.0, np.pi / 2])
    assert b.upper[1] == NS16.joints[1].upper
    file.write_text("regions:\n  A: {lower: [0, 0, 0], uper: [1, 1, 1]}\n")
    with pytest.raises(LocalError, match="upper"):
        read_regions(file, NS16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CartesianRegion("A", [0, 0, 1], [1, 1, 1]), "is empty"),
        (lambda: CartesianRegion("A", [0, 0], [1, 1]), "three lower and three upper"),
        (lambda: CartesianRegion("A", [0, 0, 0], [1, 1, np.inf]), "not a finite"),
        (lambda: CartesianRegion("../A", [0, 0, 0], [1, 1, 1]), "is not valid"),
        (lambda: check_regions(ROBOT, [LEFT, LEFT]), "Two regions are called 'left'"),
        (lambda: check_regions(ROBOT, []), "No region"),
        (lambda: check_regions(NS16, [LEFT]), "bounds 3 joints"),
        (lambda: home_posture(NS16, CartesianRegion("far", [5, 5, 5], [6, 6, 6])), "cannot reach region 'far'"),
        (lambda: check_regions(NS16, [JointRegion.of(NS16, "B", {"q2": (3.0, 4.0)})]), "cannot reach region 'B'"),
    ],
)
def test_invalid_regions_are_refused_by_name(make, message) -> None:
    with pytest.raises(SteelyardError, match=message):
        make()


def test_unknown_frames_and_joints_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="tool9"):
        check_regions(NS16, [CartesianRegion("A", BOX.lower, BOX.upper, "tool9")])
    with pytest.raises(UnknownNameError, match="q9"):
        JointRegion.of(NS16, "B", {"q9": (0.0, 1.0)})
