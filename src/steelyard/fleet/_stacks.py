"""Stacked arrays of a few dozen logs, so that many small matrices need few NumPy calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.estimation.linear.widening import mean_ratio
from steelyard.fleet.log_factors import LogFactors
from steelyard.ground.arrays import Array

# Largest number of logs in a stack; with seven joints and seventy parameters they take 20 MB.
_MAX_LOGS = 32


@dataclass(frozen=True, eq=False)
class LogStack:
    """Factors of several logs over the base parameters of their type; all arrays start with (logs, equations).

    Attributes:
        logs: The logs, all usable.
        grams: [A y]ᵀ[A y].
        meats: Covariance of the score.
        squares: Scatter of the scores from stretch to stretch, by column.
        rows: Number of rows.
        stretches: Number of stretches of the scores.
        residual_std: Residual standard deviation of each log's own fit.
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
        """Stack `logs` whose equations have the same columns, over `columns` of the parameter vector."""
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
        """Squares of the columns, and the noise of their scores; shape (logs, equations, columns)."""
        p = self.meats.shape[-1]
        own, noise = (np.diagonal(x, axis1=-2, axis2=-1)[..., :p] for x in (self.grams, self.meats))
        return own, noise

    @cached_property
    def weights(self) -> Array:
        """w² of every equation: the inverse variance of its noise, averaged over its columns."""
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
        """Geometric mean of the scores' scatter over the one that the residual spectrum predicts; 0 if unknown."""
        noise = self._sizes[1]
        ratios = np.divide(self.squares, noise, out=np.zeros_like(noise), where=noise > 0.0)
        known = (self.stretches > 1.0) & np.any(noise > 0.0, axis=-1)
        return np.where(known, mean_ratio(ratios, np.maximum(self.stretches - 1.0, 1.0)), 0.0)

    @cached_property
    def colour(self) -> tuple[Array, Array]:
        """Log ratio of the noise of each column's score to that of white noise, and where it is known.

        Both have the shape (logs, equations, columns).
        """
        own, noise = self._sizes
        white = own * (self.residual_std**2)[..., None]
        known = (white > 0.0) & (noise > 0.0)
        red = np.log(np.where(known, noise, 1.0) / np.where(known, white, 1.0))
        return red, known.astype(float)


def stack_logs(logs: Sequence[LogFactors], columns: Sequence[int]) -> Iterator[LogStack]:
    """Stack usable `logs` in their order, over `columns` of the parameter vector."""
    start = 0
    for k in range(1, len(logs) + 1):
        if k == len(logs) or k - start == _MAX_LOGS or not _same_columns(logs[k], logs[start]):
            yield LogStack.of(logs[start:k], columns)
            start = k


def _same_columns(one: LogFactors, other: LogFactors) -> bool:
    pairs = zip(one.equations, other.equations, strict=True)
    return all(a is b or np.array_equal(a.columns, b.columns) for a, b in pairs)
