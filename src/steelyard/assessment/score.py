"""How well a model predicts the torque of a log, joint by joint, through a filter that the fit has no say in."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.robot.spatial import Array
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion, Preparation, prepare
from steelyard.signals.source import Source, pieces_of

# Samples whose signals are kept for plots.
_KEPT_SAMPLES = 200_000


@dataclass(frozen=True)
class JointScore:
    """Errors of one joint's torque: root mean square (N m, N), percent of the torque's standard deviation, R²,
    and percent of the torque's own root mean square."""

    joint: str
    rmse: float
    nrmse_percent: float
    r2: float
    relative_error_percent: float
    raw: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Score:
    """All joints' scores on one log, with the signals behind them for plotting."""

    log: str
    cutoff: float
    samples: int
    joints: tuple[JointScore, ...]
    t: Array
    q: Array
    dq: Array
    measured: Array
    predicted: Array

    @property
    def mean_nrmse_percent(self) -> float:
        return float(np.mean([j.nrmse_percent for j in self.joints]))

    def to_json(self) -> dict[str, Any]:
        joints = [asdict(j) for j in self.joints]
        return {"log": self.log, "samples": self.samples, "score_cutoff_hz": self.cutoff, "joints": joints}


def score(
    model: Model, log: Source, settings: Preparation, cutoff: float, score_cutoff: float, name: str = ""
) -> Score:
    """The model's torque against the measured one, both through a zero-phase Butterworth of order 4 at `score_cutoff`.

    The motion is prepared as for the fit (`settings`, `cutoff`); smoothing it too much only spoils the prediction,
    since the torque it is held against is filtered by the score's own filter alone. `raw` are the figures against
    the torque as it was measured. Of a long log the signals of the beginning are kept for plots; all of it counts.
    """
    used = np.flatnonzero(model.robot.torque_used)
    whole = replace(settings, decimation=1, mask=0.0)
    smooth, raw = _Sums(len(used)), _Sums(len(used))
    kept: list[tuple[Array, ...]] = []
    for piece in pieces_of(log):
        for motion in prepare(piece, whole, cutoff):
            t, q, dq, measured_raw, measured, predicted, sharp = _signals(model, motion, used, score_cutoff)
            smooth.add(measured, predicted)
            raw.add(measured_raw, sharp)
            if smooth.count <= _KEPT_SAMPLES or not kept:
                kept.append((t, q, dq, measured, predicted))
    if not kept:
        raise LogError(f"{name or 'The log'} has no piece long enough to be scored at {cutoff:g} Hz.")
    t, q, dq, measured, predicted = (np.concatenate(x) for x in zip(*kept, strict=True))
    joints = tuple(
        JointScore(model.robot.joint_names[j], **smooth.figures(k), raw=raw.figures(k)) for k, j in enumerate(used)
    )
    return Score(name, score_cutoff, smooth.count, joints, t, q, dq, measured, predicted)


def _signals(model: Model, m: Motion, used: NDArray[np.int64], cutoff: float) -> tuple[Array, ...]:
    low_pass = LowPass(min(cutoff, 0.45 / m.filter.period), m.filter.period)
    sharp = model.torque(m.q, m.dq, m.ddq)[:, used]
    raw = m.tau[:, used]
    smooth = low_pass(np.hstack([raw, sharp]))
    parts = (m.t, m.q, m.dq, raw, smooth[:, : len(used)], smooth[:, len(used) :], sharp)
    return tuple(x[m.keep] for x in parts)


class _Sums:
    """Errors added up over pieces."""

    def __init__(self, joints: int) -> None:
        self.count = 0
        self._error, self._value, self._square = (np.zeros(joints) for _ in range(3))

    def add(self, measured: Array, predicted: Array) -> None:
        self.count += len(measured)
        self._error += np.sum((measured - predicted) ** 2, axis=0)
        self._value += np.sum(measured, axis=0)
        self._square += np.sum(measured**2, axis=0)

    def figures(self, joint: int) -> dict[str, float]:
        n, tiny = self.count, 1e-12
        rmse = float(np.sqrt(self._error[joint] / n))
        size = float(np.sqrt(self._square[joint] / n))
        spread = float(np.sqrt(max(self._square[joint] / n - (self._value[joint] / n) ** 2, 0.0)))
        return {
            "rmse": rmse,
            "nrmse_percent": 100.0 * rmse / max(spread, tiny),
            "r2": 1.0 - (rmse / max(spread, tiny)) ** 2,
            "relative_error_percent": 100.0 * rmse / max(size, tiny),
        }
