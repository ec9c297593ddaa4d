"""A GPU beside the processor: the fused Gram of logs, the first round of a search for a motion, true_model robots.

    python benchmarks/gpu.py ur10.urdf             # needs CuPy and an NVIDIA GPU
    python benchmarks/gpu.py ur10.urdf --only plants

Best of repeated calls. "On the device": the samples lie there already, as they do for Monte Carlo and motions that are
made there. "From the host": they come from the processor's memory, over the bus, every time. A start is a random motion
of 10 s at 100 Hz, five harmonics a joint, improved by twice sixty steps; on the processor a process for each core takes
its share of them, of as many as it can do in a minute or so, and the time of a thousand is computed from that. A plant
is a robot of a rehearsal: perturbed, moved for 10 s under control in steps of 0.25 ms, logged with noise, and fitted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import NOT_HERE, public_urdf

from steelyard.dynamics import Dynamics
from steelyard.dynamics.cuda.device import gpu
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.excitation import Fourier, SearchSettings, excite
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.excitation.gpu_starts.round import ManyStarts
from steelyard.excitation.search import Search
from steelyard.excitation.search_problem import SearchProblem, families_of, requirements
from steelyard.excitation.settle import find_centre
from steelyard.ground.arrays import one_blas_thread
from steelyard.identification.identify import fit_rows, fit_study
from steelyard.parameters import terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import reduce
from steelyard.regression.on_gpu import GpuReduction
from steelyard.regression.rows import Rows
from steelyard.rehearsal.on_gpu import RobotsOnGpu
from steelyard.rehearsal.plants import simulate_robots
from steelyard.rehearsal.rehearse import make_trials, rehearse
from steelyard.rehearsal.rehearse_options import RehearseOptions
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


def search_of(name: str, with_terms: bool, starts: int, on_gpu: bool) -> Search:
    """The search of `excite`, as it stands before its first round."""
    robot = load_robot(name)
    families, bounds = families_of(robot, Fourier(5, 10.0)), limits_from(robot, None)
    bound = terms(robot, *TERMS) if with_terms else None
    options = ExciteOptions(terms=bound)
    design = DesignColumns(robot, families, bounds, options)
    needs, goal = requirements(robot, families, bounds, options), design.goal(options)
    problem = SearchProblem(goal, find_centre(families, bounds, needs, 0), needs)
    return Search(problem, SearchSettings(starts=starts, gpu=on_gpu), 0)


def one_core(name: str, with_terms: bool, numbers: range) -> list[float]:
    """Ranks of some starts after their first round, one by one."""
    search, ranks = search_of(name, with_terms, 1, False), []
    with one_blas_thread():
        for k in numbers:
            search.state.current = search._start(k)
            ranks.append([search._advance(search.settings.sharpness[0]) for _ in range(search.settings.repeats)][-1])
    return ranks


def starts(name: str, with_terms: bool, count: int = 1000, on_cores: int = 8) -> None:
    """Time of a first round of `count` starts on a GPU, and of `on_cores` for each core on the processor."""
    search = search_of(name, with_terms, count, True)
    own = search.settings
    begin = time.perf_counter()
    many = ManyStarts(search.problem, search.active)
    compiled = time.perf_counter() - begin
    asked = (count, 0, own.sharpness[0], own.repeats, own.iterations, count)
    seconds = best(lambda: many.improve(*asked), 3)
    found = np.array([rank for rank, _ in many.improve(*asked)[0]])
    sizes = f"{len(search.problem.centre.coefficients)} coefficients, {len(search.problem.goal.columns)} parameters"
    print(f"{search.problem.goal.observation.names}: {sizes}; compiled in {compiled:.1f} s")
    print(f"  {count} starts on the GPU: {seconds:.2f} s; cond best {np.exp(found.min()):.2f}, "
          f"median {np.exp(np.median(found)):.2f}")  # fmt: skip
    cores = os.cpu_count() or 1
    shares = [range(k * on_cores, (k + 1) * on_cores) for k in range(cores)]
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(partial(one_core, name, with_terms), [range(1)] * cores))  # compiled, and warm
        begin = time.perf_counter()
        ranks = np.concatenate(list(pool.map(partial(one_core, name, with_terms), shares)))
        taken = (time.perf_counter() - begin) * count / len(ranks)
    print(f"  on {cores} cores: {taken:.0f} s (from {len(ranks)}); cond best {np.exp(ranks.min()):.2f}, "
          f"median {np.exp(np.median(ranks)):.2f}; the GPU is {taken / seconds:.0f} times as quick")  # fmt: skip


class Plants:
    """The robots of a rehearsal of one motion."""

    def __init__(self, name: str) -> None:
        robot = load_robot(name)
        quick = SearchSettings(starts=1, survivors=(1,), sharpness=(4.0, 16.0), repeats=1, iterations=40)
        plan = excite(robot, duration=10.0, search=quick)
        self.ask = partial(rehearse, robot, plan.trajectory, limits=plan.limits)
        self.trials = make_trials(robot, plan.trajectory, RehearseOptions(limits=plan.limits))
        _, _, played = next(self.trials.simulate([0]))
        self.study = self.trials.study(self.trials.logs(0, played))
        begin = time.perf_counter()
        self.plants = RobotsOnGpu(self.trials, self.study, gpu())
        kernel = self.plants._follow[0]._steps._kernel
        print(
            f"{robot.name}: plants compiled in {time.perf_counter() - begin:.1f} s, {kernel.num_regs} registers, "
            f"{kernel.local_size_bytes} bytes beside them"
        )

    def thetas(self, count: int) -> Any:
        return np.array([self.trials.model(k).theta for k in range(count)])

    def agreement(self, count: int = 64) -> None:
        """The largest differences from the processor, as parts of the results' sizes: signals, rows, fits."""
        there = [self.plants.device.fetch(x) for x in self.plants._follow[0](self.thetas(count))]
        worst = dict.fromkeys(("positions", "velocities", "torques", "Gram matrices", "base parameters"), 0.0)
        with tempfile.TemporaryDirectory() as folder:
            rows = {}
            for numbers, _, logs in self.plants.batches(range(count), Path(folder), 16):
                loaded = [np.load(file) for _, file in logs[0].parts]
                rows |= {n: ([part[k] for part in loaded], logs[0], k) for k, n in enumerate(numbers)}
            fitter = self.plants.fitter
            for number, _, played in self.trials.simulate(range(count)):
                run = played[0]
                for x, mine, other in zip(list(worst)[:3], there, (run.q, run.dq, run.tau), strict=True):
                    worst[x] = max(worst[x], float(np.abs(mine[..., number] - other).max() / np.abs(other).max()))
                study = self.trials.study(self.trials.logs(number, played))
                study = replace(study, preparation=self.plants.settings)
                parts, log, k = rows[number]
                data = fitter._data(log, log.slow[k], [(e, p) for (e, _), p in zip(log.parts, parts, strict=True)])
                for mine, other in zip(data.reduction().factor.triangles, study.rows.factor().triangles, strict=True):
                    gram = other.T @ other
                    worst["Gram matrices"] = max(
                        worst["Gram matrices"], float(np.abs(mine.T @ mine - gram).max() / np.abs(gram).max())
                    )
                mine, other = fit_rows(fitter.study, data)[0].beta, fit_study(study)[0].beta
                worst["base parameters"] = max(
                    worst["base parameters"], float(np.abs(mine - other).max() / np.abs(other).max())
                )
        print(f"  largest differences of {count} robots, of the results' sizes: "
              + ", ".join(f"{name} {x:.1e}" for name, x in worst.items()))  # fmt: skip

    def time(self, count: int, repeats: int) -> None:
        import cupy

        trials, cores = self.trials, os.cpu_count()
        models, theta = [trials.model(k) for k in range(count)], self.thetas(count)

        def move() -> None:
            self.plants._follow[0](theta)
            cupy.cuda.Device().synchronize()

        def make() -> None:
            with tempfile.TemporaryDirectory() as folder:
                list(self.plants.batches(range(count), Path(folder), cores or 1))

        def move_here() -> None:
            for _ in simulate_robots(models, trials.motions, trials.rate, trials.nominal):
                pass

        jobs: dict[str, Callable[[], Any]] = {
            "moved on the GPU": move,
            "moved and logged as rows on the GPU": make,
            f"moved by {cores} cores": move_here,
            f"rehearsed, GPU and {cores} processes": partial(self.ask, seeds=count, workers=cores, gpu=True),
            f"rehearsed by {cores} processes": partial(self.ask, seeds=count, workers=cores),
        }
        for name, job in jobs.items():
            print(f"  {count:>6} plants {name}: {best(job, repeats):.2f} s", flush=True)


def plants(name: str) -> None:
    """Agreement and times of true_model robots."""
    bench = Plants(name)
    bench.agreement()
    bench.time(1000, 2)
    bench.time(10_000, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="*", help="descriptions; default: the public UR10's and Panda's")
    parser.add_argument("--only", choices=["plants"], help="leave the rest out")
    given = parser.parse_args()
    if not has_gpu():
        print("There is no NVIDIA GPU here that CuPy can use.")
        return NOT_HERE
    for name in given.robots or [str(public_urdf(name)) for name in ("ur10", "panda")]:
        if given.only == "plants":
            plants(name)
            continue
        bench = Bench(name)
        print(f"  largest difference from the processor's QR, of the result's size: {bench.agreement():.1e}")
        for count in (10**5, 10**6, 10**7, 5 * 10**7):
            bench.time(count)
        for with_terms in (False, True):
            starts(name, with_terms)
        plants(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
