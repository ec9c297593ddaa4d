"""The loops around generated kernels in LLVM: they supply blocks of lanes and are independent of the robot.

A kernel computes one block (`emit_llvm.LANES` samples, rows STRIDE apart). The drivers gather the samples of a
block from ordinary arrays into rows, call the kernel, and

* `dense`    scatter the rows into a dense array of samples,
* `packed`   the same for results with few zeros, by whole vectors (`streamed`, `buffered`: past the cache),
* `lanes`    leave them unchanged, block by block,
* `gram`     multiply the rows of each equation with themselves: Gram matrices, without storing a row,
* `qr`       rotate the rows of each equation into its triangle by Householder reflections: the accurate way.

ctypes releases the interpreter's lock during calls, so that threads scale.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from steelyard.dynamics.native._code import Code, vector_width
from steelyard.dynamics.native._text import DOUBLE, Text, Vectors
from steelyard.dynamics.native.emit import LANES, STRIDE

_lock = threading.Lock()

# Rows of a tile of the Gram matrix: 4×4 accumulators and 8 operands fit into 32 registers.
TILE = 4

_SHARED = (
    "ptr %kernel, ptr %inputs, ptr %strides, ptr %widths, i64 %count, i64 %start, i64 %stop, "
    "ptr noalias %rows_in, ptr noalias %rows_out, i64 %rows"
)


@contextmanager
def _blocks(t: Text) -> Iterator[tuple[str, str]]:
    """Run the kernel block by block; yields the first sample and the number of samples of each."""
    with t.loop("%start", "%stop", LANES) as first:
        lanes = t.minimum(t.sub("%stop", first), LANES)
        gather(t, first, lanes)
        vectors = t.let(f"sdiv i64 {t.add(lanes, vector_width() - 1)}, {vector_width()}")
        t.do(f"call void %kernel(ptr %rows_in, ptr %rows_out, i64 {vectors})")
        yield first, lanes


def gather(t: Text, first: str, lanes: str) -> None:
    """Gather input rows of a block: row (a, i), lane s ← inputs[a][(first + s)·strides[a] + i]; stride 0 repeats.

    Args:
        t: Text to write to.
        first: First sample of the block.
        lanes: Number of its samples.
    """
    row = t.variable()
    t.store("0", row, "i64")
    with t.loop(0, "%count") as a:
        source = t.element("%inputs", a, "ptr")
        stride = t.element("%strides", a)
        origin = t.mul(first, stride)
        with t.loop(0, t.element("%widths", a)) as i:
            target = t.at("%rows_in", t.mul(t.load(row, "i64"), STRIDE))
            column = t.at(source, t.add(origin, i))
            with t.loop(0, lanes) as s:
                t.store(t.load(t.at(column, t.mul(s, stride))), t.at(target, s))
            t.store(t.add(t.load(row, "i64"), 1), row, "i64")


def _dense() -> Text:
    t = Text()
    with _blocks(t) as (first, lanes), t.loop(0, lanes) as s:
        target = t.at("%result", t.mul(t.add(first, s), "%size"))
        with t.loop(0, "%rows") as k:
            value = t.load(t.at("%rows_out", t.add(t.mul(k, STRIDE), s)))
            t.store(value, t.at(target, t.element("%places", k)))
    return t


def _packed(streamed: bool, buffered: bool = False) -> Text:
    """Write `dense` results with few zeros by whole vectors of columns, including zeros.

    `sources[c]` is the row of column c (a row of zeros if it has none). Blocks are transposed from rows of samples to
    rows of columns in registers. `streamed` writes past the cache: for results far larger than the cache, reading
    every line before overwriting it would double the traffic. If a row is not a whole
    number of vectors, the next row is not aligned; such rows are `buffered` until several samples fill whole vectors.
    """
    t = Text()
    w = vector_width()
    kind = f"<{w} x double>"
    past = f"align {8 * w}, !nontemporal !0"
    with _blocks(t) as (first, lanes):
        whole = t.mul(t.let(f"sdiv i64 {lanes}, {w}"), w)
        with t.loop(0, whole, w) as s:
            result = t.at("%result", t.mul(t.add(first, s), "%size"))
            target = t.at("%rows_out", t.mul(t.add("%rows", 1), STRIDE)) if buffered else result
            with t.loop(0, "%size", w) as begin:
                c = t.minimum(begin, t.sub("%size", w))  # the last vector of a row overlaps the one before
                rows = [t.at("%rows_out", t.mul(t.element("%sources", t.add(c, i)), STRIDE)) for i in range(w)]
                for lane, value in enumerate(transpose(t, [t.load(t.at(r, s), kind) for r in rows])):
                    place = t.at(target, t.add(t.mul(lane, "%size"), c))
                    t.do(f"store {kind} {value}, ptr {place}, {past if streamed and not buffered else 'align 8'}")
            if buffered:
                with t.loop(0, t.mul("%size", w), w) as c:
                    t.do(f"store {kind} {t.load(t.at(target, c), kind)}, ptr {t.at(result, c)}, {past}")
        with t.loop(whole, lanes) as s:
            target = t.at("%result", t.mul(t.add(first, s), "%size"))
            with t.loop(0, "%size") as c:
                row = t.at("%rows_out", t.mul(t.element("%sources", c), STRIDE))
                t.store(t.load(t.at(row, s)), t.at(target, c))
    return t


def transpose(t: Text, rows: list[str]) -> list[str]:
    """Transpose a square of vectors by exchanging ever larger halves.

    Args:
        t: Text to write to.
        rows: The vectors, as many as each has elements.
    """
    w, kind = len(rows), f"<{len(rows)} x double>"
    distance = 1
    while distance < w:
        low = [k if not k & distance else w + k - distance for k in range(w)]
        high = [k + distance if not k & distance else w + k for k in range(w)]
        for i in range(w):
            if not i & distance:
                pair = f"{kind} {rows[i]}, {kind} {rows[i + distance]}"
                masks = [", ".join(f"i32 {k}" for k in m) for m in (low, high)]
                rows[i], rows[i + distance] = [t.let(f"shufflevector {pair}, <{w} x i32> <{m}>") for m in masks]
        distance *= 2
    return rows


def _lanes() -> Text:
    """Let the kernel write block b to result[b mod ring], without moving data."""
    t = Text()
    with t.loop("%start", "%stop", LANES) as first:
        lanes = t.minimum(t.sub("%stop", first), LANES)
        gather(t, first, lanes)
        vectors = t.let(f"sdiv i64 {t.add(lanes, vector_width() - 1)}, {vector_width()}")
        block = t.let(f"srem i64 {t.let(f'sdiv i64 {first}, {LANES}')}, %ring")
        place = t.at("%result", t.mul(block, t.mul("%rows", STRIDE)))
        t.do(f"call void %kernel(ptr %rows_in, ptr {place}, i64 {vectors})")
    return t


def _clear_beyond(t: Text, lanes: str) -> None:
    """Set lanes beyond the last sample to zero."""
    with t.loop(0, "%rows") as k, t.loop(lanes, LANES) as s:
        t.store("0.0", t.at("%rows_out", t.add(t.mul(k, STRIDE), s)))


def _gram() -> Text:
    """Accumulate vectors of lanes, which are summed once at the end, for tiles of the lower triangle."""
    t = Vectors()
    with _blocks(t) as (_, lanes):
        _clear_beyond(t, lanes)
        with t.loop(0, "%equations") as e:
            first, size, offset = (t.element(f"%{x}", e) for x in ("firsts", "sizes", "offsets"))
            with t.loop(0, size, TILE) as r, t.loop(0, t.add(r, 1), TILE) as c:
                x = t.at("%rows_out", t.mul(t.add(first, r), STRIDE))
                y = t.at("%rows_out", t.mul(t.add(first, c), STRIDE))
                add_tile(t, x, y, t.add(offset, t.add(t.mul(r, size), c)), size)
    return t


def add_tile(t: Vectors, x: str, y: str, tile: str, size: str) -> None:
    """Write code for sums[r + i, c + j] += Σ_lanes x_i y_j of one tile; the sums are vectors.

    Args:
        t: Text to write to.
        x: Pointer to the first rows.
        y: Pointer to the second rows.
        tile: Location of (r, c) in the sums.
        size: Number of columns of the sums.
    """
    places = [t.at("%sums", t.add(tile, t.add(t.mul(i, size), j)), t.kind) for i in range(TILE) for j in range(TILE)]
    with t.repeat(LANES, t.width, t.kind, [t.load(p, t.kind) for p in places]) as (s, totals, grown):
        xs = [t.load(t.at(x, t.add(s, i * STRIDE)), t.kind) for i in range(TILE)]
        ys = [t.load(t.at(y, t.add(s, j * STRIDE)), t.kind) for j in range(TILE)]
        grown += [t.fma(xs[k // TILE], ys[k % TILE], total) for k, total in enumerate(totals)]
    for p, value in zip(places, grown, strict=True):
        t.store(value, p, t.kind)


class _Block(Vectors):
    """Arithmetic on one row of a block in vector registers."""

    def places(self, row: str) -> list[str]:
        return [self.at(row, i) for i in range(0, LANES, self.width)]

    def row(self, row: str) -> list[str]:
        return [self.load(p, self.kind) for p in self.places(row)]

    def store_row(self, values: list[str], row: str) -> None:
        for value, place in zip(values, self.places(row), strict=True):
            self.store(value, place, self.kind)

    def dot(self, a: list[str], b: list[str]) -> str:
        """Sum over all lanes."""
        return self.add_up(self.chains(list(zip(a, b, strict=True)), min(4, len(a))))


def _qr() -> Text:
    """Reflect [R; rows] → R, column by column (Golub & Van Loan, algorithm 5.1.1; zeros of R remain)."""
    t = _Block()
    with _blocks(t) as (_, lanes):
        _clear_beyond(t, lanes)
        with t.loop(0, "%equations") as e:
            first, size, offset = (t.element(f"%{x}", e) for x in ("firsts", "sizes", "offsets"))
            rows = t.at("%rows_out", t.mul(first, STRIDE))
            r = t.at("%triangles", offset)
            with t.loop(0, size) as k:
                _reflect(t, rows, t.at(r, t.mul(k, size)), k, size)
    return t


def _reflect(t: _Block, rows: str, r: str, k: str, size: str) -> None:
    """Reflect column k of the block into row k of the triangle (at `r`)."""
    column = t.row(t.at(rows, t.mul(k, STRIDE)))
    square = t.dot(column, column)
    pivot = t.load(t.at(r, k))
    both = t.op("fadd", square, t.op("fmul", pivot, pivot, DOUBLE), DOUBLE)
    norm = t.intrinsic("sqrt", both, kind=DOUBLE)
    beta = t.negative(t.intrinsic("copysign", norm, pivot, kind=DOUBLE), DOUBLE)
    head = t.op("fsub", pivot, beta, DOUBLE)
    # A column of zeros needs no reflection. Its pivot may also be zero, so do not divide by it.
    some = t.let(f"fcmp ogt double {square}, 0.0")
    inverse = t.let(f"select i1 {some}, double {t.let(f'fdiv double 1.0, {head}')}, double 0.0")
    minus = t.negative(head, DOUBLE)
    tau = t.let(f"select i1 {some}, double {t.let(f'fdiv double {minus}, {beta}')}, double 0.0")
    t.store(t.let(f"select i1 {some}, double {beta}, double {pivot}"), t.at(r, k))
    factor = t.broadcast(inverse)
    v = [t.op("fmul", x, factor) for x in column]
    with t.loop(t.add(k, 1), size) as j:
        row, place = t.at(rows, t.mul(j, STRIDE)), t.at(r, j)
        other, above = t.row(row), t.load(place)
        moved = t.op("fmul", tau, t.op("fadd", above, t.dot(v, other), DOUBLE), DOUBLE)
        t.store(t.op("fsub", above, moved, DOUBLE), place)
        back = t.broadcast(t.negative(moved, DOUBLE))
        t.store_row([t.fma(back, x, y) for x, y in zip(v, other, strict=True)], row)


_DRIVERS: dict[str, tuple[Callable[[], Text], str]] = {
    "dense": (_dense, "ptr %places, ptr noalias %result, i64 %size"),
    "packed": (partial(_packed, False), "ptr %sources, ptr noalias %result, i64 %size"),
    "streamed": (partial(_packed, True), "ptr %sources, ptr noalias %result, i64 %size"),
    "buffered": (partial(_packed, True, True), "ptr %sources, ptr noalias %result, i64 %size"),
    "lanes": (_lanes, "ptr noalias %result, i64 %ring"),
    "gram": (_gram, "i64 %equations, ptr %firsts, ptr %sizes, ptr %offsets, ptr noalias %sums"),
    "qr": (_qr, "i64 %equations, ptr %firsts, ptr %sizes, ptr %offsets, ptr noalias %triangles"),
}


@cache
def _code() -> Code:
    texts = {name: write() for name, (write, _) in _DRIVERS.items()}
    functions = [text.function(name, f"{_SHARED}, {_DRIVERS[name][1]}") for name, text in texts.items()]
    declarations = sorted(set().union(*(text.declarations for text in texts.values())))
    return Code("\n\n".join([*declarations, *functions, "!0 = !{i32 1}"]), optimise=True)


def driver(name: str) -> Any:
    """Return the driver `name` as a ctypes function; pointers are passed as addresses."""
    with _lock:  # two threads must not load the code twice: deleting one copy would delete its function in use
        return _driver(name)


@cache
def _driver(name: str) -> Any:
    extra = _DRIVERS[name][1].count("%")
    arguments = [ctypes.c_int64] * (10 + extra)
    return ctypes.CFUNCTYPE(None, *arguments)(_code().address(name))
