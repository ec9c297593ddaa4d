"""How recursive least squares forgets: not at all, evenly, only where it learns, or only when it is surprised."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Protocol

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.recursion._information import Information


class Forgetting(Protocol):
    """Settings are fields of a frozen dataclass; `absorb` takes in the rows in the buffer of `state`.

    With `solve` the estimate follows at once.
    """

    def absorb(self, state: Information, solve: bool) -> None: ...


@dataclass(frozen=True)
class Constant(Forgetting):
    """P⁻¹ ← λ P⁻¹ + AᵀA: a row that is n updates old counts λⁿ; a memory of 1/(1 − λ) updates.

    `factor` is λ. Where nothing excites the robot, P grows without bound ("wind-up") until it has lost everything; at
    1e200 forgetting pauses, so that at least the arithmetic survives.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def absorb(self, state: Information, solve: bool) -> None:
        state.absorb(1.0 if state.paused else sqrt(self.factor), solve)


@dataclass(frozen=True)
class Directional(Forgetting):
    """Forgets only in the directions that the new rows show: P⁻¹ ← P⁻¹ − (1 − λ) P⁻¹Aᵀ(A P⁻¹Aᵀ)⁻¹A P⁻¹ + AᵀA.

    After Cao & Schwartz 2000 ("A directional forgetting algorithm based on the decomposition of the information
    matrix", Automatica 36), for several rows at once. With U an orthonormal basis of RAᵀ the rows √(1 − λ)UᵀR are taken
    out of the triangle. What is not excited is neither learnt nor forgotten: P stays bounded. Rows shorter than
    `threshold` (in the units of the weighted rows) forget nothing: standing still is no reason to forget.
    """

    factor: float = 0.99
    threshold: float = 0.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        if not (isfinite(self.threshold) and self.threshold >= 0.0):
            raise EstimationError(f"threshold is {self.threshold}; it is a length, zero or more.")

    def absorb(self, state: Information, solve: bool) -> None:
        A = state.buffer[:, : state.count]
        A = A[np.einsum("ij,ij->i", A, A) > self.threshold**2]
        if len(A) and self.factor < 1.0:
            state.forget_along(A, self.factor)
        state.absorb(1.0, solve)


@dataclass(frozen=True)
class Variable(Forgetting):
    """Forgets as much as the new rows surprise: λ = 1 − eᵀ(1 + A P Aᵀ)⁻¹e / (memory·noise²), at least `smallest`.

    After Fortescue, Kershenbaum & Ydstie 1981 ("Implementation of self-tuning regulators with variable forgetting
    factors", Automatica 17): the information content stays that of `memory` rows whose noise has the standard deviation
    `noise` (in the units of the weighted rows). A robot that takes up a load is followed at once, one that goes on as
    before is not forgotten.
    """

    memory: float = 1000.0
    noise: float = 1.0
    smallest: float = 0.5

    def __post_init__(self) -> None:
        _check_factor(self.smallest)
        for name in ("memory", "noise"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise EstimationError(f"{name} is {getattr(self, name)}; it must be a positive number.")

    def absorb(self, state: Information, solve: bool) -> None:
        before = state.residual
        state.absorb(1.0, solve)
        after = state.residual
        # What the rows add to the sum of squares is just eᵀ(1 + A P Aᵀ)⁻¹e.
        surprise = (after - before) * (after + before)
        factor = max(1.0 - surprise / (self.memory * self.noise**2), self.smallest)
        if factor < 1.0:
            state.scale(sqrt(factor))


def make_forgetting(given: float | Forgetting) -> Forgetting:
    """What is `given`; a number is a constant factor."""
    return Constant(float(given)) if isinstance(given, int | float) else given


def _check_factor(factor: float) -> None:
    if not 0.0 < factor <= 1.0:
        raise EstimationError(
            f"The forgetting factor is {factor}; it lies above 0 and is at most 1 (1: nothing is forgotten; 0.999 "
            "remembers some 1000 updates)."
        )
