"""How well a model predicts the torque of a log, joint by joint, through a filter that the fit has no say in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import LogError
from steelyard.ground.arrays import Array
from steelyard.ground.reasons import explained
from steelyard.ground.renamed import renamed
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Reduction
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion, Preparation, prepare
from steelyard.signals.source import Source, pieces_of

# Rows whose signals are kept for plots, a piece more or less.
_KEPT_ROWS = 100_000


# Percent: an error so many times the torque's own variation tells that there is none, and not how good a model is.
MEANINGLESS = 1e6


class TorqueModel(Protocol):
    """What is scored: a model, or anything else that knows the torques of a motion of `robot`."""

    @property
    def robot(self) -> Any: ...

    def torque(self, q: Array, dq: Array, ddq: Array, period: float | None = None, /) -> Array:
        """Joint torques (N m, N) along positions `q` (rad, m), `dq` and `ddq`, samples `period` (s) apart."""


@dataclass(frozen=True)
class JointScore:
    """Errors of one joint's torque: root mean square (N m, N), percent of the torque's standard deviation, R²,
    and percent of the torque's own root mean square.

    `raw` are the same figures of unfiltered torques. `moving` and `standing` tell apart the samples in which the joint
    moves and those in which it stands, where friction may be anything: their `share` of all, `rmse`, and
    `nrmse_percent` of the standard deviation over all samples, so that the squares add up to the whole by their
    shares. Where there is none, it is empty. `torque_mean` and `torque_std` (N m, N) are of the measured torque.
    """

    why_null: ClassVar = dict.fromkeys(
        ("nrmse_percent", "r2", "relative_error_percent", "raw/*", "moving/*", "standing/*"),
        "It is a share of the torque, which does not vary, or is zero.",
    )
    joint: str
    rmse: float
    nrmse_percent: float
    r2: float
    relative_error_percent: float
    raw: dict[str, float] = field(default_factory=dict)
    moving: dict[str, float] = field(default_factory=dict)
    standing: dict[str, float] = field(default_factory=dict)
    torque_mean: float = 0.0
    torque_std: float = 0.0

    @property
    def moving_nrmse_percent(self) -> float:
        """What a model of friction can be judged by; the whole where the joint never moves, or nobody looked."""
        return self.moving.get("nrmse_percent", self.nrmse_percent)

    @property
    def told(self) -> JointScore:
        """As it is shown: NaN for a share of next to nothing, which would be a number, and say nothing."""
        if max(self.nrmse_percent, self.relative_error_percent) < MEANINGLESS:
            return self
        parts = {name: _told(getattr(self, name)) for name in ("raw", "moving", "standing")}
        own = ("nrmse_percent", "r2", "relative_error_percent")
        return replace(self, **parts, **_told({name: getattr(self, name) for name in own}))  # type: ignore[arg-type]


def _told(figures: dict[str, float]) -> dict[str, float]:
    lost = {"r2"} if figures.get("nrmse_percent", 0.0) >= MEANINGLESS else set[str]()
    lost |= {name for name, x in figures.items() if name.endswith("percent") and x >= MEANINGLESS}
    return {name: math.nan if name in lost else x for name, x in figures.items()}


@renamed(cutoff="cutoff_hz")
@dataclass(frozen=True, eq=False)
class Score:
    """All joints' scores on one log, with the signals behind them for plotting.

    `standing` `(rows, joints)` tells where a joint stands, of those whose torque is used.
    """

    log: str
    cutoff_hz: float
    samples: int
    joints: tuple[JointScore, ...]
    t: Array
    q: Array
    dq: Array
    measured: Array
    predicted: Array
    ddq: Array = field(default_factory=lambda: np.zeros((0, 0)))
    standing: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    @property
    def mean_nrmse_percent(self) -> float:
        return float(np.mean([j.nrmse_percent for j in self.joints]))

    @property
    def mean_moving_nrmse_percent(self) -> float:
        return float(np.mean([j.moving_nrmse_percent for j in self.joints]))

    @property
    def stands(self) -> bool:
        """Whether some joint stands in some samples."""
        return any(j.standing for j in self.joints)

    def to_json(self) -> dict[str, Any]:
        joints = [j.told for j in self.joints]
        return explained(
            {"log": self.log, "samples": self.samples, "score_cutoff_hz": self.cutoff_hz, "joints": joints}
        )


def score(
    model: Model, log: Source, settings: Preparation, cutoff_hz: float, score_cutoff_hz: float, name: str = ""
) -> Score:
    """The score of one model on one log, as by `score_models`.

    Args:
        model: what is judged.
        log: what it is judged by.
        settings: how the motion is made ready.
        cutoff_hz: of the motion's low-pass, Hz.
        score_cutoff_hz: of the score's own, Hz.
        name: of the log.
    """
    motions = (m for piece in pieces_of(log) for m in prepare(piece, settings, cutoff_hz, to_fit=False))
    return score_models([model], motions, score_cutoff_hz, name)[0]


def score_models(
    models: Sequence[TorqueModel], motions: Iterable[Motion], score_cutoff_hz: float, name: str = ""
) -> tuple[Score, ...]:
    """Models' torques against the measured one, all through a zero-phase Butterworth of order 4 at `score_cutoff_hz`.

    The motion is prepared as for the fit; smoothing it too much only spoils the prediction, since the torque it is
    held against is filtered by the score's own filter alone. The prediction goes through that filter too: friction
    jumps at a reversal, and a jump that is cut off on one side only would be an error of the true model, and a reward
    for a model that is blurred. Whoever is right below the cut-off has no error here but noise. `raw` are the figures
    against the torque as it was measured. Signals are kept for plots, thinned to what the filter leaves, of a long log
    those of its beginning; all of it counts. One pass serves all models, which are of the same robot.

    Args:
        models: what is judged.
        motions: prepared motions of one log; all their samples count, whatever a fit would keep.
        score_cutoff_hz: of the score's filter, Hz.
        name: of the log.
    """
    robot = models[0].robot
    used = np.flatnonzero(robot.torque_used)
    sums = [(_Sums(len(used)), _Sums(len(used))) for _ in models]
    kept: list[tuple[NDArray[Any], ...]] = []
    count = 0
    for m in motions:
        every = slice(m.keep.start, m.keep.stop)
        raw, measured, pairs = _torques(models, m, every, used, score_cutoff_hz)
        count += len(raw)
        for (smooth, sharp), (predicted, unfiltered) in zip(sums, pairs, strict=True):
            smooth.add(measured, predicted, None if m.standing is None else m.standing[every][:, used])
            sharp.add(raw, unfiltered)
        if sum(len(k[0]) for k in kept) <= _KEPT_ROWS:
            # Five rows to a period of the cut-off show all that the filter has left.
            step = max(1, int(0.2 / (score_cutoff_hz * m.filter.period)))
            thin = slice(every.start, every.stop, step)
            stood = np.zeros(m.q[thin].shape, dtype=bool) if m.standing is None else m.standing[thin]
            signals = (m.t[thin], m.q[thin], m.dq[thin], m.ddq[thin], stood[:, used])
            shown = (*signals, measured[::step], *(p[::step] for p, _ in pairs))
            kept.append(tuple(x.copy() for x in shown))  # a view would keep the whole piece
            del shown, signals
        del m, raw, measured, pairs, predicted, unfiltered  # or they would live on beside the next
    if not kept:
        raise LogError(f"{name or 'The log'} has no piece long enough to be scored at {score_cutoff_hz:g} Hz.")
    t, q, dq, ddq, stood, measured, *predictions = (np.concatenate(x) for x in zip(*kept, strict=True))
    out = []
    for (smooth, sharp), predicted in zip(sums, predictions, strict=True):
        joints = tuple(
            JointScore(
                robot.joint_names[j],
                **smooth.figures(k),
                raw=sharp.figures(k),
                moving=smooth.part(k, False),
                standing=smooth.part(k, True),
            )
            for k, j in enumerate(used)
        )
        out.append(Score(name, score_cutoff_hz, count, joints, t, q, dq, measured, predicted, ddq, stood))
    return tuple(out)


def score_reduced(
    models: Sequence[Model],
    base: BaseParameters,
    seen: Reduction,
    beginning: Iterable[Motion],
    cutoff_hz: float,
    name: str = "",
) -> tuple[Score, ...]:
    """The same figures from what one pass over a long log left, without a second pass.

    Squared errors are quadratic in the parameters, so the triangles of the filtered rows and the Gram matrices of the
    unfiltered ones hold them for every model. The figures are of the rows that the fit kept: five to a period of the
    cut-off, which between them hold all but some 1e-6 of a filtered signal's power; unfiltered ones are a sample.

    Args:
        models: of the robot and terms that `base` is of, or of its links alone.
        base: the base parameters whose columns the rows have.
        seen: what the pass left; with unfiltered sums.
        beginning: prepared motions of the log's beginning, whose signals are kept for plots.
        cutoff_hz: of the fit's low-pass, which is the score's, Hz.
        name: of the log.
    """
    shown = score_models(models, beginning, cutoff_hz, name)
    out = []
    for model, plotted in zip(models, shown, strict=True):
        theta = np.zeros(len(base.parameters))
        theta[: len(model.theta)] = model.theta
        beta = base.values(theta)
        joints = []
        for e, joint in enumerate(plotted.joints):
            # What [A y] is multiplied with to give y − Aβ.
            way = np.array([*-beta[seen.factor.equations[e].among(base.independent)[1]], 1.0])
            triangle, gram = seen.factor.triangles[e], seen.unfiltered[e]
            rows, total = seen.factor.rows[e], float(seen.sums[e])
            smooth = error_figures(
                rows, float(np.sum((triangle @ way) ** 2)), total, float(np.sum(triangle[:, -1] ** 2))
            )
            # An unfiltered torque has the filtered one's sum, but for its ends.
            raw = error_figures(rows, float(way @ gram @ way), total, float(gram[-1, -1]))
            # Where rows of a joint that stands are left out of the fit, a second pass scores it instead.
            all_of_it = {"share": 1.0, "rmse": smooth["rmse"], "nrmse_percent": smooth["nrmse_percent"]}
            joints.append(JointScore(joint.joint, **smooth, raw=raw, moving=all_of_it, standing={}))
        out.append(replace(plotted, samples=seen.samples, joints=tuple(joints)))
    return tuple(out)


def _torques(
    models: Sequence[TorqueModel], m: Motion, rows: slice, used: NDArray[np.int64], cutoff_hz: float
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """The measured torque, unfiltered and filtered, and every model's, filtered and unfiltered."""
    low_pass = LowPass(min(cutoff_hz, 0.45 / m.filter.period), m.filter.period)
    some = slice(None) if len(used) == m.tau.shape[1] else used  # a copy only where it must be
    raw = m.tau[:, some]
    sharp = [model.torque(m.q, m.dq, m.ddq, m.filter.period)[:, some] for model in models]
    smooth = low_pass.of(lambda start, stop: np.hstack([x[start:stop] for x in (raw, *sharp)]), len(raw), rows)
    measured, *predicted = np.split(smooth, 1 + len(models), axis=1)
    return raw[rows], measured, [(p, s[rows]) for p, s in zip(predicted, sharp, strict=True)]


