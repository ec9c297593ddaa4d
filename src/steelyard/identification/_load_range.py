"""How far friction under load may grow: up to the loads that the identification logs have shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.hysteresis import LoadedTerm
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.study import Study

# The loads of two models count as the same where they differ by less than this part (root mean square): friction under
# load is off by as much.
_SAME_LOAD = 0.05


def largest_loads(study: Study, model: Model) -> Array:
    """Compute the largest torque of links and rotors that each joint has carried in a study's logs [N m, N].

    Args:
        study: Study whose beginnings are looked at.
        model: Model whose links and rotors are carried.
    """
    return np.asarray(np.max([np.max(np.abs(x), axis=0) for x in _loads(study, model)], axis=0))


def limited_loads(study: Study, model: Model) -> Terms:
    """Give a study's terms whose load is limited the limits that `model` carries in its logs; others stay.

    Args:
        study: Study with terms from a search.
        model: Model whose links and rotors are carried.
    """
    largest = dict(zip(study.robot.joint_names, largest_loads(study, model), strict=True))
    made: list[Term] = []
    for term in study.terms.terms:
        if isinstance(term, LoadedTerm) and term.load_limit and term.where is not None:
            made += [replace(term, where=(name,), load_limit=float(largest[name])) for name in term.where]
        else:
            made.append(term)
    return Terms(study.robot, tuple(made))


def same_loads(study: Study, model: Model, other: Model) -> bool:
    """Tell whether the joints carry the same by two models along a study's logs, but for 5 %.

    Args:
        study: Study whose beginnings are looked at.
        model: Model whose loads are the measure.
        other: Model to compare with.
    """
    away = total = 0.0
    for carried, said in zip(_loads(study, model), _loads(study, other), strict=True):
        away, total = away + np.sum((carried - said) ** 2, axis=0), total + np.sum(carried**2, axis=0)
    return bool(np.all(away <= _SAME_LOAD**2 * total))


def _loads(study: Study, model: Model) -> list[Array]:
    motions = (m for k in range(len(study.beginnings)) for m in study.first_motions(k))
    return [model.rigid_torque(m.q, m.dq, m.ddq) for m in motions]
