"""`replay`: play a log's torques to a model, open loop, and see how far it strays; and whether it can exist at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SimulationError
from steelyard.ground.arrays import Array
from steelyard.ground.renamed import renamed
from steelyard.parameters.hysteresis import Stop
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.schemes.still import STILL
from steelyard.signals.between import TorqueBetween, interval_means
from steelyard.signals.excerpt import part_of
from steelyard.signals.given import LogLike, as_log
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

# Random postures at which the mass matrix is looked at; the smallest eigenvalue of an arm varies slowly with them.
_POSTURES = 4096
# Fixed steps per sample of a replay, at most; friction that needs more is stiff beyond what a log can show.
_MOST_STEPS = 500
# Replays longer than this (s) say more about instability than about parameters: an arm under open-loop torque falls.
HORIZON = 0.5
# Stretches that are replayed of all logs together.
_REPLAYS = 20


@dataclass(frozen=True, eq=False)
class Replay:
    """How a model moved under the torques of a log.

    `position_error` is ‖q − q̂‖₂ per joint, summed over the samples, as in Chávez-Olivares et al. 2012: it grows with
    the number of samples; `position_rmse` does not. Both are None where the model did not come through, and `reason`
    says why. `torque_rmse` compares the model's torque along the log's motion with the applied one; None where the log
    has no accelerations.
    """

    joints: tuple[str, ...]
    t: Array
    q: Array
    position_error: Array | None
    position_rmse: Array | None
    torque_rmse: Array | None
    reason: str = ""

    @property
    def finished(self) -> bool:
        return self.position_error is not None

    def to_json(self) -> dict[str, Any]:
        def plain(x: Array | None) -> list[float] | None:
            return None if x is None else x.tolist()

        return {
            "joints": list(self.joints),
            "finished": self.finished,
            "reason": self.reason,
            "position_error_norm": plain(self.position_error),
            "position_rmse": plain(self.position_rmse),
            "torque_rmse": plain(self.torque_rmse),
        }


@renamed(realisable="possible")
@dataclass(frozen=True)
class Possibility:
    """Whether numbers can belong to a robot: M(q) positive definite, links possible, friction not negative.

    `smallest_mass_eigenvalue` is over random postures, `indefinite_share` the part of them (0 to 1) where M(q) fails.
    `smallest_pseudo_inertia` has one entry per link; `negative` names terms below their bound.
    """

    smallest_mass_eigenvalue: float
    indefinite_share: float
    smallest_pseudo_inertia: tuple[float, ...]
    negative: tuple[str, ...] = field(default=())

    @property
    def simulable(self) -> bool:
        """Whether M(q) is positive definite wherever it was looked at, which impossible links may well give."""
        return self.smallest_mass_eigenvalue > 0.0

    @property
    def possible(self) -> bool:
        """Whether real bodies could have these numbers; `simulable` follows from it."""
        return min(self.smallest_pseudo_inertia, default=1.0) > 0.0 and not self.negative


def replay(
    model: Model,
    log: LogLike,
    *,
    q0: ArrayLike | None = None,
    dq0: ArrayLike | None = None,
    smoothing: float = 1e-2,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    bound: float = 1e4,
    method: Literal["rk45", "rk4"] = "rk45",
    torque_between: TorqueBetween = "auto",
    delay: float = 0.0,
) -> Replay:
    """Simulate `model` under the torques of `log` by an adaptive Runge–Kutta method.

    Args:
        model: what is simulated.
        log: the torques, and the motion that the simulated one is held against: a path, `Log`, frame or dict.
        q0, dq0: the state (rad, m, and per s) to start from; None: the log's first.
        smoothing: bare signs of dry friction are rounded off at this speed, rad/s (m/s).
        rtol, atol: tolerances of the adaptive steps, relative and in the state's unit.
        bound: a position beyond ± this ends the run; so do a state that is not finite and a mass matrix that is not
            positive definite.
        method: "rk4" takes fixed steps instead, four per sample or as many as friction needs, which is much faster.
        torque_between: how the torque runs between samples: each interval gets its mean; "auto": it is held.
        delay: how far the torques lag behind the positions, s.
    """
    from steelyard.simulation import Ending, simulate

    log = as_log(log, model.robot)
    if log.tau is None:
        raise LogError("The log has no torque to replay.")
    if len(log.segments) > 1:
        raise LogError("The log has gaps; replay its pieces one by one.")
    start = log.q[0] if q0 is None else np.asarray(q0, dtype=float)
    speed = np.zeros_like(start) if log.dq is None else log.dq[0]
    speed = speed if dq0 is None else np.asarray(dq0, dtype=float)
    torque = _reconstruction(model, log)
    period = float(log.t[-1] - log.t[0]) / (len(log) - 1)
    step = period / _steps_per_sample(model, start, period, smoothing) if method == "rk4" else period
    played = interval_means(log.t, log.tau, torque_between, delay)
    try:
        made = simulate(
            model, played, times=log.t, step=step, q0=start, dq0=speed, method=method,
            smoothing=smoothing, rtol=rtol, atol=atol, bound=bound, throw=False, stops0=_stops(model, log, speed),
        )  # fmt: skip
    except SimulationError as refused:
        return Replay(log.joints, log.t, np.full_like(log.q, np.nan), None, None, torque, str(refused))
    if not made.ok:
        what = {Ending.DIVERGED: "diverged", Ending.IMPOSSIBLE: "lost its positive definite mass matrix"}
        reason = f"The model {what[Ending(int(made.outcome[0]))]} at t = {made.stopped[0]:g} s."
        return Replay(log.joints, log.t, made.q, None, None, torque, reason)
    distance = np.linalg.norm(made.q - log.q, axis=0)
    return Replay(log.joints, log.t, made.q, distance, distance / np.sqrt(len(log)), torque)


def replayed(
    model: Model, logs: Sequence[Log], horizon: float, torque_between: TorqueBetween = "auto", delay: float = 0.0
) -> Array | None:
    """Root mean square position error of `model` per joint (rad, m), or None where it diverges. The torques of `logs`
    are replayed open loop, in stretches of `horizon` s; `torque_between` and `delay` (s) are as in `replay`."""
    squares, count = np.zeros(model.robot.dof), 0
    for piece in _stretches(logs, horizon):
        made = replay(model, piece, method="rk4", torque_between=torque_between, delay=delay)
        if made.position_rmse is None:
            return None
        squares += made.position_rmse**2 * len(piece)
        count += len(piece)
    return np.asarray(np.sqrt(squares / count)) if count else None


def _stretches(logs: Sequence[Log], horizon: float) -> list[Log]:
    """Up to twenty stretches of a given length, spread over the logs."""
    out: list[Log] = []
    for log in logs:
        step = float(np.median(np.diff(log.t)))
        length = max(4, round(horizon / step))
        starts = [k for a, b in segments_of(log) for k in range(a, b - length, length)]
        every = max(1, len(starts) * len(logs) // _REPLAYS)
        for k in starts[::every]:
            part = part_of(log, [(k, k + length)])
            if part is not None:
                out.append(on_even_clock(part))
    return out


def on_even_clock(log: Log) -> Log:
    """The `log` as a replay wants it: equal steps, and a velocity to start from, the slope of the positions where none
    was measured."""
    clock = np.linspace(log.t[0], log.t[-1], len(log))
    speed = np.gradient(log.q, log.t, axis=0) if log.dq is None else log.dq

    def resampled(x: Array | None) -> Array | None:
        return None if x is None else np.column_stack([np.interp(clock, log.t, column) for column in x.T])

    q, dq, tau = resampled(log.q), resampled(speed), resampled(log.tau)
    return replace(log, t=clock, q=q, dq=dq, ddq=None, tau=tau, channels={}, segments=())  # type: ignore[arg-type]


def _steps_per_sample(model: Model, q: Array, period: float, smoothing: float) -> int:
    """Four, or as many as fixed steps need to follow friction where it is steepest, around rest."""
    # A step of a bare sign counts as its smoothed slope would: the difference over the width of the smoothing.
    still, nothing = np.zeros((1, len(q))), np.zeros((1, len(q)))
    rest = model.acceleration(q[None], still, nothing)
    moved = [model.acceleration(q[None], 0.1 * smoothing * unit[None], nothing) for unit in np.eye(len(q))]
    slopes = np.stack([(a - rest)[0] for a in moved], axis=1) / (0.1 * smoothing)
    if not np.all(np.isfinite(slopes)):
        return 4
    fastest = float(np.max(-np.linalg.eigvals(slopes).real, initial=0.0))
    return int(np.clip(np.ceil(period * fastest / 2.0), 4, _MOST_STEPS))


def _stops(model: Model, log: Log, dq: Array) -> Array | None:
    """How the stops of a model that remembers stood when the log began: as its speed tells, or its first travel."""
    found = [(a, c) for a, c in model.terms.history if isinstance(a, Stop)]
    if not found:
        return None
    out = []
    for stop, c in found:
        u = np.broadcast_to(c.position(list(log.q.T)), (len(log),))
        du = float(c.velocity(list(log.q[0]), list(dq)))
        moving = abs(du) > STILL["revolute" if c.revolute else "prismatic"]
        out.append(float(np.sign(du)) if moving else stop.first(u))
    return np.array(out)


def _reconstruction(model: Model, log: Log) -> Array | None:
    if log.dq is None or log.ddq is None:
        return None
    period = float(log.t[-1] - log.t[0]) / max(len(log) - 1, 1)
    difference = model.torque(log.q, log.dq, log.ddq, period) - np.asarray(log.tau)
    return np.asarray(np.sqrt(np.mean(difference**2, axis=0)))


def possibility(model: Model, postures: ArrayLike | None = None, seed: int = 0) -> Possibility:
    """Look at a `model`'s numbers at `postures` (rad, m), or at random ones (by `seed`), ±π or ±1 m in each joint."""
    robot = model.robot
    if postures is None:
        reach = np.array([np.pi if j.kind == "revolute" else 1.0 for j in robot.joints])
        postures = np.random.default_rng(seed).uniform(-reach, reach, (_POSTURES, robot.dof))
    least = np.linalg.eigvalsh(model.mass_matrix(postures))[..., 0]
    links = robot.inertial_count
    low = model.theta[links:] < model.terms.lower
    names = tuple(n for n, bad in zip(model.terms.names, low, strict=True) if bad)
    pseudo = tuple(float(x) for x in smallest_pseudo_eigenvalues(model.theta[:links]))
    return Possibility(float(least.min()), float(np.mean(least <= 0.0)), pseudo, names)
