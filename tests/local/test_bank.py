"""Banks: choice and blending of models, postures outside, files, recalibration, validation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from local_cases import FILTER, LEFT, OPTIONS, RIGHT, ROBOT, TRUTH, arm, bank, motion_at
from numpy.testing import assert_allclose

from steelyard import Log, Model, Sensors, load_robot
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.local import (
    Bank,
    LocalError,
    OutsideError,
    identify_locally,
    load_bank,
    recalibrate,
    sample_postures,
    save_bank,
    validate_bank,
)


def inside(region, count: int = 20) -> np.ndarray:
    return sample_postures(ROBOT, region, count, np.random.default_rng(0))


@pytest.mark.parametrize("physical", [False, True])
def test_local_models_predict_their_region(physical: bool) -> None:
    models = bank(physical)
    assert models.possible or not physical
    motion = motion_at(inside(LEFT))
    error = models.local("left").model.torque(*motion) - TRUTH.torque(*motion)
    # 1 % noise and 8 s of log: the predicted torque is good to well under that noise.
    assert np.all(np.sqrt(np.mean(error**2, axis=0)) < 0.01 * np.array([j.effort for j in ROBOT.joints]))


def test_deep_inside_a_region_its_model_predicts_alone() -> None:
    models = bank()
    for name, region in (("left", LEFT), ("right", RIGHT)):
        q = inside(region)
        q = q[region.depth(ROBOT, q) > models.blend]
        motion = motion_at(q)
        assert_allclose(models.predict(*motion), models.local(name).model.torque(*motion), rtol=1e-9)


def test_across_a_border_torque_and_its_slope_are_continuous() -> None:
    models = bank()
    h = 1e-5
    x = np.arange(-0.08, 0.08, h)
    q = np.column_stack([x, np.full(len(x), 0.2), np.full(len(x), 0.3)])
    torque = models.predict(q, np.ones_like(q), np.ones_like(q))
    weights, outside = models.weights(q)
    assert not outside.any()
    assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    slope = np.gradient(torque, h, axis=0)
    difference = np.abs(models.local("left").model.torque(q, q * 0 + 1, q * 0 + 1) - models.local("right").model.torque(
        q, q * 0 + 1, q * 0 + 1)).max(axis=0)  # fmt: skip
    # The blend has a curvature of 6/(2b)² times the difference of the models; the models have some hundred N m/rad².
    allowed = h * (6.0 / (2.0 * models.blend) ** 2 * difference + 1000.0)
    assert np.all(np.abs(np.diff(slope, axis=0)).max(axis=0) < allowed)


def test_a_posture_outside_all_regions_is_an_error_or_flagged() -> None:
    models = bank()
    q = np.array([[0.5, 0.0, 0.0], [3.0, 0.0, 0.0]])
    with pytest.raises(OutsideError, match=r"Sample 2 .*'right'.*1\.8"):
        models.predict(*motion_at(q))
    prediction = models.prediction(*motion_at(q))
    assert prediction.outside.tolist() == [False, True]
    assert_allclose(
        prediction.torque[1], models.local("right").model.torque(*(x[1:] for x in motion_at(q)))[0], rtol=1e-9
    )
    assert np.all(prediction.band > 0.0)
    with pytest.raises(UnknownNameError):
        models.predict(*motion_at(q), outside="maybe")  # type: ignore[arg-type]


def test_a_bank_comes_back_from_its_folder(tmp_path: Path) -> None:
    models = bank(True)
    save_bank(models, tmp_path / "bank")
    kinds = {p.suffix for p in (tmp_path / "bank").rglob("*") if p.is_file()}
    assert kinds == {".json", ".urdf"}  # plain text that cannot execute code
    back = load_bank(tmp_path / "bank", ROBOT)
    motion = motion_at(inside(LEFT))
    assert_allclose(back.predict(*motion), models.predict(*motion), rtol=1e-9)
    assert_allclose(back.local("left").covariance, models.local("left").covariance)
    assert back.local("left").settings == models.local("left").settings
    t = np.linspace(0.0, 5.0, 50)
    assert_allclose(back.local("left").motion.sample(t)[0], models.local("left").motion.sample(t)[0], atol=1e-12)
    with pytest.raises(SteelyardError, match="exists"):
        save_bank(models, tmp_path / "bank")


def test_a_bank_of_another_robot_is_refused(tmp_path: Path) -> None:
    save_bank(bank(), tmp_path / "bank")
    with pytest.raises(LocalError, match="belongs to robot 'rotradi'"):
        load_bank(tmp_path / "bank", load_robot("szabo3r"))
    other = replace(bank().models[0], model=Model.nominal(load_robot("szabo3r")))
    with pytest.raises(LocalError, match="a bank is for one robot"):
        Bank(ROBOT, (bank().models[1], other))
    (tmp_path / "bank" / "result.json").write_text("{}")
    with pytest.raises(LocalError, match="no bank"):
        load_bank(tmp_path / "bank", ROBOT)
    with pytest.raises(LocalError, match="no such file"):
        load_bank(tmp_path / "nowhere", ROBOT)


def test_recalibration_detects_wear_and_ignores_noise() -> None:
    models = bank()
    motion = models.local("left").motion
    assert motion is not None
    _, same = recalibrate(models, "left", arm(seed=7)(motion, 1))
    assert not same.significant  # the false-alarm rate is 1 %, and the seed is fixed
    worn = TRUTH.theta.copy()
    index = [p.name for p in TRUTH.dynamics.parameters].index("Fc1")
    worn[index] *= 1.2
    new, result = recalibrate(models, "left", arm(Model(ROBOT, TRUTH.terms, worn), seed=8)(motion, 1))
    assert [j.joint for j in result.joints if j.significant] == [ROBOT.joint_names[0]]
    assert [p.name for p in result.parameters if p.significant] == ["Fc1"]
    changed = {p.name: p.after - p.before for p in result.parameters}["Fc1"]
    assert changed == pytest.approx(worn[index] - TRUTH.theta[index], rel=0.3)
    assert new.local("right") is models.local("right")
    assert new.local("left").motion is motion


def test_logs_of_other_regions_are_refused() -> None:
    models = bank()
    log = arm()(models.local("left").motion, 1)
    with pytest.raises(LocalError, match="of the samples are inside region 'right'"):
        identify_locally(ROBOT, {"right": log}, [RIGHT], **OPTIONS)
    with pytest.raises(LocalError, match="No log for region 'right'"):
        identify_locally(ROBOT, {"left": log}, [LEFT, RIGHT], **OPTIONS)
    with pytest.raises(UnknownNameError, match="middle"):
        identify_locally(ROBOT, {"middle": log, "left": log}, [LEFT], **OPTIONS)
    with pytest.raises(UnknownNameError, match="middle"):
        recalibrate(models, "middle", log)
    with pytest.raises(LocalError, match="No log"):
        recalibrate(models, "left", [])


def test_errors_are_those_of_the_formulas() -> None:
    models = bank()
    truth = replace(models.models[0], model=TRUTH)
    result = validate_bank(models, arm(seed=3), trajectories=3, points=3, others={"truth": truth}, nominal=TRUTH)
    assert result.models == ("left", "right", "truth", "bank")
    r = result.trials("left")
    # (8) as printed is ‖e‖/S, the RMSE ‖e‖/√S; (9) divides by the nominal torque of the axis.
    assert_allclose(r.printed("left") * np.sqrt(r.samples)[:, None], r.rmse("left"))
    assert_allclose(result.percent("left", "left"), 100.0 * r.rmse("left") / [j.effort for j in ROBOT.joints])
    # Of white noise of 1 %, a zero-phase filter at 30 Hz of 100 Hz passes √0.3, or a little less.
    assert_allclose(result.percent("truth", "left").mean(), np.sqrt(0.3), rtol=0.15)
    # ±σ contains 68 % of Gaussian noise; 3 motions of some hundred correlated samples measure that to about 6 %.
    assert r.covered.mean() == pytest.approx(0.683, abs=0.1)
    assert set(result.to_json()["mean_error_percent_of_nominal"]) == set(result.models)


def test_the_standard_error_has_the_size_of_the_error() -> None:
    for local in bank().models:
        motion = motion_at(inside(local.region, 200))
        error = local.model.torque(*motion) - TRUTH.torque(*motion)
        standard_error = local.standard_error(*motion)
        ratio = np.sqrt(np.mean(error**2, axis=0) / np.mean(standard_error**2, axis=0))
        # One draw of noise in few combinations per joint: χ²/ν with ν ≥ 2 is below 3² in all but
        # 0.01 % of cases, and above 0.1² in all but 1 %.
        assert np.all((ratio > 0.1) & (ratio < 3.0))


def test_validation_by_logs_needs_them_all() -> None:
    models = bank()
    log = arm()(models.local("left").motion, 1)
    with pytest.raises(LocalError, match="'right'"):
        validate_bank(models, {"left": log})
    short = Log(log.joints, log.t[:5], log.q[:5], dq=log.dq[:5], tau=log.tau[:5])
    with pytest.raises(LocalError, match="too short"):
        validate_bank(models, {"left": short, "right": short})


def test_exact_logs_give_the_exact_model() -> None:
    exact = identify_locally(
        ROBOT, arm(sensors=Sensors()), [LEFT], motions={"left": bank().local("left").motion}, physical=False,
        terms=OPTIONS["terms"], prior="none", preparation=FILTER,
    )  # fmt: skip
    true = exact.models[0].base.values(TRUTH.theta)
    # The remaining error is the filter's: torque is constant between control instants, and friction has corners.
    assert_allclose(exact.models[0].values, true, atol=0.02 * np.max(np.abs(true)))
