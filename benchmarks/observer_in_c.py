"""How long the observer takes in C, for the benchmarks of contact and of the whole watch."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard.dynamics import Model
from steelyard.export import observer_to_c
from steelyard.watch.batch import SampleBatch


def c_microseconds(model: Model, batch: SampleBatch) -> float:
    """Of the observer in C, gcc -O2, per sample: the best of several passes over a record."""
    with tempfile.TemporaryDirectory() as folder:
        source, _ = observer_to_c(model, Path(folder) / "arm_observer.c", "arm")
        loop = Path(folder) / "loop.c"
        loop.write_text(
            '#include "arm_observer.h"\n'
            "void run(arm_observer *o, long n, const double *t, const double *q, const double *dq, const double *tau)\n"
            "{ for (long k = 0; k < n; k++) { const long j = k * ARM_OBSERVER_JOINTS;\n"
            "  arm_observer_step(o, t[k], q + j, dq + j, tau + j); } }\n"
        )
        library = Path(folder) / "o.so"
        flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, "-o", library, source, loop, "-lm"], check=True)
        code = ctypes.CDLL(str(library))
        state = np.zeros(10_000)  # more than the struct of any robot here
        arrays = [np.ascontiguousarray(x) for x in (batch.t, batch.q, batch.dq, batch.tau)]
        best = np.inf
        for _ in range(50):
            code.arm_observer_init(ctypes.c_void_p(state.ctypes.data), ctypes.c_double(5.0))
            start = time.thread_time()
            code.run(ctypes.c_void_p(state.ctypes.data), len(batch), *(ctypes.c_void_p(a.ctypes.data) for a in arrays))
            best = min(best, (time.thread_time() - start) / len(batch))
        return 1e6 * best
