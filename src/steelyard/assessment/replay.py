"""Simulates a model under the torques of a log (open loop), and checks whether the model is physically possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.model import Model
from steelyard.errors import LogError, SimulationError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.hysteresis import Stop
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.regression.schemes.still import STILL
from steelyard.signals.as_logs import LogLike, as_log
from steelyard.signals.between import TorqueBetween, interval_means
from steelyard.signals.excerpt import on_even_clock, part_of
from steelyard.signals.log import Log
from steelyard.signals.prepare import segments_of

# Number of random postures for the mass matrix.
_POSTURES = 4096
# Maximum number of fixed steps per sample.
_MOST_STEPS = 500
# Default length of replays [s]; longer ones depend mainly on the open-loop instability of an arm.
HORIZON = 0.5
# Maximum number of replayed stretches of all logs together.
_REPLAYS = 20


@short_repr
@dataclass(frozen=True, eq=False)
class Replay:
    """Motion of a model under the torques of a log.

    Attributes:
        joints: Names of the joints.
        t: Times [s].
        q: Simulated positions [rad, m].
        position_error: ‖q − q̂‖₂ of each joint over all samples (Chávez-Olivares et al. 2012), or None if the simulation
            failed.
        position_rmse: RMS position error of each joint, or None if the simulation failed.
        torque_rmse: RMS error of the model torque along the log's motion; None without accelerations.
        reason: Reason of the failure, or "".
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


@short_repr
@dataclass(frozen=True)
class Possibility:
    """Physical possibility of a model.

    Attributes:
        smallest_mass_eigenvalue: Smallest eigenvalue of the mass matrix over random postures.
        indefinite_share: Share of the postures (0 to 1) with a mass matrix that is not positive definite.
        smallest_pseudo_inertia: Smallest eigenvalue of the pseudo-inertia of each link.
        negative: Names of terms below their bound.
    """

    smallest_mass_eigenvalue: float
    indefinite_share: float
    smallest_pseudo_inertia: tuple[float, ...]
    negative: tuple[str, ...] = field(default=())

    @property
    def simulable(self) -> bool:
        """Whether the mass matrix is positive definite in all tested postures; links can still be impossible."""
        return self.smallest_mass_eigenvalue > 0.0

    @property
    def possible(self) -> bool:
        """Whether all links and terms are physically possible; this implies `simulable`."""
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
    """Simulate a model under the torques of a log.

    Args:
        model: Model to simulate.
        log: Torques and measured motion: a path, `Log`, frame or dict.
        q0: Initial positions [rad, m]; None: those of the log.
        dq0: Initial velocities [rad/s, m/s]; None: those of the log.
        smoothing: Speed at which jumps of dry friction are smoothed [rad/s, m/s].
        rtol: Relative tolerance of adaptive steps.
        atol: Absolute tolerance of adaptive steps, in units of the state.
        bound: Absolute position at which the simulation stops [rad, m]. It also stops if the state is not finite or the
            mass matrix is not positive definite.
        method: "rk45" (adaptive Runge-Kutta) or "rk4" (fixed steps, at least four per sample), which is much faster.
        torque_between: Course of the torque between samples, of which each interval gets the mean; "auto": held.
        delay: Delay of the torques after the positions [s].
    """
    from steelyard.simulation import Ending, simulate

    log = as_log(log, model.robot)
    if log.tau is None:
        raise LogError("The log has no torque; a replay needs it.")
    if len(log.segments) > 1:
        raise LogError("The log has gaps. Replay its pieces separately.")
    start = log.q[0] if q0 is None else np.asarray(q0, dtype=float)
    speed = np.zeros_like(start) if log.dq is None else log.dq[0]
    speed = speed if dq0 is None else np.asarray(dq0, dtype=float)
    torque = _reconstruction(model, log)
    period = float(log.t[-1] - log.t[0]) / (len(log) - 1)
    step = period / _steps_per_sample(model, start, period, smoothing) if method == "rk4" else period
    torques = interval_means(log.t, log.tau, torque_between, delay)
    try:
        run = simulate(
            model, torques, times=log.t, step=step, q0=start, dq0=speed, method=method,
            smoothing=smoothing, rtol=rtol, atol=atol, bound=bound, throw=False, stops0=_stops(model, log, speed),
        )  # fmt: skip
    except SimulationError as error:
        return Replay(log.joints, log.t, np.full_like(log.q, np.nan), None, None, torque, str(error))
    if not run.ok:
        endings = {Ending.DIVERGED: "diverged", Ending.IMPOSSIBLE: "lost its positive definite mass matrix"}
        reason = f"The model {endings[Ending(int(run.outcome[0]))]} at t = {run.stopped[0]:g} s."
        return Replay(log.joints, log.t, run.q, None, None, torque, reason)
    distance = np.linalg.norm(run.q - log.q, axis=0)
    return Replay(log.joints, log.t, run.q, distance, distance / np.sqrt(len(log)), torque)


def replay_rmse(
    model: Model, logs: Sequence[Log], horizon: float, torque_between: TorqueBetween = "auto", delay: float = 0.0
) -> Array | None:
    """Compute the RMS position error of open-loop replays per joint [rad, m]; None if a simulation fails.

    Args:
        model: Model to simulate.
        logs: Logs to replay.
        horizon: Length of each replayed stretch [s].
        torque_between: Course of the torque between samples, as in `replay`.
        delay: Delay of the torques after the positions [s].
    """
    squares, count = np.zeros(model.robot.dof), 0
    for piece in _stretches(logs, horizon):
        run = replay(model, piece, method="rk4", torque_between=torque_between, delay=delay)
        if run.position_rmse is None:
            return None
        squares += run.position_rmse**2 * len(piece)
        count += len(piece)
    return np.asarray(np.sqrt(squares / count)) if count else None


def _stretches(logs: Sequence[Log], horizon: float) -> list[Log]:
    """Select up to twenty stretches of a given length [s], spread over the logs."""
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


def _steps_per_sample(model: Model, q: Array, period: float, smoothing: float) -> int:
    """Return the number of fixed steps per sample: at least four, more for steep friction around zero speed."""
    # Differences over the smoothing width also capture jumps of unsmoothed friction.
    still, nothing = np.zeros((1, len(q))), np.zeros((1, len(q)))
    rest = model.acceleration(q[None], still, nothing)
    moved = [model.acceleration(q[None], 0.1 * smoothing * unit[None], nothing) for unit in np.eye(len(q))]
    slopes = np.stack([(a - rest)[0] for a in moved], axis=1) / (0.1 * smoothing)
    if not np.all(np.isfinite(slopes)):
        return 4
    fastest = float(np.max(-np.linalg.eigvals(slopes).real, initial=0.0))
    return int(np.clip(np.ceil(period * fastest / 2.0), 4, _MOST_STEPS))


def _stops(model: Model, log: Log, dq: Array) -> Array | None:
    """Return the initial hysteresis state of stop elements, from the first speed or the first travel."""
    stops = [(a, c) for a, c in model.terms.history if isinstance(a, Stop)]
    if not stops:
        return None
    out = []
    for stop, c in stops:
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
    """Check the mass matrix, links and terms of a model.

    Args:
        model: Model to check.
        postures: Postures for the mass matrix [rad, m], shape (postures, joints); None: random within ±π or ±1 m.
        seed: Seed of the random postures.
    """
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
