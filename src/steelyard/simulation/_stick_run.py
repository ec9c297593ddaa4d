"""Simulate with true stiction: steps are split at the instants where a contact stops or breaks away."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SimulationError
from steelyard.ground.arrays import Array
from steelyard.simulation._integrators import SimulationProblem, Tolerances
from steelyard.simulation._stick import Modes, Sticking

_Flags = NDArray[np.bool_]
# More events than this in one step are chatter around an equilibrium: the rest of the step ignores events.
_EVENTS_PER_STEP = 40
# A contact slower than this (relative to the speed it could gain in a step) stops together with another one.
_AT_REST = 1e-12


@dataclass
class _Motion:
    """State and modes of one robot during the run."""

    physics: Sticking
    q: Array
    dq: Array
    modes: Modes
    tau: Array

    @property
    def is_frozen(self) -> bool:
        """Whether nothing can move until the torque changes."""
        return not self.modes.any() and self.physics.rest_motions(self.modes).Z.shape[1] == 0

    def acceleration(self) -> Array:
        return self.physics.rates(self.q, self.dq, self.tau, self.modes)

    def guards(self, q: Array, dq: Array) -> Array:
        return self.physics.guards(q, dq, self.tau, self.modes)

    def decide(self) -> None:
        self.modes = self.physics.decide(self.q, self.dq, self.tau, self.modes)

    def move_to(self, q: Array, dq: Array) -> None:
        self.q, self.dq = q, self._project_to_rest(dq)

    def turn(self, ended: _Flags, step: float, at_once: bool) -> _Flags:
        """Process an event: stop contacts exactly and determine all modes at rest. Returns contacts to ignore.

        A contact that stops at the instant it started (`at_once`) sticks for the rest of the step.
        """
        guards = self.guards(self.q, self.dq)
        ending = ended & (guards <= np.min(guards[ended]))
        a = np.abs(self.physics.G @ self.acceleration())
        speed = np.abs(self.physics.G @ self.dq)
        stopped = (self.modes != 0) & (ending | (speed <= _AT_REST * a * step))
        self.modes = np.where(stopped, 0, self.modes)
        self.dq = self._project_to_rest(self.dq)
        self.decide()
        if not at_once:
            return np.zeros_like(ending)
        self.modes = np.where(stopped & ending, 0, self.modes)
        return ending

    def _project_to_rest(self, dq: Array) -> Array:
        return dq if self.modes.all() else self.physics.rest_motions(self.modes).project(dq)

    def rk4(self, h: float) -> tuple[Array, Array]:
        q, v1 = self.q, self.dq
        a1 = self.physics.rates(q, v1, self.tau, self.modes)
        v2 = v1 + 0.5 * h * a1
        a2 = self.physics.rates(q + 0.5 * h * v1, v2, self.tau, self.modes)
        v3 = v1 + 0.5 * h * a2
        a3 = self.physics.rates(q + 0.5 * h * v2, v3, self.tau, self.modes)
        v4 = v1 + h * a3
        a4 = self.physics.rates(q + h * v3, v4, self.tau, self.modes)
        return q + h / 6.0 * (v1 + 2.0 * (v2 + v3) + v4), v1 + h / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)


def _step_rk4(motion: _Motion, h: float) -> None:
    """Do one step of Runge–Kutta 4, split at events."""
    left, ignored = h, np.zeros(len(motion.modes), dtype=bool)
    for _ in range(_EVENTS_PER_STEP):
        if motion.is_frozen:
            return
        q, dq = motion.rk4(left)
        ended = (motion.guards(q, dq) < 0.0) & ~ignored
        if not ended.any():
            motion.move_to(q, dq)
            return
        length = _locate(motion, left, ended)
        motion.move_to(*motion.rk4(length))
        ignored |= motion.turn(ended, h, at_once=length == 0.0)
        left -= length
        if left <= 1e-12 * h:
            return
    motion.move_to(*motion.rk4(left))


def _locate(motion: _Motion, h: float, ended: _Flags) -> float:
    """Find the time in the step at which the first of the modes `ended` ends [s]; 0 if it ends at the start."""
    from scipy.optimize import brentq

    def remaining(length: float) -> float:
        return float(np.min(motion.guards(*motion.rk4(length))[ended]))

    low = 0.0
    if float(np.min(motion.guards(motion.q, motion.dq)[ended])) <= 0.0:
        # A contact that was just released starts without speed: search a time at which it moves.
        trials = (h * 2.0**-k for k in range(1, 31))
        low = next((length for length in trials if remaining(length) > 0.0), 0.0)
        if low == 0.0:
            return 0.0
    return float(brentq(remaining, low, h, xtol=1e-15 * h, rtol=1e-15, maxiter=200))


def _step_rk45(motion: _Motion, h: float, tolerances: Tolerances) -> None:
    """Integrate the same interval by SciPy's adaptive Runge–Kutta 5(4), which locates the events itself."""
    from scipy.integrate import solve_ivp

    n, left, ignored = len(motion.q), h, np.zeros(len(motion.modes), dtype=bool)
    for _ in range(_EVENTS_PER_STEP):
        if motion.is_frozen:
            return

        def rates(_: float, x: Array) -> Array:
            return np.concatenate([x[n:], motion.physics.rates(x[:n], x[n:], motion.tau, motion.modes)])

        def event(_: float, x: Array, ignored: _Flags = ignored) -> float:
            return float(np.min(motion.guards(x[:n], x[n:])[~ignored], initial=np.inf))

        event.terminal, event.direction = True, -1.0  # type: ignore[attr-defined]
        start = np.concatenate([motion.q, motion.dq])
        settings = {"rtol": tolerances.rtol, "atol": tolerances.atol}
        ended = False
        try:
            run = solve_ivp(rates, (0.0, left), start, events=event, **settings)
        except ValueError:
            # The event is at the interval's end: rounding removes the sign change from SciPy's interpolant, and its
            # root search fails.
            run, ended = solve_ivp(rates, (0.0, left), start, **settings), True
        motion.move_to(run.y[:n, -1], run.y[n:, -1])
        if run.status != 1 and not ended:
            return
        length = float(run.t[-1])
        ignored = ignored | motion.turn(~ignored, h, at_once=length == 0.0)
        left -= length
        if left <= 1e-12 * h:
            return
    motion.move_to(*motion.rk4(left))


