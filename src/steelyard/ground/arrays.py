"""The array that everything is made of, which columns are independent; BLAS kept to one thread, threads to one heap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def frozen(values: ArrayLike) -> Array:
    """A read-only float64 copy of `values`, so that what a robot holds can never change. What is that already stays."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _is_frozen(values):
        return values
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _is_frozen(array: Array) -> bool:
    return bool(array.flags.owndata and not array.flags.writeable)


def independent_columns(
    A: Array, leaves_something: Callable[[int, float], bool], order: Sequence[int] | None = None
) -> list[int]:
    """The columns that are no combination of those before them. After Gautier 1991.

    Unlike the diagonal of a plain QR factorisation, a dependent column takes up no direction here, so that the
    rounding it leaves cannot hide a later column.

    Args:
        A: the columns.
        leaves_something: told a column's index and the length of what is left of it when the directions of those
            before it are taken away, whether that is more than rounding.
        order: in which they are gone through; default: from left to right.
    """
    Q = np.zeros((len(A), min(A.shape)))
    independent: list[int] = []
    for k in range(A.shape[1]) if order is None else order:
        rest = A[:, k].copy()
        for _ in range(2):  # twice is enough for orthogonality to machine precision (Kahan)
            known = Q[:, : len(independent)]
            rest -= known @ (known.T @ rest)
        size = float(np.linalg.norm(rest))
        if leaves_something(k, size):
            Q[:, len(independent)] = rest / size
            independent.append(k)
    return independent


def solve_triangle(R: Array, right: Array, transposed: bool = False) -> Array:
    """x of R x = right (or Rᵀ x = right) for an upper triangle R, by NumPy alone: SciPy's takes 0.1 s to import.

    Args:
        R: an upper triangle without zeros on its diagonal.
        right: one right side, or several as columns.
        transposed: solve with Rᵀ instead.
    """
    return np.asarray(np.linalg.solve(R.T if transposed else R, right))


@cache
def _controller(scipy_too: bool) -> Any:
    # Finding the libraries takes milliseconds; limiting them afterwards takes microseconds.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def placed_like(x: Any, like: Any) -> Any:
    """The array `x` in the memory in which `like` lies: as it is, unless that is the memory of a GPU."""
    return x if isinstance(like, np.ndarray) else np.asarray(x, like=like)


def one_blas_thread() -> Any:
    """A context in which BLAS and LAPACK keep to one thread: two make 40×40 work several times slower than one.

    Enter it outside of threads: it is the process's.
    """
    # SciPy brings a BLAS of its own, which can only be found once it is there.
    return _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


def one_heap() -> None:
    """Let all threads of this process allocate from one heap, so that what one frees serves the others (glibc only).

    A thread that reads ahead would else have a heap of its own: a fifth more memory at the peak. For programs to call
    at their start; a library does not decide this.
    """
    _set_heap({"ARENA_MAX": 1})


# Of a process that goes through log after log: what is freed lies on the one heap until `give_back_memory`. Dask has
# its workers return every freed page at once; the arrays of some megabytes that a log takes by the hundred then cost
# half as much again as the arithmetic in them, for pages that the system must clean first.
WORKER_HEAP = {"ARENA_MAX": 1, "TRIM_THRESHOLD_": 256 << 20, "MMAP_THRESHOLD_": 32 << 20}
# Numbers of glibc's malloc.h, by what the environment calls them after MALLOC_.
_MALLOPT = {"TRIM_THRESHOLD_": -1, "MMAP_THRESHOLD_": -3, "ARENA_MAX": -8}


def worker_heap() -> None:
    """Let this process allocate as `WORKER_HEAP` says (glibc only); threads that run already keep their own heaps."""
    _set_heap(WORKER_HEAP)


def _set_heap(options: Mapping[str, int]) -> None:
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # there is no such function elsewhere
        for name, value in options.items():
            ctypes.CDLL(None).mallopt(_MALLOPT[name], value)


def give_back_memory() -> None:
    """Hand back to the system what was freed and still lies on the heap (glibc only): for processes that live on after
    large work."""
    import ctypes
    import gc

    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # there is no such function elsewhere
        ctypes.CDLL(None).malloc_trim(0)


def quick_length(most: int) -> int:
    """The largest number of rows up to `most` that is quick to transform: its prime factors are 2, 3, 5 and 7.

    A prime factor of some hundreds makes a transform seven times slower (1052 = 4 · 263 against 1050).
    """
    for length in range(most, 0, -1):
        rest = length
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
    return most
