"""Forgetting in recursive least squares: none, uniform, directional, or adaptive."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Protocol

import numpy as np

from steelyard.estimation.estimate import EstimationError
from steelyard.estimation.recursion._information import Information


class Forgetting(Protocol):
    """A way of forgetting: a frozen dataclass with settings."""

    def absorb(self, state: Information, solve: bool) -> None:
        """Add the rows in the buffer of the state.

        Args:
            state: Triangle with the rows.
            solve: Also compute the estimate.
        """


@dataclass(frozen=True)
class Constant(Forgetting):
    """P⁻¹ ← λ P⁻¹ + AᵀA: a row that is n updates old has the weight λⁿ; the memory is 1/(1 − λ) updates.

    Without excitation P grows without bound ("wind-up") and all information is lost; at 1e200 forgetting pauses to
    avoid overflow.

    Attributes:
        factor: λ.
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)

    def absorb(self, state: Information, solve: bool) -> None:
        state.absorb(1.0 if state.paused else sqrt(self.factor), solve)


@dataclass(frozen=True)
class Directional(Forgetting):
    """Forgets only in the directions of new rows: P⁻¹ ← P⁻¹ − (1 − λ) P⁻¹Aᵀ(A P⁻¹Aᵀ)⁻¹A P⁻¹ + AᵀA.

    After Cao & Schwartz 2000 ("A directional forgetting algorithm based on the decomposition of the information
    matrix", Automatica 36), for several rows at once. With U an orthonormal basis of RAᵀ the rows √(1 − λ)UᵀR are
    removed from the triangle. Directions without excitation are neither updated nor forgotten, so P stays bounded.

    Attributes:
        factor: λ.
        threshold: Shorter rows (in the units of the weighted rows) cause no forgetting, so that nothing is forgotten
            while the robot stands still.
    """

    factor: float = 0.99
    threshold: float = 0.0

    def __post_init__(self) -> None:
        _check_factor(self.factor)
        if not (isfinite(self.threshold) and self.threshold >= 0.0):
            raise EstimationError(f"threshold is {self.threshold}; it must be zero or positive.")

    def absorb(self, state: Information, solve: bool) -> None:
        A = state.buffer[:, : state.count]
        A = A[np.einsum("ij,ij->i", A, A) > self.threshold**2]
        if len(A) and self.factor < 1.0:
            state.forget_along(A, self.factor)
        state.absorb(1.0, solve)


@dataclass(frozen=True)
class Variable(Forgetting):
    """Forgets according to the innovations: λ = 1 − eᵀ(1 + A P Aᵀ)⁻¹e / (memory·noise²), at least `smallest`.

    After Fortescue, Kershenbaum & Ydstie 1981 ("Implementation of self-tuning regulators with variable forgetting
    factors", Automatica 17): the information stays that of `memory` rows. The estimate follows a new payload at once,
    and nothing is forgotten without a change.

    Attributes:
        memory: Number of rows.
        noise: Standard deviation of their noise (in the units of the weighted rows).
        smallest: Lower limit of λ.
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
        # The rows increase the sum of squares by eᵀ(1 + A P Aᵀ)⁻¹e.
        surprise = (after - before) * (after + before)
        factor = max(1.0 - surprise / (self.memory * self.noise**2), self.smallest)
        if factor < 1.0:
            state.scale(sqrt(factor))


def make_forgetting(forgetting: float | Forgetting) -> Forgetting:
    """Return a `forgetting`; a number is a constant factor."""
    return Constant(float(forgetting)) if isinstance(forgetting, int | float) else forgetting


def _check_factor(factor: float) -> None:
    if not 0.0 < factor <= 1.0:
        raise EstimationError(
            f"The forgetting factor is {factor}; it must be above 0 and at most 1 (1: no forgetting; 0.999: a memory "
            "of about 1000 updates)."
        )
