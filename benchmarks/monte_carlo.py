"""A thousand Monte-Carlo runs of estimators on all cores: how much of the cores is used, and what each run costs.

A run is one estimator on one simulated experiment (`steelyard compare estimators`). The figure that counts is the
processor time of all processes over the time on the clock times the cores; on a machine that others use, what they take
is missing from it, so their share is given beside it.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import replace
from pathlib import Path

from common import machine, save, show

from steelyard.compare import NOISES, Protocol, monte_carlo
from steelyard.compare.monte_carlo import cores
from steelyard.robot.library import builtin

# Ten estimators of all kinds; twenty experiments of each of the five noise levels: 1000 runs.
ESTIMATORS = ("ols", "wls", "huber", "rls", "wls-physical", "iv", "didim", "clie", "ml", "ekf")
PROTOCOL = Protocol(
    estimators=ESTIMATORS, trajectories=2, starts=10, noises=tuple(NOISES.values()), rates=(500.0,),
    control_rate=1000.0, duration=5.0, harmonics=10,
)  # fmt: skip


def busy() -> tuple[float, float]:
    """Seconds of all cores that were busy, and that were at all, since the machine started (Linux)."""
    path = Path("/proc/stat")
    if not path.exists():
        return 0.0, 0.0
    ticks = [int(x) for x in path.read_text().splitlines()[0].split()[1:9]]
    per_second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / per_second, sum(ticks) / per_second


def used() -> float:
    """Processor time of this process and of those it started and saw end."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--starts", type=int, default=PROTOCOL.starts, help="repetitions; 10 make 1000 runs")
    options.add_argument("--robot", default="prrrp")
    options.add_argument("--workers", type=int, default=cores())
    given = options.parse_args()
    protocol = replace(PROTOCOL, starts=given.starts)
    robot = builtin(given.robot)
    before, busy_before, started = used(), busy(), time.perf_counter()
    found = monte_carlo(robot, protocol, workers=given.workers)
    wall = time.perf_counter() - started
    processor = used() - before
    all_busy, all_there = (b - a for a, b in zip(busy_before, busy(), strict=True))
    share = processor / (wall * given.workers)
    others = max(all_busy - processor, 0.0) / all_there if all_there else 0.0
    # What was left for us, if the others had their part first.
    of_ours = share / max(1.0 - others, 1e-9)
    failed = sum(not run.has_estimate for run in found.runs)
    show(
        f"{len(found.runs)} runs on {given.robot}, {given.workers} processes",
        ["", ""],
        [
            ["clock", f"{wall:.0f} s, {1e3 * wall / len(found.runs):.0f} ms a run"],
            ["processor", f"{processor:.0f} s, {1e3 * processor / len(found.runs):.0f} ms a run"],
            ["use of the cores", f"{100 * share:.0f} %"],
            ["taken by others meanwhile", f"{100 * others:.0f} % of the machine"],
            ["use of what was left", f"{100 * of_ours:.0f} %"],
            ["runs without numbers", str(failed)],
        ],
    )
    print(machine())
    if len(found.runs) >= 1000:
        figures = {"runs": len(found.runs), "clock_s": wall, "processor_s": processor, "use": share, "others": others}
        save("monte_carlo", {"date": time.strftime("%Y-%m-%d"), "robot": given.robot, **figures})


if __name__ == "__main__":
    main()
