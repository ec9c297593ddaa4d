"""The same log gives the same bytes, whatever the machine is set to: threads, hash seed, time zone, locale, cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.demo import simulated_log

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
        assert (folder / "usual" / file).read_bytes() == (folder / name / file).read_bytes(), file
