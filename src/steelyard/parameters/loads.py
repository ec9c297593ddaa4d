"""Joint terms that are no friction: rotors, offsets, springs and balancers, and terms of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, cos, sin
from steelyard.parameters.term import TERMS, Column, Simple, Term


@TERMS.register("rotor")
@dataclass(frozen=True, kw_only=True)
class Rotor(Term):
    """Inertia of a rotor and its gear: Ia·ü; on joints and drives the reflected one, on motors its own."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Ia", "kg m²", "kg", lower=0.0),)

    @property
    def inertial(self) -> bool:
        return True

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (0.0,)

    def simple(self, values: Sequence[float]) -> Simple:
        return Simple(armature=values[0])


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


@TERMS.register("spring")
@dataclass(frozen=True, kw_only=True)
class Spring(Term):
    """A linear spring: k·(u − rest)."""

    rest: float = 0.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("k", "N m/rad", "N/m", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (u - self.rest,)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (0.5 * (u - self.rest) * (u - self.rest),)

    def simple(self, values: Sequence[float]) -> Simple:
        return Simple(stiffness=values[0], rest=self.rest)


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
    """A term of your own: `torque(u, du)` gives one value per column, written with `steelyard.ground.scalars` or NumPy.

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
