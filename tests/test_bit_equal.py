"""The same log gives the same bytes, whatever the machine is set to (threads, hash seed, time zone, locale, cache), and
whether it is held in memory or streamed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.assessment.holdout import split_last
from steelyard.check import check_log
from steelyard.demo import simulated_log
from steelyard.identification.identify import identify
from steelyard.identification.identify_files import identify_files
from steelyard.signals import source

SETTINGS: dict[str, dict[str, str]] = {
    "two threads, another hash seed and time zone": {
        "OPENBLAS_NUM_THREADS": "2", "STEELYARD_THREADS": "2", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo",
    },
    "one thread, a cold cache and another locale": {
        "OPENBLAS_NUM_THREADS": "1", "STEELYARD_THREADS": "1", "PYTHONHASHSEED": "9", "LC_ALL": "C",
        "STEELYARD_CACHE": "cold",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, and the run of it as this machine is."""
    place = tmp_path_factory.mktemp("equal")
    truth = sy.Model.nominal(sy.load_robot("rotradi"))
    log = simulated_log(truth, seed=1)
    assert log.dq is not None
    assert log.tau is not None
    head = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(truth.robot.dof))]
    table = np.column_stack([log.t, log.q, log.dq, log.tau])
    np.savetxt(place / "log.csv", table, delimiter=",", header=",".join(head), comments="")
    identified(place, "usual", {})
    return place


def identified(place: Path, name: str, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "steelyard", "identify", "rotradi", "log.csv", "--holdout", "0.3", "-o", name]
    subprocess.run(command, cwd=place, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_file_of_a_run_is_the_same(folder: Path, name: str) -> None:
    given = SETTINGS[name]
    if "STEELYARD_CACHE" in given:
        given = {**given, "STEELYARD_CACHE": str(folder / "cold")}
    identified(folder, name, given)
    files = sorted(p.name for p in (folder / "usual").iterdir())
    assert files == sorted(p.name for p in (folder / name).iterdir())
    for file in files:
        usual, other = ((folder / run / file).read_bytes() for run in ("usual", name))
        if file == "manifest.json":  # it alone says where the run was written
            usual, other = (re.sub(rb'"command": "[^"]*"', b"", x) for x in (usual, other))
        assert usual == other, file


def kept(found: sy.Identification, folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in found.save(folder).iterdir()}


def broken(place: Path) -> Path:
    """The log with stamps since 1970 that jitter, rows that come twice or late, and a gap."""
    table = np.loadtxt(place / "log.csv", delimiter=",", skiprows=1)
    table[:, 0] += 1.6e9 + np.random.default_rng(0).uniform(0.0, 2e-4, len(table))
    rows = np.arange(len(table))
    rows[1000:1100:10] -= 1
    rows[5000:5002] = rows[[5001, 5000]]
    table = np.delete(table[rows], slice(8000, 8200), axis=0)
    head = (place / "log.csv").read_text().split("\n", 1)[0]
    np.savetxt(place / "broken.csv", table, delimiter=",", header=head, comments="", fmt="%.17g")
    return place / "broken.csv"


# (Blocks of a long log in memory are taken out of the whole, not piece by piece.)
@pytest.mark.parametrize(
    ("pieces", "holds_out"),
    [(1, {"holdout": 0.3}), (1, {"holdout_blocks": "2:3"}), (4, {"holdout": 0.3}), (4, {})],
)
def test_streamed_and_in_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: int, holds_out: dict[str, str | float]
) -> None:
    """A log has the same pieces wherever it is held; a log in one piece stays in one piece after each repair."""
    robot = sy.load_robot("rotradi")
    path = broken(folder) if pieces == 1 else folder / "log.csv"
    monkeypatch.setattr(source, "PIECE_ROWS", 20_000 // pieces)
    made = {}
    for rows in (1, 10**9):
        monkeypatch.setattr(source, "ROWS_IN_MEMORY", rows)
        made[rows] = kept(identify_files(robot, [path], **holds_out), tmp_path / f"run{rows}")
    assert made[1] == made[10**9]
    assert "result.json" in made[1]


def test_from_python_and_from_a_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log that was read at once and split in memory is the file that is split and streamed."""
    robot = sy.load_robot("rotradi")
    monkeypatch.setattr(source, "PIECE_ROWS", 5_000)
    monkeypatch.setattr(source, "ROWS_IN_MEMORY", 7_500)
    log = sy.read_log(folder / "log.csv", robot)
    used, judged = split_last(log, 0.3)
    names = {"names": ["log"], "validate_names": ["log, held out"]}
    at_once = identify(robot, used, [judged], **names)
    streamed = identify_files(robot, [folder / "log.csv"], holdout=0.3)
    assert kept(at_once, tmp_path / "at_once") == kept(streamed, tmp_path / "streamed")
    assert check_log(robot, log) == check_log(robot, source.open_log(folder / "log.csv", robot))
