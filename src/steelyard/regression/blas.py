"""One BLAS thread for small matrices: two make 40×40 work several times slower than one."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds; limiting them afterwards takes microseconds.
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS and LAPACK keep to one thread. Enter it outside of threads: it is the process's."""
    return _controller().limit(limits=1, user_api="blas")
