"""Runge–Kutta steps of many robots at once in LLVM: the loop around a plant's and a controller's kernel.

Robots are lanes. All kernels read one table of rows (`rows_in`: positions, velocities, torques, parameters,
reference, settings, one lane per robot) and the controller writes its torques directly into it, so that a step
is four calls of the plant and a few passes over the state. The classical method of order 4 (Kutta 1901).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import Vectors
from steelyard.dynamics.native.compiled_function import default_threads
from steelyard.dynamics.native.emit import LANES, STRIDE
from steelyard.dynamics.native.kernel import Kernel, aligned, callable_at
from steelyard.ground.arrays import Array

_ARGUMENTS = (
    # kernels: void (rows in, rows out, vectors)
    ("ptr", "plant"),
    ("ptr", "law"),
    # rows of lanes; `state` contains q, dq and the two sums of the step
    ("ptr", "rows_in"),
    ("ptr", "rows_out"),
    ("ptr", "state"),
    ("i64", "joints"),
    ("i64", "vectors"),
    # steps begin … end − 1 of `steps` (at step number `steps` only samples are recorded)
    ("i64", "begin"),
    ("i64", "end"),
    ("i64", "steps"),
    ("ptr", "lengths"),  # h/2, h, h/6, h/3
    # every `hold` steps the controller reads the next row of the reference and sets the torque
    ("i64", "hold"),
    ("ptr", "reference"),
    ("i64", "reference_row"),
    ("i64", "reference_width"),
    ("i64", "reference_next"),
    ("i64", "reference_robot"),
    # every `every` steps the state is recorded in (robots, samples, joints)
    ("i64", "every"),
    ("i64", "samples"),
    ("i64", "first"),
    ("i64", "robots"),
    ("ptr", "q"),
    ("ptr", "dq"),
    ("ptr", "ddq"),
    ("ptr", "tau"),
)
# Maximum number of robots per block: its rows fit into the second cache, and one vector's arithmetic hides the latency
# of another's (measured for six joints: 8 robots 240 ns, 16 190, 32 170, 64 155 per robot-step).
MOST = LANES
# An infinite period: the driver then neither calls a law nor records.
_NEVER = 1 << 40


class _Lanes(Vectors):
    """Rows of lanes, and periodic actions."""

    @contextmanager
    def when_due(self, step: str, period: str) -> Iterator[str]:
        """Enter the block if the period divides the step; yields the quotient."""
        with self.when(self.let(f"icmp eq i64 {self.let(f'srem i64 {step}, {period}')}, 0")):
            yield self.let(f"sdiv i64 {step}, {period}")

    def rows(self, base: str, count: str | int) -> str:
        """Return the location of row number `count`."""
        return self.at(base, self.mul(count, STRIDE))


def _write(width: int) -> _Lanes:
    t = _Lanes(width)
    n = "%joints"
    half, whole, sixth, third = (t.broadcast(t.element("%lengths", k, "double")) for k in range(4))
    speed_in = t.rows("%rows_in", n)
    torque_in = t.rows("%rows_in", t.mul(n, 2))
    speed = t.rows("%state", n)
    q_sum = t.rows("%state", t.mul(n, 2))
    dq_sum = t.rows("%state", t.mul(n, 3))
    lanes = t.minimum(t.sub("%robots", "%first"), t.mul("%vectors", width))

    def call_plant() -> None:
        t.do("call void %plant(ptr %rows_in, ptr %rows_out, i64 %vectors)")

    def sweep(length: str | None, share: str, start: bool = False) -> None:
        """Add a stage's rates to the sums and start the next stage, `length` from the step's start."""
        with t.loop(0, n) as i, t.loop(0, "%vectors") as k:
            here = t.add(t.mul(i, STRIDE), t.mul(k, width))
            places = [t.at(base, here) for base in ("%state", speed, q_sum, dq_sum, "%rows_in", speed_in, "%rows_out")]
            q, dq, q_total, dq_total, q_in, dq_in, rate = places
            v, a = t.load(dq_in, t.kind), t.load(rate, t.kind)
            q_new = t.fma(share, v, t.load(q if start else q_total, t.kind))
            dq_new = t.fma(share, a, t.load(dq if start else dq_total, t.kind))
            if length is None:  # the step is complete: the sums are the new state
                stores = {q: q_new, dq: dq_new, q_in: q_new, dq_in: dq_new}
            else:
                stores = {q_total: q_new, dq_total: dq_new}
                stores[q_in] = t.fma(length, v, t.load(q, t.kind))
                stores[dq_in] = t.fma(length, a, t.load(dq, t.kind))
            for place, value in stores.items():
                t.store(value, place, t.kind)

    with t.loop("%begin", "%end") as step:
        with t.when_due(step, "%hold") as instant:
            _refer(t, instant)
            t.do(f"call void %law(ptr %rows_in, ptr {torque_in}, i64 %vectors)")
        call_plant()
        with t.when_due(step, "%every") as sample:
            _record(t, sample, lanes, {"q": "%state", "dq": speed, "ddq": "%rows_out", "tau": torque_in})
        with t.when(t.let(f"icmp slt i64 {step}, %steps")):
            sweep(half, sixth, start=True)
            call_plant()
            sweep(half, third)
            call_plant()
            sweep(whole, third)
            call_plant()
            sweep(None, sixth)
    return t


def _refer(t: _Lanes, instant: str) -> None:
    """Copy row `instant` of the reference into the lanes; lanes beyond the last robot repeat it."""
    row = t.at("%reference", t.mul(instant, "%reference_next"))
    first_row = t.rows("%rows_in", "%reference_row")
    with t.when(t.let("icmp eq i64 %reference_robot, 0")), t.loop(0, "%reference_width") as i:
        value, target = t.broadcast(t.load(t.at(row, i))), t.rows(first_row, i)
        with t.loop(0, "%vectors") as k:
            t.store(value, t.at(target, t.mul(k, t.width)), t.kind)
    lanes = t.mul("%vectors", t.width)
    with t.when(t.let("icmp ne i64 %reference_robot, 0")), t.loop(0, lanes) as lane:
        robot = t.minimum(t.add("%first", lane), t.sub("%robots", 1))
        source, target = t.at(row, t.mul(robot, "%reference_robot")), t.at(first_row, lane)
        with t.loop(0, "%reference_width") as i:
            t.store(t.load(t.at(source, i)), t.rows(target, i))


def _record(t: _Lanes, sample: str, lanes: str, sources: dict[str, str]) -> None:
    with t.loop(0, lanes) as lane:
        robot = t.add("%first", lane)
        start = t.mul(t.add(t.mul(robot, "%samples"), sample), "%joints")
        with t.loop(0, "%joints") as i:
            for name, rows in sources.items():
                value = t.load(t.at(rows, t.add(t.mul(i, STRIDE), lane)))
                t.store(value, t.at(f"%{name}", t.add(start, i)))


class _Driver:
    """The driver for vectors of `width` robots: a function of `_ARGUMENTS`, where pointers are addresses."""

    def __init__(self, width: int) -> None:
        text = _write(width)
        parameters = ", ".join(f"{kind} {'noalias ' if name == 'state' else ''}%{name}" for kind, name in _ARGUMENTS)
        body = text.function("rk4", parameters)
        self._code = Code("\n".join([*sorted(text.declarations), body]), optimise=True)
        # ctypes releases the interpreter's lock: threads scale.
        self.call: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(_ARGUMENTS))(self._code.address("rk4"))


@cache
def _driver(width: int) -> _Driver:
    """Return a cached driver; a reference to it keeps its code alive."""
    return _Driver(width)


class Stepper:
    """Robots that are stepped together: `rows` `(rows, lanes)` is the input of the kernels, one lane per robot.

    The first 3 · `joints` rows are positions, velocities and torques; the others are for the kernels alone. Lanes
    beyond the last robot, up to whole vectors, are stepped as well and ignored.

    Args:
        plant: Function of the rows that computes the accelerations.
        joints: Number of coordinates of a robot.
        rows: Number of rows.
        robots: Number of robots, at most `MOST`.
        step: Step [s].
        law: Function of the rows that computes the torques; None for constant torques.
        single: Use code for one robot instead of vectors.
    """

    def __init__(
        self, plant: Kernel, joints: int, rows: int, robots: int, step: float, law: Kernel | None = None,
        single: bool = False,
    ) -> None:  # fmt: skip
        self._joints, self._robots, self._width = joints, robots, 1 if single else vector_width()
        self._in, self._out, self._state = aligned(rows), aligned(joints), aligned(4 * joints)
        self.rows, self.rates = self._in.reshape(-1, STRIDE), self._out.reshape(-1, STRIDE)
        self.state = self._state.reshape(-1, STRIDE)[: 2 * joints]
        self._lengths = np.array([step / 2.0, step, step / 6.0, step / 3.0])
        self._driver = _driver(self._width)
        self._plant = callable_at(plant.address(self._width))
        self._alive: tuple[Any, ...] = (plant, law)  # what the addresses point to
        self._arguments = dict.fromkeys((name for _, name in _ARGUMENTS), 0) | {
            "plant": plant.address(self._width),
            "law": 0 if law is None else law.address(self._width),
            "rows_in": self._in.ctypes.data,
            "rows_out": self._out.ctypes.data,
            "state": self._state.ctypes.data,
            "joints": joints,
            "steps": _NEVER,
            "lengths": self._lengths.ctypes.data,
            "hold": _NEVER,
            "every": _NEVER,
        }

    def put(self, row: int, values: Array) -> None:
        """Write values into the rows.

        Args:
            row: First row.
            values: `(robots, width)`, or `(width,)` for all of them.
        """
        lanes = np.minimum(np.arange(self.lanes(self._robots)), self._robots - 1)
        self.rows[row : row + values.shape[-1], : len(lanes)] = values[:, None] if values.ndim == 1 else values[lanes].T

    def drive(self, table: Array, row: int, hold: int) -> None:
        """Set the reference: every `hold` steps its next row is copied and the law is evaluated.

        Args:
            table: References `(robots or 1, instants or 1, width)`; robots are those of the whole batch.
            row: First row of the copy.
            hold: Steps per control period.
        """
        width = table.shape[-1]
        one, alike = table.shape[1] == 1, len(table) == 1
        self._alive += (table,)
        self._arguments |= {
            "hold": hold,
            "reference": table.ctypes.data,
            "reference_row": row,
            "reference_width": width,
            "reference_next": 0 if one else width,
            "reference_robot": 0 if alike else table.shape[1] * width,
        }

    def record(self, results: Mapping[str, Array], first: int, every: int, steps: int) -> None:
        """Record q, dq, ddq and tau.

        Args:
            results: Arrays `(robots, samples, joints)`.
            first: Index of the first robot in them.
            every: Steps between samples.
            steps: Number of steps; the state after the last one is recorded.
        """
        self._alive += (results,)
        self._arguments |= {
            "steps": steps,
            "every": every,
            "samples": results["q"].shape[1],
            "first": first,
            "robots": first + self._robots,
            **{name: array.ctypes.data for name, array in results.items()},
        }

    def run(self, begin: int, end: int, robots: int | None = None) -> None:
        """Do the steps `begin` … `end` − 1.

        Args:
            begin: First step.
            end: One past the last step.
            robots: Number of robots; default: all.
        """
        given = self._arguments
        given["begin"], given["end"] = begin, end
        given["vectors"] = self.lanes(robots or self._robots) // self._width
        self._driver.call(*given.values())

    def start(self) -> None:
        """Set the state from the rows."""
        used = self.lanes(self._robots)
        self.state[:, :used] = self.rows[: 2 * self._joints, :used]

    def find_rates(self, robots: int) -> None:
        """Compute the plant's rates for the rows and `robots`."""
        self._plant(self._in.ctypes.data, self._out.ctypes.data, self.lanes(robots) // self._width)

    def lanes(self, robots: int) -> int:
        """Return the number of lanes for `robots`, in whole vectors."""
        return -(-robots // self._width) * self._width


def in_blocks(work: Callable[[int, int], None], robots: int, threads: int | None, most: int | None = None) -> None:
    """Run work(first, count) over blocks of robots in threads.

    Args:
        work: Function of the first robot and the number of robots.
        robots: Number of robots.
        threads: Number of threads; None: all processors.
        most: Maximum number of robots per block.
    """
    width = vector_width()
    vectors = -(-robots // width)
    count = min(threads or default_threads(), vectors, vectors if most is None else most)
    block = min(MOST, -(-vectors // count) * width)
    parts = [(first, min(block, robots - first)) for first in range(0, robots, block)]
    if count == 1:
        for part in parts:
            work(*part)
        return
    with ThreadPoolExecutor(count) as pool:
        for job in [pool.submit(work, *part) for part in parts]:
            job.result()
