"""Choose the cut-off of the equations by left-out blocks of the identification logs.

Rows are linear in the parameters, so a low-pass on both sides of y = A θ commutes with the fit: Gram matrices of
low-passed rows give the predictions of a fit at any cut-off. Too high a cut-off admits noise in the columns, which
biases the estimates towards zero; a criterion with the same noise would prefer such estimates. So errors are judged
only in the octaves with predictable torque, the same for all candidates (docs/theory/preparation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.block_grams import BlockGrams, Fits, Index, Mask
from steelyard.regression.block_rows import align_rows, labels, nonnegative, stretches, tables
from steelyard.regression.observe import standstill_rows
from steelyard.regression.rows import Rows
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion

# Candidates as multiples of the motion's band, below the ceiling from the motion: half octaves.
_MULTIPLES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
# Candidates closer than this ratio are merged.
_CLOSE = 1.2
# Left-out errors that differ by less than this fraction are equivalent. Noise in the columns costs tens of per cent;
# between 2 and 4 % the choices on thirteen robots are equally good.
HARMLESS = 0.03
# An octave with a larger explained share contains more torque than noise, and belongs to the fit even if its left-out
# errors are larger by chance.
_MOSTLY_TORQUE = 0.5
# Independent samples (2 f T of each equation) per parameter that a fit below a frequency f needs.
_SAMPLES_PER_PARAMETER = 4.0

# Base parameters of the nearest physically possible robot, from free base parameters and their covariance.
NearestPossible = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class BandChoice:
    """A cut-off and the evidence for it.

    Attributes:
        cutoff_hz: The chosen cut-off [Hz], or the one that the user stated.
        motion_hz: Band of the motion: 99.9 % of the positions' power lies below [Hz].
        judged_hz: Left-out errors are judged below this frequency [Hz].
        candidates_hz: Cut-offs that were tried [Hz], the lowest first.
        left_out_percent: Error of each candidate on left-out blocks, percent of the torque's standard deviation,
            geometric mean over joints.
        explained: Share of the torque in the octave below each candidate that a fit to everything lower explains on
            left-out blocks (R², median over joints); not for the lowest.
        advised_hz: If the user stated the cut-off, the one chosen by left-out blocks [Hz]; else None.
        bound_growth: Ratio of the errors of the physically possible and the free fit by cut-off [Hz], where it was
            needed for the choice.
    """

    cutoff_hz: float
    motion_hz: float
    judged_hz: float
    candidates_hz: tuple[float, ...]
    left_out_percent: tuple[float, ...]
    explained: tuple[float, ...]
    advised_hz: float | None = None
    bound_growth: Mapping[float, float] = field(default_factory=dict)

    @property
    def stated(self) -> bool:
        """Whether the user stated the cut-off."""
        return self.advised_hz is not None

    @property
    def harm_percent(self) -> float:
        """Increase of the left-out error from the advised to the stated cut-off, percent."""
        if self.advised_hz is None or self.advised_hz == self.cutoff_hz:
            return 0.0
        own, advised = (self._error(f) for f in (self.cutoff_hz, self.advised_hz))
        return 100.0 * (own / advised - 1.0)

    @property
    def advice(self) -> str | None:
        """Recommend another cut-off if the stated one is clearly worse; otherwise None."""
        if self.advised_hz is None or self.harm_percent <= 100.0 * HARMLESS:
            return None
        own, advised = (f"{self._error(f):.3g} % at {f:.3g} Hz" for f in (self.cutoff_hz, self.advised_hz))
        return (
            f"The stated cut-off is worse than another: error on left-out blocks (below {self.judged_hz:.3g} Hz) "
            f"{own}, {advised}. Give --cutoff {self.advised_hz:.3g}, or omit the option."
        )

    def _error(self, frequency: float) -> float:
        return self.left_out_percent[self.candidates_hz.index(frequency)]

    @property
    def is_ceiling(self) -> bool:
        """Whether the highest candidate was chosen."""
        return self.cutoff_hz == self.candidates_hz[-1]

    @property
    def sentence(self) -> str:
        """Explain the choice in one sentence."""
        if self.stated:
            own = f"Cut-off {self.cutoff_hz:.3g} Hz, as stated: left-out blocks find no better one."
            return self.advice or own
        if self.is_ceiling:
            return (
                f"Cut-off {self.cutoff_hz:.3g} Hz: errors on left-out blocks do not grow up to the highest candidate."
            )
        top_hz = max(self.bound_growth, default=self.cutoff_hz)
        if top_hz > self.cutoff_hz:
            percent = {f: f"{100.0 * (growth - 1.0):.0f} %" for f, growth in self.bound_growth.items()}
            return (
                f"Cut-off {self.cutoff_hz:.3g} Hz: errors on left-out blocks are equal up to {top_hz:.3g} Hz, but "
                f"bodies that can exist fit worse there: their error is {percent[top_hz]} larger than without bounds, "
                f"{percent[self.cutoff_hz]} at the cut-off. Noise of the motion makes inertias too small."
            )
        chosen = self.candidates_hz.index(self.cutoff_hz)
        own, above, top = (
            f"{self.left_out_percent[k]:.3g} % at {self.candidates_hz[k]:.3g} Hz" for k in (chosen, chosen + 1, -1)
        )
        return (
            f"Cut-off {self.cutoff_hz:.3g} Hz: error on left-out blocks (below {self.judged_hz:.3g} Hz) {own}, "
            f"{above}, {top}. Above the cut-off the measured motion is mostly noise."
        )

    @property
    def least_percent(self) -> float:
        """Smallest left-out error of all candidates, percent."""
        return min(self.left_out_percent)

    def to_json(self) -> dict[str, Any]:
        return {
            "cutoff_hz": self.cutoff_hz,
            "motion_hz": self.motion_hz,
            "judged_hz": self.judged_hz,
            "candidates": [
                {"cutoff_hz": f, "left_out_error_percent": e, "explained_in_octave": r}
                for f, e, r in zip(self.candidates_hz, self.left_out_percent, (None, *self.explained), strict=True)
            ],
            "reason": self.sentence,
            "stated": self.stated,
            "advised_cutoff_hz": self.cutoff_hz if self.advised_hz is None else self.advised_hz,
            "harm_percent": self.harm_percent,
            "bound_growth": [{"cutoff_hz": f, "ratio": growth} for f, growth in self.bound_growth.items()],
        }


@dataclass(frozen=True, eq=False)
class _Part:
    """A stretch of a motion: [A y] of every equation, moving rows of each joint, and the rows' period [s]."""

    log: int
    tables: list[Array]
    moving: Mask | None
    period: float

    @property
    def seconds(self) -> float:
        return len(self.tables[0]) * self.period


