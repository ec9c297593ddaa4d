"""`LimitOptions`: limits of a motion as the command line and the project file state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steelyard.ground.short_repr import short_repr
from steelyard.ground.verb_options import per_joint, verb_option

# One number, one per joint, pairs of lower and upper positions, or "none".
Limit = float | str | tuple[float | tuple[float, float], ...] | None


def _limit(key: str, help: str, end: str = "; one number or one per joint; none: no limit.") -> Any:
    return verb_option(None, f"{help}{end}", "X[,…]", parse=per_joint, keys=(f"limits.{key}",))


@short_repr
@dataclass(frozen=True)
class LimitOptions:
    """Limits of designed motions, as in the project file; None: those of the robot."""

    q: Limit = _limit("q", "Positions ± X, one or one per joint, or low:high pairs; rad, m.", "")
    dq: Limit = _limit("dq", "Velocities, rad/s (m/s)")
    ddq: Limit = _limit("ddq", "Accelerations, rad/s² (m/s²); default: three times the velocities")
    jerk: Limit = _limit("jerk", "Jerks, rad/s³ (m/s³)")
    tau: Limit = _limit("tau", "Torques of the nominal model, N m (N)")
    power: Limit = _limit("power", "Powers, W")

    def stated(self) -> dict[str, Any]:
        """Return the stated limits by name; None lifts a limit."""
        return {k: None if v == "none" else v for k, v in vars(self).items() if v is not None}
