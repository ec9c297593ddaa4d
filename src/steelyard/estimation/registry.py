"""The estimators by the names that people type: one registry, and what is made of it.

An estimator stands in a file of its own and enters itself with `@estimator("name")`. What it needs and what it can do
stands on its class (`steelyard.estimation.estimate.Estimator`); nothing lists it a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, EstimatorFamily, Prior
from steelyard.ground.named_options import parse_named_options
from steelyard.ground.registry import Registry
from steelyard.regression.base_parameters import BaseParameters
from steelyard.signals.given import LogLike, as_log

if TYPE_CHECKING:
    from steelyard.estimation.possible.physical import PhysicallyConsistent
    from steelyard.regression.schemes import Scheme

_Class = TypeVar("_Class", bound=type[Estimator[Any]])


@dataclass(frozen=True)
class Named:
    """An estimator under a name: its class, the fields that the name fixes, and one line about it."""

    name: str
    of: type[Estimator[Any]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The fields of the class that are left to choose."""
        return tuple(f.name for f in fields(self.of) if f.name not in self.fixed)  # type: ignore[arg-type]

    def make(self, **options: Any) -> Estimator[Any]:
        """The estimator with these settings, `options` by name; others are the defaults of its class."""
        for option in options:
            if option not in self.options:
                raise UnknownNameError(f"option of estimator '{self.name}'", option, self.options)
        return self.of(**self.fixed, **options)

    def told(self, **options: Any) -> Named:
        """The same with `options` fixed: fields of the class, or of what one of them holds, as `start` of a tuning."""
        fixed = dict(self.fixed)
        for name, inner in self._inner().items():
            own = {key: options.pop(key) for key in list(options) if key in {f.name for f in fields(inner)}}
            if own:
                fixed[name] = replace(inner, **own)
        return replace(self, fixed={**fixed, **options})

    @property
    def kinds(self) -> dict[str, str]:
        """The types of all that can be typed behind the name; whether it is physically possible is asked elsewhere."""
        found = {f.name: str(f.type) for f in fields(self.of) if f.name in self.options}  # type: ignore[arg-type]
        for name, inner in self._inner().items():
            del found[name]
            found |= {f.name: str(f.type) for f in fields(inner)}
        simple = ("bool", "int", "float", "str", "Literal")
        return {name: kind for name, kind in found.items() if name != "physical" and kind.startswith(simple)}

    def _inner(self) -> dict[str, Any]:
        """Fields that hold settings of their own, as they are for a log."""
        made: Any = self.of(**{**self.of.log_settings, **self.fixed})
        held = {name: getattr(made, name) for name in self.options}
        return {name: value for name, value in held.items() if is_dataclass(value)}

    @property
    def has_physical_form(self) -> bool:
        """Whether it can be kept to what is physically possible."""
        return self.of.physical_form not in ("none", "itself")


def _adopted(name: str, held: object) -> Named:
    if not (isinstance(held, type) and issubclass(held, Estimator)):
        raise SteelyardError("it is no subclass of steelyard.estimation.Estimator")
    return Named(name, held, about=held.about)


# In the order in which most people need them: a name is looked for package by package.
_PACKAGES = ("linear", "possible", "recursion.rls", "simulated", "kalman", "neural")
ESTIMATORS: Registry[Named] = Registry(
    "estimator", tuple(f"steelyard.estimation.{p}" for p in _PACKAGES), "steelyard.estimators", _adopted
)


def estimator(name: str, about: str = "", **fixed: Any) -> Callable[[_Class], _Class]:
    """A decorator that enters a class of estimators under a name.

    Args:
        name: what people type.
        about: one line about it; default: that of the class.
        fixed: fields of the class that the name stands for, as in `estimator("bisquare", loss="bisquare")`.
    """

    def enter(of: _Class) -> _Class:
        ESTIMATORS.register(name)(Named(name, of, fixed, about or of.about))
        return of

    return enter


