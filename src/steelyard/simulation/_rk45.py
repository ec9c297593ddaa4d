"""Simulate with SciPy's adaptive Runge–Kutta 5(4), restarted only when the torque jumps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.native.kernel import Single
from steelyard.ground.arrays import Array
from steelyard.simulation._fixed_steps import SimulationProblem


@dataclass(frozen=True)
class Tolerances:
    """Relative and absolute error per step of the adaptive method."""

    rtol: float
    atol: float


def run_rk45(problem: SimulationProblem, tolerances: Tolerances, bound: float) -> dict[str, Array]:
    """Run robots with smooth friction one after the other.

    Args:
        problem: Inputs of the run.
        tolerances: Error per step.
        bound: Absolute position beyond which a run counts as diverged [rad, m].
    """
    results = problem.results()
    for robot in range(problem.robots):
        for name in results:
            results[name][robot] = np.nan
        _run_one(problem, robot, tolerances, bound, results)
    return results


def _run_one(
    problem: SimulationProblem, robot: int, tolerances: Tolerances, bound: float, results: dict[str, Array]
) -> None:
    schedule, plant, command = problem.schedule, problem.plant, problem.command
    n = plant.robot.dof
    accelerate = Single(plant.acceleration, plant.widths, theta=problem.theta[robot])
    x = np.concatenate([problem.q0[robot], problem.dq0[robot]])
    times, instants = schedule.times, schedule.instant_times
    end = schedule.start + schedule.steps * schedule.step
    feedback = command.function is not None or command.controller is not None
    instant = 0
    while instant < schedule.instants:
        begin = float(instants[instant])
        tau = command.torque(robot, instant, begin, x[:n], x[n:])
        # Without feedback, one integration covers successive rows with equal torque.
        following = instant + 1
        while not feedback and following < schedule.instants:
            if not np.array_equal(command.torque(robot, following, 0.0, x[:n], x[n:]), tau):
                break
            following += 1
        stop = float(instants[following]) if following < schedule.instants else end
        last = following >= schedule.instants
        inside = np.flatnonzero((times >= begin - 1e-9 * schedule.step) & (times < stop - 1e-9 * schedule.step))
        if last:
            inside = np.flatnonzero(times >= begin - 1e-9 * schedule.step)
        wanted = np.clip(times[inside], begin, stop)
        states = _integrate(accelerate, tau, x, wanted, (begin, stop), tolerances, bound)
        for k, state in zip(inside, states, strict=False):
            sample = {"q": state[:n], "dq": state[n:], "ddq": accelerate(state[:n], state[n:], tau), "tau": tau}
            for name, value in sample.items():
                results[name][robot, k] = value
        if len(states) <= len(inside):  # the integrator gave up
            return
        x, instant = states[-1], following


def _integrate(
    accelerate: Single,
    tau: Array,
    x: Array,
    times: Array,
    span: tuple[float, float],
    tolerances: Tolerances,
    bound: float,
) -> list[Array]:
    """Return the states at the times and, last, at the span's end; fewer if the motion leaves the bound."""
    from scipy.integrate import solve_ivp

    n = len(tau)

    def rates(_: float, x: Array) -> Array:
        return np.concatenate([x[n:], accelerate(x[:n], x[n:], tau)])

    def out_of_bound(_: float, x: Array) -> float:
        return bound - float(np.max(np.abs(x[:n])))

    out_of_bound.terminal = True  # type: ignore[attr-defined]
    if span[1] <= span[0]:
        return [x] * (len(times) + 1)
    at_end = len(times) > 0 and times[-1] >= span[1]
    wanted = times if at_end else np.append(times, span[1])
    with np.errstate(all="ignore"):
        run = solve_ivp(rates, span, x, t_eval=wanted, rtol=tolerances.rtol, atol=tolerances.atol, events=out_of_bound)
    states = list(run.y.T) if run.status >= 0 and len(run.t) else []
    return [*states, states[-1]] if at_end and len(states) == len(times) else states
