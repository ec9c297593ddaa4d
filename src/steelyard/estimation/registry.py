"""Registry of the estimators by name, and functions that use it.

Each estimator registers itself with `@estimator("name")`. Its needs and abilities are attributes of its class
(`steelyard.estimation.estimate.Estimator`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, EstimationError, Estimator, EstimatorFamily, Prior
from steelyard.ground.registry import Registry
from steelyard.ground.verb_options import parse_named_options
from steelyard.regression.base_parameters import BaseParameters
from steelyard.signals.as_logs import LogLike, as_log

if TYPE_CHECKING:
    from steelyard.estimation.possible.physical import PhysicallyConsistent
    from steelyard.regression.schemes import Scheme

_Class = TypeVar("_Class", bound=type[Estimator[Any]])


@dataclass(frozen=True)
class RegisteredEstimator:
    """A registered estimator: its name, class, the fields that the name fixes, and one line about it."""

    name: str
    of: type[Estimator[Any]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Fields of the class that are not fixed by the name."""
        return tuple(f.name for f in fields(self.of) if f.name not in self.fixed)  # type: ignore[arg-type]

    def make(self, **options: Any) -> Estimator[Any]:
        """Create the estimator with `options`, by field; other fields have the defaults of the class."""
        for option in options:
            if option not in self.options:
                raise UnknownNameError(f"option of estimator '{self.name}'", option, self.options)
        return self.of(**self.fixed, **options)

    def with_options(self, **options: Any) -> RegisteredEstimator:
        """Return a copy with `options` fixed: fields of the class, or of nested settings such as `start` of a
        tuning."""
        fixed = dict(self.fixed)
        for name, inner in self._inner().items():
            own = {key: options.pop(key) for key in list(options) if key in {f.name for f in fields(inner)}}
            if own:
                fixed[name] = replace(inner, **own)
        return replace(self, fixed={**fixed, **options})

    @property
    def kinds(self) -> dict[str, str]:
        """Types of all options that can be written behind the name, except `physical`."""
        types = {f.name: str(f.type) for f in fields(self.of) if f.name in self.options}  # type: ignore[arg-type]
        for name, inner in self._inner().items():
            del types[name]
            types |= {f.name: str(f.type) for f in fields(inner)}
        simple = ("bool", "int", "float", "str", "Literal")
        return {name: kind for name, kind in types.items() if name != "physical" and kind.startswith(simple)}

    def _inner(self) -> dict[str, Any]:
        """Fields with nested settings, with their values for a log."""
        instance: Any = self.of(**{**self.of.log_settings, **self.fixed})
        values = {name: getattr(instance, name) for name in self.options}
        return {name: value for name, value in values.items() if is_dataclass(value)}

    @property
    def has_physical_form(self) -> bool:
        """Whether it has a physically possible form besides its free one."""
        return self.of.physical_form not in ("none", "itself")


def _from_entry_point(name: str, value: object) -> RegisteredEstimator:
    if not (isinstance(value, type) and issubclass(value, Estimator)):
        raise SteelyardError("it must be a subclass of steelyard.estimation.Estimator")
    return RegisteredEstimator(name, value, about=value.about)


# In order of use: a name is searched package by package.
_PACKAGES = ("linear", "possible", "recursion.rls", "simulation_error", "kalman", "neural")
ESTIMATORS: Registry[RegisteredEstimator] = Registry(
    "estimator", tuple(f"steelyard.estimation.{p}" for p in _PACKAGES), "steelyard.estimators", _from_entry_point
)


def estimator(name: str, about: str = "", **fixed: Any) -> Callable[[_Class], _Class]:
    """Decorate a class of estimators to register it under a name.

    Args:
        name: Name in commands and arguments.
        about: One line about it; default: that of the class.
        fixed: Fields of the class that the name fixes, as in `estimator("bisquare", loss="bisquare")`.
    """

    def register(of: _Class) -> _Class:
        ESTIMATORS.register(name)(RegisteredEstimator(name, of, fixed, about or of.about))
        return of

    return register


def spelled_estimator(text: str) -> RegisteredEstimator:
    """Parse a `text` with the name of an estimator and optional settings: "ekf:start=prior".

    >>> spelled_estimator("huber:tuning=2").make().tuning
    2.0
    """
    entry = ESTIMATORS[text.partition(":")[0]]
    if ":" not in text:
        return entry
    _, options = parse_named_options("estimator", text, entry.kinds, example="ekf:start=prior")
    return entry.with_options(**options)


def estimator_names(**claims: Any) -> tuple[str, ...]:
    """Return names by family, all or those of classes with `claims` like these: `estimator_names(needs="rows")`."""
    order = {family: k for k, family in enumerate(get_args(EstimatorFamily))}
    matching = [
        e for e in ESTIMATORS.values() if all(getattr(e.of, claim, None) == value for claim, value in claims.items())
    ]
    return tuple(e.name for e in sorted(matching, key=lambda e: (order[e.of.family], e.name)))


def estimator_help() -> str:
    """List all estimators in one line, for the help text of an option; imports all of them."""
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
    """Render all estimators as a Markdown table for the docs."""
    lines = ["| name | what it does | works on | physically possible form |", "|---|---|---|---|"]
    for entry in (ESTIMATORS[name] for name in estimator_names()):
        of = entry.of
        on = "rows" if of.needs == "rows" else "motions and controller" if of.needs_controller else "motions"
        lines.append(f"| `{entry.name}` | {entry.about} | {on} | {_FORMS[of.physical_form]} |")
    return "\n".join(lines) + "\n"


