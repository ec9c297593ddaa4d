"""Keywords of `excite` for the constraints that `steelyard excite` has as options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.errors import ExcitationError, SteelyardError, UnknownNameError
from steelyard.excitation import SearchSettings
from steelyard.excitation.motion_design import design_motions
from steelyard.robot import link_poses

FAST = SearchSettings(starts=2)
BOX = (0.2, 1.2, -0.6, 0.6, 0.2, 1.6)


def link_origins(plan: sy.Plan, robot: sy.Robot) -> np.ndarray:
    """Return the origins of all links along the motion, shape (samples, links, 3)."""
    q, _, _ = plan.trajectory.sample(plan.trajectory.times(200.0))
    return link_poses(robot, q)[1]


def test_links_keep_floor_and_box() -> None:
    robot = sy.load_robot("arm7")
    free = sy.excite(robot, harmonics=2, duration=4.0, search=FAST)
    bounded = sy.excite(robot, harmonics=2, duration=4.0, search=FAST, floor=0.1, box=BOX)
    # `link_poses` shares no code with the constraint, whose excess is zero at every instant; 1e-9 m is rounding.
    heights = link_origins(bounded, robot)[:, :, 2]
    turning = np.ptp(link_origins(free, robot)[:, :, 2], axis=0) > 1e-9
    assert heights[:, turning].min() > 0.1 - 1e-9
    low, high = np.array(BOX[::2]), np.array(BOX[1::2])
    tool, unbounded = link_origins(bounded, robot)[:, -1], link_origins(free, robot)[:, -1]
    assert np.all((tool > low - 1e-9) & (tool < high + 1e-9))
    assert not np.all((unbounded > low) & (unbounded < high))  # the box is an active constraint
    assert bounded.violation == 0.0


def test_families_and_optimisers_by_name() -> None:
    robot = sy.load_robot("szabo3r")
    assert sy.excite(robot, family="bspline", harmonics=3, search=FAST).trajectory.families[0].kind == "bspline"
    evolved = sy.excite(robot, optimiser="ga", via_points=3, generations=2, population=8, criterion="d")
    assert evolved.program is not None
    assert evolved.violation == 0.0
    again = sy.excite(robot, optimiser="ga", via_points=3, generations=2, population=8, criterion="d")
    assert np.array_equal(evolved.trajectory.coefficients, again.trajectory.coefficients)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"family": "chirp"}, UnknownNameError, "chirp"),
        ({"optimiser": "simplex"}, UnknownNameError, "simplex"),
        ({"via_points": 3}, ExcitationError, "have no gradient"),
        ({"optimiser": "ga", "bandwidth_hz": 1.0}, ExcitationError, "bandwidth"),
        ({"collision": True}, SteelyardError, "no collision geometry"),
        ({"frame": "hand"}, UnknownNameError, "hand"),
    ],
)
def test_impossible_options_are_refused(options: dict, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        sy.excite(sy.load_robot("szabo3r"), **options)


def test_a_plan_names_unchecked_limits() -> None:
    plan = sy.excite(sy.load_robot("szabo3r"), harmonics=2, search=FAST, collision=None)
    assert "no collision geometry" in plan.notes[0]
    assert sy.excite(sy.load_robot("szabo3r"), harmonics=2, search=FAST).notes == ()


def test_designs_from_python_are_those_of_the_command_line(tmp_path: Path) -> None:
    robot = sy.load_robot("szabo3r")
    design = design_motions(robot, motions=2, harmonics=2, duration=4.0, search=FAST, noise=0.1)
    design.save(tmp_path / "run")
    assert {p.name for p in (tmp_path / "run").glob("trajectory*.csv")} == {"trajectory.csv", "trajectory-2.csv"}
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(ExcitationError, match="Several motions"):
        design_motions(robot, motions=2, optimiser="ga")
