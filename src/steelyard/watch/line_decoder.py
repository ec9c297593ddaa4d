"""`LineDecoder`: decodes samples from lines of JSON or CSV, and counts invalid lines.

A JSON line is {"t": 12.345, "q": [...], "dq": [...], "tau": [...]} in the order of the model's joints, or of "joints":
["name", ...]. The names of ROS (name, position, velocity, effort) are also valid. A CSV line has t, all q, all dq and
all tau, or the columns of a header line before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.arrays import Array
from steelyard.watch.columns import LiveColumns, state_columns
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.live_source import SourceError, SourceOptions

# Bytes of a line; a hundred joints with all digits take 8,000.
MAX_LINE = 1 << 16
# Layouts (joint names, headers) that a sender may use; each takes a millisecond to analyse.
_MAX_LAYOUTS = 64
_MAX_COLUMNS = 2048
_NUMBERS = {float}
_decode_json = json.JSONDecoder().raw_decode
_FIELD_NAMES = {
    "t": ("t", "time", "stamp"),
    "q": ("q", "position", "positions"),
    "dq": ("dq", "velocity", "velocities", "qd"),
    "tau": ("tau", "effort", "efforts", "torque", "torques"),
    "joints": ("joints", "name", "names"),
}


class LineDecoder:
    """Decodes the lines of one sender, which arrive in pieces.

    Args:
        options: Settings of the source: the robot and the meaning of the columns.
        diagnostics: Counts "not understood", "other joints", "too long" and "half a line".
    """

    def __init__(self, options: SourceOptions, diagnostics: Diagnostics) -> None:
        self._options, self._diagnostics, self._joints = options, diagnostics, options.robot.joint_names
        self._default: LiveColumns | None = None  # of lines without joint names
        self._layouts: dict[tuple[str, ...], LiveColumns] = {}
        self._failures = 0
        self._half, self._skipping = b"", False
        self._csv: LiveColumns | None = None
        self._values: list[list[float]] = []
        self._current: LiveColumns | None = None
        self._out: list[Array] = []
        self.valid = 0  # valid lines

    def feed(self, data: bytes) -> Array:
        """Decode more `data`; an incomplete last line waits for the rest."""
        lines = (self._half + data).split(b"\n") if self._half else data.split(b"\n")
        self._half = lines.pop()
        if self._skipping and lines:  # the end of a line that was too long
            lines.pop(0)
            self._skipping = False
        if len(self._half) > MAX_LINE or self._skipping:
            if not self._skipping:
                self._too_long()
            self._half, self._skipping = b"", True
        return self.decode_lines(lines)

    def finish(self) -> None:
        """Count an incomplete line at the end of the stream."""
        if self._half.strip() or self._skipping:
            self._diagnostics.count("half a line", "The sender stopped in the middle of a line; the line is dropped.")
        self._half, self._skipping = b"", False

    def decode_lines(self, lines: Sequence[bytes]) -> Array:
        """Decode complete `lines`."""
        for line in lines:
            if line and not line.isspace():
                self._line(line)
        self._finish()
        out, self._out = self._out, []
        return out[0] if len(out) == 1 else np.vstack(out) if out else self._none()

    def _none(self) -> Array:
        return np.zeros((0, 1 + 3 * self._options.robot.dof))

    def _too_long(self) -> None:
        message = f"A line is longer than {MAX_LINE} bytes and is dropped. Send one sample per line."
        self._diagnostics.count("too long", message)

    def _line(self, line: bytes) -> None:
        if len(line) > MAX_LINE:
            self._too_long()
            return
        try:
            if line[:1] == b"{" or line.lstrip()[:1] == b"{":
                columns, values = self._json(line)
            else:
                sample = self._csv_line(line)
                if sample is None:
                    return
                columns, values = sample
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            shown = shortened(line[:60].decode("utf-8", "replace").strip(), 60)
            self._diagnostics.count("not understood", f"A line is not a sample ({shown!r}) and is dropped.")
            return
        except SteelyardError as error:
            self._diagnostics.count("other joints", f"A line is dropped: {error}")
            return
        if columns is not self._current:
            self._finish()
            self._current = columns
        self._values.append(values)
        self.valid += 1

    def _finish(self) -> None:
        if self._current is not None and self._values:
            self._out.append(self._current.rows(np.array(self._values)))
        self._values = []

    def _json(self, line: bytes) -> tuple[LiveColumns, list[float]]:
        text = line.decode("utf-8").strip()
        data, end = _decode_json(text)
        if end != len(text):
            raise ValueError("more than one value")
        if "q" not in data or "dq" not in data or "tau" not in data or "t" not in data:
            data = {word: data[name] for word, names in _FIELD_NAMES.items() for name in names if name in data}
        q, dq, tau, t = data["q"], data["dq"], data["tau"], data.get("t")
        names: Sequence[str] = data.get("joints", self._joints)
        if isinstance(q, dict):
            names = list(q)
            q, dq, tau = ([signal[name] for name in names] for signal in (q, dq, tau))
        count = len(names)
        if len(q) != count or len(dq) != count or len(tau) != count:
            raise SourceError(f"it has {len(q)} positions for {count} joints.")
        values = [*q, *dq, *tau] if t is None else [float(t), *q, *dq, *tau]
        if not _NUMBERS.issuperset(map(type, values)):
            values = [float("nan") if x is None else float(x) for x in values]
        if names is not self._joints or t is None:
            return self._columns(tuple(names), t is not None), values
        if self._default is None:
            self._default = self._columns(names, True)
        return self._default, values

    def _columns(self, names: tuple[str, ...], timed: bool) -> LiveColumns:
        key = (str(timed), *names)
        columns = self._layouts.get(key)
        if columns is None:
            if len(names) > _MAX_COLUMNS or not all(isinstance(name, str) for name in names):
                raise SourceError("its joints are not a list of names.")
            columns = self._new_columns(state_columns(names)[0 if timed else 1 :], names)
            self._layouts[key] = columns
        return columns

    def _new_columns(self, names: Sequence[str], joints: Sequence[str] = ()) -> LiveColumns:
        """Analyse a new layout; refuse a sender that changes its layout too often."""
        if self._failures + len(self._layouts) >= _MAX_LAYOUTS or len(names) > _MAX_COLUMNS:
            raise SourceError("the sender uses too many different column layouts.")
        self._failures += 1
        columns = LiveColumns(names, self._options.robot, self._options.mapping, joints)
        self._failures -= 1
        return columns

    def _csv_line(self, line: bytes) -> tuple[LiveColumns, list[float]] | None:
        """Decode a CSV line; return None if it is a header."""
        cells: list[Any] = line.split(b",") if b"," in line else line.replace(b";", b" ").split()
        try:
            values = list(map(float, cells))
        except ValueError:
            values = []
        if not values:
            names = tuple(cell.decode("utf-8").strip().strip('"') for cell in cells)
            if len(names) < 1 + 3 * self._options.robot.dof or not names[0][:1].isalpha():
                raise ValueError("no header")
            self._csv = self._new_columns(names)
            self._layouts[("csv", *names)] = self._csv
            return None
        if self._csv is None:
            dof = self._options.robot.dof
            self._csv = self._new_columns(("t", *(f"{s}{k + 1}" for s in ("q", "dq", "tau") for k in range(dof))))
        if len(values) != self._csv.count:
            raise SourceError(f"it has {len(values)} numbers, not {self._csv.count}: t, all q, all dq, all tau.")
        return self._csv, values
