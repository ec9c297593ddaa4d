"""Limits load-dependent friction to the joint loads in the identification logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array
from steelyard.parameters.hysteresis import LoadedTerm
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms
from steelyard.study import Study

# Relative RMS difference below which the loads of two models count as equal; load-dependent friction is wrong by as
# much.
_SAME_LOAD = 0.05


def largest_loads(study: Study, model: Model) -> Array:
    """Compute the largest load torque of links and rotors on each joint in a study's logs [N m, N].

    Args:
        study: Study whose beginnings are used.
        model: Model whose links and rotors are the load.
    """
    return np.asarray(np.max([np.max(np.abs(x), axis=0) for x in _loads(study, model)], axis=0))


def limit_loads(study: Study, model: Model) -> Terms:
    """Set the load limits of a study's load-dependent terms to the largest loads in its logs.

    Args:
        study: Study with terms from a search.
        model: Model whose links and rotors are the load.
    """
    largest = dict(zip(study.robot.joint_names, largest_loads(study, model), strict=True))
    terms: list[Term] = []
    for term in study.terms.terms:
        if isinstance(term, LoadedTerm) and term.load_limit and term.where is not None:
            terms += [replace(term, where=(name,), load_limit=float(largest[name])) for name in term.where]
        else:
            terms.append(term)
    return Terms(study.robot, tuple(terms))


def same_loads(study: Study, model: Model, other: Model) -> bool:
    """Return whether two models give the same joint loads within 5 % along a study's logs.

    Args:
        study: Study whose beginnings are used.
        model: Reference model.
        other: Model to compare with.
    """
    difference = total = 0.0
    for load, other_load in zip(_loads(study, model), _loads(study, other), strict=True):
        difference, total = difference + np.sum((load - other_load) ** 2, axis=0), total + np.sum(load**2, axis=0)
    return bool(np.all(difference <= _SAME_LOAD**2 * total))


def _loads(study: Study, model: Model) -> list[Array]:
    motions = (m for k in range(len(study.beginnings)) for m in study.first_motions(k))
    return [model.rigid_torque(m.q, m.dq, m.ddq) for m in motions]
