"""`Scheme`: one way to write the physics as rows y = A θ, and the registry of all of them.

A scheme is a balance (`balance.py`: stored and lost regressors, per joint or for the robot) and its processing: at
instants, filtered, or summed over windows. Both are defined in its class, for whole logs (`data`), sample by sample
(`live`, for `estimation.recursion`), and along a designed motion (`excitation`). A new scheme is a class in a separate
file, with `@SCHEMES.register(name)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, field, fields, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.registry import Registry
from steelyard.ground.verb_options import parse_named_options
from steelyard.regression.base_parameters import BaseParameters
from steelyard.regression.data import RegressionData
from steelyard.regression.observe import with_history
from steelyard.regression.schemes._blocks import Motions
from steelyard.regression.schemes.balance import INTEGRATION_RULES, RULE_OF, Balance, BalanceRows, check_rule
from steelyard.regression.schemes.still import Curves, KnownFriction, Stillness, check_still
from steelyard.signals.between import TorqueBetween
from steelyard.signals.prepare import Motion

SCHEMES: Registry[type[Scheme]] = Registry("scheme", ("steelyard.regression.schemes",), "steelyard.schemes")

Flags = NDArray[np.bool_]
# The speed of a streamed motion is unknown in advance: without a cut-off or window this band is assumed [Hz].
LIVE_BAND = 1.0


class LiveSums(Protocol):
    """The processing of means over sampling intervals, one interval at a time.

    `add` returns the equations that have a row now, whose values are in `result`. An equation that is excluded for a
    while (its joint is at standstill) restarts afterwards.

    Args:
        mean: Entries of several equations.
        h: Length of the interval [s].
        equations: Flags of the excluded equations.
        state: Arrays by name, from `state()`.
    """

    result: Array

    def reset(self) -> None: ...
    def leave_out(self, equations: Flags) -> None: ...
    def add(self, mean: Array, h: float) -> Flags: ...
    def bracket(self, h: float) -> float: ...
    def state(self) -> dict[str, Array]: ...
    def restore(self, state: Mapping[str, Array]) -> None: ...


class Scheme(ABC):
    """Settings are fields of a frozen dataclass, created by `option`; class variables are common to all of a kind."""

    name: ClassVar[str]
    equation: ClassVar[str]  # for the documentation
    about: ClassVar[str]  # its use, in one line
    balance: ClassVar[Balance]
    uses_acceleration: ClassVar[bool]
    windowed: ClassVar[bool] = False  # sums over windows, which excitation can design motions for

    def data(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        motions: Motions,
        mask: float = 0.0,
        known_friction: Curves | None = None,
    ) -> RegressionData:
        """Build the rows of whole motions.

        Args:
            dynamics: Physics of the robot with its terms.
            base: Base parameters of the columns.
            motions: Starts a pass over prepared motions.
            mask: Exclude a joint's rows below this speed [rad/s, m/s], since dry friction is different there. It does
                not affect equations for the whole robot, since static friction does no work.
            known_friction: Friction by joint or motor, as curves over velocity, subtracted from the torque first.
        """
        friction = KnownFriction.of(dynamics.robot, known_friction)
        if dynamics.terms.history:
            given, motions = motions, lambda: (with_history(dynamics, m) for m in given())
        return self.rows(BalanceRows(self.balance, dynamics, base.independent, friction), base, motions, mask)

    def for_stream(self, between: TorqueBetween) -> Scheme:
        """Return the scheme for streamed samples whose torque runs `between` them as stated."""
        if between in ("held", "averaged"):
            raise SteelyardError(
                f"The scheme '{self.name}' uses single samples, but torque that is {between} refers to intervals: "
                f"use {scheme_names(uses_acceleration=False)}."
            )
        return self

    @abstractmethod
    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        """Build the rows from both sides of the balance.

        Args:
            sides: Both sides of the balance.
            base, motions, mask: As in `data`.
        """


class Balanced(Scheme):
    """A scheme over sampling intervals, which needs no acceleration.

    Its option `torque` (or `work`, for equations of the whole robot) defines the torque between samples, and `still`
    (for equations per joint) the speed of standstill with dry friction [rad/s, m/s].
    """

    uses_acceleration: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = INTEGRATION_RULES

    def __post_init__(self) -> None:
        check_rule(self.rule, self.rules)
        check_still(self.still_speed)

    @property
    def stated_rule(self) -> str:
        """The scheme's option for the torque between samples; "auto": from the motions, else held."""
        return str(getattr(self, "work" if self.balance.scalar else "torque"))

    def for_stream(self, between: TorqueBetween) -> Scheme:
        if between == "auto":
            return self
        if self.stated_rule not in ("auto", RULE_OF[between]):
            raise SteelyardError(
                f"The scheme states '{self.stated_rule}' and torque_between '{between}' for the torque between "
                "samples; state only one of them."
            )
        settings: Any = self
        made: Scheme = replace(settings, **{"work" if self.balance.scalar else "torque": RULE_OF[between]})
        return made

    @property
    def rule(self) -> str:
        """The torque between samples, if motions do not define it."""
        return "held" if self.stated_rule == "auto" else self.stated_rule

    def rule_for(self, motion: Motion) -> str:
        """Return the rule for the torque of a `motion`.

        If the preparation knows the torque between samples, it shifts the motion by half a sample if necessary. The
        torque then counts as sampled at the same instants, and the trapezoid rule is correct for all three ways.
        """
        return "trapezoid" if self.stated_rule == "auto" and motion.between else self.rule

    @property
    def still_speed(self) -> float | None:
        """None: by the kind of the joint; 0: standstill is irrelevant, since static friction does no work."""
        speed: float | None = 0.0 if self.balance.scalar else getattr(self, "still", None)
        return speed

    def stillness(self, sides: BalanceRows, mask: float) -> Stillness:
        """Find intervals in which equations of joints are invalid.

        Args:
            sides: Both sides of the balance.
            mask: Minimum speed [rad/s, m/s].
        """
        if self.balance.scalar:
            return Stillness.never(sides.dynamics.robot.dof)
        return Stillness.of(sides.dynamics, sides.friction, self.still_speed, mask)

    @abstractmethod
    def live(self, owner: NDArray[np.int64]) -> LiveSums:
        """Create the processing of streamed means; entry k belongs to equation `owner`[k]."""


