"""`LineDecoder`: samples from lines of text, JSON or CSV, whoever sends them; what cannot be understood is counted.

A line of JSON is {"t": 12.345, "q": [...], "dq": [...], "tau": [...]}, in the order of the model's joints, or of
"joints": ["name", ...]; the words of ROS (name, position, velocity, effort) will do, too. A line of CSV holds t, all q,
all dq and all tau, or what a line of names before it says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.arrays import Array
from steelyard.watch.columns import LiveColumns, state_columns
from steelyard.watch.source import SourceError, SourceOptions
from steelyard.watch.tally import Tally

# Bytes of a line: a hundred joints with all digits take 8,000.
MOST_LINE = 1 << 16
# Kinds of lines (names of joints, headers) that a sender may have; each takes a millisecond to find out.
_MOST_KINDS = 64
_MOST_COLUMNS = 2048
_NUMBERS = {float}
_decoded = json.JSONDecoder().raw_decode
_WORDS = {
    "t": ("t", "time", "stamp"),
    "q": ("q", "position", "positions"),
    "dq": ("dq", "velocity", "velocities", "qd"),
    "tau": ("tau", "effort", "efforts", "torque", "torques"),
    "joints": ("joints", "name", "names"),
}


class LineDecoder:
    """Lines of one sender, in pieces as they come.

    Args:
        options: of the source: the robot, and what its columns mean.
        tally: where what is wrong is counted: "not understood", "other joints", "too long", "half a line".
    """

    def __init__(self, options: SourceOptions, tally: Tally) -> None:
        self._options, self._tally, self._joints = options, tally, options.robot.joint_names
        self._usual: LiveColumns | None = None  # of lines that name no joints
        self._kinds: dict[tuple[str, ...], LiveColumns] = {}
        self._refused = 0
        self._half, self._skipping = b"", False
        self._csv: LiveColumns | None = None
        self._values: list[list[float]] = []
        self._of: LiveColumns | None = None
        self._out: list[Array] = []
        self.good = 0  # lines that were understood

    def feed(self, data: bytes) -> Array:
        """The samples in some more `data`; what follows its last end of a line waits for the rest."""
        lines = (self._half + data).split(b"\n") if self._half else data.split(b"\n")
        self._half = lines.pop()
        if self._skipping and lines:  # the end of a line whose beginning is gone
            lines.pop(0)
            self._skipping = False
        if len(self._half) > MOST_LINE or self._skipping:
            if not self._skipping:
                self._too_long()
            self._half, self._skipping = b"", True
        return self.whole(lines)

    def end(self) -> None:
        """No more will come: half a line is lost."""
        if self._half.strip() or self._skipping:
            self._tally.count("half a line", "The sender stopped in the middle of a line; that line is left out.")
        self._half, self._skipping = b"", False

    def whole(self, lines: Sequence[bytes]) -> Array:
        """The samples in `lines` that are whole."""
        for line in lines:
            if line and not line.isspace():
                self._line(line)
        self._finish()
        out, self._out = self._out, []
        return out[0] if len(out) == 1 else np.vstack(out) if out else self._none()

    def _none(self) -> Array:
        return np.zeros((0, 1 + 3 * self._options.robot.dof))

    def _too_long(self) -> None:
        self._tally.count(
            "too long", f"A line is longer than {MOST_LINE} bytes; it is left out: send one sample a line."
        )

    def _line(self, line: bytes) -> None:
        if len(line) > MOST_LINE:
            self._too_long()
            return
        try:
            if line[:1] == b"{" or line.lstrip()[:1] == b"{":
                columns, values = self._json(line)
            else:
                found = self._separated(line)
                if found is None:
                    return
                columns, values = found
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            shown = shortened(line[:60].decode("utf-8", "replace").strip(), 60)
            self._tally.count("not understood", f"A line is no sample ({shown!r}); it is left out.")
            return
        except SteelyardError as error:
            self._tally.count("other joints", f"A line is left out: {error}")
            return
        if columns is not self._of:
            self._finish()
            self._of = columns
        self._values.append(values)
        self.good += 1

    def _finish(self) -> None:
        if self._of is not None and self._values:
            self._out.append(self._of.rows(np.array(self._values)))
        self._values = []

    def _json(self, line: bytes) -> tuple[LiveColumns, list[float]]:
        text = line.decode("utf-8").strip()
        data, end = _decoded(text)
        if end != len(text):
            raise ValueError("more than one value")
        if "q" not in data or "dq" not in data or "tau" not in data or "t" not in data:
            data = {word: data[name] for word, names in _WORDS.items() for name in names if name in data}
        q, dq, tau, t = data["q"], data["dq"], data["tau"], data.get("t")
        names: Sequence[str] = data.get("joints", self._joints)
        if isinstance(q, dict):
            names = list(q)
            q, dq, tau = ([part[name] for name in names] for part in (q, dq, tau))
        count = len(names)
        if len(q) != count or len(dq) != count or len(tau) != count:
            raise SourceError(f"it has {len(q)} positions for {count} joints.")
        values = [*q, *dq, *tau] if t is None else [float(t), *q, *dq, *tau]
        if not _NUMBERS.issuperset(map(type, values)):
            values = [float("nan") if x is None else float(x) for x in values]
        if names is not self._joints or t is None:
            return self._columns(tuple(names), t is not None), values
        if self._usual is None:
            self._usual = self._columns(names, True)
        return self._usual, values

    def _columns(self, names: tuple[str, ...], timed: bool) -> LiveColumns:
        key = (str(timed), *names)
        found = self._kinds.get(key)
        if found is None:
            if len(names) > _MOST_COLUMNS or not all(isinstance(name, str) for name in names):
                raise SourceError("its joints are no list of names.")
            found = self._made(state_columns(names)[0 if timed else 1 :], names)
            self._kinds[key] = found
        return found

    def _made(self, names: Sequence[str], joints: Sequence[str] = ()) -> LiveColumns:
        """How such columns are read. A sender that keeps changing its mind is not asked again."""
        if self._refused + len(self._kinds) >= _MOST_KINDS or len(names) > _MOST_COLUMNS:
            raise SourceError("the sender has named its columns in too many ways.")
        self._refused += 1
        made = LiveColumns(names, self._options.robot, self._options.mapping, joints)
        self._refused -= 1
        return made

    def _separated(self, line: bytes) -> tuple[LiveColumns, list[float]] | None:
        """The numbers of a line of CSV; None where it holds the names of columns instead."""
        cells: list[Any] = line.split(b",") if b"," in line else line.replace(b";", b" ").split()
        try:
            values = list(map(float, cells))
        except ValueError:
            values = []
        if not values:
            names = tuple(cell.decode("utf-8").strip().strip('"') for cell in cells)
            if len(names) < 1 + 3 * self._options.robot.dof or not names[0][:1].isalpha():
                raise ValueError("no header")
            self._csv = self._made(names)
            self._kinds[("csv", *names)] = self._csv
            return None
        if self._csv is None:
            dof = self._options.robot.dof
            self._csv = self._made(("t", *(f"{s}{k + 1}" for s in ("q", "dq", "tau") for k in range(dof))))
        if len(values) != self._csv.count:
            raise SourceError(f"it has {len(values)} numbers, not {self._csv.count}: t, every q, every dq, every tau.")
        return self._csv, values
