"""Families of columns: one signal of all joints, with names that only differ by the joint, and its likely meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.signals.units import unit_size

# Words in column names by signal; earlier words are more specific.
_WORDS = {
    "position": ("position", "pos", "q", "angle", "theta", "qpos", "encoder", "enc", "aipos", "winkel", "lage"),
    "velocity": ("velocity", "vel", "dq", "qd", "qdot", "speed", "spd", "qvel", "omega", "rate", "rpm"),
    "acceleration": ("acceleration", "acc", "accel", "ddq", "qdd", "qddot"),
    "torque": ("torque", "tau", "effort", "trq", "moment", "geartorque", "load", "nm"),
    "current": ("current", "cur", "curr", "amp", "amps", "macur", "i", "iq", "ma"),
    "temperature": ("temperature", "temp", "degc"),
}
# Words of commanded signals, and of signals that are not of the joints; both only count without alternatives.
_COMMANDS = frozenset(
    ("command", "commanded", "cmd", "desired", "des", "target", "reference", "ref", "setpoint", "goal", "action", "d"),
)
_OTHERS = frozenset(
    ("tcp", "tool", "pose", "cartesian", "ee", "error", "err", "ext", "external", "filtered", "limit", "flange", "hat"),
)
_MOTOR = frozenset(("motor", "mot", "drive", "rotor"))
_UNITS = {
    **{"deg": "deg", "degree": "deg", "degrees": "deg", "grad": "deg", "rad": "rad", "rads": "rad/s", "radps": "rad/s"},
    **{"degs": "deg/s", "degps": "deg/s", "dps": "deg/s", "rpm": "rpm", "rev": "rev", "mm": "mm", "mms": "mm/s"},
    **{"nm": "N m", "mnm": "mN m", "nmm": "N mm", "a": "A", "amp": "A", "amps": "A", "ma": "mA"},
    **{"ms": "ms", "us": "us", "ns": "ns", "s": "s", "sec": "s", "seconds": "s"},
}
_NUMBER = re.compile(r"\d+")
_IN_BRACKETS = re.compile(r"[\[(<{]\s*([^\])>}]*[^\d\])>}\s][^\])>}]*)\s*[\])>}]\s*$")


@dataclass(frozen=True)
class ColumnFamily:
    """Columns of one signal, one per joint.

    Attributes:
        signal: "position", …; "" if the name does not determine it.
        columns: Columns in the order of the joints, or of their numbers.
        pattern: Pattern of their names, with {} for the number or {joint} for the name.
        word: Word that determined the signal.
        unit: Unit in the name; "" for none.
        command: Whether it is a commanded signal, or not one of the joints.
        motor: Whether the name mentions motors.
    """

    signal: str
    columns: tuple[str, ...]
    pattern: str
    word: str = ""
    unit: str = ""
    command: bool = False
    motor: bool = False

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key: smaller is a more likely source of the signal."""
        words = _WORDS.get(self.signal, ())
        return self.command, words.index(self.word) if self.word in words else len(words)


def families(names: Sequence[str], joints: Sequence[str] = ()) -> list[ColumnFamily]:
    """Find the families of columns with the names of all joints, or with consecutive numbers.

    Args:
        names: Columns of a file.
        joints: Names of the joints.
    """
    groups: dict[str, dict[str, str]] = {}
    for name in names:
        for pattern, key in _places(name, joints):
            groups.setdefault(pattern, {})[key] = name
    out: list[ColumnFamily] = []
    for pattern, group in groups.items():
        if "{joint}" in pattern:
            columns = tuple(group[joint] for joint in joints) if set(group) >= set(joints) else ()
        else:
            numbers = sorted(group, key=int)
            first = int(numbers[0])
            whole = first in (0, 1) and [int(n) for n in numbers] == list(range(first, first + len(numbers)))
            columns = tuple(group[n] for n in numbers) if whole and len(numbers) > 1 else ()
        if columns:
            out.append(_family(pattern, columns))
    out.sort(key=lambda family: not family.signal)  # of two patterns for the same columns, prefer one with a signal
    return list({family.columns: family for family in reversed(out)}.values())[::-1]


def _places(name: str, joints: Sequence[str]) -> list[tuple[str, str]]:
    """Split a column name into patterns and their joint name or number."""
    numbered = [(f"{name[: m.start()]}{{}}{name[m.end() :]}", m[0]) for m in _NUMBER.finditer(name)]
    inside = [joint for joint in joints if re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name)]
    joint = max(inside, key=len, default="")
    pattern = name.replace(joint, "{joint}") if joint else ""
    # Joints may have the same names as their positions, q1, q2, …, so numbers count as well.
    return [(pattern, joint), *numbered] if tokens(pattern) else numbered


def _family(pattern: str, columns: tuple[str, ...]) -> ColumnFamily:
    unit = stated_unit(pattern)
    words = tokens(_IN_BRACKETS.sub("", pattern))
    matches = [(signal, word) for signal, known in _WORDS.items() for word in known if word in words]
    # "joint_velocity_position" is rare, "motor_current_temperature" is not: the last word counts.
    matches.sort(key=lambda pair: -words.index(pair[1]) if pair[1] in words else 0)
    signal, word = matches[0] if matches else ("", "")
    if unit and signal != "temperature" and not (signal and _measures(signal, unit)):
        # The unit has priority over the word: "j1_load_mA" is a current.
        signal = next((s for s in ("torque", "current", "velocity", "position") if _measures(s, unit)), signal)
    unit = unit if signal not in ("", "temperature") and _measures(signal, unit) else ""
    odd = not _COMMANDS.isdisjoint(words) or not _OTHERS.isdisjoint(words)
    return ColumnFamily(signal, columns, pattern, word, unit, odd, not _MOTOR.isdisjoint(words))


def stated_unit(name: str) -> str:
    """Return the unit in a column `name`, in brackets or as its last word; "" for none."""
    bracket = _IN_BRACKETS.search(name)
    if bracket:
        text = re.sub(r"[\s·*./^_]", "", bracket[1]).lower().replace("°", "deg").replace("2", "")
        return _UNITS.get(text, "")
    words = tokens(name)
    return _UNITS.get(words[-1], "") if len(words) > 1 and words[-1] not in ("a", "s", "i") else ""


def _measures(signal: str, unit: str) -> bool:
    try:
        return unit_size(signal, unit) > 0.0
    except Exception:
        return False


def tokens(name: str) -> list[str]:
    """Split a column `name` into words in lower case, without numbers and joints."""
    plain = re.sub(r"\{joint\}|\{\}", " ", name)
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    return [word for word in re.split(r"[^a-z]+", split.lower()) if word]
