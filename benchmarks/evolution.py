"""Via-point programs in three parts of a workspace, bred as Pedrocchi et al. 2013 do it, and by two other ways.

    python benchmarks/evolution.py             # 16 generations of 150, three regions, three optimisers; decoding
    python benchmarks/evolution.py --quick     # 3 generations of 30
    python benchmarks/evolution.py --decoding  # what an individual costs, of arms with 3 to 7 joints, and nothing else

The same genes (six via-points and a speed: 37), the same fitness (log10 det of the torque-scaled information matrix, 58
columns) and the same number of evaluations for all. The gradient is one of differences (no formula leads through a
controller's interpolator), taken by L-BFGS-B from random starts until the evaluations are spent.

Decoding: a population of 150 from genes to values, beside one program at a time through the interpolator that takes any
program (`interpolate`), on one core, in processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import ended, machine, one_core, save
from history_figure import history_figure

import steelyard as sy
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.evolution import CovarianceAdaptation, Genetic, ViaPoints, evolve
from steelyard.excitation.interpolator import ProgramRegion

# Boxes of 0.5 m (0.6 m along y) in front, to the left above, and to the right below; the tool points down ± 0.8 rad.
CENTRES = {"A": (0.95, 0.0, 1.3), "B": (0.65, 0.7, 1.4), "C": (1.1, -0.5, 1.0)}
HALF = np.array([0.25, 0.3, 0.25])
STEP = 1e-3


def genome(robot: sy.Robot, centre: tuple[float, float, float]) -> ViaPoints:
    low, high = (np.concatenate([np.array(centre) + s * HALF, [np.pi + s * 0.8, s * 0.8, s * 0.8]]) for s in (-1, 1))
    return ViaPoints(robot, ProgramRegion(low, high, (0.2, 1.0)), 6, limits_from(robot, None))


class Differences:
    """L-BFGS-B on forward differences, as an optimiser that is asked and told: one population is one gradient."""

    def __init__(self, population: int, generations: int) -> None:
        self.population, self.generations = population, generations

    def __repr__(self) -> str:
        return f"differences {self.population} {self.generations}"

    def start(self, genes: int, seed: int):
        return _Descent(genes, seed)


class _Descent:
    """SciPy's minimiser in a thread of its own; it is handed values as they come."""

    def __init__(self, genes: int, seed: int) -> None:
        import queue
        import threading

        self._rng, self._genes = np.random.default_rng(seed), genes
        self._asked, self._told = queue.Queue(), queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self):
        return self._asked.get()

    def tell(self, values) -> None:
        self._told.put(values)

    def _work(self) -> None:
        from scipy.optimize import minimize

        while True:
            starts = self._rng.uniform(size=(self._genes + 1, self._genes))
            values = self._values(starts)
            if not np.any(np.isfinite(values)):
                continue
            first = starts[int(np.argmin(values))]
            minimize(self._slope, first, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * self._genes,
                     options={"maxiter": 60})  # fmt: skip

    def _values(self, points):
        self._asked.put(points)
        return self._told.get()

    def _slope(self, x):
        sign = np.where(x + STEP > 1.0, -1.0, 1.0)
        values = self._values(np.clip(np.vstack([x, x + STEP * np.diag(sign)]), 0.0, 1.0))
        if not np.isfinite(values[0]):
            return 1e3, np.zeros(self._genes)  # beyond a limit: the line search comes back
        return values[0], np.where(np.isfinite(values[1:]), (values[1:] - values[0]) / (STEP * sign), 0.0)


