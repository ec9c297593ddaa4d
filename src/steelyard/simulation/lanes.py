"""Simulate by machine code: blocks of robots as lanes, blocks in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from steelyard.dynamics.native.code import vector_width
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import aligned
from steelyard.dynamics.native.rk4 import ARGUMENTS, rk4_driver
from steelyard.dynamics.native.run import default_threads
from steelyard.ground.arrays import Array
from steelyard.simulation.command import Command, Schedule
from steelyard.simulation.plant import Plant

# Robots of a block at most: the rows of a block still fit into the second cache, and one vector's arithmetic hides
# the latency of another's (measured for six joints: 8 robots 240 ns, 16 190, 32 170, 64 155 per robot-step).
BLOCK = LANES
# Below this many robot-steps per thread, starting threads costs more than they save (about 1 ms of work).
_STEPS_PER_THREAD = 4096


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a run needs, checked: states and parameters are `(robots, …)`."""

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


class _Block:
    """The rows of some robots, first … first + count − 1; lanes that are left over repeat the last robot."""

    def __init__(self, problem: Problem, results: dict[str, Array], table: Array, first: int, count: int) -> None:
        plant, command, schedule = problem.plant, problem.command, problem.schedule
        n, width = plant.robot.dof, 1 if problem.robots == 1 else vector_width()
        law, accelerate = command.kernel(plant.row_count), plant.acceleration
        vectors = -(-count // width)
        lanes = np.minimum(first + np.arange(vectors * width), problem.robots - 1)
        self._in = aligned(plant.row_count + table.shape[-1] + len(command.settings))
        self._out, self._state = aligned(n), aligned(4 * n)
        rows, state = self._in.reshape(-1, STRIDE), self._state.reshape(-1, STRIDE)
        used = slice(0, len(lanes))
        rows[:n, used] = state[:n, used] = problem.q0[lanes].T
        rows[n : 2 * n, used] = state[n : 2 * n, used] = problem.dq0[lanes].T
        rows[3 * n : plant.row_count, used] = problem.theta[lanes].T
        rows[plant.row_count + table.shape[-1] :, used] = command.settings[:, None]
        self.range = slice(first, first + count)
        self.q, self.dq = state[:n, :count], state[n : 2 * n, :count]
        h = schedule.step
        self._lengths = np.array([h / 2.0, h, h / 6.0, h / 3.0])
        one_row = table.shape[1] == 1
        self._arguments = {
            "plant": accelerate.address(width),
            "law": law.address(width),
            "rows_in": self._in.ctypes.data,
            "rows_out": self._out.ctypes.data,
            "state": self._state.ctypes.data,
            "joints": n,
            "vectors": vectors,
            "steps": schedule.steps,
            "lengths": self._lengths.ctypes.data,
            "hold": schedule.hold,
            "reference": table.ctypes.data,
            "reference_row": plant.row_count,
            "reference_width": table.shape[-1],
            "reference_next": 0 if one_row else table.shape[-1],
            "reference_robot": 0 if len(table) == 1 else table.shape[1] * table.shape[-1],
            "every": schedule.every,
            "samples": schedule.samples,
            "first": first,
            "robots": first + count,
            **{name: array.ctypes.data for name, array in results.items()},
        }
        self._run = rk4_driver(width)
        self._alive = (law, accelerate, table, results)  # what the addresses point to

    def run(self, begin: int, end: int) -> None:
        """Make the steps begin … end − 1."""
        self._run(*[self._arguments.get(name, begin if name == "begin" else end) for name in ARGUMENTS])


def run_lanes(problem: Problem, threads: int | None) -> dict[str, Array]:
    """Fixed steps of Runge–Kutta 4 with smooth friction, by machine code."""
    results = problem.results()
    end = problem.schedule.steps + 1
    if problem.command.function is not None:
        _ask_and_run(problem, results)
        return results
    vectors = -(-problem.robots // vector_width())
    count = min(threads or default_threads(), vectors, max(1, problem.robots * end // _STEPS_PER_THREAD))
    block = min(BLOCK, -(-vectors // count) * vector_width())

    def work(first: int) -> None:
        robots = min(block, problem.robots - first)
        _Block(problem, results, problem.command.table, first, robots).run(0, end)

    firsts = range(0, problem.robots, block)
    if count == 1:
        for first in firsts:
            work(first)
    else:
        with ThreadPoolExecutor(count) as pool:
            for job in [pool.submit(work, first) for first in firsts]:
                job.result()
    return results


def _ask_and_run(problem: Problem, results: dict[str, Array]) -> None:
    """A function is asked for torques at every control instant; machine code runs in between."""
    schedule, robots = problem.schedule, problem.robots
    table = np.zeros((robots, 1, problem.plant.robot.dof))
    blocks = [_Block(problem, results, table, k, min(BLOCK, robots - k)) for k in range(0, robots, BLOCK)]
    q, dq = problem.q0.copy(), problem.dq0.copy()
    for instant, t in enumerate(schedule.instant_times):
        for block in blocks:
            q[block.range], dq[block.range] = block.q.T, block.dq.T
        for robot in range(robots):
            table[robot, 0] = problem.command.ask(float(t), q[robot], dq[robot])
        begin = instant * schedule.hold
        for block in blocks:
            block.run(begin, min(begin + schedule.hold, schedule.steps + 1))
