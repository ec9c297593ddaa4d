"""`Simulation`: the true motion of one robot or of a batch, and how each run ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError
from steelyard.ground.arrays import Array
from steelyard.ground.short_repr import short_repr
from steelyard.signals.log import Log
from steelyard.simulation.sensors import Sensors

# How runs end: divergence, and impossible inertias.


_Flags = NDArray[np.bool_]
# Fields of a `Simulation` with a robots axis in a batch.
_SIGNALS = ("q", "dq", "ddq", "tau", "history")


class Ending(IntEnum):
    """How the run of one robot ended."""

    COMPLETED = 0
    DIVERGED = 1
    IMPOSSIBLE = 2  # the mass matrix was not positive definite


def _maybe_indefinite(model: Model, theta: Array) -> _Flags:
    """Return a flag for each robot: an indefinite pseudo-inertia or a negative rotor may make M indefinite.

    Robots without the flag have a positive definite mass matrix in every posture and need no further check.
    """
    robots = len(theta)
    p = theta[:, : model.robot.inertial_count].reshape(robots, -1, 10)
    J = np.empty((*p.shape[:2], 4, 4))
    J[..., :3, 3] = J[..., 3, :3] = p[..., 1:4]
    J[..., 3, 3] = p[..., 0]
    half = 0.5 * (p[..., 4] + p[..., 6] + p[..., 9])  # Wensing, Kim & Slotine 2018: Σ = ½tr(I)·1 − I
    for (i, j), k in {(0, 0): 4, (0, 1): 5, (1, 1): 6, (0, 2): 7, (1, 2): 8, (2, 2): 9}.items():
        J[..., i, j] = J[..., j, i] = (half if i == j else 0.0) - p[..., k]
    bad: _Flags = ~np.all(_positive_definite(J), axis=1)
    rotors = np.flatnonzero(model.terms.per_parameter(lambda term, _: term.inertial))
    return np.asarray(bad | np.any(theta[:, model.robot.inertial_count + rotors] < 0.0, axis=1))


def _positive_definite(matrices: Array) -> _Flags:
    """Return whether each symmetric matrix is positive definite."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(matrices)[..., 0] > 0.0)
    return np.ones(matrices.shape[:-2], dtype=bool)


def check_start(model: Model, theta: Array, q: Array) -> _Flags:
    """Refuse robots that are impossible at the start; returns the robots to check during the run.

    Args:
        model: Robot model.
        theta: Parameters `(robots, parameters)`.
        q: Initial positions [rad, m].
    """
    suspects = _maybe_indefinite(model, theta)
    for robot in np.flatnonzero(suspects):
        smallest = float(np.linalg.eigvalsh(model.dynamics.mass_matrix(q[robot], theta[robot]))[0])
        if smallest <= 0.0:
            raise SimulationError(
                f"The mass matrix of robot {robot} is not positive definite at the start (smallest eigenvalue "
                f"{smallest:.3g}): such masses and inertias are physically impossible; check theta."
            )
    return suspects


