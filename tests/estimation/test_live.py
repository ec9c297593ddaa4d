"""Recursive least squares over streams: same rows as the whole-log schemes, and exact continuation after a pause."""

from __future__ import annotations

import re
from collections import deque
from functools import cache

import numpy as np
import pytest

from steelyard.dynamics import Model
from steelyard.errors import LogError, ShapeError, SteelyardError, UnknownNameError
from steelyard.estimation import Directional, EstimationError, StateError, Variable, recursive
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import SCHEMES as ALL_SCHEMES
from steelyard.regression.schemes import make_scheme, paper_motion
from steelyard.robot.library import builtin
from steelyard.signals.log import Log

SCHEMES = [
    "dynamic", "power", "filtered-dynamic:cutoff_hz=1.45", "filtered-dynamic:cutoff_hz=3.18,order=3,torque=trapezoid",
    "filtered-dynamic:cutoff_hz=1.45,torque=paper", "filtered-power:cutoff_hz=1.45",
    "filtered-power:cutoff_hz=0.8,work=trapezoid",
    "momentum:samples=8", "momentum:window=0.05,torque=trapezoid", "momentum:samples=20,consecutive=yes",
    "momentum:samples=9,still=0", "filtered-dynamic:cutoff_hz=4.77,still=0", "energy:samples=5",
    "energy:samples=5,consecutive=yes", "energy:window=0.1,growing=yes",
]  # fmt: skip


