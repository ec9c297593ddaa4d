"""`Term`: the base class of joint terms: friction, rotor inertia, springs and others, linear in their parameters.

A class holds everything about its term; `TERMS` holds the classes by name. A new term is a class under
`@TERMS.register(name)`, here or in another package (entry points of the group `steelyard.terms`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, get_type_hints

import numpy as np

from steelyard.errors import SteelyardError, UnknownNameError, shortened
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.registry import Registry
from steelyard.ground.scalars import Scalar
from steelyard.ground.schema import convert

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


@dataclass(frozen=True)
class ShapeParameter:
    """An option in which the torque of a term is nonlinear, such as the speed of the Stribeck effect.

    Args:
        option: Name of the term's field.
        unit: Unit on a revolute coordinate.
        linear_unit: Unit on a prismatic coordinate.
    """

    option: str
    unit: str = "rad/s"
    linear_unit: str = "m/s"

    def at(self, speed: float) -> float:
        """Return the value for a bend at `speed` [rad/s, m/s]: the speed, or its inverse for a unit of s/rad."""
        return 1.0 / speed if self.unit == "s/rad" else speed


@dataclass(frozen=True)
class SimpleTerm:
    """A term as numbers of URDF and MJCF, on the term's own coordinate and in SI units.

    `smooth` is the speed [rad/s, m/s] below which dry friction is smoothed; `rest` is the rest position of the
    stiffness; `offset` is a constant torque; `omission` describes what these numbers do not represent ("": nothing).
    """

    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    offset: float = 0.0
    smooth: float = 0.0
    omission: str = ""


@dataclass(frozen=True)
class JointExcitation:
    """Motion of a joint in the logs of a structure search, which limits the identifiable terms.

    Args:
        kind: Kind of the joint, "revolute" or "prismatic".
        top_speed: 95 % quantile of the speed [rad/s, m/s].
        travel: Range of the motion [rad, m].
        cutoff_hz: Cut-off of the low-pass filter [Hz].
        sweeps: Largest number of passes through the travel in one log; 1 is once, from end to end.
    """

    kind: str
    top_speed: float
    travel: float
    cutoff_hz: float
    sweeps: float = 0.0

    @property
    def repeats(self) -> bool:
        """Whether the joint passed every position at least three times: position effects then differ from drift."""
        return self.sweeps >= 3.0


class MotionSignal(ABC):
    """A signal along a motion that a term needs in addition to position and velocity.

    Two that compare equal on one coordinate are one signal.
    """

    # Whether it depends on the torque of the rigid robot.
    of_torque: ClassVar[bool] = False

    @abstractmethod
    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        """Compute the values at consecutive samples of one motion, `(samples,)`.

        Args:
            u: Positions of the coordinate [rad, m].
            rigid: Torque of links and rotors at the coordinate [N m, N]; zeros unless `of_torque`.
            period: Time between samples [s]; None: unknown.
        """

    @abstractmethod
    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        """Compute the value after a long steady motion.

        Args:
            du: Velocity [rad/s, m/s].
            load: Absolute torque of links and rotors [N m, N].
        """

    @abstractmethod
    def random(self, rng: np.random.Generator, count: int) -> Array:
        """Draw values as motions may produce them.

        Args:
            rng: Random generator.
            count: Number of values.
        """


NOT_EXPRESSIBLE = SimpleTerm(omission="cannot be expressed, so it is left out")


@dataclass(frozen=True, kw_only=True)
class Term(ABC):
    """A torque on one coordinate, linear in a few parameters, independent of the robot.

    The coordinate u is a joint's position (`on="joint"`), a drive's (`"drive"`: the output of a gear that may
    move several joints at once, u = A q) or a motor's (`"motor"`: u = F(A q), where the ratio may depend on
    posture). `where` restricts the term to some joints or motors by name.
    """

    # Name in the registry.
    kind: ClassVar[str] = "custom"
    # The torque jumps, or almost jumps, at reversals; at rest it takes any value that holds the joint.
    dry: ClassVar[bool] = False
    # The columns have no error: a constant, or the direction of motion away from reversals.
    exact: ClassVar[bool] = False
    # May belong to the sensor instead of the robot, so that no other term can replace it.
    bias: ClassVar[bool] = False
    # A function of position. Drift and wrong link parameters cause similar residuals, so a search for terms demands
    # more evidence.
    of_position: ClassVar[bool] = False
    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = ()
    # Option with a default that depends on the kind of the joint, for terms requested by name alone.
    rounds: ClassVar[str] = ""
    on: Side = "joint"
    where: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.on, str) or self.on not in SIDES:
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
        """Compute the torque per unit of each parameter, without inertia.

        Args:
            u: Position [rad, m].
            du: Velocity [rad/s, m/s].
        """

    @property
    def history(self) -> tuple[MotionSignal, ...]:
        """Signals along the motion that the force depends on, besides position and velocity."""
        return ()

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        """Compute the torque per unit of each parameter along a motion.

        Args:
            u: Position [rad, m].
            du: Velocity [rad/s, m/s].
            history: Values of the signals.
        """
        return self.force(u, du)

    def with_rounding(self, joint_kind: str, times: float = 1.0) -> Term:
        """Return the term with the default rounding of identification.

        Args:
            joint_kind: "revolute" or "prismatic".
            times: Factor by which the default rounding is multiplied.
        """
        return self

    @classmethod
    def candidates(cls, excitation: JointExcitation) -> Sequence[Term]:
        """Return variants of the term for a structure search on a joint with this `excitation`; by default none.

        Offer terms that saturate, or that are bounded within the range of the logs: another motion may be faster and
        larger.
        """
        return ()

    @property
    def inertial(self) -> bool:
        """Whether the (single) parameter is an inertia: torque ü, momentum u̇, energy ½u̇²."""
        return False

    def potential(self, u: Scalar) -> Sequence[Scalar] | None:
        """Compute the energies at position `u` [rad, m] whose slopes are `force`; None for a dissipative term."""
        return None

    @property
    def dissipative(self) -> bool:
        """Whether the term removes energy from the robot."""
        return not self.inertial and self.potential(0.0) is None

    @property
    def name(self) -> str:
        """Name of the term in files and reports."""
        return self.kind

    @property
    def options(self) -> dict[str, Any]:
        """Settings for files, without the coordinates it acts on."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("on", "where")}

    def shaped(self, option: str, speed: float) -> Term:
        """Return the term with a shape parameter set for a speed, if it has that option.

        Args:
            option: Name of the option.
            speed: Speed of the bend [rad/s, m/s].
        """
        changes: dict[str, Any] = {s.option: s.at(speed) for s in self.shape_parameters if s.option == option}
        return replace(self, **changes) if changes else self

    def simple(self, values: Sequence[float]) -> SimpleTerm:
        """Express parameter `values` (SI) by the joint attributes of URDF and MJCF; by default this is not possible."""
        return NOT_EXPRESSIBLE


