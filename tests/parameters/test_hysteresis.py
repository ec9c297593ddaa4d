"""Terms with memory, against sample-by-sample evaluation of their definitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulation.simulated_robots import double_pendulum
from term_roads import Swings, arm, comes_back_from_a_file, is_the_same_in_c, log_of

import steelyard as sy
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.parameters import (
    Coulomb,
    Lag,
    LoadedCoulomb,
    LoadedStop,
    Rate,
    RigidLoad,
    Rotor,
    Stop,
    StopElement,
    terms,
)
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.transmission import Transmission

H = 0.002


def slow_stop(u: np.ndarray, width: float, s: float) -> np.ndarray:
    """Evaluate the definition sample by sample."""
    out = [s]
    for step in np.diff(u):
        s = min(max(s + step / width, -1.0), 1.0)
        out.append(s)
    return np.array(out)


walks = st.lists(st.sampled_from([0.0, 0.001, -0.001, 0.02, -0.02, 0.3, -0.3]), min_size=1, max_size=60)


@given(walks, st.sampled_from([0.003, 0.01, 0.1]), st.sampled_from([-1.0, -0.3, 0.0, 1.0]))
def test_a_stop_follows_its_definition_along_any_walk(steps: list[float], width: float, start: float) -> None:
    u = np.concatenate([[0.4], 0.4 + np.cumsum(steps)])
    np.testing.assert_allclose(Stop(width).follow(u, start), slow_stop(u, width, start), rtol=0.0, atol=1e-10)


@given(walks, st.sampled_from([0.003, 0.1]))
def test_the_initial_state_of_a_stop_is_forgotten_after_two_widths(steps: list[float], width: float) -> None:
    u = np.concatenate([[0.0], np.cumsum(steps)])
    gone = np.abs(u - u[0]) > 2.0 * width + 1e-9
    runs = [Stop(width).follow(u, s) for s in (-1.0, 0.0, 1.0)] + [Stop(width).signal(u, 0.0 * u, None)]
    if gone.any():
        first = int(np.argmax(gone))
        for run in runs:
            np.testing.assert_allclose(run[first:], runs[0][first:], rtol=0.0, atol=1e-10)


def test_the_first_motion_determines_the_initial_state_of_a_stop() -> None:
    u = np.array([0.0, 0.001, -0.001, -0.02, -0.3, 0.3])
    assert Stop(0.01).first(u) == -1.0
    assert Stop(1.0).first(u) == 0.0
    np.testing.assert_array_equal(Stop(1.0).signal(np.full(3, 0.7), np.zeros(3), None), np.zeros(3))


def test_a_closed_cycle_loses_the_area_of_its_loop() -> None:
    K, width, a = 3.0, 0.02, 0.15
    u = a * np.sin(np.linspace(0.5 * np.pi, 2.5 * np.pi, 20_001))
    torque = K * Stop(width).follow(u, 1.0)
    lost = float(np.sum(0.5 * (torque[1:] + torque[:-1]) * np.diff(u)))
    # A parallelogram of height 2K whose sides lean by 2·width.
    assert lost == pytest.approx(2.0 * K * (2.0 * a - 2.0 * width), rel=1e-6)
    # Within the width it is a lossless spring.
    small = 0.4 * width * np.sin(np.linspace(0.0, 2.0 * np.pi, 2_001))
    torque = K * Stop(width).follow(small, 0.0)
    assert abs(float(np.sum(0.5 * (torque[1:] + torque[:-1]) * np.diff(small)))) < 1e-12


def test_torque_is_the_sum_of_its_definitions() -> None:
    """Stops, load and lag of a two-link arm, from the rigid torque of its own links and rotors."""
    model = arm(Rotor(), StopElement(width=0.03), LoadedStop(width=0.01), LoadedCoulomb(smooth=0.1), Lag(order=2.0))
    q, dq, ddq = Swings().sample(H * np.arange(3000))
    theta = dict(zip(model.terms.names, model.theta[20:], strict=True))
    rigid = Model(model.robot, terms(model.robot, Rotor()), np.r_[model.theta[:20], theta["Ia1"], theta["Ia2"]])
    wanted = rigid.torque(q, dq, ddq)
    carried = wanted.copy()
    np.testing.assert_allclose(model.rigid_torque(q, dq, ddq), carried, rtol=0.0, atol=1e-12)
    for j in range(2):
        number = j + 1
        start = np.sign(dq[0, j])
        wanted[:, j] += theta[f"Fm{number}"] * slow_stop(q[:, j], 0.03, start)
        wanted[:, j] += theta[f"mum{number}"] * np.abs(carried[:, j]) * slow_stop(q[:, j], 0.01, start)
        wanted[:, j] += theta[f"muc{number}"] * np.abs(carried[:, j]) * np.tanh(dq[:, j] / 0.1)
        wanted[:, j] -= theta[f"Td{number}"] * np.gradient(carried[:, j], H)
        wanted[1:-1, j] += theta[f"Tdd{number}"] * np.diff(carried[:, j], 2) / H**2
    found = model.torque(q, dq, ddq, H)
    # A second difference amplifies rounding (1e-14 of the torque) by 1/H², 2.5e5.
    np.testing.assert_allclose(found[1:-1], wanted[1:-1], rtol=0.0, atol=1e-7)


def test_the_load_of_a_drive_does_the_work_of_the_joints() -> None:
    matrix = np.array([[1.0, 0.0], [0.5, 2.0]])
    robot = replace(double_pendulum(), transmission=Transmission(matrix))
    bound = terms(robot, LoadedCoulomb(on="drive"))
    rng = np.random.default_rng(1)
    q, tau = rng.normal(size=(2, 5, 2))
    loads = bound.along(q, 0.0 * q, None, tau)
    np.testing.assert_allclose(loads, np.abs(np.linalg.solve(matrix.T, tau.T).T), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    "loads",
    [
        ("stop-loaded", "coulomb-loaded"),
        ("stop-loaded:load_limit=4", "coulomb-loaded:load_limit=4"),
        ("stop-loaded:load_limit=3", "coulomb-loaded:load_limit=8"),
        ("stop-loaded:load_limit=5", "coulomb-loaded"),
    ],
)
def test_forward_dynamics_undoes_the_torque_under_load(loads: tuple[str, ...]) -> None:
    model = arm("rotor", "viscous", "stop:width=0.02", *loads)
    theta = np.where([p.unit == "1" for p in model.dynamics.parameters], 0.2, 1.0) * model.theta
    model = Model(model.robot, model.terms, theta)
    q, dq, ddq = Swings().sample(H * np.arange(2000))
    past = model.dynamics.history(q, dq, ddq, model.theta)
    again = model.acceleration(q, dq, model.torque(q, dq, ddq), past)
    np.testing.assert_allclose(again, ddq, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("kind", ["stop-loaded", "coulomb-loaded"])
def test_friction_under_load_is_constant_beyond_its_limit_and_unchanged_below(kind: str) -> None:
    free, limited = arm(kind), arm(f"{kind}:load_limit=4")
    q, dq, ddq = Swings().sample(H * np.arange(3000))
    rigid = free.rigid_torque(q, dq, ddq)
    rubs, held = (model.torque(q, dq, ddq) - rigid for model in (free, limited))
    light = np.abs(rigid) <= 4.0
    assert 0.2 < np.mean(light) < 0.8
    np.testing.assert_allclose(held[light], rubs[light], rtol=0.0, atol=1e-12)
    # Friction is proportional to the load, so it is constant beyond the limit.
    np.testing.assert_allclose(held[~light], (4.0 / np.abs(rigid) * rubs)[~light], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["stop-loaded", "coulomb-loaded"])
def test_files_and_c_code_hold_the_limit_of_a_load(kind: str, tmp_path: Path) -> None:
    comes_back_from_a_file(f"{kind}:load_limit=4", tmp_path)
    is_the_same_in_c(f"{kind}:load_limit=4", tmp_path)


def test_an_invalid_load_limit_is_refused() -> None:
    for limit in (-1.0, np.inf, np.nan):
        with pytest.raises(SteelyardError, match="limit of a load"):
            LoadedCoulomb(load_limit=limit)


def test_names_of_several_stops_state_their_differences() -> None:
    robot = double_pendulum()
    both = terms(robot, StopElement(width=0.003), StopElement(width=0.03, where=("joint2",)), Coulomb(smooth=0.1))
    assert both.names == ("Fm1", "Fm2[width=0.003]", "Fm2[width=0.03]", "Fc1", "Fc2")
    assert base_parameters(robot, both).names[-5:] == both.names
    with pytest.raises(SteelyardError, match="'Fm1'"):
        terms(robot, StopElement(), StopElement())


def test_terms_share_equal_signals() -> None:
    robot = double_pendulum()
    bound = terms(robot, StopElement(), LoadedStop(), LoadedCoulomb(), Lag(where=("joint1",)))
    found = {(a, c.name) for a, c in bound.history}
    assert found == {(a, j) for j in ("joint1", "joint2") for a in (Stop(0.01), RigidLoad())} | {(Rate(1), "joint1")}
    assert len(bound.history) == 5


def test_identification_finds_memory_load_and_lag() -> None:
    """From a log without noise, starting from the description alone."""
    names = ["rotor", "viscous", "coulomb", "offset", "stop:width=0.003", "stop:width=0.03", "stop-loaded", "lag"]
    model = arm(*names)
    scale = {"1": 0.1, "s": 0.004}
    theta = np.array([scale.get(p.unit, 1.0) for p in model.dynamics.parameters]) * model.theta
    model = Model(model.robot, model.terms, theta)
    t = H * np.arange(10_000)
    q, dq, ddq = Swings().sample(t)
    log = sy.Log(model.robot.joint_names, t, q, dq=dq, tau=model.torque(q, dq, ddq, H))
    found = sy.identify(model.robot, log, terms=names)
    # The reference for the load is itself a fit, whose error shows in the fourth digit.
    np.testing.assert_allclose(found.model.theta[20:], theta[20:], rtol=5e-3, atol=1e-5)
    assert found.identification[0].mean_nrmse_percent < 0.05
    predicted = found.predict(q, dq, ddq, H)
    assert np.max(np.abs(predicted - log.tau)[100:-100]) < 0.01 * np.std(log.tau)


@pytest.mark.parametrize("scheme", ["momentum", "power", "energy", "filtered-dynamic"])
def test_every_scheme_supports_memory(scheme: str) -> None:
    model = arm("viscous", "stop:width=0.05")
    t = H * np.arange(10_000)
    q, dq, ddq = Swings().sample(t)
    log = sy.Log(model.robot.joint_names, t, q, dq=dq, tau=model.torque(q, dq, ddq))
    found = sy.identify(model.robot, log, terms=["viscous", "stop:width=0.05"], scheme=f"{scheme}")
    np.testing.assert_allclose(found.model.theta[20:], model.theta[20:], rtol=0.03)


@pytest.mark.parametrize(("estimator", "user"), [("ekf", "A filter over state"), ("ml", "Maximum likelihood")])
def test_methods_without_support_for_memory_refuse_it(estimator: str, user: str) -> None:
    model = arm("viscous", "stop")
    log = log_of(model, 4.0)
    with pytest.raises(SteelyardError, match=f"{user}.*'stop'.*such as wls"):
        sy.identify(model.robot, log, terms=["viscous", "stop"], estimator=estimator)
    with pytest.raises(SteelyardError, match=r"The design of a motion.*'stop'"):
        sy.excite(model.robot, terms=model.terms, duration=2.0)


@pytest.mark.parametrize("term", [lambda: StopElement(width=0.0), lambda: Lag(order=3.0)])
def test_invalid_options_are_refused(term) -> None:
    with pytest.raises(SteelyardError):
        term()
