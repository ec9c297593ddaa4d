"""How well a model predicts the torque of a log, joint by joint, through a filter that the fit has no say in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion, Preparation, prepare
from steelyard.signals.source import Source, ahead, pieces_of

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
    """The score of one model, as by `score_models`."""
    return score_models([model], log, settings, cutoff, score_cutoff, name)[0]


def score_models(
    models: Sequence[Model], log: Source, settings: Preparation, cutoff: float, score_cutoff: float, name: str = ""
) -> tuple[Score, ...]:
    """Models' torques against the measured one, all through a zero-phase Butterworth of order 4 at `score_cutoff`.

    The motion is prepared as for the fit (`settings`, `cutoff`); smoothing it too much only spoils the prediction,
    since the torque it is held against is filtered by the score's own filter alone. The prediction goes through that
    filter too: friction jumps at a reversal, and a jump that is cut off on one side only would be an error of the true
    model, and a reward for a model that is blurred. Whoever is right below the cut-off has no error here but noise.
    `raw` are the figures against the torque as it was measured. Of a long log the signals of the beginning are kept for
    plots; all of it counts. One pass over the log serves all models, which are of the same robot.
    """
    robot = models[0].robot
    used = np.flatnonzero(robot.torque_used)
    whole = replace(settings, decimation=1, mask=0.0)
    sums = [(_Sums(len(used)), _Sums(len(used))) for _ in models]
    kept: list[tuple[Array, ...]] = []
    count = 0
    for m in ahead(m for piece in pieces_of(log) for m in prepare(piece, whole, cutoff)):
        raw, measured, pairs = _torques(models, m, used, score_cutoff)
        count += len(raw)
        for (smooth, sharp), (predicted, unfiltered) in zip(sums, pairs, strict=True):
            smooth.add(measured, predicted)
            sharp.add(raw, unfiltered)
        if count <= _KEPT_SAMPLES or not kept:
            kept.append((m.t[m.keep], m.q[m.keep], m.dq[m.keep], measured, *(predicted for predicted, _ in pairs)))
    if not kept:
        raise LogError(f"{name or 'The log'} has no piece long enough to be scored at {cutoff:g} Hz.")
    t, q, dq, measured, *predictions = (np.concatenate(x) for x in zip(*kept, strict=True))
    out = []
    for (smooth, sharp), predicted in zip(sums, predictions, strict=True):
        joints = tuple(
            JointScore(robot.joint_names[j], **smooth.figures(k), raw=sharp.figures(k)) for k, j in enumerate(used)
        )
        out.append(Score(name, score_cutoff, count, joints, t, q, dq, measured, predicted))
    return tuple(out)


def _torques(
    models: Sequence[Model], m: Motion, used: NDArray[np.int64], cutoff: float
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """The measured torque, unfiltered and filtered, and every model's, filtered and unfiltered."""
    low_pass = LowPass(min(cutoff, 0.45 / m.filter.period), m.filter.period)
    raw = m.tau[:, used]
    sharp = [model.torque(m.q, m.dq, m.ddq)[:, used] for model in models]
    measured, *predicted = np.split(low_pass(np.hstack([raw, *sharp]), m.keep), 1 + len(models), axis=1)
    return raw[m.keep], measured, [(p, s[m.keep]) for p, s in zip(predicted, sharp, strict=True)]


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
