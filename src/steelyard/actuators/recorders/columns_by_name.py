"""Finds goal, position, duty and the other signals of one actuator among the columns of a table, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.errors import LogError, shortened
from steelyard.signals.families import stated_unit, tokens

_COMMANDS = frozenset(
    ("goal", "target", "cmd", "command", "commanded", "desired", "des", "ref", "reference", "setpoint", "action")
)
# Words of each signal, the most specific signal first: "goal_velocity" is a velocity and not a position.
_WORDS = {
    "enabled": ("enable", "enabled"),
    "feedforward": ("feedforward", "ff"),
    "duty": ("duty", "pwm"),
    "voltage": ("voltage", "volts", "volt", "supply", "vin", "vbus", "battery"),
    "current": ("current", "amps", "curr", "iq"),
    "velocity": ("velocity", "vel", "dq", "qd", "qdot", "speed", "qvel"),
    "torque": ("torque", "tau", "effort"),
    "position": ("position", "pos", "q", "angle", "theta", "qpos", "state"),
}
_IGNORED = frozenset(("temp", "temperature", "error", "err", "ddq", "qdd", "acceleration", "acc", "image", "images"))
_TIME = frozenset(("t", "time", "timestamp", "stamp", "seconds"))
_RUN = ("log", "run", "episode", "episode_index", "trial", "file")
# Columns with settings of the firmware and the load, which are constant in a run.
SETTINGS = {
    "kp": "kp", "p_gain": "kp", "kd": "kd", "d_gain": "kd", "damping": "kd", "mass": "mass", "length": "length",
    "arm_mass": "arm_mass", "vin": "supply", "volts": "supply", "nominal_voltage": "supply", "duty_gain": "duty_gain",
    "inertia": "inertia", "gravity_torque": "gravity_torque", "rest_angle": "rest_angle",
}  # fmt: skip
# Units in the last word of a column, beyond those of other logs.
_UNITS = {
    "ticks": "ticks", "tick": "ticks", "counts": "ticks", "percent": "percent", "pct": "percent",
    "permille": "per mille", "v": "V", "mv": "mV", "volt": "V", "volts": "V", "rpm": "rpm", "a": "A", "ma": "mA",
}  # fmt: skip


def find_columns(source: str, names: Sequence[str], joint: str | None) -> dict[str, str]:
    """Return the column of each signal: time, goal, position, velocity, duty, voltage, current, torque, enabled.

    Args:
        source: Log, for errors.
        names: Columns of the table.
        joint: Name or number of the joint; optional for a table of one actuator.
    """
    usable = names if joint is None else _of_joint(source, names, joint)
    matches: dict[str, list[str]] = {}
    for name in usable:
        if name in _RUN or name.lower() in SETTINGS:
            continue
        if meaning := _meaning(name if joint is None else _without(name, joint)):
            matches.setdefault(meaning, []).append(name)
    out: dict[str, str] = {}
    for meaning, columns in matches.items():
        if len(columns) > 1:
            exact = [c for c in columns if c.lower() == meaning]
            columns = exact or columns
        if len(columns) > 1 and meaning in ("goal", "position", "time"):
            raise LogError(
                f"{source}: several columns look like the {meaning}: {shortened(', '.join(columns), 120)}; name the "
                f"joint, or the column (columns: {meaning})."
            )
        if len(columns) == 1:
            out[meaning] = columns[0]
    return out


def run_column(names: Sequence[str]) -> str | None:
    """Return the column among `names` that numbers the runs of a table, or None."""
    return next((name for name in _RUN if name in names), None)


def unit_in_name(name: str, signal: str) -> str:
    """Return the unit in a column's name; "" for none.

    Args:
        name: Column.
        signal: Its signal.
    """
    # Unlike `tokens`, this pattern does not split "mV".
    words = [word.lower() for word in re.split(r"[^A-Za-z]+", name) if word]
    last = words[-1] if len(words) > 1 else ""
    # "q_ticks_s" is a speed, "q_s" is not.
    if last == "s" and len(words) > 2 and (whole := _UNITS.get(words[-2], words[-2])) in ("ticks", "rad", "deg"):
        return f"{whole}/s" if signal == "velocity" else whole
    if signal == "time" and last in ("s", "ms", "us", "ns"):
        return last
    own = _UNITS.get(last, "") if signal != "time" else ""
    if own == "percent" and signal not in ("duty", "position"):
        own = ""
    if own in ("V", "mV") and signal != "voltage":
        own = ""
    if own in ("A", "mA") and signal != "current":
        own = ""
    return own or (stated_unit(name) if signal not in ("duty", "voltage", "enabled") else "")


def _meaning(name: str) -> str | None:
    words = tokens(name)
    if not words or not _IGNORED.isdisjoint(words):
        return None
    if len(words) <= 2 and words[0] in _TIME:
        return "time"
    signal = next((s for s, known in _WORDS.items() if not set(known).isdisjoint(words)), None)
    if not _COMMANDS.isdisjoint(words):
        if signal in ("enabled", "feedforward"):
            return signal
        if signal == "torque":
            return "feedforward"
        return "goal" if signal in ("position", None) else None
    return signal


def _of_joint(source: str, names: Sequence[str], joint: str) -> list[str]:
    """Columns of one joint, and those without the name of a joint."""
    own = [name for name in names if _without(name, joint) != name]
    if not own:
        if sum(_meaning(name) == "position" for name in names) == 1:
            return list(names)  # a table of one actuator: its columns may lack the name of the joint
        raise LogError(
            f"{source}: no column belongs to the joint '{shortened(joint, 40)}'; columns: "
            f"{shortened(', '.join(names), 200)}."
        )
    shapes = {_without(name, joint) for name in own}
    # A column belongs to another joint if its name differs from one of ours only in the name of the joint.
    others = {name for name in names if name not in own and any(_same_shape(name, shape) for shape in shapes)}
    return [name for name in names if name not in others]


def _same_shape(name: str, shape: str) -> bool:
    head, _, tail = shape.partition("\0")
    return name.startswith(head) and name.endswith(tail) and len(name) > len(head) + len(tail) and bool(head or tail)


def _without(name: str, joint: str) -> str:
    """The name with a mark in place of the joint, which is a whole word or a number, as in "goal2"."""
    before, after = (r"(?<!\d)", r"(?!\d)") if joint.isdigit() else (r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])")
    return re.sub(f"{before}{re.escape(joint)}{after}", "\0", name, count=1)
