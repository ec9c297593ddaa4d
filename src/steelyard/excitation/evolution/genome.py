"""`Genome`: motions from genes between 0 and 1, and `Strategy`: the next generation from the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from steelyard.excitation.constraints import Constraint, JointLimits
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.settle import settle
from steelyard.excitation.trajectories import Trajectory
from steelyard.ground.arrays import Array

# q, q̇, q̈, each of shape (samples, joints)
Signals = tuple[Array, Array, Array]


class Genome(Protocol):
    """A set of motions with `size` genes from 0 to 1. Populations have shape (individuals, genes)."""

    @property
    def size(self) -> int: ...

    @property
    def label(self) -> str:
        """Description of the genes; only the same label resumes a checkpoint."""
        ...

    def signals(self, population: Array, rate: float) -> list[Signals | None]:
        """Return every individual's sampled motion; None if it breaks a limit of the genome itself.

        Args:
            population: Genes, shape (individuals, genes).
            rate: Sampling rate [Hz].
        """
        ...

    def trajectory(self, genes: Array) -> Trajectory:
        """Return the motion of one individual, with these `genes`, that had signals."""
        ...

    def calmer(self, genes: Array) -> Array | None:
        """Return slightly calmer `genes`, for a violation between samples, or None."""
        ...

    def constraints(self, trajectory: Trajectory) -> Sequence[Constraint]:
        """Return the genome's own constraints of a `trajectory`, with bounds that hold at every instant."""
        ...


class Strategy(Protocol):
    """One run of an optimiser."""

    def ask(self) -> Array:
        """Return the next population, shape (individuals, genes)."""
        ...

    def tell(self, values: Array) -> None:
        """Set the population's `values`: smaller is better, infinite for rejected individuals."""
        ...


class Optimiser(Protocol):
    """Settings of a strategy; frozen, so that a run can be repeated."""

    @property
    def generations(self) -> int: ...

    def start(self, genes: int, seed: int) -> Strategy:
        """Return a new strategy; the same seed and values give the same populations.

        Args:
            genes: Number of genes.
            seed: Seed of the search.
        """
        ...


# One coefficient alone may take a joint this many times as far as its limits; excess is drawn back.
_REACH = 1.5


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Motions of the families of `centre`, a calm motion that keeps all `needs`.

    Each joint is drawn back within its joint limits; individuals that break another constraint on its grid are
    rejected.

    Args:
        centre: The calm motion.
        needs: Constraints.
        population, rate, genes, trajectory: Arguments of the methods, as in `Genome`.
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
        """Distance over which each coefficient alone can move before its joint meets a limit, times `_REACH`."""
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
        sampled = SampledMotions(self.centre.families, self.centre.times(rate))
        others = [c for c in self.needs if not isinstance(c, JointLimits) and c.smooth]
        out: list[Signals | None] = []
        for genes in population:
            x = self.coefficients(genes)
            feasible = all(float(c.evaluate(x)[0].max(initial=-1.0)) <= 0.0 for c in others)
            q, dq, ddq = sampled.signals(x) if feasible else (None, None, None)
            out.append(None if q is None or dq is None or ddq is None else (q, dq, ddq))
        return out

    def trajectory(self, genes: Array) -> Trajectory:
        """Return the settled motion: violations between the samples are drawn back."""
        return settle(self.centre.with_coefficients(self.coefficients(genes)), self.centre, self.needs)

    def calmer(self, genes: Array) -> Array | None:
        return None  # `trajectory` settles

    def constraints(self, trajectory: Trajectory) -> Sequence[Constraint]:
        return self.needs
