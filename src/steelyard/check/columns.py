"""Guess the meaning of the columns of a log from names and numbers.

Columns of goals, commands and duty are for the identification of drives without a torque sensor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.check._unit_guess import time_unit, unit_of, velocity_of
from steelyard.check.guessed_mapping import Guess, GuessedMapping, Lacking, _apply, _shown, _value_of
from steelyard.check.torque_constants import TARGETS, ConstantEstimate, constants_from_targets, lines_to_fill_in
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.robot.robot import Robot
from steelyard.signals.families import ColumnFamily, families, stated_unit, tokens
from steelyard.signals.log import Finding
from steelyard.signals.presets import PRESETS
from steelyard.signals.recognise import recognise_time
from steelyard.signals.table import LogReader, Table, first_rows, open_reader

_GOALS = frozenset(
    ("goal", "target", "cmd", "command", "commanded", "desired", "des", "setpoint", "reference", "ref", "action")
)
_DUTIES = frozenset(("duty", "pwm"))


def goal_columns(
    names: Sequence[str], joints: Sequence[str], width: int, used: Sequence[str]
) -> dict[str, tuple[ColumnFamily, str]]:
    """Return the columns of "goal" and "duty" and the word that identifies them, if a log has them for all joints.

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


ROWS_LOOKED_AT = 20_000
SIGNALS_GUESSED = ("position", "velocity", "acceleration", "torque", "current", "temperature")


def guess_columns(
    log: str | os.PathLike[str] | LogReader, robot: Robot | None = None, preset: str | None = None
) -> GuessedMapping:
    """Guess the meaning of the columns of a log from their names and numbers.

    Args:
        log: File of any format, or its reader.
        robot: Robot of the log; names, limits and kinds of its joints are evidence.
        preset: Key of `PRESETS`, the recorder of the log (default: the first that fits, if any).
    """
    reader = log if isinstance(log, LogReader) else open_reader(log)
    table = reader.table(reader.names, first_rows(reader.blocks(reader.names), ROWS_LOOKED_AT), 0)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may be absurd
        return _Guesser(reader, table, robot, preset).guessed()


