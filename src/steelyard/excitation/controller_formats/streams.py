"""Motions as rows over time: a plain table, ROS 2, Universal Robots and Franka."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.excitation.controller_formats.target import (
    APPROACH_SECONDS,
    APPROACH_SPEED,
    MOTION_TARGETS,
    MotionTarget,
    Playback,
    decimal_texts,
    program_name,
)
from steelyard.excitation.trajectories.trajectory import motion_rows
from steelyard.ground.arrays import Array
from steelyard.ground.files import csv_text


def rows_as_csv(names: Sequence[str], columns: Sequence[Array], digits: int = 8) -> str:
    """Return a table as text.

    Args:
        names: Names of the columns.
        columns: The columns, side by side.
        digits: Number of decimals.
    """
    return csv_text([names, *(decimal_texts(row, digits) for row in np.column_stack(columns))])


class CsvTable(MotionTarget):
    """t, q_…, dq_…, ddq_… of every joint in SI units; at full speed the same as `trajectory.csv`."""

    title = "table"
    how_to_play = "Send the rows to the robot's driver at their times (t, s); rad, m."
    changes = "Nothing, if every row is played at its time."

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, samples = self.points(playback)
        head, *rows = motion_rows(playback.robot.joint_names, t, *samples)
        return {f"{stem}.csv": csv_text([head, *(decimal_texts(row, 8) for row in rows)])}


class Ros2Goal(MotionTarget):
    """A goal of control_msgs/action/FollowJointTrajectory, as `ros2 action send_goal` reads it."""

    title = "ros2_control (joint_trajectory_controller)"
    # A shell accepts arguments up to 128 kB: ten seconds of seven joints at this rate are 50 kB.
    rate = 25.0
    how_to_play = (
        "ros2 action send_goal /joint_trajectory_controller/follow_joint_trajectory "
        'control_msgs/action/FollowJointTrajectory "$(cat FILE.yaml)"; send the goal to-start first, which takes '
        f"{APPROACH_SECONDS:g} s from any posture."
    )
    changes = "The controller interpolates by quintic splines, since each point has velocity and acceleration."

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, samples = self.points(playback)
        start = samples[0][:1]
        still = (start, np.zeros_like(start), np.zeros_like(start))
        return {
            "0-to-start.yaml": self._goal(playback, np.array([APPROACH_SECONDS]), still),
            f"{stem}.yaml": self._goal(playback, t, samples),
        }

    def path(self, t: Array, samples: tuple[Array, Array, Array], at: Array) -> Array:
        from scipy.interpolate import BPoly

        joints = np.stack(samples, axis=-1)  # (points, joints, derivatives)
        return np.column_stack([BPoly.from_derivatives(t, joints[:, j])(at) for j in range(joints.shape[1])])

    def _goal(self, playback: Playback, t: Array, samples: tuple[Array, Array, Array]) -> str:
        """Return one line of YAML (JSON is a subset of it), short enough for a command line."""
        names = ("positions", "velocities", "accelerations")
        points: list[dict[str, Any]] = []
        for time, *rows in zip(t, *samples, strict=True):
            seconds, nanoseconds = divmod(round(float(time) * 1e9), 10**9)
            point = {name: [round(float(x), 7) + 0.0 for x in row] for name, row in zip(names, rows, strict=True)}
            points.append({**point, "time_from_start": {"sec": seconds, "nanosec": nanoseconds}})
        goal = {"trajectory": {"joint_names": list(playback.robot.joint_names), "points": points}}
        return json.dumps(goal, ensure_ascii=False) + "\n"


class UniversalRobots(MotionTarget):
    """A program in URScript, and the same rows as a table for streaming over RTDE."""

    title = "Universal Robots (URScript; table for RTDE)"
    rate, joints = 125.0, 6
    how_to_play = (
        "Load the script on the pendant or send it to port 30002: it moves to the first posture with movej, waits, and "
        "plays the rows with servoj. Over RTDE: one row of the table per step of its column timestamp, e.g. "
        "rtde_control.servoJ(q, 0, 0, step, 0.1, 300)."
    )
    changes = (
        "servoj follows with a delay of about 0.1 s and smooths (lookahead_time, gain); the safety limits of the "
        "installation stop faster motions. Log the actual motion."
    )
    _columns = ("target_q", "target_qd", "target_qdd")

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, samples = self.points(playback)
        name = f"{program_name(playback.robot, 40)}_{playback.percent}"
        rows = [f"[{', '.join(decimal_texts(q))}]" for q in samples[0]]
        lines = [
            f"def {name}():",
            f"  # {len(rows)} postures at {playback.percent} % of the designed speed, {playback.duration:g} s; rad",
            f"  step = {t[1]:.6f}",
            f"  movej({rows[0]}, a={APPROACH_SPEED:g}, v={APPROACH_SPEED:g})",
            "  sleep(1.0)",
            *(f"  servoj({row}, t=step, lookahead_time=0.1, gain=300)" for row in rows),
            "  stopj(1.0)",
            "end",
            "",
        ]
        heads = ["timestamp", *(f"{column}_{j}" for column in self._columns for j in range(self.joints))]
        return {f"{stem}.script": "\n".join(lines), f"{stem}-rtde.csv": rows_as_csv(heads, [t, *samples])}


class Franka(MotionTarget):
    """A row for every millisecond, as libfranka's callbacks need them."""

    title = "Franka (libfranka, 1 kHz)"
    rate, joints = 1000.0, 7
    how_to_play = (
        "Move to the first row by your own program, then return row k, as franka::JointPositions, from the callback "
        "of Robot::control after k ms (duration.toMSec() may be more than 1 after a lost packet)."
    )
    changes = (
        "Nothing, but libfranka stops if velocity, acceleration or jerk exceed the arm's limits; design within the "
        "limits of your arm (--dq, --ddq, --jerk)."
    )

    def points(self, playback: Playback) -> tuple[Array, tuple[Array, Array, Array]]:
        t = np.arange(round(playback.duration * self.rate) + 1) / self.rate
        return t, playback.sample(t)

    def files(self, playback: Playback, stem: str) -> dict[str, str]:
        t, (q, dq, _) = self.points(playback)
        heads = ["t", *(f"{x}{j + 1}" for x in ("q", "dq") for j in range(self.joints))]
        return {f"{stem}.csv": rows_as_csv(heads, [t, q, dq], 9)}


for _name, _target in (("csv", CsvTable()), ("ros2", Ros2Goal()), ("ur", UniversalRobots()), ("franka", Franka())):
    MOTION_TARGETS.register(_name)(_target)
