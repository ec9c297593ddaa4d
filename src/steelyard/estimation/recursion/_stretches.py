"""Error bars of a stream: white noise, variation between stretches of time, model errors.

Residuals of robots are not white noise. The necessary data need little memory and time: the triangle at the ends of up
to 32 stretches of time (their scores are computed on request), the squares of every eighth innovation, by equation,
and the roughness of the torques between samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.linear.widening import mean_ratio, shrink_to_mean
from steelyard.estimation.recursion._information import Information
from steelyard.ground.array_rules import ArrayRule
from steelyard.ground.arrays import Array, one_blas_thread

# Largest number of stored stretches, smallest number for a scatter, number of updates in the first stretches.
_MAX_STRETCHES, _MIN_STRETCHES, _FIRST_STRIDE = 32, 4, 64
# Stretches with less than this remaining weight are removed.
_MIN_WEIGHT = 0.01
# Interval of samples and updates that are used; callers check it to save calls.
EVERY = 8
# Mean of ln|x| of a Gaussian x, of variance 6 for second differences of white noise: (ln 6 − γ − ln 2)/2.
_LOG_OF_ROUGHNESS = 0.5 * (log(6.0) - 0.5772156649015329 - log(2.0))
# Number of independent rows that residuals beyond the noise are worth: model errors repeat with the motion and do not
# average out. Chosen by coverage on simulated arms (docs/theory/recursive.md), like the share of the noise that cannot
# be distinguished from model errors.
_MODEL_ERROR_ROWS = 200.0
_MIN_MISFIT = 0.05


@dataclass(frozen=True, eq=False)
class ErrorParts:
    """Parts of the standard errors; their squares add up.

    Attributes:
        noise: For white residuals.
        motion: Additional variation of the parameters between stretches of the stream.
        structure: Bias from friction of another form than the terms' and from other model errors.
    """

    noise: Array
    motion: Array
    structure: Array

    @property
    def standard_errors(self) -> Array:
        return np.asarray(np.sqrt(self.noise**2 + self.motion**2 + self.structure**2))


@dataclass(frozen=True, eq=False)
class _Mark:
    """The end of a stretch: number of updates, logarithm of the remaining weight of the first rows, triangle; sums of
    squared innovations by equation since the last mark, and their number.
    """

    updates: int
    faded: float
    triangle: Array
    squares: Array
    count: int


class Stretches:
    """Data of a stream for its error bars.

    Args:
        joints: Joints whose torques are in the rows.
        equations: Number of rows per update.
        width: Number of torques in a sample; None: that of `joints`.
    """

    def __init__(self, joints: Sequence[int], equations: int, width: int | None = None) -> None:
        self._width = len(joints) if width is None else width
        self._joints, self._equations = list(joints), equations
        self._marks: list[_Mark] = []
        self.stride = _FIRST_STRIDE
        self._squares, self._count = np.zeros(equations), 0
        self._torques: list[Array] = []
        self._roughness, self._rough = np.zeros(0), 0

    def start(self, state: Information) -> None:
        """Restart with the present `state`."""
        self._marks = [_Mark(state.updates, state.faded, state.triangle, np.zeros(self._equations), 0)]
        self.stride = _FIRST_STRIDE
        self._squares, self._count = np.zeros(self._equations), 0

    # ---------------------------------------------------------------- updates

    def observe_torque(self, sample: int, tau: Array) -> None:
        """Observe torques for their roughness: three consecutive samples of every `EVERY`.

        Args:
            sample: Number of the sample.
            tau: Torques [N m, N].
        """
        position = sample % EVERY
        if position == 0:
            self._torques = [tau.copy()]
        elif position < 3 and len(self._torques) == position:
            self._torques.append(tau.copy())
            if position == 2:
                a, b, c = self._torques
                rough = np.log(np.maximum(np.abs(a - 2.0 * b + c)[self._joints], 1e-12))
                self._roughness = rough if not self._rough else self._roughness + rough
                self._rough += 1

    def observe_rows(self, state: Information) -> None:
        """Compare new rows with the prediction of the estimate in `state`; called at every `EVERY`-th update."""
        if state.updates > state.count and state.filled == state.rows:
            rows = state.buffer
            innovation = rows[:, state.count] - rows[:, : state.count] @ state.solved
            squares = innovation * innovation
            if squares.sum() < np.inf:  # finite once all parameters are determined
                self._squares += squares
                self._count += 1

    def add(self, state: Information) -> None:
        """End a stretch with the present `state`; called at multiples of `stride`."""
        self._marks.append(_Mark(state.updates, state.faded, state.triangle, self._squares, self._count))
        self._squares, self._count = np.zeros(self._equations), 0
        while len(self._marks) > 2 and self._marks[1].faded - state.faded > -log(_MIN_WEIGHT):
            del self._marks[0]
        if len(self._marks) > _MAX_STRETCHES:
            self.stride *= 2
            self._marks = _every_second(self._marks, self.stride)

    # ---------------------------------------------------------------- results

    def parts(self, state: Information, gain: float, weights: Array) -> ErrorParts:
        """Compute the parts of the standard errors.

        Args:
            state: State with determined parameters.
            gain: Variance of a row's right side over that of white torque noise; zero: unknown.
            weights: Weights of the rows.
        """
        with one_blas_thread():
            P = state.covariance()
            noise = state.noise**2 * np.diag(P)
            return ErrorParts(
                np.sqrt(noise), np.sqrt(self._motion(state, P, noise)),
                np.sqrt(self._misfit(gain, weights) * state.weight / _MODEL_ERROR_ROWS * np.diag(P)),
            )  # fmt: skip

    def _motion(self, state: Information, P: Array, noise: Array) -> Array:
        """Variance from the scatter of scores between stretches, beyond white noise."""
        marks = [*self._marks, _Mark(state.updates, state.faded, state.triangle, self._squares, self._count)]
        if len(marks) <= _MIN_STRETCHES:
            return np.zeros_like(noise)
        # A short last stretch is merged with the one before.
        if marks[-1].updates - marks[-2].updates < self.stride // 2:
            del marks[-2]
        grams = [exp(state.faded - m.faded) * (m.triangle.T @ m.triangle) for m in marks]
        direction = np.append(-state.theta(), 1.0)
        scores = np.array([(b - a)[:-1] @ direction for a, b in pairwise(grams)])
        sizes = np.diff([m.updates for m in marks]) * np.exp([state.faded - m.faded for m in marks[1:]])
        effective = float(sizes.sum() ** 2 / np.sum(sizes**2))
        if effective < _MIN_STRETCHES:
            return np.zeros_like(noise)
        scores = scores - np.outer(sizes / sizes.sum(), scores.sum(axis=0))
        scatter = np.sum((scores @ P) ** 2, axis=0) * effective / (effective - 1.0)
        ratio = scatter / np.maximum(noise, 1e-300)
        drawn = shrink_to_mean(ratio, mean_ratio(ratio, effective - 1.0), effective - 1.0)
        return np.asarray(noise * np.maximum(drawn - 1.0, 0.0))

    def _misfit(self, gain: float, weights: Array) -> float:
        """Mean square of the residuals beyond the noise of the torques."""
        late = self._marks[len(self._marks) // 2 :]  # early innovations include the uncertainty of the parameters
        squares = sum((m.squares for m in late), self._squares.copy())
        count = sum(m.count for m in late) + self._count
        if not count:
            return 0.0
        mean_squares, noise = squares / count, np.zeros(self._equations)
        if gain and self._rough:
            noise = gain * (weights * np.exp(self._roughness / self._rough - _LOG_OF_ROUGHNESS)) ** 2
        return float(np.mean(np.maximum(mean_squares - noise, _MIN_MISFIT * noise)))

    # ---------------------------------------------------------------- saved states

    @property
    def state_rules(self) -> dict[str, ArrayRule]:
        """Allowed differences between a saved state and a new one; states of older versions lack these arrays."""
        marks = ArrayRule(rows=_MAX_STRETCHES + 1, fewest=1, optional=True)
        return {
            **dict.fromkeys(("heads", "triangles", "squares"), marks),
            "now": ArrayRule(optional=True),
            "roughness": ArrayRule(rows=max(len(self._joints), 1), optional=True),
            "torques": ArrayRule(rows=3, optional=True),
        }

    def state(self) -> dict[str, Array]:
        marks = self._marks
        size = marks[0].triangle.shape
        return {
            "heads": np.array([[m.updates, m.faded, m.count] for m in marks]),
            "triangles": np.array([m.triangle for m in marks]).reshape(-1, *size),
            "squares": np.array([m.squares for m in marks]),
            "now": np.concatenate([[self.stride, self._count, self._rough], self._squares]),
            "roughness": self._roughness.copy(),
            "torques": np.array(self._torques),
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        if not state:
            return
        rows = zip(state["heads"], state["triangles"], state["squares"], strict=True)
        self._marks = [_Mark(int(u), float(f), j.copy(), s.copy(), int(n)) for (u, f, n), j, s in rows]
        stride, count, rough, *squares = state["now"]
        roughness, torques = state["roughness"], state["torques"]
        is_valid = len(roughness) == len(self._joints) or not rough
        if torques.size:
            is_valid = is_valid and torques.ndim == 2 and torques.shape[1] == self._width
        if not (stride >= 1.0 and is_valid):
            raise EstimationError("the stretches in the state are invalid.")
        self.stride, self._count, self._rough = int(stride), int(count), int(rough)
        self._squares, self._roughness = np.array(squares), roughness.copy()
        self._torques = [x.copy() for x in torques]


def _every_second(marks: Sequence[_Mark], stride: int) -> list[_Mark]:
    """The first mark and those at multiples of `stride`; sums and counts of the others are added to the next one."""
    out, squares, count = [marks[0]], np.zeros_like(marks[0].squares), 0
    for m in marks[1:]:
        squares, count = squares + m.squares, count + m.count
        if m.updates % stride == 0:
            out.append(_Mark(m.updates, m.faded, m.triangle, squares, count))
            squares, count = np.zeros_like(squares), 0
    return out
