"""Copies of a fitted log are detected; a second run of the same motion is not a copy."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steelyard.identification._copies import copied_ranges
from steelyard.identification.identify import identify
from steelyard.robot.load import load_robot
from steelyard.signals.excerpt import part_of
from steelyard.signals.log import Log
from steelyard.signals.read import read_log

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from log_faults import backwards, shaken, thinned
from sound_logs import simulated_base, simulated_log, truth_of


def piece(log: Log, first: float, last: float) -> Log:
    out = part_of(log, [(int(first * len(log)), int(last * len(log)))])
    assert out is not None
    return out


def spliced(a: Log, b: Log) -> Log:
    t = np.concatenate([a.t, b.t - b.t[0] + a.t[-1] + 0.01])
    return Log(a.joints, t, np.vstack([a.q, b.q]), tau=np.vstack([a.tau, b.tau]))


def slowed(log: Log, factor: float) -> Log:
    """Resampled, as a player does that runs slower."""
    t = np.arange(0.0, factor * log.t[-1], 0.01)
    q, tau = (np.column_stack([np.interp(t / factor, log.t, c) for c in x.T]) for x in (log.q, log.tau))
    return Log(log.joints, t, q, tau=tau)


def mirrored(log: Log) -> Log:
    signs = np.array([-1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    return replace(log, q=signs * log.q, tau=signs * log.tau, dq=None)


COPIES: dict[str, tuple[Callable[[Log], Log], float]] = {
    "as it is": (lambda log: replace(log, meta={"source": "other.csv"}), 1.0),
    "with noise of its own, another clock": (shaken, 1.0),
    "every third row": (thinned(3), 1.0),
    "a piece": (lambda log: piece(log, 0.3, 0.8), 1.0),
    "a tenth slower": (lambda log: slowed(log, 1.1), 1 / 1.1),
    "twice as slow": (lambda log: slowed(log, 2.0), 0.5),
    "a tenth slower by its stamps": (lambda log: replace(log, t=1.1 * log.t), 1 / 1.1),
    "backwards": (backwards, -1.0),
    "mirrored": (mirrored, 1.0),
    "with another scale of the torques": (lambda log: replace(log, tau=1.3 * log.tau), 1.0),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_recognised_with_its_speed(name: str) -> None:
    fit = simulated_base().case.fit[0]
    change, speed = COPIES[name]
    copy = change(fit)
    ranges, found_speed = copied_ranges(copy, fit)
    assert sum(b - a for a, b in ranges) > 0.98 * len(copy)
    assert found_speed == pytest.approx(speed, rel=1e-3)


def test_the_copied_part_of_a_spliced_log_is_located_to_a_window() -> None:
    case = simulated_base().case
    log = spliced(piece(case.judge[0], 0.0, 0.5), piece(case.fit[0], 0.4, 0.9))
    ((first, last),), _ = copied_ranges(log, case.fit[0])
    assert abs(first - 1250) <= 300
    assert last == len(log)


def test_a_motion_that_is_played_again_is_no_copy() -> None:
    base = simulated_base()
    robot, truth = base.case.robot, truth_of(base.case.robot, 0)
    fit = base.case.fit[0]
    again = simulated_log(robot, truth, 1, noisy=0.0)
    rng = np.random.default_rng(9)
    for size in (0.02, 0.005):  # of the fitted log: 0.02
        noise = size * np.std(again.tau, axis=0) * rng.normal(size=again.tau.shape)
        assert copied_ranges(replace(again, tau=again.tau + noise), fit) == ([], 0.0)


def test_runs_with_smoothed_torques_are_distinguished() -> None:
    # Above the cut-off of a smoothing filter there is little noise, and both runs have the same friction jumps.
    base = simulated_base()
    again = simulated_log(base.case.robot, truth_of(base.case.robot, 0), 1, noisy=0.0)
    rng = np.random.default_rng(9)
    runs = []
    for _ in range(2):
        tau = again.tau + 0.02 * np.std(again.tau, axis=0) * rng.normal(size=again.tau.shape)
        tau = np.column_stack([np.convolve(c, np.hanning(13) / np.hanning(13).sum(), mode="same") for c in tau.T])
        runs.append(replace(again, tau=tau))
    assert copied_ranges(runs[0], runs[1]) == ([], 0.0)
    assert copied_ranges(slowed(runs[0], 1.1), runs[0])[0]


def test_the_rest_of_a_spliced_log_validates() -> None:
    case = simulated_base().case
    log = spliced(piece(case.judge[0], 0.0, 0.5), piece(case.fit[0], 0.4, 0.9))
    found = identify(case.robot, case.fit, [log], files=False)
    (copy,) = found.copies
    assert copy.cut
    assert found.torque_error.unseen
    assert found.validation[0].samples < 0.6 * len(log)
    assert "This part is excluded from validation" in " ".join(found.verdict.reasons)


def test_a_slowed_copy_is_excluded() -> None:
    case = simulated_base().case
    found = identify(case.robot, case.fit, [slowed(case.fit[0], 1.1)], files=False)
    assert found.verdict.grade != "good"
    assert not found.torque_error.unseen
    assert "at 0.91 times its speed" in found.verdict.reasons[0]
    assert "All validation logs are copies" in " ".join(found.verdict.reasons)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["airbot_play", "kuka_kr300", "dfki_dp_c1", "emps"])
def test_real_logs_of_one_robot_are_no_copies_of_each_other(name: str) -> None:
    folder = Path(os.environ.get("STEELYARD_DATA", ".")) / name
    if not folder.is_dir():
        pytest.skip("STEELYARD_DATA has no such logs")
    robot = load_robot(folder / "robot.urdf", snap=1e-4)
    logs = [read_log(f, robot) for f in sorted(folder.glob("*.parquet"))]
    for a, b in itertools.permutations(logs, 2):
        assert copied_ranges(a, b) == ([], 0.0)
