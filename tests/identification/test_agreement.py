"""Several logs, several answers: the algebra against plain least squares, and planted differences on simulated arms."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy.special import fdtri
from scipy.stats import norm

from steelyard.dynamics.model import Model
from steelyard.identification.agreement import FALSE_ALARMS, Agreement
from steelyard.identification.identification import Identification
from steelyard.identification.identification_run import IdentificationRun, result_json
from steelyard.identification.identify import identify
from steelyard.identification.log_differences import LogDifferences, f_as_z
from steelyard.parameters import terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.regression.data import RegressionData
from steelyard.robot.library import builtin
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log

# ---------------------------------------------------------------- the algebra, on rows that are made up


@cache
def base() -> BaseParameters:
    robot = builtin("rotradi")
    return base_parameters(robot, terms(robot, "viscous"))


def rows(rng: np.random.Generator, beta: np.ndarray, samples: int, correlation: float = 0.0) -> tuple[list, list]:
    """[A y] of each joint with first-order noise; one joint has only some of the columns."""
    A, y = [], []
    for _ in range(3):
        a = rng.normal(size=(samples, len(beta)))
        noise = rng.normal(size=samples)
        for k in range(1, samples):
            noise[k] += correlation * noise[k - 1]
        A.append(a)
        y.append(a @ beta + 0.3 * noise)
    return A, y


def data(A: list[np.ndarray], y: list[np.ndarray]) -> RegressionData:
    b = base()
    return RegressionData.from_arrays(b.robot.joint_names, b.independent, A, y, len(b.parameters))


def sums_of(logs: list[tuple[list, list]]) -> LogDifferences:
    parts = [data(*log) for log in logs]
    every = [np.vstack([a for A, _ in logs for a in A]), np.concatenate([b for _, y in logs for b in y])]
    beta = np.linalg.lstsq(*every, rcond=None)[0]
    return LogDifferences(parts, base(), beta, np.ones(3))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_a_shift_is_that_of_least_squares_with_columns_of_the_logs_own(seed: int, width: int) -> None:
    """Letting log 2 have its own β along some columns is least squares with those columns, zero in the other logs."""
    rng, p = np.random.default_rng(seed), base().rank
    logs = [rows(rng, np.arange(1.0, p + 1), n) for n in (200, 150, 300)]
    sums = sums_of(logs)
    C = rng.normal(size=(p, width))
    library = np.broadcast_to(C, (3, p, width))
    plain = [np.broadcast_to(np.eye(p), (3, p, p))] * 3
    shift = sums.tests(library, plain, [tuple(range(width))])[2][0]
    stacked, right, others = [], [], []
    for i, (A, y) in enumerate(logs):
        for w, a, b in zip(sums.weights, A, y, strict=True):
            stacked.append(w * np.hstack([a, a @ C if i == 2 else np.zeros((len(a), width))]))
            others.append(w * a)
            right.append(w * b)
    found, left, *_ = np.linalg.lstsq(np.vstack(stacked), np.concatenate(right), rcond=None)
    before = np.linalg.lstsq(np.vstack(others), np.concatenate(right), rcond=None)[1]
    np.testing.assert_allclose(shift.change, found[p:], rtol=1e-6, atol=1e-9)
    assert shift.gain == pytest.approx(float(before[0] - left[0]), rel=1e-5)
    assert shift.columns == width


def test_separate_estimates_are_fits_to_single_logs_and_nan_where_not_identifiable() -> None:
    rng, p = np.random.default_rng(3), base().rank
    logs = [rows(rng, np.arange(1.0, p + 1), 250) for _ in range(3)]
    for a, y in zip(*logs[1], strict=True):
        y -= 3.0 * a[:, 2]
        a[:, 2] = 0.0  # this log does not show the third parameter
    sums = sums_of(logs)
    values, errors = sums.separate_estimates()
    for i, (A, y) in enumerate(logs):
        W = np.vstack([w * a for w, a in zip(sums.weights, A, strict=True)])
        own = np.linalg.lstsq(W, np.concatenate([w * b for w, b in zip(sums.weights, y, strict=True)]), rcond=None)[0]
        seen = np.arange(p) != 2 if i == 1 else np.full(p, True)
        np.testing.assert_allclose(values[i, seen], own[seen], rtol=1e-8)
        assert np.array_equal(np.isfinite(values[i]), seen)
        # White noise and columns of unit variance: σ/√(3n), each known to some 15 % by 750 rows in stretches.
        np.testing.assert_allclose(errors[i, seen], 0.3 / np.sqrt(750.0), rtol=0.4)


@given(st.integers(1, 10), st.floats(9.0, 200.0), st.floats(1e-5, 0.3))
def test_rarity_is_that_of_the_f_distribution(m: int, n: float, p: float) -> None:
    """Paulson's formula against the exact quantile: to 5 % at 1 %, never half as rare again nor less than a third."""
    told = norm.sf(f_as_z(float(fdtri(m, n, 1.0 - p)), m, n))
    assert 0.8 * p < told < 3.0 * p


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_chance_is_what_it_is_taken_for(correlation: float) -> None:
    """Of logs that are alike p is below 5 % in some 5 % of cases, be the noise white or not.

    300 draws of 5 % scatter by 1.3 %; parameters of one draw are nearly independent here.
    """
    rng, p = np.random.default_rng(11), base().rank
    plain = [np.broadcast_to(np.eye(p), (3, p, p))] * 3
    library, groups = np.broadcast_to(np.eye(p), (3, p, p)), [(k,) for k in range(p)]
    rare = []
    for _ in range(25):
        sums = sums_of([rows(rng, np.ones(p), 400, correlation) for _ in range(3)])
        rare += [shift.p < 0.05 for shift in sums.tests(library, plain, groups)[0]]
    assert 0.01 < np.mean(rare) < 0.09


