"""Parallel processes with one thread each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "STEELYARD_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside this context, BLAS and our own loops use one thread per process, because the processes run in parallel."""
    saved = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # BLAS reads them when it is loaded
    try:
        yield
    finally:
        for name in _THREADS:
            os.environ.pop(name, None)
        os.environ.update(saved)