@cache
def moving(name: str = "rotradi", seconds: float = 4.0):
    """A robot and the log of a motion at 400 Hz with torque noise."""
    robot = builtin(name)
    model = Model.nominal(robot)
    rng = np.random.default_rng(0)
    t = np.arange(round(400 * seconds)) / 400.0
    w = 2.0 * np.pi * np.array([0.3, 0.7, 1.3])[:, None]
    size, phase = rng.uniform(0.2, 0.6, (3, robot.dof)), rng.uniform(0.0, 6.0, (3, robot.dof))
    angle = t[:, None, None] * w + phase
    q, dq, ddq = (size * np.sin(angle)).sum(1), (size * w * np.cos(angle)).sum(1), (-size * w**2 * np.sin(angle)).sum(1)
    tau = model.torque(q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
    base = base_parameters(robot, model.terms)
    return model, base, Log(robot.joint_names, t, q, dq, ddq, tau)


def samples(log: Log):
    return zip(log.t, log.q, log.dq, log.tau, log.ddq, strict=True)


def end(*args, **options):
    return deque(recursive(*args, **options), maxlen=1)[0]


def batch(scheme: str, P0: float) -> np.ndarray:
    """Solve all rows of the scheme at once, with a ridge of 1/P0."""
    model, base, log = moving()
    data = make_scheme(scheme).data(model.dynamics, base, lambda: paper_motion(log))
    H, z = np.eye(base.rank) / P0, np.zeros(base.rank)
    place = {c: k for k, c in enumerate(base.independent)}
    for block in data.blocks():
        A = np.zeros((len(block.y), base.rank))
        A[:, [place[int(c)] for c in data.equations[block.equation].columns]] = block.A
        H, z = H + A.T @ A, z + A.T @ block.y
    scale = 1.0 / np.sqrt(np.diag(H))
    return scale * np.linalg.solve(H * scale * scale[:, None], scale * z)


def test_all_schemes_are_tested() -> None:
    assert {text.partition(":")[0] for text in SCHEMES} == set(ALL_SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_stream_equals_the_whole_log(scheme: str) -> None:
    model, base, log = moving()
    result = end(model.robot, samples(log), base=base, scheme=scheme, P0=1e4, moments=0)
    expected = batch(scheme, 1e4)
    # The normal equations of the comparison lose half the digits; rows agree to rounding.
    assert np.allclose(result.beta, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_a_log_equals_a_stream() -> None:
    model, base, log = moving()
    live = end(model.robot, iter(list(samples(log))), base=base)
    logged = end(model.robot, log, base=base)
    assert live.beta.tobytes() == logged.beta.tobytes()
    assert live.updates == logged.updates == len(log) - 1


def test_the_known_parameters_come_back() -> None:
    model, base, log = moving()
    clean = Log(log.joints, log.t, log.q, log.dq, log.ddq, model.torque(log.q, log.dq, log.ddq))
    result = end(model.robot, clean, base=base, scheme="filtered-dynamic:torque=trapezoid", P0=np.inf)
    truth = base.values(model.theta)
    # The trapezoid rule at 2.5 ms, and Coulomb friction whose sign changes within an interval.
    assert np.abs(result.beta - truth).max() < 2e-3 * np.abs(truth).max()
    assert np.allclose(base.matrix @ result.theta, result.beta)


def test_only_the_newest_snapshot_has_error_bars() -> None:
    model, base, log = moving()
    stream = recursive(model.robot, log, base=base, scheme="dynamic", noise=[1.0, 2.0, 4.0], every=100)
    old, new = next(stream), next(stream)
    assert (old.updates, new.updates) == (100, 200)
    with pytest.raises(EstimationError, match="has continued"):
        _ = old.standard_errors
    A = model.dynamics.torque_regressor(log.q[:200], log.dq[:200], log.ddq[:200])[:, :, list(base.independent)]
    W = (A / np.array([1.0, 2.0, 4.0])[:, None]).reshape(-1, base.rank)
    P = np.linalg.inv(W.T @ W + 1e-6 * np.eye(base.rank))
    assert np.allclose(new.P, P, rtol=1e-5, atol=1e-8 * P.max())
    assert np.allclose(new.eigenvalues, np.linalg.eigvalsh(P)[::-1], rtol=1e-4)
    right = (log.tau[:200] / np.array([1.0, 2.0, 4.0])).ravel()
    weighted = np.linalg.solve(W.T @ W + 1e-6 * np.eye(base.rank), W.T @ right)
    assert np.allclose(new.beta, weighted, rtol=1e-6, atol=1e-8 * np.abs(weighted).max())
    noise = np.sqrt((np.sum((right - W @ new.beta) ** 2) + 1e-6 * new.beta @ new.beta) / (600 - base.rank))
    assert np.allclose(new.error_parts.noise, noise * np.sqrt(np.diag(P)), rtol=1e-4)
    assert np.all(new.standard_errors >= new.error_parts.noise)


def test_history_and_convergence() -> None:
    model, base, log = moving()
    stream = recursive(model.robot, log, base=base, scheme="dynamic", moments=64, window=100)
    flags = [e.converged for e in stream]
    history = stream.history
    assert 32 <= len(history) <= 64
    assert history.beta.shape == history.eigenvalues.shape == (len(history), base.rank)
    assert np.all(np.diff(history.t) > 0.0)
    assert len(set(np.diff(history.updates))) == 1
    assert np.all(np.diff(history.eigenvalues[:, 0]) <= 1e-9 * history.eigenvalues[:-1, 0])  # information only grows
    assert not flags[0]
    assert flags[-1]
    light = recursive(model.robot, log, base=base, scheme="dynamic", moments=64, window=100, eigenvalues=False)
    for _ in light:
        pass
    assert np.array_equal(light.history.updates, history.updates)
    assert light.history.beta == pytest.approx(history.beta, rel=1e-6, abs=1e-9)
    with pytest.raises(EstimationError, match="eigenvalues=True"):
        _ = light.history.eigenvalues


@pytest.mark.parametrize(
    ("scheme", "forgetting"),
    [("filtered-dynamic:order=2", 1.0), ("filtered-dynamic", Directional(0.99)), ("momentum:samples=7", 0.995),
     ("energy:window=0.02,growing=yes", Variable(500.0, 0.1)), ("dynamic", 0.99)],
)  # fmt: skip
def test_a_resumed_run_is_bit_identical(scheme: str, forgetting, tmp_path) -> None:
    model, base, log = moving()
    options = dict(base=base, scheme=scheme, forgetting=forgetting, moments=32, window=50, reset_every=333)
    some = list(samples(log))[:700]
    through = recursive(model.robot, some, **options)
    whole = [e.beta.tobytes() for e in through]
    first = recursive(model.robot, some[:401], **options)
    early = [e.beta.tobytes() for e in first]
    first.save(tmp_path / "state.npz")
    second = recursive(model.robot, some[401:], resume=tmp_path / "state.npz", **options)
    assert early + [e.beta.tobytes() for e in second] == whole
    assert second.samples == through.samples == 700
    assert second.history.eigenvalues.tobytes() == through.history.eigenvalues.tobytes()
    assert second.information.state()["triangle"].tobytes() == through.information.state()["triangle"].tobytes()


def test_a_state_of_another_run_is_refused(tmp_path) -> None:
    model, base, log = moving()
    path = tmp_path / "state.npz"
    stream = recursive(model.robot, log, base=base)
    next(stream)
    stream.save(path)
    other, other_base, _ = moving("szabo3r")
    with pytest.raises(StateError, match="another robot"):
        recursive(other.robot, [], base=other_base, resume=path)
    with pytest.raises(StateError, match="another terms and base parameters"):
        recursive(model.robot, [], terms=terms(model.robot, "viscous"), resume=path)
    with pytest.raises(StateError, match="another scheme"):
        recursive(model.robot, [], base=base, scheme="momentum", resume=path)
    with pytest.raises(StateError, match="another forgetting"):
        recursive(model.robot, [], base=base, forgetting=0.9, resume=path)
    with pytest.raises(StateError, match="settings"):
        recursive(model.robot, [], base=base, noise=2.0, resume=path)
    with pytest.raises(StateError, match="no such file"):
        recursive(model.robot, [], base=base, resume=tmp_path / "none.npz")
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(StateError, match="not a saved state"):
        recursive(model.robot, [], base=base, resume=tmp_path / "broken.npz")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("signal", [0, 1, 2, 3])
def test_a_sample_that_is_not_a_number_is_named(bad: float, signal: int) -> None:
    model, base, log = moving()
    some = [[np.array(x) for x in s] for s in list(samples(log))[:5]]
    some[3][signal][... if signal == 0 else 1] = bad
    text = "t is not" if signal == 0 else f"{['', 'q', 'dq', 'tau'][signal]} of joint '{model.robot.joint_names[1]}'"
    with pytest.raises(LogError, match=f"{re.escape(text)}.*sample 4"):
        end(model.robot, some, base=base)


def test_bad_samples_are_refused() -> None:
    model, base, log = moving()
    t, q, dq, tau, _ = next(samples(log))
    with pytest.raises(LogError, match="needs accelerations"):
        end(model.robot, [(t, q, dq, tau)], base=base, scheme="dynamic")
    with pytest.raises(ShapeError, match="but has 3 entries"):
        end(model.robot, [(t, q, dq)], base=base)
    with pytest.raises(ShapeError, match="dq of sample 1"):
        end(model.robot, [(t, q, dq[:2], tau)], base=base)
    with pytest.raises(LogError, match="does not increase"):
        end(model.robot, [(t, q, dq, tau), (t, q, dq, tau)], base=base)
    with pytest.raises(LogError, match="no tau"):
        end(model.robot, Log(log.joints, log.t, log.q, log.dq), base=base)
    with pytest.raises(LogError, match="joints a, b, c"):
        end(model.robot, Log(("a", "b", "c"), log.t, log.q, log.dq, tau=log.tau), base=base)


def test_bad_settings_are_refused() -> None:
    model, base, log = moving()
    for options, error, text in (
        ({"forgetting": 0.0}, EstimationError, "above 0"),
        ({"scheme": "dynamics"}, UnknownNameError, "Did you mean 'dynamic'"),
        ({"noise": [1.0, 2.0]}, SteelyardError, "noise"),
        ({"theta0": np.zeros(5)}, ShapeError, "theta0"),
        ({"theta0": np.full(base.rank, np.nan)}, EstimationError, "not finite"),
        ({"P0": -1.0}, EstimationError, "P0"),
        ({"every": 0}, EstimationError, "every"),
    ):
        with pytest.raises(error, match=text):
            recursive(model.robot, log, base=base, **options)
    unused = base_parameters(model.robot.with_torque_used(model.robot.joint_names[:2]), model.terms)
    with pytest.raises(SteelyardError, match="not used"):
        recursive(unused.robot, log, base=unused, scheme="energy")


def test_filters_restart_after_a_gap() -> None:
    model, base, log = moving()
    some = list(samples(log))
    with_gap = some[:400] + some[1200:1600]
    result = recursive(model.robot, with_gap, base=base)
    assert sum(1 for _ in result) == 798  # the first sample of each piece gives no row
    segments = ((0, 400), (400, 800))
    cut = [np.array([s[k] for s in with_gap]) for k in range(5)]
    log2 = Log(log.joints, cut[0], cut[1], cut[2], tau=cut[3], segments=segments)
    assert end(model.robot, log2, base=base).beta.tobytes() == end(model.robot, with_gap, base=base).beta.tobytes()


def test_a_jittering_clock_causes_no_error() -> None:
    model, base, _ = moving()
    rng = np.random.default_rng(3)
    t = np.cumsum(0.0025 * rng.uniform(0.5, 1.5, 1600))
    w, n = 2.0 * np.pi * np.array([0.3, 0.7, 1.3])[:, None], model.robot.dof
    angle = t[:, None, None] * w + rng.uniform(0.0, 6.0, (3, n))
    q, dq, ddq = 0.4 * np.sin(angle).sum(1), 0.4 * (w * np.cos(angle)).sum(1), -0.4 * (w**2 * np.sin(angle)).sum(1)
    tau = model.torque(q, dq, ddq)
    result = end(model.robot, zip(t, q, dq, tau, strict=True), base=base, scheme="filtered-dynamic:torque=trapezoid")
    truth = base.values(model.theta)
    assert np.abs(result.beta - truth).max() < 5e-3 * np.abs(truth).max()  # as with an even clock, at 3.75 ms


def test_a_reset_by_hand_learns_a_new_load() -> None:
    model, base, log = moving()
    heavier = 1.5 * model.theta
    tau = np.where(
        (np.arange(len(log)) < 800)[:, None],
        model.torque(log.q, log.dq, log.ddq),
        model.dynamics.inverse_dynamics(log.q, log.dq, log.ddq, heavier),
    )
    stream = recursive(model.robot, zip(log.t, log.q, log.dq, tau, log.ddq, strict=True), base=base, scheme="dynamic")
    for estimate in stream:
        if estimate.samples == 800:
            stream.reset()
    # P0 = 1e6 biases the reset estimate by 1e-4 in the directions of least information.
    assert np.allclose(estimate.beta, base.values(heavier), rtol=1e-3, atol=1e-3 * np.abs(base.values(heavier)).max())
