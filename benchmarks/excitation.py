"""Designing motions: one (value, gradient) beside finite differences over Pinocchio, and whole designs.

    python benchmarks/excitation.py            # everything
    python benchmarks/excitation.py --quick    # gradients and the two standard settings

One core. Designs are timed by the clock and by the processor's own time (which other people's work does not lengthen).
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import arm, best_times, machine, one_core, save, show

import steelyard as sy
from steelyard.excitation import CRITERIA, SearchSettings
from steelyard.excitation._motion_rows import TorqueRows
from steelyard.excitation.goal import Goal
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Fourier

UR10 = {"q": 2.5, "dq": 2.0, "ddq": 5.0}
SEVEN = {
    "q": [2.9, 2.0, 2.9, 2.0, 2.9, 2.0, 3.0],
    "dq": [1.48, 1.48, 1.74, 1.30, 2.26, 2.35, 2.35],
    "ddq": 10.0,
}


def torque_goal(
    robot, samples: int = 1000, harmonics: int = 5, rest: bool = False
) -> tuple[Goal, SampledMotions, tuple]:
    """D-optimality of the base columns; without conditions 11 coefficients per joint: 66 for a UR10."""
    base = sy.base_parameters(robot)
    sampled = SampledMotions([Fourier(harmonics, 10.0, rest=rest)] * robot.dof, np.arange(samples) * 10.0 / samples)
    rows = TorqueRows(base.structure.dynamics, base.independent, sampled, range(robot.dof))
    return Goal(rows, CRITERIA["d"], base.names), sampled, base.independent


def gradients() -> dict[str, float]:
    """66 coefficients, 1000 samples."""
    import pinocchio as pin

    robot, model = arm("ur10")
    goal, sampled, columns = torque_goal(robot)
    data, W = model.createData(), np.zeros((1000, 6, 60))
    x = 0.3 * np.random.default_rng(0).normal(size=sampled.size)

    def value(y):
        for k, (q, dq, ddq) in enumerate(zip(*sampled.signals(y), strict=True)):
            W[k] = pin.computeJointTorqueRegressor(model, data, q, dq, ddq)
        A = W.reshape(-1, 60)[:, list(columns)]
        return -np.linalg.slogdet(A.T @ A)[1]

    def differences():
        first, out = value(x), np.zeros(len(x))
        for i in range(len(x)):
            y = x.copy()
            y[i] += 1e-6
            out[i] = (value(y) - first) / 1e-6
        return first, out

    ours, theirs = goal.objective(x), differences()
    error = np.abs(ours[1] - theirs[1]).max() / np.abs(ours[1]).max()
    times = best_times({"exact": lambda: [goal.objective(x) for _ in range(50)], "differences": differences}, 5, 30.0)
    exact, slow = times["exact"] / 50, times["differences"]
    rows = [
        ["exact (value, gradient)", f"{1e3 * exact:.2f} ms", f"{slow / exact:.0f}×"],
        ["forward differences over a Pinocchio loop", f"{1e3 * slow:.0f} ms", "1×"],
    ]
    show(f"UR10, 66 coefficients, 1000 samples (largest difference {error:.0e}; {machine()})", ["", "time", ""], rows)
    return {"exact_ms": 1e3 * exact, "differences_ms": 1e3 * slow, "ratio": slow / exact}


def design(name: str, robot, rows: list, results: dict, **options) -> None:
    start, used = time.perf_counter(), time.process_time()
    plan = sy.excite(robot, **options)
    wall, cpu = time.perf_counter() - start, time.process_time() - used
    t = np.linspace(0.0, plan.trajectory.duration, 100 * round(plan.trajectory.duration * plan.rate) + 1)
    sizes = [np.abs(s).max(axis=0) for s in plan.trajectory.sample(t)]
    limits = [np.maximum(-plan.limits.lower, plan.limits.upper), plan.limits.dq, plan.limits.ddq]
    beyond = max(float(np.max(s / b)) for s, b in zip(sizes, limits, strict=True)) - 1.0
    cells = [f"{plan.start_value:.0f}", f"{plan.value:.2f}", f"{plan.condition_number:.2f}"]
    cells += [f"{plan.violation:.1f} ({max(beyond, 0.0):.0e})", f"{plan.evaluations}", f"{wall:.1f} ({cpu:.1f})"]
    rows.append([name, *cells])
    results[name] = {
        "value": plan.value,
        "condition_number": plan.condition_number,
        "violation": plan.violation,
        "seconds": wall,
        "cpu_seconds": cpu,
        "columns": len(plan.columns),
    }


def designs(quick: bool) -> dict[str, dict[str, float]]:
    rows: list = []
    results: dict = {}
    ur10, _ = arm("ur10")
    seven = sy.load_robot("arm7")
    warm = SearchSettings(starts=1, survivors=(), sharpness=(4.0,), repeats=1, iterations=2)
    more = SearchSettings(starts=16, survivors=(4, 1, 1))
    for robot, limits in ((ur10, UR10), (seven, SEVEN)):
        sy.excite(robot, limits=limits, search=warm)
    for seed in range(1 if quick else 3):
        design(f"UR10, 36 columns, seed {seed}", ur10, rows, results, limits=UR10, seed=seed)
    for seed in range(1 if quick else 3):
        name = f"7 axes, 43 columns, orthonormal, seed {seed}"
        design(name, seven, rows, results, limits=SEVEN, scaling="orthonormal", seed=seed, search=more)
    if not quick:
        for name, robot, limits in (("UR10", ur10, UR10), ("7 axes", seven, SEVEN)):
            bound = sy.terms(robot, "rotor", "viscous", "coulomb")
            for scaling in ("natural", "unit"):
                label = f"{name}, friction and rotors, {scaling}"
                design(label, robot, rows, results, limits=limits, terms=bound, scaling=scaling)
    header = ["10 s, 100 Hz, 5 harmonics", "start", "value", "cond(W)", "violation (100×)", "gradients", "s (CPU s)"]
    show("whole designs: value of cond(W) in the scaling named, cond(W) unscaled", header, rows)
    return results


def growth() -> dict[str, float]:
    """How one (value, gradient) grows with joints, harmonics and samples."""
    seven = sy.load_robot("arm7")
    jobs, base = {}, {"joints": 7, "harmonics": 5, "samples": 1000}
    cases = [base]
    cases += [{**base, "joints": n} for n in (2, 4)]
    cases += [{**base, "harmonics": h} for h in (10, 20)]
    cases += [{**base, "samples": s} for s in (4000, 16000)]
    for case in cases:
        robot = seven.with_joints(seven.joint_names[: case["joints"]])
        goal, sampled, _ = torque_goal(robot, case["samples"], case["harmonics"], rest=True)
        x = 0.3 * np.random.default_rng(0).normal(size=sampled.size)
        name = "{joints} joints, {harmonics} harmonics, {samples} samples".format(**case)
        jobs[name] = lambda goal=goal, x=x: goal.objective(x)
    times = best_times(jobs, 20, 20.0)
    show("growth of one (value, gradient)", ["", "ms"], [[n, f"{1e3 * t:.2f}"] for n, t in times.items()])
    return {n: 1e3 * t for n, t in times.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="gradients and the two standard settings")
    quick = arguments.parse_args().quick
    one_core()
    results = {"gradients": gradients(), "designs": designs(quick)}
    if not quick:
        results["growth"] = growth()
        save("excitation", results)


if __name__ == "__main__":
    main()
