"""The fused Gram of logs on a GPU beside the processor's: nanoseconds a sample, agreement, growth.

    python benchmarks/gpu.py ur10.urdf             # needs CuPy and an NVIDIA GPU

Best of repeated calls. "On the device": the samples lie there already, as they do for Monte Carlo and motions that are
made there. "From the host": they come from the processor's memory, over the bus, every time.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from steelyard.dynamics import Dynamics
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.on_gpu import GpuReduction
from steelyard.regression.reduce import reduce
from steelyard.regression.rows import Rows
from steelyard.robot import load_robot

TERMS = ("rotor", "viscous", "coulomb", "offset")
RANGES = {"q": 3.0, "dq": 2.0, "ddq": 5.0, "tau": 50.0}


def best(work: Callable[[], Any], repeats: int = 7) -> float:
    """Seconds of the quickest of some calls."""
    work()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


class Bench:
    """One robot, compiled for both."""

    def __init__(self, name: str) -> None:
        self.robot = load_robot(name)
        bound = terms(self.robot, *TERMS)
        dynamics = Dynamics(self.robot, bound)
        base = base_parameters(self.robot, bound).independent
        begin = time.perf_counter()
        self.gpu, self.rows = GpuReduction(Rows(dynamics, base)), Rows(dynamics, base, pad=4)
        plan, kernel = self.gpu.grams.plan, self.gpu.grams._grams
        print(
            f"{self.robot.name}: {self.robot.dof} joints, {len(base)} base parameters; compiled in "
            f"{time.perf_counter() - begin:.1f} s, {plan.warps} warps, {plan.shared / 1e3:.0f} kB shared, "
            f"{kernel.num_regs} registers, {kernel.local_size_bytes} bytes beside them"
        )

    def agreement(self) -> float:
        """The largest difference from the processor's QR, as a part of the result's size."""
        rng, n = np.random.default_rng(0), self.robot.dof
        logs = [{x: rng.uniform(-r, r, (count, n)) for x, r in RANGES.items()} for count in (1, 31, 5000, 12345)]
        worst = 0.0
        for log, grams in zip(logs, self.gpu.grams(logs), strict=True):
            for gram, R in zip(grams, reduce(self.rows, **log).triangles, strict=True):
                worst = max(worst, float(np.abs(gram - R.T @ R).max() / np.abs(gram).max()))
        return worst

    def on_device(self, inside: dict[str, Any], counts: list[int]) -> None:
        import cupy

        self.gpu.grams.on_device(inside, counts)
        cupy.cuda.Device().synchronize()

    def time(self, count: int) -> None:
        import cupy

        generator = cupy.random.default_rng(0)
        inside = {x: generator.uniform(-r, r, (count, self.robot.dof)) for x, r in RANGES.items()}
        jobs: dict[str, Callable[[], Any]] = {"on the device": partial(self.on_device, inside, [count])}
        if count == 10**6:
            jobs["on the device, a thousand logs"] = partial(self.on_device, inside, [1000] * 1000)
        if count in (10**6, 10**7):
            host = {x: a.get() for x, a in inside.items()}
            jobs["from the host"] = partial(self.gpu, [host])
            for method in ("normal", "qr"):
                jobs[f"{os.cpu_count()} cores, {method}"] = partial(reduce, self.rows, **host, method=method)
        for name, job in jobs.items():
            print(f"  {count:>9} samples, {name}: {1e9 * best(job) / count:.3f} ns a sample")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="+")
    for name in parser.parse_args().robots:
        bench = Bench(name)
        print(f"  largest difference from the processor's QR, of the result's size: {bench.agreement():.1e}")
        for count in (10**5, 10**6, 10**7, 5 * 10**7):
            bench.time(count)


if __name__ == "__main__":
    main()
