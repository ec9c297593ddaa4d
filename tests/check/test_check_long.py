"""A log that does not fit into memory is checked in pieces, and late faults are reported with their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.check import check as check_module
from steelyard.check import check_log
from steelyard.demo import simulated_log
from steelyard.identification.identify import identify
from steelyard.signals import source
from steelyard.signals.log import Log
from steelyard.signals.source import LogFile, open_log

TRUTH = sy.Model.nominal(sy.load_robot("rotradi"))
ROBOT = TRUTH.robot


@pytest.fixture(scope="module")
def log() -> Log:
    return simulated_log(TRUTH, seed=1)


def streamed(log: Log, path: Path, monkeypatch: pytest.MonkeyPatch) -> LogFile:
    """The log as a file of four pieces."""
    assert log.dq is not None
    assert log.tau is not None
    head = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(ROBOT.dof))]
    table = np.column_stack([log.t, log.q, log.dq, log.tau])
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="")
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 1)
    monkeypatch.setattr(source, "PIECE_ROWS", len(log) // 4)
    monkeypatch.setattr(check_module, "PIECE_ROWS", len(log) // 4)
    opened = open_log(path, ROBOT)
    assert isinstance(opened, LogFile)
    return opened


def test_a_sound_log_is_sound_in_pieces(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = check_log(ROBOT, streamed(log, tmp_path / "long.csv", monkeypatch))
    assert found.grade in ("good", "usable")
    assert found.excitation is not None


@pytest.mark.parametrize("by", ["check", "identify"])
def test_late_drop_outs_are_reported_with_their_rows(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Drop-outs in the last quarter only: the first piece is sound, the log is not."""
    assert log.tau is not None
    tau, last = log.tau.copy(), 3 * len(log) // 4
    for start in range(last + 50, len(log) - 50, 80):
        tau[start : start + 5, 0] = 0.0
    long = streamed(replace(log, tau=tau), tmp_path / "long.csv", monkeypatch)
    if by == "check":
        found = check_log(ROBOT, long)
    else:
        passes: list[int] = []
        chunks = source.log_chunks
        monkeypatch.setattr(source, "log_chunks", lambda *a, **b: (passes.append(1), chunks(*a, **b))[1])
        identify(ROBOT, long, plain=True, check=False)
        without = len(passes)
        [(_, found)] = identify(ROBOT, long, plain=True).checks
        assert len(passes) == 2 * without
    [entry] = found.of("drop_out")
    assert entry.message.startswith("Rows ")
    first = int(entry.message.split()[1].replace(",", ""))
    assert last <= first <= last + 2
    assert found.grade != "good"


def test_late_drop_outs_in_a_validation_log_are_reported(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    assert log.tau is not None
    tau = log.tau.copy()
    for start in range(len(log) - 3000, len(log) - 50, 80):
        tau[start : start + 5, 0] = 0.0
    judge = streamed(replace(log, tau=tau), tmp_path / "long.csv", monkeypatch)
    [(_, found)] = identify(ROBOT, log, [judge], plain=True).validation_checks
    assert found.of("drop_out")