class _Guesser:
    def __init__(self, reader: LogReader, table: Table, robot: Robot | None, preset: str | None) -> None:
        self.reader, self.table, self.robot = reader, table, robot
        self.keys: dict[str, Any] = {}
        self.guesses: list[Guess] = []
        self.missing: list[Lacking] = []
        self.numeric = [name for name in reader.names if table.column(name).dtype.kind in "biufM"]
        self.joints = robot.joint_names if robot is not None else tuple(reader.joints)
        self.preset = preset or self._looks_like()
        if self.preset is not None:
            PRESETS[self.preset]  # raises if it is unknown

    def _lack(self, text: str, key: str = "", known: ConstantEstimate | None = None) -> None:
        lines = lines_to_fill_in(key, self.joints, self.preset, known) if key else ()
        self.missing.append(Lacking(text, key, lines))

    def _looks_like(self) -> str | None:
        joints = self.joints or self._counted()
        fitting = [name for name, preset in PRESETS.items() if joints and preset.fits(self.numeric, joints)]
        return fitting[0] if fitting else None

    def _counted(self) -> tuple[str, ...]:
        """Name unnamed joints: as many as the largest family of positions has columns."""
        found = [f for f in families(self.numeric, ()) if f.signal == "position"]
        width = max((len(f.columns) for f in found if f.rank == min(g.rank for g in found)), default=0)
        return tuple(f"joint{k + 1}" for k in range(width))

    def guessed(self) -> GuessedMapping:
        chosen = self._families()
        if "position" not in chosen:
            raise LogError(f"{self.reader.path}: {self._no_positions()}")
        if self.reader.sparse:  # rows of other topics have other clocks
            others = np.asarray(np.isnan(self._numbers(chosen["position"].columns)).any(axis=1))
            self.table = self.table.without(others, Finding("remark", "note", "other rows"))
        t = self._time()
        if not self.joints:
            self.joints = tuple(f"joint{k + 1}" for k in range(len(chosen["position"].columns)))
            self._lack("the robot: it gives names to the joints, and limits to check units against.")
        self.keys["joints"] = list(self.joints)
        numbers = {signal: self._numbers(family.columns) for signal, family in chosen.items()}
        for signal, family in chosen.items():
            self._signal(signal, family, numbers, t)
        goals = self._goals(chosen)
        if "torque" not in chosen and "current" not in chosen:
            self._lack(
                "torques or currents: without them only drives can be identified, from goals and positions "
                "(steelyard actuator)."
                if "goal" in goals
                else "torques or currents: without them nothing can be identified."
            )
        used = {name for guess in self.guesses for name in guess.columns}
        unused = tuple(name for name in self.reader.names if name not in used)
        notes = (PRESETS[self.preset].note,) if self.preset else ()
        order = ("joints", "time", *SIGNALS_GUESSED)
        keys = {k: self.keys[k] for k in sorted(self.keys, key=lambda k: order.index(k) if k in order else len(order))}
        return GuessedMapping(str(self.reader.path), keys, tuple(self.guesses), unused, tuple(self.missing), notes)

    def _goals(self, chosen: Mapping[str, ColumnFamily]) -> dict[str, tuple[ColumnFamily, str]]:
        """Goals and duties become channels of the log: they are in the numbers of the file."""
        used = [name for family in chosen.values() for name in family.columns]
        width = len(chosen["position"].columns)
        found = goal_columns(self.numeric, self.joints if self.robot is not None else (), width, used)
        for name, (family, word) in found.items():
            self.keys.setdefault("channels", {})[name] = list(family.columns)
            unit = family.unit or (self._unit("position") if name == "goal" else "")
            self.guesses.append(Guess(f"channels.{name}", family.columns, unit, f"by the word '{word}'; for drives"))
        return found

    def _no_positions(self) -> str:
        others = [f.columns for f in families(self.numeric) if f.signal == "position" and not f.command]
        if others and self.robot is not None:
            return (
                f"there are {len(others[0])} columns of positions ({_shown(others[0])}), but the robot has "
                f"{len(self.joints)} joints; name those that are in the log (--joints)."
            )
        there = _shown(self.numeric, 12)
        return f"no column looks like the joints' positions; write a mapping (position = […]). Columns: {there}."

    def _numbers(self, columns: Sequence[str]) -> Array:
        out = np.full((len(self.table), len(columns)), np.nan)
        for k, name in enumerate(columns):
            out[:, k] = np.asarray(self.table.column(name), dtype=float)
        return out

    def _time(self) -> Array | None:
        """Guess the clock [s]; None if there is none."""
        stated = PRESETS[self.preset].find(self.numeric, self.joints or self._counted()) if self.preset else {}
        name = str(stated["time"]) if "time" in stated else recognise_time(self.numeric)
        if name is None:
            name = next((n for n in self.numeric if _increases(self.table.column(n))), None)
            why = "increases from row to row, and nothing else does" if name else ""
        else:
            why = f"name used by {PRESETS[self.preset].recorder}" if "time" in stated and self.preset else "by its name"
        if name is None:
            self._lack("a clock: give the samples per second, time = {rate = …}.", "time.rate")
            return None
        self.keys["time"] = name
        column = self.table.column(name)
        if column.dtype.kind == "M":
            self.guesses.append(Guess("time", (name,), "", f"{why}; time stamps with a unit"))
            return np.asarray((column - column[0]).astype("m8[ns]").astype(float) * 1e-9)
        said = PRESETS[self.preset].units.get("time", "") if "time" in stated and self.preset else stated_unit(name)
        unit, size, evidence, others = time_unit(np.asarray(column, dtype=float), said)
        question = f"Is {name} in {unit}?" if others else ""
        choices = {f"{name} in {u}": {"units.time": u} for u in (unit, *others)} if others else {}
        self.keys.setdefault("units", {})["time"] = unit
        self.guesses.append(Guess("time", (name,), unit, f"{why}; {evidence}", question, choices))
        values = np.asarray(column, dtype=float)
        return np.asarray((values - values[0]) * size)

    def _families(self) -> dict[str, ColumnFamily]:
        """Choose the most likely columns of each signal."""
        if self.preset is not None:
            preset = PRESETS[self.preset]
            found = preset.find(self.numeric, self.joints or self._counted())
            wanted = [s for s in SIGNALS_GUESSED if s in found and not (s == "current" and "torque" in found)]
            named = {
                s: ColumnFamily(s, tuple(found[s]), preset.columns[s][0], unit=preset.units.get(s, "")) for s in wanted
            }
            return named if not named or {"torque", "current"} & set(named) else {**named, **self._effort(named)}
        every = families(self.numeric, self.joints if self.robot is not None or self.reader.joints else ())
        width = len(self.joints) if self.joints else len(self._counted())
        chosen: dict[str, ColumnFamily] = {}
        for signal in SIGNALS_GUESSED:
            fitting = [f for f in every if f.signal == signal and len(f.columns) == width]
            fitting.sort(key=lambda f: f.rank)
            if fitting:
                chosen[signal] = fitting[0]
                self._rivals(signal, fitting)
        if "torque" in chosen and "current" in chosen:
            del chosen["current"]
        return chosen

    def _effort(self, chosen: Mapping[str, ColumnFamily]) -> dict[str, ColumnFamily]:
        """Find torques, or else currents, that a recorder's preset does not name."""
        width = len(chosen["position"].columns) if "position" in chosen else 0
        used = {name for family in chosen.values() for name in family.columns}
        for signal in ("torque", "current"):
            fitting = [f for f in families(self.numeric, self.joints) if f.signal == signal and not f.command]
            fitting = [f for f in fitting if len(f.columns) == width and not used.intersection(f.columns)]
            if fitting:
                return {signal: min(fitting, key=lambda f: f.rank)}
        return {}

    def _rivals(self, signal: str, fitting: list[ColumnFamily]) -> None:
        rivals = [f for f in fitting[1:] if f.command == fitting[0].command]
        if rivals and signal != "temperature":
            choices = {f.pattern: {signal: list(f.columns)} for f in (fitting[0], *rivals[:4])}
            what = f"Which of them is the {signal}: {', '.join(choices)}?"
            self.guesses.append(Guess(signal, fitting[0].columns, "", "several columns fit", what, choices))

    def _signal(self, signal: str, family: ColumnFamily, numbers: dict[str, Array], t: Array | None) -> None:
        why = f"by the word '{family.word}'"
        if self.preset and not family.word:
            why = f"names used by {PRESETS[self.preset].recorder}"
        self.keys[signal] = list(family.columns)
        if signal == "temperature":
            self.guesses.append(Guess(signal, family.columns, "°C", why))
            return
        if signal == "velocity" and t is not None:
            q, of_q = numbers["position"], self._unit("position")
            unit, evidence, more, question, choices = velocity_of(q, numbers[signal], t, of_q, family.unit)
            if "sign" in more:
                self.keys.setdefault("sign", {})["velocity"] = more["sign"]
        else:
            unit, evidence, question, choices = unit_of(signal, numbers[signal], family.unit, self._joints_of_robot())
        if unit:
            self.keys.setdefault("units", {})[signal] = unit
        if family.motor and signal in ("position", "velocity") and not question:
            question = f"Is the {signal} that of the motors, before their gears?"
            choices = {"at the joints": {}, "at the motors": {"side": "motor"}}
        if choices:
            # The first choice is assumed; another one must undo its changes.
            first = next(iter(choices.values()))
            back = {key: _value_of(self.keys, key) for key in first}
            choices = {text: {**back, **does} for text, does in choices.items()}
            _apply(self.keys, first)
        self.guesses.append(Guess(signal, family.columns, unit, f"{why}; {evidence}", question, choices))
        if self.keys.get("side") == "motor" and signal == "position":
            self._lack("gear_ratio (turns of a motor per turn of its joint): the log does not hold it.", "gear_ratio")
        if signal == "current":
            self._torque_constants()

    def _torque_constants(self) -> None:
        """Compute the torque constants from commanded torques and currents, or ask for them."""
        text = "torque_constants (N m per A at the joint): without them, masses have no unit of kg."
        patterns = TARGETS.get(self.preset or "", ("", ""))
        torques, currents = ([pattern.format(k) for k in range(len(self.joints))] for pattern in patterns)
        if not set(self.numeric).issuperset((*torques, *currents)):
            self._lack(text, "torque_constants")
            return
        velocity = np.gradient(self._numbers(self.keys["position"]), axis=0)
        known = constants_from_targets(self._numbers(torques), self._numbers(currents), velocity)
        if not known.is_complete:
            unclear = [name for name, x in zip(self.joints, known.values, strict=True) if not np.isfinite(x)]
            more = f" Commanded torque and friction do not explain the commanded current of {', '.join(unclear)}."
            self._lack(text + more, "torque_constants", known)
            return
        values = [float(f"{x:.5g}") for x in known.values]
        self.keys["torque_constants"] = values
        why = f"{torques[0]}, … and friction explain {100.0 * min(known.explained):.3g} % of {currents[0]}, … or more"
        choices: dict[str, dict[str, Any]] = {
            "these constants": {"torque_constants": values},
            "unknown": {"torque_constants": None},
        }
        question = f"Are the torque constants {', '.join(f'{x:.4g}' for x in values)} N m per A?"
        self.guesses.append(Guess("torque_constants", (*torques, *currents), "N m/A", why, question, choices))

    def _joints_of_robot(self) -> Sequence[Any]:
        return self.robot.joints if self.robot is not None else ()

    def _unit(self, signal: str) -> str:
        return str(self.keys.get("units", {}).get(signal, ""))


def _increases(column: Any) -> bool:
    steps = np.diff(np.asarray(column, dtype=float))
    return len(steps) > 10 and bool(np.all(steps > 0.0)) and float(np.ptp(steps)) <= 100.0 * float(np.median(steps))
