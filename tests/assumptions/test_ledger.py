"""Mistakes of a log are named with their size; correct assumptions are not refuted."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from arms import (
    Change,
    exchanged_positions,
    friction_alone,
    ledger,
    light_wrist,
    of_clock,
    of_position,
    of_slip,
    of_torque,
)

# A planted size lies within four standard errors: a chance of one in ten thousand that it does not, with 19 degrees
# of freedom of one in a thousand.
WITHIN = 4.0

MISTAKES: dict[str, tuple[Change, str, str, float]] = {
    "torque a fifth too large": (of_torque(1, 1.2), "torque scale", "q2", 0.2),
    "torque turned round": (of_torque(1, -1.0), "torque scale", "q2", -2.0),
    "torque of the last joint turned round": (of_torque(2, -1.0), "torque scale", "q3", -2.0),
    "zero off": (of_position(1, 0.1), "zero", "q2", 0.1),
    "gear ratio": (of_position(1, 0.0, 1.05), "gear ratio", "q2", 0.05),
    "clock": (of_clock(1.1), "clock scale", "", 0.1),
    "zero that slips": (of_slip(1, 0.2), "change of the zero", "q2", 0.2),
    "zero that slips early": (of_slip(1, -0.2, 0.3), "change of the zero", "q2", -0.2),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refuted_with_its_size(name: str) -> None:
    change, kind, joint, size = MISTAKES[name]
    found = ledger(change)
    entry = next(e for e in found.entries if (e.suspect.kind, e.suspect.joint) == (kind, joint))
    names = {e.suspect.name for e in found.refuted} | {r for e in found.refuted for r in e.rivals}
    assert entry.suspect.name in names
    if entry.answer == "refuted":
        assert abs(entry.estimate - size) < WITHIN * entry.standard_error


def test_a_common_delay_is_found() -> None:
    found = ledger(delay=0.02)
    entry = next(e for e in found.entries if e.suspect.name == "delay")
    assert entry.answer == "refuted"
    assert entry.estimate == pytest.approx(0.02, abs=1e-3)  # a tenth of a sample


def test_the_instant_of_a_slip_is_told() -> None:
    """Twenty blocks of twenty seconds: within a block, or one at the ends that the filter cuts off."""
    slip = next(e for e in ledger(of_slip(1, 0.2)).refuted if e.suspect.kind == "change of the zero")
    instant = float(re.search(r"at about ([0-9.]+) s", slip.sentence)[1])
    assert instant == pytest.approx(0.43 * 20.0, abs=1.5)


def test_a_sound_log_is_left_in_peace() -> None:
    assert not any(e.harmful for seed in range(3) for e in ledger(seed=seed).entries)


def test_the_scale_of_all_torques_is_not_testable() -> None:
    scale = next(e for e in ledger().entries if e.suspect.name == "torque scale")
    assert scale.answer == "not testable"
    assert scale.estimate is None
    assert scale in ledger().conditions


def test_the_zero_about_a_vertical_axis_is_of_no_consequence() -> None:
    zero = next(e for e in ledger().entries if e.suspect.name == "zero of 'q1'")
    assert zero.answer == "confirmed"
    assert zero.most_harm_percent == 0.0


def test_a_torque_of_friction_alone_has_no_scale() -> None:
    """Nothing of what the other joints imply: dividing by what is left of it would be no remedy."""
    scale = ledger(friction_alone).refuted[0]
    assert scale.suspect.name == "torque scale of 'q2'"
    assert scale.estimate == pytest.approx(-1.0, abs=0.05)
    assert "Almost nothing of the torque of 'q2'" in scale.sentence


def test_a_delay_of_friction_alone_is_not_confirmed() -> None:
    """What is late without friction shows no delay here, and what is late with friction would."""
    found = ledger(light_wrist)
    delays = {e.suspect.joint: e for e in found.entries if e.suspect.kind == "delay"}
    assert delays["q3"].answer == "not testable"
    assert delays["q2"].answer == "confirmed"
    assert len({e.suspect.name for e in found.entries}) == len(found.entries)


def test_joints_that_no_rigid_body_explains_together_contradict_one_another() -> None:
    assert ledger(exchanged_positions).contradicting == "q2"
    assert not any(ledger(seed=seed).contradictions for seed in range(3))


def test_without_a_judge_the_fitted_log_serves() -> None:
    found = ledger(of_torque(1, 1.2), judged=False)
    assert "torque scale of 'q2'" in {e.suspect.name for e in found.refuted}
    assert all(e.judged_gain_percent is None for e in found.entries)


def test_a_ledger_is_told_in_plain_values() -> None:
    found = ledger(of_torque(1, 1.2))
    text = json.dumps(found.to_json(), allow_nan=False)
    assert len(json.loads(text)["entries"]) == len(found.entries)
    assert "confirmed: " in found.summary
    assert "not testable: " in found.summary


@pytest.mark.proof
def test_intervals_hold_what_was_planted() -> None:
    """Small planted values lie inside their 95 % intervals in nine cases of ten and more, of 4 kinds and 30 logs."""
    small: dict[str, tuple[Change, str, float]] = {
        "torque scale of 'q2'": (of_torque(1, 1.02), "q2", 0.02),
        "zero of 'q2'": (of_position(1, 0.01), "q2", 0.01),
        "gear ratio of 'q2'": (of_position(1, 0.0, 1.01), "q2", 0.01),
        "clock scale": (of_clock(1.01), "", 0.01),
    }
    inside = []
    for name, (change, _, size) in small.items():
        for seed in range(30):
            entry = next(e for e in ledger(change, seed=seed).entries if e.suspect.name == name)
            if entry.interval is None:  # this motion does not show it
                continue
            inside.append(entry.interval[0] <= size <= entry.interval[1])
    assert np.mean(inside) > 0.88
