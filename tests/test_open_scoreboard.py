"""The open scoreboard: a method enters as one file or as a command, and a broken one does not stop the others."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
METHOD = """
class Entry:
    name = "{name}"
    def fit(self, problem):
        self.fitted = sum(len(log.t) for log in problem.logs)
    def predict(self, t, q, dq, ddq):
        {body}
"""
# A program that fits a constant per joint.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
what, folder = sys.argv[1], Path(sys.argv[2])
if what == "fit":
    log = np.genfromtxt(folder / "log0.csv", delimiter=",", names=True)
    np.savetxt(folder / "mean.txt", [log[n].mean() for n in log.dtype.names if n.startswith("tau")])
else:
    rows = len(np.loadtxt(folder / "motion.csv", delimiter=",", skiprows=1))
    np.savetxt(folder / "torque.csv", np.tile(np.loadtxt(folder / "mean.txt"), (rows, 1)), delimiter=",")
"""


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("pinocchio", reason="pinocchio is not installed")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("open_scoreboard", BENCHMARKS / "open_scoreboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("entries", "common", "scoreboard_sets", "scoreboard_baseline") or "entry_" in name:
            del sys.modules[name]


def _written(folder: Path, name: str, body: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(METHOD.format(name=name, body=body), "utf-8")
    return str(path)


def test_methods_of_any_kind_are_scored(board: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    monkeypatch.setenv("SCOREBOARD_COMMAND", f"{sys.executable} {program}")
    more = [
        _written(tmp_path, "nothing", "import numpy as np; return np.zeros_like(q)"),
        _written(tmp_path, "broken", "raise RuntimeError('no idea')"),
        _written(tmp_path, "short", "return q[1:]"),
    ]
    wanted = ("description", "command", "nothing", "broken", "short")
    methods = [kind for kind in board.entries(more) if kind.name in wanted]
    cases = board.make_sets(tmp_path / "logs")
    case = {name: cases[name] for name in list(cases)[:1]}
    ((_, row),) = board.run(methods, case, tmp_path / "logs")
    # By hand: a prediction of zero errs by the torque itself, a constant by its standard deviation.
    problem, reader, tests = board.tasks(next(iter(case.values())), tmp_path / "logs")
    signals, rows = tests[0]
    tau = signals.every[3][signals.rows][rows]
    np.testing.assert_allclose(
        row["nothing"]["percent"], 100.0 * np.sqrt(np.mean(tau**2, axis=0)) / tau.std(axis=0), rtol=1e-9
    )
    mean = problem.logs[0].tau.mean(axis=0)
    np.testing.assert_allclose(
        row["command"]["percent"], 100.0 * np.sqrt(np.mean((tau - mean) ** 2, axis=0)) / tau.std(axis=0), rtol=1e-3
    )
    assert row["broken"]["error"] == "RuntimeError: no idea"
    assert "shape" in row["short"]["error"]
    assert all(len(row["description"]["percent"]) == len(problem.joints) for _ in (0,))
    assert reader.recipe is board.MADE


def test_first_entries_are_there(board: Any) -> None:
    assert {kind.name for kind in board.entries([])} == {"Steelyard", "script", "FIGAROH", "description", "command"}
