"""Joint terms of another package, each as one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.ground.scalars import Scalar, cos, sin, tanh
from steelyard.parameters import Column, DryTerm, Term


@dataclass(frozen=True, kw_only=True)
class Cogging(Term):
    """Torque of a motor's magnets over its poles: Cg·sin(poles·u)."""

    poles: float = 4.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Cg", "N m", "N"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (sin(self.poles * u),)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (-1.0 / self.poles * cos(self.poles * u),)


@dataclass(frozen=True, kw_only=True)
class Saturating(DryTerm):
    """Dry friction that grows with speed up to twice its level: Fd·sign(u̇)·(1 + tanh(abs(u̇)))."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fd", "N m", "N", lower=0.0),)

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        return (direction * (1.0 + tanh(speed)),)
