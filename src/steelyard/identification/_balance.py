"""A counterbalance where gravity alone is not possible.

A spring, a gas strut or a mass that balances an arm acts as gravity of the wrong sign would. A free fit takes it for
such; links that can exist cannot, and leave far more unexplained. On left-out blocks of the free fit it cannot be seen:
its columns, sin q and cos q of a joint, are those of gravity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from steelyard.estimation.estimate import Estimate
from steelyard.parameters.actuators import Counterbalance
from steelyard.parameters.terms import Terms
from steelyard.study import Study

# Where the possible fit's sum of squares is beyond the free one's by more than this part, something is missing that
# is not friction; on sound descriptions it is beyond it by hundredths to a quarter.
_SUSPICIOUS = 0.5
# A counterbalance is taken where it makes up for more than this part of that.
_MADE_UP = 0.5
# Joints that are tried, those first whose residuals suffer most.
_TRIED = 2

Pair = tuple[Estimate, Estimate]


def balanced(study: Study, fits: Callable[[Study], Pair], pair: Pair) -> tuple[Study, Pair]:
    """The study with a counterbalance at the joint that has one, and its fits; as they are where none is missing.

    Args:
        study: with the usual terms.
        fits: of a study, the free fit and the possible one.
        pair: those of `study`.
    """
    gap = _gap(pair)
    if not gap > _SUSPICIOUS:
        return study, pair
    used = [int(j) for j in np.flatnonzero(study.robot.torque_used)]
    suffers = pair[1].residual_std / np.maximum(pair[0].residual_std, 1e-300)
    worst = [used[e] for e in np.argsort(-suffers)][:_TRIED]
    best = study, pair
    for joint in worst:
        name = study.robot.joint_names[joint]
        known = any(t.kind == Counterbalance.kind and t.where in (None, (name,)) for t in study.terms.terms)
        if known or study.robot.joints[joint].kind != "revolute":
            continue
        terms = Terms(study.robot, (*study.terms.terms, Counterbalance(where=(name,))))
        trial = replace(study, terms=terms)
        found = fits(trial)
        if _gap(found) < min(_gap(best[1]), (1.0 - _MADE_UP) * gap):
            best = trial, found
    return best


def _gap(pair: Pair) -> float:
    """By what part the possible fit leaves more than the free one."""
    free, possible = pair
    return float(possible.cost / free.cost - 1.0) if free.cost > 0.0 else 0.0
