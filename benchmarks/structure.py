"""What the search for the structure costs: `identify` with and without it, on one core.

    python benchmarks/structure.py

A UR10 with Stribeck friction that fades otherwise than the library's, in memory and, from 1e6 samples on, streamed from
Parquet. Processor time in the program; machine code is in its cache, where the first run leaves it.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import plants
from common import one_core, save, show

SAMPLES = (10_000, 100_000, 1_000_000)
ROUNDS = 3


def user(job: Any) -> tuple[float, Any]:
    start = os.times().user
    out = job()
    return os.times().user - start, out


def write(path: Path, robot: Any, samples: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    t, q, dq, ddq = plants.motion(robot, rng, samples / plants.RATE)
    tau = plants.Plant(robot, "stribeck", rng).torque(q, dq, ddq)
    tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=q.shape)
    names = ["t", *(f"{x}{k + 1}" for x in ("q", "dq", "tau") for k in range(robot.dof))]
    table = pa.table(dict(zip(names, [t, *q.T, *dq.T, *tau.T], strict=True)))
    pq.write_table(table, path, row_group_size=200_000)


def main() -> None:
    from steelyard.identification import _search
    from steelyard.identification.identify import identify
    from steelyard.signals.source import open_log

    one_core()
    robot = plants.robot_of("ur10")
    inner: list[float] = []
    found = _search.Search.run

    def timed(self: Any) -> Any:
        taken, out = user(lambda: found(self))
        inner.append(taken)
        return out

    _search.Search.run = timed  # type: ignore[method-assign]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for samples in SAMPLES:
            path = Path(folder) / f"{samples}.parquet"
            write(path, robot, samples)
            inner.clear()
            times: dict[str, list[float]] = {"default": [], "plain": []}
            tried = 0
            for _ in range(ROUNDS):
                for label in times:
                    taken, one = user(lambda p=path, x=label: identify(robot, open_log(p, robot), plain=x == "plain"))
                    times[label].append(taken)
                    tried = one.structure.tried if one.structure else tried
            best = {label: min(x) for label, x in times.items()}
            results[str(samples)] = {**best, "search": min(inner), "structures": tried}
    rows = [
        [f"{int(n):,}", f"{r['default']:.2f} s", f"{r['plain']:.2f} s", f"{r['default'] / r['plain']:.1f}",
         f"{r['search']:.2f} s", f"{r['structures']}", f"{1e3 * r['search'] / r['structures']:.2f} ms"]
        for n, r in results.items()
    ]  # fmt: skip
    show("identify, user seconds", ["samples", "default", "plain", "ratio", "search", "structures", "each"], rows)
    save("structure", {"when": time.strftime("%Y-%m-%d"), "samples": results})


if __name__ == "__main__":
    main()
