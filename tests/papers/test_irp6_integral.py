"""Kozłowski & Dutkiewicz 1996, section 5.1: differential, short- and long-integral models of motor 2 of the IRp-6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from regression.scheme_cases import solved, stacked

from steelyard.dynamics import Dynamics, Model
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import make_scheme, paper_motion
from steelyard.robot import Link, Robot, load_robot
from steelyard.robot.robot import Joint
from steelyard.signals.log import Log

PERIOD = 5e-4
PRINTED = np.array([8.125, 5.5, 26.0, 28.75])  # X7, inertia, viscous, Coulomb
DIFFERENTIAL = "dynamic"
SHORT = "energy:window=0.005,consecutive=yes,work=trapezoid"
LONG = "energy:window=0.005,consecutive=yes,growing=yes,work=trapezoid"
SHORT_MOMENTUM = "momentum:window=0.005,consecutive=yes,torque=trapezoid,still=0"
LONG_MOMENTUM = "momentum:window=0.005,consecutive=yes,growing=yes,torque=trapezoid,still=0"


def splines(degrees: list[float], seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quintic moves from knot to knot, from rest to rest."""
    s = np.arange(0.0, seconds, PERIOD)[:, None] / seconds
    knots = np.deg2rad(degrees)
    steps = np.diff(knots)
    q = knots[:-1] + steps * (10 * s**3 - 15 * s**4 + 6 * s**5)
    dq = steps * (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds
    ddq = steps * (60 * s - 180 * s**2 + 120 * s**3) / seconds**2
    return q.T.ravel(), dq.T.ravel(), ddq.T.ravel()


@dataclass(frozen=True, eq=False)
class Motor2:
    """Motor 2 alone: the forearm keeps its direction, so that a pendulum that stands upright is left."""

    dynamics: Dynamics
    theta: np.ndarray

    @classmethod
    def made(cls) -> Motor2:
        # x points up at q = 0 and the joint turns about y: first moment along x, inertia about y.
        inertia = np.zeros(10)
        inertia[[0, 1, 6]] = 20.0, 8.125, 5.5
        upright = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        axis = np.array([0.0, 1.0, 0.0])
        link = Link("arm", "q2", "revolute", -1, upright, np.zeros(3), axis, 0, inertia=inertia)
        gravity = np.array([0.0, 0.0, -9.81])
        robot = Robot("motor2", (Joint("q2", "revolute"),), (link,), gravity=gravity)
        bound = terms(robot, "viscous", "coulomb")
        return cls(Dynamics(robot, bound), np.concatenate([inertia, [26.0, 28.75]]))

    def fitted(self, scheme: str, log: Log, **options) -> np.ndarray:
        """X7, inertia, Fv, Fc."""
        base = base_parameters(self.dynamics.robot, self.dynamics.terms)
        motions = paper_motion(log)
        data = make_scheme(scheme).data(self.dynamics, base, lambda: motions, **options)
        beta = dict(zip(base.names, solved(*stacked(data, base.independent)), strict=True))
        return np.array([beta["mx1"], beta["Iyy1"], beta["Fv1"], beta["Fc1"]])


@pytest.fixture(scope="module")
def motor() -> Motor2:
    return Motor2.made()


@pytest.fixture(scope="module")
def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return splines([0, 30, -30, 25, -20, 35, -35, 10, 0], 0.5)


def log_of(q, dq, ddq, tau) -> Log:
    t = PERIOD * np.arange(len(q))
    return Log(("q2",), t, q[:, None], dq=dq[:, None], ddq=ddq[:, None], tau=tau[:, None])


def torque_of(q, dq, ddq, viscous=26.0) -> np.ndarray:
    """The paper's differential equation of the axis."""
    return 5.5 * ddq - 8.125 * 9.81 * np.sin(q) + viscous * dq + 28.75 * np.sign(dq)


def test_the_axis_is_the_one_that_is_left_of_the_arm(motor: Motor2, motion) -> None:
    """The built-in IRp-6 with q̇3 = −q̇2 needs the same work: motor 2 moves, motor 3 stands."""
    q, dq, ddq = (x[::40] for x in motion)
    arm = Model.nominal(load_robot("irp6"))
    still = np.zeros_like(q)
    full = arm.torque(np.stack([still, q, -q], 1), np.stack([still, dq, -dq], 1), np.stack([still, ddq, -ddq], 1))
    # Joint torques do work on q2 and q3 = −q2; the forearm's own weight (X6) is the same at all times.
    inward = full[:, 1] - full[:, 2]
    ours = motor.dynamics.inverse_dynamics(q[:, None], dq[:, None], ddq[:, None], motor.theta)[:, 0]
    assert_allclose(ours, torque_of(q, dq, ddq), atol=1e-10)
    assert_allclose(inward, ours, atol=1e-9)


@pytest.mark.parametrize("scheme", [DIFFERENTIAL, SHORT, LONG, SHORT_MOMENTUM, LONG_MOMENTUM])
def test_the_printed_numbers_come_back_within_one_percent(scheme: str, motor: Motor2, motion) -> None:
    found = motor.fitted(scheme, log_of(*motion, torque_of(*motion)))
    assert_allclose(found, PRINTED, rtol=0.01)


@pytest.mark.parametrize("scheme", [DIFFERENTIAL, SHORT, LONG])
def test_a_curve_of_friction_replaces_its_columns(scheme: str, motor: Motor2, motion) -> None:
    """Measured before, subtracted in differential and integral form."""
    robot = motor.dynamics.robot
    rigid = Motor2(Dynamics(robot, terms(robot)), motor.theta[:10])
    base = base_parameters(robot)
    motions = paper_motion(log_of(*motion, torque_of(*motion)))
    curve = lambda v: 26.0 * v + 28.75 * np.sign(v)  # noqa: E731
    data = make_scheme(scheme).data(rigid.dynamics, base, lambda: motions, known_friction={"q2": curve})
    beta = dict(zip(base.names, solved(*stacked(data, base.independent)), strict=True))
    assert_allclose([beta["mx1"], beta["Iyy1"]], PRINTED[:2], rtol=0.01)


def test_long_integrals_are_worse_where_friction_drifts(motor: Motor2, motion) -> None:
    """Viscous friction falls by 20 % during the run: largest errors of 59 % (long) and 13 % (short)."""
    q, dq, ddq = motion
    tau = torque_of(q, dq, ddq, 26.0 * np.linspace(1.0, 0.8, len(q)))
    short, long = (np.max(np.abs(motor.fitted(s, log_of(q, dq, ddq, tau)) / PRINTED - 1.0)) for s in (SHORT, LONG))
    assert short < 0.15
    assert long > 2.0 * short


def test_short_integrals_are_worse_where_the_velocity_is_noisy(motor: Motor2, motion) -> None:
    """White noise of 0.01 rad/s: half its square's change over 5 ms is mostly noise (66 %; long: 0.3 %)."""
    q, dq, ddq = motion
    rng = np.random.default_rng(0)
    tau = torque_of(q, dq, ddq)
    errors = {SHORT: [], LONG: []}
    for _ in range(5):
        noisy = log_of(q, dq + rng.normal(size=len(q)) * 0.01, ddq, tau)
        for scheme, found in errors.items():
            found.append(np.max(np.abs(motor.fitted(scheme, noisy) / PRINTED - 1.0)))
    assert np.median(errors[SHORT]) > 0.3
    assert np.median(errors[LONG]) < 0.03