def spelled_estimator(text: str) -> Named:
    """The estimator that `text` writes, with the settings behind its name if any: "ekf:start=prior".

    >>> spelled_estimator("huber:tuning=2").make().tuning
    2.0
    """
    known = ESTIMATORS[text.partition(":")[0]]
    if ":" not in text:
        return known
    _, options = parse_named_options("estimator", text, known.kinds, example="ekf:start=prior")
    return known.told(**options)


def estimator_names(**claims: Any) -> tuple[str, ...]:
    """All names, family by family, or of those classes with `claims` like these: `estimator_names(needs="rows")`."""
    order = {family: k for k, family in enumerate(get_args(EstimatorFamily))}
    some = [
        e for e in ESTIMATORS.values() if all(getattr(e.of, claim, None) == value for claim, value in claims.items())
    ]
    return tuple(e.name for e in sorted(some, key=lambda e: (order[e.of.family], e.name)))


def estimator_help() -> str:
    """All estimators in one line, for the help text of an option; imports all of them."""
    plain = [n for n in estimator_names(needs_controller=False) if ESTIMATORS[n].of.physical_form != "itself"]
    simulating = ", ".join(estimator_names(needs_controller=True))
    return f"{', '.join(plain)}; with --controller: {simulating}. Settings behind the name: ekf:start=prior."


_FORMS = {
    "constrained": "the same weights, inside the cones",
    "rounds": "in every round",
    "nearest": "the nearest robot, by its covariance",
    "itself": "it is one",
    "none": "none: `--free`",
}


def estimator_table() -> str:
    """All estimators as a table in Markdown, for the docs."""
    lines = ["| name | what it does | works on | physically possible form |", "|---|---|---|---|"]
    for known in (ESTIMATORS[name] for name in estimator_names()):
        of = known.of
        on = "rows" if of.needs == "rows" else "motions and controller" if of.needs_controller else "motions"
        lines.append(f"| `{known.name}` | {known.about} | {on} | {_FORMS[of.physical_form]} |")
    return "\n".join(lines) + "\n"


def make_estimator(name: str, **options: Any) -> Estimator[Any]:
    """The estimator called `name`, settings behind it if any; `options` are the fields of its class.

    >>> make_estimator("physical", weighting="huber").weighting
    'huber'
    """
    return spelled_estimator(name).make(**options)


def make_experiment_estimator(name: str, **options: Any) -> Estimator[Any]:
    """The estimator of experiments called `name`; `options` are the fields of its class.

    >>> make_experiment_estimator("cloe").signal
    'position'
    """
    if name not in ESTIMATORS or ESTIMATORS[name].of.needs != "experiment":
        raise UnknownNameError("estimator of experiments", name, estimator_names(needs="experiment"))
    return make_estimator(name, **options)


def make_physical(name: str, **options: Any) -> PhysicallyConsistent:
    """The physically consistent fit that goes with the free one `name`: the same weights, inside what is possible.

    `options` are the fields of `PhysicallyConsistent`.
    A ridge has no weights of its own; the log-det divergence takes its place. Recursive least squares and
    the networks end at, or near, ordinary least squares.
    """
    from steelyard.estimation.possible.physical import PhysicallyConsistent

    if (of := spelled_estimator(name).of).needs != "rows":
        raise UnknownNameError("estimator of rows", name, estimator_names(needs="rows"))
    return PhysicallyConsistent(weighting=of.weights_like or name, **options)


