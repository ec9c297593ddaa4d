"""What a search for a motion tells on its way can be drawn: its best never gets worse, and what it says is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steelyard as sy
from steelyard.excitation import SearchSettings
from steelyard.ground.progress import HowFar, told_to

LIMITS = {"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "gradient": {"search": SearchSettings(starts=2, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=12)},
    "ga": {"population": 12, "generations": 4},
    "cma": {"population": 8, "generations": 4},
}


def designed(optimiser: str, **more: Any) -> tuple[Any, list[HowFar]]:
    told: list[HowFar] = []
    options = {"harmonics": 3, "duration": 4.0, "rate": 50.0, "limits": LIMITS, "optimiser": optimiser}
    with told_to(told.append):
        plan = sy.excite("szabo3r", **{**options, **SETTINGS[optimiser], **more})
    return plan, [p for p in told if p.seen.get("of") == "motion"]


@pytest.mark.parametrize("criterion", ["cond", "sigma"])  # the smaller, and the larger, the better
@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_the_best_never_gets_worse_and_ends_at_what_is_delivered(optimiser: str, criterion: str) -> None:
    plan, told = designed(optimiser, criterion=criterion)
    assert len(told) >= 4
    seen = [p.seen for p in told]
    counts = [s["evaluations"] for s in seen]
    assert counts == sorted(counts)
    assert counts[-1] == plan.evaluations
    better = np.array([s["best"] for s in seen]) * (-1.0 if criterion == "sigma" else 1.0)
    assert np.all(np.diff(better) <= 0.0)
    assert {s["larger_is_better"] for s in seen} == {criterion == "sigma"}
    assert all(s["feasible"] for s in seen)
    assert seen[-1]["best"] == pytest.approx(plan.value, rel=0.05)  # drawn back a little between the samples
    assert seen[-1]["condition_number"] == pytest.approx(plan.condition_number, rel=0.05)
    if optimiser == "gradient":
        assert seen[-1]["settled"] == pytest.approx(plan.value)
    json.dumps([dict(s) for s in seen], allow_nan=False)
    shares = [p.fraction for p in told]
    assert shares == sorted(shares)
    assert not plan.stopped


@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_who_listens_changes_nothing(optimiser: str) -> None:
    options = {"harmonics": 3, "duration": 4.0, "rate": 50.0, "limits": LIMITS, "optimiser": optimiser}
    quiet = sy.excite("szabo3r", **options, **SETTINGS[optimiser])
    assert np.array_equal(quiet.trajectory.sample(0.1)[0], designed(optimiser)[0].trajectory.sample(0.1)[0])


def test_a_best_that_breaks_a_torque_limit_is_not_called_feasible() -> None:
    """Torque limits are left out of the search until a solution breaks them; what is delivered keeps them."""
    plan, told = designed("gradient", limits={**LIMITS, "tau": [4.0, 14.0, 7.0]})
    searched = [p.seen for p in told if p.stage.startswith("Looking")]
    assert not searched[-1]["feasible"]
    assert told[-1].stage == "Keeping the motion within all limits"
    assert told[-1].seen["settled"] == pytest.approx(plan.value)
    assert plan.violation == 0.0


@pytest.mark.parametrize("optimiser", list(SETTINGS))
def test_a_search_that_goes_on_tells_what_was_before(optimiser: str, tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    early, before = designed(optimiser, checkpoint=file, progress=lambda said: said.number == 2)
    assert early.stopped
    assert any("stopped before its end" in note for note in early.notes)
    plan, told = designed(optimiser, checkpoint=file)
    curve = told[0].seen["earlier"]
    assert curve[-1][1] == pytest.approx(before[-1].seen["best"])
    assert curve[-1][0] <= before[-1].seen["evaluations"] <= told[1].seen["evaluations"]
    assert told[-1].seen["best"] <= curve[-1][1] + 1e-12
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
    designed(optimiser, **first, checkpoint=file, progress=lambda said: True)
    with pytest.raises(sy.ExcitationError, match="belongs to another search"):
        designed(optimiser, **{**first, **change}, checkpoint=file)
