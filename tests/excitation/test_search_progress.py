"""Progress reports of a search: the best value never gets worse, and all values are correct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.ground.progress import ProgressReport, report_progress_to

LIMITS = {"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "gradient": {"search": SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=12)},
    "ga": {"population": 12, "generations": 4},
    "cma": {"population": 8, "generations": 4},
}


def design(optimiser: str, **more: Any) -> tuple[Any, list[ProgressReport]]:
    reports: list[ProgressReport] = []
    options = {"harmonics": 3, "duration": 4.0, "rate": 50.0, "limits": LIMITS, "optimiser": optimiser}
    with report_progress_to(reports.append):
        plan = sy.excite("szabo3r", **{**options, **SETTINGS[optimiser], **more})
    return plan, [p for p in reports if p.results.get("of") == "motion"]


@pytest.mark.parametrize("criterion", ["cond", "sigma"])  # minimised, and maximised
@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_the_best_never_gets_worse_and_ends_at_the_result(optimiser: str, criterion: str) -> None:
    plan, reports = design(optimiser, criterion=criterion)
    assert len(reports) >= 4
    values = [p.results for p in reports]
    counts = [s["evaluations"] for s in values]
    assert counts == sorted(counts)
    assert counts[-1] == plan.evaluations
    better = np.array([s["best"] for s in values]) * (-1.0 if criterion == "sigma" else 1.0)
    assert np.all(np.diff(better) <= 0.0)
    assert {s["larger_is_better"] for s in values} == {criterion == "sigma"}
    assert all(s["feasible"] for s in values)
    assert values[-1]["best"] == pytest.approx(plan.value, rel=0.05)  # settling reduces the motion slightly
    assert values[-1]["condition_number"] == pytest.approx(plan.condition_number, rel=0.05)
    if optimiser == "gradient":
        assert values[-1]["settled"] == pytest.approx(plan.value)
    json.dumps([dict(s) for s in values], allow_nan=False)
    shares = [p.fraction for p in reports]
    assert shares == sorted(shares)
    assert not plan.stopped


@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_listeners_change_nothing(optimiser: str) -> None:
    options = {"harmonics": 3, "duration": 4.0, "rate": 50.0, "limits": LIMITS, "optimiser": optimiser}
    quiet = sy.excite("szabo3r", **options, **SETTINGS[optimiser])
    assert np.array_equal(quiet.trajectory.sample(0.1)[0], design(optimiser)[0].trajectory.sample(0.1)[0])


def test_a_best_beyond_a_torque_limit_is_not_feasible() -> None:
    """The search ignores torque limits until a solution breaks them; the result keeps them."""
    plan, reports = design("gradient", limits={**LIMITS, "tau": [4.0, 14.0, 7.0]})
    searched = [p.results for p in reports if p.stage.startswith("Looking")]
    assert not searched[-1]["feasible"]
    assert reports[-1].stage == "Keeping the motion within all limits"
    assert reports[-1].results["settled"] == pytest.approx(plan.value)
    assert plan.violation == 0.0


@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_a_resumed_search_reports_its_history(optimiser: str, tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    early, before = design(optimiser, checkpoint=file, progress=lambda report: report.number == 2)
    assert early.stopped
    assert any("stopped before its end" in note for note in early.notes)
    plan, reports = design(optimiser, checkpoint=file)
    curve = reports[0].results["earlier"]
    assert curve[-1][1] == pytest.approx(before[-1].results["best"])
    assert curve[-1][0] <= before[-1].results["evaluations"] <= reports[1].results["evaluations"]
    assert reports[-1].results["best"] <= curve[-1][1] + 1e-12
    assert not plan.stopped
    assert not any("stopped" in note for note in plan.notes)


@pytest.mark.parametrize("optimiser", ["gradient", "ga"])
@pytest.mark.parametrize(
    "change",
    [{"box": (-1.0, 1.0, -1.0, 1.0, 0.1, 2.0)}, {"floor": 0.05}, {"torque_margin": 0.1}, {"weights": [1, 2, 3]}],
)
def test_a_checkpoint_of_another_space_is_refused(optimiser: str, change: dict[str, Any], tmp_path: Path) -> None:
    first = {"box": (-1.0, 1.0, -1.0, 1.0, 0.0, 2.0), "floor": 0.0, "torque_margin": 0.0, "weights": [1, 1, 3]}
    file = tmp_path / "search.json"
    design(optimiser, **first, checkpoint=file, progress=lambda report: True)
    with pytest.raises(sy.ExcitationError, match="belongs to another search"):
        design(optimiser, **{**first, **change}, checkpoint=file)
