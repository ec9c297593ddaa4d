"""The estimators that are compared, by name, with what each of them needs; found in the registries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.estimation.estimate import Estimate, Prior
from steelyard.estimation.possible.nearest_possible import nearest_possible
from steelyard.estimation.registry import (
    ESTIMATORS,
    EXPERIMENT_ESTIMATORS,
    FILTERS,
    NETWORKS,
    make_estimator,
    make_experiment_estimator,
    make_physical,
)
from steelyard.estimation.simulated.experiment import Experiment
from steelyard.regression.base_parameters import BaseParameters

Kind = Literal["rows", "network", "loop", "likelihood", "filter"]

# Physically consistent forms: of the same weights (`make_physical`), in every round (an option of those that simulate),
# or the nearest possible robot afterwards (`nearest_possible`).
_PHYSICAL_ROWS = ("ols", "wls", "huber", "bisquare", "tls", "rtls")
_PHYSICAL_LOOPS = ("didim", "cloe", "clie")
_PHYSICAL_AFTERWARDS = ("iv", "ml")
_PHYSICAL = "-physical"


@dataclass(frozen=True)
class Method:
    """An estimator as it stands in a comparison: `kind` says what it is fed with."""

    name: str
    kind: Kind

    @property
    def needs_controller(self) -> bool:
        """Whether it simulates the closed loop, and so must know controller and reference."""
        return self.kind == "loop"

    @property
    def physical(self) -> bool:
        """Whether it stays inside what is physically possible."""
        return self.name.endswith(_PHYSICAL)

    def fit(self, experiment: Experiment, base: BaseParameters, prior: Prior | None) -> Estimate:
        """Rows are made anew for every fit, so that the time of each includes them."""
        plain = self.name.removesuffix(_PHYSICAL)
        if self.kind in ("rows", "network"):
            made: Any = make_physical(plain) if self.physical else make_estimator(plain)
            found: Estimate = made.fit(experiment.regression(base), base, prior)
            return found
        if self.physical and plain in _PHYSICAL_AFTERWARDS:
            return nearest_possible(make_experiment_estimator(plain).fit(experiment, base, prior), prior)
        options = {"physical": True} if self.physical else {}
        return make_experiment_estimator(plain, **options).fit(experiment, base, prior)


def _known() -> dict[str, Method]:
    # "physical" is the same as wls-physical, and would stand there twice.
    rows = [name for name in ESTIMATORS if name not in ("physical", "hopfield-tank")]
    found = [Method(name, "rows") for name in rows]
    found += [Method(name + _PHYSICAL, "rows") for name in _PHYSICAL_ROWS if name in ESTIMATORS]
    found += [Method(name, "network") for name in (*(n for n in ESTIMATORS if n == "hopfield-tank"), *NETWORKS)]
    found += [Method(name, "likelihood" if name == "ml" else "loop") for name in EXPERIMENT_ESTIMATORS]
    found += [Method(name + _PHYSICAL, "loop") for name in _PHYSICAL_LOOPS]
    found += [Method(name, "filter") for name in FILTERS]
    kinds = {method.name: method.kind for method in found}
    found += [Method(name + _PHYSICAL, kinds[name]) for name in _PHYSICAL_AFTERWARDS if name in kinds]
    return {method.name: method for method in found}


METHODS: dict[str, Method] = _known()

# Names for several at once.
GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(METHODS),
    "rows": tuple(n for n, m in METHODS.items() if m.kind == "rows"),
    "networks": tuple(n for n, m in METHODS.items() if m.kind == "network"),
    "loops": tuple(n for n, m in METHODS.items() if m.kind == "loop"),
    "filters": tuple(n for n, m in METHODS.items() if m.kind == "filter"),
    "physical": tuple(n for n, m in METHODS.items() if m.physical),
}


def chosen_methods(names: Sequence[str]) -> tuple[Method, ...]:
    """By names and groups of names, in the order of the registry, each once; "-ukf" takes one away again."""
    wanted, away = set[str](), set[str]()
    for name in names:
        plain = name.removeprefix("-")
        if plain not in METHODS and plain not in GROUPS:
            raise UnknownNameError("estimator", plain, (*METHODS, *GROUPS))
        (away if name.startswith("-") else wanted).update(GROUPS.get(plain, (plain,)))
    left = (wanted or set(METHODS)) - away
    if not left:
        raise SteelyardError("No estimator is left to compare; name at least one.")
    return tuple(method for name, method in METHODS.items() if name in left)
