"""Butterworth filters run forwards and backwards as matrix products: block by block, and only for the rows wanted.

A recursion goes from sample to sample, column by column. Cut into blocks, the same sums are a few products of small
matrices with all columns at once, exact to rounding, and a row that nobody keeps need not be computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from steelyard.ground.arrays import Array

# Samples in a block, if every row is wanted: longer blocks multiply more, shorter ones pay more for each product.
_BLOCK = 64
# A block holds a whole number of steps; beyond this size computing every row costs less than the block's matrices.
_LARGEST = 1024
# States are added up in groups of so many blocks by one product.
_GROUP = 8
# Numbers that are worked on at once: 256 kB of them.
_IN_CACHE = 32_768


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
    cross s + inject[1] u to the left. `last` is the forward pass's output at the block's end, from [u; s].
    """

    local: Array
    carry: Array
    inject: Array
    forget: Array
    cross: Array
    last: Array


@lru_cache(maxsize=64)
def _block(order: int, ratio: float, size: int) -> _Block:
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
    return _Block(
        local=T.T @ T,
        carry=np.hstack([T.T @ O, O[::-1]]),
        inject=np.vstack([G, back @ T]),
        forget=powers[size],
        cross=back @ O,
        last=np.r_[T[-1], O[-1]],
    )


def both_ways(x: Array, order: int, ratio: float, pad: int, rows: slice) -> Array:
    """`x[rows]` after the filter has run forwards and backwards along the first axis; x is `(samples, columns)`.

    Ends are treated as by scipy.signal.sosfiltfilt: `pad` samples of odd reflection are put on either side, and both
    passes start as if their first value had always been there.
    """
    start, stop, step = rows.indices(len(x))
    fits = step <= _LARGEST
    size = step * -(-_BLOCK // step) if fits else _BLOCK
    block = _block(order, ratio, size)
    pieces, before = _pieces(x, pad, size)
    states = _states(block, pieces, butterworth(order, ratio).steady)
    stride = step if fits else 1
    phase = (before + start) % stride
    found = _outputs(block.local[phase::stride], block.carry[phase::stride], pieces, states)
    first, count = (before + start - phase) // stride, len(range(start, stop, step))
    return found[first :: step // stride][:count]


def _outputs(local: Array, carry: Array, pieces: Sequence[Array], states: Array) -> Array:
    """The wanted rows of all blocks; a few blocks at a time, so that what is added is still in the cache."""
    columns = states.shape[2]
    out = np.empty((len(states), len(local), columns))
    some = max(1, _IN_CACHE // (max(local.shape) * columns))
    first = 0
    for piece in pieces:
        for k in range(0, len(piece), some):
            part = piece[k : k + some]
            place = slice(first + k, first + k + len(part))
            np.matmul(local, part, out=out[place])
            out[place] += np.matmul(carry, states[place])
        first += len(piece)
    return out.reshape(-1, columns)


def _pieces(x: Array, pad: int, size: int) -> tuple[list[Array], int]:
    """The reflected signal as blocks `(blocks, size, columns)`, the middle a view; and how many samples precede x.

    What is missing to whole blocks is put before it, as the constant from which the forward pass starts anyway.
    """
    left = 2.0 * x[:1] - x[pad:0:-1]
    right = 2.0 * x[-1:] - x[-2 : -pad - 2 : -1]
    fill = -(len(x) + 2 * pad) % size
    head = np.concatenate([np.repeat(left[:1] if pad else x[:1], fill, axis=0), left])
    border = min(-len(head) % size, len(x))
    middle = (len(x) - border) // size
    end = border + middle * size
    if middle == 0:
        parts = [np.concatenate([head, x, right])]
    else:
        parts = [np.concatenate([head, x[:border]]), x[border:end], np.concatenate([x[end:], right])]
    return [part.reshape(-1, size, x.shape[1]) for part in parts if len(part)], len(head)


def _states(block: _Block, pieces: Sequence[Array], steady: Array) -> Array:
    """The states [s; z] with which every block is entered from the left and from the right."""
    m = len(steady)
    injected = np.concatenate([np.matmul(block.inject, piece) for piece in pieces])
    s = _scan(block.forget, injected[:, :m], np.multiply.outer(steady, pieces[0][0, 0]))
    end = block.last @ np.concatenate([pieces[-1][-1], s[-1]])
    thrown = injected[:, m:] + np.matmul(block.cross, s)
    z = _scan(block.forget, thrown[::-1], np.multiply.outer(steady, end))
    return np.concatenate([s, z[::-1]], axis=1)


def _scan(forget: Array, added: Array, begin: Array) -> Array:
    """The states s before each step of s⁺ = forget s + added: within groups by one product, then group by group."""
    count, m, columns = added.shape
    groups = -(-count // _GROUP)
    powers = [np.eye(m)]
    for _ in range(_GROUP):
        powers.append(forget @ powers[-1])
    sums = np.zeros((_GROUP + 1, m, _GROUP, m))
    for i in range(_GROUP + 1):
        for j in range(i):
            sums[i, :, j] = powers[i - 1 - j]
    grouped = np.zeros((groups * _GROUP, m, columns))
    grouped[:count] = added
    inner = np.matmul(sums.reshape(-1, _GROUP * m), grouped.reshape(groups, _GROUP * m, columns))
    starts = np.empty((groups, m, columns))
    state = begin
    for k in range(groups):
        starts[k] = state
        state = powers[-1] @ state + inner[k, -m:]
    found = inner[:, :-m] + np.matmul(np.concatenate(powers[:-1]), starts)
    return np.asarray(found.reshape(-1, m, columns)[:count])
