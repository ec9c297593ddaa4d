"""The observer against closed forms, Pinocchio, and other splits into batches."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import PinocchioOracle
from random_robots import make_tree

from steelyard import terms
from steelyard.dynamics import Model
from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.momentum import momentum_balance
from steelyard.parameters import LoadedStop
from steelyard.robot import Robot, load_robot
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver

RNG = np.random.default_rng(3)


def nominal(robot: Robot) -> Model:
    return Model(robot, terms(robot), robot.inertial_parameters)


@cache
def rubbing_arm() -> Model:
    """Arm with all kinds of friction: dry, smoothed, with memory, and load-dependent."""
    robot = make_tree(11, 6, chain=True)
    arm_terms = terms(robot, "rotor", "viscous", "coulomb", "offset", "stop", LoadedStop(load_limit=5.0))
    values = [3.0] * 6 + [2.0] * 6 + [4.0] * 6 + [0.1] * 6 + [1.5] * 6 + [0.05] * 6
    return Model(robot, arm_terms, np.concatenate([robot.inertial_parameters, values]))


def motion(n: int, samples: int, seed: int = 0) -> SampleBatch:
    """Smooth motion with clock jitter and random torques."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.005, 0.015, samples))
    w, a = rng.uniform(0.5, 3.0, n), rng.uniform(0.2, 1.0, n)
    q, dq = a * np.sin(np.outer(t, w)), a * w * np.cos(np.outer(t, w))
    return SampleBatch(t, q, dq, rng.normal(scale=10.0, size=(samples, n)), fresh=True)


def cut(batch: SampleBatch, cuts: list[int]) -> list[SampleBatch]:
    ends = [0, *cuts, len(batch)]
    return [
        SampleBatch(batch.t[a:b], batch.q[a:b], batch.dq[a:b], batch.tau[a:b], batch.fresh and a == 0)
        for a, b in pairwise(ends)
        if b > a
    ]


@pytest.mark.parametrize("seed", range(6))
def test_momentum_and_remainder_equal_pinocchio(seed: int) -> None:
    """p = M q̇; d = C q̇ + g − Ṁ q̇, with Ṁ from central differences of Pinocchio's M along the motion."""
    robot = make_tree(seed, 7, mimic=seed % 2 == 1, own_frames=seed > 2)
    oracle = PinocchioOracle(robot)
    q, dq = RNG.uniform(-1.5, 1.5, (2, 20, robot.dof))
    computed = Evaluator(momentum_balance(nominal(robot)).function)({"q": q, "dq": dq})
    M = oracle.over("mass", q)
    np.testing.assert_allclose(computed[:, : robot.dof], np.einsum("sij,sj->si", M, dq), rtol=1e-11, atol=1e-11)
    step = 1e-5
    change = (oracle.over("mass", q + step * dq) - oracle.over("mass", q - step * dq)) / (2.0 * step)
    bias = oracle.over("torque", q, dq, np.zeros_like(q))
    # Errors of central differences: step² times the third derivative, and rounding over the step; each about 1e-10 of
    # M.
    expected = bias - np.einsum("sij,sj->si", change, dq)
    np.testing.assert_allclose(computed[:, robot.dof :], expected, rtol=1e-7, atol=1e-6)


def test_terms_equal_the_regressors() -> None:
    model = rubbing_arm()
    q, dq, ddq = RNG.uniform(-1.0, 1.0, (3, 30, 6))
    balance = momentum_balance(model)
    s = RNG.uniform(-1.0, 1.0, (30, len(balance.widths)))
    computed = Evaluator(balance.function)({"q": q, "dq": dq, "ddq": ddq, "s": s})
    dynamics = model.dynamics
    rigid = model.rigid_torque(q, dq, ddq)
    signals, stops = np.zeros((30, len(model.terms.history))), iter(s.T)
    for k, (along, c) in enumerate(model.terms.history):
        signals[:, k] = np.minimum(np.abs(rigid[:, c.index]), 5.0) if along.of_torque else next(stops)
    D = dynamics.remainder_regressor(q, dq, signals) @ model.theta
    np.testing.assert_allclose(
        computed[:, :6], dynamics.momentum_regressor(q, dq) @ model.theta, rtol=1e-11, atol=1e-11
    )
    np.testing.assert_allclose(computed[:, 6:], D, rtol=1e-11, atol=1e-10)


def pendulum() -> Model:
    """Pendulum with 0.5 kg m² about its hinge, m l = 1 kg m, and viscous friction of 0.3 N m s."""
    text = """<robot name="p"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
    robot = load_robot(text)
    return Model(robot, terms(robot, "viscous"), np.concatenate([robot.inertial_parameters, [0.3]]))


def test_push_on_a_pendulum_gives_the_step_response() -> None:
    """J q̈ + c q̇ + m g l sin q = τ + τ_ext with q = A sin ωt and a push of 1.5 N m from t = 1 s on."""
    model, h, cutoff_hz = pendulum(), 1e-3, 4.0
    t = np.arange(2000) * h
    A, w, after = 0.8, 2.0, np.arange(2000) >= 1000
    q, dq, ddq = A * np.sin(w * t), A * w * np.cos(w * t), -A * w * w * np.sin(w * t)
    g = float(np.linalg.norm(model.robot.gravity))
    tau = 0.51 * ddq + 0.3 * dq + g * np.sin(q) - 1.5 * after
    batch = MomentumObserver(model, cutoff_hz).observe(
        SampleBatch(t, q[:, None], dq[:, None], tau[:, None], fresh=True)
    )
    # The trapezoidal mean of a torque of 10 N m with frequency ω has the relative error h² ω² / 12, 3e-6 N m. As a mean
    # over intervals, the push starts half a step early.
    expected = np.where(after, 1.5 * (1.0 - np.exp(-2.0 * np.pi * cutoff_hz * (t - 1.0 + 0.5 * h))), 0.0)
    np.testing.assert_allclose(batch.e[:1000, 0], 0.0, atol=1e-5)
    np.testing.assert_allclose(batch.e[1001:, 0], 1.5, atol=1e-5)
    np.testing.assert_allclose(batch.r[:, 0], expected, atol=1e-3)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(1, 119), max_size=8), seed=st.integers(0, 5))
def test_result_does_not_depend_on_batches(cuts: list[int], seed: int) -> None:
    whole = motion(6, 120, seed)
    expected = MomentumObserver(rubbing_arm()).observe(whole)
    observer = MomentumObserver(rubbing_arm())
    batches = [observer.observe(piece) for piece in cut(whole, sorted(cuts))]
    for name in ("p", "d", "e", "r"):
        joined = np.concatenate([getattr(part, name) for part in batches])
        np.testing.assert_array_equal(joined, getattr(expected, name))


def test_restored_state_and_fresh_batch() -> None:
    first, second = cut(motion(6, 100), [50])
    one, other = MomentumObserver(rubbing_arm()), MomentumObserver(rubbing_arm())
    one.observe(first)
    other.restore(one.state())
    np.testing.assert_array_equal(other.observe(second).r, one.observe(second).r)
    fresh = SampleBatch(second.t, second.q, second.dq, second.tau, fresh=True)
    batch = one.observe(fresh)
    np.testing.assert_array_equal(batch.r, MomentumObserver(rubbing_arm()).observe(fresh).r)
    assert not batch.e[0].any()
    assert not batch.r[0].any()
