"""What a predicted torque is made of, and how sure the prediction is: computed for pages, from a result and a score."""

from __future__ import annotations

import numpy as np

from steelyard.assessment.score import Score
from steelyard.assessment.torque_band import JointBand, TorqueBand, error_spread
from steelyard.ground.arrays import Array
from steelyard.identification.identification import Identification

# Of the speed that a joint reaches, the part at which friction is dry but for little, and not rounded any more.
_SLOW = 0.2
# Positions at which dry friction is asked for.
_PLACES = 50


def prediction_band(found: Identification, score: Score) -> Array | None:
    """Half the 95 % band around the torques that a model that was `found` predicts in a `score`, `(rows, joints)`.

    None where a score has no accelerations.
    """
    return found.torque_band.half_width(score.q, score.dq, score.ddq, score.standing) if len(score.ddq) else None


def torque_band_of(found: Identification) -> TorqueBand:
    """The band of the model that was `found`, from what it leaves of the logs that it was fitted to."""
    errors = np.concatenate([s.measured - s.predicted for s in found.identification])
    standing = np.concatenate([s.standing for s in found.identification])
    names = [j.joint for j in found.identification[0].joints]
    friction = _standstill_friction(found)
    joints = tuple(
        JointBand(name, *error_spread(errors[:, k], standing[:, k]), float(friction[k])) for k, name in enumerate(names)
    )
    return TorqueBand(joints, found.score_cutoff_hz, found.base, found.estimate.covariance, found.model)


def _standstill_friction(found: Identification) -> Array:
    """The dry friction of each used joint by the model that was `found`: half the jump between both directions."""
    s = found.identification[0]
    q = s.q[np.unique(np.linspace(0, len(s.q) - 1, _PLACES).astype(int))]
    speed = _SLOW * np.max([np.quantile(np.abs(x.dq), 0.99, axis=0) for x in found.identification], axis=0)
    out = []
    for j in np.flatnonzero(found.robot.torque_used):
        dq = np.zeros_like(q)
        dq[:, j] = speed[j]
        forth, back = (friction_torque(found, q, way * dq, steady=True)[:, j] for way in (1.0, -1.0))
        out.append(0.5 * np.mean(np.abs(forth - back)))
    return np.array(out)


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
    if model.has_memory and steady:
        rigid = list(model.rigid_torque(q, dq, still).T)
        signals = model.terms.steady(list(q.T), list(dq.T), rigid)
        past = np.column_stack([np.broadcast_to(s, len(q)) for s in signals])
    elif model.has_memory:
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
