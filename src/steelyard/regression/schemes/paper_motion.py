"""`paper_motion`: a log without any filter, the signals available to a running controller."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion


@dataclass(frozen=True)
class Unfiltered(LowPass):
    """A `LowPass` that passes everything.

    Args:
        x: Signals.
        rows: Rows to return.
    """

    @property
    def memory(self) -> int:
        return 0

    @cached_property
    def reach(self) -> int:
        return 0

    def __call__(self, x: Array, rows: slice = slice(None)) -> Array:
        return x[rows].copy()


def paper_motion(log: Log) -> list[Motion]:
    """Return the pieces of `log` with its own signals; missing dq and ddq are backward differences (first 0)."""
    if log.tau is None:
        raise LogError("The log has no torque; identification needs it (or a current with its constants).")
    out = []
    for start, stop in log.segments:
        t = log.t[start:stop]
        if len(t) < 2:
            continue
        h = float(t[-1] - t[0]) / (len(t) - 1)
        if np.max(np.abs(np.diff(t) - h)) > 1e-3 * h:
            raise LogError("The sampling of the log is not uniform; resample it, or use `prepare`.")
        q = log.q[start:stop]
        dq = _backward_difference(q, h) if log.dq is None else log.dq[start:stop]
        ddq = _backward_difference(dq, h) if log.ddq is None else log.ddq[start:stop]
        tau = log.tau[start:stop]
        out.append(Motion(t, q, dq, ddq, tau, Unfiltered(0.25 / h, h), slice(0, len(t), 1), "as logged"))
    return out


def _backward_difference(x: Array, period: float) -> Array:
    out = np.zeros_like(x)
    out[1:] = np.diff(x, axis=0) / period
    return out
