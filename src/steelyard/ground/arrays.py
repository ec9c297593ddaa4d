"""The array that everything is made of, and BLAS kept to one thread where that is faster."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def frozen(values: ArrayLike) -> Array:
    """A private, read-only float64 copy, so that what a robot holds can never change. What is that already stays."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and _is_frozen(values):
        return values
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _is_frozen(array: Array) -> bool:
    return bool(array.flags.owndata and not array.flags.writeable)


@cache
def _controller() -> Any:
    # Finding the libraries takes milliseconds; limiting them afterwards takes microseconds.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS and LAPACK keep to one thread: two make 40×40 work several times slower than one.

    Enter it outside of threads: it is the process's.
    """
    return _controller().limit(limits=1, user_api="blas")
