"""Scores torque predictions of models on logs, joint by joint, with a filter independent of the fit."""

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
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import Reduction
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion, Preparation, prepare
from steelyard.signals.source import Source, pieces_of

# Approximate number of rows stored for plots.
_PLOT_ROWS = 100_000


# Relative error [%] that is meaningless, because the torque is nearly constant.
MEANINGLESS = 1e6


class TorqueModel(Protocol):
    """A model to score: predicts the torques of a motion of `robot`."""

    @property
    def robot(self) -> Any: ...

    def torque(self, q: Array, dq: Array, ddq: Array, period: float | None = None, /) -> Array:
        """Compute joint torques [N m, N].

        Args:
            q: Positions [rad, m], shape (samples, joints).
            dq: Velocities [rad/s, m/s].
            ddq: Accelerations [rad/s^2, m/s^2].
            period: Sampling period [s].
        """


@dataclass(frozen=True)
class JointScore:
    """Errors of the torque of one joint.

    Attributes:
        joint: Name of the joint.
        rmse: RMS error [N m, N].
        nrmse_percent: RMS error [% of the torque's standard deviation].
        r2: Coefficient of determination.
        relative_error_percent: RMS error [% of the torque's RMS].
        raw: The same figures for unfiltered torques.
        moving: `share` of samples in motion, their `rmse`, and `nrmse_percent` relative to the standard deviation over
            all samples; empty without such samples.
        standing: The same for samples at standstill, where friction is undetermined.
        torque_mean: Mean of the measured torque [N m, N].
        torque_std: Standard deviation of the measured torque [N m, N].
    """

    why_null: ClassVar = dict.fromkeys(
        ("nrmse_percent", "r2", "relative_error_percent", "raw/*", "moving/*", "standing/*"),
        "It is relative to the torque, which is constant or zero.",
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
        """Error in motion; that of all samples if motion and standstill are not separated."""
        return self.moving.get("nrmse_percent", self.nrmse_percent)

    @property
    def for_display(self) -> JointScore:
        """Copy with NaN for figures that are meaningless because the torque is nearly constant."""
        if max(self.nrmse_percent, self.relative_error_percent) < MEANINGLESS:
            return self
        parts = {name: _without_meaningless(getattr(self, name)) for name in ("raw", "moving", "standing")}
        own = ("nrmse_percent", "r2", "relative_error_percent")
        return replace(self, **parts, **_without_meaningless({name: getattr(self, name) for name in own}))  # type: ignore[arg-type]


def _without_meaningless(figures: dict[str, float]) -> dict[str, float]:
    meaningless = {"r2"} if figures.get("nrmse_percent", 0.0) >= MEANINGLESS else set[str]()
    meaningless |= {name for name, x in figures.items() if name.endswith("percent") and x >= MEANINGLESS}
    return {name: math.nan if name in meaningless else x for name, x in figures.items()}


@dataclass(frozen=True, eq=False)
class Score:
    """Scores of all joints on one log, with signals for plots; `standing` marks standstill of the used joints."""

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
        """Whether any joint has samples at standstill."""
        return any(j.standing for j in self.joints)

    def to_json(self) -> dict[str, Any]:
        joints = [j.for_display for j in self.joints]
        return explained(
            {"log": self.log, "samples": self.samples, "score_cutoff_hz": self.cutoff_hz, "joints": joints}
        )


def score(
    model: Model, log: Source, settings: Preparation, cutoff_hz: float, score_cutoff_hz: float, name: str = ""
) -> Score:
    """Score one model on one log (see `score_models`).

    Args:
        model: Model to score.
        log: Evaluation log.
        settings: Preparation of the motion.
        cutoff_hz: Cut-off of the motion's low-pass filter [Hz].
        score_cutoff_hz: Cut-off of the filter of the score [Hz].
        name: Name of the log.
    """
    motions = (m for piece in pieces_of(log) for m in prepare(piece, settings, cutoff_hz, to_fit=False))
    return score_models([model], motions, score_cutoff_hz, name)[0]


def score_models(
    models: Sequence[TorqueModel], motions: Iterable[Motion], score_cutoff_hz: float, name: str = ""
) -> tuple[Score, ...]:
    """Compare predicted with measured torques, both filtered by a zero-phase Butterworth filter of order 4.

    The measured torque passes through this filter only. The prediction passes through it as well, because friction
    jumps at reversals: filtering only one of the two would count as an error of the true model and favour smoothed
    models. A model that is correct below the cut-off has no error except noise. All samples count. Signals for plots
    are thinned and, for a long log, limited to the beginning. All models are scored in one pass and belong to the same
    robot.

    Args:
        models: Models to score.
        motions: Prepared motions of one log.
        score_cutoff_hz: Cut-off of the filter [Hz].
        name: Name of the log.
    """
    robot = models[0].robot
    used = np.flatnonzero(robot.torque_used)
    sums = [(_Sums(len(used)), _Sums(len(used))) for _ in models]
    plotted: list[tuple[NDArray[Any], ...]] = []
    count = 0
    for m in motions:
        every = slice(m.keep.start, m.keep.stop)
        raw, measured, pairs = _torques(models, m, every, used, score_cutoff_hz)
        count += len(raw)
        for (smooth, sharp), (predicted, unfiltered) in zip(sums, pairs, strict=True):
            smooth.add(measured, predicted, None if m.standing is None else m.standing[every][:, used])
            sharp.add(raw, unfiltered)
        if sum(len(k[0]) for k in plotted) <= _PLOT_ROWS:
            # Five rows per period of the cut-off represent the filtered signals.
            step = max(1, int(0.2 / (score_cutoff_hz * m.filter.period)))
            thin = slice(every.start, every.stop, step)
            standing = np.zeros(m.q[thin].shape, dtype=bool) if m.standing is None else m.standing[thin]
            signals = (m.t[thin], m.q[thin], m.dq[thin], m.ddq[thin], standing[:, used])
            shown = (*signals, measured[::step], *(p[::step] for p, _ in pairs))
            plotted.append(tuple(x.copy() for x in shown))  # A view would hold the whole piece in memory.
            del shown, signals
        del m, raw, measured, pairs, predicted, unfiltered  # Frees memory before the next piece.
    if not plotted:
        raise LogError(f"{name or 'The log'}: no piece is long enough for a score at {score_cutoff_hz:g} Hz.")
    t, q, dq, ddq, standing, measured, *predictions = (np.concatenate(x) for x in zip(*plotted, strict=True))
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
        out.append(Score(name, score_cutoff_hz, count, joints, t, q, dq, measured, predicted, ddq, standing))
    return tuple(out)


def score_reduced(
    models: Sequence[Model],
    base: BaseParameters,
    sums: Reduction,
    beginning: Iterable[Motion],
    cutoff_hz: float,
    name: str = "",
) -> tuple[Score, ...]:
    """Score models on a long log from the sums of the fit, without a second pass.

    Squared errors are quadratic in the parameters. Therefore the triangular factors of the filtered rows and the Gram
    matrices of the unfiltered rows determine the squared errors of every model. The figures are for the rows of the
    fit, five per period of the cut-off. These contain all but about 1e-6 of the power of filtered signals.

    Args:
        models: Models with the robot and terms of `base`, or with its links alone.
        base: Base parameters of the columns.
        sums: Sums of the fit, including unfiltered ones.
        beginning: Prepared motions of the log's beginning, for plots.
        cutoff_hz: Cut-off of the fit and of the score [Hz].
        name: Name of the log.
    """
    shown = score_models(models, beginning, cutoff_hz, name)
    out = []
    for model, plotted in zip(models, shown, strict=True):
        theta = np.zeros(len(base.parameters))
        theta[: len(model.theta)] = model.theta
        beta = base.values(theta)
        joints = []
        for e, joint in enumerate(plotted.joints):
            # [A y] times this vector gives y − Aβ.
            factors = np.array([*-beta[sums.factor.equations[e].among(base.independent)[1]], 1.0])
            triangle, gram = sums.factor.triangles[e], sums.unfiltered[e]
            rows, total = sums.factor.rows[e], float(sums.sums[e])
            smooth = error_figures(
                rows, float(np.sum((triangle @ factors) ** 2)), total, float(np.sum(triangle[:, -1] ** 2))
            )
            # Filtered and unfiltered torques have the same sum, except for the ends.
            raw = error_figures(rows, float(factors @ gram @ factors), total, float(gram[-1, -1]))
            # If the fit excludes standstill rows, the log is scored in a second pass instead.
            moving = {"share": 1.0, "rmse": smooth["rmse"], "nrmse_percent": smooth["nrmse_percent"]}
            joints.append(JointScore(joint.joint, **smooth, raw=raw, moving=moving, standing={}))
        out.append(replace(plotted, samples=sums.samples, joints=tuple(joints)))
    return tuple(out)


def _torques(
    models: Sequence[TorqueModel], m: Motion, rows: slice, used: NDArray[np.int64], cutoff_hz: float
) -> tuple[Array, Array, list[tuple[Array, Array]]]:
    """Return the measured torque, unfiltered and filtered, and those of the models, filtered and unfiltered."""
    low_pass = LowPass(min(cutoff_hz, 0.45 / m.filter.period), m.filter.period)
    some = slice(None) if len(used) == m.tau.shape[1] else used  # Avoids a copy.
    raw = m.tau[:, some]
    sharp = [model.torque(m.q, m.dq, m.ddq, m.filter.period)[:, some] for model in models]
    smooth = low_pass.of(lambda start, stop: np.hstack([x[start:stop] for x in (raw, *sharp)]), len(raw), rows)
    measured, *predicted = np.split(smooth, 1 + len(models), axis=1)
    return raw[rows], measured, [(p, s[rows]) for p, s in zip(predicted, sharp, strict=True)]


class _Sums:
    """Sums of errors over pieces."""

    def __init__(self, joints: int) -> None:
        self.count = 0
        self._error, self._value, self._square = (np.zeros(joints) for _ in range(3))
        self._standing_count, self._standing_error = np.zeros(joints), np.zeros(joints)

    def add(self, measured: Array, predicted: Array, standing: NDArray[np.bool_] | None = None) -> None:
        self.count += len(measured)
        error = measured - predicted
        self._error += np.einsum("ij,ij->j", error, error)
        self._value += np.einsum("ij->j", measured)  # Three times faster than np.sum.
        self._square += np.einsum("ij,ij->j", measured, measured)
        if standing is not None and standing.any():
            self._standing_count += np.sum(standing, axis=0)
            self._standing_error += np.sum(error**2, axis=0, where=standing)

    def figures(self, joint: int) -> dict[str, float]:
        sums = (float(x[joint]) for x in (self._error, self._value, self._square))
        return error_figures(self.count, *sums)

    def part(self, joint: int, standing: bool) -> dict[str, float]:
        """Return a joint's figures for `moving` or `standing`."""
        count, sum_of_squares = float(self._standing_count[joint]), float(self._standing_error[joint])
        if not standing:
            count, sum_of_squares = self.count - count, float(self._error[joint]) - sum_of_squares
        if count <= 0.0:
            return {}
        whole, rmse = self.figures(joint), float(np.sqrt(max(sum_of_squares, 0.0) / count))
        scale = whole["nrmse_percent"] / whole["rmse"] if whole["rmse"] > 0.0 else 0.0
        return {"share": count / self.count, "rmse": rmse, "nrmse_percent": rmse * scale}


def error_figures(count: float, error: float, value: float, square: float) -> dict[str, float]:
    """Compute the figures of a score from sums over samples.

    Args:
        count: Number of samples.
        error: Sum of squared errors Σ(y − ŷ)².
        value: Sum Σy of the measured torque.
        square: Sum of squares Σy².
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
