"""Joint terms other than friction: rotors, offsets, springs, ripple and balancers, and custom terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, cos, sin
from steelyard.parameters.term import TERMS, Column, JointExcitation, SimpleTerm, Term

# Highest order of ripple candidates: twice the six slots of small motors, three times the four legs of a torque sensor.
_HIGHEST_ORDER = 12


@TERMS.register("rotor")
@dataclass(frozen=True, kw_only=True)
class Rotor(Term):
    """Inertia of a rotor and its gear: Ia·ü; on joints and drives the reflected one, on motors the one at the shaft."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Ia", "kg m²", "kg", lower=0.0),)

    @property
    def inertial(self) -> bool:
        return True

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (0.0,)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(armature=values[0])


@TERMS.register("offset")
@dataclass(frozen=True, kw_only=True)
class Offset(Term):
    """A constant torque F0: bias of the sensor, of the current, or of friction between the directions."""

    exact: ClassVar[bool] = True
    bias: ClassVar[bool] = True

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("F0", "N m", "N"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (1.0,)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (u,)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(offset=values[0])


@TERMS.register("spring")
@dataclass(frozen=True, kw_only=True)
class Spring(Term):
    """A linear spring: k·(u − rest)."""

    of_position: ClassVar[bool] = True
    rest: float = 0.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("k", "N m/rad", "N/m", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (u - self.rest,)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (0.5 * (u - self.rest) * (u - self.rest),)

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        return [cls()] if excitation.repeats else []

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(stiffness=values[0], rest=self.rest)


@TERMS.register("ripple")
@dataclass(frozen=True, kw_only=True)
class Ripple(Term):
    """A torque that is periodic in the position: Rs·sin(order·u) + Rc·cos(order·u), `order` times per turn.

    It describes cogging, eccentric gears, or a torque sensor that deforms as it turns. On a prismatic joint the order
    is 2π times the number of periods per metre.
    """

    of_position: ClassVar[bool] = True
    order: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.order < 1e5:
            raise SteelyardError(f"The order of a ripple is {self.order:g}; give the periods per turn, e.g. 4.")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Rs", "N m", "N"), Column("Rc", "N m", "N"))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (sin(self.order * u), cos(self.order * u))

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (-cos(self.order * u) * (1.0 / self.order), sin(self.order * u) * (1.0 / self.order))

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        if excitation.kind != "revolute" or not excitation.repeats:
            return []
        # The log must contain a whole period, or the ripple resembles a slope. At the joint's usual speed its frequency
        # must be below the cut-off, or it shows only at very low speeds.
        highest = min(_HIGHEST_ORDER, 2.0 * np.pi * excitation.cutoff_hz / max(excitation.top_speed, 1e-9))
        return [cls(order=float(k)) for k in range(1, int(highest) + 1) if k * excitation.travel >= 2.0 * np.pi]


@TERMS.register("counterbalance")
@dataclass(frozen=True, kw_only=True)
class Counterbalance(Term):
    """A balancer (mass, or spring over a crank) of any phase: Bs·sin(u) + Bc·cos(u)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Bs", "N m", "N"), Column("Bc", "N m", "N"))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (sin(u), cos(u))

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (-cos(u), sin(u))


@dataclass(frozen=True, kw_only=True)
class Custom(Term):
    """A custom term: `torque(u, du)` returns one value per column, using `steelyard.ground.scalars` or NumPy.

    >>> from steelyard.parameters import Column, Custom
    >>> f3 = Column("F3", "N m s³/rad³", "N s³/m³")
    >>> cubic = Custom(name="cubic", parameters=(f3,), torque=lambda u, du: (du**3,))
    """

    name: str = "custom"
    parameters: tuple[Column, ...] = ()
    torque: Callable[[Scalar, Scalar], Sequence[Scalar]] | None = None
    energy: Callable[[Scalar], Sequence[Scalar]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.parameters or self.torque is None:
            raise SteelyardError("A custom term needs `parameters` (at least one Column) and `torque`.")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.parameters

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        assert self.torque is not None
        values = tuple(self.torque(u, du))
        if len(values) != len(self.parameters):
            raise SteelyardError(
                f"Custom term '{self.name}' returned {len(values)} values for {len(self.parameters)} parameters."
            )
        return values

    def potential(self, u: Scalar) -> Sequence[Scalar] | None:
        return None if self.energy is None else self.energy(u)
