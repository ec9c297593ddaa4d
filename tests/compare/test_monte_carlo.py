"""A small Monte Carlo: the same results in every order, with or without interruption; failures have reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.compare import NOISES, Comparison, MethodRun, Protocol, advice, monte_carlo
from steelyard.compare._bench import Bench, Truth
from steelyard.compare.comparison import _quantile
from steelyard.compare.methods import GROUPS, METHODS
from steelyard.compare.monte_carlo import RUNS, _all_runs, _Records, records_folder
from steelyard.compare.protocol import Cell
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation import ESTIMATORS
from steelyard.ground.progress import ProgressReport
from steelyard.robot import load_robot

PENDULUM = str(Path(__file__).with_name("pendulum.yaml"))
ROBOT = load_robot(PENDULUM)
TINY = Protocol(
    estimators=("wls", "didim", "wls-physical"), trajectories=1, starts=2, noises=(NOISES["standard"],),
    rates=(500.0,), control_rate=500.0, duration=2.0, harmonics=4, evaluation_motions=1,
)  # fmt: skip


def without_times(runs) -> list[MethodRun]:
    """Runs without their times, which are not repeatable."""
    return [replace(run, seconds=0.0) for run in runs]


@pytest.fixture(scope="module")
def whole() -> Comparison:
    return monte_carlo(ROBOT, TINY, workers=1)


def test_every_run_has_numbers_or_a_reason(whole: Comparison) -> None:
    assert len(whole.runs) == 2 * 3
    for run in whole.runs:
        numbers = (run.distance_percent, run.torque_error_percent)
        assert all(x is not None and np.isfinite(x) for x in numbers) if run.has_estimate else run.reason
        assert run.position_error is not None or run.position_reason or not run.has_estimate


def test_a_resumed_comparison_equals_an_uninterrupted_one(whole: Comparison, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"

    class StopError(Exception):
        pass

    def stop(report: ProgressReport) -> None:
        if report.message.startswith("2 of 6"):
            raise StopError

    with pytest.raises(StopError):
        monte_carlo(ROBOT, TINY, workers=1, records=file, progress=stop)
    assert len(file.read_bytes().splitlines()) == 1 + 2
    with file.open("ab") as torn:  # killed in the middle of a line
        torn.write(b'{"cell": "0/standard/50')
    done: list[str] = []
    resumed = monte_carlo(ROBOT, TINY, workers=1, records=file, progress=lambda p: done.append(p.message))
    assert done[0] == "2 of 6"
    assert len(done) == 5
    assert without_times(resumed.runs) == without_times(whole.runs)
    again = monte_carlo(ROBOT, TINY, workers=1, records=file, progress=lambda p: done.append(p.message))
    assert done[5:] == ["6 of 6"]  # all runs were complete
    assert again.runs == resumed.runs


def test_the_order_of_completion_does_not_matter(whole: Comparison) -> None:
    truth = Truth.of(ROBOT, TINY.smoothing)
    backwards = [(cell, TINY.estimators[::-1]) for cell in reversed(list(TINY.cells()))]
    results = {run.key: run for run in _all_runs(truth, TINY, backwards, workers=1)}
    assert without_times(results[run.key] for run in whole.runs) == without_times(whole.runs)


def test_processes_give_the_same_numbers(whole: Comparison) -> None:
    assert without_times(monte_carlo(ROBOT, TINY, workers=2).runs) == without_times(whole.runs)


def test_runs_of_another_comparison_are_not_resumed(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    with _Records(file, {"seed": 0}).writing() as write:
        write(MethodRun("a", "wls", "refused", "x"))
    assert _Records(file, {"seed": 0}).load() == [MethodRun("a", "wls", "refused", "x")]
    with pytest.raises(SteelyardError, match="another comparison"):
        _Records(file, {"seed": 1}).load()


def test_noise_free_sensors_give_the_true_robot() -> None:
    """The remaining error comes from the low-pass of the motion and from its effect on smoothed friction."""
    quiet = replace(TINY, noises=(replace(NOISES["low"], position_deg=0.0, torque=0.0),), starts=1)
    results = {run.estimator: run for run in monte_carlo(ROBOT, quiet, workers=1).runs}
    assert results["didim"].torque_error_percent is not None
    assert results["didim"].torque_error_percent < 0.1
    assert results["wls"].torque_error_percent is not None
    assert results["wls"].torque_error_percent < 3.0


def test_noise_and_initial_estimates_are_as_stated() -> None:
    bench = Bench(Truth.of(ROBOT, TINY.smoothing), TINY)
    cells = [Cell(0, "standard", 500.0, "50", "pd", k) for k in range(40)]
    theta = bench.truth.theta[bench.truth.theta != 0.0]
    starts = np.array([bench.initial(c).theta[bench.truth.theta != 0.0] for c in cells])
    # Hundreds of draws: the standard deviation is 15 % within a few percent of itself.
    assert np.std(starts / theta - 1.0) == pytest.approx(0.15, rel=0.15)
    quiet = replace(TINY, noises=(replace(NOISES["standard"], position_deg=0.0, torque=0.0),))
    clean = Bench(Truth.of(ROBOT, TINY.smoothing), quiet).experiment(cells[0]).runs[0]
    noisy = bench.experiment(cells[0]).runs[0]
    assert np.std(noisy.tau - clean.tau) == pytest.approx(0.05, rel=0.1)
    assert np.std(noisy.q[:, 0] - clean.q[:, 0]) == pytest.approx(np.deg2rad(1e-3), rel=0.1)


def test_a_failed_experiment_is_a_result() -> None:
    unstable = replace(TINY, starts=1, bandwidth_rad_s=5000.0, control_rate=500.0)
    runs = monte_carlo(ROBOT, unstable, workers=1).runs
    assert {run.result for run in runs} == {"no-data"}
    assert all(run.reason for run in runs)


def test_all_estimators_of_the_registry_take_part() -> None:
    missing = set(ESTIMATORS) - set(METHODS)
    assert missing == {"physical"}  # included as wls-physical
    assert set(GROUPS["all"]) == set(METHODS)


def test_a_missing_number_counts_as_infinitely_wrong() -> None:
    assert _quantile([1.0, 2.0, None]) == 2.0
    assert _quantile([1.0, None]) is None
    assert _quantile([]) is None


def test_advice_names_only_what_is_reliable() -> None:
    def run(name: str, k: int, error: float, result: str = "converged", **more: object) -> MethodRun:
        figures = {"torque_error_percent": error, "simulable": True, "seconds": 1.0, **more}
        return MethodRun(f"0/standard/500/50/pd/{k}", name, result, **figures)  # type: ignore[arg-type]

    names = ("wls", "ols", "didim")
    runs = [run("wls", k, 1.05) for k in range(4)] + [run("ols", k, 1.0, seconds=2.0) for k in range(4)]
    runs += [run("didim", k, 0.1) for k in range(3)] + [run("didim", 3, 0.1, simulable=False)]
    advices = advice(Comparison("robot", replace(TINY, estimators=names), tuple(runs)))
    by_when = {a.when: a for a in advices}
    assert by_when["No controller known"].use == "wls"  # equal within 10 %, and faster
    assert by_when["Controller and reference known exactly"].use == "wls"  # didim had one impossible result
    assert [a.use for a in advices if a.when.startswith("Not recommended")] == ["didim"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise", "mine=-1:0.05"], "must not be negative"),
        (["--noise", "loud"], "There is no noise level 'loud'"),
        (["--estimators", "wsl"], "Did you mean 'wls'?"),
        (["--duration", "0.1"], "too few samples"),
        (["--rates", "300"], "must be a multiple"),
        (["--controllers", "pdd"], "Did you mean 'pd'?"),
        (["--cutoffs", "-5"], "neither a frequency"),
        (["--starts", "0"], "at least one"),
        (["--resume"], "add -o RUN"),
    ],
)
def test_bad_input_ends_with_one_sentence(options: list[str], message: str) -> None:
    out = CliRunner().invoke(app, ["compare", "estimators", PENDULUM, *options])
    assert out.exit_code == 2
    assert message in out.stderr


def test_a_robot_without_numbers_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "arm.yaml"
    table.write_text("name: arm\nconvention: standard\nrows:\n  - {joint: q1, dh: [q1, 0, 1, 0]}\n")
    out = CliRunner().invoke(app, ["compare", "estimators", str(table)])
    assert out.exit_code == 2
    assert "has no inertias" in out.stderr


def test_a_foreign_file_in_the_folder_is_refused_by_name(tmp_path: Path) -> None:
    with records_folder(tmp_path / "out", overwrite=False, resume=False) as folder:
        (folder / RUNS).write_text("{}\n")
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    for overwrite in (True, False):
        with pytest.raises(SteelyardError, match=r"'thesis\.txt', which no run wrote"):
            records_folder(tmp_path / "out", overwrite, not overwrite).__enter__()
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_the_command_writes_a_page_and_resumes(tmp_path: Path) -> None:
    target = tmp_path / "out"
    command = ["compare", "estimators", PENDULUM, "--estimators", "wls,ols", "--noise", "low,standard", "--starts", "1",
               "--trajectories", "1", "--duration", "2", "--rates", "500", "--control-rate", "500", "--harmonics", "4",
               "--workers", "1", "-o", str(target)]  # fmt: skip
    out = CliRunner().invoke(app, [*command, "--json"])
    assert out.exit_code == 0, out.output
    document = json.loads(out.stdout)
    assert {s["estimator"] for s in document["ranking"]} == {"wls", "ols"}
    assert json.loads((target / "result.json").read_text()) == document
    page = (target / "report.html").read_text()
    assert "Advice" in page
    assert "http://" not in page.split("<script>")[0]
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "continue with --resume" in again.stderr
    lines = (target / "runs.jsonl").read_text().splitlines()
    (target / "runs.jsonl").write_text("\n".join(lines[:3]) + "\n")
    resumed = CliRunner().invoke(app, [*command, "--resume", "--json"])
    assert resumed.exit_code == 0, resumed.output

    def timeless(runs: list[dict]) -> list[dict]:
        return [{k: v for k, v in run.items() if k != "seconds"} for run in runs]

    assert timeless(json.loads(resumed.stdout)["runs"]) == timeless(document["runs"])


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'huber'"):
        Protocol(estimators=("hubber",))
    with pytest.raises(SteelyardError, match="No estimator is left"):
        Protocol(estimators=("wls", "-wls"))
