"""The joint terms that come with the package, one class each. To add one, write a class and list it in TERMS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.ground.scalars import Scalar, absolute, atan, cos, exp, maximum, minimum, sign, sin, tanh
from steelyard.parameters.term import Column, Term


@dataclass(frozen=True, kw_only=True)
class Rotor(Term):
    """Inertia of a rotor and its gear: Ia·ü. On joints and drives it is the reflected inertia, on motors its own."""

    kind: ClassVar[str] = "rotor"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Ia", "kg m²", "kg", lower=0.0),)

    @property
    def inertial(self) -> bool:
        return True

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (0.0,)


@dataclass(frozen=True, kw_only=True)
class Viscous(Term):
    """Friction proportional to velocity: Fv·u̇."""

    kind: ClassVar[str] = "viscous"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fv", "N m s/rad", "N s/m", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (du,)


@dataclass(frozen=True, kw_only=True)
class Coulomb(Term):
    """Dry friction: Fc·sign(u̇).

    `smooth` (rad/s or m/s) replaces the sign by tanh(u̇/smooth); `dead_band` sets it to zero where |u̇| is below.
    """

    kind: ClassVar[str] = "coulomb"
    smooth: float = 0.0
    dead_band: float = 0.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fc", "N m", "N", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (direction(du, self.smooth, self.dead_band),)


@dataclass(frozen=True, kw_only=True)
class AsymmetricCoulomb(Term):
    """Dry friction that differs between the directions: Fcp·[u̇ > 0] − Fcn·[u̇ < 0]."""

    kind: ClassVar[str] = "coulomb-asymmetric"
    smooth: float = 0.0
    dead_band: float = 0.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fcp", "N m", "N", lower=0.0), Column("Fcn", "N m", "N", lower=0.0))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        s = direction(du, self.smooth, self.dead_band)
        return (maximum(s, 0.0), minimum(s, 0.0))


@dataclass(frozen=True, kw_only=True)
class AsymmetricViscous(Term):
    """Viscous friction that differs between the directions: Fvp·max(u̇, 0) + Fvn·min(u̇, 0)."""

    kind: ClassVar[str] = "viscous-asymmetric"

    @property
    def columns(self) -> tuple[Column, ...]:
        unit, linear = "N m s/rad", "N s/m"
        return (Column("Fvp", unit, linear, lower=0.0), Column("Fvn", unit, linear, lower=0.0))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (maximum(du, 0.0), minimum(du, 0.0))


@dataclass(frozen=True, kw_only=True)
class StribeckAtan(Term):
    """Static friction as in Szabó & Szádeczky-Kardoss 2021, eq. 7 (corrected: the last term is τv·v).

    τ = τs·(2/π)atan(Kv·v) + τsc·(2/π)atan(δ·v) + τv·v with Kv ≫ δ (s/rad).
    """

    kind: ClassVar[str] = "stribeck-atan"
    Kv: float = 500.0
    delta: float = 5.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (
            Column("Fs", "N m", "N", lower=0.0),
            Column("Fsc", "N m", "N"),
            Column("Fsv", "N m s/rad", "N s/m", lower=0.0),
        )

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        k = 2.0 / np.pi
        return (k * atan(self.Kv * du), k * atan(self.delta * du), du)


@dataclass(frozen=True, kw_only=True)
class Stribeck(Term):
    """The part of dry friction that fades with speed: Fst·sign(u̇)·exp(−(|u̇|/speed)^power), power 1 or 2.

    Beside Coulomb and viscous terms it makes Tustin's curve, with break-away torque Fc + Fst at rest; `speed` (rad/s or
    m/s) is where it has fallen to a third. `smooth` rounds the sign off as in the Coulomb term.
    """

    kind: ClassVar[str] = "stribeck"
    speed: float = 0.1
    power: float = 1.0
    smooth: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.speed > 0.0 or self.power not in (1.0, 2.0):
            raise SteelyardError(
                f"The Stribeck term has a positive speed, not {self.speed:g}, and power 1 or 2, not {self.power:g}."
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fst", "N m", "N"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        ratio = absolute(du) * (1.0 / self.speed)
        fading = ratio if self.power == 1.0 else ratio * ratio
        return (direction(du, self.smooth) * exp(-1.0 * fading),)


@dataclass(frozen=True, kw_only=True)
class FrictionTable(Term):
    """Friction of any shape: values at `speeds` (rad/s or m/s, rising from 0) in both directions, lines in between.

    Beyond the last speed it stays constant. `smooth` rounds the jump at zero off as in the Coulomb term; `sides` "p" or
    "n" leaves one direction out.
    """

    kind: ClassVar[str] = "friction-table"
    speeds: tuple[float, ...] = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)
    smooth: float = 0.0
    sides: str = "pn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides not in ("pn", "p", "n"):
            raise SteelyardError(f"The sides of a friction table are 'pn', 'p' or 'n', not '{self.sides}'.")
        object.__setattr__(self, "speeds", tuple(float(v) for v in self.speeds))
        if len(self.speeds) < 2 or self.speeds[0] != 0.0 or any(np.diff(self.speeds) <= 0.0):
            raise SteelyardError(f"The speeds of a friction table rise from 0, but are {self.speeds}.")

    @property
    def columns(self) -> tuple[Column, ...]:
        count = len(self.speeds)
        return tuple(Column(f"F{side}{k}_", "N m", "N") for side in self.sides for k in range(count))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        jump = direction(du, self.smooth)
        ways = {"p": maximum(jump, 0.0), "n": minimum(jump, 0.0)}
        hats = [self._hat(k, absolute(du)) for k in range(len(self.speeds))]
        return [ways[side] * h for side in self.sides for h in hats]

    def _hat(self, k: int, v: Scalar) -> Scalar:
        """1 at speed k, falling in a line to 0 at its neighbours."""
        knots = self.speeds
        rise = 1.0 if k == 0 else (v - knots[k - 1]) * (1.0 / (knots[k] - knots[k - 1]))
        fall = 1.0 if k == len(knots) - 1 else (knots[k + 1] - v) * (1.0 / (knots[k + 1] - knots[k]))
        return maximum(minimum(minimum(rise, fall), 1.0), 0.0)


@dataclass(frozen=True, kw_only=True)
class Quadratic(Term):
    """Friction that grows with the square of velocity: F2·sign(u̇)·u̇² (Pedrocchi et al. 2013, eq. 2)."""

    kind: ClassVar[str] = "quadratic"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("F2", "N m s²/rad²", "N s²/m²"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (absolute(du) * du,)


@dataclass(frozen=True, kw_only=True)
class Offset(Term):
    """A constant torque: bias of the sensor, of the current, or of friction between the directions."""

    kind: ClassVar[str] = "offset"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("F0", "N m", "N"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (1.0,)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (u,)


@dataclass(frozen=True, kw_only=True)
class Spring(Term):
    """A linear spring: k·(u − rest)."""

    kind: ClassVar[str] = "spring"
    rest: float = 0.0

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("k", "N m/rad", "N/m", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (u - self.rest,)

    def potential(self, u: Scalar) -> Sequence[Scalar]:
        return (0.5 * (u - self.rest) * (u - self.rest),)


@dataclass(frozen=True, kw_only=True)
class Counterbalance(Term):
    """A balancer (mass, or spring over a crank) of any phase: Bs·sin(u) + Bc·cos(u)."""

    kind: ClassVar[str] = "counterbalance"

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

    kind: ClassVar[str] = "custom"
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


def direction(du: Scalar, smooth: float = 0.0, dead_band: float = 0.0) -> Scalar:
    """The sign of a velocity, smoothed or cut out around zero on request."""
    if smooth > 0.0:
        return tanh(du * (1.0 / smooth))
    if dead_band > 0.0:
        return sign(du) * sign(maximum(absolute(du) - dead_band, 0.0))
    return sign(du)


TERMS: dict[str, type[Term]] = {
    cls.kind: cls
    for cls in (
        Rotor,
        Viscous,
        Coulomb,
        AsymmetricCoulomb,
        AsymmetricViscous,
        StribeckAtan,
        Stribeck,
        FrictionTable,
        Quadratic,
        Offset,
        Spring,
        Counterbalance,
    )
}


def make_term(kind: str, **options: Any) -> Term:
    """A term by its name; options are the fields of its class."""
    if kind not in TERMS:
        raise UnknownNameError("term", kind, TERMS)
    known = {f.name for f in fields(TERMS[kind])}
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of term '{kind}'", option, sorted(known))
    return TERMS[kind](**options)