def fit_by_name(
    name: str,
    data: Any,
    base: BaseParameters,
    prior: Prior | None = None,
    *,
    physical: bool = False,
    from_log: bool = False,
) -> Estimate:
    """The estimate of a named estimator: free, or the physically possible one as its class makes it.

    Args:
        name: of the estimator.
        data: rows or an experiment, as the estimator needs.
        base: the base parameters that are looked for.
        prior: what is known before.
        physical: whether the robot that is found must be able to exist.
        from_log: whether a log and a description, which is then the prior, are all there is.
    """
    known = spelled_estimator(name)
    if physical and known.of.physical_form != "rounds":
        return fit_both(name, data, base, prior, from_log=from_log)[1]
    options = {"physical": True} if physical else {}
    usual = {key: value for key, value in known.of.log_settings.items() if from_log and key not in known.fixed}
    return known.make(**usual, **options).fit(data, base, prior)


def check_use(
    name: str,
    *,
    physical: bool = False,
    controller: bool = False,
    scheme: str = "dynamic",
    significant: bool = False,
    known_friction: bool = False,
) -> None:
    """Refuse, in one sentence, an estimator that cannot do what is asked or lacks what it needs.

    Args:
        name: of the estimator.
        physical: whether the robot that is found must be able to exist.
        controller: whether controller and reference are known.
        scheme: how rows are to be written.
        significant: whether parameters are to be taken away.
        known_friction: whether curves that were measured before are to be taken off the torque.
    """
    of = spelled_estimator(name).of
    if of.physical_form == "itself":
        raise SteelyardError("Physical consistency is a choice of its own (--physical); name the estimator beneath it.")
    if physical and of.physical_form == "none":
        raise SteelyardError(f"'{name}' has no physically possible form; add --free, or use wls.")
    if of.needs_controller and not controller:
        raise SteelyardError(f"'{name}' simulates the closed loop: give --controller FILE.")
    if of.needs == "rows":
        if controller:
            raise SteelyardError(f"'{name}' has no use for a controller; leave --controller out.")
        return
    if scheme != "dynamic":
        raise SteelyardError(f"'{name}' works on the motion itself, not on rows of a scheme; leave --scheme out.")
    if significant or known_friction:
        option = "--significant" if significant else "--friction"
        raise SteelyardError(f"'{name}' cannot do {option}; use an estimator of rows, such as wls.")


def fit_both(
    name: str, data: Any, base: BaseParameters, prior: Prior | None = None, *, from_log: bool = False, **options: Any
) -> tuple[Estimate, Estimate]:
    """Free estimate by `name` and the possible one; `data`, `base`, `prior`, `from_log` as for `fit_by_name`.

    `options` are for `make_physical`, where that is used.
    """
    of = spelled_estimator(name).of
    check_use(name, physical=True, controller=of.needs_controller)
    form = of.physical_form
    if form == "constrained":
        free, possible = make_physical(name, **options).fit_both(data, base, prior)
        if not of.weights_like:
            return free, possible
        return fit_by_name(name, data, base, prior, from_log=from_log), possible  # its own end, and the way there
    if form == "nearest":
        from steelyard.estimation.possible.physical import nearest_possible

        free = fit_by_name(name, data, base, prior, from_log=from_log)
        return free, nearest_possible(free, prior)
    possible = fit_by_name(name, data, base, prior, physical=True, from_log=from_log)
    try:
        return fit_by_name(name, data, base, prior, from_log=from_log), possible
    except EstimationError:  # a free fit may pass through robots that cannot be simulated
        return possible, possible


def fit_log(
    base: BaseParameters, log: LogLike, *, scheme: str | Scheme = "dynamic", estimator: str = "wls"
) -> Estimate:  # fmt: skip
    """Estimate the parameters of `base` from the samples of `log`, all of them, without filter or mask.

    For simulated logs and for signals that are smooth already; what the log lacks of dq and ddq is the backward
    difference. `scheme` and `estimator` are names as for `identify`, which is for logs of real sensors: it filters,
    masks, scores and keeps to what is physically possible, and this does not.
    """
    from steelyard.regression.schemes import make_scheme, paper_motion

    motions = paper_motion(as_log(log, base.robot))
    data = make_scheme(scheme).data(base.structure.dynamics, base, lambda: motions)
    return make_estimator(estimator).fit(data, base)
