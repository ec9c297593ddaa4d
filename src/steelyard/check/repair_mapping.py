"""Repair a mapping by the fixes of a check: units, signs, zeros, scales, order, couplings, clock, gravity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from steelyard.check.check import Check
from steelyard.errors import UnknownNameError
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping

_UNITS_OF_TIME = {1e-3: "ms", 1e-6: "us", 1e-9: "ns"}
_SI = {
    "units.position": {"revolute": "rad", "prismatic": "m"},
    "units.velocity": {"revolute": "rad/s", "prismatic": "m/s"},
}


def repair_mapping(
    check: Check, robot: Robot, log: Log, mapping: Mapping[str, Any], only: Collection[str] = ()
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Apply the fixes of a check to a mapping; return it with advice for faults that a mapping cannot fix.

    Args:
        check: Check of the log.
        robot: Robot of the log.
        log: Beginning of the log, read with the mapping.
        mapping: Mapping, as in its file.
        only: Keys or kinds of the findings to fix; empty: all.
    """
    chosen = [e for e in check.complaints if not only or e.key in only or e.kind in only]
    for name in only:
        if not any(name in (e.key, e.kind) and e.fix is not None for e in chosen):
            raise UnknownNameError("finding that a mapping can fix", name, [e.key for e in check.complaints if e.fix])
    data: dict[str, Any] = {key: dict(x) if isinstance(x, Mapping) else x for key, x in mapping.items()}
    stated = LogMapping.from_table(data)
    names = list(stated.joints or robot.joint_names)
    by_hand: list[str] = []
    for entry in chosen:
        if entry.fix is None:
            by_hand.append(entry.advice)
            continue
        for key, value in entry.fix.items():
            _apply(data, names, stated, robot, log, key, value, entry.joint, by_hand)
    return data, tuple(dict.fromkeys(text for text in by_hand if text))


def _apply(
    data: dict[str, Any], names: list[str], stated: LogMapping, robot: Robot, log: Log, key: str, value: Any,
    joint: str | None, by_hand: list[str],
) -> None:  # fmt: skip
    if key in ("gravity", "velocity"):
        data[key] = value
    elif key in ("offset", "torque_scale"):
        start = 0.0 if key == "offset" else 1.0
        numbers = _each(data.get(key) and getattr(stated, key), len(names), start)
        for name, number in value.items():
            k = names.index(name)
            numbers[k] = round(numbers[k] + number if key == "offset" else numbers[k] * number, 4)
        data[key] = numbers
    elif key.startswith("sign."):
        signs = data["sign"] if isinstance(data.get("sign"), dict) else {k: list(v) for k, v in stated.sign.items()}
        for what in ("position", "velocity") if key == "sign.position" else (key.removeprefix("sign."),):
            numbers = _each(signs.get(what), len(names), 1.0)
            for name, number in value.items():
                numbers[names.index(name)] *= number
            signs[what] = [int(x) for x in numbers]
        data["sign"] = signs
    elif key in _SI:
        units = data.setdefault("units", {})
        what = key.removeprefix("units.")
        kinds = {j.name: j.kind for j in robot.joints}
        now = units.get(what) or [_SI[key][kinds.get(name, "revolute")] for name in names]
        now = [now] * len(names) if isinstance(now, str) else list(now)
        now[names.index(joint or names[0])] = value
        units[what] = now[0] if len(set(now)) == 1 else now
        if key == "units.position" and log.dq is not None and joint in log.joints:
            k = log.joints.index(joint)
            made = np.gradient(log.q[:, k], log.t)
            if 0.5 < float(log.dq[:, k] @ made) / max(float(made @ made), 1e-300) < 2.0:  # same unit as the position
                _apply(data, names, stated, robot, log, "units.velocity", f"{value}/s", joint, by_hand)
    elif key == "exchange":
        a, b = (names.index(name) for name in value)
        names[a], names[b] = names[b], names[a]
        data["joints"] = list(names)
    elif key == "time.factor":
        unit = next((u for size, u in _UNITS_OF_TIME.items() if abs(value / size - 1.0) < 0.05), None)
        if unit is not None and "time" not in data.get("units", {}):
            data.setdefault("units", {})["time"] = unit
        else:
            data["time"] = {"rate": round(1.0 / (float(np.median(np.diff(log.t))) * value), 3)}
    elif key == "torque_used":
        used = data.get(key) or [n for n, u in zip(robot.joint_names, robot.torque_used, strict=True) if u]
        data[key] = [name for name in used if name not in value]
    elif key == "coupling":
        _couple(data, names, value, by_hand)
    elif key == "exchange torques":
        _exchange_columns(data, names, log, value, by_hand)


def _couple(data: dict[str, Any], names: list[str], value: Mapping[str, Any], by_hand: list[str]) -> None:
    """Set the coupling matrix C of motor positions u = C q."""
    if "coupling" in data or not {value["motor"], value["joint"]} <= set(names):
        by_hand.append(
            f"The motor of '{value['motor']}' also moves '{value['joint']}': correct the coupling in the mapping."
        )
        return
    matrix = np.eye(len(names), dtype=int).tolist()
    matrix[names.index(value["motor"])][names.index(value["joint"])] = int(value["factor"])
    data["coupling"] = matrix
    data["side"] = {"torque": value["torque"], "position": "joint", "velocity": "joint"}
    by_hand.append("Positions are assumed at the joints. For motor positions, state side and check the signs.")


def _exchange_columns(
    data: dict[str, Any], names: list[str], log: Log, value: list[str], by_hand: list[str]
) -> None:  # fmt: skip
    """Name the columns of torques (or currents) in the right order."""
    key = str(log.meta.get("torque_from", ""))
    known = dict(zip(log.joints, log.meta.get("columns", {}).get(key, ()), strict=False))
    if set(known) != set(names):
        by_hand.append(f"Name the torque columns of {' and '.join(value)} in the right order (torque).")
        return
    a, b = value
    known[a], known[b] = known[b], known[a]
    data[key] = [known[name] for name in names]


def _each(value: Any, count: int, default: float) -> list[float]:
    if not value:
        return [default] * count
    numbers = [float(x) for x in (value if isinstance(value, list | tuple) else [value])]
    return numbers * count if len(numbers) == 1 else numbers


_TOML = {'"': '\\"', "\\": "\\\\"}


def as_toml(data: Mapping[str, Any]) -> str:
    """Write the `data` of a mapping as TOML: plain keys, then tables, then the mappings of single files."""
    plain = [f"{key} = {_value(x)}" for key, x in data.items() if not isinstance(x, Mapping)]
    named = [(key, x) for key, x in data.items() if isinstance(x, Mapping) and key != "files"]
    named += [(f"files.{_key(name)}", x) for name, x in data.get("files", {}).items()]
    tables = [f"[{key}]\n" + "\n".join(f"{_key(k)} = {_value(v)}" for k, v in x.items()) for key, x in named]
    return "\n\n".join(["\n".join(plain), *tables]).strip() + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _value(name)


def _value(x: Any) -> str:
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, str):
        return '"' + "".join(_TOML.get(c) or (c if c.isprintable() else f"\\U{ord(c):08X}") for c in x) + '"'
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in x.items()) + "}"
    if isinstance(x, list | tuple):
        return "[" + ", ".join(_value(v) for v in x) + "]"
    return repr(x)
