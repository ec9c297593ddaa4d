"""Error bars of a stream: noise as if it were white, what varies from stretch to stretch, what the model lacks.

Residuals of robots are neither white nor noise alone. What it takes to know is kept while samples come, next to
nothing for each of them: the triangle at the ends of up to 32 stretches of time (their scores follow when they are
asked for), the squares of every eighth innovation, by equation, and how rough the torques are from sample to sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.widening import drawn_to_mean, mean_ratio
from steelyard.estimation.recursion._information import Information
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array, one_blas_thread

# Stretches that are kept at most, and how many make a scatter; the first ones are of so many updates.
_MOST, _FEWEST, _SHORTEST = 32, 4, 64
# Of what forgetting has left so little, nothing is kept.
_FORGOTTEN = 0.01
# One of so many samples and updates is looked at; callers see to it, since a call would cost as much as the rest.
EVERY = 8
# Mean of ln|x| of a Gaussian x, of variance 6 for second differences of white noise: (ln 6 − γ − ln 2)/2.
_LOG_OF_ROUGHNESS = 0.5 * (log(6.0) - 0.5772156649015329 - log(2.0))
# Residuals that noise does not explain tell as much as this many independent rows, however many there were: what the
# model lacks comes again with the motion, and does not average out. Chosen by coverage on simulated arms
# (docs/theory/recursive.md), as is the part of the noise that cannot be told from it.
_PIECES = 200.0
_LEAST_MISFIT = 0.05


@dataclass(frozen=True, eq=False)
class ErrorParts:
    """What standard errors are made of; their squares add up.

    Attributes:
        noise: as if residuals were white.
        motion: what parameters vary by from stretch to stretch of the stream beyond that.
        structure: how far friction of another form than the terms', and whatever else the model lacks, leans on them.
    """

    noise: Array
    motion: Array
    structure: Array

    @property
    def standard_errors(self) -> Array:
        return np.asarray(np.sqrt(self.noise**2 + self.motion**2 + self.structure**2))


@dataclass(frozen=True, eq=False)
class _Mark:
    """The end of a stretch: after how many updates, ln of what was left of the first rows, the triangle, and of every
    equation the squares of innovations since the last mark; of how many."""

    updates: int
    faded: float
    joined: Array
    squares: Array
    looked: int


class Stretches:
    """What the error bars of a stream need of its past.

    Args:
        joints: whose torques the rows are of.
        equations: how many rows come at a time.
        width: how many torques a sample has; None: as many as `joints`.
    """

    def __init__(self, joints: Sequence[int], equations: int, width: int | None = None) -> None:
        self._width = len(joints) if width is None else width
        self._joints, self._equations = list(joints), equations
        self._marks: list[_Mark] = []
        self.stride = _SHORTEST
        self._squares, self._looked = np.zeros(equations), 0
        self._torques: list[Array] = []
        self._roughness, self._rough = np.zeros(0), 0

    def start(self, state: Information) -> None:
        """Begin anew with what `state` knows now."""
        self._marks = [_Mark(state.updates, state.faded, state.joined, np.zeros(self._equations), 0)]
        self.stride = _SHORTEST
        self._squares, self._looked = np.zeros(self._equations), 0

    # ---------------------------------------------------------------- sample by sample

    def feel(self, sample: int, tau: Array) -> None:
        """Look at the torques `tau` of the sample with this number: three in a row of every `EVERY`."""
        turn = sample % EVERY
        if turn == 0:
            self._torques = [tau.copy()]
        elif turn < 3 and len(self._torques) == turn:
            self._torques.append(tau.copy())
            if turn == 2:
                a, b, c = self._torques
                rough = np.log(np.maximum(np.abs(a - 2.0 * b + c)[self._joints], 1e-12))
                self._roughness = rough if not self._rough else self._roughness + rough
                self._rough += 1

    def look(self, state: Information) -> None:
        """Compare the rows that are about to be taken in with what the estimate says, at every `EVERY`-th update."""
        if state.updates > state.count and state.filled == state.rows:
            rows = state.buffer
            away = rows[:, state.count] - rows[:, : state.count] @ state.solved
            squares = away * away
            if squares.sum() < np.inf:  # not before all parameters are determined
                self._squares += squares
                self._looked += 1

    def add(self, state: Information) -> None:
        """Keep this moment, at which a stretch ends: those that `stride` divides."""
        self._marks.append(_Mark(state.updates, state.faded, state.joined, self._squares, self._looked))
        self._squares, self._looked = np.zeros(self._equations), 0
        while len(self._marks) > 2 and self._marks[1].faded - state.faded > -log(_FORGOTTEN):
            del self._marks[0]
        if len(self._marks) > _MOST:
            self.stride *= 2
            self._marks = _every_second(self._marks, self.stride)

    # ---------------------------------------------------------------- what they tell

    def parts(self, state: Information, gain: float, weights: Array) -> ErrorParts:
        """Of the estimate that `state` has now.

        Args:
            state: with all parameters determined.
            gain: the variance of a row's right side over that of white noise of the torque; zero: not known.
            weights: what rows are multiplied with.
        """
        with one_blas_thread():
            P = state.covariance()
            noise = state.noise**2 * np.diag(P)
            return ErrorParts(
                np.sqrt(noise), np.sqrt(self._motion(state, P, noise)),
                np.sqrt(self._misfit(gain, weights) * state.weight / _PIECES * np.diag(P)),
            )  # fmt: skip

    def _motion(self, state: Information, P: Array, noise: Array) -> Array:
        """The variance that scores scatter by from stretch to stretch, beyond that of white noise."""
        marks = [*self._marks, _Mark(state.updates, state.faded, state.joined, self._squares, self._looked)]
        if len(marks) <= _FEWEST:
            return np.zeros_like(noise)
        # A last one that is short is part of the one before.
        if marks[-1].updates - marks[-2].updates < self.stride // 2:
            del marks[-2]
        grams = [exp(state.faded - m.faded) * (m.joined.T @ m.joined) for m in marks]
        way = np.append(-state.theta(), 1.0)
        scores = np.array([(b - a)[:-1] @ way for a, b in pairwise(grams)])
        sizes = np.diff([m.updates for m in marks]) * np.exp([state.faded - m.faded for m in marks[1:]])
        counted = float(sizes.sum() ** 2 / np.sum(sizes**2))
        if counted < _FEWEST:
            return np.zeros_like(noise)
        scores = scores - np.outer(sizes / sizes.sum(), scores.sum(axis=0))
        scatter = np.sum((scores @ P) ** 2, axis=0) * counted / (counted - 1.0)
        ratio = scatter / np.maximum(noise, 1e-300)
        drawn = drawn_to_mean(ratio, mean_ratio(ratio, counted - 1.0), counted - 1.0)
        return np.asarray(noise * np.maximum(drawn - 1.0, 0.0))

    def _misfit(self, gain: float, weights: Array) -> float:
        """The mean square of residuals, beyond what noise of the torques makes of them."""
        late = self._marks[len(self._marks) // 2 :]  # what the estimate did not know at first is not the model's
        squares = sum((m.squares for m in late), self._squares.copy())
        looked = sum(m.looked for m in late) + self._looked
        if not looked:
            return 0.0
        left, noise = squares / looked, np.zeros(self._equations)
        if gain and self._rough:
            noise = gain * (weights * np.exp(self._roughness / self._rough - _LOG_OF_ROUGHNESS)) ** 2
        return float(np.mean(np.maximum(left - noise, _LEAST_MISFIT * noise)))

    # ---------------------------------------------------------------- to be continued elsewhere

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Where a saved state may differ from that of a new stream; states of before have none of this."""
        marks = ArrayRule(rows=_MOST + 1, fewest=1, optional=True)
        return {
            **dict.fromkeys(("heads", "triangles", "squares"), marks),
            "now": ArrayRule(optional=True),
            "roughness": ArrayRule(rows=max(len(self._joints), 1), optional=True),
            "torques": ArrayRule(rows=3, optional=True),
        }

    def state(self) -> dict[str, Array]:
        marks = self._marks
        size = marks[0].joined.shape
        return {
            "heads": np.array([[m.updates, m.faded, m.looked] for m in marks]),
            "triangles": np.array([m.joined for m in marks]).reshape(-1, *size),
            "squares": np.array([m.squares for m in marks]),
            "now": np.concatenate([[self.stride, self._looked, self._rough], self._squares]),
            "roughness": self._roughness.copy(),
            "torques": np.array(self._torques),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        if not state:
            return
        rows = zip(state["heads"], state["triangles"], state["squares"], strict=True)
        self._marks = [_Mark(int(u), float(f), j.copy(), s.copy(), int(n)) for (u, f, n), j, s in rows]
        stride, looked, rough, *squares = state["now"]
        roughness, torques = state["roughness"], state["torques"]
        fits = len(roughness) == len(self._joints) or not rough
        if torques.size:
            fits = fits and torques.ndim == 2 and torques.shape[1] == self._width
        if not (stride >= 1.0 and fits):
            raise EstimationError("the stretches in the state are damaged.")
        self.stride, self._looked, self._rough = int(stride), int(looked), int(rough)
        self._squares, self._roughness = np.array(squares), roughness.copy()
        self._torques = [x.copy() for x in torques]


def _every_second(marks: Sequence[_Mark], stride: int) -> list[_Mark]:
    """The first mark and those at multiples of `stride`, with what the ones between had counted."""
    out, squares, looked = [marks[0]], np.zeros_like(marks[0].squares), 0
    for m in marks[1:]:
        squares, looked = squares + m.squares, looked + m.looked
        if m.updates % stride == 0:
            out.append(_Mark(m.updates, m.faded, m.joined, squares, looked))
            squares, looked = np.zeros_like(squares), 0
    return out
