"""Joint terms of friction.

Dry friction is a `DryTerm`: it computes friction for a direction of motion. Its caller defines the direction near rest:
a sign, a smoothed sign, or, in a simulation with true stiction, the value that holds the joint.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.ground.scalars import Scalar, absolute, atan, exp, maximum, minimum, sign, tanh
from steelyard.parameters.term import TERMS, Column, JointExcitation, ShapeParameter, SimpleTerm, Term

# Below these speeds [rad/s, m/s] the sign of a filtered velocity is that of noise. Dry friction requested by name is
# therefore smoothed there (0.01 rad/s is 0.6°/s).
SMOOTHING_SPEED = {"revolute": 0.01, "prismatic": 0.001}
# Candidates for the speed at which friction bends, relative to the top speed of the joint.
BENDS = (0.03, 0.1, 0.3, 1.0)
_BOTH_WAYS = "differs between the directions; the mean is written"


@TERMS.register("viscous")
@dataclass(frozen=True, kw_only=True)
class Viscous(Term):
    """Friction proportional to velocity: Fv·u̇."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fv", "N m s/rad", "N s/m", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (du,)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(damping=values[0])


@TERMS.register("viscous-asymmetric")
@dataclass(frozen=True, kw_only=True)
class AsymmetricViscous(Term):
    """Viscous friction that differs between the directions: Fvp·max(u̇, 0) + Fvn·min(u̇, 0)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        unit, linear = "N m s/rad", "N s/m"
        return (Column("Fvp", unit, linear, lower=0.0), Column("Fvn", unit, linear, lower=0.0))

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (maximum(du, 0.0), minimum(du, 0.0))

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(damping=0.5 * (values[0] + values[1]), omission=_BOTH_WAYS)


@TERMS.register("viscous-saturating")
@dataclass(frozen=True, kw_only=True)
class SaturatingViscous(Term):
    """Friction that grows with velocity up to a level: Fvs·sign(u̇)·(1 − exp(−abs(u̇)/speed)); `speed` in rad/s or m/s.

    Lubricants thin with shear and heat. Unlike a polynomial, this term is bounded beyond the identified speeds.
    """

    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = (ShapeParameter("speed"),)
    speed: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.speed > 0.0:
            raise SteelyardError(f"The speed of saturating friction must be positive, not {self.speed:g}.")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fvs", "N m", "N", lower=0.0),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (sign(du) * (1.0 - exp(absolute(du) * (-1.0 / self.speed))),)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(damping=values[0] / self.speed, omission="saturates; its slope at rest is written")

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        return [cls(speed=part * excitation.top_speed) for part in BENDS]


@TERMS.register("quadratic")
@dataclass(frozen=True, kw_only=True)
class Quadratic(Term):
    """Friction that grows with the square of velocity: F2·sign(u̇)·u̇² (Pedrocchi et al. 2013, eq. 2)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("F2", "N m s²/rad²", "N s²/m²"),)

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return (absolute(du) * du,)


@dataclass(frozen=True, kw_only=True)
class DryTerm(Term):
    """Friction that jumps with the direction of motion.

    `smooth` (rad/s or m/s) replaces the sign of the velocity by tanh(u̇/smooth); 0 keeps the sign.
    """

    dry: ClassVar[bool] = True
    rounds: ClassVar[str] = "smooth"
    smooth: float = 0.0

    @abstractmethod
    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        """Compute the torque per unit of each parameter.

        Args:
            direction: Direction of motion: 1, −1, or a number between them near rest.
            speed: Absolute velocity [rad/s, m/s].
        """

    def force(self, u: Scalar, du: Scalar) -> Sequence[Scalar]:
        return self.along(self.direction(du), absolute(du))

    def direction(self, du: Scalar) -> Scalar:
        """Compute the sign of the velocity `du` [rad/s, m/s], smoothed on request."""
        return tanh(du * (1.0 / self.smooth)) if self.smooth > 0.0 else sign(du)

    def with_rounding(self, joint_kind: str, times: float = 1.0) -> DryTerm:
        """Return the term with the default smoothing of identification.

        Args:
            joint_kind: "revolute" or "prismatic".
            times: Factor on `SMOOTHING_SPEED`.
        """
        return replace(self, smooth=times * SMOOTHING_SPEED[joint_kind])


@dataclass(frozen=True, kw_only=True)
class _Coulomb(DryTerm):
    """Constant friction, with an optional dead band; its columns are exact except at reversals."""

    exact: ClassVar[bool] = True
    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = (
        ShapeParameter("smooth"),
        ShapeParameter("dead_band"),
    )
    dead_band: float = 0.0

    def direction(self, du: Scalar) -> Scalar:
        if self.dead_band > 0.0 and not self.smooth > 0.0:
            return sign(du) * sign(maximum(absolute(du) - self.dead_band, 0.0))
        return super().direction(du)


