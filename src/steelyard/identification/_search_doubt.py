"""How far to believe a structure that was found: what its parameters do without a block, and in others like it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.estimation.linear.block_jackknife import jackknife
from steelyard.ground.arrays import Array
from steelyard.identification._doubt import Doubt
from steelyard.parameters.actuators import Rotor
from steelyard.parameters.friction import Viscous
from steelyard.parameters.hysteresis import Lag
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.regression.block_grams import Fits, Weighted

if TYPE_CHECKING:
    from steelyard.identification._search import Search

# Of the squared error that is left, the part that is taken to be friction of a shape that was not offered, not noise.
# Chosen by coverage on simulated arms (docs/theory/structure.md).
_MISFIT = 0.05


def doubt_of(found: Search, terms: Terms, sums: Weighted, fits: Fits) -> Doubt:
    """How far parameters wander without a block each, and between structures that are about as good."""
    whole, errors = fits.x[0], found.grams.left_out(fits)
    between = np.zeros(found.grams.size)
    for e, late in enumerate(_lags(found, whole)):
        between += _by_others(found, e, sums, fits, errors[:, e]) + _by_late_friction(found, e, late, whole)
        for offer in (o for o in found.offers[e] if found.structure[o.columns].all() and not o.instead):
            less = fits.less(offer.columns, found.grams.bounded).x
            a, b, _ = found.compare(e, errors[:, e], found.grams.left_out_of(e, less[:, :, None])[:, 0])
            # What is still not explained, but for noise, leans on the parameters as what the term explains would.
            left = min(_MISFIT * a**2 / max(b**2 - a**2, 1e-300), 1.0)
            between += left * (less[0] - whole) ** 2
    wander = jackknife(list(fits.x[1:]))
    names = _names(found, terms)
    by_name = [{names[c]: float(v[c]) for c in np.flatnonzero(found.structure)} for v in (wander, between)]
    return Doubt(by_name[0], by_name[1], found.grams.blocks)


def _by_others(found: Search, equation: int, sums: Weighted, fits: Fits, errors: Array) -> Array:
    """How far parameters move, squared, if a joint had one term more that predicts about as well as none.

    The mean over all of them; in full by the best one, where it predicts better by more than its doubt and was not
    taken only because it gains little: what it explains leans on the parameters.
    """
    # Of shapes over the position there are many that do next to nothing; they would thin the mean out.
    more = [o.columns for o in found.open(equation) if not o.term.of_position]
    near, best, least = [], np.zeros(found.grams.size), np.inf
    with_one, trials = sums.extended(fits, equation, more)
    for columns, x, after in zip(more, with_one[0].T, trials, strict=True):
        # A candidate that stands at its bound is no other structure.
        if not np.all(np.isfinite(after)) or np.all(x[columns] == 0.0):
            continue
        a, b, doubt = found.compare(equation, errors, after)
        moved = (x - fits.x[0]) ** 2
        if b - a <= doubt:
            near.append(moved)
        if a - b > doubt and b < least:
            best, least = moved, b
    return np.maximum(np.mean(near, axis=0), best) if near else best


def _lags(found: Search, whole: Array) -> list[float]:
    """How late each joint's torque is, s; where none was found, as late as the others, since drives are alike."""
    own = [[whole[o.columns[0]] for o in offers if isinstance(o.term, Lag)] for offers in found.offers]
    late = [float(sum(x)) for x in own]
    common = float(np.median([x for x in late if x] or [0.0]))
    return [x or common for x in late]


def _by_late_friction(found: Search, equation: int, late: float, whole: Array) -> Array:
    """How far parameters lean, squared, because friction is late as well: Td·Fv looks like a rotor."""
    joint, out = found.used[equation], np.zeros(found.grams.size)
    here = found.study.terms.per_parameter(lambda t, c: type(t) if (c.side, c.index) == ("joint", joint) else None)
    if late and Rotor in here and Viscous in here:
        rotor, drag = (found.base.matrix[:, found.robot.inertial_count + here.index(k)] for k in (Rotor, Viscous))
        damping = float(whole[: found.base.rank] @ drag) / max(float(drag @ drag), 1e-300)
        out[: found.base.rank] = (late * damping * rotor) ** 2
    return out


def _names(found: Search, terms: Terms) -> list[str]:
    """What `terms` call the parameters of all columns; those that the structure has not have none."""
    after = iter(terms.parameters)
    placed: dict[tuple[Term, str, int], list[str]] = {}
    for term, c in terms.placed:
        placed[replace(term, where=None), c.side, c.index] = [next(after).name for _ in term.columns]
    usual = [p.name for p in found.base.parameters[: found.robot.inertial_count]]
    for term, c in found.study.terms.placed:
        usual += placed.get((replace(term, where=None), c.side, c.index), [""] * len(term.columns))
    names = [usual[c] for c in found.base.independent]
    for joint, offers in zip(found.used, found.offers, strict=True):
        for o in offers:
            names += placed.get((replace(o.term, where=None), "joint", joint), [""] * len(o.columns))
    return names
