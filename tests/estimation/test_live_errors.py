"""Error bars of a stream: their parts against closed forms, and their coverage."""

from __future__ import annotations

from collections import deque
from math import exp

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.estimation import recursive
from steelyard.estimation.recursion._information import Information
from steelyard.estimation.recursion._stretches import Stretches
from steelyard.estimation.recursion.forgetting import Constant
from steelyard.parameters import StopElement, Viscous, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.library import builtin

RATES = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])
RATE = 200.0


def motion(rng: np.random.Generator, dof: int, samples: int) -> tuple[np.ndarray, ...]:
    size, phase = rng.uniform(0.1, 0.5, (4, dof)), rng.uniform(0.0, 6.0, (4, dof))
    t = np.arange(samples) / RATE
    angle = t[:, None, None] * RATES[:, None] + phase
    w = RATES[:, None]
    return t, (size * np.sin(angle)).sum(1), (size * w * np.cos(angle)).sum(1), -(size * w**2 * np.sin(angle)).sum(1)


def process(A: np.ndarray, y: np.ndarray, forgetting: float = 1.0) -> tuple[Information, Stretches]:
    """Process rows `A` (updates, equations, parameters) and `y` like a stream."""
    updates, m, p = A.shape
    state, stretches = Information(p, m), Stretches(range(m), m)
    state.start(np.zeros(p), np.inf)
    stretches.start(state)
    for k in range(updates):
        state.buffer[:] = 0.0
        state.buffer[:, :p], state.buffer[:, p] = A[k], y[k]
        stretches.observe_torque(k, y[k])
        stretches.observe_rows(state)
        Constant(forgetting).absorb(state, True)
        if state.updates % stretches.stride == 0:
            stretches.add(state)
    return state, stretches


def coloured(rng: np.random.Generator, updates: int, m: int, correlation: float) -> np.ndarray:
    """Noise of first order and unit variance."""
    out = rng.normal(size=(updates, m))
    for k in range(1, updates):
        out[k] = correlation * out[k - 1] + np.sqrt(1.0 - correlation**2) * out[k]
    return out


@pytest.mark.parametrize(("forgetting", "least", "most"), [(1.0, 13.0, 27.0), (0.998, 4.9, 14.0)])
def test_slow_columns_and_noise_widen_the_bars_correctly(forgetting: float, least: float, most: float) -> None:
    """Columns and noise of first order with ρ = 0.95: variances are (1 + ρ²)/(1 − ρ²) = 19.5 times those of white ones.

    With forgetting σ²P is already twice the variance of white noise, which leaves half of the ratio. A memory of 500
    updates contains about 25 independent ones for four parameters, so up to half of the rest is missed.
    """
    rng, ratios = np.random.default_rng(0), []
    for _ in range(6):
        A = coloured(rng, 6000, 2 * 4, 0.95).reshape(6000, 2, 4)
        y = A @ np.ones(4) + coloured(rng, 6000, 2, 0.95)
        state, stretches = process(A, y, forgetting)
        parts = stretches.parts(state, 0.0, np.ones(2))
        ratios.append(1.0 + (parts.motion / parts.noise) ** 2)
    assert least < np.mean(ratios) < most


def test_stretches_are_few_and_follow_the_memory() -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(9000, 1, 3))
    y = A @ np.ones(3) + 0.1 * rng.normal(size=(9000, 1))
    for forgetting in (1.0, 0.99):
        state, stretches = process(A, y, forgetting)
        assert 8 <= len(stretches.state()["heads"]) <= 32
        first = stretches.state()["heads"][0, 0]
        # At 0.99 a row has a weight of 1 % after 460 updates; stretches of 64 reach a little farther back.
        assert first == 0.0 if forgetting == 1.0 else 9000 - 700 < first < 9000 - 400
        # White noise causes no additional variation except by chance.
        parts = stretches.parts(state, 0.0, np.ones(1))
        assert np.all(parts.motion < 1.2 * parts.noise)


