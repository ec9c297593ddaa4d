"""What a predicted torque is made of, and how sure the prediction is: computed for pages, from a result and a score."""

from __future__ import annotations

import numpy as np

from steelyard.assessment.score import Score
from steelyard.ground.arrays import Array
from steelyard.identification.identification import Identification

# Half the width of an interval that holds 95 of 100 samples, in standard deviations.
_WIDTH = 1.96
# Instants at which the error of the parameters is asked for; between them it changes slowly.
_INSTANTS = 1500


def prediction_band(found: Identification, score: Score) -> Array | None:
    """Half the 95 % band around the torques that a model that was `found` predicts in a `score`, `(rows, joints)`.

    Two things make it: the covariance of the base parameters, along the motion, and what the model leaves of the logs
    that it was fitted to (root mean square, as scored), which is noise and all that the model lacks. None where a score
    has no accelerations.
    """
    if not len(score.ddq):
        return None
    robot, base = found.robot, found.base
    used = np.flatnonzero(robot.torque_used)
    some = np.unique(np.linspace(0, len(score.t) - 1, _INSTANTS).astype(int))
    q, dq, ddq = (x[some] for x in (score.q, score.dq, score.ddq))
    dynamics = base.structure.dynamics
    past = dynamics.history(q, dq, ddq, found.model.theta[: len(base.parameters)]) if dynamics.terms.history else None
    rows = base.regressor_columns(dynamics.torque_regressor(q, dq, ddq, history=past))[:, used]
    variance = np.einsum("ija,ab,ijb->ij", rows, found.estimate.covariance, rows, optimize=True)
    left = np.mean([[j.rmse**2 for j in s.joints] for s in found.identification], axis=0)
    band = _WIDTH * np.sqrt(np.maximum(variance, 0.0) + left)
    return np.column_stack([np.interp(score.t, score.t[some], band[:, k]) for k in range(len(used))])


def friction_torque(found: Identification, q: Array, dq: Array, steady: bool = False) -> Array:
    """The torque of all terms that dissipate in the model that was `found`, `(samples, joints)`.

    Args:
        found: the identification.
        q: positions, rad (m), `(samples, joints)`.
        dq: velocities, like `q`.
        steady: after a long motion at each velocity, instead of along one.
    """
    model = found.model
    rubs = [False] * found.robot.inertial_count + model.terms.per_parameter(lambda term, _: term.dissipative)
    theta = np.where(rubs, model.theta, 0.0)
    still, past = np.zeros_like(q), None
    if model.remembers and steady:
        rigid = list(model.rigid_torque(q, dq, still).T)
        signals = model.terms.steady(list(q.T), list(dq.T), rigid)
        past = np.column_stack([np.broadcast_to(s, len(q)) for s in signals])
    elif model.remembers:
        past = model.dynamics.history(q, dq, still, model.theta)
    return model.dynamics.inverse_dynamics(q, dq, still, theta, past)


def torque_parts(found: Identification, score: Score) -> dict[str, Array]:
    """Gravity, inertia, Coriolis, friction and the rest (offsets, springs) of the torque along a `score` by the model
    that was `found`, each `(rows, joints)` of the joints whose torque is used; empty without accelerations."""
    if not len(score.ddq):
        return {}
    model, used = found.model, np.flatnonzero(found.robot.torque_used)
    q, dq, ddq = score.q, score.dq, score.ddq
    still = np.zeros_like(q)
    gravity = model.rigid_torque(q, still, still)
    parts = {
        "gravity": gravity,
        "inertia": model.rigid_torque(q, still, ddq) - gravity,
        "Coriolis and centrifugal": model.rigid_torque(q, dq, still) - gravity,
        "friction": friction_torque(found, q, dq),
    }
    rest = model.torque(q, dq, ddq) - sum(parts.values())
    return {name: part[:, used] for name, part in {**parts, "offsets, springs and other": rest}.items()}
