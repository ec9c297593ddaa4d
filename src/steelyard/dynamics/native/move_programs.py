"""Programs of joint moves as machine code: the motion that a controller executes, program after program.

The rules are those of `excitation/interpolator`, which handles single programs with lines and circles: synchronous
S-curves, fly-by, ramps softened until sums of overlapping moves satisfy the limits, a stop wherever it is faster.
Here moves are straight in joint space, and a program takes a tenth of a millisecond.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.native._code import Code
from steelyard.dynamics.native._numbers import Number, Numbers
from steelyard.dynamics.native._program import (
    BREAKS,
    FIRST,
    FLY,
    LAST,
    ROUNDS,
    SCRATCH,
    SLOWEST,
    WHOLE,
    ProgramWriter,
    profile,
)
from steelyard.ground.arrays import Array

_SIGNATURES = {
    "profile": "double %velocity, double %up, double %up_jerk, double %down, double %down_jerk, ptr noalias %out",
    "play": (
        "i64 %programs, i64 %moves, i64 %joints, ptr noalias %home, ptr noalias %bounds, ptr noalias %paces, "
        "ptr noalias %steps, double %fly, ptr noalias %scratch, ptr noalias %pieces, ptr noalias %breaks, "
        "ptr noalias %tables"
    ),
    "sample": (
        "i64 %programs, i64 %joints, i64 %room, double %rate, ptr noalias %ends, ptr noalias %pieces, "
        "ptr noalias %breaks, ptr noalias %tables, ptr noalias %q, ptr noalias %dq, ptr noalias %ddq"
    ),
}


def _play() -> Numbers:
    t = Numbers()
    with t.loop(0, "%programs") as program:
        one = ProgramWriter(t, program)
        with t.loop(0, "%moves") as k:
            inner = t.let(f"icmp slt i64 {k}, {one.last}")
            one.value(FLY, k).set(t.choose(inner, Number(t, "%fly"), 0.0))
        t.store("0", one.count, "i64")
        searching, kept = t.variable("i1"), t.variable("i1")
        t.store("true", searching, "i1")
        with t.loop(0, t.add("%moves", 1)), t.when(t.load(searching, "i1")):
            with t.loop(0, "%moves") as k:
                for which in (WHOLE, FIRST, LAST):
                    one.value(which, k).set(1.0)
            rounds = t.variable("i1")
            t.store("true", rounds, "i1")
            t.store("false", kept, "i1")
            with t.loop(0, ROUNDS), t.when(t.load(rounds, "i1")):
                one.lay_out()
                one.sort_breaks()
                one.sum_pieces()
                good = one.excess() <= 1.0
                t.store(good, kept, "i1")
                t.store(t.let(f"xor i1 {good}, true"), rounds, "i1")
                with t.when(t.load(rounds, "i1")):
                    slow = one.soften() <= SLOWEST
                    t.store(slow, rounds, "i1")
            t.store("false", searching, "i1")
            with t.when(t.load(kept, "i1")):
                t.store(one.stops(), searching, "i1")
        failed = t.either(t.let(f"xor i1 {t.load(kept, 'i1')}, true"), one.leaves_range())
        with t.when(failed):
            t.store("0", one.count, "i64")
    return t


def _sample() -> Numbers:
    """Sample q, q̇, q̈ of every program at k/rate."""
    t = Numbers()
    width = t.mul("%joints", 4)
    first = t.variable()
    t.store("0", first, "i64")
    with t.loop(0, "%programs") as program:
        breaks = t.at("%breaks", t.mul(program, "%room"))
        tables = t.at("%tables", t.mul(t.mul(program, "%room"), width))
        end, begin = t.element("%ends", program), t.load(first, "i64")
        t.store(end, first, "i64")
        piece = t.variable()
        t.store("0", piece, "i64")
        with t.loop(begin, end) as n:
            time = Number(t, t.let(f"sitofp i64 {t.sub(n, begin)} to double")) / Number(t, "%rate")
            with (
                t.loop(t.load(piece, "i64"), t.element("%pieces", program)) as k,
                t.when(t.item(breaks, k).get() <= time),
            ):
                t.store(k, piece, "i64")
            p = t.load(piece, "i64")
            low = t.item(breaks, p).get()
            length = t.item(breaks, t.add(p, 1)).get() - low
            u = t.smaller((time - low) / length, 1.0)
            table = t.at(tables, t.mul(p, width))
            with t.loop(0, "%joints") as j:
                c = [t.item(table, t.mul("%joints", m), j).get() for m in range(4)]
                values = (
                    c[0] + u * (c[1] + u * (c[2] + u * c[3])),
                    (c[1] + u * (2.0 * c[2] + u * 3.0 * c[3])) / length,
                    (2.0 * c[2] + u * 6.0 * c[3]) / (length * length),
                )
                for name, value in zip(("%q", "%dq", "%ddq"), values, strict=True):
                    t.item(name, t.mul(n, "%joints"), j).set(value)
    return t


@cache
def _code() -> Code:
    texts = {"profile": profile(), "play": _play(), "sample": _sample()}
    functions = [text.function(name, _SIGNATURES[name]) for name, text in texts.items()]
    declarations = sorted(set().union(*(text.declarations for text in texts.values())))
    return Code("\n\n".join([*declarations, *functions]), optimise=True)


@cache
def _call(name: str) -> Any:
    kinds = [ctypes.c_double if part.startswith("double") else ctypes.c_int64 for part in _SIGNATURES[name].split(", ")]
    return ctypes.CFUNCTYPE(None, *kinds)(_code().address(name))


@dataclass(frozen=True, eq=False)
class JointPrograms:
    """Motions of programs.

    Attributes:
        pieces: Number of pieces of each program; 0 if it is not executable.
        breaks: Times between pieces [s].
        tables: Powers of each piece's own time, 0 to 1, `(programs, pieces, 4, joints)`.
    """

    pieces: NDArray[np.int64]
    breaks: Array
    tables: Array

    @property
    def durations(self) -> Array:
        """Duration of every program [s]; zero if it is not executable."""
        ends: Array = np.where(self.pieces > 0, self.breaks[np.arange(len(self.pieces)), self.pieces], 0.0)
        return ends

    def sample(self, rate: float) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """Sample at `rate` [Hz]: q, q̇, q̈ `(samples, joints)` of all programs in sequence, and the end of each one."""
        counts = np.where(self.pieces > 0, (self.durations * rate).astype(np.int64) + 1, 0)
        ends = np.cumsum(counts)
        joints, room = self.tables.shape[3], self.breaks.shape[1]
        q, dq, ddq = np.empty((3, int(ends[-1]), joints))
        _call("sample")(
            len(ends), joints, room, rate, ends.ctypes.data, self.pieces.ctypes.data, self.breaks.ctypes.data,
            self.tables.ctypes.data, q.ctypes.data, dq.ctypes.data, ddq.ctypes.data,
        )  # fmt: skip
        return q, dq, ddq, ends


def play_moves(home: Array, steps: Array, paces: Array, fly: float, bounds: Array) -> JointPrograms:
    """Compute the motions of programs of straight joint moves, each from rest to rest.

    Args:
        home: Start posture of all programs `(joints,)` [rad, m].
        steps: Displacement of the joints in each move `(programs, moves, joints)` [rad, m]; none may be all zero.
        paces: Maximum velocity, acceleration and jerk of each move relative to its distance `(programs, moves, 3)`
            [1/s, 1/s², 1/s³]; an infinite jerk gives trapezoids of velocity.
        fly: Fraction of a move's deceleration that overlaps the next move, 0 to 1.
        bounds: Limits of velocity, acceleration and jerk, then lower and upper positions `(5, joints)`.
    """
    programs, moves, joints = steps.shape
    room = BREAKS * moves
    given = [np.ascontiguousarray(x, dtype=float) for x in (home, bounds, paces, steps)]
    scratch = np.zeros(SCRATCH * moves)
    pieces = np.zeros(programs, dtype=np.int64)
    breaks, tables = np.zeros((programs, room)), np.empty((programs, room, 4, joints))
    _call("play")(
        programs, moves, joints, *(x.ctypes.data for x in given), fly, scratch.ctypes.data, pieces.ctypes.data,
        breaks.ctypes.data, tables.ctypes.data,
    )  # fmt: skip
    return JointPrograms(pieces, breaks, tables)
