"""The engine beside its peers: regressor, reduction, cold start and simulation, in one run on one machine.

    python benchmarks/engine.py            # N up to 1e6, about ten minutes
    python benchmarks/engine.py --quick    # N up to 1e4, under a minute

Every figure is the best of interleaved rounds, on one core unless it says two. The peers are a plain Python loop
over Pinocchio (what a user writes) with NumPy's QR, and FIGAROH's own builder and QR where it is installed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # per core means per core, for the peers' QR as well

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

import numpy as np
import simulation
from common import arm, best_times, console, machine, one_core, samples, save, show

from steelyard.dynamics import Dynamics
from steelyard.dynamics.native.emit import STRIDE
from steelyard.dynamics.native.kernel import aligned, on_cache_lines
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import reduce
from steelyard.regression.rows import Rows

TERMS = ("rotor", "viscous", "coulomb", "offset")
# Blocks are consumed while they are in the cache, as the reduction does: a ring of 512 samples.
RING = 8


class Bench:
    """One robot, its Pinocchio model, and everything prepared that is not to be timed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.robot, self.model = arm(name)
        self.data = self.model.createData()
        self.n = self.robot.dof
        bound = terms(self.robot, *TERMS)
        self.dynamics = Dynamics(self.robot, bound)
        self.base = base_parameters(self.robot, bound).independent
        self.theta = np.concatenate([self.robot.inertial_parameters, np.linspace(0.5, 2.0, len(bound))])

    def regressor_jobs(self, count: int) -> dict[str, Any]:
        import pinocchio as pin

        q, dq, ddq = samples(self.n, count)
        dense = on_cache_lines(count * 10 * self.n**2).reshape(count, self.n, 10 * self.n)
        evaluator = self.robot.dynamics.evaluator("torque_regressor")
        _ = evaluator.kernel
        count_of = len(evaluator.function.outputs)
        ring = aligned(RING * count_of).reshape(RING, count_of, STRIDE)

        def loop() -> None:
            for k in range(count):
                dense[k] = pin.computeJointTorqueRegressor(self.model, self.data, q[k], dq[k], ddq[k])

        jobs = {
            "Pinocchio loop": loop,
            "ours, dense": lambda: evaluator({"q": q, "dq": dq, "ddq": ddq}, dense, threads=1),
            "ours, blocks": lambda: evaluator.machine.lanes({"q": q, "dq": dq, "ddq": ddq}, ring, threads=1),
        }
        if figaroh := figaroh_jobs(self, q, dq, ddq, None):
            jobs["FIGAROH builder"] = figaroh
        return jobs

    def reduction_jobs(self, count: int) -> dict[str, Any]:
        import pinocchio as pin

        q, dq, ddq = samples(self.n, count)
        tau = self.dynamics.inverse_dynamics(q, dq, ddq, self.theta)
        tau += 0.1 * np.random.default_rng(5).normal(size=tau.shape)
        i, n = np.arange(self.n), self.n

        def loop() -> np.ndarray:
            tall = np.zeros((count, n, 14 * n + 1))
            for k in range(count):
                tall[k, :, : 10 * n] = pin.computeJointTorqueRegressor(self.model, self.data, q[k], dq[k], ddq[k])
            tall[:, i, 10 * n + i], tall[:, i, 11 * n + i] = ddq, dq
            tall[:, i, 12 * n + i], tall[:, i, 13 * n + i], tall[:, :, 14 * n] = np.sign(dq), 1.0, tau
            return np.linalg.qr(tall.reshape(-1, 14 * n + 1), mode="r")

        padded, plain = Rows(self.dynamics, self.base, pad=4), Rows(self.dynamics, self.base)
        every = Rows(self.dynamics)
        for rows in (padded, plain, every):
            _ = rows.evaluator.kernel
        jobs: dict[str, Any] = {}
        if count * n * (14 * n + 1) * 8 < 2e9:  # the tall matrix and its copy must fit
            jobs["Pinocchio loop + NumPy QR"] = loop
        jobs["ours, QR, base columns"] = lambda: reduce(plain, q, dq, ddq, tau, threads=1)
        jobs["ours, QR, all columns"] = lambda: reduce(every, q, dq, ddq, tau, threads=1)
        jobs["ours, normal equations"] = lambda: reduce(padded, q, dq, ddq, tau, "normal", threads=1)
        if count <= 100_000 and (figaroh := figaroh_jobs(self, q, dq, ddq, tau)):
            jobs["FIGAROH builder + QR"] = figaroh
        return jobs


