"""Few poses: no collapse of the residuals, a description that stays without evidence, faults that are still named."""

from __future__ import annotations

import numpy as np
import pytest
from pin_arms import TrueArm, drawn_values, point_table, pose_table, urdf

import steelyard as sy
from steelyard.calibration.trust import verdict_of

NOISE, TURN = 5e-4, 2e-3


def planted(seed: int, size: float = 1.0) -> TrueArm:
    text = urdf(seed)
    values = drawn_values(sy.load_robot(text, snap=0.0), seed)
    return TrueArm(text, {name: size * value for name, value in values.items()})


@pytest.mark.parametrize("seed", range(4))
def test_fifteen_poses_of_a_camera_leave_residuals_as_large_as_its_noise(seed: int) -> None:
    arm, rng = planted(seed), np.random.default_rng(seed)
    found = sy.calibrate(arm.robot, pose_table(arm, rng.uniform(-1.8, 1.8, (15, 6)), NOISE, TURN, rng))
    stds = found.stages["full"].fit.stds
    # Nearly as many unknowns as readings: the rest of the readings determines the noise to a factor of about two.
    assert 0.4 * NOISE < stds["position"] < 2.5 * NOISE
    assert 0.4 * TURN < stds["rotation"] < 2.5 * TURN
    fresh = sy.read_poses(pose_table(arm, rng.uniform(-1.8, 1.8, (60, 6)), NOISE, TURN, rng), arm.robot)
    before, after = (found.errors(fresh, stage)["position"].mean for stage in ("nominal", "full"))
    assert after < 0.6 * before


def test_a_description_without_errors_stays_as_it_is() -> None:
    stays = 0
    for seed in range(5):
        arm, rng = planted(seed, 0.0), np.random.default_rng(seed)
        found = sy.calibrate(arm.robot, point_table(arm, rng.uniform(-1.8, 1.8, (30, 6)), 1, NOISE, rng))
        pairs = list(zip(found.robot.links, arm.robot.links, strict=True))
        changed = any(np.any(a.translation != b.translation) or np.any(a.rotation != b.rotation) for a, b in pairs)
        assert bool(found.effects) == changed
        # The nominal model has no covariance of deviations.
        assert found.volume["outside"] >= 0.0
        assert (verdict_of(found).kind == "bad") == (not found.effects)
        stays += not found.effects
    # A one-sided test of 95 % lets one in twenty pass; two of five have a probability of 2 %.
    assert stays >= 4


def test_a_wrong_reading_among_25_poses_is_named() -> None:
    arm, rng = planted(2), np.random.default_rng(5)
    columns = point_table(arm, rng.uniform(-1.8, 1.8, (25, 6)), 1, 5e-5, rng)
    columns["p1y_m"][11] += 0.03
    (sentence,) = sy.calibrate(arm.robot, columns).findings
    assert "row 12," in sentence


def test_poses_beyond_the_fitted_joint_ranges_are_counted_apart() -> None:
    arm, rng = planted(1), np.random.default_rng(6)
    near, wide = (point_table(arm, rng.uniform(-r, r, (30, 6)), 1, 5e-5, rng) for r in (0.5, 0.7))
    points = verdict_of(sy.calibrate(arm.robot, near, holdout=wide)).points
    assert any("exceed the joint ranges" in p for p in points)
    assert not any("exceed" in p for p in verdict_of(sy.calibrate(arm.robot, wide, holdout=near)).points)


def test_a_small_gain_by_few_poses_of_a_small_volume_does_not_change_the_description() -> None:
    # Errors near those of the sensor, and 14 poses of small motions: the parameters would err elsewhere.
    arm, rng = planted(4, 0.25), np.random.default_rng(7)
    columns = point_table(arm, rng.uniform(-0.5, 0.5, (14, 6)), 1, NOISE, rng)
    forced = sy.calibrate(arm.robot, columns, effects=("offsets", "axes"))
    found = sy.calibrate(arm.robot, columns)
    assert forced.effects == ("offsets", "axes")
    assert found.choice.rejected
    assert not found.effects
    assert "too few" in verdict_of(found).headline
    assert any("--effects" in p for p in verdict_of(found).points)
    # Stated effects are compared with the description all the same.
    assert forced.left_out["nominal"].effects == ()