class _Sums:
    """Errors added up over pieces."""

    def __init__(self, joints: int) -> None:
        self.count = 0
        self._error, self._value, self._square, self._stood, self._standing = (np.zeros(joints) for _ in range(5))

    def add(self, measured: Array, predicted: Array, standing: NDArray[np.bool_] | None = None) -> None:
        self.count += len(measured)
        error = measured - predicted
        self._error += np.einsum("ij,ij->j", error, error)
        self._value += np.einsum("ij->j", measured)  # a third of the time that np.sum takes
        self._square += np.einsum("ij,ij->j", measured, measured)
        if standing is not None and standing.any():
            self._stood += np.sum(standing, axis=0)
            self._standing += np.sum(error**2, axis=0, where=standing)

    def figures(self, joint: int) -> dict[str, float]:
        sums = (float(x[joint]) for x in (self._error, self._value, self._square))
        return error_figures(self.count, *sums)

    def part(self, joint: int, standing: bool) -> dict[str, float]:
        """What a joint's score has as `moving` or `standing`."""
        stood, error = float(self._stood[joint]), float(self._standing[joint])
        count, sum_of_squares = (stood, error) if standing else (self.count - stood, float(self._error[joint]) - error)
        if count <= 0.0:
            return {}
        whole, rmse = self.figures(joint), float(np.sqrt(max(sum_of_squares, 0.0) / count))
        scale = whole["nrmse_percent"] / whole["rmse"] if whole["rmse"] > 0.0 else 0.0
        return {"share": count / self.count, "rmse": rmse, "nrmse_percent": rmse * scale}


def error_figures(count: float, error: float, value: float, square: float) -> dict[str, float]:
    """Compute the figures of a score from sums over samples.

    Args:
        count: how many samples there are.
        error: Σ(y − ŷ)², the squared errors.
        value: Σy, the measured torque.
        square: Σy².
    """
    tiny = 1e-12
    rmse = float(np.sqrt(max(error, 0.0) / count))
    size = float(np.sqrt(square / count))
    std = float(np.sqrt(max(square / count - (value / count) ** 2, 0.0)))
    return {
        "rmse": rmse,
        "nrmse_percent": 100.0 * rmse / max(std, tiny),
        "r2": 1.0 - (rmse / max(std, tiny)) ** 2,
        "relative_error_percent": 100.0 * rmse / max(size, tiny),
        "torque_mean": value / count,
        "torque_std": std,
    }
