"""A month of a simulated robot at 100 Hz, watched: what is found, when, what is found that is not there, and its cost.

    python benchmarks/watch_month.py --nights --hours 16 --keep build/month   # day and night: 2.6e8 samples
    python benchmarks/watch_month.py --hours 1                                # three axes, 30 days of an hour
    python benchmarks/watch_month.py --robot ns16 --days 7 --hours 1
    python benchmarks/watch_month.py --quiet                                  # nothing happens: false alarms alone

A gear wears by 1 % a week from the tenth day on, a torque sensor jumps on the fifteenth, the tool is changed on the
twentieth (`--squeeze` has them all within a week); mornings are cold, each differently; with `--nights` samples come
while the robot stands, too. The model that it is watched by is off by a part of a percent in its links and by some
percent in its friction. The whole loop runs: a source, the clock, the observer, load, health and model, snapshots.
With `--keep` it may be killed at any time: asked again, it goes on from the last snapshot. The figures stand in
docs/guides/health.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import save

from steelyard.dynamics import Model
from steelyard.ground.arrays import Array
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import DAY_S, Mishap, WorkingLife
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.drives import friction_at
from steelyard.watch.live_source import LiveSource, ReconnectingSource, SourceOptions
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.monitor_base import MONITORS, StateArrays, WatchEvent, WatchSetup
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, WatchOutput, WatchReport
from steelyard.watch.snapshots import Snapshots

TOLD = ("load", "health", "model")


def nearly(truth: Model, seed: int = 1) -> Model:
    """A model as identification would find it: links to 0.3 %, friction to 3 %."""
    rng = np.random.default_rng(seed)
    errors = np.full(len(truth.theta), 0.003)
    errors[truth.robot.inertial_count :] = 0.03
    return Model(truth.robot, truth.terms, truth.theta * (1.0 + errors * rng.normal(size=len(errors))))


def mishaps_of(truth: Model, life: WorkingLife, days: tuple[int, int, int]) -> tuple[Mishap, ...]:
    """Joint 2 wears, joint 3's sensor jumps by a fifth of its friction, a tool of a twentieth of the robot comes on."""
    jump = 0.2 * float(friction_at(truth, np.full(truth.robot.dof, 0.5))[2])
    tool = 0.05 * float(truth.theta[: truth.robot.inertial_count : 10].sum())
    wears, jumps, tools = (day * life.day_s + life.begins_s + 0.6 * life.shift_s for day in days)
    return Mishap(wears, 1, "wear", 0.01), Mishap(jumps, 2, "offset", jump), Mishap(tools, 0, "tool", tool)


class Life(LiveSource):
    """A working life as a source: it goes on where it was left, and knows what it costs to simulate."""

    live = False

    def __init__(self, life: WorkingLife, days: int, options: SourceOptions) -> None:
        super().__init__("", options)
        self._life, self._days = life, days
        self.a_day = round(life.rate_hz * (life.day_s if life.nights else life.shift_s))
        self.done, self.t, self.cpu_s = 0, 0.0, 0.0

    def open(self) -> None:
        day, left = divmod(self.done, self.a_day)
        self._blocks = self._life.blocks(day, self._days - day)
        while left > 0:
            left -= len(next(self._blocks)[0])

    def read(self, wait_s: float) -> Array | None:
        begun = time.process_time()
        block = next(self._blocks, None)
        rows = None if block is None else np.column_stack(block)
        if rows is not None:
            self.done, self.t = self.done + len(rows), float(rows[-1, 0])
        self.cpu_s += time.process_time() - begun
        return rows

    def close(self) -> None:
        pass

    def state(self) -> StateArrays:
        return {"samples": np.array(self.done)}

    def restore(self, state: StateArrays) -> bool:
        self.done = int(state["samples"])
        return True


