"""Choose a law of friction by leaving points out, one speed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.errors import SteelyardError
from steelyard.friction.laws import LAWS, FittedLaw, Law, fit_law
from steelyard.ground.arrays import Array


@dataclass(frozen=True, eq=False)
class Choice:
    """The law that was chosen, fitted to all points, and what every candidate's error was on points left out."""

    fitted: FittedLaw
    scores: dict[str, float]


def choose_law(
    velocity: Array,
    torque: Array,
    error: Array,
    candidates: Sequence[Law] = (),
    temperature: Array | None = None,
    load: Array | None = None,
) -> Choice:
    """The simplest law whose error on left-out points is within one standard error of the best (Breiman's rule).

    Points of one speed and direction are left out together: their neighbours in time are no independent witnesses.
    """
    laws = list(candidates) or list(LAWS.values())
    both = np.any(velocity > 0.0) and np.any(velocity < 0.0)
    usable = [law for law in laws if both or not law.name.endswith("asymmetric")]
    groups = _groups(velocity)
    levels = distinct_speeds(velocity)
    usable = [law for law in usable if levels >= law.unknowns // (2 if law.name.endswith("asymmetric") else 1)]
    scores: dict[str, float] = {}
    spread: dict[str, float] = {}
    for law in usable:
        errors = _left_out(law, groups, velocity, torque, error, temperature, load)
        if errors is not None:
            scores[law.name] = float(np.mean(errors))
            spread[law.name] = float(np.std(errors, ddof=1) / np.sqrt(len(errors)))
    if not scores:
        raise SteelyardError(
            f"{len(velocity)} points at {levels} different speeds are too few for any law of friction; measure at more "
            "speeds."
        )
    best = min(scores, key=lambda name: scores[name])
    limit = scores[best] + spread[best]
    near = [law for law in usable if scores.get(law.name, np.inf) <= limit]
    chosen = min(near, key=lambda law: (law.unknowns, scores[law.name]))
    return Choice(fit_law(chosen, velocity, torque, error, temperature, load), scores)


def distinct_speeds(velocity: Array) -> int:
    """How many different speeds there are, to 10 %."""
    levels = np.sort(np.abs(velocity))
    return int(np.count_nonzero(np.diff(np.log(levels)) > 0.1)) + 1 if len(levels) else 0


def _groups(velocity: Array) -> list[Array]:
    """Indices of points whose speeds are the same within 3 %, by direction."""
    order = np.argsort(velocity)
    out: list[list[int]] = []
    for k in order:
        if out and abs(velocity[k] - velocity[out[-1][0]]) <= 0.03 * abs(velocity[k]):
            out[-1].append(int(k))
        else:
            out.append([int(k)])
    return [np.array(g) for g in out]


def _left_out(
    law: Law,
    groups: Sequence[Array],
    v: Array,
    y: Array,
    error: Array,
    temperature: Array | None,
    load: Array | None,
) -> Array | None:
    """Squared errors of the points of each group, in their own standard errors, by a fit to the others."""
    out = []
    for group in groups:
        rest = np.setdiff1d(np.arange(len(v)), group)
        others = v[rest]
        split = law.name.endswith("asymmetric")
        if len(rest) < law.unknowns or (split and min(np.sum(others > 0), np.sum(others < 0)) <= law.unknowns // 2):
            return None
        fitted = fit_law(
            law, v[rest], y[rest], error[rest],
            None if temperature is None else temperature[rest], None if load is None else load[rest],
        )  # fmt: skip
        for k in group:
            warm = None if temperature is None else float(np.clip(temperature[k], *fitted.range))
            value = fitted(v[k], warm, 0.0 if load is None else load[k])
            out.append(float(((value - y[k]) / max(error[k], 1e-12)) ** 2))
    return np.array(out) if len(out) >= 3 else None