class BandLevels:
    """Gram matrices of the rows below each candidate frequency, and of the octave below it.

    Args:
        dynamics: Physics of the robot with its usual terms.
        base: Base parameters of the same.
        motions: Prepared motions at the highest allowed cut-off, each with the number of its log.
        motion_hz: Band of the motion [Hz].
        stated_hz: Additional candidate [Hz].
    """

    def __init__(
        self, dynamics: Dynamics, base: BaseParameters, motions: Sequence[tuple[int, Motion]], motion_hz: float,
        stated_hz: float | None = None,
    ) -> None:  # fmt: skip
        self.base, self.motion_hz, self.motions = base, motion_hz, [m for _, m in motions]
        self.used = [int(j) for j in np.flatnonzero(base.robot.torque_used)]
        self.rows = Rows.cached(dynamics, base.independent)
        self.bounded = nonnegative(base)
        self.parts = list(self._parts(dynamics, motions))
        ceiling = min(m.filter.cutoff_hz for _, m in motions)
        lower = [c * motion_hz for c in _MULTIPLES if _CLOSE * c * motion_hz < ceiling]
        if stated_hz is not None and stated_hz < ceiling:
            lower = sorted([stated_hz, *(f for f in lower if max(f / stated_hz, stated_hz / f) >= _CLOSE)])
        self.edges = [*(f for f in lower if self._is_long_enough(f)), ceiling]
        with one_blas_thread():
            self._reduce()

    def _parts(self, dynamics: Dynamics, motions: Sequence[tuple[int, Motion]]) -> Sequence[_Part]:
        whole = [align_rows(m) for _, m in motions]
        out = []
        for (log, _), motion, some in zip(motions, whole, stretches(whole), strict=True):
            still = standstill_rows(dynamics, motion)
            for at, part in some:
                moving = None if still is None else ~still[at][part.keep][:, self.used]
                out.append(_Part(log, tables(dynamics, self.base, self.rows, part), moving, part.row_period))
        return out

    def tables_of(self, base: BaseParameters, motions: Sequence[Motion]) -> list[list[Array]]:
        """Return [A y] of the stretches in sequence if they match the arguments, else an empty list.

        Args:
            base: Base parameters of the columns.
            motions: Prepared motions.
        """
        same = base is self.base and [id(m) for m in motions] == [id(m) for m in self.motions]
        return [part.tables for part in self.parts] if same else []

    def _is_long_enough(self, frequency: float) -> bool:
        """Return whether the logs are long enough to fit all parameters below a frequency [Hz]."""
        whole = sum(p.seconds for p in self.parts)
        left = sum(max(p.seconds - 2.0 / frequency, 0.0) for p in self.parts)
        samples = 2.0 * frequency * left * len(self.used)
        return left >= 0.5 * whole and samples >= _SAMPLES_PER_PARAMETER * self.base.rank

    def _reduce(self) -> None:
        """Descend from the ceiling, level by level: low-pass the rows, separate the octave, decimate them."""
        # One period of the lowest frequency is omitted at both ends of every stretch, at all levels.
        margin = 1.0 / self.edges[0]
        trims = [int(np.ceil(margin / p.period)) if len(self.edges) > 1 else 0 for p in self.parts]
        kept = [k for k, p in enumerate(self.parts) if len(p.tables[0]) - 2 * trims[k] >= 4]
        numbers = labels([(self.parts[k].log, len(self.parts[k].tables[0]) - 2 * trims[k]) for k in kept])
        blocks = 1 + max(int(n.max()) for n in numbers)
        self.below = [self._grams(blocks) for _ in self.edges]
        self.octave = [self._grams(blocks) for _ in self.edges]
        for k, number in zip(kept, numbers, strict=True):
            part, trim = self.parts[k], trims[k]
            flags = np.zeros(len(part.tables[0]), dtype=bool)
            flags[trim : len(flags) - trim] = True
            block = np.zeros(len(flags), dtype=np.int64)
            block[flags] = number
            inner = np.repeat(flags[:, None], len(part.tables), axis=1)
            if part.moving is not None:
                inner &= part.moving
            self._descend(np.hstack(part.tables), inner, block, part.period)

    def _grams(self, blocks: int) -> BlockGrams:
        return BlockGrams(self.rows.equations, self.base.independent, [0] * len(self.used), blocks, self.bounded)

    def _descend(self, table: Array, inner: Mask, block: Index, period: float) -> None:
        """Add the rows of a stretch, all equations together because they share the filters.

        Args:
            table: [A y] of the equations, side by side.
            inner: Mask of used rows of each equation.
            block: Block of each row.
            period: Time between rows [s].
        """
        borders = np.cumsum([0, *(e.width for e in self.rows.equations)]).tolist()
        for level in range(len(self.edges) - 1, -1, -1):
            low = LowPass(self.edges[level - 1], period)(table) if level else table
            for e, (first, last) in enumerate(pairwise(borders)):
                some, numbers = inner[:, e], block[inner[:, e]]
                own, none = table[some, first:last], np.zeros((len(numbers), 0))
                self.below[level].add(e, own, none, numbers)
                if level:
                    self.octave[level].add(e, own - low[some, first:last], none, numbers)
            if level:
                step = max(1, int(0.2 / (self.edges[level - 1] * period)))
                table, inner, block, period = low[::step], inner[::step], block[::step], step * period

    def choose(self, judged_hz: float | None = None) -> BandChoice:
        """Choose the highest cut-off without a larger error on left-out blocks.

        Args:
            judged_hz: Judge below this frequency [Hz]; default: as far as the torque is predictable.
        """
        with one_blas_thread():
            every = np.ones(self.base.rank, dtype=bool)
            fits = [grams.weighted(every).fit(every) for grams in self.below]
            explained = [self._explained(level, fits[level - 1]) for level in range(1, len(fits))]
            judge = next((k for k, share in enumerate(explained) if not share > 0.0), len(explained))
            if judged_hz is not None:
                judge = int(np.argmin(np.abs(np.log(np.array(self.edges) / judged_hz))))
            errors = [self._left_out_percent(self.below[judge], fit) for fit in fits]
        harmless = max(k for k, e in enumerate(errors) if e <= (1.0 + HARMLESS) * min(errors))
        sound = next((k for k, share in enumerate(explained) if not share > _MOSTLY_TORQUE), len(explained))
        edges = tuple(self.edges)
        chosen = edges[max(harmless, sound)]
        return BandChoice(chosen, self.motion_hz, edges[judge], edges, tuple(errors), tuple(explained))

    def lower_for_bounds(self, choice: BandChoice, possible: NearestPossible) -> BandChoice:
        """Lower the cut-off if noise hurts the physically possible fit, which is delivered, but not the free one.

        Noise in the columns makes inertias too small for the gravity that is seen. A free fit compensates for this in
        other parameters, bodies that can exist cannot. So the left-out error of each equivalent candidate is
        multiplied by the growth of the error from the free to the possible fit.

        Args:
            choice: Choice by the free fits.
            possible: Gives the nearest physically possible base parameters.
        """
        top, judge = self.edges.index(choice.cutoff_hz), self.below[self.edges.index(choice.judged_hz)]
        errors = np.array(choice.left_out_percent)
        equal = [k for k in range(top + 1) if errors[k] <= (1.0 + HARMLESS) * errors.min()]
        if len(equal) < 2 or top not in equal:
            return choice
        growth: dict[int, float] = {}
        with one_blas_thread():
            # The lowest candidate has the least noise. From the top down, the first that is as good is chosen.
            for k in (equal[0], *reversed(equal)):
                if k not in growth:
                    growth[k] = self._bound_growth(self.below[k], judge, possible)
                if k != equal[0] and errors[k] * growth[k] <= (1.0 + HARMLESS) * errors[equal[0]] * growth[equal[0]]:
                    break
        known = {self.edges[n]: growth[n] for n in sorted(growth)}
        return replace(choice, cutoff_hz=self.edges[k], bound_growth=known)

    def _bound_growth(self, grams: BlockGrams, judge: BlockGrams, possible: NearestPossible) -> float:
        """Compute the ratio of the errors of the possible and the free fit to `grams`, geometric mean over joints."""
        every = np.ones(self.base.rank, dtype=bool)
        fit = grams.weighted(every).fit(every)
        free, bounded = (judge.squares(x) for x in (fit.free[0], possible(fit.free[0], fit.free_inverse[0])))
        return float(np.exp(0.5 * np.mean(np.log(np.maximum(bounded, 1e-300) / np.maximum(free, 1e-300)))))

    def would_do(self, others: Sequence[Motion], judged_hz: float) -> bool:
        """Return whether motions prepared in another way cannot reduce the error by more than a harmless amount.

        An error of these motions that the others do not have is part of the residual, and squared errors add up. So the
        gain is at most the difference between the torques along both.

        Args:
            others: The motions of the same pieces, made ready in another way.
            judged_hz: Judge below this frequency [Hz].
        """
        if len(others) != len(self.motions):
            return False
        with one_blas_thread():
            every, level = np.ones(self.base.rank, dtype=bool), self.edges.index(judged_hz)
            judge = self.below[level]
            fits = judge.weighted(every).fit(every)
        left = np.sqrt(judge.left_out(fits).sum(axis=0) / np.maximum(judge.rows.sum(axis=0), 1.0))
        theta = np.zeros(len(self.base.parameters))
        theta[list(self.base.independent)] = fits.x[0]
        torque = self.rows.dynamics.inverse_dynamics
        for pair in zip(self.motions, others, strict=True):
            torques = [torque(m.q[m.keep], m.dq[m.keep], m.ddq[m.keep], theta) for m in pair]
            apart = np.sqrt(np.mean((torques[1] - torques[0])[:, self.used] ** 2, axis=0))
            if not np.all(apart**2 < HARMLESS * left**2):
                return False
        return True

    def _explained(self, level: int, lower: Fits) -> float:
        """Compute R² of the torque in an octave on left-out blocks, for the fit below it; median over joints."""
        octave = self.octave[level]
        torque = np.array([g[:, -1, -1].sum() for g in octave.grams])
        shares = 1.0 - octave.left_out(lower).sum(axis=0) / np.maximum(torque, 1e-300)
        return float(np.median(shares))

    @staticmethod
    def _left_out_percent(judge: BlockGrams, fits: Fits) -> float:
        squares = judge.left_out(fits).sum(axis=0) / np.maximum(judge.rows.sum(axis=0), 1.0)
        return float(100.0 * np.exp(np.mean(np.log(np.maximum(np.sqrt(squares) / judge.deviations, 1e-12)))))
