"""The check names encoders that are too coarse for accelerations."""

from __future__ import annotations

import numpy as np
import pytest

import steelyard as sy
from steelyard.check import check_log
from steelyard.robot.library import builtin


def log_of(bits: int) -> sy.Log:
    robot = builtin("rotradi")
    t = np.arange(0.0, 12.0, 0.004)
    w = 2.0 * np.pi / 12.0 * np.array([[1.0, 3.0], [2.0, 5.0], [3.0, 7.0]])
    angle = w * t[:, None, None]
    q = np.sum(np.sin(angle) * [0.9, 0.3], axis=2)
    dq = np.sum(w * np.cos(angle) * [0.9, 0.3], axis=2)
    ddq = np.sum(-(w**2) * np.sin(angle) * [0.9, 0.3], axis=2)
    tau = sy.Model.nominal(robot).torque(q, dq, ddq) + np.random.default_rng(0).normal(0.0, 0.2, q.shape)
    step = 2.0 * np.pi / 2**bits
    return sy.Log(robot.joint_names, t, np.rint(q / step) * step, tau=tau)


@pytest.mark.parametrize(("bits", "seen"), [(11, True), (19, False)])
def test_coarse_encoders_are_named(bits: int, seen: bool) -> None:
    found = check_log(builtin("rotradi"), log_of(bits))
    assert bool(found.of("position_steps")) is seen
    if seen:
        (entry,) = found.of("position_steps")
        assert entry.severity == "warning"
        assert f"{2.0 * np.pi / 2**bits:.2g} rad" in entry.message
        assert entry.advice in found.advice


def test_identify_reports_the_bias_by_rounding() -> None:
    robot = builtin("rotradi")
    coarse, fine = (sy.identify(robot, log_of(bits), terms=("viscous", "coulomb")) for bits in (11, 19))
    assert "rounding_shift" not in fine.estimate.details
    shift = np.array(coarse.estimate.details["rounding_shift"])
    assert shift.any()
    assert np.all(coarse.estimate.standard_errors >= np.abs(shift))
