"""Bodies that contribute to a base parameter, as listed by an inspection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from steelyard.regression.inspection import inspect_robot
from steelyard.robot.library import builtin


@pytest.mark.parametrize("name", ["ns16", "prrrp", "rotradi"])
def test_a_base_parameter_changes_with_the_bodies_that_take_part_and_with_no_others(name: str) -> None:
    robot = builtin(name)
    rng = np.random.default_rng(1)  # bodies without symmetry, so that nothing that takes part is zero by chance
    bodies = [replace(link, inertia=rng.uniform(1.0, 2.0, 10)) for link in robot.links]
    before = inspect_robot(replace(robot, links=tuple(bodies)), "viscous").base_parameters
    assert before is not None
    for k, link in enumerate(robot.links):
        other = [replace(one, inertia=rng.uniform(1.0, 2.0, 10)) if i == k else one for i, one in enumerate(bodies)]
        after = inspect_robot(replace(robot, links=tuple(other)), "viscous").base_parameters
        assert after is not None
        for a, b in zip(before.parameters, after.parameters, strict=True):
            if not a.name.startswith("Fv"):  # friction does not belong to a body
                assert (a.nominal != b.nominal) == (link.name in a.links), a.formula
    friction = [p for p in before.parameters if p.name.startswith("Fv")]
    joints = [{link.name for link in robot.links if link.coordinate == k} for k in range(robot.dof)]
    assert [set(p.links) for p in friction] == joints
