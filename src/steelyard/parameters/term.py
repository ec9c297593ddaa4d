"""What a joint term is: friction, rotor inertia, springs and the like, as columns that are linear in parameters.

What a term can do stands on its class, and nowhere else; `TERMS` holds the classes by name. A new one is a file with a
class under `@TERMS.register(name)`, here or in another package (entry points of the group `steelyard.terms`).
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
    """An option of a term that its torque is not linear in, such as the speed at which Stribeck friction fades.

    Args:
        option: the field of the term that holds it.
        unit: its unit on a revolute coordinate.
        linear_unit: its unit on a prismatic one.
    """

    option: str
    unit: str = "rad/s"
    linear_unit: str = "m/s"

    def at(self, speed: float) -> float:
        """The value at which the torque bends at `speed` (rad/s or m/s): the speed, or one over it in s/rad."""
        return 1.0 / speed if self.unit == "s/rad" else speed


@dataclass(frozen=True)
class Simple:
    """A term as the single numbers that URDF and MJCF know, on the term's own coordinate and in SI units.

    `smooth` is the speed (rad/s, m/s) below which dry friction is rounded off; `rest` is where the stiffness is slack;
    `offset` is a constant torque; `less` says in what way the numbers are less than the term ("": in none).
    """

    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    offset: float = 0.0
    smooth: float = 0.0
    less: str = ""


@dataclass(frozen=True)
class Excited:
    """How a joint moved in the logs that a structure is searched by: what it can tell apart, and what it cannot.

    Args:
        kind: of the joint, "revolute" or "prismatic".
        top_speed: the speed that it stays below for 95 % of the time, rad/s or m/s.
        travel: between the ends of its motion, rad or m.
        cutoff_hz: of the low-pass through which it is seen.
        sweeps: how often it went through its travel in one log; 1 is once, from end to end.
    """

    kind: str
    top_speed: float
    travel: float
    cutoff_hz: float
    sweeps: float = 0.0

    @property
    def comes_back(self) -> bool:
        """Whether it was everywhere at least three times: what goes by position can be told from what drifts."""
        return self.sweeps >= 3.0


class Along(ABC):
    """A signal that a term follows along a motion: more than position and velocity at an instant tell.

    Two that compare equal on one coordinate are one signal.
    """

    # Whether it is made from the torque of the rigid robot, not from positions alone.
    of_torque: ClassVar[bool] = False

    @abstractmethod
    def signal(self, u: Array, rigid: Array, period: float | None) -> Array:
        """Its values at consecutive samples of one motion, `(samples,)`.

        Args:
            u: positions of the coordinate, rad or m.
            rigid: the torque of links and rotors at the coordinate, N m or N; zeros unless it is `of_torque`.
            period: between samples, s; None: not known.
        """

    @abstractmethod
    def steady(self, du: Scalar, load: Scalar) -> Scalar:
        """Its value after a long motion at the velocity `du` (rad/s, m/s) with a torque of size `load` (N m, N)."""

    @abstractmethod
    def random(self, rng: np.random.Generator, count: int) -> Array:
        """So many values, `count`, as motions may show them, drawn by `rng`."""


LEFT_OUT = Simple(less="cannot be expressed, so it is left out")


@dataclass(frozen=True, kw_only=True)
class Term(ABC):
    """A torque that one coordinate feels, linear in a few parameters, independent of the robot.

    The coordinate u is a joint's position (`on="joint"`), a drive's (`"drive"`: the output of a gear that may
    move several joints at once, u = A q) or a motor's (`"motor"`: u = F(A q), where the ratio may depend on
    posture). `where` restricts the term to some joints or motors by name.
    """

    # The name under which the class is registered.
    kind: ClassVar[str] = "custom"
    # Jumps, or all but jumps, where the velocity changes its sign: at rest the torque is whatever holds the joint.
    dry: ClassVar[bool] = False
    # Its columns carry no error: a constant is a constant, and the direction of a motion is known but at reversals.
    exact: ClassVar[bool] = False
    # May be the sensor's and not the robot's, so that nothing else stands in for it.
    bias: ClassVar[bool] = False
    # A shape over the position, as which drift and links that are described wrongly may pass: a search asks more of it.
    of_position: ClassVar[bool] = False
    shape_parameters: ClassVar[tuple[ShapeParameter, ...]] = ()
    # The option that identification chooses by the kind of the joint where a term is given by its name alone.
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
        """What each parameter asks of the coordinate at position `u` (rad, m) and velocity `du`, acceleration apart."""

    @property
    def history(self) -> tuple[Along, ...]:
        """The signals along the motion that the force depends on beside position and velocity."""
        return ()

    def force_along(self, u: Scalar, du: Scalar, history: Sequence[Scalar]) -> Sequence[Scalar]:
        """What each parameter asks at position `u` (rad, m), velocity `du` and the signals' values, `history`."""
        return self.force(u, du)

    def rounded(self, joint_kind: str, times: float = 1.0) -> Term:
        """The term as identification takes it by name on joints of `joint_kind`; `times` scales its speeds."""
        return self

    @classmethod
    def candidates(cls, excited: Excited) -> Sequence[Term]:
        """What a search for the structure may try of it on a joint that was `excited` so; by default nothing.

        Offer what saturates, or what is bounded by what the logs have shown: another motion may be faster and larger.
        """
        return ()

    @property
    def inertial(self) -> bool:
        """Whether the (single) parameter is an inertia: torque ü, momentum u̇, energy ½u̇²."""
        return False

    def potential(self, u: Scalar) -> Sequence[Scalar] | None:
        """The energies at position `u` whose slopes `force` returns, or None for a term that dissipates."""
        return None

    @property
    def dissipative(self) -> bool:
        """Whether it takes energy out of the robot for good."""
        return not self.inertial and self.potential(0.0) is None

    @property
    def name(self) -> str:
        """What files and reports call the term."""
        return self.kind

    @property
    def options(self) -> dict[str, Any]:
        """Its settings as a file holds them, beside the coordinates it acts on."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("on", "where")}

    def shaped(self, option: str, speed: float) -> Term:
        """The term with the shape `option`, if it has that, at `speed` (rad/s or m/s)."""
        changes: dict[str, Any] = {s.option: s.at(speed) for s in self.shape_parameters if s.option == option}
        return replace(self, **changes) if changes else self

    def simple(self, values: Sequence[float]) -> Simple:
        """What URDF and MJCF can say of the term with these `values` of its parameters (SI); by default nothing."""
        return LEFT_OUT


class _Terms(Registry[type[Term]]):
    """The registry of terms, which also tells each class its name."""

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
    """A term by its name `kind`; `options` are the fields of its class.

    The annotations of the class are the schema of its options, wherever they come from: the command line, a sidecar, a
    robot description, a bank.
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
        raise SteelyardError(f"Term '{kind}': an option is not what it should be ({error}).") from None


@cache
def _option_hints(cls: type[Term]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError):  # a plug-in whose annotations cannot be read: its own checks have to do
        return {}


def _checked_option(kind: str, name: str, value: Any, hint: Any) -> Any:
    """The `value` of an option as its annotation `hint` asks for it, or an error that names term and option."""
    if name == "where" and isinstance(value, str):
        return (value,)
    place = Field(value, f"Term '{kind}', option '{shortened(name, 40)}'", error=SteelyardError)
    if hint is float:
        return place.number()  # null would mean NaN
    if name == "on":
        return value  # the term itself says what it can act on
    try:
        return value if hint is None else convert(hint, place)
    except TypeError:  # a plug-in's annotation that no file can hold
        return value


def parse_term(text: str) -> tuple[Term, dict[str, Any]]:
    """The term that `text` writes, "coulomb@drive:smooth=0.02:where=motor1+motor2", and the options given there."""
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
    """A term of the registry in words: its name, what it is in one line, its parameters, and its own options."""

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
    """All terms there are, for help texts and tables."""
    for name, cls in TERMS.items():
        summary = (cls.__doc__ or "").strip().split("\n\n")[0]
        made = cls()
        yield TermDescription(name, " ".join(summary.split()), made.columns, tuple(made.options))
