"""`Log`: the signals of a robot's motion on one clock, in SI units, and its two plain file formats."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from steelyard.errors import LogError, ShapeError
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.field import LARGEST_NUMBER, SMALLEST_NUMBER
from steelyard.ground.files import write_whole

Severity = Literal["ok", "note", "warning", "problem"]
SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "problem")


@dataclass(frozen=True)
class Finding:
    """Something that reading or checking a log brought to light and that its owner should know.

    This is the one word for a message about a log, whoever found it. What keeps a log from being read at all is not a
    finding but an error.

    Args:
        kind: what was looked at, a word for programs: "gap", "duplicate", …
        severity: an "ok" says that a check found nothing, a "note" is for information, a "warning" may spoil a result,
            a "problem" will.
        message: what was seen, one sentence for people.
        advice: what to do about it.
        joint: whose it is; None where it concerns the whole log.
        count: how often it was seen.
        row: of the file, from 1, where it happens first; None where it concerns no row.
        fix: what mends it, by the key of the mapping that would hold it; numbers by joint where they are a joint's.
    """

    why_null: ClassVar = {
        "joint": "It concerns the whole log.",
        "row": "It concerns no single row.",
        "fix": "There is nothing that a mapping could mend.",
    }
    kind: str
    severity: Severity
    message: str
    advice: str = ""
    joint: str | None = None
    count: int = 1
    row: int | None = None
    fix: Mapping[str, Any] | None = None

    @property
    def rank(self) -> int:
        """0 for "ok" up to 3 for "problem"."""
        return SEVERITIES.index(self.severity)

    @property
    def key(self) -> str:
        """What it goes by among those of its log: "sign:elbow", or "gravity" where it concerns the whole log."""
        return f"{self.kind}:{self.joint}" if self.joint else self.kind


def _without_tiny(array: Array) -> Array:
    """The numbers of `array`, those below `SMALLEST_NUMBER` as zero: their squares vanish, and ratios of them fail."""
    size = np.abs(array)
    tiny = (size < SMALLEST_NUMBER) & (size > 0.0)
    return frozen(np.where(tiny, 0.0, array)) if tiny.any() else array


SIGNALS = ("q", "dq", "ddq", "tau")
CHANNEL = "channel_"  # before the names of channels in .npz files


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Positions (rad, m), velocities, accelerations and torques (N m, N) of named joints, `(samples, joints)`.

    `t` (s) increases. Signals other than the positions may be missing (None); those that are there are finite.
    `meta` holds remarks: plain values by name. `segments` are half-open ranges of samples that follow one another
    and make up the whole log; between two of them the clock was broken (a gap, a reset), and nothing may be
    filtered, differentiated or interpolated across. `findings` are what reading the log brought to light. `channels`
    are further signals by name, `(samples, width)`: "temperature" of the joints (°C), "wrench" of a sensor (N, N m).
    """

    joints: tuple[str, ...]
    t: Array
    q: Array
    dq: Array | None = None
    ddq: Array | None = None
    tau: Array | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    segments: tuple[tuple[int, int], ...] = ()
    findings: tuple[Finding, ...] = ()
    channels: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joints", tuple(self.joints))
        object.__setattr__(self, "meta", MappingProxyType(dict(self.meta)))
        object.__setattr__(self, "t", frozen(self.t))
        if self.t.ndim != 1 or len(self.t) == 0:
            raise ShapeError(f"t has shape {self.t.shape}; a log needs (samples,) with at least one sample.")
        if not np.all(np.isfinite(self.t)) or np.any(np.diff(self.t) <= 0.0):
            row = int(np.argmax(~np.isfinite(self.t) | np.append(False, np.diff(self.t) <= 0.0)))
            raise LogError(f"The time does not increase at sample {row + 1} (t = {self.t[row]}); sort or mend the log.")
        expected = (len(self.t), len(self.joints))
        for name in SIGNALS:
            value = getattr(self, name)
            if value is None and name != "q":
                continue
            array = _without_tiny(frozen(value))
            object.__setattr__(self, name, array)
            if array.shape != expected:
                raise ShapeError(f"{name} has shape {array.shape}; {expected[1]} joints on this clock need {expected}.")
            if array.size and not (array.min() >= -LARGEST_NUMBER and array.max() <= LARGEST_NUMBER):
                row, joint = (int(k) for k in np.argwhere(~(np.abs(array) <= LARGEST_NUMBER))[0])
                what = "not a number" if not np.isfinite(array[row, joint]) else f"beyond {LARGEST_NUMBER:g}"
                raise LogError(
                    f"{name} of joint '{self.joints[joint]}' is {what} at sample {row + 1} (t = {self.t[row]:g} s); "
                    "cut or mend the log there."
                )
        object.__setattr__(self, "channels", MappingProxyType(self._checked_channels()))
        object.__setattr__(self, "segments", _segments(self.segments, len(self.t)))
        object.__setattr__(self, "findings", tuple(self.findings))

    def _checked_channels(self) -> dict[str, Array]:
        out = {name: frozen(x) for name, x in self.channels.items()}
        for name, x in out.items():
            if x.ndim != 2 or len(x) != len(self.t):
                raise ShapeError(f"{name} has shape {x.shape}; this clock needs ({len(self.t)}, width).")
            if not np.all(np.isfinite(x)):
                row = int(np.argwhere(~np.isfinite(x))[0][0])
                raise LogError(f"{name} is not a number at sample {row + 1} (t = {self.t[row]:g} s); mend it there.")
        return out

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        held = ", ".join(name for name, values in {**self.signals, **self.channels}.items() if values is not None)
        span = f", {self.t[-1] - self.t[0]:.4g} s" if len(self) else ""
        return f"<Log of {len(self.joints)} joints: {len(self)} samples{span}; {held}>"

    @property
    def signals(self) -> dict[str, Array | None]:
        """q, dq, ddq and tau by name."""
        return {name: getattr(self, name) for name in SIGNALS}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path` a .csv (columns t, q1…, dq1…, ddq1…, tau1…) or .npz (with names and remarks, exact) file.

        Written aside and renamed: there is never half a file. A .csv holds numbers only, all digits of them.
        """
        target = Path(path)
        kind = saved_kind(target)
        write_whole(target, _csv(self) if kind == ".csv" else _npz(self))


def _segments(given: Sequence[Sequence[int]], samples: int) -> tuple[tuple[int, int], ...]:
    """The ranges, checked to follow one another; none or one is the whole log."""
    ranges = tuple((int(start), int(stop)) for start, stop in given)
    if len(ranges) <= 1:
        return ((0, samples),)
    edges = [0, *(stop for _, stop in ranges)]
    if [start for start, _ in ranges] != edges[:-1] or edges[-1] != samples or np.any(np.diff(edges) <= 0):
        raise ShapeError(f"segments {ranges} do not follow one another from sample 0 to sample {samples}.")
    return ranges


def saved_kind(path: Path) -> str:
    """The suffix of `path`, a file that `Log.save` writes; any other than .csv and .npz is refused."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".npz"):
        raise LogError(f"{path}: a log is a .csv or an .npz file, not '{suffix or 'without suffix'}'.")
    return suffix


def _csv(log: Log) -> bytes:
    present = {name: x for name, x in log.signals.items() if x is not None}
    header = ["t", *(f"{name}{k + 1}" for name in present for k in range(len(log.joints)))]
    text = io.StringIO()
    np.savetxt(text, np.column_stack([log.t, *present.values()]), fmt="%.17g", delimiter=",")
    return (",".join(header) + "\n" + text.getvalue()).encode()


def _npz(log: Log) -> bytes:
    present = {name: x for name, x in log.signals.items() if x is not None}
    names = np.array(log.joints, dtype=np.str_)
    if len(log.segments) > 1:
        present["segments"] = np.array(log.segments)  # type: ignore[assignment]
    present |= {f"{CHANNEL}{name}": x for name, x in log.channels.items()}
    buffer = io.BytesIO()
    np.savez(buffer, t=log.t, joints=names, meta=np.array(json.dumps(dict(log.meta))), **present)  # type: ignore[arg-type]
    return buffer.getvalue()


def refuse_without_torque(logs: Iterable[Log]) -> None:
    """Refuse `logs` whose torques are all zero."""
    for one in logs:
        if one.tau is not None and not one.tau.any():
            name = one.meta.get("source", "The log")
            raise LogError(f"{name}: the torque is zero throughout; nothing can be weighed.")
