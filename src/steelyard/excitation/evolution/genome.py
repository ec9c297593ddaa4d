"""`Genome`: how genes from 0 to 1 become motions, and `Strategy`: how one generation leads to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steelyard.excitation.constraints import Constraint
from steelyard.excitation.trajectories import Trajectory
from steelyard.robot.spatial import Array

# q, q̇, q̈, each (samples, joints)
Signals = tuple[Array, Array, Array]


class Genome(Protocol):
    """Motions told apart by `size` genes from 0 to 1."""

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
    """Asked for a population `(individuals, genes)`, then told its values: smaller is better, infinite is rejected."""

    def ask(self) -> Array: ...

    def tell(self, values: Array) -> None: ...


class Optimiser(Protocol):
    """Settings of a strategy; frozen, so that a run can be repeated."""

    @property
    def generations(self) -> int: ...

    def start(self, genes: int, seed: int) -> Strategy:
        """A fresh strategy; the same seed and the same values told lead to the same populations."""
        ...
