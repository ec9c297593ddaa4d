"""Rehearsals of many robots in processes or on a GPU give the same results as one robot at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gpu_here import HERE
from rich.console import Console
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.dynamics.cuda import device
from steelyard.dynamics.cuda.device import Device
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.errors import SteelyardError
from steelyard.excitation import SearchSettings
from steelyard.identification.identify import fit_rows, fit_study
from steelyard.rehearsal import rehearse
from steelyard.rehearsal.on_gpu import RobotsOnGpu
from steelyard.rehearsal.rehearse import Rehearsal, make_trials
from steelyard.rehearsal.rehearse_options import RehearseOptions
from steelyard.rehearsal.trials import worker_count

QUICK = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=15)


@pytest.fixture(scope="module")
def plan():
    return sy.excite(sy.load_robot("szabo3r"), duration=8.0, search=QUICK)


@pytest.fixture(scope="module")
def asked(plan):
    return {"limits": plan.limits, "rate": 250.0, "passes": 2, "seed": 3}


@pytest.fixture(scope="module")
def alone(plan, asked) -> Rehearsal:
    return rehearse("szabo3r", plan.trajectory, seeds=4, **asked)


def assert_alike(one: Rehearsal, other: Rehearsal, tolerance: float) -> None:
    assert [t.seed for t in one.trials] == [t.seed for t in other.trials]
    for mine, its in zip(one.trials, other.trials, strict=True):
        assert np.abs(mine.z_scores - its.z_scores).max() <= tolerance
        assert np.array_equal(mine.significant, its.significant)
        assert (mine.limit_text, mine.error_text, mine.torque_joint) == (
            its.limit_text, its.error_text, its.torque_joint,
        )  # fmt: skip
        for name in ("limit_share", "torque_share", "error_share"):
            assert getattr(mine, name) == pytest.approx(getattr(its, name), rel=max(tolerance, 1e-9))
    assert [j.text for j in one.judgements] == [j.text for j in other.judgements]


def rows_agree(plan, asked, there: Device, tmp_path: Path) -> None:
    trials = make_trials(sy.load_robot("szabo3r"), plan.trajectory, RehearseOptions(**asked))
    played = {number: runs for number, _, runs in trials.simulate(range(3))}
    first = trials.study(trials.logs(0, played[0]))
    plants = RobotsOnGpu(trials, first, there)
    seen = []
    for numbers, reached, logs in plants.batches(range(3), tmp_path, 2):
        for k, number in enumerate(numbers):
            assert reached[k] is not None
            assert reached[k].torque == pytest.approx(trials.judge.extremes(played[number]).torque, rel=1e-12)
            study = replace(trials.study(trials.logs(number, played[number])), preparation=plants.settings)
            data = [
                plants.fitter._data(log, log.slow[k], [(every, np.load(file)[k]) for every, file in log.parts])
                for log in logs
            ]
            for mine, other in zip(data, study.parts.values(), strict=True):
                assert mine.period == other.period
                triangles = zip(mine.factor().triangles, other.factor().triangles, strict=True)
                for r, s in triangles:
                    assert np.abs(r.T @ r - s.T @ s).max() <= 1e-12 * np.abs(s.T @ s).max()
            found, expected = fit_rows(plants.fitter.study, data[0].concatenate(data))[0], fit_study(study)[0]
            assert np.abs(found.beta - expected.beta).max() <= 1e-12 * np.abs(expected.beta).max()
            seen.append(number)
    assert sorted(seen) == [0, 1, 2]


def test_rows_and_fits_agree_with_the_cpu(plan, asked, tmp_path: Path) -> None:
    rows_agree(plan, asked, HERE, tmp_path)


def test_rows_and_fits_of_a_gpu_agree_with_the_cpu(plan, asked, tmp_path: Path) -> None:
    if not has_gpu():
        pytest.skip("there is no GPU on this machine")
    rows_agree(plan, asked, device.gpu(), tmp_path)


def test_a_rehearsal_on_a_gpu_agrees_with_the_cpu(plan, asked, alone, monkeypatch) -> None:
    monkeypatch.setattr(device, "gpu", lambda: HERE)
    # A relative error of 1e-12 is 1e-8 of a standard error of 0.01 %.
    assert_alike(rehearse("szabo3r", plan.trajectory, seeds=4, gpu=True, **asked), alone, 1e-7)


@pytest.mark.proof
def test_several_processes_agree_with_one(plan, asked, alone, monkeypatch) -> None:
    assert_alike(rehearse("szabo3r", plan.trajectory, seeds=4, workers=2, **asked), alone, 1e-9)
    monkeypatch.setattr(device, "gpu", lambda: HERE)
    found = rehearse("szabo3r", plan.trajectory, seeds=4, workers=2, gpu=True, **asked)
    assert_alike(found, alone, 1e-7)


def test_number_of_processes() -> None:
    assert worker_count(3, 8) == 3
    assert worker_count(4, None) == 1
    assert worker_count(100_000, 2) == 2
    assert worker_count(100_000, None) >= 1


def test_the_cpu_handles_robots_that_rounding_may_affect(plan, asked, alone, monkeypatch) -> None:
    """The rounding of positions may affect slow motions."""
    monkeypatch.setattr("steelyard.rehearsal.on_gpu._SAFE", 0.0)
    monkeypatch.setattr(device, "gpu", lambda: HERE)
    found = rehearse("szabo3r", plan.trajectory, seeds=2, gpu=True, **asked)
    assert np.array_equal(found.trials[1].z_scores, alone.trials[1].z_scores)


def test_without_a_gpu_the_error_is_clear(plan, tmp_path: Path) -> None:
    if has_gpu():
        pytest.skip("there is a GPU on this machine")
    with pytest.raises(SteelyardError, match="GPU"):
        rehearse("szabo3r", plan.trajectory, gpu=True)
    motion, runner = str(tmp_path / "motion"), CliRunner()
    made = runner.invoke(
        app, ["excite", "szabo3r", "--duration", "2", "--search-time", "0", "--no-collision", "-o", motion]
    )
    assert made.exit_code == 0, made.output
    refused = runner.invoke(app, ["rehearse", "szabo3r", motion, "--seeds", "1000", "--gpu"])
    assert refused.exit_code == 2
    assert "GPU" in refused.output + refused.stderr
    assert "Traceback" not in refused.output + refused.stderr


def test_for_many_robots_the_page_has_statistics(alone) -> None:
    many = replace(alone, trials=alone.trials * 5)
    page, console = many.page(), Console(record=True, width=160)
    many.print_to(console)
    text = console.export_text()
    for words in ("mean z", "std of z", "outside 95 %", "farthest z"):
        assert words in page
        assert words in text
    assert "seed 4" not in text
    assert "20 robots" in page
