"""Error bars of recursive least squares on simulated arms whose friction the terms do not have: do they hold the truth?

    python benchmarks/recursive_errors.py                # results/recursive_errors.json, the table of recursive.md
    python benchmarks/recursive_errors.py --robots ur10 --draws 1

Arms and friction are those of `plants.py`; the terms are rotor, viscous, Coulomb and offset. Half of the runs know the
noise of each torque, half weigh all rows alike.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from common import save
from plants import PLANTS, ROBOTS, Plant, motion, robot_of

SCHEME = "filtered-dynamic:cutoff_hz=5,torque=trapezoid"
WAYS = ("white", "and from stretch to stretch", "and what the model lacks")


def run(name: str, kind: str, draw: int, seconds: float, weighed: bool) -> dict[str, Any]:
    from steelyard.estimation import recursive
    from steelyard.parameters import terms
    from steelyard.regression.base_parameters import base_parameters

    robot = robot_of(name)
    rng = np.random.default_rng([draw, 5, ROBOTS.index(name), list(PLANTS).index(kind)])
    plant = Plant(robot, kind, rng)
    t, q, dq, ddq = motion(robot, rng, seconds)
    tau = plant.torque(q, dq, ddq)
    noise = 0.02 * np.std(tau, axis=0)
    tau = tau + noise * rng.normal(size=q.shape)
    q = q + 1e-6 * plant.unit * rng.normal(size=q.shape)
    dq = dq + 1e-4 * plant.unit * rng.normal(size=q.shape)
    base = base_parameters(robot, terms(robot, "rotor", "viscous", "coulomb", "offset"))
    live = recursive(robot, zip(t, q, dq, tau, strict=True), base=base, scheme=SCHEME, P0=np.inf,
                     noise=noise if weighed else 1.0)  # fmt: skip
    last = deque(live, maxlen=1)[0]
    known = np.array([p.name in plant.truth for p in base.parameters])
    rigid = ~np.any(base.matrix[:, ~known] != 0.0, axis=1)
    truth = base.values(np.array([plant.truth.get(p.name, 0.0) for p in base.parameters]))
    parts = last.error_parts
    bars = (parts.noise, np.hypot(parts.noise, parts.motion), last.standard_errors)
    z = [(np.abs(last.beta - truth) / bar)[rigid] for bar in bars]
    out: dict[str, Any] = {"robot": name, "plant": kind, "draw": draw, "seconds": seconds, "weighed": weighed}
    out["inside"] = [[int(np.sum(one < 1.96)), len(one)] for one in z]
    out["largest"] = [float(one.max()) for one in z]
    return out


def table(rows: list[dict[str, Any]], by: str) -> list[str]:
    lines = [f"| {by} | {' | '.join(WAYS)} | largest z: white | at last |", "|---|---|---|---|---|---|"]
    for name in [*dict.fromkeys(r[by] for r in rows), "all"]:
        mine = [r for r in rows if name in (r[by], "all")]
        counts = np.sum([r["inside"] for r in mine], axis=0)
        shares = [f"{100.0 * a / b:.1f} %" for a, b in counts]
        largest = np.max([r["largest"] for r in mine], axis=0)
        lines.append(f"| {name} | {' | '.join(shares)} | {largest[0]:.0f} | {largest[2]:.1f} |")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--robots", default=",".join(ROBOTS))
    options.add_argument("--plants", default=",".join(PLANTS))
    options.add_argument("--seconds", default="10,40,160")
    options.add_argument("--draws", type=int, default=1)
    options.add_argument("--first", type=int, default=10)
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    jobs = [
        (robot, plant, draw, float(seconds), (k + r) % 2 == 0)
        for draw in range(given.first, given.first + given.draws)
        for seconds in given.seconds.split(",")
        for r, robot in enumerate(given.robots.split(","))
        for k, plant in enumerate(given.plants.split(","))
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(run, *zip(*jobs, strict=True)))
    for by in ("plant", "robot", "seconds", "weighed"):
        print("\n".join(table(rows, by)) + "\n")
    save("recursive_errors", {"rows": rows})


if __name__ == "__main__":
    sys.exit(main())
