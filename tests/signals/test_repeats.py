"""Repeated rows are found, dropped and reported; a standing robot loses no rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from log_files import real_logs

import steelyard as sy
from steelyard.demo import simulated_log
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, chosen_cutoff, prepare
from steelyard.signals.read import log_chunks, read_log
from steelyard.signals.repeats import without_repeats

RATE = 500.0


def log_of(q: np.ndarray, tau: np.ndarray, t: np.ndarray, dq: np.ndarray | None = None) -> Log:
    return Log(tuple(f"joint{k + 1}" for k in range(q.shape[1])), t, q, dq=dq, tau=tau)


def noisy_motion(samples: int = 6000, rate: float = RATE) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    t = np.arange(samples) / rate
    phases = 2.0 * np.pi * np.outer(t, [0.4, 0.3])
    q, dq = np.sin(phases), 2.0 * np.pi * np.array([0.4, 0.3]) * np.cos(phases)
    return t, q + 1e-5 * rng.normal(size=q.shape), dq + 1e-3 * rng.normal(size=q.shape), rng.normal(size=q.shape) + q


def kinds(log: Log) -> set[str]:
    return {f.kind for f in log.findings}


def test_a_log_with_every_row_three_times_gives_the_plain_log() -> None:
    t, q, dq, tau = noisy_motion()
    plain = log_of(q, tau, t, dq)
    times = (t[:, None] + np.arange(3) / (3.0 * RATE)).ravel()
    tripled = log_of(q.repeat(3, axis=0), tau.repeat(3, axis=0), times, dq.repeat(3, axis=0))
    found = without_repeats(tripled)
    np.testing.assert_allclose(found.t, t, atol=1e-12)
    np.testing.assert_array_equal(found.q, q)
    (finding,) = (f for f in found.findings if f.kind == "repeated")
    assert finding.count == 2 * len(t)
    assert "67 %" in finding.message
    assert without_repeats(plain) is plain
    assert without_repeats(found) is found
    assert chosen_cutoff([tripled], Preparation()) == pytest.approx(chosen_cutoff([plain], Preparation()), rel=1e-9)
    (a,), (b,) = (list(prepare(log, Preparation(), 8.0)) for log in (plain, tripled))
    assert a.filter.period == pytest.approx(b.filter.period, rel=1e-9)
    np.testing.assert_allclose(a.ddq[a.keep], b.ddq[b.keep], atol=1e-6)


def test_two_beating_clocks_give_the_clock_of_distinct_rows() -> None:
    """A logger at 97 Hz, a robot at 75 Hz: each answer has the time of its first row."""
    t, q, dq, tau = noisy_motion(3000, 75.0)
    asked = np.arange(0.0, t[-1], 1.0 / 97.0)
    answer = np.searchsorted(t, asked, side="right") - 1
    log = log_of(q[answer], tau[answer], asked, dq[answer])
    found = without_repeats(log)
    assert len(found.segments) == 1
    assert len(found) == len(np.unique(answer))
    (motion,) = prepare(log, Preparation(), 5.0)
    assert motion.filter.period == pytest.approx(1.0 / 75.0, rel=0.01)
    assert np.max(np.abs(np.diff(found.t))) < 2.1 / 97.0


def test_a_standing_robot_in_a_log_without_noise_loses_no_rows() -> None:
    t = np.arange(5000) / RATE
    going = np.clip(t - 4.0, 0.0, 2.0)
    q = np.column_stack([1.0 - np.cos(np.pi * going), 0.3 * going**2 * (2.0 - going) ** 2])
    tau = np.where(t[:, None] < 4.0, 3.0, np.where(t[:, None] < 6.0, 5.0 + q, 2.0)) * np.ones((1, 2))
    log = log_of(q, tau, t)
    found = without_repeats(log)
    assert found is log


def test_a_logger_that_stops_while_the_robot_moves_cuts_the_log() -> None:
    t, q, dq, tau = noisy_motion()
    frozen = np.arange(len(t))
    frozen[2000:2100] = 1999
    log = log_of(q[frozen], tau[frozen], t, dq[frozen])
    found = without_repeats(log)
    assert found.segments == ((0, 2000), (2000, 5900))
    assert {"repeated", "frozen"} <= kinds(found)
    assert found.t[2000] == t[2100]


def test_a_velocity_with_updates_in_every_third_row_is_interpolated() -> None:
    t, q, dq, tau = noisy_motion()
    held = np.arange(len(t)) // 3 * 3
    found = without_repeats(log_of(q, tau, t, dq[held]))
    assert kinds(found) == {"held"}
    truth = noisy_motion()[2]
    assert found.dq is not None
    # Noise of 1e-3 on either side; without interpolation the phase lag would cause 0.005 rad/s.
    assert np.std(found.dq - truth) < 2e-3
    np.testing.assert_array_equal(found.q, q)


def test_a_coarse_position_is_not_a_slow_one() -> None:
    t, q, _, tau = noisy_motion()
    coarse = np.round(q, 2)
    found = without_repeats(log_of(coarse, tau, t))
    np.testing.assert_array_equal(found.q, coarse)


def test_gaps_are_preserved() -> None:
    t, q, _, tau = noisy_motion()
    later = np.concatenate([t[:3000], t[3000:] + 5.0])
    twice = log_of(q.repeat(2, axis=0), tau.repeat(2, axis=0), (later[:, None] + [0.0, 0.5 / RATE]).ravel())
    found = without_repeats(replace(twice, segments=((0, 6000), (6000, 12000))))
    assert found.segments == ((0, 3000), (3000, 6000))
    np.testing.assert_allclose(found.t, later)


def test_repeated_rows_do_not_change_the_estimate() -> None:
    truth = sy.Model.nominal(builtin("arm7"))
    log = simulated_log(truth, 1)
    h = float(np.median(np.diff(log.t)))
    times = (log.t[:, None] + h / 3.0 * np.arange(3)).ravel()
    signals = {name: None if x is None else x.repeat(3, axis=0) for name, x in log.signals.items()}
    tripled = Log(log.joints, times, **signals)  # type: ignore[arg-type]
    plain, thrice = (identify(truth.robot, one, physical=False, check=False) for one in (log, tripled))
    assert "repeated" in {f.kind for _, f in thrice.findings}
    shift = np.abs(plain.estimate.beta - thrice.estimate.beta) / plain.estimate.standard_errors
    assert np.max(shift) < 0.1
    np.testing.assert_allclose(plain.estimate.standard_errors, thrice.estimate.standard_errors, rtol=0.05)


def test_logs_of_krang_with_repeated_rows() -> None:
    """In the training run 23 % of the rows are repeated, and the logger stops nine times for 0.1 s."""
    folder = real_logs("krang_arm")
    robot = sy.load_robot(folder / "robot.urdf")
    mapping = {"torque_constants": [18.7144, 18.7144, 23.75, 23.75, 8.832, 8.832, 8.832], "gravity": [0, -9.81, 0]}
    log = read_log(folder / "train.parquet", robot, mapping)
    finding = next(f for f in log.findings if f.kind == "repeated")
    assert 0.19 * 4618 < finding.count < 0.23 * 4618
    assert "frozen" in kinds(log)
    assert chosen_cutoff([log], Preparation()) < 12.0  # 40 Hz with the repeated rows, due to their spectral lines
    pieces = list(log_chunks(folder / "train.parquet", robot, mapping, size=1000, overlap=0))
    # A piece lacks the row before its first one, and the speed of the robot in other pieces: one stop of ten
    # rows counts as a standstill there.
    assert 0 <= sum(len(p) for p in pieces) - len(log) <= len(pieces) + 10
