"""Compiled code on disk survives races, damage and folders that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from steelyard.dynamics.evaluate import Evaluator
from steelyard.dynamics.function import trace
from steelyard.dynamics.native import _code as cache
from steelyard.dynamics.native.drivers import driver


def double_of(tag: float) -> Evaluator:
    """A tiny function that no other test compiles (the tag is part of its code)."""
    return Evaluator(trace("double", {"x": 1}, lambda x: {(0,): 2.0 * x[0] + tag}, (1,)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    driver("dense")  # the loops that all functions share are not what these tests are about
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_warned", set())
    return tmp_path / "native"


def test_code_is_kept_and_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _ = double_of(1.0).kernel
    assert len(list(folder.glob("*.o"))) == 1
    monkeypatch.setattr("steelyard.dynamics.native._code._compile", lambda *_: pytest.fail("compiled again"))
    again = double_of(1.0)
    _ = again.kernel
    assert again({"x": [3.0]}).tolist() == [7.0]


@pytest.mark.parametrize("damage", [b"", b"rubbish", "cut", "flip"])
def test_damaged_code_is_reported_and_replaced(folder: Path, damage: bytes | str) -> None:
    _ = double_of(2.0).kernel
    (file,) = folder.glob("*.o")
    whole = file.read_bytes()
    changed = {"cut": whole[:-10], "flip": whole[:-1] + bytes([whole[-1] ^ 1])}
    file.write_bytes(changed[damage] if isinstance(damage, str) else damage)
    evaluator = double_of(2.0)
    with pytest.warns(cache.CacheWarning, match="damaged"):
        _ = evaluator.kernel
    assert evaluator({"x": [3.0]}).tolist() == [8.0]
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_only_a_warning(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "native").write_text("a file where the folder should be")
    evaluator = double_of(3.0)
    with pytest.warns(cache.CacheWarning, match="set STEELYARD_CACHE"):
        _ = evaluator.kernel
    assert evaluator({"x": [3.0]}).tolist() == [9.0]
    with warnings.catch_warnings():  # said once, not for every function of every robot
        warnings.simplefilter("error", cache.CacheWarning)
        _ = double_of(4.0).kernel


def test_racing_processes_all_get_working_code(folder: Path) -> None:
    script = (
        "import numpy as np\n"
        "from steelyard.robot.library import builtin\n"
        "r = builtin('rotradi'); s = np.ones((50_000, 3))\n"
        "print(repr(float(r.torque_regressor(s, s, s).sum())))\n"
    )
    environment = dict(os.environ, STEELYARD_CACHE=str(folder.parent))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    results = [run.communicate() for run in runs]
    assert [error for _, error in results] == [b""] * 4
    assert len({output for output, _ in results}) == 1
    assert not list(folder.glob(".new-*"))


def test_the_key_depends_on_the_code(folder: Path) -> None:
    _ = double_of(5.0).kernel
    _ = double_of(6.0).kernel
    assert len(list(folder.glob("*.o"))) == 2
    assert np.isfinite(double_of(5.0)({"x": [1.0]})).all()
