"""Payloads from joint torques: simulated arms with known truth, and a known mass on a real arm."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.parameters.inertial import nearest_possible_body, parameters_of_pseudo_inertia
from steelyard.parameters.terms import nominal_terms
from steelyard.payload import Payload, drive_gains, identify_payload, repeats
from steelyard.payload.payload import cuboid
from steelyard.robot import load_robot
from steelyard.robot.spatial import pseudo_inertia
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

ROBOT = load_robot("ns16")
BODY = cuboid(6.0, np.array([0.2, 0.15, 0.1]), np.array([0.05, -0.03, 0.12]))
TERMS = nominal_terms(ROBOT)[0]


def motion(seed: int, duration: float = 12.0, rate: float = 200.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    w = 2.0 * np.pi * np.array([0.25, 0.5, 0.75, 1.0, 1.25])
    a, p = rng.uniform(0.2, 0.5, (5, 6)) / w[:, None] * 2.0, rng.uniform(0, 2 * np.pi, (5, 6))
    angle = t[:, None, None] * w[:, None] + p
    q = (a * np.sin(angle)).sum(1)
    dq = (a * w[:, None] * np.cos(angle)).sum(1)
    ddq = -(a * w[:, None] ** 2 * np.sin(angle)).sum(1)
    return t, q, dq, ddq


def log_of(model: Model, seed: int, noise: float = 0.5, gains: np.ndarray | float = 1.0) -> Log:
    t, q, dq, ddq = motion(seed)
    tau = model.torque(q, dq, ddq) + noise * np.random.default_rng(100 + seed).normal(size=q.shape)
    return Log(model.robot.joint_names, t, q, dq=dq, tau=tau / gains)


def plant(load: np.ndarray | None = None, stiffer: float = 1.0) -> Model:
    """The arm with a payload in the frame of its last link, which also scales the friction."""
    robot = ROBOT if load is None else Payload("", load, np.zeros((10, 10))).attach_to(ROBOT)
    bound, values = nominal_terms(ROBOT)
    inertial = np.array([t.inertial for t, _ in bound.with_coordinates for _ in t.columns])
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, np.where(inertial, 1.0, stiffer) * values]))


def test_a_pair_of_logs_gives_the_payload_within_its_error_bars() -> None:
    deviations = []
    for seed in range(4):
        found = identify_payload(
            ROBOT, log_of(plant(BODY, 1.1), 10 + seed), log_of(plant(), seed), terms=TERMS, physical=False
        ).load
        deviations.append((found.parameters - BODY) / found.standard_errors)
        assert found.mass == pytest.approx(6.0, abs=5 * found.mass_error)
    # The standard deviation of forty deviations, in standard errors, is 1 ± 0.11 (one σ).
    assert 0.6 < np.std(deviations) < 1.4


def test_several_payloads_and_a_known_arm() -> None:
    other = cuboid(2.0, np.array([0.1, 0.1, 0.1]), np.array([0.0, 0.05, 0.05]))
    together = identify_payload(
        ROBOT, [[log_of(plant(BODY), 1)], [log_of(plant(other), 2)]], log_of(plant(), 3), terms=TERMS
    )
    assert [x.mass for x in together.loads] == pytest.approx([6.0, 2.0], abs=0.1)
    known = identify_payload(ROBOT, log_of(plant(BODY), 4), arm=plant())
    # A known arm gives smaller errors from the same log.
    # Central differences at 200 Hz make accelerations of 1.25 Hz too small by 0.03 %, which exceeds the noise.
    assert known.load.mass == pytest.approx(6.0, rel=2e-3)
    assert known.load.mass_error < together.loads[0].mass_error
    assert known.load.possible


def test_gains_from_a_known_payload() -> None:
    truth = np.array([1.3, 0.8, 1.1, 0.9, 1.2, 1.05])
    load = Payload(ROBOT.link_names[-1], BODY, np.zeros((10, 10)))
    found = drive_gains(ROBOT, log_of(plant(BODY), 1, 0.2, truth), log_of(plant(), 2, 0.2, truth), load, terms=TERMS)
    np.testing.assert_array_less(np.abs(found.values - truth) / found.standard_errors, 4.0)
    assert np.all(found.standard_errors < 0.05 * truth)


def test_bad_pairs_are_refused() -> None:
    log = log_of(plant(), 0)
    with pytest.raises(SteelyardError, match="logs without it, or a model"):
        identify_payload(ROBOT, log)
    renamed = Log(tuple(f"x{k}" for k in range(6)), log.t, log.q, tau=log.tau)
    with pytest.raises(SteelyardError, match="The log has joints x0"):
        identify_payload(ROBOT, renamed, log)
    with pytest.raises(SteelyardError, match="There is no frame 'tol'"):
        identify_payload(ROBOT, log, log, frame="tol")
    still = Log(log.joints, log.t, np.zeros_like(log.q), tau=log.tau)
    with pytest.raises(SteelyardError, match="no joint moves"):
        identify_payload(ROBOT, still, log)
    with pytest.raises(SteelyardError, match="another robot"):
        identify_payload(ROBOT, log, arm=Model.nominal(load_robot("arm7")))
    empty = identify_payload(ROBOT, log_of(plant(), 5), log, terms=TERMS)
    assert any("there may be no payload" in note for note in empty.load.notes)


def test_the_nearest_possible_body_is_optimal() -> None:
    cp = pytest.importorskip("cvxpy")
    impossible = BODY.copy()
    impossible[4] *= 0.2  # Ixx far below the limit of the first moments
    covariance = np.diag((0.02 * np.maximum(np.abs(BODY), 0.05)) ** 2)
    assert np.linalg.eigvalsh(pseudo_inertia(impossible))[0] < 0.0
    found, moved = nearest_possible_body(impossible, covariance)
    assert moved
    assert np.linalg.eigvalsh(pseudo_inertia(found))[0] > 0.0
    theta = cp.Variable(10)
    basis = [pseudo_inertia(e) for e in np.eye(10)]
    inside = sum(theta[k] * basis[k] for k in range(10)) >> 0
    cost = cp.sum_squares(cp.multiply(1 / np.sqrt(np.diag(covariance)), theta - impossible))
    best = cp.Problem(cp.Minimize(cost), [inside]).solve(solver="CLARABEL")
    ours = float(np.sum((found - impossible) ** 2 / np.diag(covariance)))
    assert ours == pytest.approx(best, rel=1e-3)  # ours is inside by a margin of 1e-6
    same, moved = nearest_possible_body(BODY, covariance)
    assert not moved
    np.testing.assert_array_equal(same, BODY)
    np.testing.assert_allclose(parameters_of_pseudo_inertia(pseudo_inertia(BODY)), BODY)


def test_intervals_of_repeats_use_students_t() -> None:
    rng = np.random.default_rng(0)
    loads = [Payload("f", BODY + 0.01 * rng.normal(size=10), np.eye(10)) for _ in range(30)]
    found = repeats(loads)
    # Table I of the paper follows z/√(n−1) = 0.4784 s; the correct small-sample factor is 0.503 s.
    np.testing.assert_allclose(found.interval_as_printed() / found.std, 0.4784, rtol=1e-3)
    np.testing.assert_allclose(found.interval() / found.std, 0.503, rtol=1e-3)


DATA = os.environ.get("STEELYARD_DATA")
UR = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint"]
MAPPING = {"joints": UR, "current": "i{}", "torque_constants": [11.976, 11.976, 9.839, 10.763, 10.763, 10.763]}


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
@pytest.mark.parametrize(
    ("bare", "loaded"),
    [("20_02_19_14harm50sec", "20_02_19_14harm50secLoad"), ("20_02_19_15harm50sec", "20_02_19_15harm50secLoad")],
)
def test_the_known_mass_on_a_real_ur10e(bare: str, loaded: str) -> None:
    assert DATA is not None
    folder = Path(DATA) / "ur10e"
    robot = load_robot(folder / "robot.urdf")
    logs = [read_log(folder / f"ident__{name}.parquet", robot, MAPPING) for name in (loaded, bare)]
    found = identify_payload(robot, logs[0], logs[1], frame="tool0").load
    low, high = found.interval()
    assert low < 2.805 < high
    assert found.mass == pytest.approx(2.805, abs=0.1)
    assert found.possible