class Diary(WatchOutput):
    """Every event, and what every day has cost, a line of JSON each, in a file that grows."""

    source: Life

    def open(self) -> str:
        self._file = open(self.where, "a", encoding="utf-8")  # noqa: SIM115
        self._day, self._at, self._counts = -1, (0, 0.0, 0.0), dict[str, int]()
        return ""

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, default=str) + "\n")
        self._file.flush()

    def write_event(self, event: WatchEvent) -> None:
        found = self.source.t / DAY_S
        self._write({"day": event.t / DAY_S, "found": found, **event.plain()})
        print(f"  day {found:6.2f}, since {event.t / DAY_S:6.2f}: {event.message}", flush=True)

    def write_report(self, report: WatchReport) -> None:
        day, self._counts = int(report.t / DAY_S), dict(report.counts)
        if day > self._day:
            self._day_over()
            self._day, self._at = day, (self.source.done, time.process_time(), self.source.cpu_s)

    def _day_over(self) -> None:
        now = self.source.done, time.process_time(), self.source.cpu_s
        if self._day >= 0:
            samples, cpu, simulated = (a - b for a, b in zip(now, self._at, strict=True))
            cost = {"of_day": self._day, "samples": samples, "cpu_s": cpu - simulated, "simulation_s": simulated}
            self._write({**cost, "rss_mib": memory_mib(), "counts": self._counts})

    def close(self) -> None:
        self._day_over()
        self._file.close()


def memory_mib() -> float:
    """What this process holds now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024.0


def watch_of(life: WorkingLife, days: int, model: Model, folder: Path) -> RobotWatch:
    """The watch of a life, its diary and snapshots in a folder."""
    source = Life(life, days, SourceOptions(model.robot))
    setup = WatchSetup(model)
    diary = Diary(str(folder / "diary.jsonl"), OutputSetup(model.robot.joint_names, live=False))
    diary.source = source
    diary.open()
    return RobotWatch(
        ReconnectingSource(source), SampleClock(plausible_bounds(model.robot)), MomentumObserver(model),
        {name: MONITORS[name](setup) for name in TOLD}, Outputs([diary], waits=True),
        Snapshots(folder / "state", model), WatchTimes(report_s=600.0, snapshot_s=20.0),
    )  # fmt: skip


def tell(path: Path, name: str = "") -> None:
    """What the diary says of costs, in thirds; with a name all of it goes to the results, too."""
    diary = [json.loads(text) for text in path.read_text().splitlines()]
    costs = [line for line in diary if "cpu_s" in line]
    if name:
        kept = ("day", "found", "event", "message", "alarm")
        events = [{key: line[key] for key in kept} for line in diary if line.get("event", "source") != "source"]
        save(name, {"events": events, "days": costs})
    if not costs:
        return
    third = max(len(costs) // 3, 1)
    samples, cpu, made = (sum(c[key] for c in costs) for key in ("samples", "cpu_s", "simulation_s"))
    print(f"{samples:.3g} samples: {cpu:.0f} s of processor to watch them, {made:.0f} s to simulate them")
    for which, some in (("first", costs[:third]), ("last", costs[-third:])):
        spent = 1e6 * sum(c["cpu_s"] for c in some) / sum(c["samples"] for c in some)
        print(f"{which} third: {spent:.2f} µs a sample; {some[0]['rss_mib']:.1f} to {some[-1]['rss_mib']:.1f} MiB held")


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--robot", default="rotradi")
    given.add_argument("--days", type=int, default=30)
    given.add_argument("--hours", type=float, default=2.0, help="of work a day")
    given.add_argument("--nights", action="store_true", help="samples come while the robot stands, too")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--quiet", action="store_true", help="nothing happens to the robot")
    given.add_argument("--squeeze", action="store_true", help="what happens does so on the sixth day and after")
    given.add_argument("--keep", type=Path, help="a folder for diary and snapshots; what it holds is gone on with")
    given.add_argument("--save", default="", metavar="NAME", help="of a file among the results for events and costs")
    asked = given.parse_args()
    truth = Model.nominal(builtin(asked.robot))
    begins = 6.0 * 3600.0 if asked.hours <= 16.0 else 0.0
    shape = {"shift_s": 3600.0 * asked.hours, "begins_s": begins, "nights": asked.nights, "seed": asked.seed}
    life = WorkingLife(truth, **shape)
    if not asked.quiet:
        life = WorkingLife(truth, mishaps_of(truth, life, (5, 5, 6) if asked.squeeze else (9, 14, 19)), **shape)
    for m in life.mishaps:
        print(f"  day {m.t / DAY_S:6.2f}: it happens: {m.kind} at joint {m.joint + 1}, {m.size:.3g}")
    with tempfile.TemporaryDirectory() as other:
        folder = asked.keep or Path(other)
        folder.mkdir(parents=True, exist_ok=True)
        watch_of(life, asked.days, nearly(truth), folder).run()
        tell(folder / "diary.jsonl", asked.save)


if __name__ == "__main__":
    main()
