"""The same torques from fewer numbers: a model whose parameters are its base parameters and zeros."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import StructureError
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import base_parameters

# Regrouping is exact but for rounding; where the structure is not clear enough for that it is not done.
_ROUNDING = 2e-13
_STATES = 32


def regrouped(model: Model) -> Model:
    """A model with the same torques and the same mass matrix, most of whose parameters are zero.

    Zeros drop out of traced code: a six-axis arm loses a fifth of its operations, and most of those of its gravity
    torque. The parameters mean nothing one by one. Where the structure cannot be decided the model comes back.
    """
    robot = model.robot.with_torque_used(model.robot.joint_names)
    try:
        base = base_parameters(robot, Terms(robot, model.terms.terms))
    except StructureError:
        return model
    theta = np.zeros(len(model.theta))
    theta[list(base.independent)] = base.values(model.theta)
    lean = Model(model.robot, model.terms, theta)
    return lean if _same(lean, model) else model


def _same(a: Model, b: Model) -> bool:
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, _STATES, a.robot.dof))
    still = np.zeros_like(q)
    pairs = [
        (a.torque(q, dq, ddq), b.torque(q, dq, ddq)),
        (a.torque(q, still, still), b.torque(q, still, still)),
        (a.mass_matrix(q), b.mass_matrix(q)),
    ]
    return all(float(np.max(np.abs(x - y))) <= _ROUNDING * float(np.max(np.abs(y))) for x, y in pairs)
