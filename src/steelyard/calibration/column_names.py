"""Names of columns in one form: units after an underscore, words joined by underscores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from steelyard.errors import LogError

_UNITS = {
    "degrees": "deg", "degree": "deg", "°": "deg", "radians": "rad", "radian": "rad", "metres": "m", "meters": "m",
    "millimetres": "mm", "millimeters": "mm", "inch": "in",
}  # fmt: skip
_BRACKETS = re.compile(r"[\s_]*[\[({<]\s*([^\])}>]+?)\s*[\])}>]\s*$")
_JOINT = re.compile(
    r"^(q|d|joint|theta|th|pos|position|axis|angle|j|a)_?(\d+)(?:_(?:position|pos|angle|value|q))?(?:_(rad|deg|m|mm))?$"
)
# Tables with joints named by other letters than these have them all named so.
_USUAL = ("q", "d", "joint", "theta", "th", "pos", "position", "j")
_SHOWN = 12


def plain_name(name: str) -> str:
    """Write the `name` of a column in one form: "Joint1 [deg]" and "Joint1 (°)" are "joint1_deg"."""
    plain = _BRACKETS.sub(r"_\1", name.strip())
    plain = re.sub(r"[\s\-./]+", "_", plain).lower()
    first, _, last = plain.rpartition("_")
    return f"{first}_{_UNITS[last]}" if first and last in _UNITS else plain


def numbered_joints(names: Iterable[str]) -> dict[int, tuple[str, str]]:
    """Return the columns of numbered joints among `names`: number → (column, unit); "" for an unstated unit."""
    families: dict[str, dict[int, tuple[str, str]]] = {}
    for name in names:
        if m := _JOINT.match(plain_name(name)):
            family = "" if m[1] in _USUAL else m[1]
            families.setdefault(family, {}).setdefault(int(m[2]), (name, m[3] or ""))
    return families.get("") or max(families.values(), key=len, default={})


def listed(names: Sequence[str]) -> str:
    """Write the first of many `names` of columns."""
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def no_joint_column(path: object, names: Sequence[str], joint: str, number: int, unit: str) -> LogError:
    """Return the error that a joint has no column.

    Args:
        path: File.
        names: Its columns.
        joint: Name of the joint.
        number: Its number, from 1.
        unit: Its unit.
    """
    return LogError(
        f"{path}: has no column for joint '{joint}'; name it q_{joint}_{unit} or q{number}_{unit}, or lock the joint "
        f"if it did not move (--lock {joint}=0). Its columns are {listed(names)}."
    )
