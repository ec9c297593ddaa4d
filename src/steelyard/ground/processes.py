"""Processes side by side: each keeps to one thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "STEELYARD_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and our own loops keep to one thread each, here and in new processes: those are what runs in parallel."""
    kept = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # BLAS reads it when it is loaded
    try:
        yield
    finally:
        for name in _THREADS:
            os.environ.pop(name, None)
        os.environ.update(kept)
