"""`DriveStructure`: the effects of a drive, and its traced step with derivatives by its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from steelyard.actuators.drive_model import drive_parameters
from steelyard.actuators.drive_step import step_of
from steelyard.dynamics import Function, LaneScan
from steelyard.dynamics.function import Trace, dense
from steelyard.dynamics.graph import forward

# Time-varying inputs of a step: the goal at its begin and at its end, the share of the step with the latter and its
# derivative by the delay, the share of the step with the drive on, the supply voltage, the feed-forward torque.
SAMPLED = ("goal", "next_goal", "next_share", "next_share_by_delay", "enabled", "supply", "feedforward")
# Constants of a run, besides the parameters.
OF_RUN = ("step", "inertia", "gravity", "rest_angle", "kp", "kd", "lag_steps")
# Names of the first position and velocity among the parameters of sensitivities.
FIRST_POSITION, FIRST_VELOCITY = "first_position", "first_velocity"


@dataclass(frozen=True)
class DriveStructure:
    """The effects of a drive, without numbers.

    Args:
        kind: "voltage", "torque" or "position-loop".
        friction: "M1" to "M6".
        effects: Further effects (`DRIVE_EFFECTS`).
        stribeck_exponent: Exponent of the fading of friction, 1 or 2.
    """

    kind: str
    friction: str
    effects: tuple[str, ...] = ()
    stribeck_exponent: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return drive_parameters(self.kind, self.friction, self.effects)

    @property
    def label(self) -> str:
        """Short name, such as "M3 + delay"."""
        return " + ".join([self.friction, *(e.replace("_", " ") for e in self.effects)])

    @property
    def states(self) -> int:
        """Number of states: position, velocity, the goal's filter, gap and speed of the gears."""
        return 2 + ("goal_time" in self.effects) + 2 * ("backlash" in self.effects)

    @property
    def late(self) -> bool:
        """Whether the feedback of the position is delayed."""
        return "feedback_delay" in self.effects


def step_function(s: DriveStructure, wrt: tuple[str, ...], corrected: bool) -> Function:
    """Return one step of a structure with the sensitivities to the parameters `wrt`, for `LaneScan`.

    Results: position and velocity, then the sensitivities of the position; of both, if the feedback is delayed.

    Args:
        s: Structure.
        wrt: Names of parameters.
        corrected: Use the velocity of the step's middle for friction and limits.
    """
    n, names = s.states, (*s.names, *OF_RUN)
    lagged = 2 * (1 + len(wrt)) if s.late else 0
    widths = {"sample": len(SAMPLED), "state": n * (1 + len(wrt)), "lag": 2 * lagged, "fixed": len(names)}
    t = Trace(widths)
    sample, state, lag, fixed = t.all()
    values = dict(zip(names, fixed, strict=True))
    earlier = (lag[:2], lag[lagged : lagged + 2])
    following = step_of(s, t.graph, sample, state[:n], earlier, values, corrected)
    moved: list[Any] = []
    for k, name in enumerate(wrt):
        tangents: dict[tuple[str, int], Any] = {("state", i): state[n * (1 + k) + i] for i in range(n)}
        for half in (0, lagged) if lagged else ():
            tangents |= {("lag", half + i): lag[half + 2 * (1 + k) + i] for i in range(2)}
        if name == "delay":
            tangents["sample", SAMPLED.index("next_share")] = sample[SAMPLED.index("next_share_by_delay")]
        elif name not in (FIRST_POSITION, FIRST_VELOCITY):
            tangents["fixed", names.index(name)] = 1.0
        moved.append(forward(t.graph, following, tangents))
    flat = [x for column in (following, *moved) for x in column]
    results = [*following[:2], *(x for column in moved for x in column[: 2 if s.late else 1])]
    return dense(f"drive {s.label}", t.graph, widths, [*flat, *results])


@cache
def scan_of(s: DriveStructure, wrt: tuple[str, ...], corrected: bool) -> LaneScan:
    """Return the compiled scan of a structure; it has working memory for one thread.

    Args:
        s: Structure.
        wrt: Names of parameters with sensitivities.
        corrected: Use the velocity of the step's middle for friction and limits.
    """
    return LaneScan(step_function(s, wrt, corrected))
