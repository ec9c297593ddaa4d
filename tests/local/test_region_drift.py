"""Another motion of the same region is not a drift, even with unmodelled friction; a change of the robot is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from drift_plants import DriftPlant

from steelyard.local import load_bank, recalibrate, save_bank
from steelyard.local.recalibrate import effective_blocks


def test_another_motion_of_a_healthy_arm_is_no_drift_and_worn_friction_is_one() -> None:
    """Viscous friction that decreases with speed, and pairs of motions whose fits differ by more than χ² of their
    covariance explains: a test that takes the covariance as exact reports a drift for both.
    """
    plant = DriftPlant("rotradi", "falling")
    for seed in (1, 4):
        bank = plant.bank(seed)
        assert not plant.again(bank, seed).significant
        assert plant.again(bank, seed, friction=1.3).significant
        assert plant.again(bank, seed, loaded=True).significant


def test_effective_blocks_count_equal_contributions() -> None:
    assert effective_blocks(np.ones(20)) == pytest.approx(20.0)
    assert effective_blocks([1.0, 0.0, 0.0]) == pytest.approx(1.0)
    # χ² with 4 degrees of freedom each: (Σs)²/Σs² of equal means tends to N·m²/E[s²] = N·16/24.
    shares = np.random.default_rng(0).chisquare(4.0, 100_000)
    assert effective_blocks(shares) == pytest.approx(100_000 * 16 / 24, rel=0.02)


def test_a_bank_file_contains_the_deviations_of_the_blocks(tmp_path: Path) -> None:
    plant = DriftPlant("rotradi", "stribeck")
    bank = plant.bank(0)
    save_bank(bank, tmp_path / "bank")
    back = load_bank(tmp_path / "bank", plant.oracle.robot)
    np.testing.assert_allclose(back.models[0].deviations, bank.models[0].deviations)
    log = plant.log(plant.motion(1), 1)
    there, here = (recalibrate(one, "A", log)[1].joints for one in (back, bank))
    assert [j.p for j in there] == pytest.approx([j.p for j in here], rel=1e-6)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["rotradi", "szabo3r"])
def test_rates_of_drift_over_motions(name: str) -> None:
    """20 pairs of motions each. At a level of 1 % per pair, 5 false alarms are the binomial 99 % quantile of 80 pairs
    at 2 %.
    """
    seeds, false_alarms, detections = range(20), 0, {}
    for shape in ("as modelled", "stribeck", "falling", "ripple"):
        plant, counts = DriftPlant(name, shape), np.zeros(3, dtype=int)
        for seed in seeds:
            bank = plant.bank(seed)
            changes = ({}, {"friction": 1.3}, {"loaded": True})
            counts += [plant.again(bank, seed, **change).significant for change in changes]
        print(f"{name}, {shape}: healthy {counts[0]}, friction × 1.3 {counts[1]}, load {counts[2]} of {len(seeds)}")
        false_alarms, detections[shape] = false_alarms + counts[0], counts[1:]
    assert false_alarms <= 5
    # Unmodelled friction ("ripple": 30 % of its dry part) may hide a change of friction of the same size.
    assert all(np.all(detections[shape] >= 18) for shape in ("as modelled", "stribeck", "falling"))
    assert np.all(detections["ripple"] >= 10)
