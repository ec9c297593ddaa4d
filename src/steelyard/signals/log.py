"""`Log`: the signals of a robot's motion on one clock, in SI units, and their .csv and .npz files."""

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
    """A message about a log for its user, from reading or checking it. A log that cannot be read raises an error.

    Args:
        kind: Kind for programs: "gap", "duplicate", …
        severity: "ok": a check without a fault; "note": information; "warning": may spoil a result; "problem": will
            spoil it.
        message: One sentence.
        advice: Recommended action.
        joint: Joint concerned; None for the whole log.
        count: Number of occurrences.
        row: First row of the file concerned, from 1; None without one.
        fix: Entries of a mapping that correct it; numbers by joint if they are of a joint.
    """

    why_null: ClassVar = {
        "joint": "It concerns the whole log.",
        "row": "It does not concern a single row.",
        "fix": "A mapping cannot correct it.",
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
        """Identifier within the log: "sign:elbow", or "gravity" for the whole log."""
        return f"{self.kind}:{self.joint}" if self.joint else self.kind


def _without_tiny(array: Array) -> Array:
    """Replace numbers below `SMALLEST_NUMBER` by zero: their squares underflow, and ratios of them fail."""
    size = np.abs(array)
    tiny = (size < SMALLEST_NUMBER) & (size > 0.0)
    return frozen(np.where(tiny, 0.0, array)) if tiny.any() else array


SIGNALS = ("q", "dq", "ddq", "tau")
CHANNEL = "channel_"  # prefix of the names of channels in .npz files


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """The signals of a robot's joints on one clock; all numbers are finite.

    Attributes:
        joints: Names of the joints.
        t: Increasing times [s], shape (samples,).
        q: Positions [rad or m], shape (samples, joints).
        dq: Velocities [rad/s or m/s], shape (samples, joints); None if missing.
        ddq: Accelerations [rad/s^2 or m/s^2], shape (samples, joints); None if missing.
        tau: Torques [N m or N], shape (samples, joints); None if missing.
        meta: Plain values by name, such as the source.
        segments: Consecutive half-open ranges of samples that cover the log. The clock is broken between them (gap or
            reset), so filters, derivatives and interpolation must not cross their borders.
        findings: Messages from reading the log.
        channels: Further signals by name, shape (samples, width): "temperature" of the joints [°C], "wrench" of a
            sensor [N, N m].
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
            raise LogError(f"The time does not increase at sample {row + 1} (t = {self.t[row]}); sort or fix the log.")
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
                fault = "not a number" if not np.isfinite(array[row, joint]) else f"beyond {LARGEST_NUMBER:g}"
                raise LogError(
                    f"{name} of joint '{self.joints[joint]}' is {fault} at sample {row + 1} (t = {self.t[row]:g} s); "
                    "cut or fix the log there."
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
                raise LogError(f"{name} is not a number at sample {row + 1} (t = {self.t[row]:g} s); fix it there.")
        return out

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        names = ", ".join(name for name, values in {**self.signals, **self.channels}.items() if values is not None)
        span = f", {self.t[-1] - self.t[0]:.4g} s" if len(self) else ""
        return f"<Log of {len(self.joints)} joints: {len(self)} samples{span}; {names}>"

    @property
    def signals(self) -> dict[str, Array | None]:
        """q, dq, ddq and tau by name."""
        return {name: getattr(self, name) for name in SIGNALS}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log to `path`: a .csv (columns t, q1…, dq1…, ddq1…, tau1…) or an .npz (with names and meta).

        Numbers are written exactly. The file appears complete or not at all.
        """
        target = Path(path)
        kind = saved_kind(target)
        write_whole(target, _csv(self) if kind == ".csv" else _npz(self))


def _segments(segments: Sequence[Sequence[int]], samples: int) -> tuple[tuple[int, int], ...]:
    """Check that ranges are consecutive; none or one means the whole log."""
    ranges = tuple((int(start), int(stop)) for start, stop in segments)
    if len(ranges) <= 1:
        return ((0, samples),)
    edges = [0, *(stop for _, stop in ranges)]
    if [start for start, _ in ranges] != edges[:-1] or edges[-1] != samples or np.any(np.diff(edges) <= 0):
        raise ShapeError(f"segments {ranges} are not consecutive from sample 0 to sample {samples}.")
    return ranges


def saved_kind(path: Path) -> str:
    """Return the suffix of `path`, which must be .csv or .npz."""
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
            raise LogError(f"{name}: the torque is zero throughout, so no parameter is identifiable.")
