"""The EMPS benchmark by every method of the family, against the values its authors publish.

Janot, Gautier & Brunot 2019: M 95.1089 kg, Fv 203.5034 N s/m, Fc 20.3935 N, offset −3.1648 N.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from steelyard.estimation import Experiment, WeightedLeastSquares, estimator_names, make_experiment_estimator
from steelyard.identification.identify import identify
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.signals.read import read_log
from steelyard.simulation import PID

DATA = os.environ.get("STEELYARD_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")

PUBLISHED = np.array([95.1089, 203.5034, 20.3935, -3.1648])
ALLOWED = np.array([0.01, 0.01, 0.02, 0.10])
# vir = sat ±10 V (kv (kp (qref − q) − dq)) with dq the difference over two periods of 1 ms: one period late.
GTAU, KP, KV = 35.15065188248547, 160.18, 243.45
CONTROLLER = PID(GTAU * KV * KP, GTAU * KV, limit=10.0 * GTAU, lag=1e-3)


@cache
def experiment(smoothing: float) -> Experiment:
    assert DATA is not None
    folder = Path(DATA) / "emps"
    robot = load_robot(folder / "robot.urdf")
    table = pq.read_table(folder / "ident.parquet")
    t, q, tau, wanted = (np.asarray(table[x], dtype=float) for x in ("t", "q1", "tau1", "qref"))
    log = Log(robot.joint_names, t, q[:, None], tau=tau[:, None])
    still = np.zeros((len(t), 1))
    return Experiment.from_logs(
        robot, terms(robot, "viscous", "coulomb", "offset"), log, controller=CONTROLLER,
        references=(wanted[:, None], still, still), smoothing=smoothing,
        preparation=Preparation(cutoff_hz=100.0),  # as for the published values
    )  # fmt: skip


@cache
def base():
    made = experiment(1e-3)
    return base_parameters(made.robot, made.terms)


def error(beta: np.ndarray) -> np.ndarray:
    return np.abs(beta / PUBLISHED - 1.0)


@cache
def smoothing() -> float:
    """How wide a joint's friction turns round, by the likelihood of the positions: no published value is looked at."""
    cloe = make_experiment_estimator("cloe")
    costs = {width: cloe.fit(experiment(width), base()).history[-1]["cost"] for width in (1e-3, 3e-3, 1e-2)}
    return min(costs, key=costs.__getitem__)


def test_least_squares_on_the_measured_motion() -> None:
    estimate = WeightedLeastSquares().fit(experiment(1e-3).regression(base()), base())
    assert base().names == ("m1", "Fv1", "Fc1", "F01")
    assert np.all(error(estimate.beta) < ALLOWED)


@pytest.mark.parametrize("name", [*estimator_names(family="loop"), "ml"])
def test_every_method_comes_to_the_published_values(name: str) -> None:
    estimate = make_experiment_estimator(name).fit(experiment(smoothing()), base())
    assert np.all(error(estimate.beta) < ALLOWED), estimate.beta


def test_a_velocity_delay_of_the_controller_looks_like_mass() -> None:
    """Without its lag, the controller's damping kd · 1 ms = 8.56 kg is missing in the mass of CLOE."""
    made = experiment(3e-3)
    prompt = PID(CONTROLLER.kp, CONTROLLER.kd, limit=CONTROLLER.limit)
    other = Experiment(made.dynamics, made.runs, prompt, smoothing=3e-3)
    estimate = make_experiment_estimator("cloe").fit(other, base())
    assert estimate.beta[0] == pytest.approx(PUBLISHED[0] - GTAU * KV * 1e-3, rel=0.005)


def test_identify_with_a_document_of_the_controller(tmp_path: Path) -> None:
    """The reference is a column of the log; the controller uses no reference velocity."""
    assert DATA is not None
    folder = Path(DATA) / "emps"
    (tmp_path / "reference.toml").write_text('position = ["qref"]\n')
    (tmp_path / "controller.yaml").write_text(
        f"kind: pid\nkp: {GTAU} * {KV} * {KP}\nkd: {GTAU} * {KV}\nlimit: 10 * {GTAU}\nlag: 1e-3\nrate: 1000\n"
        f"reference: {{file: {folder / 'ident.parquet'}, map: reference.toml, follows: [position]}}\n"
    )
    robot = load_robot(folder / "robot.urdf")
    estimate = identify(
        robot, read_log(folder / "ident.parquet", robot), estimator="cloe", terms=["viscous", "coulomb", "offset"],
        controller=tmp_path / "controller.yaml",
    )  # fmt: skip
    assert np.all(error(estimate.estimate.beta) < ALLOWED)
    assert estimate.estimate.physical
