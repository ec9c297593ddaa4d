"""Blocked cross-validation: fit on all stretches of the logs but one, judge on that one, each in turn.

Only small triangles are kept of every stretch, so that leaving one out is a merge and not another pass over the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.assessment.holdout import part_of
from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.estimation.linear.least_squares import WeightedLeastSquares
from steelyard.ground.arrays import Array
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.factor import Factor
from steelyard.regression.observe import observe
from steelyard.regression.schemes import Dynamic, Scheme
from steelyard.signals.filters import LowPass
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, prepare


@dataclass(frozen=True)
class ScoringFilter:
    """The score that stays the same for all that is compared: its filter (Hz), and what is cut at the ends (s)."""

    cutoff_hz: float
    trim: float

    def view(self, motion: Motion) -> Motion:
        """`motion` as it was prepared, its rows through the judge's filter instead of the fit's."""
        period = motion.filter.period
        low_pass = LowPass(min(self.cutoff_hz, 0.45 / period), period)
        trim = max(1, round(self.trim / period))
        step = max(1, int(0.2 / (low_pass.cutoff_hz * period)))
        return replace(motion, filter=low_pass, keep=slice(trim, len(motion.t) - trim, step))


@dataclass(frozen=True, eq=False)
class Stretch:
    """What one stretch of the logs has to say: rows to fit with, and rows to be judged by."""

    fit: Factor
    judge: Factor


def stretches_of(logs: Sequence[Log], count: int, shortest: float) -> list[list[Log]]:
    """Every one of `logs` cut into `count` stretches of equal time; the k-th of all logs belong together.

    Gap-free pieces of less than `shortest` seconds are left out: filters need a run-up.
    """
    out: list[list[Log]] = []
    for k in range(count):
        parts = [part for log in logs if (part := _stretch(log, k, count, shortest)) is not None]
        if not parts:
            raise SteelyardError(
                f"The logs are too short to be cut into {count} stretches of {shortest:.3g} s or more; "
                f"identify without tuning."
            )
        out.append(parts)
    return out


def _stretch(log: Log, k: int, count: int, shortest: float) -> Log | None:
    edges = np.searchsorted(log.t, log.t[0] + (log.t[-1] - log.t[0]) * np.array([k, k + 1]) / count)
    stop = len(log) if k == count - 1 else int(edges[1])
    part = part_of(log, [(int(edges[0]), stop)])
    if part is None:
        return None
    long = [(a, b) for a, b in part.segments if part.t[b - 1] - part.t[a] >= shortest]
    return part_of(part, long)


class CrossValidation:
    """Rows of one robot with one set of terms, made ready once for all stretches and ways to prepare them.

    They are written as `scheme` does for `dynamics` and `base`; joints slower than `mask` (rad/s, m/s) do not count.
    """

    def __init__(self, scheme: Scheme, dynamics: Dynamics, base: BaseParameters, mask: float = 0.0) -> None:
        self.scheme, self.dynamics, self.base, self.mask = scheme, dynamics, base, mask
        self._motions: list[Motion] = []
        self._torques: dict[float, RegressionData] = {}

    def stretch(self, logs: Sequence[Log], settings: Preparation, cutoff_hz: float, judge: ScoringFilter) -> Stretch:
        """The triangles of one stretch: fitted as the scheme writes it, judged by the torques at all speeds.

        Its `logs` are prepared by `settings` at `cutoff_hz` for the fit, and as `judge` sees them for the score.
        """
        motions = [m for log in logs for m in prepare(log, settings, cutoff_hz)]
        if isinstance(self.scheme, Dynamic):
            fit = self._torque_factor(motions, self.mask)
        else:
            fit = self.scheme.data(self.dynamics, self.base, lambda: motions, self.mask).factor()
        return Stretch(fit, self._torque_factor([judge.view(m) for m in motions], 0.0))

    def _torque_factor(self, motions: list[Motion], mask: float) -> Factor:
        # The code that computes rows is made once and runs on whatever motions are at hand.
        self._motions = motions
        if mask not in self._torques:
            self._torques[mask] = observe(self.dynamics, self.base, lambda: self._motions, mask)
        made = self._torques[mask]
        return RegressionData(made.equations, made.parameters, made.source, made.period).factor()


def left_out(stretches: Sequence[Stretch], base: BaseParameters) -> Array:
    """Root mean square errors on each of `stretches` of the fit of `base` to all others, `(stretches, equations)`."""
    rows = []
    for k, stretch in enumerate(stretches):
        first, *rest = [s.fit for i, s in enumerate(stretches) if i != k]
        beta = _fitted(first.merge(*rest), base)
        sums = stretch.judge.residual_sums(beta, base.independent)
        rows.append(np.sqrt(sums / np.maximum(stretch.judge.rows, 1)))
    return np.array(rows)


def _fitted(factor: Factor, base: BaseParameters) -> Array:
    data = RegressionData.from_factor(factor)
    # Weights to a thousandth: this only compares, and on far coarser grounds.
    return WeightedLeastSquares(tolerance=1e-3).free(data, base).beta


def torque_std(stretches: Sequence[Sequence[Log]], judge: ScoringFilter, used: Sequence[bool]) -> Array:
    """Standard deviation over all `stretches` of the torques as `judge` sees them, of the joints that are `used`."""
    torques = np.concatenate(list(_torques(stretches, judge)))[:, np.flatnonzero(used)]
    return np.asarray(np.maximum(np.std(torques, axis=0), 1e-12))


def _torques(stretches: Sequence[Sequence[Log]], judge: ScoringFilter) -> Iterator[Array]:
    for logs in stretches:
        for log in logs:
            for motion in prepare(log, Preparation(velocity="differentiated"), judge.cutoff_hz):
                seen = judge.view(motion)
                yield seen.filter(motion.tau)[seen.keep]
