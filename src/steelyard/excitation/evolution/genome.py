"""`Genome`: how genes from 0 to 1 become motions, and `Strategy`: how one generation leads to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.sampled import Sampled
from steelyard.excitation.settle import settle
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array

# q, q̇, q̈, each (samples, joints)
Signals = tuple[Array, Array, Array]


class Genome(Protocol):
    """Motions told apart by `size` genes from 0 to 1. A `population` is `(individuals, genes)`, `genes` those of one;
    motions are sampled at `rate` Hz; `trajectory` is one of them."""

    @property
    def size(self) -> int: ...

    @property
    def label(self) -> str:
        """What the genes are, in words; a checkpoint is resumed only by the same."""
        ...

    def signals(self, population: Array, rate: float) -> list[Signals | None]:
        """Every individual's motion, sampled; None where it breaks what the genome itself must keep to."""
        ...

    def trajectory(self, genes: Array) -> Trajectory:
        """The motion of one individual that had signals."""
        ...

    def calmer(self, genes: Array) -> Array | None:
        """A slightly calmer individual, for what breaks a limit between samples; None where there is none."""
        ...

    def constraints(self, trajectory: Trajectory) -> Sequence[Constraint]:
        """What a motion must keep to, as bounds that hold at every instant."""
        ...


class Strategy(Protocol):
    """Asked for a population `(individuals, genes)`, then told its `values`: smaller is better, infinite rejected."""

    def ask(self) -> Array: ...

    def tell(self, values: Array) -> None: ...


class Optimiser(Protocol):
    """Settings of a strategy; frozen, so that a run can be repeated."""

    @property
    def generations(self) -> int: ...

    def start(self, genes: int, seed: int) -> Strategy:
        """A fresh strategy for so many `genes`; the same `seed` and values told lead to the same populations."""
        ...


# One coefficient alone may take a joint this many times as far as its limits; what is too much is drawn back.
_REACH = 1.5


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Motions of the families of `centre`, a calm motion that keeps to all `needs`.

    Joint limits are kept by drawing each joint back; what breaks another constraint on its grid is rejected. A
    `population` is `(individuals, genes)`, `genes` those of one; motions are sampled at `rate` Hz; `trajectory` is one
    of them.
    """

    centre: Trajectory
    needs: tuple[Constraint, ...]

    @property
    def size(self) -> int:
        return self.centre.size

    @property
    def label(self) -> str:
        return f"coefficients of {[f.settings() for f in self.centre.families]}, {[c.name for c in self.needs]}"

    @cached_property
    def _limits(self) -> JointLimits:
        return next(c for c in self.needs if isinstance(c, JointLimits))

    @cached_property
    def _span(self) -> Array:
        """How far each coefficient alone can be taken before its joint meets a limit, times some."""
        calm = self.centre.coefficients
        out = np.zeros(self.size)
        for k in range(self.size):
            far = calm.copy()
            far[k] += 1e3
            out[k] = _REACH * abs(self._limits.draw_back(far, calm)[k] - calm[k])
        return out

    def coefficients(self, genes: Array) -> Array:
        calm = self.centre.coefficients
        return self._limits.draw_back(calm + self._span * (2.0 * genes - 1.0), calm)

    def signals(self, population: Array, rate: float) -> list[Signals | None]:
        sampled = Sampled(self.centre.families, self.centre.times(rate))
        others = [c for c in self.needs if not isinstance(c, JointLimits) and c.smooth]
        out: list[Signals | None] = []
        for genes in population:
            x = self.coefficients(genes)
            kept = all(float(c.evaluate(x)[0].max(initial=-1.0)) <= 0.0 for c in others)
            q, dq, ddq = sampled.signals(x) if kept else (None, None, None)
            out.append(None if q is None or dq is None or ddq is None else (q, dq, ddq))
        return out

    def trajectory(self, genes: Array) -> Trajectory:
        """Settled: what exceeds a limit between the samples is drawn back."""
        wanted = self.centre.with_coefficients(self.coefficients(genes))
        return settle(wanted, self.centre, self.needs)

    def calmer(self, genes: Array) -> Array | None:
        return None  # settled already

    def constraints(self, trajectory: Trajectory) -> Sequence[Constraint]:
        return self.needs
