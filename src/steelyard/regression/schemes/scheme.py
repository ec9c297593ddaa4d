"""`Scheme`: one way to write the physics as rows y = A θ, and the registry of all of them.

A scheme is a balance (`balance.py`: which regressors are stored and which are lost, per joint or for the robot) and
what is done with it: taken at instants, filtered, or summed over windows. Both stand on its class, and whoever makes
rows asks there: from whole logs (`data`), sample by sample (`live`, for `estimation.recursion`), or along a motion that
is being designed (`excitation`). A new scheme is a class in a file of its own, with `@SCHEMES.register(name)`.
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
from steelyard.ground.named_options import parse_named_options
from steelyard.ground.registry import Registry
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
# A stream does not tell beforehand how fast the robot will move: this band (Hz) is assumed where no cut-off and no
# window is given.
LIVE_BAND = 1.0


class LiveSums(Protocol):
    """What a scheme does with the means over sampling intervals as they come, one interval of `h` seconds at a time.

    A vector `mean` holds the entries of several equations. `add` says which equations have a row now; it stands in
    `result`. An equation that is left out for a while (flags `equations`: its joint stands still) starts afresh
    afterwards. `restore` takes what `state` gave: arrays by name.
    """

    result: Array

    def reset(self) -> None: ...
    def leave_out(self, equations: Flags) -> None: ...
    def add(self, mean: Array, h: float) -> Flags: ...
    def bracket(self, h: float) -> float: ...
    def state(self) -> dict[str, Array]: ...
    def restore(self, state: Mapping[str, Array]) -> None: ...


class Scheme(ABC):
    """Settings are fields of a frozen dataclass, made by `option`; what all of a kind share, class variables."""

    name: ClassVar[str]
    equation: ClassVar[str]  # as the documentation writes it
    about: ClassVar[str]  # what it is for, in one line
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
        """The rows of whole motions.

        Args:
            dynamics: the physics of the robot with its terms.
            base: the base parameters whose columns are wanted.
            motions: starts a pass over prepared motions.
            mask: leave out what a joint does while it moves more slowly than this, rad/s (m/s): dry friction is then
                not the one that sliding shows. It has no effect on equations for the whole robot, since what holds a
                joint still does no work.
            known_friction: friction by joint or motor, as curves over velocity, taken off the torque before all else.
        """
        friction = KnownFriction.of(dynamics.robot, known_friction)
        if dynamics.terms.history:
            given, motions = motions, lambda: (with_history(dynamics, m) for m in given())
        return self.rows(BalanceRows(self.balance, dynamics, base.independent, friction), base, motions, mask)

    def for_stream(self, between: TorqueBetween) -> Scheme:
        """The scheme for samples that come one by one, whose torque runs `between` them as stated."""
        if between in ("held", "averaged"):
            raise SteelyardError(
                f"The scheme '{self.name}' takes samples one by one; torque that is {between} belongs between two: "
                f"use {scheme_names(uses_acceleration=False)}."
            )
        return self

    @abstractmethod
    def rows(self, sides: BalanceRows, base: BaseParameters, motions: Motions, mask: float) -> RegressionData:
        """What `data` gives, with the same `base`, `motions` and `mask`, from both `sides` of the balance."""


class Balanced(Scheme):
    """A scheme over sampling intervals, which needs no acceleration.

    Its option `torque` (or `work`, of equations for the whole robot) says how the torque runs between samples, and
    `still` (of equations per joint) how slow is too slow for a joint with dry friction, rad/s (m/s).
    """

    uses_acceleration: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = INTEGRATION_RULES

    def __post_init__(self) -> None:
        check_rule(self.rule, self.rules)
        check_still(self.still_speed)

    @property
    def stated_rule(self) -> str:
        """How the torque runs between samples by the scheme's own option; "auto": as the motions say, or held."""
        return str(getattr(self, "work" if self.balance.scalar else "torque"))

    def for_stream(self, between: TorqueBetween) -> Scheme:
        if between == "auto":
            return self
        if self.stated_rule not in ("auto", RULE_OF[between]):
            raise SteelyardError(
                f"The scheme says '{self.stated_rule}' and torque_between '{between}' about the torque between "
                "samples; state one of them."
            )
        settings: Any = self
        made: Scheme = replace(settings, **{"work" if self.balance.scalar else "torque": RULE_OF[between]})
        return made

    @property
    def rule(self) -> str:
        """How the torque runs between samples, where motions do not say it."""
        return "held" if self.stated_rule == "auto" else self.stated_rule

    def rule_for(self, motion: Motion) -> str:
        """The rule for the torque of a `motion`.

        A motion whose preparation knows how the torque runs is shifted by half a sample where that is due; the torque
        then counts as sampled at the same instants, and the trapezoid rule is right for all three ways.
        """
        return "trapezoid" if self.stated_rule == "auto" and motion.between else self.rule

    @property
    def still_speed(self) -> float | None:
        """None: by the kind of the joint; 0: what holds a joint still does not matter, as it does no work."""
        speed: float | None = 0.0 if self.balance.scalar else getattr(self, "still", None)
        return speed

    def stillness(self, sides: BalanceRows, mask: float) -> Stillness:
        """Where the equations of joints of `sides` cannot be trusted; any slower than `mask` (rad/s, m/s) cannot."""
        if self.balance.scalar:
            return Stillness.never(sides.dynamics.robot.dof)
        return Stillness.of(sides.dynamics, sides.friction, self.still_speed, mask)

    @abstractmethod
    def live(self, owner: NDArray[np.int64]) -> LiveSums:
        """What is done with means that come one by one; entry k belongs to equation `owner`[k]."""


