"""Columns of commands, goals and duty, for the identification of drives without a torque sensor."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.signals.families import ColumnFamily, families, tokens

_GOALS = frozenset(
    ("goal", "target", "cmd", "command", "commanded", "desired", "des", "setpoint", "reference", "ref", "action")
)
_DUTIES = frozenset(("duty", "pwm"))


def goal_columns(
    names: Sequence[str], joints: Sequence[str], width: int, used: Sequence[str]
) -> dict[str, tuple[ColumnFamily, str]]:
    """Return the columns of "goal" and "duty" with the word that tells, where a log has them for all joints.

    Args:
        names: Numeric columns of the log.
        joints: Names of the joints, if the columns have them.
        width: Number of joints.
        used: Columns that have another meaning.
    """
    out: dict[str, tuple[ColumnFamily, str]] = {}
    for family in families(names, joints):
        if len(family.columns) != width or not set(used).isdisjoint(family.columns):
            continue
        words = tokens(family.pattern)
        goal = next((word for word in words if word in _GOALS), "")
        duty = next((word for word in words if word in _DUTIES), "")
        if duty and not goal:
            out.setdefault("duty", (family, duty))
        elif goal and family.signal in ("position", ""):
            out.setdefault("goal", (family, goal))
    return out
