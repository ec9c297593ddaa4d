"""Processor time of closed loops: motion of 100,000 samples of a four-bar, and of 10,000 of a Stewart platform.

Usage: python -m benchmarks.closed_loops
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from steelyard import Mechanism, base_parameters, load_robot

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "loops"))
from loop_plants import MECHANISMS, SIZES, smooth


def main() -> None:
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
