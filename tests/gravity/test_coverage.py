"""How often 95 % intervals contain the truth, over robots that Pinocchio holds."""

from __future__ import annotations

import numpy as np
import pytest
from standing_plants import public_robot, table

import steelyard as sy


@pytest.mark.proof
@pytest.mark.parametrize("friction", ["none", "side", "tube"])
def test_intervals_contain_the_truth_as_often_as_they_state(friction: str) -> None:
    """Of 300 parameters, which depend on each other within a fit: 95 % with three standard errors of 1.5 %."""
    robot, inside = public_robot("ur10"), []
    for seed in range(30):
        found = sy.identify_gravity(robot, table("ur10", 25, 100 + seed, friction))
        theta = np.zeros(len(found.columns.columns))
        theta[: 4 * len(robot.links)] = np.concatenate([link.inertia[:4] for link in robot.links])
        gravity = np.array(found.columns.independent) < 4 * len(robot.links)
        inside += list((np.abs(found.beta - found.columns.groups @ theta) < found.half_widths)[gravity])
    assert 0.905 < np.mean(inside) < 0.99
