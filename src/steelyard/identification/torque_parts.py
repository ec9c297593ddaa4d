"""Splits predicted torques into physical parts and computes their prediction bands."""

from __future__ import annotations

import numpy as np

from steelyard.assessment.score import Score
from steelyard.assessment.torque_band import JointBand, TorqueBand, error_spread
from steelyard.ground.arrays import Array
from steelyard.identification.identification import Identification

# At this fraction of a joint's top speed, friction is mostly dry and no longer affected by rounding.
_SLOW_FRACTION = 0.2
# Number of positions to evaluate dry friction.
_POSITIONS = 50


def prediction_band(result: Identification, score: Score) -> Array | None:
    """Compute the half-width of the 95 % band around predicted torques, shape (rows, joints) [N m, N].

    Args:
        result: Identification with the model.
        score: Score of the log; without accelerations the result is None.
    """
    return result.torque_band.half_width(score.q, score.dq, score.ddq, score.standing) if len(score.ddq) else None


def torque_band_of(result: Identification) -> TorqueBand:
    """Compute the torque band of `result` from the residuals of the fitted logs."""
    errors = np.concatenate([s.measured - s.predicted for s in result.identification])
    standing = np.concatenate([s.standing for s in result.identification])
    names = [j.joint for j in result.identification[0].joints]
    friction = _standstill_friction(result)
    joints = tuple(
        JointBand(name, *error_spread(errors[:, k], standing[:, k]), float(friction[k])) for k, name in enumerate(names)
    )
    return TorqueBand(joints, result.score_cutoff_hz, result.base, result.estimate.covariance, result.model)


def _standstill_friction(result: Identification) -> Array:
    """Compute the dry friction of each used joint: half the jump between both directions."""
    s = result.identification[0]
    q = s.q[np.unique(np.linspace(0, len(s.q) - 1, _POSITIONS).astype(int))]
    speed = _SLOW_FRACTION * np.max([np.quantile(np.abs(x.dq), 0.99, axis=0) for x in result.identification], axis=0)
    out = []
    for j in np.flatnonzero(result.robot.torque_used):
        dq = np.zeros_like(q)
        dq[:, j] = speed[j]
        forth, back = (friction_torque(result, q, sign * dq, steady=True)[:, j] for sign in (1.0, -1.0))
        out.append(0.5 * np.mean(np.abs(forth - back)))
    return np.array(out)


def friction_torque(result: Identification, q: Array, dq: Array, steady: bool = False) -> Array:
    """Compute the torque of all dissipative terms of the model, shape (samples, joints) [N m, N].

    Args:
        result: Identification with the model.
        q: Positions [rad, m], shape (samples, joints).
        dq: Velocities [rad/s, m/s], shape (samples, joints).
        steady: Whether each row is a steady state at its velocity; otherwise the rows are one motion.
    """
    model = result.model
    dissipative = [False] * result.robot.inertial_count + model.terms.per_parameter(lambda term, _: term.dissipative)
    theta = np.where(dissipative, model.theta, 0.0)
    still, past = np.zeros_like(q), None
    if model.has_memory and steady:
        rigid = list(model.rigid_torque(q, dq, still).T)
        signals = model.terms.steady(list(q.T), list(dq.T), rigid)
        past = np.column_stack([np.broadcast_to(s, len(q)) for s in signals])
    elif model.has_memory:
        past = model.dynamics.history(q, dq, still, model.theta)
    return model.dynamics.inverse_dynamics(q, dq, still, theta, past)


def torque_parts(result: Identification, score: Score) -> dict[str, Array]:
    """Split the predicted torque of a log into gravity, inertia, Coriolis, friction and other terms.

    Args:
        result: Identification with the model.
        score: Score of the log; without accelerations the result is empty.

    Returns:
        Parts by name, each of shape (rows, joints with a used torque) [N m, N].
    """
    if not len(score.ddq):
        return {}
    model, used = result.model, np.flatnonzero(result.robot.torque_used)
    q, dq, ddq = score.q, score.dq, score.ddq
    still = np.zeros_like(q)
    gravity = model.rigid_torque(q, still, still)
    parts = {
        "gravity": gravity,
        "inertia": model.rigid_torque(q, still, ddq) - gravity,
        "Coriolis and centrifugal": model.rigid_torque(q, dq, still) - gravity,
        "friction": friction_torque(result, q, dq),
    }
    rest = model.torque(q, dq, ddq) - sum(parts.values())
    return {name: part[:, used] for name, part in {**parts, "offsets, springs and other": rest}.items()}