@TERMS.register("coulomb")
@dataclass(frozen=True, kw_only=True)
class Coulomb(_Coulomb):
    """Dry friction: Fc·sign(u̇); `smooth=v` uses tanh(u̇/v) as the sign, `dead_band=v` zero below v.

    Both speeds are in rad/s or m/s.
    """

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fc", "N m", "N", lower=0.0),)

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        return (direction,)

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        sharp = not (self.smooth or self.dead_band)
        omission = "" if sharp else "is smoothed; plain dry friction is written"
        return SimpleTerm(friction=values[0], smooth=self.smooth, omission=omission)


@TERMS.register("coulomb-asymmetric")
@dataclass(frozen=True, kw_only=True)
class AsymmetricCoulomb(_Coulomb):
    """Dry friction that differs between the directions: Fcp if u̇ > 0, −Fcn if u̇ < 0."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fcp", "N m", "N", lower=0.0), Column("Fcn", "N m", "N", lower=0.0))

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        return (maximum(direction, 0.0), minimum(direction, 0.0))

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        return SimpleTerm(friction=0.5 * (values[0] + values[1]), omission=_BOTH_WAYS)


@TERMS.register("stribeck")
@dataclass(frozen=True, kw_only=True)
class Stribeck(DryTerm):
    """The part of dry friction that fades with speed: Fst·sign(u̇)·exp(−(abs(u̇)/speed)^power), power 1 or 2.

    With Coulomb and viscous terms it forms Tustin's curve, with break-away torque Fc + Fst at rest. At `speed` (rad/s
    or m/s) it has fallen to a third. `smooth` smooths the sign as in the Coulomb term.
    """

    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = (
        ShapeParameter("speed"),
        ShapeParameter("smooth"),
    )
    speed: float = 0.1
    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.speed > 0.0 or self.power not in (1.0, 2.0):
            raise SteelyardError(
                f"The Stribeck term needs a positive speed, not {self.speed:g}, and power 1 or 2, not {self.power:g}."
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        return (Column("Fst", "N m", "N"),)

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        ratio = speed * (1.0 / self.speed)
        fading = ratio if self.power == 1.0 else ratio * ratio
        return (direction * exp(-1.0 * fading),)

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        """Offer friction that falls with speed, smoothed as usual near rest."""
        usual = SMOOTHING_SPEED[excitation.kind]
        return [cls(speed=part * excitation.top_speed, smooth=usual) for part in BENDS]


@TERMS.register("stribeck-atan")
@dataclass(frozen=True, kw_only=True)
class StribeckAtan(Term):
    """Static friction Fs·(2/π)atan(Kv·u̇) + Fsc·(2/π)atan(delta·u̇) + Fsv·u̇ with Kv ≫ delta (s/rad).

    Szabó & Szádeczky-Kardoss 2021, eq. 7 (corrected: the last term is τv·v).
    """

    dry: ClassVar[bool] = True
    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = (
        ShapeParameter("Kv", "s/rad", "s/m"),
        ShapeParameter("delta", "s/rad", "s/m"),
    )
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

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        omission = "is a curve; its asymptote at high speed is written"
        return SimpleTerm(friction=values[0] + values[1], damping=values[2], omission=omission)


@TERMS.register("friction-table")
@dataclass(frozen=True, kw_only=True)
class FrictionTable(DryTerm):
    """Friction of any shape: values at `speeds` (rad/s or m/s, rising from 0) in both directions, lines in between.

    Beyond the last speed it stays constant. `smooth` smooths the jump at zero as in the Coulomb term; `sides` "p" or
    "n" omits one direction.
    """

    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = (ShapeParameter("smooth"),)
    speeds: tuple[float, ...] = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)
    sides: str = "pn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides not in ("pn", "p", "n"):
            raise SteelyardError(f"The sides of a friction table must be 'pn', 'p' or 'n', not '{self.sides}'.")
        object.__setattr__(self, "speeds", tuple(float(v) for v in self.speeds))
        if len(self.speeds) < 2 or self.speeds[0] != 0.0 or any(np.diff(self.speeds) <= 0.0):
            raise SteelyardError(f"The speeds of a friction table must rise from 0, but are {self.speeds}.")

    @property
    def columns(self) -> tuple[Column, ...]:
        count = len(self.speeds)
        return tuple(Column(f"F{side}{k}_", "N m", "N") for side in self.sides for k in range(count))

    def along(self, direction: Scalar, speed: Scalar) -> Sequence[Scalar]:
        ways = {"p": maximum(direction, 0.0), "n": minimum(direction, 0.0)}
        hats = [self._hat(k, speed) for k in range(len(self.speeds))]
        return [ways[side] * h for side in self.sides for h in hats]

    def _hat(self, k: int, v: Scalar) -> Scalar:
        """Compute the hat function of speed k: 1 there, falling linearly to 0 at its neighbours."""
        knots = self.speeds
        rise = 1.0 if k == 0 else (v - knots[k - 1]) * (1.0 / (knots[k] - knots[k - 1]))
        fall = 1.0 if k == len(knots) - 1 else (knots[k + 1] - v) * (1.0 / (knots[k + 1] - knots[k]))
        return maximum(minimum(minimum(rise, fall), 1.0), 0.0)