def run_sticking(
    problem: SimulationProblem, break_away: float, tolerances: Tolerances | None, bound: float
) -> dict[str, Array]:
    """Run robots one after the other, in fixed steps or, with tolerances, adaptively.

    Args:
        problem: Inputs of the run.
        break_away: Ratio of static to sliding friction.
        tolerances: Error per adaptive step; None: fixed steps.
        bound: Absolute position beyond which a run counts as diverged [rad, m].
    """
    results = problem.results()
    for robot in range(problem.robots):
        for name in results:
            results[name][robot] = np.nan
        # A diverging motion or a singular mass matrix ends the run, which is then marked.
        with np.errstate(all="ignore"), contextlib.suppress(np.linalg.LinAlgError):
            _run_one(problem, robot, break_away, tolerances, bound, results)
    return results


def _run_one(
    problem: SimulationProblem,
    robot: int,
    break_away: float,
    tolerances: Tolerances | None,
    bound: float,
    results: dict[str, Array],
) -> None:
    schedule = problem.schedule
    physics = Sticking(problem.plant, problem.theta[robot], break_away)
    q, dq = problem.q0[robot].copy(), problem.dq0[robot].copy()
    motion = _Motion(physics, q, dq, physics.begin(dq), np.zeros_like(q))
    if np.any(np.concatenate(physics.parts(q, dq)[2:]) < 0.0):
        raise SimulationError(f"Dry friction of robot {robot} is negative, which excludes sticking; check theta.")
    for step in range(schedule.steps + 1):
        if step % schedule.hold == 0:
            t = schedule.start + step * schedule.step
            motion.tau = problem.command.torque(robot, step // schedule.hold, t, motion.q, motion.dq)
            motion.decide()
        if step % schedule.every == 0:
            k = step // schedule.every
            sample = {"q": motion.q, "dq": motion.dq, "ddq": motion.acceleration(), "tau": motion.tau}
            for name, value in sample.items():
                results[name][robot, k] = value
        if step < schedule.steps:
            if tolerances is None:
                _step_rk4(motion, schedule.step)
            else:
                _step_rk45(motion, schedule.step, tolerances)
            if not (np.all(np.abs(motion.q) <= bound) and np.all(np.isfinite(motion.dq))):
                return
