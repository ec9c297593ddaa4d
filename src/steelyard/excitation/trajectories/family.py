"""`Family`: a set of motions of one joint, linear in their coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from steelyard.errors import SteelyardError, UnknownNameError, shortened
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.registry import Registry
from steelyard.ground.schema import build

# Largest number of harmonics, knots or spans of one joint's motion.
_MOST = 10_000


class _HasKind(Protocol):
    kind: ClassVar[str]


F = TypeVar("F", bound=_HasKind)
# The modules are imported on the first search, since a program may read a motion without having made one.
_FAMILIES: Registry[type] = Registry("trajectory family", ("steelyard.excitation.trajectories",))


def register_family(cls: type[F]) -> type[F]:
    """Register a family class under its `kind`; its settings are the keywords of its constructor."""
    _FAMILIES.register(cls.kind)(cls)
    return cls


def family_to(family: Family) -> dict[str, Any]:
    """Return a `family` as plain data."""
    return {"family": family.kind, **family.settings()}


def family_from(document: Field) -> Family:
    """Read the family of one joint's entry, `document`; the caller reads `coefficients`."""
    name = document.table((), ("family",), others=True).get("family", document).value
    if not isinstance(name, str) or name not in _FAMILIES:
        raise UnknownNameError("trajectory family", shortened(str(name), 60), sorted(_FAMILIES))
    settings = {key: value for key, value in document.value.items() if key not in ("family", "coefficients")}
    for key, value in settings.items():
        if (isinstance(value, int) and abs(value) > _MOST) or (isinstance(value, list) and len(value) > _MOST):
            document.fail(f"{shortened(str(key), 60)}: the largest supported number is {_MOST}.")
    family: Family = build(_FAMILIES[name], document.inside(settings, f"family '{name}'"))
    return family


class TrajectoryError(SteelyardError):
    """A motion that cannot be made: names the setting, its value, and the remedy."""


@runtime_checkable
class Family(Protocol):
    """A set of motions of one joint with coefficients x; the settings are frozen.

    Conditions that every motion satisfies (start at rest, end at rest, pass a given posture) are eliminated, so every x
    is admissible. Families are hashable, so that joints may share one.
    """

    @property
    def kind(self) -> str:
        """Name of the family in JSON."""
        ...

    @property
    def size(self) -> int:
        """Number of coefficients."""
        ...

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""
        ...

    @property
    def periodic(self) -> bool:
        """Whether the motion can be repeated without a jump in position, velocity or acceleration."""
        ...

    def basis(self, t: Array, derivative: int) -> tuple[Array, Array]:
        """Return (B, c): the derivative at times t is B x + c.

        Args:
            t: Times [s], shape (samples,).
            derivative: Order of the derivative, 0 to 3.
        """
        ...

    def extent(self, x: Array, derivative: int) -> tuple[float, float]:
        """Return bounds of the smallest and largest value over all times of the motion; never too narrow.

        Args:
            x: Coefficients.
            derivative: Order of the derivative, 0 to 3.
        """
        ...

    def hold(self, position: float) -> Array:
        """Return the coefficients of the calmest motion about a `position` [rad, m]; standstill if possible."""
        ...

    def settings(self) -> dict[str, Any]:
        """Return the settings as JSON types."""
        ...


def check_duration(duration: float, what: str) -> None:
    """Refuse a duration that is not positive and finite.

    Args:
        duration: Duration [s].
        what: Name of its owner, for the message.
    """
    if not 0.0 < duration <= 1e6:
        raise TrajectoryError(f"{what}: the duration is {duration} s; it must be positive, and less than 1e6 s.")
