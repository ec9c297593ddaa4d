"""What a joint term is: friction, rotor inertia, springs and the like, as columns that are linear in parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar

Side = Literal["joint", "drive", "motor"]
SIDES: tuple[Side, ...] = ("joint", "drive", "motor")


@dataclass(frozen=True)
class Column:
    """One parameter of a term: its symbol, its unit on a revolute and on a prismatic coordinate, its bounds."""

    symbol: str
    unit: str
    linear_unit: str
    lower: float = -np.inf
    upper: float = np.inf


@dataclass(frozen=True, kw_only=True)
class Term(ABC):
    """A torque that one coordinate feels, linear in a few parameters, independent of the robot.

    The coordinate u is a joint's position (`on="joint"`), a drive's (`"drive"`: the output of a gear that may
    move several joints at once, u = A q) or a motor's (`"motor"`: u = F(A q), where the ratio may depend on
    posture). `where` restricts the term to some joints or motors by name.
    """

    kind: ClassVar[str]
    on: Side = "joint"
    where: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.on not in SIDES:
            raise SteelyardError(f"Term '{self.kind}' cannot act on '{self.on}'; choose one of {', '.join(SIDES)}.")
        if isinstance(self.where, str):
            object.__setattr__(self, "where", (self.where,))
        elif self.where is not None:
            object.__setattr__(self, "where", tuple(self.where))

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The term's parameters for one coordinate."""

    @abstractmethod
    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        """What each parameter asks of the coordinate at position u and velocity du, acceleration apart."""

    @property
    def inertial(self) -> bool:
        """Whether the (single) parameter is an inertia: torque ü, momentum u̇, energy ½u̇²."""
        return False

    def potential(self, u: Scalar) -> Sequence[Scalar] | None:
        """The energies whose slopes `force` returns, or None for a term that dissipates."""
        return None
