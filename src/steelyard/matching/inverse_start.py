"""The linear start: inverse dynamics along the smooth motion, with the torque of the drives' law or the measured one.

τ(t − T) = Y(q − b, q̇, q̈) θ + Ia q̈ + Fv q̇ + Fc sign q̇ is linear in θ and the joint numbers; it does not need a
simulation. Gauss–Newton estimates the others (delay T, encoder zeros b, gains). Weights count independent rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.matching.command_stretch import CommandStretch
from steelyard.matching.gaussian_fit import chosen_link_std, solve_bounded
from steelyard.matching.match_coordinates import JOINT_BLOCKS, MatchCoordinates, MatchPoint
from steelyard.matching.window_rollout import Physics

_ROUNDS = 8
# The sign of a velocity below this share of the joint's rms speed is uncertain; a smooth function replaces it.
_ROUNDED = 0.05
# Largest number of rows; more rows add little information, because the motion has a low-pass.
_MOST_ROWS = 4000


@dataclass(frozen=True, eq=False)
class LinearStart:
    """Result of the linear start.

    Attributes:
        coordinates: Parameters of the match with the chosen weight of the description.
        z: Their values.
        torque_error: Root mean square of the torque residual of each joint [N m, N].
        torque_size: Standard deviation of each joint's torque [N m, N].
    """

    coordinates: MatchCoordinates
    z: Array
    torque_error: Array
    torque_size: Array


def linear_start(physics: Physics, coordinates: MatchCoordinates, stretches: Sequence[CommandStretch]) -> LinearStart:
    """Fit the inverse dynamics.

    Args:
        physics: Robot.
        coordinates: Parameters of the match with their prior.
        stretches: Pieces of the logs.
    """
    step = max(1, int(np.ceil(sum(s.motion.rows for s in stretches) / _MOST_ROWS)))
    z = coordinates.centre
    measured = all(s.torque is not None for s in stretches)
    for _ in range(_ROUNDS):
        parts = [_rows(physics, coordinates, s, z, step, measured) for s in stretches]
        r = np.concatenate([p[0] for p in parts])
        J = np.concatenate([p[1] for p in parts])
        weight = _weights(r, parts[0][2])
        H = np.einsum("tjp,tj,tjq->pq", J, np.broadcast_to(weight, r.shape), J, optimize=True)
        g = np.einsum("tjp,tj,tj->p", J, np.broadcast_to(weight, r.shape), r, optimize=True)
        coordinates = chosen_link_std(coordinates, H, g + H @ z)
        new = solve_bounded(H, g + H @ z, coordinates)
        done = np.max(np.abs(new - z) / coordinates.stds) < 1e-3
        z = new
        if done:
            break
    point = coordinates.point(z)
    size = np.std(np.concatenate([_law(s, point)[s.motion.keep] for s in stretches]), axis=0)
    return LinearStart(coordinates, z, np.sqrt(np.mean(r[:, : len(size)] ** 2, axis=0)), size)


def _law(s: CommandStretch, point: MatchPoint) -> Array:
    """Torque of the drives along the smooth motion, filtered like it."""
    raw = point.drives.torque(s.goal, s.q, s.motion.dq, s.feed_forward)
    return np.asarray(s.motion.filter(raw))


def _rows(
    physics: Physics, coordinates: MatchCoordinates, s: CommandStretch, z: Array, step: int, measured: bool
) -> tuple[Array, Array, float]:
    """Compute residuals and slopes of a stretch, and the share of its rows that are independent."""
    n, base, m = physics.robot.dof, coordinates.base, s.motion
    point = coordinates.point(z)
    h, d = s.period, point.drives
    keep = slice(m.keep.start, m.keep.stop, (m.keep.step or 1) * step)
    low = m.filter

    def late(x: Array) -> Array:
        t = h * np.arange(len(x))
        return np.column_stack([np.interp(t - d.delay, t, column) for column in x.T])

    def smooth(x: Array) -> Array:
        return np.asarray(low(x))

    # A zero-order hold delays the goal by half a sample on average.
    half = np.vstack([s.goal[:1], 0.5 * (s.goal[1:] + s.goal[:-1])])
    feed = s.feed_forward
    if d.delayed == "torque":
        law = late(smooth(d.torque(half, s.q, m.dq, feed)))
        rate = np.gradient(law, h, axis=0)
    else:
        law = smooth(d.torque(late(half), s.q, m.dq, late(feed)))
        rate = d.kp * np.gradient(late(smooth(half)), h, axis=0)
    error = late(smooth(half - s.q)) if d.delayed == "torque" else smooth(late(half) - s.q)
    speed = late(smooth(m.dq)) if d.delayed == "torque" else smooth(m.dq)
    at = (m.q[keep] - point.bias, m.dq[keep], m.ddq[keep])
    rounded = _ROUNDED * np.sqrt(np.mean(m.dq**2, axis=0)) + 1e-12
    sign = np.tanh(m.dq[keep] / rounded)
    state = {"q": at[0], "dq": at[1], "ddq": at[2]}
    model = physics.links.inverse_dynamics(**state, theta=point.links)
    model = model + at[2] * point.armature + at[1] * point.viscous + sign * point.dry
    parts = {
        "beta": base.regressor_columns(physics.links.torque_regressor(*at)),
        "armature": _diagonal(at[2]), "viscous": _diagonal(at[1]), "dry": _diagonal(sign),
        "bias": -physics.links.jacobian("inverse_dynamics", "q", **state, theta=point.links),
        "delay": rate[keep][..., None],
        "kp": _diagonal(-error[keep]), "kd": _diagonal(speed[keep]), "limit": np.zeros((len(sign), n, n)),
    }  # fmt: skip
    slope = coordinates.slope(z, point)
    sizes = [base.rank, *(1 if b == "delay" else n for b in JOINT_BLOCKS)]
    if not measured:
        return law[keep] - model, np.concatenate([parts[b] for b in ("beta", *JOINT_BLOCKS)], axis=2) @ slope, _share(s)
    # With a torque sensor, the dynamics and the law of the drives are two sets of rows.
    assert s.torque is not None
    sensor = smooth(s.torque)[keep]
    rigid, law_part = dict(parts), dict(parts)
    for b in ("delay", "kp", "kd"):
        rigid[b] = np.zeros_like(parts[b])
    for b in ("beta", "armature", "viscous", "dry", "bias"):
        law_part[b] = np.zeros_like(parts[b])
    J = np.concatenate(
        [np.concatenate([part[b] for b in ("beta", *JOINT_BLOCKS)], axis=2) for part in (rigid, law_part)], axis=1
    )
    assert J.shape[2] == sum(sizes)
    return np.concatenate([sensor - model, law[keep] - sensor], axis=1), J @ slope, _share(s)


def _diagonal(x: Array) -> Array:
    return np.asarray(x[:, :, None] * np.eye(x.shape[1]))


def _share(s: CommandStretch) -> float:
    """Independent rows per row: a low-pass leaves two independent numbers per period of its cut-off."""
    return min(1.0, 2.0 * s.motion.filter.cutoff_hz * s.period)


def _weights(r: Array, share: float) -> Array:
    """Weight of each joint's rows: inverse variance, times the share of independent rows."""
    scale = 1.4826 * np.median(np.abs(r), axis=0)
    scale = np.maximum(scale, 1e-6 * max(float(np.max(np.abs(r))), 1e-12))
    return share / scale**2