def figaroh_jobs(bench: Bench, q: Any, dq: Any, ddq: Any, tau: Any) -> Any:
    """FIGAROH's builder (and, with torques, its elimination and double QR), or None where it is not installed."""
    if importlib.util.find_spec("figaroh") is None or len(q) > 100_000:
        return None
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from figaroh.tools.qrdecomposition import QRDecomposer
        from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate

    class Wrapper:
        model, data = bench.model, bench.data

    extras = tau is not None
    settings = {"act_idxv": list(range(bench.n)), "has_friction": extras, "has_actuator_inertia": extras,
                "has_joint_offset": extras, "is_joint_torques": True}  # fmt: skip
    names = {f"p{k}": float(v) for k, v in enumerate(np.ones(14 * bench.n))}

    def build() -> Any:
        return build_regressor_basic(Wrapper, q, dq, ddq, settings)

    def build_and_factor() -> Any:
        w = build()
        out, kept = get_index_eliminate(w, names, 1e-6)
        return QRDecomposer().double_decomposition(tau.T.ravel(), build_regressor_reduced(w, out), kept, names)

    return build_and_factor if extras else build


def limits() -> dict[str, float]:
    """What one core can do at best: fused multiply-adds in LLVM vectors, and writing memory."""
    import ctypes

    from steelyard.dynamics.native._code import Code, vector_width
    from steelyard.dynamics.native._text import Text

    w, kind = vector_width(), f"<{vector_width()} x double>"
    chains = 12  # independent sums, to hide the latency of the multiply-add
    t = Text()
    t.declarations.add(f"declare {kind} @llvm.fma.v{w}f64({kind}, {kind}, {kind})")
    x = t.load("%data", kind)
    with t.repeat(100_000, 1, kind, [x] * chains) as (_, sums, grown):
        grown += [t.let(f"call {kind} @llvm.fma.v{w}f64({kind} {s}, {kind} {x}, {kind} {x})") for s in sums]
    for k, value in enumerate(grown):
        t.store(value, t.at("%data", (k + 1) * w), kind)
    code = Code("\n".join([*t.declarations, t.function("peak", "ptr %data")]))
    peak = ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address("peak"))
    data = np.zeros(w * (chains + 1))
    big = np.zeros(40_000_000)
    times = best_times({"fma": lambda: peak(data.ctypes.data), "write": lambda: big.fill(1.0)}, rounds=8)
    return {"flops": 2 * w * chains * 100_000 / times["fma"], "bytes": big.nbytes / times["write"]}


def gram_flops(bench: Bench) -> int:
    """Floating-point operations of one sample: its rows, and the triangles of their Gram matrices."""
    rows = Rows(bench.dynamics, bench.base)
    return rows.operations + sum(e.width * (e.width + 1) for e in rows.equations)


def table(title: str, times: dict[str, dict[int, float]], peer: str) -> None:
    counts = sorted({n for t in times.values() for n in t})
    rows = []
    for name, of in times.items():
        cells = [name]
        for n in counts:
            if n not in of:
                cells.append("–")
                continue
            ratio = f" ({times[peer][n] / of[n]:.3g}×)" if n in times[peer] else ""
            cells.append(f"{of[n] / n * 1e9:,.0f}{ratio}")
        rows.append(cells)
    show(title + "\nns per sample (ratio to " + peer + ")", ["", *(f"N = {n:.0e}" for n in counts)], rows)


