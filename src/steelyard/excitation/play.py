"""`Play`: a motion as controllers play it, slow first, with what to expect at each speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import ExcitationError
from steelyard.excitation.controllers.target import MOTION_TARGETS, SPEEDS, Playing
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Content, Outcome
from steelyard.ground.reasons import explained
from steelyard.robot.robot import Robot

if TYPE_CHECKING:
    from rich.console import Console

INSTRUCTIONS = "play.md"
WHY_NO_TORQUE = {
    "speeds/*/*/torque/*": "The description gives no inertias to reckon torques with.",
    "speeds/*/*/percent_of_torque_limit": "The description gives no limit, or no inertias.",
}


@dataclass(frozen=True, eq=False)
class Play(Outcome):
    """Motions of a robot as files for controllers, each at 25, 50 and 100 % of its speed.

    Args:
        robot: what plays them.
        trajectories: the motions.
        targets: names in `MOTION_TARGETS`.
        rate: Hz of tables, at full speed.
        torque_limits: N m (N), by joint; infinite where there is none.
    """

    robot: Robot
    trajectories: Sequence[Trajectory]
    targets: Sequence[str] = ("csv",)
    rate: float = 100.0
    torque_limits: Array | None = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise ExcitationError(f"There is no controller to write for; give some of {', '.join(MOTION_TARGETS)}.")
        for name in self.targets:
            MOTION_TARGETS[name].check(name, self.robot)

    @cached_property
    def playings(self) -> list[list[Playing]]:
        """For every motion the same at all speeds, slowest first."""
        return [[Playing(self.robot, motion, s, self.rate) for s in SPEEDS] for motion in self.trajectories]

    @cached_property
    def expected(self) -> list[list[dict[str, Any]]]:
        """For every motion, by speed: how long it takes, and the largest velocity, acceleration and torque by joint."""
        return [[self._expected(p) for p in each] for each in self.playings]

    def _expected(self, playing: Playing) -> dict[str, Any]:
        velocity, acceleration, torque = playing.peaks()
        limits = np.full(self.robot.dof, np.inf) if self.torque_limits is None else self.torque_limits
        shares = (
            [] if torque is None else [100.0 * t / x for t, x in zip(torque, limits, strict=True) if np.isfinite(x)]
        )
        return {
            "speed_percent": playing.percent,
            "duration": playing.duration,
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
        """How far each controller is from the motions between its points, and what to expect at each speed."""
        return {
            "controllers": [
                {"name": n, "title": MOTION_TARGETS[n].title, "away": [self._away(n, p[-1]) for p in self.playings]}
                for n in self.targets
            ],
            "speeds": self.expected,
        }

    def _away(self, name: str, playing: Playing) -> float:
        return MOTION_TARGETS[name].away(playing)

    def files(self) -> dict[str, Content]:
        """A folder for every controller (…-2 for a second motion), and what to do with them."""
        out: dict[str, Content] = {INSTRUCTIONS: self.instructions()}
        for name in self.targets:
            for k, each in enumerate(self.playings):
                folder = name if k == 0 else f"{name}-{k + 1}"
                for order, playing in enumerate(each, start=1):
                    made = MOTION_TARGETS[name].files(playing, f"{order}-at-{playing.percent}-percent")
                    out |= {f"{folder}/{file}": text for file, text in made.items()}
        return out

    def values(self, motion: int = 0) -> list[tuple[str, str, list[float | None]]]:
        """For the `motion` of that number: what is largest, its unit, and how large by speed; torques by joint."""
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
        """`values` of the `motion` of that number in words, under `columns`."""
        return [[name, unit, *(number(x, 3) for x in sizes)] for name, unit, sizes in self.values(motion)]

    def columns(self, motion: int = 0) -> list[str]:
        """The heads of `rows` of the `motion` of that number."""
        speeds = [f"{e['speed_percent']} % ({number(e['duration'])} s)" for e in self.expected[motion]]
        return ["largest torque", "unit", *speeds]

    def instructions(self) -> str:
        """What a person does with the files, in Markdown."""
        lines = [
            f"# Playing the motion of {self.robot.name}",
            "",
            "1. Clear the space, keep a hand on the stop, and check the limits and the load that the controller knows.",
            "2. Play the files in their order: 25 %, then 50 %, then 100 % of the speed. Look at the torques each "
            "time; where one is far above what is expected below, stop and look for the reason.",
            "3. Log positions and torques (or currents) at 100 Hz or more, with a second of standing before and after, "
            "and identify by the log of full speed; the slow ones show gravity and friction, good logs to judge by.",
            "",
            "What to expect, by the nominal model (a dash: the description states no inertias or no limit). Friction "
            "that the description does not state comes on top, at every speed.",
        ]
        for k in range(len(self.trajectories)):
            heads = self.columns(k)
            lines += ["", *([f"Motion {k + 1}:", ""] if len(self.trajectories) > 1 else [])]
            lines += [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *self.rows(k))]
        for name in self.targets:
            target = MOTION_TARGETS[name]
            away = max(self._away(name, each[-1]) for each in self.playings)
            lines += [
                "",
                f"## {target.title}: folder {name}",
                target.plays,
                "",
                f"What the controller changes: {target.changes} Between its points, "
                f"{number(target.rate or self.rate)} a second, the way is at most {number(away, 2)} rad (m) from the "
                "designed one.",
            ]
        return "\n".join([*lines, ""])

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.report.terminal import say, table

        for k in range(len(self.trajectories)):
            title = "Slow first" if len(self.trajectories) == 1 else f"Slow first: motion {k + 1}"
            out.print(table(title, self.columns(k), self.rows(k), right=self.columns(k)[2:]))
        where = f"Written to {folder}" if folder else "Nothing was written (give -o FOLDER); it would be"
        say(out, f"{where}: {INSTRUCTIONS}, and a folder for {', '.join(self.targets)}.")