def test_torque_noise_follows_from_its_roughness_and_the_gain_of_the_filter() -> None:
    """A low-pass of first order passes (1 − a)/(1 + a) of white noise, a = exp(−λh), and (1 − a)/2 of the mean of two
    samples, since neighbours share one; second differences remove the motion.
    """
    robot = builtin("szabo3r")
    rng = np.random.default_rng(2)
    t, q, dq, ddq = motion(rng, 3, 4000)
    model = Model(robot, terms(robot, "viscous"), np.concatenate([robot.inertial_parameters, [0.5] * 3]))
    clean = model.torque(q, dq, ddq)
    noise = np.array([0.05, 0.1, 0.02])
    base = base_parameters(robot, model.terms)
    ratios = {}
    for model_error in (0.0, 0.3):
        tau = clean + noise * rng.normal(size=q.shape) + model_error * np.sin(3.0 * q)
        run = recursive(robot, zip(t, q, dq, tau, strict=True), base=base, P0=np.inf,
                        scheme="filtered-dynamic:cutoff_hz=3,order=1,torque=trapezoid")  # fmt: skip
        last = deque(run, maxlen=1)[0]
        a = exp(-2.0 * np.pi * 3.0 / RATE)
        assert run._rows.noise_gain() == pytest.approx(0.5 * (1.0 - a), rel=0.15)  # 4000 draws, correlated
        parts = last.error_parts
        ratios[model_error] = np.median(parts.structure / parts.noise)
        np.testing.assert_allclose(
            last.standard_errors, np.sqrt(parts.noise**2 + parts.motion**2 + parts.structure**2), rtol=1e-12
        )
    # Model errors up to a twentieth of the noise are indistinguishable; they count as 200 rows: √(0.05·12000/200) =
    # 1.7.
    assert ratios[0.0] == pytest.approx(1.7, abs=0.4)
    assert ratios[0.3] > 2.0 * ratios[0.0]


def test_error_bars_cover_the_truth_for_other_friction() -> None:
    """Friction with memory under Coulomb and viscous terms: 95 % intervals of the rigid body are valid, white ones are
    not.

    48 parameters of three draws: with 5 % outside, seven or more have a probability of 1 % if independent; those of one
    draw are correlated.
    """
    robot = builtin("szabo3r")
    parts = [(StopElement(width=0.002), 0.7), (StopElement(width=0.02), 0.5), (Viscous(), 0.5)]
    bound = terms(robot, *(term for term, _ in parts))
    truth = Model(robot, bound, np.concatenate([robot.inertial_parameters, *(np.full(3, v) for _, v in parts)]))
    base = base_parameters(robot, terms(robot, "rotor", "viscous", "coulomb", "offset"))
    theta = np.zeros(len(base.parameters))
    theta[: robot.inertial_count] = robot.inertial_parameters
    rigid = np.array([not n.startswith("F") for n in base.names])
    white, outside, count, deviations = 0, 0, 0, list[float]()
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        t, q, dq, ddq = motion(rng, 3, 6000)
        tau = truth.torque(q, dq, ddq, 1.0 / RATE)
        tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
        run = recursive(robot, zip(t, q, dq, tau, strict=True), base=base, P0=np.inf,
                        scheme="filtered-dynamic:cutoff_hz=5,torque=trapezoid")  # fmt: skip
        last = deque(run, maxlen=1)[0]
        deviation = np.abs(last.beta - base.values(theta))[rigid]
        white += int(np.sum(deviation > 1.96 * last.error_parts.noise[rigid]))
        outside += int(np.sum(deviation > 1.96 * last.standard_errors[rigid]))
        count += int(rigid.sum())
        deviations += (deviation / last.standard_errors[rigid]).tolist()
    assert count >= 45
    assert white > 0.4 * count
    assert outside <= 7
    assert np.sqrt(np.mean(np.square(deviations))) > 0.5  # and not excessively wide


def test_a_state_restores_error_bars_and_an_old_state_restarts_them(tmp_path) -> None:
    robot = builtin("szabo3r")
    rng = np.random.default_rng(5)
    t, q, dq, ddq = motion(rng, 3, 3000)
    model = Model(robot, terms(robot, "viscous"), np.concatenate([robot.inertial_parameters, [0.5] * 3]))
    tau = model.torque(q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
    base = base_parameters(robot, model.terms)
    some = list(zip(t, q, dq, tau, strict=True))
    whole = deque(recursive(robot, some, base=base), maxlen=1)[0].standard_errors
    first = recursive(robot, some[:1700], base=base)
    deque(first, maxlen=1)
    first.save(tmp_path / "state.npz")
    after = deque(recursive(robot, some[1700:], base=base, resume=tmp_path / "state.npz"), maxlen=1)[0]
    assert after.standard_errors.tobytes() == whole.tobytes()
    with np.load(tmp_path / "state.npz") as data:
        old = {k: data[k] for k in data.files if not k.startswith("stretches.")}
    old["information.counts"] = old["information.counts"][:4]
    np.savez(tmp_path / "old.npz", **old)
    restarted = deque(recursive(robot, some[1700:], base=base, resume=tmp_path / "old.npz"), maxlen=1)[0]
    assert restarted.beta.tobytes() == after.beta.tobytes()
    assert np.all(np.isfinite(restarted.standard_errors))