# ---------------------------------------------------------------- planted differences


def robot_and_truth() -> tuple[Robot, Model]:
    robot = builtin("szabo3r")
    bound = terms(robot, "viscous", "coulomb", "offset")
    return robot, Model(robot, bound, np.concatenate([robot.inertial_parameters, [0.8] * 3, [1.0] * 3, [0.2] * 3]))


RATES = 2.0 * np.pi * np.array([0.11, 0.23, 0.37, 0.53])


def log_of(truth: Model, seed: int, size: float = 1.0, scale: tuple[float, ...] = (1.0, 1.0, 1.0)) -> Log:
    rng = np.random.default_rng(seed)
    amplitude, phase = size * rng.uniform(0.1, 0.5, (4, 3)), rng.uniform(0.0, 6.0, (4, 3))
    t = np.arange(4000) / 200.0
    angle = t[:, None, None] * RATES[:, None] + phase
    q, dq = (amplitude * np.sin(angle)).sum(1), (amplitude * RATES[:, None] * np.cos(angle)).sum(1)
    tau = truth.torque(q, dq, -(amplitude * RATES[:, None] ** 2 * np.sin(angle)).sum(1)) * np.array(scale)
    tau += 0.03 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    return Log(truth.robot.joint_names, t, q, dq=dq, tau=tau)


def changed(truth: Model, **changes: float) -> Model:
    names = [p.name for p in truth.dynamics.parameters]
    theta = np.array(truth.theta)
    for name, change in changes.items():
        theta[names.index(name)] += change
    return replace(truth, theta=theta)


def found_from(*logs: Log, **options: object) -> Identification:
    robot, _ = robot_and_truth()
    return identify(robot, logs, names=["a", "b", "c"], check=False, **options)  # type: ignore[arg-type]


def agreement(*logs: Log) -> Agreement:
    told = found_from(*logs).agreement
    assert told is not None
    return told


def test_one_log_has_nobody_to_agree_with() -> None:
    _, truth = robot_and_truth()
    found = found_from(log_of(truth, 1))
    assert found.agreement is None
    assert result_json(found)["between_logs"] is None


def test_logs_of_a_robot_that_did_not_change_agree() -> None:
    """Five draws of three logs of other motions and sizes: with a level of 1 % one alarm would come in 20 times."""
    _, truth = robot_and_truth()
    for seed in range(5):
        told = agreement(*(log_of(truth, 10 * seed + k, 1.0 - 0.2 * k) for k in range(3)))
        assert not told.disagreements
        away = [p.away for p in told.parameters if p.away is not None]
        assert len(away) == len(told.parameters)
        # The median of the largest of three |z|, two of them independent, is near 1.1.
        assert 0.6 < np.median(away) < 1.9


