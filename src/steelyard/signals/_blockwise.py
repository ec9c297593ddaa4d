"""Butterworth filters run forwards and backwards as matrix products: block by block, and only for the rows wanted.

A recursion goes from sample to sample, column by column. Cut into blocks, the same sums are a few products of small
matrices with all columns at once, exact to rounding, and a row that nobody keeps need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from steelyard.ground.arrays import Array, placed_like

# Samples in a block, if every row is wanted, and if only some are: longer blocks multiply more, shorter ones pay more
# for each product, as do those of samples that are given sparsely, which are twice as long.
_BLOCK, _SPARSE_BLOCK = 32, 120
# From so many columns on, states are carried from block to block one by one.
_WIDE = 64
# A block holds a whole number of steps; beyond this size computing every row costs less than the block's matrices.
_LARGEST = 1024
# States are added up in groups of so many blocks by one product.
_GROUP = 8
# Numbers that are worked on at once: 3 MB of them. Beyond 8 MB a product took twice as long, below 0.5 MB calls count.
_IN_CACHE = 400_000


@dataclass(frozen=True, eq=False)
class Cascade:
    """A filter as s' = A s + b u, y = c s + d u; `steady` is the state that a constant input of 1 leads to."""

    A: Array
    b: Array
    c: Array
    d: float
    steady: Array

    @property
    def radius(self) -> float:
        """How much of a state is left after one sample, in the long run."""
        return float(np.max(np.abs(np.linalg.eigvals(self.A))))


