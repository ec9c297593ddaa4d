"""Replay, simulation, streams and payload identification use the stated torque between samples (plants: Pinocchio)."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from torque_plants import Plant

from steelyard.assessment.model_validation import validate_on_logs
from steelyard.assessment.replay import replay
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError, SteelyardError
from steelyard.estimation.recursion.stream import recursive
from steelyard.parameters.terms import terms as bound_terms
from steelyard.payload.identify import identify_payload
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.torque_between import delay_of
from steelyard.signals.between import interval_means
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.simulation.simulated_motion import simulate_model
from steelyard.study import Study

WAYS = ("held", "sampled", "averaged")
PLANT = Plant(250.0, duration=6.0, position_noise=0.0, torque_noise=0.0)


@cache
def log_of(way: str) -> Log:
    """A log without noise; velocities are those of the motion, or differences of the positions for held torques."""
    log: Log = getattr(PLANT, way)()
    dq, part = np.gradient(log.q, log.t, axis=0), slice(100, 350)
    return Log(log.joints, log.t[part], log.q[part], dq=dq[part], tau=log.tau[part])


@cache
def model() -> Model:
    robot = PLANT.robot
    return Model(robot, bound_terms(robot, *PLANT.terms), PLANT.truth)


def strayed(way: str, as_way: str, delay: float = 0.0, log: Log | None = None) -> float:
    made = replay(model(), log or log_of(way), method="rk4", torque_between=as_way, delay=delay)  # type: ignore[arg-type]
    assert made.position_rmse is not None
    return float(np.linalg.norm(made.position_rmse))


@pytest.mark.parametrize("way", WAYS)
def test_the_true_model_only_reproduces_the_log_with_the_right_torque_between_samples(way: str) -> None:
    """After 1 s at 250 Hz half a sample matters several times more than initial velocities by differences."""
    own = strayed(way, way)
    assert all(strayed(way, other) > 2.0 * own for other in WAYS if other != way)


def test_a_delayed_torque_is_replayed_earlier() -> None:
    late = PLANT.sampled(3e-3)
    log = replace(log_of("sampled"), tau=late.tau[100:350])
    assert strayed("sampled", "sampled", 3e-3, log) < 0.2 * strayed("sampled", "sampled", 0.0, log)


def test_means_over_intervals() -> None:
    t, tau = np.arange(5) * 0.1, np.arange(5.0)[:, None]
    assert interval_means(t, tau, "auto")[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert interval_means(t, tau, "sampled")[:, 0] == pytest.approx([0.5, 1.5, 2.5, 3.5, 4])
    assert interval_means(t, tau, "averaged")[:, 0] == pytest.approx([1, 2, 3, 4, 4])
    # A held torque with a delay of half a sample is the mean of two; it is constant at the end.
    assert interval_means(t, tau, "held", 0.05)[:, 0] == pytest.approx([0.5, 1.5, 2.5, 3, 4])
    assert interval_means(t, tau, "held", -0.1)[:, 0] == pytest.approx([0, 0, 1, 2, 4])


def test_simulations_and_scores_use_it() -> None:
    log = log_of("averaged")
    right, wrong = (simulate_model(model(), torque=log, torque_between=way).runs[0].q for way in ("averaged", "held"))
    assert np.abs(right - log.q).max() < 0.5 * np.abs(wrong - log.q).max()
    with pytest.raises(SimulationError, match="torque of a log"):
        simulate_model(model(), duration=0.1, delay=1e-3)
    way = "averaged"
    stated, held = (validate_on_logs(model(), [log], torque_between=x).trials[0].ways for x in (way, "held"))  # type: ignore[arg-type]
    assert stated[0].errors is not None
    assert held[0].errors is not None
    assert max(stated[0].errors) < 0.5 * max(held[0].errors)


@pytest.mark.parametrize("scheme", ["momentum", "energy"])
def test_streams_use_it(scheme: str) -> None:
    """With the mean over the interval both balances are exact except for the trapezoids of dissipation."""
    log = PLANT.averaged()
    _, dq, _ = PLANT.motion(log.t)
    live = Log(log.joints, log.t, log.q, dq=dq, tau=log.tau)

    def error(**stated: str) -> float:
        run = recursive(PLANT.robot, live, terms=PLANT.terms, scheme=scheme, P0=1e9, every=100, **stated)  # type: ignore[arg-type]
        last = deque(run, maxlen=1)[0]
        truth = base_parameters(PLANT.robot, PLANT.terms).values(PLANT.truth)
        return float(np.linalg.norm(last.beta - truth) / np.linalg.norm(truth))

    assert error(torque_between="averaged") < 0.3 * error()


def test_streams_refuse_incompatible_options() -> None:
    with pytest.raises(SteelyardError, match="uses single samples"):
        recursive(PLANT.robot, (), scheme="dynamic", torque_between="held")
    with pytest.raises(SteelyardError, match="state only one of them"):
        recursive(PLANT.robot, (), scheme="momentum:torque=held", torque_between="sampled")


def test_early_reversal_of_friction_is_not_mistaken_for_a_delay() -> None:
    """MuJoCo's friction loss reverses about 10 ms before the joint, which must not give a torque delay of 3 ms."""
    pytest.importorskip("mujoco")
    plant = Plant(500.0, 3, duration=5.0, name="ur10", engine="mujoco", soft=True)
    study = Study.of(plant.robot, plant.sampled(), plant.terms, Preparation().for_rows(True, True))
    found = delay_of(study.base, tuple(study.motions()))
    assert found is not None
    assert abs(found.delay_s) < 2e-4  # 3.4e-3 with the rows around reversals


def test_payload_identification_finds_the_held_torque() -> None:
    """The logs show that the torque is held, which gives the right payload."""
    held, bare = (Plant(250.0, seed, duration=6.0).held() for seed in (5, 6))

    def load(between: str) -> np.ndarray:
        how = Preparation(torque_between=between)  # type: ignore[arg-type]
        return identify_payload(
            PLANT.robot, [held], [bare], terms=PLANT.terms, physical=False, preparation=how
        ).load.parameters

    assert load("auto") == pytest.approx(load("held"))
    assert np.linalg.norm(load("auto")) < 0.5 * np.linalg.norm(load("averaged"))
