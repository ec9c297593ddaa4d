"""Array type, independent columns, triangular solve; limits for BLAS threads and for the heap."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IndexArray = NDArray[np.intp]
RowSelection = NDArray[np.intp] | NDArray[np.bool_]  # selects rows by index or by mask


def frozen(values: ArrayLike) -> Array:
    """Return a read-only float64 copy of `values`; an array that is already read-only is returned itself."""
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
    """Return the indices of columns that are linearly independent of the columns before them (Gautier 1991).

    A dependent column adds no direction here, unlike in a plain QR factorisation. So its rounding error cannot hide
    a later column.

    Args:
        A: Matrix of columns.
        leaves_something: Decides from a column's index and the norm of its orthogonal remainder whether the remainder
            exceeds rounding.
        order: Order of the columns; default: from left to right.
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
    """Solve R x = right for an upper triangle R with NumPy alone, because SciPy takes 0.1 s to import.

    Args:
        R: Upper triangle without zeros on its diagonal.
        right: Right side, or several as columns.
        transposed: Solve Rᵀ x = right instead.
    """
    return np.asarray(np.linalg.solve(R.T if transposed else R, right))


@cache
def _controller(scipy_too: bool) -> Any:
    # Cached: finding the libraries takes milliseconds, setting their limits microseconds.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def placed_like(x: Any, like: Any) -> Any:
    """Move an array to the memory of another one, which may be on a GPU.

    Args:
        x: Array to move.
        like: Array that determines the memory.
    """
    return x if isinstance(like, np.ndarray) else np.asarray(x, like=like)


def one_blas_thread() -> Any:
    """Return a context that limits BLAS and LAPACK to one thread: with two, 40×40 matrices are several times slower.

    The limit holds for the whole process, so enter it outside of threads.
    """
    # SciPy has its own BLAS, which is found only after its import.
    return _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")


def one_heap() -> None:
    """Let all threads of this process share one heap (glibc only).

    A separate heap for the thread that reads ahead raises the peak memory by a fifth. Only programs call this, at
    their start; a library must not.
    """
    _set_heap({"ARENA_MAX": 1})


# For a process that reads many logs: freed memory stays on the heap until `give_back_memory`. Dask's workers return
# freed pages at once; the system must then clear each new page, and work on large arrays takes 1.5 times as long.
WORKER_HEAP = {"ARENA_MAX": 1, "TRIM_THRESHOLD_": 256 << 20, "MMAP_THRESHOLD_": 32 << 20}
# Option numbers in glibc's malloc.h, by the name of the environment variable after MALLOC_.
_MALLOPT = {"TRIM_THRESHOLD_": -1, "MMAP_THRESHOLD_": -3, "ARENA_MAX": -8}


def worker_heap() -> None:
    """Apply `WORKER_HEAP` to this process (glibc only); threads that already run keep their heaps."""
    _set_heap(WORKER_HEAP)


def _set_heap(options: Mapping[str, int]) -> None:
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # other C libraries lack the function
        for name, value in options.items():
            ctypes.CDLL(None).mallopt(_MALLOPT[name], value)


def give_back_memory() -> None:
    """Return freed heap memory to the system (glibc only), for a process that continues after a large task."""
    import ctypes
    import gc

    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # other C libraries lack the function
        ctypes.CDLL(None).malloc_trim(0)


def quick_length(most: int) -> int:
    """Return the largest length up to `most` with a fast Fourier transform: its prime factors are 2, 3, 5 and 7.

    A prime factor of some hundreds makes the transform seven times slower (1052 = 4 · 263 compared with 1050).
    """
    for length in range(most, 0, -1):
        rest = length
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
    return most