def run(quick: bool) -> dict[str, Any]:
    robot = sy.load_robot("ns16")
    size, generations = (30, 3) if quick else (150, 16)
    budget = size * generations
    out: dict[str, Any] = {"evaluations": budget, "columns": 0, "regions": {}}
    for name, centre in CENTRES.items():
        genes = genome(robot, centre)
        found: dict[str, Any] = {}
        ways = {
            "genetic": Genetic(population=size, generations=generations),
            "cma": CovarianceAdaptation(population=None, generations=-(-budget // 14)),  # 4 + 3 log 37 = 14 individuals
            "gradient": Differences(genes.size + 1, -(-budget // (genes.size + 1))),
        }
        for way, optimiser in ways.items():
            found[way] = bred(genes, optimiser)
            out["columns"] = found[way]["columns"]
            print(name, way, f"{found[way]['first']:.2f} -> {found[way]['fitness']:.2f}", flush=True)
        out["regions"][name] = found
    return out


def bred(genes: ViaPoints, optimiser: Any) -> dict[str, Any]:
    """What an optimiser makes of a region, and what it costs."""
    robot = genes.robot
    begun, cpu = time.perf_counter(), time.process_time()
    terms = sy.nominal_terms(robot)[0]
    plan = evolve(robot, genes, optimiser=optimiser, terms=terms, weights="torque", criterion="d", seed=1)
    history = [(n, -v / np.log(10.0)) for n, v in plan.history]
    return {
        "fitness": -plan.value / np.log(10.0), "first": history[0][1], "violation": plan.violation,
        "duration": plan.trajectory.duration, "condition_number": plan.condition_number, "columns": len(plan.columns),
        "seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - cpu,
        "history": history,
    }  # fmt: skip


def paper_size() -> dict[str, Any]:
    """One region with 150 individuals in 100 generations, as in the paper."""
    found = bred(genome(sy.load_robot("ns16"), CENTRES["A"]), Genetic(population=150, generations=100))
    print(f"150 × 100 individuals: {found['processor_seconds']:.1f} s of processor time", flush=True)
    return found


# Arms with 3 to 7 joints; a box in space where poses are bred instead of postures.
ARMS = (
    ("szabo3r", None), ("prrrp", None), ("irp6-wrist", None), ("ns16", None), ("arm7", None),
    ("ns16", (0.7, 1.2, -0.3, 0.3, 1.05, 1.55)), ("arm7", (0.3, 0.6, -0.3, 0.3, 0.3, 0.7)),
)  # fmt: skip


def processor_ms(job, rounds: int) -> float:
    """The least of some rounds, in milliseconds of processor time."""
    job()
    times = []
    for _ in range(rounds):
        begun = time.process_time()
        job()
        times.append(time.process_time() - begun)
    return 1e3 * min(times)


def decoding(population: int = 150, alone: int = 10, rounds: int = 5) -> list[dict[str, Any]]:
    from steelyard.dynamics.evaluate import compiled_at_once
    from steelyard.excitation.constraints._space import free_spaces
    from steelyard.excitation.design_columns import DesignColumns
    from steelyard.excitation.evolution._score import MotionScore, SampleTests
    from steelyard.excitation.evolution.via_points import programs_in
    from steelyard.excitation.excite_options import ExciteOptions
    from steelyard.excitation.trajectories import Fourier

    rate, out = 50.0, []
    for name, box in ARMS:
        robot = sy.load_robot(name)
        made = programs_in(robot, 6, limits_from(robot, None), box)
        genes = np.random.default_rng(0).uniform(size=(population, made.size))
        terms = sy.nominal_terms(robot)[0]
        with compiled_at_once():
            smooth = (Fourier(5, 10.0),) * robot.dof
            options = ExciteOptions(terms=terms, rate=rate, criterion="d")
            design = DesignColumns(robot, smooth, made.limits, options)
            score = MotionScore(design, design.goal(options), threads=1)
            tests = SampleTests(robot, sy.Model.nominal(robot), made.limits.tau, free_spaces(robot, box, None, ""))
            motions = made.signals(genes, rate)
            alive = [m for m in motions if m is not None]
            parts = {
                "decoding": processor_ms(lambda m=made, g=genes: m.signals(g, rate), rounds) / population,
                "limits": processor_ms(lambda t=tests, m=motions: t.reject(m), rounds) / population,
                "criterion": processor_ms(lambda s=score, m=alive: s(m), rounds) / len(alive),
            }

            def one_by_one(made=made, genes=genes):
                for row in genes[:alone]:
                    motion = made.motion(row)
                    if motion is not None:
                        motion.sample(np.arange(int(motion.duration * rate) + 1) / rate)

            before = processor_ms(one_by_one, 2) / alone
        row = {
            "robot": name, "joints": robot.dof, "genes": "poses" if box else "postures",
            "kinematics": made.solver.method if box else "", "alive": len(alive),
            "samples": float(np.mean([len(m[0]) for m in alive])), **{f"{k}_ms": v for k, v in parts.items()},
            "together_ms": sum(parts.values()), "one_by_one_decoding_ms": before,
        }  # fmt: skip
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        out.append(row)
    return out


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--decoding", action="store_true")
    options = parser.parse_args()
    one_core()
    os.environ["STEELYARD_THREADS"] = "1"
    if options.decoding:
        before = json.loads(Path("benchmarks/results/evolution.json").read_text())
        rows = decoding()
        save("evolution", {**before, "paper_size": paper_size(), "decoding": rows})
        return ended(missed(rows))
    found = {**run(options.quick), "decoding": decoding(30, 2, 1) if options.quick else decoding()}
    if not options.quick:
        save("evolution", {"machine": machine(), **found, "paper_size": paper_size()})
        history_figure(found["regions"], "docs/images/evolution.svg")
    return ended([] if options.quick else missed(found["decoding"]))


def missed(rows: list[dict[str, Any]]) -> list[str]:
    """Individuals of the paper's robot that take more than a millisecond: decoding, limits and criterion together."""
    slow = [r for r in rows if r["robot"] == "ns16" and r["together_ms"] > 1.0]
    return [f"ns16, {r['genes']} {r['kinematics']}: {r['together_ms']:.2f} ms an individual" for r in slow]


if __name__ == "__main__":
    raise SystemExit(main())