def make_estimator(name: str, **options: Any) -> Estimator[Any]:
    """Create an estimator by name.

    Args:
        name: Name of the estimator, with optional settings: "ekf:start=prior".
        options: Fields of its class.

    >>> make_estimator("physical", weighting="huber").weighting
    'huber'
    """
    return spelled_estimator(name).make(**options)


def make_experiment_estimator(name: str, **options: Any) -> Estimator[Any]:
    """Create an estimator of experiments by name.

    Args:
        name: Name of the estimator.
        options: Fields of its class.

    >>> make_experiment_estimator("cloe").signal
    'position'
    """
    if name not in ESTIMATORS or ESTIMATORS[name].of.needs != "experiment":
        raise UnknownNameError("estimator of experiments", name, estimator_names(needs="experiment"))
    return make_estimator(name, **options)


def make_physical(name: str, **options: Any) -> PhysicallyConsistent:
    """Create the physically consistent fit with the weights of a free estimator.

    For a ridge, the log-det divergence replaces its penalty. Recursive least squares and the networks use those of
    ordinary least squares, where their result is the same or similar.

    Args:
        name: Name of the free estimator.
        options: Fields of `PhysicallyConsistent`.
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
    """Estimate by a named estimator, free or in its physically possible form.

    Args:
        name: Name of the estimator.
        data: Rows or an experiment, as the estimator needs.
        base: Base parameters to estimate.
        prior: Prior knowledge.
        physical: Whether the result must be physically possible.
        from_log: Whether only a log and a description (the prior) are available.
    """
    entry = spelled_estimator(name)
    if physical and entry.of.physical_form != "rounds":
        return fit_both(name, data, base, prior, from_log=from_log)[1]
    options = {"physical": True} if physical else {}
    settings = {key: value for key, value in entry.of.log_settings.items() if from_log and key not in entry.fixed}
    return entry.make(**settings, **options).fit(data, base, prior)


def check_use(
    name: str,
    *,
    physical: bool = False,
    controller: bool = False,
    scheme: str = "dynamic",
    significant: bool = False,
    known_friction: bool = False,
) -> None:
    """Raise an error if an estimator cannot be used as requested.

    Args:
        name: Name of the estimator.
        physical: Whether the result must be physically possible.
        controller: Whether controller and reference are known.
        scheme: Scheme of the rows.
        significant: Whether insignificant parameters are removed.
        known_friction: Whether measured friction curves are subtracted from the torque.
    """
    of = spelled_estimator(name).of
    if of.physical_form == "itself":
        raise SteelyardError(
            "'physical' is no free estimator; give the option --physical together with one, such as wls."
        )
    if physical and of.physical_form == "none":
        raise SteelyardError(f"'{name}' has no physically possible form; add --free, or use wls.")
    if of.needs_controller and not controller:
        raise SteelyardError(f"'{name}' simulates the closed loop: give --controller FILE.")
    if of.needs == "rows":
        if controller:
            raise SteelyardError(f"'{name}' does not use a controller; omit --controller.")
        return
    if scheme != "dynamic":
        raise SteelyardError(f"'{name}' uses the motion and not the rows of a scheme; omit --scheme.")
    if significant or known_friction:
        option = "--significant" if significant else "--friction"
        raise SteelyardError(f"'{name}' does not support {option}; use an estimator of rows, such as wls.")


def fit_both(
    name: str, data: Any, base: BaseParameters, prior: Prior | None = None, *, from_log: bool = False, **options: Any
) -> tuple[Estimate, Estimate]:
    """Compute the free estimate and the physically possible one.

    Args:
        name: Name of the estimator.
        data: Rows or an experiment, as the estimator needs.
        base: Base parameters to estimate.
        prior: Prior knowledge.
        from_log: Whether only a log and a description (the prior) are available.
        options: Options of `make_physical`, if it is used.
    """
    of = spelled_estimator(name).of
    check_use(name, physical=True, controller=of.needs_controller)
    form = of.physical_form
    if form == "constrained":
        free, possible = make_physical(name, **options).fit_both(data, base, prior)
        if not of.weights_like:
            return free, possible
        return fit_by_name(
            name, data, base, prior, from_log=from_log
        ), possible  # the estimator's own result and history
    if form == "nearest":
        from steelyard.estimation.possible.physical import nearest_possible

        free = fit_by_name(name, data, base, prior, from_log=from_log)
        return free, nearest_possible(free, prior)
    possible = fit_by_name(name, data, base, prior, physical=True, from_log=from_log)
    try:
        return fit_by_name(name, data, base, prior, from_log=from_log), possible
    except EstimationError:  # a free fit may reach parameters that cannot be simulated
        return possible, possible


def fit_log(
    base: BaseParameters, log: LogLike, *, scheme: str | Scheme = "dynamic", estimator: str = "wls"
) -> Estimate:  # fmt: skip
    """Estimate base parameters from all samples of a log, without filter and mask.

    This is for simulated logs and signals that are already smooth; missing dq and ddq are computed as backward
    differences. Use `identify` for logs of real sensors: it filters, masks, scores and ensures physical consistency.

    Args:
        base: Base parameters to estimate.
        log: The log.
        scheme: Name of a scheme, as for `identify`.
        estimator: Name of an estimator, as for `identify`.
    """
    from steelyard.regression.schemes import make_scheme, paper_motion

    motions = paper_motion(as_log(log, base.robot))
    data = make_scheme(scheme).data(base.structure.dynamics, base, lambda: motions)
    return make_estimator(estimator).fit(data, base)
