"""`fit_log` uses signals without filter and mask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import steelyard as sy

# The torque is smooth here, not held between samples.
SMOOTH = (
    "dynamic", "power", "filtered-dynamic:torque=trapezoid", "momentum:torque=trapezoid", "energy:work=trapezoid",
    "filtered-power:work=trapezoid",
)  # fmt: skip


def swinging(period: float) -> tuple[sy.Model, sy.Log]:
    """A known motion of the three-axis arm from rest, without friction, with its torques."""
    robot = sy.load_robot("szabo3r")
    model = sy.Model(robot, sy.terms(robot), robot.inertial_parameters)
    t = period * np.arange(round(6.0 / period))
    rate, amplitude = np.array([[1.7, 2.3, 3.1], [4.1, 5.3, 2.9]]), np.array([[0.9, 0.5, 0.7], [0.3, 0.2, 0.4]])
    angle = t[:, None, None] * rate
    q, dq = (amplitude * (1.0 - np.cos(angle))).sum(1), (amplitude * rate * np.sin(angle)).sum(1)
    ddq = (amplitude * rate**2 * np.cos(angle)).sum(1)
    return model, sy.Log(robot.joint_names, t, q, dq=dq, ddq=ddq, tau=model.torque(q, dq, ddq))


@pytest.mark.parametrize("estimator", ["ols", "wls"])
def test_exact_signals_give_exact_parameters(estimator: str) -> None:
    model, log = swinging(0.01)
    base = sy.base_parameters(model.robot, model.terms)
    estimate = sy.fit_log(base, log, estimator=estimator)
    # Rounding of torques of some 10 N m, times a condition number of some hundreds.
    assert_allclose(estimate.beta, base.values(model.theta), atol=1e-9)
    assert_allclose(base.values(estimate.theta), estimate.beta, atol=1e-9)


@pytest.mark.parametrize("scheme", SMOOTH)
def test_every_scheme_reads_a_log(scheme: str) -> None:
    model, log = swinging(0.002)
    base = sy.base_parameters(model.robot, model.terms)
    estimate = sy.fit_log(base, log, scheme=scheme, estimator="ols")
    # The trapezoid rule's error: h² times second derivatives of some 1000 N m/s², by a condition number of hundreds.
    assert_allclose(estimate.beta, base.values(model.theta), atol=5e-3)


def test_missing_derivatives_are_backward_differences() -> None:
    """They are delayed by half a sample: the error decreases with the period."""
    errors = []
    for period in (0.004, 0.001):
        model, log = swinging(period)
        base = sy.base_parameters(model.robot, model.terms)
        estimate = sy.fit_log(base, replace(log, dq=None, ddq=None))
        errors.append(np.linalg.norm(estimate.beta - base.values(model.theta)))
    assert errors[1] < 0.5 * errors[0]


def test_a_log_without_torque_is_refused() -> None:
    model, log = swinging(0.01)
    with pytest.raises(sy.LogError, match="no torque"):
        sy.fit_log(sy.base_parameters(model.robot, model.terms), replace(log, tau=None))
