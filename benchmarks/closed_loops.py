"""Closed loops: processor time of motions, and the share of planted base parameters inside of the 95 % intervals.

Usage: python -m benchmarks.closed_loops [--coverage]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from steelyard import Log, Mechanism, base_parameters, identify_floating, load_robot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "loops"))
from loop_plants import MECHANISMS, SIZES, loop_log, smooth

PLANTS = {"four-bar": 24, "stewart": 3, "delta": 5}


def coverage() -> None:
    """Print the share of planted base parameters inside of the intervals, of the free fit and of the result."""
    import mujoco
    from test_identify_loops import true_theta

    for name, xml in MECHANISMS.items():
        inside = []
        for seed in range(PLANTS.get(name, 8)):
            plant = loop_log(mujoco, xml, SIZES[name], 12.0, seed=seed)
            log = Log(plant.joints, plant.t, plant.q, tau=plant.tau)
            result = identify_floating(load_robot(xml, loops=True), log, terms="viscous", holdout=0.3)
            estimate, free = result.fit.estimate, result.fit.free
            assert free is not None
            wrong = np.array([free.beta, estimate.beta]) - estimate.base.matrix @ true_theta(plant, result)
            inside.append(np.mean(np.abs(wrong / estimate.standard_errors) < 1.96, axis=1))
        shares = 100.0 * np.mean(inside, axis=0)
        print(f"{name}: {len(inside)} plants, free fit {shares[0]:.1f} %, possible bodies {shares[1]:.1f} %")


def main() -> None:
    if "--coverage" in sys.argv:
        coverage()
        return
    for name, count in (("four-bar", 100_000), ("palletiser", 100_000), ("delta", 10_000), ("stewart", 10_000)):
        start = time.process_time()
        mechanism = Mechanism(load_robot(MECHANISMS[name], loops=True))
        opened = time.process_time()
        t = np.linspace(0.0, count / 1000.0, count)
        motion = mechanism.complete(*smooth(t, SIZES[name], len(mechanism.measured)))
        solved = time.process_time()
        rank = base_parameters(mechanism.robot).rank
        done = time.process_time()
        print(
            f"{name}: structure {opened - start:.2f} s, motion of {count} samples {solved - opened:.2f} s "
            f"({motion.usable.mean():.0%} usable), {rank} base parameters {done - solved:.2f} s"
        )


if __name__ == "__main__":
    main()
