"""The two integrators of a simulation: fixed steps in machine code, and SciPy's adaptive Runge–Kutta 5(4).

Fixed steps take blocks of robots at once, blocks in threads. The adaptive one restarts only when the torque jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.native.kernel import Single
from steelyard.dynamics.native.rk4 import MOST, Stepper, in_blocks
from steelyard.ground.arrays import Array
from steelyard.simulation.command import Command, Schedule
from steelyard.simulation.plant import Plant

# Robot-steps per thread (about 1 ms of work) below which starting threads costs more time than it saves.
_STEPS_PER_THREAD = 4096


@dataclass(frozen=True, eq=False)
class SimulationProblem:
    """All inputs of a run, validated.

    First states `q0` [rad, m], `dq0` [rad/s, m/s] and lumped parameters `theta` have shape `(robots, …)`.
    """

    plant: Plant
    command: Command
    schedule: Schedule
    theta: Array
    q0: Array
    dq0: Array

    @property
    def robots(self) -> int:
        return len(self.q0)

    def results(self) -> dict[str, Array]:
        shape = (self.robots, self.schedule.samples, self.plant.robot.dof)
        return {name: np.empty(shape) for name in ("q", "dq", "ddq", "tau")}


def _block(problem: SimulationProblem, results: dict[str, Array], table: Array, first: int, count: int) -> Stepper:
    """Prepare a stepper for robots first … first + count − 1."""
    plant, command, schedule = problem.plant, problem.command, problem.schedule
    n, part = plant.robot.dof, slice(first, first + count)
    settings = plant.row_count + table.shape[-1]
    rows, law = settings + len(command.settings), command.kernel(plant.row_count)
    made = Stepper(plant.acceleration, n, rows, count, schedule.step, law, single=problem.robots == 1)
    for row, values in {0: problem.q0[part], n: problem.dq0[part], 3 * n: problem.theta[part]}.items():
        made.put(row, values)
    made.put(settings, command.settings)
    made.start()
    made.drive(table, plant.row_count, schedule.hold)
    made.record(results, first, schedule.every, schedule.steps)
    return made


def run_fixed_steps(problem: SimulationProblem, threads: int | None) -> dict[str, Array]:
    """Run fixed steps of Runge–Kutta 4 with smooth friction in machine code.

    Args:
        problem: Inputs of the run.
        threads: Number of threads; default: all processors.
    """
    results = problem.results()
    end = problem.schedule.steps + 1
    if problem.command.function is not None:
        _run_torque_function(problem, results)
        return results

    def work(first: int, count: int) -> None:
        _block(problem, results, problem.command.table, first, count).run(0, end)

    in_blocks(work, problem.robots, threads, max(1, problem.robots * end // _STEPS_PER_THREAD))
    return results


def _run_torque_function(problem: SimulationProblem, results: dict[str, Array]) -> None:
    """Call the torque function at every control instant and run machine code in between."""
    schedule, robots = problem.schedule, problem.robots
    table = np.zeros((robots, 1, problem.plant.robot.dof))
    n, firsts = problem.plant.robot.dof, range(0, robots, MOST)
    blocks = [_block(problem, results, table, k, min(MOST, robots - k)) for k in firsts]
    q, dq = problem.q0.copy(), problem.dq0.copy()
    for instant, t in enumerate(schedule.instant_times):
        for first, block in zip(firsts, blocks, strict=True):
            part = slice(first, min(first + MOST, robots))
            q[part], dq[part] = (block.state[k : k + n, : part.stop - first].T for k in (0, n))
        for robot in range(robots):
            table[robot, 0] = problem.command.call_function(float(t), q[robot], dq[robot])
        begin = instant * schedule.hold
        for block in blocks:
            block.run(begin, min(begin + schedule.hold, schedule.steps + 1))


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
