"""Adds a counterbalance term if the physically possible fit is much worse than the free fit.

A spring, gas strut or mass that balances an arm acts like gravity with the wrong sign. The free fit absorbs it in the
gravity parameters, since both have the columns sin q and cos q, so cross-validation cannot detect it. Physically
possible links cannot absorb it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from steelyard.estimation.estimate import Estimate, EstimationError
from steelyard.parameters.actuators import Counterbalance
from steelyard.parameters.terms import Terms
from steelyard.study import Study

# Relative excess of the possible fit's cost over the free fit's that indicates a missing term. Correct descriptions
# have an excess of up to a quarter.
_SUSPICIOUS = 0.5
# A counterbalance must remove more than this share of the excess.
_LEAST_REDUCTION = 0.5
# Number of joints to try, those with the largest growth of residuals first.
_MOST_JOINTS = 2

Pair = tuple[Estimate, Estimate]


def add_counterbalance(study: Study, fits: Callable[[Study], Pair], pair: Pair) -> tuple[Study, Pair]:
    """Add a counterbalance to the joint that needs one; return the study and its fits, unchanged if none does.

    Args:
        study: Study with the default terms.
        fits: Function that computes the free and the possible fit of a study.
        pair: Free and possible fit of `study`.
    """
    gap = _gap(pair)
    if not gap > _SUSPICIOUS:
        return study, pair
    used = [int(j) for j in np.flatnonzero(study.robot.torque_used)]
    growth = pair[1].residual_std / np.maximum(pair[0].residual_std, 1e-300)
    worst = [used[e] for e in np.argsort(-growth)][:_MOST_JOINTS]
    best = study, pair
    for joint in worst:
        name = study.robot.joint_names[joint]
        known = any(t.kind == Counterbalance.kind and t.where in (None, (name,)) for t in study.terms.terms)
        if known or study.robot.joints[joint].kind != "revolute":
            continue
        terms = Terms(study.robot, (*study.terms.terms, Counterbalance(where=(name,))))
        trial = replace(study, terms=terms)
        try:
            fitted = fits(trial)
        except EstimationError:
            continue  # the motion is too small to tell a counterbalance from the links' own gravity
        if _gap(fitted) < min(_gap(best[1]), (1.0 - _LEAST_REDUCTION) * gap):
            best = trial, fitted
    return best


def _gap(pair: Pair) -> float:
    """Return the relative excess of the possible fit's cost."""
    free, possible = pair
    return float(possible.cost / free.cost - 1.0) if free.cost > 0.0 else 0.0
