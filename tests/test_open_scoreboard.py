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
_MODULES = ("entries", "common", "scoreboard_sets", "scoreboard_baseline", "open_tables")
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
        if (
            name.split(".")[0] in ("entries", "common", "scoreboard_sets", "scoreboard_baseline", "open_tables")
            or "entry_" in name
        ):
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
    poses = {kind.name for kind in board.entries([], "kinematics")}
    assert poses == {"Steelyard", "offsets", "FIGAROH", "description"}
    assert {kind.name for kind in board.entries([], "actuators")} == {"Steelyard", "script", "mujoco.sysid", "goal"}


class Still:
    """A prediction that can be scored by hand: the first position, and points in the origin of the sensor."""

    name = "still"

    def fit(self, problem: Any) -> None:
        self.points = problem.points.shape[1] if hasattr(problem, "points") else 0

    def predict(self, first: Any, before: Any = None) -> Any:
        if before is None:
            assert not np.isfinite(first.position[1:]).any()
            return np.full(len(first.t), first.position[0])
        return np.zeros((len(first), self.points, 3))


def test_kinematics_and_actuators_are_scored(board: Any, tmp_path: Path) -> None:
    import open_tables

    sets = open_tables.made_poses(tmp_path)
    described = next(kind for kind in board.entries([], "kinematics") if kind.name == "description")
    ((_, row),) = open_tables.kinematics([described, Still], sets)
    every = next(iter(sets.values()))
    judged = np.random.default_rng(0).permutation(len(every.q))[2 * len(every.q) // 3 :]
    by_hand = 1e3 * np.linalg.norm(every.points[judged], axis=2).mean()
    assert row["still"]["errors"][0] == pytest.approx(by_hand)
    # Displaced joints of a millimetre and 3 mrad on an arm of 1.3 m: some millimetres, and the base is found.
    assert 0.5 < np.mean(row["description"]["errors"]) < 10.0
    runs = open_tables.made_runs()
    ((_, row),) = open_tables.actuators([Still], runs)
    group = [run for run in next(iter(runs.values())) if run.labels["group"] == "0.5 Hz"]
    errors = np.concatenate([np.abs(run.position - run.position[0]) for run in group])
    assert row["still"]["errors"][0] == pytest.approx(1e3 * errors.mean())
    assert len(row["still"]["errors"]) == 3
