"""Simulate in fixed steps with machine code: blocks of robots at once, blocks in threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
