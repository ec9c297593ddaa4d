"""Runge–Kutta steps of many robots at once, in LLVM: the loop around a plant's and a controller's kernel.

Robots are lanes. All kernels read one table of rows (`rows_in`: positions, velocities, torques, parameters,
reference, settings, one lane per robot) and the controller writes its torques straight into it, so that a step
is four calls of the plant and a few sweeps over the state. The classical method of order 4 (Kutta 1901).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from steelyard.dynamics.native.code import Code
from steelyard.dynamics.native.emit import STRIDE
from steelyard.dynamics.native.text import Vectors

_ARGUMENTS = (
    # kernels: void (rows in, rows out, vectors)
    ("ptr", "plant"),
    ("ptr", "law"),
    # rows of lanes; `state` holds q, dq and the two sums of the step
    ("ptr", "rows_in"),
    ("ptr", "rows_out"),
    ("ptr", "state"),
    ("i64", "joints"),
    ("i64", "vectors"),
    # steps begin … end − 1 of `steps` (step number `steps` is only looked at, not made)
    ("i64", "begin"),
    ("i64", "end"),
    ("i64", "steps"),
    ("ptr", "lengths"),  # h/2, h, h/6, h/3
    # every `hold` steps the controller gets the next row of the reference and sets the torque
    ("i64", "hold"),
    ("ptr", "reference"),
    ("i64", "reference_row"),
    ("i64", "reference_width"),
    ("i64", "reference_next"),
    ("i64", "reference_robot"),
    # every `every` steps the state goes into (robots, samples, joints)
    ("i64", "every"),
    ("i64", "samples"),
    ("i64", "first"),
    ("i64", "robots"),
    ("ptr", "q"),
    ("ptr", "dq"),
    ("ptr", "ddq"),
    ("ptr", "tau"),
)
ARGUMENTS = tuple(name for _, name in _ARGUMENTS)


class _Lanes(Vectors):
    """Rows of lanes, and what happens every so many steps."""

    @contextmanager
    def when_due(self, step: str, period: str) -> Iterator[str]:
        """If the period divides the step; yields how often it did."""
        with self.when(self.let(f"icmp eq i64 {self.let(f'srem i64 {step}, {period}')}, 0")):
            yield self.let(f"sdiv i64 {step}, {period}")

    def rows(self, base: str, count: str | int) -> str:
        """The place of row number `count`."""
        return self.at(base, self.mul(count, STRIDE))


def _write(width: int) -> _Lanes:
    t = _Lanes(width)
    n = "%joints"
    half, whole, sixth, third = (t.spread(t.element("%lengths", k, "double")) for k in range(4))
    speed_in = t.rows("%rows_in", n)
    torque_in = t.rows("%rows_in", t.mul(n, 2))
    speed = t.rows("%state", n)
    q_sum = t.rows("%state", t.mul(n, 2))
    dq_sum = t.rows("%state", t.mul(n, 3))
    lanes = t.minimum(t.sub("%robots", "%first"), t.mul("%vectors", width))

    def call_plant() -> None:
        t.do("call void %plant(ptr %rows_in, ptr %rows_out, i64 %vectors)")

    def sweep(length: str | None, share: str, start: bool = False) -> None:
        """Add a stage's rates to the sums and go on to the next stage, `length` from the step's start."""
        with t.loop(0, n) as i, t.loop(0, "%vectors") as k:
            here = t.add(t.mul(i, STRIDE), t.mul(k, width))
            places = [t.at(base, here) for base in ("%state", speed, q_sum, dq_sum, "%rows_in", speed_in, "%rows_out")]
            q, dq, q_total, dq_total, q_in, dq_in, rate = places
            v, a = t.load(dq_in, t.kind), t.load(rate, t.kind)
            q_new = t.fma(share, v, t.load(q if start else q_total, t.kind))
            dq_new = t.fma(share, a, t.load(dq if start else dq_total, t.kind))
            if length is None:  # the step is done: the sums are the new state
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
    """Row `instant` of the reference into the lanes; lanes beyond the last robot repeat it."""
    row = t.at("%reference", t.mul(instant, "%reference_next"))
    first_row = t.rows("%rows_in", "%reference_row")
    with t.when(t.let("icmp eq i64 %reference_robot, 0")), t.loop(0, "%reference_width") as i:
        value, target = t.spread(t.load(t.at(row, i))), t.rows(first_row, i)
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


class Driver:
    """The driver for vectors of `width` robots: a function of `ARGUMENTS`, where pointers are addresses."""

    def __init__(self, width: int) -> None:
        text = _write(width)
        parameters = ", ".join(f"{kind} {'noalias ' if name == 'state' else ''}%{name}" for kind, name in _ARGUMENTS)
        body = text.function("rk4", parameters)
        self._code = Code("\n".join([*sorted(text.declarations), body]), optimise=True)
        kinds = [ctypes.c_int64] * len(ARGUMENTS)
        self._call: Any = ctypes.CFUNCTYPE(None, *kinds)(self._code.address("rk4"))

    def __call__(self, *arguments: int) -> None:
        self._call(*arguments)  # without the interpreter's lock: threads scale


@cache
def rk4_driver(width: int) -> Driver:
    """A driver; kept, and whoever holds it also holds its code."""
    return Driver(width)
