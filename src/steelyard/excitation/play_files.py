"""`Play`: files of a motion for controllers, slow speeds first, with the expected signals at each speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.controller_formats.target import MOTION_TARGETS, SPEEDS, Playback
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

INSTRUCTIONS = "play.md"
WHY_NO_TORQUE = {
    "speeds/*/*/torque/*": "The description gives no inertias, so torques are unknown.",
    "speeds/*/*/percent_of_torque_limit": "The description gives no limit, or no inertias.",
}


@short_repr
@dataclass(frozen=True, eq=False)
class Play(Outcome):
    """Motions of a robot as files for controllers, each at 25, 50 and 100 % of its speed.

    Args:
        robot: The robot.
        trajectories: The motions.
        targets: Names in `MOTION_TARGETS`.
        rate: Rows per second of tables at full speed [Hz].
        torque_limits: Torque limits by joint [N m, N]; inf: no limit.
    """

    robot: Robot
    trajectories: Sequence[Trajectory]
    targets: Sequence[str] = ("csv",)
    rate: float = 100.0
    torque_limits: Array | None = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise ExcitationError(f"No controller is named; give one or more of {', '.join(MOTION_TARGETS)}.")
        for name in self.targets:
            MOTION_TARGETS[name].check(name, self.robot)

    @cached_property
    def playbacks(self) -> list[list[Playback]]:
        """For every motion, its playbacks at all speeds, slowest first."""
        return [[Playback(self.robot, motion, s, self.rate) for s in SPEEDS] for motion in self.trajectories]

    @cached_property
    def expected(self) -> list[list[dict[str, Any]]]:
        """For every motion, by speed: the duration, and the largest velocity, acceleration and torque by joint."""
        return [[self._expected(p) for p in speeds] for speeds in self.playbacks]

    def _expected(self, playback: Playback) -> dict[str, Any]:
        velocity, acceleration, torque = playback.peaks()
        limits = np.full(self.robot.dof, np.inf) if self.torque_limits is None else self.torque_limits
        shares = (
            [] if torque is None else [100.0 * t / x for t, x in zip(torque, limits, strict=True) if np.isfinite(x)]
        )
        return {
            "speed_percent": playback.percent,
            "duration": playback.duration,
            "velocity": velocity.tolist(),
            "acceleration": acceleration.tolist(),
            "torque": [None] * self.robot.dof if torque is None else torque.tolist(),
            "percent_of_torque_limit": max(shares) if shares else None,
        }

    def to_json(self) -> dict[str, Any]:
        return explained(
            {"robot": self.robot.name, "joints": list(self.robot.joint_names), **self.numbers()}, WHY_NO_TORQUE
        )

    def numbers(self) -> dict[str, Any]:
        """Return the largest deviation of each controller from the motions, and the expected signals at each speed."""
        return {
            "controllers": [
                {
                    "name": n,
                    "title": MOTION_TARGETS[n].title,
                    "away": [self._deviation(n, p[-1]) for p in self.playbacks],
                }
                for n in self.targets
            ],
            "speeds": self.expected,
        }

    def _deviation(self, name: str, playback: Playback) -> float:
        return MOTION_TARGETS[name].deviation(playback)

    def files(self) -> dict[str, Content]:
        """Return a folder for every controller (…-2 for a second motion), and the instructions."""
        out: dict[str, Content] = {INSTRUCTIONS: self.instructions()}
        for name in self.targets:
            for k, speeds in enumerate(self.playbacks):
                folder = name if k == 0 else f"{name}-{k + 1}"
                for order, playback in enumerate(speeds, start=1):
                    texts = MOTION_TARGETS[name].files(playback, f"{order}-at-{playback.percent}-percent")
                    out |= {f"{folder}/{file}": text for file, text in texts.items()}
        return out

    def values(self, motion: int = 0) -> list[tuple[str, str, list[float | None]]]:
        """Return rows for the `motion` of that number: quantity, unit, and largest value by speed."""
        speeds = self.expected[motion]
        rows = [
            (joint.name, joint.effort_unit, [entry["torque"][j] for entry in speeds])
            for j, joint in enumerate(self.robot.joints)
        ]
        return [
            *rows,
            ("most of a torque limit", "%", [entry["percent_of_torque_limit"] for entry in speeds]),
            ("largest velocity", "rad/s, m/s", [max(entry["velocity"]) for entry in speeds]),
            ("largest acceleration", "rad/s², m/s²", [max(entry["acceleration"]) for entry in speeds]),
        ]

    def rows(self, motion: int = 0) -> list[list[str]]:
        """Return `values` of the `motion` of that number as texts, under `columns`."""
        return [[name, unit, *(number(x, 3) for x in sizes)] for name, unit, sizes in self.values(motion)]

    def columns(self, motion: int = 0) -> list[str]:
        """Return the column heads of `rows` for the `motion` of that number."""
        speeds = [f"{e['speed_percent']} % ({number(e['duration'])} s)" for e in self.expected[motion]]
        return ["largest torque", "unit", *speeds]

    def instructions(self) -> str:
        """Return the instructions for playing the files, in Markdown."""
        lines = [
            f"# Playback the motion of {self.robot.name}",
            "",
            "1. Clear the space, keep a hand on the emergency stop, and check limits and payload in the controller.",
            "2. Play the files in their order: 25 %, then 50 %, then 100 % of the speed. Check the torques each time. "
            "If one is far above its expected value below, stop and find the reason.",
            "3. Log positions and torques (or currents) at 100 Hz or more, with a second of standstill before and "
            "after. Identify from the log of full speed; the slow ones show gravity and friction and are good hold-out "
            "logs.",
            "",
            "Expected values of the nominal model (a dash: the description states no inertias or no limit). Friction "
            "that the description does not state is added, at every speed.",
        ]
        for k in range(len(self.trajectories)):
            heads = self.columns(k)
            lines += ["", *([f"Motion {k + 1}:", ""] if len(self.trajectories) > 1 else [])]
            lines += [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *self.rows(k))]
        for name in self.targets:
            target = MOTION_TARGETS[name]
            deviation = max(self._deviation(name, speeds[-1]) for speeds in self.playbacks)
            lines += [
                "",
                f"## {target.title}: folder {name}",
                target.how_to_play,
                "",
                f"What the controller changes: {target.changes} Between its points, "
                f"{number(target.rate or self.rate)} a second, the path deviates by at most {number(deviation, 2)} rad "
                "(m) from the design.",
            ]
        return "\n".join([*lines, ""])

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say, table

        for k in range(len(self.trajectories)):
            title = "Slow first" if len(self.trajectories) == 1 else f"Slow first: motion {k + 1}"
            out.print(table(title, self.columns(k), self.rows(k), right=self.columns(k)[2:]))
        where = f"Written to {folder}" if folder else "Nothing was written (give -o FOLDER). The files would be"
        say(out, f"{where}: {INSTRUCTIONS}, and a folder for {', '.join(self.targets)}.")