@lru_cache(maxsize=64)
def butterworth(order: int, ratio: float) -> Cascade:
    """The digital Butterworth low-pass whose cut-off is `ratio` of the sampling rate, by the bilinear transform.

    Sections s² + 2ζs + 1 with ζ = sin((2k−1)π/2n), k = 1 … n/2, and s + 1 if the order n is odd, one behind the other.
    The states are those of the analog circuit: where the cut-off is far below the sampling rate, a direct form would
    lose twice as many digits.
    """
    F, g = np.zeros((order, order)), np.eye(1, order)[0]
    if order % 2:
        F[0, 0] = -1.0
    for k in range(order % 2, order, 2):
        F[k : k + 2, k : k + 2] = [[0.0, 1.0], [-1.0, -2.0 * np.sin((k // 2 + 0.5) * np.pi / order)]]
        if k == 0:
            g = np.eye(1, order, 1)[0]
        else:
            F[k + 1, 0 if k == 1 else k - 2] = 1.0  # the output of the section before
    c = np.eye(1, order, max(order - 2, 0))[0]
    speed = 1.0 / np.tan(np.pi * ratio)
    inverse = np.linalg.inv(speed * np.eye(order) - F)
    size = np.sqrt(2.0 * speed)
    A = inverse @ (speed * np.eye(order) + F)
    return Cascade(A, size * inverse @ g, size * inverse.T @ c, c @ inverse @ g, -0.5 * size * np.linalg.solve(F, g))


@dataclass(frozen=True, eq=False)
class _Block:
    """What both passes do to a block u that is entered with state s from the left and z from the right.

    y = local u + carry [s; z]; the states that leave it are forget s + inject[0] u to the right, and forget z +
    cross s + inject[1] u to the left. `last` is the forward pass's output at the block's end, from [u; s]; `entry` is
    the state s that a constant signal of 1 leads to.
    """

    local: Array
    carry: Array
    inject: Array
    forget: Array
    cross: Array
    last: Array
    entry: Array

    def placed_like(self, like: Array) -> _Block:
        """In the memory in which `like` lies."""
        return self if isinstance(like, np.ndarray) else _Block(*(placed_like(x, like) for x in vars(self).values()))


@lru_cache(maxsize=64)
def _block(order: int, ratio: float, size: int, every: int) -> _Block:
    """Of `size` samples, of which every so many-th is given and counts for those before it as well."""
    filter = butterworth(order, ratio)
    m = len(filter.b)
    powers = np.empty((size + 1, m, m))
    powers[0] = np.eye(m)
    for k in range(size):
        powers[k + 1] = filter.A @ powers[k]
    response = np.r_[filter.d, (powers[: size - 1] @ filter.b) @ filter.c]
    lag = np.subtract.outer(np.arange(size), np.arange(size))
    T = np.where(lag >= 0, response[np.maximum(lag, 0)], 0.0)  # forward pass: T u + O s
    O = powers[:size].transpose(0, 2, 1) @ filter.c  # noqa: E741 (the observability matrix)
    G = (powers[:size][::-1] @ filter.b).T  # state at the end: Aⁿ s + G u
    back = G[:, ::-1]  # the same filter, from the other side
    given = slice(every - 1, None, every)
    entry = filter.steady
    if every > 1:
        entry = np.linalg.solve(np.eye(m) - np.linalg.matrix_power(filter.A, every), every * filter.b)
    return _Block(
        local=every * (T.T @ T)[:, given],
        carry=np.hstack([T.T @ O, O[::-1]]),
        inject=every * np.vstack([G, back @ T])[:, given],
        forget=powers[size],
        cross=back @ O,
        last=np.r_[every * T[-1, given], O[-1]],
        entry=entry,
    )


# What samples start … stop of a signal are, `(samples, columns)`; the array may be used again by the next call.
Make = Callable[[int, int], Array]


def both_ways(x: Array, order: int, ratio: float, pad: int, rows: slice) -> Array:
    """`x[rows]` after the filter has run forwards and backwards along the first axis; x is `(samples, columns)`.

    Ends are treated as by scipy.signal.sosfiltfilt: `pad` samples of odd reflection are put on either side, and both
    passes start as if their first value had always been there.
    """
    return both_ways_of(lambda start, stop: x[start:stop], len(x), order, ratio, pad, rows)


def both_ways_of(
    make: Make, samples: int, order: int, ratio: float, pad: int, rows: slice, sparse: Sparse | None = None
) -> Array:
    """The same for a signal that `make(start, stop)` computes: every part is asked for once, but for its two ends, and
    filtered while it is in the cache; the whole signal never exists.

    A `sparse` signal is known at some of its samples alone, and `make` counts these. Each then stands for those before
    it, too: the same sum over the filter's impulse response with fewer points, exact for a signal that holds nothing
    near the rate of its samples and its multiples, but for what the filter lets pass there.
    """
    every = 1 if sparse is None else sparse.every
    start, stop, step = rows.indices(samples)
    fits = lcm(step, every) <= _LARGEST
    stride = step if fits else 1
    unit = lcm(stride, every)
    wanted = _SPARSE_BLOCK * min(every, 2) if stride > 1 else _BLOCK
    size = unit * -(-wanted // unit)
    given, last = (samples - 1) // every + 1, -(-(samples - 1 + pad) // every)  # samples, and the last one's number
    ends = _Ends.of(make, given, (-(-pad // every), last + 1 - given), size // every, sparse)
    block = _block(order, ratio, size, every).placed_like(ends.head)
    before = ends.before * every + every - 1
    phase = (before + start) % stride
    local, carry = block.local[phase::stride], block.carry[phase::stride]
    columns, inner = ends.head.shape[2], len(block.inject)
    # What a block throws out to both sides, and its own rows: where those are few, by one product, so that every sample
    # is fetched once.
    few = len(local) < 2 * inner
    shapes = [(ends.blocks, rows, columns) for rows in ([inner + len(local)] if few else [inner, len(local)])]
    made = [np.empty_like(ends.head, shape=shape) for shape in shapes]
    products, first = [np.concatenate([block.inject, local])] if few else [block.inject, local], 0
    for part in ends.parts(make, max(1, _IN_CACHE * every // (size * columns))):
        place = slice(first, first + len(part))
        for product, target in zip(products, made, strict=True):
            np.matmul(product, part, out=target[place])
        first = place.stop
    injected, out = (made[0][:, :inner], made[0][:, inner:]) if few else made
    states = _states(block, injected, ends, placed_like(butterworth(order, ratio).steady, out))
    some = max(1, _IN_CACHE // (len(local) * columns))
    for k in range(0, len(out), some):
        out[k : k + some] += np.matmul(carry, states[k : k + some])
    begin, count = (before + start - phase) // stride, len(range(start, stop, step))
    return out.reshape(-1, columns)[begin :: step // stride][:count]


@dataclass(frozen=True)
class Sparse:
    """A smooth signal that is known at samples 0, every, 2 · every … alone.

    Attributes:
        every: See above.
        beyond: Gives so many values that follow the last one: of its odd reflection about the signal's end.
    """

    every: int
    beyond: Callable[[int], Array]


@dataclass(frozen=True, eq=False)
class _Ends:
    """A reflected signal as blocks: the first and the last as they are, `(blocks, size, columns)`, and where between
    them whole blocks of the signal stand, from `border` to `end`. `before`: how many samples precede the signal.
    """

    head: Array
    tail: Array
    border: int
    end: int
    before: int

    @property
    def blocks(self) -> int:
        return len(self.head) + len(self.tail) + (self.end - self.border) // int(self.head.shape[1])

    @classmethod
    def of(cls, make: Make, samples: int, pads: tuple[int, int], size: int, sparse: Sparse | None) -> _Ends:
        """What is missing to whole blocks is put before it, as the constant from which the forward pass starts."""
        pad, after = pads
        fill = -(samples + pad + after) % size
        before = fill + pad
        border = min(-before % size, samples)
        end = border + (samples - border) // size * size
        begin = make(0, max(pad + 1, border)).copy()
        left = 2.0 * begin[:1] - begin[pad:0:-1]
        head = [np.repeat(left[:1] if pad else begin[:1], fill, axis=0), left, begin[:border]]
        last = make(min(end, samples - after - 1) if sparse is None else end, samples).copy()
        right = 2.0 * last[-1:] - last[-2 : -after - 2 : -1] if sparse is None else sparse.beyond(after)
        tail = [last[len(last) - (samples - end) :], right]
        if end == border:  # no whole block between the ends, nor perhaps at either
            head, tail = [*head, *tail], []
        shape = (-1, size, begin.shape[1])
        joined = np.concatenate(tail) if tail else begin[:0]
        return cls(np.concatenate(head).reshape(shape), joined.reshape(-1, *shape[1:]), border, end, before)

    def parts(self, make: Make, some: int) -> Iterator[Array]:
        """All blocks in order, a few at a time."""
        _, size, columns = self.head.shape
        yield self.head
        for k in range(self.border, self.end, some * size):
            yield make(k, min(k + some * size, self.end)).reshape(-1, size, columns)
        if len(self.tail):
            yield self.tail

    @property
    def last_block(self) -> Array:
        block: Array = self.tail[-1] if len(self.tail) else self.head[-1]
        return block


def _states(block: _Block, injected: Array, ends: _Ends, steady: Array) -> Array:
    """The states [s; z] with which every block is entered from the left and from the right."""
    m = len(steady)
    scan = _scan_one_by_one if injected.shape[2] >= _WIDE else _scan_in_groups
    states = np.empty_like(injected)
    s, z = states[:, :m], states[:, m:]
    scan(block.forget, injected[:, :m], block.entry[:, None] * ends.head[0, 0], s)
    end = block.last @ np.concatenate([ends.last_block, s[-1]])
    thrown = np.matmul(block.cross, s)
    thrown += injected[:, m:]
    scan(block.forget, thrown[::-1], steady[:, None] * end, z[::-1])
    return states


def _scan_one_by_one(forget: Array, added: Array, begin: Array, out: Array) -> None:
    """The states s before each step of s⁺ = forget s + added, into `out`."""
    out[0] = begin
    for k in range(len(out) - 1):
        np.matmul(forget, out[k], out=out[k + 1])
        out[k + 1] += added[k]


def _scan_in_groups(forget: Array, added: Array, begin: Array, out: Array) -> None:
    """The same for few columns, where a step takes longer to call than to do: within groups by one product."""
    count, m, columns = added.shape
    groups = -(-count // _GROUP)
    powers = [placed_like(np.eye(m), added)]
    for _ in range(_GROUP):
        powers.append(forget @ powers[-1])
    sums = np.zeros_like(added, shape=(_GROUP + 1, m, _GROUP, m))
    for i in range(_GROUP + 1):
        for j in range(i):
            sums[i, :, j] = powers[i - 1 - j]
    grouped = np.zeros_like(added, shape=(groups * _GROUP, m, columns))
    grouped[:count] = added
    inner = np.matmul(sums.reshape(-1, _GROUP * m), grouped.reshape(groups, _GROUP * m, columns))
    starts = np.empty_like(added, shape=(groups, m, columns))
    state = begin
    for k in range(groups):
        starts[k] = state
        state = powers[-1] @ state + inner[k, -m:]
    found = inner[:, :-m] + np.matmul(np.concatenate(powers[:-1]), starts)
    out[:] = found.reshape(-1, m, columns)[:count]
