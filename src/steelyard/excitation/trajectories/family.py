"""`Family`: how one joint may move, as a motion that is linear in its coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from steelyard.errors import SteelyardError, UnknownNameError, shortened
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.registry import Registry
from steelyard.ground.schema import build

# Harmonics, knots, spans of one joint's motion.
_MOST = 10_000


class _Named(Protocol):
    kind: ClassVar[str]


F = TypeVar("F", bound=_Named)
# Whoever reads a motion need not have made one: families are looked for in their files.
_FAMILIES: Registry[type] = Registry("trajectory family", ("steelyard.excitation.trajectories",))


def register_family(cls: type[F]) -> type[F]:
    """Makes a family class known under its `kind`; its settings are its constructor's keywords."""
    _FAMILIES.register(cls.kind)(cls)
    return cls


def family_to(family: Family) -> dict[str, Any]:
    """A `family` as plain data."""
    return {"family": family.kind, **family.settings()}


def family_from(document: Field) -> Family:
    """The family of one joint's entry, `document`; what is not a setting (`coefficients`) is left to the caller."""
    name = document.table((), ("family",), others=True).get("family", document).value
    if not isinstance(name, str) or name not in _FAMILIES:
        raise UnknownNameError("trajectory family", shortened(str(name), 60), sorted(_FAMILIES))
    settings = {key: value for key, value in document.value.items() if key not in ("family", "coefficients")}
    for key, value in settings.items():
        if (isinstance(value, int) and abs(value) > _MOST) or (isinstance(value, list) and len(value) > _MOST):
            document.fail(f"{shortened(str(key), 60)}: more than {_MOST} is more than a motion has.")
    family: Family = build(_FAMILIES[name], document.inside(settings, f"family '{name}'"))
    return family


class TrajectoryError(SteelyardError):
    """A motion that cannot be made as asked: names the setting, its value, and what would fix it."""


@runtime_checkable
class Family(Protocol):
    """All motions of one joint that a handful of coefficients `x` can tell apart; the settings are frozen.

    What has to hold whatever x is (start at rest, end there, pass a given posture) is built in: the conditions have
    been eliminated, so every x is admissible. Families are hashable, so that joints may share one. A `derivative`
    is named by its order, 0 to 3; times `t` are in s, `position` in rad or m.
    """

    @property
    def kind(self) -> str:
        """The name under which JSON knows the family."""
        ...

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        ...

    @property
    def duration(self) -> float:
        """How long the motion takes, in s."""
        ...

    @property
    def periodic(self) -> bool:
        """Whether the motion may be played again and again without a jump in position, velocity or acceleration."""
        ...

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        """(B, c): the derivative of that order (0 to 3) at times t (samples,) is B x + c."""
        ...

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        """Least and greatest value over *all* times of the motion, not only at samples: never too narrow."""
        ...

    def hold(self, position: float) -> Array:
        """Coefficients of the calmest motion about a position: standing still there, where the settings allow it."""
        ...

    def settings(self) -> dict[str, Any]:
        """What the family is made of, as JSON can hold it."""
        ...


def check_duration(duration: float, what: str) -> None:
    """Refuse a `duration` (s) that is not positive and finite; `what` has it."""
    if not 0.0 < duration <= 1e6:
        raise TrajectoryError(f"{what}: the duration is {duration} s; it must be positive, and less than 1e6 s.")
