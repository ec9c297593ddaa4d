"""Friction curves of a simulated IRp-6 agree with the truth, for every method of removing gravity."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted import CURVES, RIGID, ROBOT, Tustin, log_of, sweeps

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.friction import find_plateaus, measure_friction
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

NAMES = ROBOT.joint_names


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_law_and_curve_agree_with_the_truth(joint: int) -> None:
    found = measure_friction(ROBOT, log_of(sweeps(joint)), joints=[NAMES[joint]], model=RIGID).joints[0]
    # Only joint 1 is symmetric; all joints have a Stribeck dip.
    assert found.law.law.name.endswith("asymmetric") == (joint > 0)
    assert found.law.law.shaped
    v = np.concatenate([s * np.linspace(0.06, 0.95, 30) for s in (-1.0, 1.0)])
    assert np.sqrt(np.mean((found.law(v) - CURVES[joint](v)) ** 2)) < 0.15  # 1 N m of noise over 0.3 s and more


def test_intervals_of_curves_are_calibrated() -> None:
    """Over repetitions, deviations of the curve in standard errors are standard normal."""
    deviations = []
    v = np.array([-1.5, -0.8, -0.3, 0.1, 0.4, 1.0, 1.5])
    plan = sweeps(0, fractions=(0.05, 0.1, 0.2, 0.4, 0.7, 1.0))
    for seed in range(12):
        law = measure_friction(ROBOT, log_of(plan, seed), joints=["q1"], model=RIGID, law="tustin").joints[0].law
        deviations.append((law(v) - CURVES[0](v)) / law.band(v))
    inside = np.mean(np.abs(deviations) < 1.96)
    # 95 % of 84 correlated values are expected inside. Error bars from eight pieces have an error of a third, so 85 %
    # is still plausible.
    assert 0.85 < inside < 0.99
    assert 0.7 < np.std(deviations) < 1.3


def test_pairs_symmetry_and_model_agree() -> None:
    """With a balanced forearm (X6 = 0, as in the paper) gravity is odd about the vertical posture."""
    blocks = ROBOT.inertial_parameters.reshape(-1, 10).copy()
    blocks[2, 1] = 0.0
    balanced = Model(ROBOT, terms(ROBOT), blocks.ravel())
    log = log_of(sweeps(1), curves=(CURVES[0], CURVES[0], CURVES[0]))
    q, dq, ddq = sweeps(1).sample(log.t)
    log = replace(log, tau=log.tau + balanced.torque(q, dq, ddq) - RIGID.torque(q, dq, ddq))
    found = {
        how: measure_friction(ROBOT, log, joints=["q2"], gravity=how, middle=0.0, model=balanced, law="tustin")
        for how in ("pairs", "symmetry", "model")
    }
    v = np.array([-0.9, -0.3, -0.1, 0.1, 0.3, 0.9])
    for curves in found.values():
        np.testing.assert_allclose(curves.joints[0].law(v), CURVES[0](v), atol=0.3)


def test_pairs_give_the_mean_of_both_directions() -> None:
    found = measure_friction(ROBOT, log_of(sweeps(1)), joints=["q2"], gravity="pairs", law="tustin").joints[0]
    assert any("directions were averaged" in note and "--gravity-by" in note for note in found.notes)
    apart = measure_friction(
        ROBOT, log_of(sweeps(1)), joints=["q2"], gravity="symmetry", middle=0.0, law="tustin"
    ).joints[0]
    assert not any("averaged" in note for note in apart.notes)
    v = np.array([0.1, 0.3, 0.6, 0.9])
    np.testing.assert_allclose(found.law(v), 0.5 * (CURVES[1](v) - CURVES[1](-v)), atol=0.2)


def test_a_motion_without_plateaus_gives_the_same_curve() -> None:
    t = np.arange(0.0, 40.0, 0.005)
    w = 2 * np.pi * np.array([0.05, 0.11, 0.23])
    q = np.zeros((len(t), 3))
    q[:, 0] = (np.array([2.0, 0.6, 0.3]) * np.sin(t[:, None] * w)).sum(1)
    dq = np.zeros_like(q)
    dq[:, 0] = (np.array([2.0, 0.6, 0.3]) * w * np.cos(t[:, None] * w)).sum(1)
    ddq = np.zeros_like(q)
    ddq[:, 0] = -(np.array([2.0, 0.6, 0.3]) * w**2 * np.sin(t[:, None] * w)).sum(1)
    friction = np.column_stack([CURVES[0](dq[:, 0]), np.zeros((len(t), 2))])
    tau = RIGID.torque(q, dq, ddq) + friction + np.random.default_rng(0).normal(size=q.shape)
    found = measure_friction(ROBOT, Log(NAMES, t, q, dq=dq, tau=tau), joints=["q1"]).joints[0]
    assert "table" in found.how
    np.testing.assert_allclose(
        found.torque, CURVES[0](found.velocity), atol=0.8
    )  # the table interpolates an exponential linearly


def test_the_temperature_family() -> None:
    plan = sweeps(0, fractions=(0.05, 0.1, 0.2, 0.5, 1.0))
    logs = [log_of(plan, k, temperature=T) for k, T in enumerate((20.0, 28.0, 37.0, 45.0))]
    law = measure_friction(ROBOT, logs, joints=["q1"], model=RIGID, law="tustin").joints[0].law
    v = np.array([-1.2, -0.2, 0.1, 0.6, 1.5])
    for T in (20.0, 31.0, 45.0):
        np.testing.assert_allclose(law(v, T), CURVES[0](v, T), atol=0.5)
    with pytest.raises(SteelyardError, match=r"from 20 to 45 °C; 60 °C is outside"):
        law(v, 60.0)


def test_plateaus_are_found_in_a_jittering_noisy_log() -> None:
    plan = sweeps(0, dwell=0.8)
    log = log_of(plan, noise=3.0, jitter=0.8)
    found = list(find_plateaus(log, 0))
    for speed in plan.speeds["q1"]:
        near = [p for p in found if abs(abs(p.velocity) - speed) < 0.05 * speed]
        assert {p.velocity > 0 for p in near} == {True, False}, f"{speed:g} rad/s"
    assert all(p.duration > 0.2 for p in found)
    # No plateau is part of a ramp: its mean speed is one of the designed speeds.
    assert all(np.min(np.abs(abs(p.velocity) / plan.speeds["q1"] - 1.0)) < 0.08 for p in found)


def test_bad_input_is_refused() -> None:
    log = log_of(sweeps(0, fractions=(0.5, 1.0)))
    with pytest.raises(SteelyardError, match="does not move"):
        measure_friction(ROBOT, log, joints=["q2"], how="table")
    with pytest.raises(SteelyardError, match="never has a constant speed"):
        measure_friction(ROBOT, log, joints=["q2"], how="plateaus")
    slow = log_of(sweeps(0, fractions=(0.5,)))
    with pytest.raises(SteelyardError, match="different speeds are too few"):
        measure_friction(ROBOT, slow, joints=["q1"], how="plateaus", gravity="none")
    with pytest.raises(SteelyardError, match="needs the position"):
        measure_friction(ROBOT, log, joints=["q1"], how="plateaus", gravity="symmetry")
    with pytest.raises(SteelyardError, match="give an identified model"):
        measure_friction(ROBOT, log, joints=["q1"], how="plateaus", gravity="model")
    with pytest.raises(SteelyardError, match="the log lacks torques"):
        measure_friction(ROBOT, replace(log, tau=None), joints=["q1"])
    still = replace(log, q=np.zeros_like(log.q), dq=np.zeros_like(log.q))
    with pytest.raises(SteelyardError):
        measure_friction(ROBOT, still)


def test_values_of_the_simulated_curve() -> None:
    curve = Tustin((14.0, 9.0, 20.0), (10.0, 7.0, 16.0), 0.1)
    assert curve(np.array([1e-9]))[0] == pytest.approx(14.0)
    assert curve(np.array([-1e-9]))[0] == pytest.approx(-10.0)
    assert curve(np.array([5.0]))[0] == pytest.approx(109.0)


DATA = os.environ.get("STEELYARD_DATA")
UR = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint"]
MAPPING = {"joints": UR, "current": "i{}", "torque_constants": [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]}


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
@pytest.mark.parametrize("joint", [1, 6])
def test_sweeps_of_a_real_ur10e(joint: int) -> None:
    """In sine sweeps of single joints friction rises with speed and agrees with a fit of the whole arm."""
    assert DATA is not None
    folder = Path(DATA) / "ur10e"
    robot = load_robot(folder / "robot.urdf")
    log = read_log(folder / f"joint__20_01_22-joint_{joint}.parquet", robot, MAPPING)
    found = measure_friction(robot, log, joints=[UR[joint - 1]]).joints[0]
    dry = {1: (12.0, 20.0), 6: (2.0, 3.5)}[joint]  # N m; the fit of all joints at once has 14.6 and 2.4
    for way in (1.0, -1.0):
        slow, fast = (way * found.law(way * v) for v in (0.1, 0.45))
        assert dry[0] < slow < 1.5 * dry[1]
        assert fast > slow


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
def test_trapezoids_of_a_real_kinova() -> None:
    """Each joint moves in one direction at up to 0.6 rad/s; its friction is a few N m."""
    assert DATA is not None
    folder = Path(DATA) / "kinova_gen3"
    robot = load_robot(folder / "robot.urdf")
    for joint in (1, 4, 6):
        log = read_log(folder / f"jointwise__joint_{joint}_trapez.parquet", robot)
        found = measure_friction(robot, log, joints=[f"joint_{joint}"]).joints[0]
        assert np.all((found.torque > 0.5) & (found.torque < 10.0))
        assert any("Only one direction" in note for note in found.notes)