def option(default: Any, about: str, unit: str = "", hidden: bool = False, **more: Any) -> Any:
    """A setting of a scheme.

    Args:
        default: what holds where nothing is said.
        about: what it is, in a few words.
        unit: of its value.
        hidden: an old name, which works and is told nobody.
        more: as for `dataclasses.field`.
    """
    return field(default=default, metadata={"about": about, "unit": unit, "hidden": hidden}, **more)


def _options_of(scheme: type[Scheme] | Scheme) -> dict[str, Field[Any]]:
    """The settings that people are told of, by name."""
    settings: Any = scheme
    return {f.name: f for f in fields(settings) if not f.metadata.get("hidden")}


def make_scheme(text: str | Scheme) -> Scheme:
    """The scheme that `text` names, options if any: "filtered-dynamic:cutoff_hz=1.5,order=2", "energy:growing=yes".

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
    """What `make_scheme` would be given to make `scheme`; options at their defaults are left out."""
    found = {
        name: getattr(scheme, name) for name, f in _options_of(scheme).items() if getattr(scheme, name) != f.default
    }
    shown = {k: {True: "yes", False: "no"}[v] if isinstance(v, bool) else v for k, v in found.items()}
    return ":".join(filter(None, [scheme.name, ",".join(f"{k}={v}" for k, v in shown.items())]))


def scheme_names(**facts: bool) -> str:
    """The schemes of which the given `facts` (class variables with their values) hold, as a sentence lists them.

    >>> scheme_names(uses_acceleration=True)
    'dynamic or power'
    """
    names = [n for n, s in SCHEMES.items() if all(getattr(s, fact) == value for fact, value in facts.items())]
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"


def scheme_help() -> str:
    """All schemes with their options, a line each, as help on the command line says it."""
    return "\n".join(f"{n}: {s.about}. Options: {_options(s, '') or 'none'}." for n, s in SCHEMES.items())


def scheme_table() -> str:
    """All schemes as the table of the documentation (Markdown)."""
    head = ["| scheme | equation | per | needs q̈ | options |", "|---|---|---|---|---|"]
    for name, s in SCHEMES.items():
        per, needs = "robot" if s.balance.scalar else "joint", "yes" if s.uses_acceleration else "no"
        head.append(f"| `{name}` | {s.equation} | {per} | {needs} | {_options(s, '`')} |")
    return "\n".join(head)


def _options(scheme: type[Scheme], quote: str) -> str:
    found = _options_of(scheme)
    units = {name: f" ({f.metadata['unit']})" if f.metadata["unit"] else "" for name, f in found.items()}
    return ", ".join(f"{quote}{name}{quote}{unit}" for name, unit in units.items())
