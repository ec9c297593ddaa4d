"""What `steelyard excite` keeps a robot to, Python users get by the same keywords of `excite`."""

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


def places(plan: sy.Plan, robot: sy.Robot) -> np.ndarray:
    """Origins of all links along the motion, (samples, links, 3)."""
    q, _, _ = plan.trajectory.sample(plan.trajectory.times(200.0))
    return link_poses(robot, q)[1]


def test_a_floor_and_a_box_are_kept_by_every_link_they_are_for() -> None:
    robot = sy.load_robot("arm7")
    free = sy.excite(robot, harmonics=2, duration=4.0, search=FAST)
    kept = sy.excite(robot, harmonics=2, duration=4.0, search=FAST, floor=0.1, box=BOX)
    # The poses are calculated apart from the constraint, whose excess is zero at every instant; 1e-9 m is rounding.
    heights = places(kept, robot)[:, :, 2]
    turning = np.ptp(places(free, robot)[:, :, 2], axis=0) > 1e-9
    assert heights[:, turning].min() > 0.1 - 1e-9
    low, high = np.array(BOX[::2]), np.array(BOX[1::2])
    tool, wild = places(kept, robot)[:, -1], places(free, robot)[:, -1]
    assert np.all((tool > low - 1e-9) & (tool < high + 1e-9))
    assert not np.all((wild > low) & (wild < high))  # without the box it leaves it
    assert kept.violation == 0.0


def test_families_and_populations_go_by_name() -> None:
    robot = sy.load_robot("szabo3r")
    assert sy.excite(robot, family="bspline", harmonics=3, search=FAST).trajectory.families[0].kind == "bspline"
    bred = sy.excite(robot, optimiser="ga", via_points=3, generations=2, population=8, criterion="d")
    assert bred.program is not None
    assert bred.violation == 0.0
    again = sy.excite(robot, optimiser="ga", via_points=3, generations=2, population=8, criterion="d")
    assert np.array_equal(bred.trajectory.coefficients, again.trajectory.coefficients)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"family": "chirp"}, UnknownNameError, "chirp"),
        ({"optimiser": "simplex"}, UnknownNameError, "simplex"),
        ({"via_points": 3}, ExcitationError, "No gradient"),
        ({"optimiser": "ga", "bandwidth_hz": 1.0}, ExcitationError, "bandwidth"),
        ({"collision": True}, SteelyardError, "no collision geometry"),
        ({"frame": "hand"}, UnknownNameError, "hand"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(options: dict, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        sy.excite(sy.load_robot("szabo3r"), **options)


def test_a_plan_says_what_could_not_be_looked_at() -> None:
    plan = sy.excite(sy.load_robot("szabo3r"), harmonics=2, search=FAST, collision=None)
    assert "no collision geometry" in plan.notes[0]
    assert sy.excite(sy.load_robot("szabo3r"), harmonics=2, search=FAST).notes == ()


def test_designed_motions_are_handed_out_from_python_as_from_the_command_line(tmp_path: Path) -> None:
    robot = sy.load_robot("szabo3r")
    made = design_motions(robot, motions=2, harmonics=2, duration=4.0, search=FAST, noise=0.1)
    made.save(tmp_path / "run")
    assert {p.name for p in (tmp_path / "run").glob("trajectory*.csv")} == {"trajectory.csv", "trajectory-2.csv"}
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(ExcitationError, match="Several motions"):
        design_motions(robot, motions=2, optimiser="ga")
