"""A calibrated robot knows where its tool is; what is written is reloaded by other programs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from pose_plants import Errors, arm, nominal, poses

import steelyard as sy

NOISE = 5e-5


@cache
def calibration() -> sy.Calibration:
    return sy.calibrate(nominal(), poses(Errors.drawn(1), 150, 1, noise=NOISE))


def test_left_out_poses_are_predicted_up_to_the_noise_of_the_sensor():
    fresh = sy.read_poses(poses(Errors.drawn(1), 100, 2, noise=NOISE), nominal())
    before, after = (calibration().errors(fresh, stage)["position"].mean for stage in ("nominal", "full"))
    # The mean length of three normal errors is 1.6 σ; 40 parameters from 450 readings add a tenth.
    assert before > 20 * NOISE
    assert after < 1.3 * 1.6 * NOISE


def test_compliance_is_chosen_and_shown_and_backlash_is_not():
    assert "compliance" in calibration().effects
    assert calibration().shown("compliance")
    assert not calibration().shown("backlash")


def test_written_urdf_has_the_same_kinematics_in_pinocchio(tmp_path: Path):
    path = tmp_path / "arm.urdf"
    calibration().to_urdf(path)
    _same_as_tips(path)


def test_written_mjcf_has_the_same_kinematics_in_mujoco(tmp_path: Path):
    source = tmp_path / "arm.xml"
    source.write_text(arm(), encoding="utf-8")
    found = sy.calibrate(source, poses(Errors.drawn(1), 60, 1, noise=NOISE))
    found.save(tmp_path / "run")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "run" / "plant_calibrated.xml"))
    data = mujoco.MjData(model)
    stage = found.stages["geometry"]
    tips = stage.problem.tips(stage.fit.values)
    for q, rotation, position in zip(found.table.q, tips.rotation, tips.position, strict=True):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        # Nine digits of a metre; both programs compute with sixteen.
        assert data.xpos[-1] == pytest.approx(position, abs=1e-9)
        assert data.xmat[-1].reshape(3, 3) == pytest.approx(rotation, abs=1e-9)


def _same_as_tips(path: Path) -> None:
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    found = calibration()
    stage = found.stages["geometry"]
    tips = stage.problem.tips(stage.fit.values)
    for q, rotation, position in zip(found.table.q, tips.rotation, tips.position, strict=True):
        pin.framesForwardKinematics(model, data, q)
        frame = data.oMf[model.getFrameId("link6")]
        assert frame.translation == pytest.approx(position, abs=1e-9)
        assert frame.rotation == pytest.approx(rotation, abs=1e-9)


@pytest.mark.parametrize("points", [1, 3])
def test_derivatives_are_those_of_differences(points: int):
    from steelyard.calibration.chain import Chain
    from steelyard.calibration.deviation_fit import Problem
    from steelyard.calibration.joint_effects import EFFECTS, Deviations, postures_of

    robot = nominal()
    table = sy.read_poses(poses(Errors.drawn(3), 12, 3, points=points), robot)
    chain = Chain(robot, robot.frame())
    problem = Problem.of(
        Deviations.of(chain, tuple(EFFECTS)), postures_of(chain, table.q, table.approach), table.measurement
    )
    values = 1e-2 * np.random.default_rng(4).normal(size=len(problem.deviations))
    setup = table.measurement.start(chain.tips(table.q))[0]
    _, J = problem.jacobian(setup, values)
    first = J.shape[2] - len(values)
    for k in range(J.shape[2]):
        step = np.zeros(J.shape[2])
        step[k] = 1e-6
        ends = [
            problem.residuals(table.measurement.moved(setup, s * step[:first]), values + s * step[first:])
            for s in (1, -1)
        ]
        # Differences have an error of the step squared, relative to columns of up to a hundred (bearings).
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(J[:, :, k], rel=1e-8, abs=1e-8)
