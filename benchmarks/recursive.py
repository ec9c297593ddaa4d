"""Recursive least squares beside plain NumPy, and the whole live loop: samples in, base parameters out.

    python benchmarks/recursive.py            # about a minute
    python benchmarks/recursive.py --quick    # a few seconds

The plain version is equations (6)–(8) of Chávez-Olivares et al. 2012 (with the minus that (7) lacks) as one writes
them: a covariance matrix, one product per line. The floor is the arithmetic of the square-root update at the rate at
which one core can multiply and add, measured here. Times are the thread's own (CPU time), the best of many short
pieces: others may use the machine meanwhile.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import arm, ended, machine, one_core, save, show

from steelyard.estimation import Constant, Directional, Forgetting, Variable, recursive
from steelyard.estimation.recursion._information import Information
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters

SHAPES = {"58 parameters, 6 rows (UR10)": (58, 6), "69 parameters, 7 rows (Panda)": (69, 7)}


def best_times(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The thread's own seconds, the least over interleaved rounds."""
    times = dict.fromkeys(jobs, np.inf)
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.thread_time()
            job()
            times[name] = min(times[name], time.thread_time() - start)
    return times


def peak_flops() -> float:
    """What a large matrix product reaches on this core."""
    A = np.random.default_rng(0).normal(size=(384, 384))
    return 2.0 * 384**3 / best_times({"gemm": lambda: A @ A}, 60)["gemm"]


def arithmetic(p: int, m: int) -> float:
    """Operations of an update: 4 m + 3 for every entry of the triangle, then the back-substitution."""
    columns = sum(p + 1 - k for k in range(p + 1))
    return (4.0 * m + 3.0) * columns + float(p * p)


class Bench:
    """The same rows for everybody; every job goes on from where it was."""

    def __init__(self, p: int, m: int, updates: int) -> None:
        rng = np.random.default_rng(0)
        self.A, self.p, self.m = rng.normal(size=(updates, m, p)), p, m
        self.y = self.A @ rng.normal(size=p) + 0.1 * rng.normal(size=(updates, m))
        self.P, self.theta, self.one = 1e6 * np.eye(p), np.zeros(p), np.eye(m)

    def plain(self) -> np.ndarray:
        P, theta = self.P, self.theta
        for A, y in zip(self.A, self.y, strict=True):
            PA = P @ A.T
            K = np.linalg.solve(self.one + A @ PA, PA.T).T
            theta = theta + K @ (y - A @ theta)
            P = P - K @ PA.T
        self.P, self.theta = P, theta
        return theta

    def ours(self, forgetting: Forgetting) -> Callable[[], np.ndarray]:
        state = Information(self.p, self.m)
        state.start(np.zeros(self.p), 1e6)
        buffer, p = state.buffer, self.p

        def job() -> np.ndarray:
            for A, y in zip(self.A, self.y, strict=True):
                buffer[:, :p] = A
                buffer[:, p] = y
                forgetting.absorb(state, True)
            return state.solved

        return job

    def at_once(self) -> Callable[[], None]:
        state = Information(self.p, self.m)
        state.start(np.zeros(self.p), 1e6)
        rows = np.zeros((len(self.A), *state.buffer.shape))
        rows[:, :, : self.p], rows[:, :, self.p] = self.A, self.y
        return lambda: state.absorb_many(rows.copy(), 1.0)


def measure_updates(quick: bool) -> dict[str, dict[str, float]]:
    """µs per update."""
    out: dict[str, dict[str, float]] = {}
    updates = 40
    peak = peak_flops()
    for name, (p, m) in SHAPES.items():
        bench = Bench(p, m, updates)
        assert np.allclose(bench.plain(), bench.ours(Constant())(), atol=1e-6), "the two do not agree"
        jobs: dict[str, Callable[[], Any]] = {
            "plain NumPy, (6)–(8)": bench.plain,
            "ours, sample by sample": bench.ours(Constant()),
            "ours, forgetting 0.999": bench.ours(Constant(0.999)),
            "ours, variable forgetting": bench.ours(Variable(1000.0, 0.1)),
            "ours, directional forgetting": bench.ours(Directional(0.999)),
            "ours, a log at once": bench.at_once(),
        }
        times = best_times(jobs, 30 if quick else 500)
        out[name] = {key: 1e6 * t / updates for key, t in times.items()}
        out[name]["floor"] = 1e6 * arithmetic(p, m) / peak
    return out


def measure_live(quick: bool) -> dict[str, dict[str, float]]:
    """µs per sample of the whole loop: checks, regressors, filter, update, estimate. Best and median of pieces."""
    out: dict[str, dict[str, float]] = {}
    for name in ("ur10", "panda"):
        robot, _ = arm(name)
        bound = terms(robot, "rotor", "viscous", "coulomb", "offset")
        base = base_parameters(robot, bound)
        count = 4_000 if quick else 30_000
        t = np.arange(count) * 1e-3
        rng = np.random.default_rng(0)
        w = 2.0 * np.pi * np.array([0.2, 0.5, 0.9])[:, None]
        angle = t[:, None, None] * w + rng.uniform(0.0, 6.0, (3, robot.dof))
        q, dq = 0.3 * np.sin(angle).sum(1), 0.3 * (w * np.cos(angle)).sum(1)
        tau = rng.normal(size=q.shape)
        for how, forgetting in {"": Constant(), ", directional forgetting": Directional(0.999)}.items():
            stream = recursive(robot, zip(t, q, dq, tau, strict=True), base=base, every=1, forgetting=forgetting)
            pieces = []
            for _ in range(count // 100 - 1):
                start = time.thread_time()
                for _ in range(100):
                    next(stream)
                pieces.append((time.thread_time() - start) / 100 * 1e6)
            out[f"{name}, {base.rank} parameters{how}"] = {"best": min(pieces), "median": float(np.median(pieces))}
    return out


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a few seconds")
    quick = arguments.parse_args().quick
    one_core()
    updates = measure_updates(quick)
    for name, times in updates.items():
        plain, floor = times["plain NumPy, (6)–(8)"], times["floor"]
        rows = [
            [key, f"{t:.2f} µs", f"{1e3 / t:,.0f} k/s", f"{plain / t:.1f}×", f"{floor / t:.0%}"]
            for key, t in times.items()
        ]
        show(f"{name} ({machine()})", ["update", "time", "rate", "to plain", "of the floor"], rows)
    live = measure_live(quick)
    rows = [
        [k, f"{v['best']:.1f} µs", f"{1e3 / v['best']:.1f} kHz", f"{1e3 / v['median']:.1f} kHz"]
        for k, v in live.items()
    ]
    show("The whole live loop, filtered-dynamic, one core", ["robot", "per sample", "rate", "median rate"], rows)
    if not quick:
        save("recursive", {"us_per_update": updates, "us_per_sample_live": live})
    # The whole loop of 58 parameters at 10 kHz, directions forgotten one by one.
    slow = [k for k, v in live.items() if "58 parameters" in k and v["best"] > 100.0]
    return ended([f"{k}: {live[k]['best']:.0f} µs a sample" for k in slow])


if __name__ == "__main__":
    raise SystemExit(main())