def start_times(name: str) -> dict[str, float]:
    """Seconds beyond the import until a robot's first 1e5 samples are reduced: cold, and with the cache."""
    script = f"""
import sys, time
sys.path.insert(0, {str(os.path.dirname(os.path.abspath(__file__)))!r})
import numpy as np
from steelyard.robot import load_robot
from common import public_urdf, samples
from steelyard.regression.factor import reduce
from steelyard.regression.rows import Rows
import pinocchio
start = time.perf_counter()
robot = load_robot(public_urdf({name!r}))
q, dq, ddq = samples(robot.dof, 10_000)
Y = robot.torque_regressor(q, dq, ddq)
if {name == "ur10"}:
    robot.torque_regressor(np.tile(q, (10, 1)), np.tile(dq, (10, 1)), np.tile(ddq, (10, 1)))
reduce(Rows(robot.dynamics), q, dq, ddq, ddq)
print(time.perf_counter() - start)
"""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, STEELYARD_CACHE=folder)
        command = [sys.executable, "-W", "ignore", "-c", script]
        runs = [subprocess.run(command, env=environment, capture_output=True, check=True) for _ in range(4)]
        out = [float(run.stdout) for run in runs]
    return {"cold": out[0], "cached": min(out[1:])}


def two_cores(bench: Bench, count: int) -> dict[str, float]:
    """How much faster two threads are, on one long job."""
    q, dq, ddq = samples(bench.n, count)
    rows, padded = Rows(bench.dynamics, bench.base), Rows(bench.dynamics, bench.base, pad=4)
    speedup = {}
    for name, r, method in (("QR", rows, "qr"), ("normal equations", padded, "normal")):
        jobs = {str(t): partial(reduce, r, q, dq, ddq, ddq, method, threads=t) for t in (1, 2)}
        times = best_times(jobs, rounds=7)
        speedup[name] = times["1"] / times["2"]
    return speedup


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="N up to 1e4")
    quick = arguments.parse_args().quick
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    counts = [1_000, 10_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    results: dict[str, Any] = {}
    console.print(f"[bold]{machine()}[/bold]\n")
    for name in ("ur10", "panda"):
        one_core()
        bench = Bench(name)
        for what, peer in (("regressor", "Pinocchio loop"), ("reduction", "Pinocchio loop + NumPy QR")):
            times: dict[str, dict[int, float]] = {}
            for count in counts:
                if what == "regressor" and count > 100_000:
                    continue  # the dense matrix alone would take 3 GB
                for job, seconds in best_times(getattr(bench, f"{what}_jobs")(count)).items():
                    times.setdefault(job, {})[count] = seconds
            table(f"{name}: {what}, one core", times, peer)
            results[f"{name} {what}"] = times
        top = max(counts)
        ours = results[f"{name} reduction"]["ours, normal equations"][top] / top
        best = limits()
        share = gram_flops(bench) / ours / best["flops"]
        dense = results[f"{name} regressor"]["ours, dense"]
        written = len(bench.robot.dynamics.function("torque_regressor").outputs) * 8 / (dense[max(dense)] / max(dense))
        console.print(
            f"{name}: normal equations run at {share:.0%} of the core's {best['flops'] / 1e9:.0f} GFLOP/s; "
            f"the dense regressor writes {written / 1e9:.1f} GB/s, {written / best['bytes']:.0%} of plain writing"
        )
        if cores:
            os.sched_setaffinity(0, cores)
        speedup = two_cores(bench, 200_000)
        console.print("two threads: " + ", ".join(f"{k} {v:.2f}×" for k, v in speedup.items()))
        begin = start_times(name)
        console.print(f"first results of a new robot: {begin['cold']:.2f} s cold, {begin['cached']:.2f} s cached\n")
        results[f"{name} limits"] = {**best, "share_of_flops": share, "share_of_writing": written / best["bytes"]}
        results[f"{name} two threads"], results[f"{name} start"] = speedup, begin
    results["simulation, ns per robot-step"] = simulation.measure(quick)
    simulation.report(results["simulation, ns per robot-step"])
    if not quick:
        save("engine", {"date": time.strftime("%Y-%m-%d"), **results})


if __name__ == "__main__":
    main()