def option(default: Any, about: str, unit: str = "", **more: Any) -> Any:
    """Define a setting of a scheme.

    Args:
        default: Default value.
        about: Description in a few words.
        unit: Unit of the value.
        more: As for `dataclasses.field`.
    """
    return field(default=default, metadata={"about": about, "unit": unit}, **more)


def _options_of(scheme: type[Scheme] | Scheme) -> dict[str, Field[Any]]:
    """Return the listed settings by name."""
    settings: Any = scheme
    return {f.name: f for f in fields(settings)}


def make_scheme(text: str | Scheme) -> Scheme:
    """Create a scheme from `text`, with options: "filtered-dynamic:cutoff_hz=1.5,order=2", "energy:growing=yes".

    >>> make_scheme("filtered-dynamic:cutoff_hz=1.5,order=2").order
    2
    """
    if not isinstance(text, str):
        return text
    made: Any = SCHEMES[text.partition(":")[0]]
    kinds = {f.name: str(f.type) for f in fields(made)}
    example = "filtered-dynamic:cutoff_hz=1.5"
    _, options = parse_named_options("scheme", text, kinds, example=example, shown=_options_of(made))
    scheme: Scheme = made(**options)
    return scheme


def scheme_text(scheme: Scheme) -> str:
    """Write `scheme` as a text for `make_scheme`, without options at their defaults."""
    found = {
        name: getattr(scheme, name) for name, f in _options_of(scheme).items() if getattr(scheme, name) != f.default
    }
    shown = {k: {True: "yes", False: "no"}[v] if isinstance(v, bool) else v for k, v in found.items()}
    return ":".join(filter(None, [scheme.name, ",".join(f"{k}={v}" for k, v in shown.items())]))


def scheme_names(**facts: bool) -> str:
    """List, as a sentence, the schemes whose class variables have the values `facts`.

    >>> scheme_names(uses_acceleration=True)
    'dynamic or power'
    """
    names = [n for n, s in SCHEMES.items() if all(getattr(s, fact) == value for fact, value in facts.items())]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"


def scheme_help() -> str:
    """List all schemes with their options, one per line, for command-line help."""
    return "\n".join(f"{n}: {s.about}. Options: {_options(s, '') or 'none'}." for n, s in SCHEMES.items())


def scheme_table() -> str:
    """Write all schemes as a Markdown table for the documentation."""
    head = ["| scheme | equation | per | needs q̈ | options |", "|---|---|---|---|---|"]
    for name, s in SCHEMES.items():
        per, needs = "robot" if s.balance.scalar else "joint", "yes" if s.uses_acceleration else "no"
        head.append(f"| `{name}` | {s.equation} | {per} | {needs} | {_options(s, '`')} |")
    return "\n".join(head)


def _options(scheme: type[Scheme], quote: str) -> str:
    found = _options_of(scheme)
    units = {name: f" ({f.metadata['unit']})" if f.metadata["unit"] else "" for name, f in found.items()}
    return ", ".join(f"{quote}{name}{quote}{unit}" for name, unit in units.items())
