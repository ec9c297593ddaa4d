"""Logs of one model, some dozens at a time, as stacked arrays: a thousand small matrices take as long as their
arithmetic does, not as long as a thousand calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.linear.widening import log_bias
from steelyard.fleet.mapped import LogFactors
from steelyard.ground.arrays import Array

# Logs of a stack: seven joints and seventy parameters are 20 MB.
_MOST = 32


@dataclass(frozen=True, eq=False)
class LogStack:
    """What some logs leave, over the base parameters of their model; all arrays begin with `(logs, equations)`.

    Attributes:
        logs: these, all usable.
        grams: [A y]ᵀ[A y].
        meats: the covariance of the score.
        squares: of the scores' scatter from stretch to stretch, by column.
        rows: how many there are.
        stretches: into which the scores are cut.
        residual_std: of each log's own fit.
    """

    logs: tuple[LogFactors, ...]
    grams: Array
    meats: Array
    squares: Array
    rows: Array
    stretches: Array
    residual_std: Array

    @classmethod
    def of(cls, logs: Sequence[LogFactors], columns: Sequence[int]) -> LogStack:
        """Of `logs` whose equations have the same columns, over `columns` of the parameter vector."""
        first, p = logs[0], len(columns)
        shape = len(logs), len(first.equations)
        grams, meats, squares = np.zeros((*shape, p + 1, p + 1)), np.zeros((*shape, p, p)), np.zeros((*shape, p))
        for e, equation in enumerate(first.equations):
            own, where = equation.among(columns)
            triangles = np.array([log.factor.triangles[e] for log in logs if log.factor is not None])
            triangles = triangles[:, :, [*own, triangles.shape[2] - 1]]
            places = np.array([*where, p])
            grams[:, e, places[:, None], places] = np.swapaxes(triangles, 1, 2) @ triangles
            meat = np.array([log.meat[e] for log in logs])
            inner = np.array(where, dtype=np.intp)
            meats[:, e, inner[:, None], inner] = meat if len(own) == meat.shape[1] else meat[:, own][:, :, own]
            squares[:, e, inner] = [np.sum(log.scores[e][:, own] ** 2, axis=0) for log in logs]
        numbers = (np.array([getattr(log, name) for log in logs]) for name in ("rows", "stretches", "residual_std"))
        return cls(tuple(logs), grams, meats, squares, *numbers)

    @cached_property
    def _sizes(self) -> tuple[Array, Array]:
        """Squares of the columns and the noise that they feel, `(logs, equations, columns)`."""
        p = self.meats.shape[-1]
        own, noise = (np.diagonal(x, axis1=-2, axis2=-1)[..., :p] for x in (self.grams, self.meats))
        return own, noise

    @cached_property
    def weights(self) -> Array:
        """w² of every equation: one over the variance of its noise, as its columns feel it."""
        own, noise = self._sizes
        known = (own > 0.0) & (noise > 0.0)
        ratio = np.where(known, noise / np.where(known, own, 1.0), 0.0).sum(axis=-1)
        return np.where(ratio > 0.0, known.sum(axis=-1) / np.where(ratio > 0.0, ratio, 1.0), 0.0)

    @cached_property
    def weighted(self) -> Array:
        """The weighted sum of `grams` over the equations of each log."""
        count, equations, p, _ = self.grams.shape
        return (self.weights[:, None, :] @ self.grams.reshape(count, equations, -1)).reshape(count, p, p)

    @cached_property
    def ratios(self) -> Array:
        """How much more the scores of each equation scatter than the spectrum of its residuals says, by the mean of
        logarithms; 0: not known."""
        noise = self._sizes[1]
        told = (noise > 0.0) & (self.squares > 0.0)
        values = np.log(np.where(told, self.squares, 1.0) / np.where(told, noise, 1.0))
        degrees = self.stretches - 1.0
        bias = {n: log_bias(n) for n in np.unique(degrees[degrees > 0.0]).tolist()}
        of = np.vectorize(lambda n: bias.get(n, 0.0), otypes=[float])(degrees)
        mean = values.sum(axis=-1) / np.maximum(told.sum(axis=-1), 1)
        known = (degrees > 0.0) & np.any(noise > 0.0, axis=-1)
        return np.where(known, np.where(told.any(axis=-1), np.exp(mean) * of, 1.0), 0.0)

    @cached_property
    def redness(self) -> tuple[Array, Array]:
        """How much more of the noise each column feels than of white noise of the same size, as a logarithm; and where
        that is known. Both `(logs, equations, columns)`."""
        own, noise = self._sizes
        white = own * (self.residual_std**2)[..., None]
        known = (white > 0.0) & (noise > 0.0)
        red = np.log(np.where(known, noise, 1.0) / np.where(known, white, 1.0))
        return red, known.astype(float)


def stacked(logs: Sequence[LogFactors], columns: Sequence[int]) -> Iterator[LogStack]:
    """All `logs`, which must be usable, in their order, over `columns` of the parameter vector."""
    start = 0
    for k in range(1, len(logs) + 1):
        if k == len(logs) or k - start == _MOST or not _alike(logs[k], logs[start]):
            yield LogStack.of(logs[start:k], columns)
            start = k


def _alike(one: LogFactors, other: LogFactors) -> bool:
    """Whether they have the same columns."""
    pairs = zip(one.equations, other.equations, strict=True)
    return all(a is b or np.array_equal(a.columns, b.columns) for a, b in pairs)
