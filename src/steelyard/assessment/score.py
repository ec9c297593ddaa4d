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
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, prepare


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


def score(model: Model, log: Log, settings: Preparation, cutoff: float, score_cutoff: float, name: str = "") -> Score:
    """The model's torque against the measured one, both through a zero-phase Butterworth of order 4 at `score_cutoff`.

    The motion is prepared as for the fit (`settings`, `cutoff`); smoothing it too much only spoils the prediction,
    since the torque it is held against is filtered by the score's own filter alone. `raw` are the figures against
    the torque as it was measured.
    """
    used = np.flatnonzero(model.robot.torque_used)
    motions = list(prepare(log, replace(settings, decimation=1, mask=0.0), cutoff))
    if not motions:
        raise LogError(f"{name or 'The log'} has no piece long enough to be scored at {cutoff:g} Hz.")
    parts = [_signals(model, m, used, score_cutoff) for m in motions]
    t, q, dq, raw, measured, predicted, sharp = (np.concatenate(x) for x in zip(*parts, strict=True))
    joints = []
    for k, j in enumerate(used):
        smooth = _figures(measured[:, k], predicted[:, k])
        joints.append(JointScore(model.robot.joint_names[j], **smooth, raw=_figures(raw[:, k], sharp[:, k])))
    return Score(name, score_cutoff, len(t), tuple(joints), t, q, dq, measured, predicted)


def _signals(model: Model, m: Motion, used: NDArray[np.int64], cutoff: float) -> tuple[Array, ...]:
    low_pass = LowPass(min(cutoff, 0.45 / m.filter.period), m.filter.period)
    sharp = model.torque(m.q, m.dq, m.ddq)[:, used]
    raw = m.tau[:, used]
    smooth = low_pass(np.hstack([raw, sharp]))
    parts = (m.t, m.q, m.dq, raw, smooth[:, : len(used)], smooth[:, len(used) :], sharp)
    return tuple(x[m.keep] for x in parts)


def _figures(measured: Array, predicted: Array) -> dict[str, float]:
    error = measured - predicted
    rmse = float(np.sqrt(np.mean(error**2)))
    spread = float(np.std(measured))
    size = float(np.sqrt(np.mean(measured**2)))
    tiny = 1e-12
    return {
        "rmse": rmse,
        "nrmse_percent": 100.0 * rmse / max(spread, tiny),
        "r2": 1.0 - (rmse / max(spread, tiny)) ** 2,
        "relative_error_percent": 100.0 * rmse / max(size, tiny),
    }