class _Terms(Registry[type[Term]]):
    """The registry of terms; it also sets the name of each class."""

    def register(self, name: str) -> Callable[[type[Term]], type[Term]]:  # type: ignore[override]
        enter = super().register(name)

        def named(member: Any) -> Any:
            if not (isinstance(member, type) and issubclass(member, Term)):
                raise SteelyardError(f"the term '{name}' must be a class that derives from steelyard.parameters.Term")
            known = vars(member).get("kind", name)
            if known != name:
                raise SteelyardError(f"the class {member.__name__} is the term '{known}' already")
            member.kind = name
            return enter(member)

        return named


TERMS = _Terms("term", ("steelyard.parameters",), group="steelyard.terms")


def make_term(kind: str, /, **options: Any) -> Term:
    """Create a term by its name.

    The annotations of the class are the schema of its options, for the command line, sidecars, robot descriptions and
    banks.

    Args:
        kind: Name of the term.
        options: Fields of its class.
    """
    cls = TERMS[kind]
    known = {f.name for f in fields(cls)}
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of term '{kind}'", option, sorted(known))
    hints = _option_hints(cls)
    checked = {name: _checked_option(kind, name, value, hints.get(name)) for name, value in options.items()}
    try:
        return cls(**checked)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise SteelyardError(f"Term '{kind}': an option is invalid ({error}).") from None


@cache
def _option_hints(cls: type[Term]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):  # a plug-in with unreadable annotations: rely on its own checks
        return {}


def _checked_option(kind: str, name: str, value: Any, hint: Any) -> Any:
    """Convert the `value` of an option to its annotation `hint`; errors name term and option."""
    if name == "where" and isinstance(value, str):
        return (value,)
    place = Field(value, f"Term '{kind}', option '{shortened(name, 40)}'", error=SteelyardError)
    if hint is float:
        return place.number()  # null would mean NaN
    if name == "on":
        return value  # the term checks it
    try:
        return value if hint is None else convert(hint, place)
    except TypeError:  # a plug-in's annotation without a file representation
        return value


def parse_term(text: str) -> tuple[Term, dict[str, Any]]:
    """Parse `text`, e.g. "coulomb@drive:smooth=0.02:where=motor1+motor2", to a term and its explicit options."""
    head, _, tail = text.partition(":")
    kind, _, side = head.partition("@")
    options: dict[str, Any] = {"on": side} if side else {}
    for pair in filter(None, tail.split(":")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SteelyardError(f"Term '{text}': write options as name=value, e.g. coulomb:smooth=0.02.")
        if key == "where":
            options[key] = tuple(value.split("+"))
            continue
        try:
            options[key] = float(value)
        except ValueError:
            raise SteelyardError(f"Term '{text}': '{value}' is not a number.") from None
    return make_term(kind, **options), options


@dataclass(frozen=True)
class TermDescription:
    """Name, one-line summary, parameters and options of a term in the registry."""

    name: str
    summary: str
    columns: tuple[Column, ...]
    options: tuple[str, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(c.symbol for c in self.columns)

    @property
    def units(self) -> tuple[str, ...]:
        """On a revolute coordinate."""
        return tuple(c.unit for c in self.columns)


def describe_terms() -> Iterator[TermDescription]:
    """Describe all registered terms, for help texts and tables."""
    for name, cls in TERMS.items():
        summary = (cls.__doc__ or "").strip().split("\n\n")[0]
        made = cls()
        yield TermDescription(name, " ".join(summary.split()), made.columns, tuple(made.options))
