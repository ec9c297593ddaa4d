"""A month of a simulated robot at 100 Hz, watched: what is found, when, what is found that is not there, and its cost.

    python benchmarks/watch_month.py                 # three axes, 30 days of two hours at 100 Hz
    python benchmarks/watch_month.py --robot ns16 --days 14 --hours 1
    python benchmarks/watch_month.py --hours 24      # works day and night: 2.6e8 samples
    python benchmarks/watch_month.py --quiet         # nothing happens: false alarms alone

A gear wears by 1 % a week from the tenth day on, a torque sensor jumps on the fifteenth, the tool is changed on the
twentieth; mornings are cold, each differently. The model that it is watched by is off by a part of a percent in its
links and by some percent in its friction. docs/guides/health.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from steelyard.dynamics import Model
from steelyard.robot.library import builtin
from steelyard.simulation.work import DAY_S, Mishap, WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.drives import friction_at
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.parts import WATCH_PARTS, WatchPart, WatchSetup

TOLD = ("load", "health", "model")


def nearly(truth: Model, seed: int = 1) -> Model:
    """A model as identification would find it: links to 0.3 %, friction to 3 %."""
    rng = np.random.default_rng(seed)
    errors = np.full(len(truth.theta), 0.003)
    errors[truth.robot.inertial_count :] = 0.03
    return Model(truth.robot, truth.terms, truth.theta * (1.0 + errors * rng.normal(size=len(errors))))


def mishaps_of(truth: Model, life: WorkingLife, wear: float = 0.01) -> tuple[Mishap, ...]:
    """Joint 2 wears, joint 3's sensor jumps by a fifth of its friction, a tool of a twentieth of the robot comes on."""
    jump = 0.2 * float(friction_at(truth, np.full(truth.robot.dof, 0.5))[2])
    tool = 0.05 * float(truth.theta[: truth.robot.inertial_count : 10].sum())
    wears, jumps, tools = (day * life.day_s + life.begins_s + 0.6 * life.shift_s for day in (9, 14, 19))
    return Mishap(wears, 1, "wear", wear), Mishap(jumps, 2, "offset", jump), Mishap(tools, 0, "tool", tool)


def watched(
    life: WorkingLife, days: int, parts: dict[str, WatchPart], model: Model, tell: bool = False
) -> tuple[list[dict[str, object]], list[dict[str, float]]]:
    """What was told, and what each day cost."""
    observer = MomentumObserver(model)
    events: list[dict[str, object]] = []
    costs: list[dict[str, float]] = []
    for day in range(days):
        begun, samples = time.process_time(), 0
        for k, (t, q, dq, tau) in enumerate(life.blocks(day, 1)):
            seen = observer.take(SampleBatch(t, q, dq, tau, fresh=k == 0))
            samples += len(t)
            for name, part in parts.items():
                part.take(seen)
                for e in part.fetch_events():
                    events.append({"part": name, "day": e.t / life.day_s, **e.plain()})
                    if tell:
                        when = f"day {t[-1] / life.day_s:6.2f}, since {e.t / life.day_s:6.2f}"
                        print(f"  {when}  {name}: {e.message}", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        costs.append({"day": day, "samples": samples, "cpu_s": time.process_time() - begun, "peak_mib": peak})
    return events, costs


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--robot", default="rotradi")
    given.add_argument("--days", type=int, default=30)
    given.add_argument("--hours", type=float, default=2.0)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--quiet", action="store_true", help="nothing happens to the robot")
    given.add_argument("--write", type=Path, help="a JSON file for events and costs")
    asked = given.parse_args()
    truth = Model.nominal(builtin(asked.robot))
    begins = 6.0 * 3600.0 if asked.hours <= 16.0 else 0.0
    life = WorkingLife(truth, shift_s=3600.0 * asked.hours, begins_s=begins, seed=asked.seed)
    if not asked.quiet:
        life = WorkingLife(truth, mishaps_of(truth, life), shift_s=life.shift_s, begins_s=begins, seed=asked.seed)
    model = nearly(truth)
    setup = WatchSetup(model)
    parts = {name: WATCH_PARTS[name](setup) for name in TOLD}
    for m in life.mishaps:
        print(f"  day {m.t / DAY_S:6.2f}  it happens: {m.kind} at joint {m.joint + 1}, {m.size:.3g}")
    events, costs = watched(life, asked.days, parts, model, tell=True)
    samples, cpu = sum(c["samples"] for c in costs), sum(c["cpu_s"] for c in costs)
    third = max(len(costs) // 3, 1)
    early, late = (
        1e6 * sum(c["cpu_s"] for c in x) / sum(c["samples"] for c in x) for x in (costs[:third], costs[-third:])
    )
    print(f"{samples:.3g} samples in {cpu:.0f} s of processor: {samples / cpu:.0f} Hz (simulation included)")
    print(f"CPU a sample: {early:.1f} µs in the first third, {late:.1f} µs in the last")
    print(f"peak memory: {costs[0]['peak_mib']:.0f} MiB after a day, {costs[-1]['peak_mib']:.0f} MiB at the end")
    if asked.write:
        asked.write.write_text(json.dumps({"events": events, "costs": costs}, default=str), encoding="utf-8")


if __name__ == "__main__":
    main()