@pytest.mark.parametrize(
    ("changes", "scale", "names", "size"),
    [
        ({"F03": 0.15}, (1.0, 1.0, 1.0), {"F03"}, 0.15),
        ({"Fv2": -0.25}, (1.0, 1.0, 1.0), {"Fv2"}, -0.25),
        ({"Fc1": 0.2}, (1.0, 1.0, 1.0), {"Fc1"}, 0.2),
        ({}, (1.0, 1.07, 1.0), {"scale"}, 0.07),
        ({"m3": 0.5}, (1.0, 1.0, 1.0), {"m3"}, 0.5),
    ],
)
def test_what_differs_in_one_log_is_named_with_its_size(
    changes: dict[str, float], scale: tuple[float, ...], names: set[str], size: float
) -> None:
    _, truth = robot_and_truth()
    told = agreement(log_of(truth, 1), log_of(changed(truth, **changes), 2, scale=scale), log_of(truth, 3, 0.8))
    first = told.disagreements[0]
    assert first.log == "b"
    assert names <= set(first.parameters)
    assert first.p * told.asked < FALSE_ALARMS
    k = first.parameters.index(next(iter(names)))
    # A scale is estimated to first order about the mean of the logs.
    assert first.changes[k] == pytest.approx(size, rel=0.15)
    assert {d.log for d in told.disagreements} == {"b"}
    assert "'b' disagrees with the other logs" in told.reasons[0]


def test_a_log_that_disagrees_caps_the_verdict_and_is_reported_everywhere() -> None:
    _, truth = robot_and_truth()
    logs = [log_of(truth, 1), log_of(truth, 2), log_of(changed(truth, F02=0.5), 3)]
    found = found_from(*logs, validate=[log_of(truth, 9)])
    assert found_from(*logs[:2], validate=[log_of(truth, 9)]).verdict.grade == "good"
    assert found.verdict.grade == "usable"
    assert any("'c' disagrees" in reason and "F02" in reason for reason in found.verdict.reasons)
    written = json.loads(json.dumps(result_json(found)["between_logs"], allow_nan=False))
    assert written["logs"] == ["a", "b", "c"]
    assert [p["name"] for p in written["parameters"]] == list(found.base.names)
    offset = next(p for p in written["parameters"] if p["name"] == "F02")
    assert offset["worst"] == "c"
    assert offset["values"][2] - offset["values"][0] == pytest.approx(0.5, abs=0.1)
    assert offset["excess_std"] > 0.1
    run = IdentificationRun(found)
    console = Console(record=True, width=200, file=open("/dev/null", "w"))  # noqa: SIM115
    run.print_to(console)
    assert "'c' disagrees" in console.export_text()
    assert "Log by log" in run.page()


def test_of_two_logs_the_second_is_compared_with_the_first() -> None:
    _, truth = robot_and_truth()
    told = agreement(log_of(truth, 1), log_of(changed(truth, F01=0.4), 2))
    (reason,) = told.reasons
    assert "'b' disagrees with 'a'" in reason
    assert "F01" in reason
    assert all(p.worst == "b" for p in told.parameters)


def test_a_log_in_which_a_joint_stands_is_compared_by_what_it_shows() -> None:
    """A log with the last joint at standstill gives no value for its friction, but is compared on the rest."""
    _, truth = robot_and_truth()
    still = log_of(changed(truth, F01=0.4), 4)
    q, dq = np.array(still.q), np.array(still.dq)
    q[:, 2], dq[:, 2] = 0.3, 0.0
    ddq = np.gradient(dq, 0.005, axis=0)
    tau = changed(truth, F01=0.4).torque(q, dq, ddq) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    told = agreement(log_of(truth, 1), log_of(truth, 2), replace(still, q=q, dq=dq, tau=tau))
    drag = next(p for p in told.parameters if p.name == "Fv3")
    assert drag.values[2] is None
    assert drag.values[0] is not None
    assert told.disagreements[0].log == "c"
    assert "F01" in told.disagreements[0].parameters
