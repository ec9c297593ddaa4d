"""Command logs that cannot match a robot are refused with one sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matching.conftest import Case

from steelyard.errors import SteelyardError
from steelyard.matching import match_robot
from steelyard.robot import Robot, load_robot
from steelyard.signals import Log


def refusal(robot: Robot, log: Log, **more: object) -> str:
    settings: dict[str, object] = {"kp": 40.0, "kd": 1.0, "draws": 1, "delayed": "torque"} | more
    with pytest.raises(SteelyardError) as caught:
        match_robot(robot, log, **settings)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def with_goal(log: Log, goal: np.ndarray) -> Log:
    return replace(log, channels={"goal": goal})


def test_goals_in_degrees(leg: Robot, case: Case) -> None:
    text = refusal(leg, with_goal(case.log, np.rad2deg(case.log.channels["goal"])))
    assert "degrees" in text
    assert "abduction" in text


def test_a_goal_of_the_other_sign(leg: Robot, case: Case) -> None:
    goal = case.log.channels["goal"].copy()
    goal[:, 2] *= -1.0
    assert "'knee' move in opposite directions" in refusal(leg, with_goal(case.log, goal))


def test_missing_gains(leg: Robot, case: Case) -> None:
    assert "kp and kd" in refusal(leg, case.log, kp=None, kd=None)
    assert "one for each of the 3 joints" in refusal(leg, case.log, kp=[1.0, 2.0])


def test_goals_that_never_move(leg: Robot, case: Case) -> None:
    still = np.repeat(case.log.channels["goal"][:1], len(case.log), axis=0)
    assert "no goal ever moves" in refusal(leg, with_goal(case.log, still))


def test_a_joint_at_its_limit_all_the_time(leg: Robot, case: Case) -> None:
    assert "'abduction' is at its limit" in refusal(leg, case.log, limit=[1e-3, 6.0, 6.0])


def test_two_clocks(leg: Robot, case: Case) -> None:
    """The goals' clock is one percent faster: 90 ms within nine seconds."""
    t = case.log.t
    late = np.column_stack([np.interp(t * 0.99, t, g) for g in case.log.channels["goal"].T])
    assert "two clocks" in refusal(leg, with_goal(case.log, late), holdout=0.0, limit=6.0)


def test_no_goal_at_all(leg: Robot, case: Case) -> None:
    assert "goals are missing" in refusal(leg, replace(case.log, channels={}))
    columns = {"t": case.log.t} | {f"q{k + 1}": case.log.q[:, k] for k in range(3)}
    assert "--goal" in refusal(leg, columns)


def test_a_floating_base(leg: Robot, case: Case, tmp_path) -> None:
    from matching.conftest import LEG

    path = tmp_path / "leg.urdf"
    path.write_text(LEG.replace('<link name="base"/>', '<link name="base"><inertial><mass value="5"/><inertia ixx=".1" '
                    'iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>'), "utf-8")  # fmt: skip
    assert "matching does not support it" in refusal(load_robot(path, floating=True), case.log)


def test_odd_settings(leg: Robot, case: Case) -> None:
    assert "window" in refusal(leg, case.log, window=0.0)
    assert "samples" in refusal(leg, case.log, window=0.01)
    assert "hold-out" in refusal(leg, case.log, holdout=1.0)
    assert "stiffness" in refusal(leg, case.log, fit=("stiffness",))
    assert "--limit" in refusal(leg, case.log, fit=("limit",))
    assert "delayed" in refusal(leg, case.log, delayed="both")
    assert "delay" in refusal(leg, case.log, delay=-1.0)
    assert "draws" in refusal(leg, case.log, draws=10**12)


def test_a_robot_without_inertias(case: Case, tmp_path) -> None:
    bare = "".join(f'<link name="{x}"/>' for x in ("base", "hip", "thigh", "calf"))
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{a}"/><child link="{b}"/><axis xyz="0 1 0"/></joint>'
        for name, a, b in (("abduction", "base", "hip"), ("hip_pitch", "hip", "thigh"), ("knee", "thigh", "calf"))
    )
    path = tmp_path / "bare.urdf"
    path.write_text(f'<robot name="x">{bare}{joints}</robot>', "utf-8")
    assert "inertia" in refusal(load_robot(path), case.log)