def find_endings(
    model: Model, theta: Array, suspects: _Flags, results: dict[str, Array], bound: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ending and first bad sample of each robot; that sample and all later ones become NaN.

    Args:
        model: Robot model.
        theta: Parameters `(robots, parameters)`.
        suspects: Robots that may become impossible during the run.
        results: Signals `(robots, samples, joints)`, changed in place.
        bound: Positions beyond ± this have diverged [rad, m].
    """
    robots, count = results["q"].shape[:2]
    # Check extremes first, since most runs end well; NaN and infinity appear in extremes.
    if not suspects.any() and all(
        -reach <= float(np.min(results[name])) and float(np.max(results[name])) <= reach
        for name, reach in (("q", bound), ("dq", np.finfo(float).max), ("ddq", np.finfo(float).max))
    ):
        return np.full(robots, Ending.COMPLETED, dtype=np.int64), np.full(robots, count, dtype=np.int64)
    good = np.all(np.abs(results["q"]) <= bound, axis=-1)  # False for NaN
    for name in ("dq", "ddq"):
        good &= np.all(np.isfinite(results[name]), axis=-1)
    outcome = np.where(good.all(axis=1), Ending.COMPLETED, Ending.DIVERGED).astype(np.int64)
    first = np.where(good.all(axis=1), count, np.argmin(good, axis=1)).astype(np.int64)
    for robot in np.flatnonzero(suspects):
        possible = _positive_definite(model.dynamics.mass_matrix(results["q"][robot, : first[robot]], theta[robot]))
        if not possible.all():
            outcome[robot], first[robot] = Ending.IMPOSSIBLE, int(np.argmin(possible))
    for robot in np.flatnonzero(outcome != Ending.COMPLETED):
        for x in results.values():
            x[robot, first[robot] :] = np.nan
    return outcome, first


def divergence_error(outcome: NDArray[np.int64], stopped: Array, bound: float) -> SimulationError:
    """Build the error about the robot that diverged first.

    Args:
        outcome: Ending of each robot.
        stopped: Time at which each run ended [s].
        bound: Position bound [rad, m].
    """
    robot = int(np.nanargmin(stopped))
    if outcome[robot] == Ending.IMPOSSIBLE:
        reason = "its mass matrix is no longer positive definite: theta is physically impossible"
    else:
        reason = f"a state is not finite or a position has left ±{bound:g}; shorten `step`, or lower torques or gains"
    count = int(np.sum(outcome != Ending.COMPLETED))
    others = f" {count - 1} more of {len(outcome)} robots diverged." if count > 1 else ""
    return SimulationError(f"Robot {robot} diverged by t = {stopped[robot]:g} s: {reason}.{others}")


@short_repr
@dataclass(frozen=True, eq=False)
class Simulation:
    """True signals, `(samples, joints)`, or `(robots, samples, joints)` for a batch.

    Attributes:
        joints: Names of the joints.
        t: Times [s].
        q, dq: Positions [rad, m] and velocities [rad/s, m/s].
        ddq, tau: Accelerations [rad/s², m/s²] and torques [N m, N] from each sample on; the torque is constant until
            the next control instant.
        outcome: Ending of each robot.
        stopped: Time at which each run ended [s]; samples of a diverged run are NaN from there on.
        sensors: Sensors for `log`.
        history: States of the stops of friction with memory, −1 … 1, in the order of the terms.
    """

    joints: tuple[str, ...]
    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    outcome: NDArray[np.int64]
    stopped: Array
    sensors: Sensors | None = None
    history: Array | None = None

    @property
    def robots(self) -> int:
        return len(self.outcome)

    @property
    def ok(self) -> bool:
        """Whether every run ended well."""
        return bool(np.all(self.outcome == Ending.COMPLETED))

    def of_robot(self, robot: int) -> Simulation:
        """Return the run of one `robot` (its index) of the batch."""
        if self.q.ndim == 2:
            return self
        own = {x: None if getattr(self, x) is None else getattr(self, x)[robot] for x in _SIGNALS}
        alone = slice(robot, robot + 1)
        return replace(self, outcome=self.outcome[alone], stopped=self.stopped[alone], **own)  # type: ignore[arg-type]

    def log(self, robot: int = 0, sensors: Sensors | None = None) -> Log:
        """Build the log of one robot up to the end of its run.

        Args:
            robot: Index in the batch.
            sensors: Sensors; default: those of `simulate`, else true signals.
        """
        if not -self.robots <= robot < self.robots:
            raise SimulationError(f"There is no robot {robot}; the batch has {self.robots}.")
        robot %= self.robots
        signals = [x if x.ndim == 2 else x[robot] for x in (self.q, self.dq, self.ddq, self.tau)]
        count = int(np.searchsorted(self.t, self.stopped[robot])) if np.isfinite(self.stopped[robot]) else len(self.t)
        if count == 0:
            raise SimulationError(f"Robot {robot} has no valid sample: its run diverged at once.")
        q, dq, ddq, tau = (x[:count] for x in signals)
        true = Log(self.joints, self.t[:count], q, dq=dq, ddq=ddq, tau=tau)
        chosen = sensors or self.sensors
        return true if chosen is None else chosen.measure(true, robot)
