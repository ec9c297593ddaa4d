"""Zero-phase Butterworth filters as matrix products, block by block, only for the selected rows.

In blocks, the recursion over samples becomes a few products of small matrices with all columns at once, exact to
rounding, and rows that are not selected need not be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from steelyard.ground.arrays import Array, placed_like

# Samples of a block if all rows are selected, and if only some are. Longer blocks need more multiplications per sample,
# shorter ones have more overhead per product. Blocks of sparse samples are twice as long.
_BLOCK, _SPARSE_BLOCK = 32, 120
# From this number of columns on, states are propagated block by block.
_WIDE = 64
# A block holds a whole number of steps; above this size computing every row costs less than the block's matrices.
_LARGEST = 1024
# Number of blocks whose states are summed by one product.
_GROUP = 8
# Numbers that are processed at once, 3 MB. Above 8 MB a product took twice as long, below 0.5 MB calls dominate.
_IN_CACHE = 400_000


@dataclass(frozen=True, eq=False)
class Cascade:
    """A filter s' = A s + b u, y = c s + d u; `steady` is its state for a constant input of 1."""

    A: Array
    b: Array
    c: Array
    d: float
    steady: Array

    @property
    def radius(self) -> float:
        """Factor by which a state decays per sample in the long run."""
        return float(np.max(np.abs(np.linalg.eigvals(self.A))))


@lru_cache(maxsize=64)
def butterworth(order: int, ratio: float) -> Cascade:
    """Design a digital Butterworth low-pass by the bilinear transform.

    A cascade of sections s² + 2ζs + 1 with ζ = sin((2k−1)π/2n), k = 1 … n/2, and s + 1 for odd order n. The states
    are those of the analog filter: for low cut-offs a direct form would lose twice as many digits.

    Args:
        order: Order n.
        ratio: Cut-off relative to the sampling rate.
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
    """Effect of both passes on a block u with entry states s from the left and z from the right.

    y = local u + carry [s; z]. The exit states are forget s + inject[0] u to the right, and forget z + cross s +
    inject[1] u to the left. `last` gives the output of the forward pass at the end of the block, from [u; s], `entry`
    the state s of a constant signal of 1.
    """

    local: Array
    carry: Array
    inject: Array
    forget: Array
    cross: Array
    last: Array
    entry: Array

    def placed_like(self, like: Array) -> _Block:
        """Move the matrices to the memory of `like`."""
        return self if isinstance(like, np.ndarray) else _Block(*(placed_like(x, like) for x in vars(self).values()))


@lru_cache(maxsize=64)
def _block(order: int, ratio: float, size: int, every: int) -> _Block:
    """Create the matrices of a block of `size` samples; one in `every` is given, and stands for those before it."""
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
    back = G[:, ::-1]  # the same filter in the other direction
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


# Returns samples start … stop of a signal, shape (samples, columns); the next call may reuse the array.
Make = Callable[[int, int], Array]


def both_ways(x: Array, order: int, ratio: float, pad: int, rows: slice) -> Array:
    """Filter forwards and backwards along the first axis and return the selected rows.

    Ends are treated as by scipy.signal.sosfiltfilt: the signal is extended by odd reflection, and both passes start in
    the steady state of their first value.

    Args:
        x: Signal, shape (samples, columns).
        order: Order of the filter.
        ratio: Cut-off relative to the sampling rate.
        pad: Samples of reflection on either side.
        rows: Rows to return.
    """
    return both_ways_of(lambda start, stop: x[start:stop], len(x), order, ratio, pad, rows)


def both_ways_of(
    make: Make, samples: int, order: int, ratio: float, pad: int, rows: slice, sparse: Sparse | None = None
) -> Array:
    """Filter a signal that is computed in parts, so that the whole signal is never in memory.

    A sparse sample also represents the samples before it: the sum over the filter's impulse response has fewer terms.
    It is exact for a signal without power near multiples of its rate, except for what the filter passes there.

    Args:
        make: Function of (start, stop) that computes a part; called once per part, except for both ends.
        samples: Number of samples.
        order: As for `both_ways`.
        ratio: As for `both_ways`.
        pad: As for `both_ways`.
        rows: As for `both_ways`.
        sparse: Spacing of the samples that `make` counts; None: it computes all samples.
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
    # The exit states of a block and its rows. If the rows are few, one product computes both and reads samples once.
    few = len(local) < 2 * inner
    shapes = [(ends.blocks, rows, columns) for rows in ([inner + len(local)] if few else [inner, len(local)])]
    results = [np.empty_like(ends.head, shape=shape) for shape in shapes]
    products, first = [np.concatenate([block.inject, local])] if few else [block.inject, local], 0
    for part in ends.parts(make, max(1, _IN_CACHE * every // (size * columns))):
        place = slice(first, first + len(part))
        for product, target in zip(products, results, strict=True):
            np.matmul(product, part, out=target[place])
        first = place.stop
    injected, out = (results[0][:, :inner], results[0][:, inner:]) if few else results
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
    """A reflected signal as blocks: `head` and `tail`, shape (blocks, size, columns), and between them whole blocks of
    the signal from sample `border` to `end`. `before` samples precede the signal.
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
        if end == border:  # without whole blocks in between, both ends are one piece
            head, tail = [*head, *tail], []
        shape = (-1, size, begin.shape[1])
        joined = np.concatenate(tail) if tail else begin[:0]
        return cls(np.concatenate(head).reshape(shape), joined.reshape(-1, *shape[1:]), border, end, before)

    def parts(self, make: Make, some: int) -> Iterator[Array]:
        """Yield all blocks in order, a few at a time."""
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
    """Compute the entry states [s; z] of every block from the left and from the right."""
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
    """Write the states s before each step of s⁺ = forget s + added to `out`."""
    out[0] = begin
    for k in range(len(out) - 1):
        np.matmul(forget, out[k], out=out[k + 1])
        out[k + 1] += added[k]


def _scan_in_groups(forget: Array, added: Array, begin: Array, out: Array) -> None:
    """Do the same for few columns, with one product per group, since the overhead of calls dominates."""
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
    states = inner[:, :-m] + np.matmul(np.concatenate(powers[:-1]), starts)
    out[:] = states.reshape(-1, m, columns)[:count]
