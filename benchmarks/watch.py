"""The whole loop of a watch: samples a second on one core, and the delay from a sender to what is told.

    python benchmarks/watch.py            # about two minutes
    python benchmarks/watch.py --quick    # a few seconds

A robot of six axes with friction and rotors, all parts that there are. Throughput is that of a replay in the batches
that it hands over, and of samples one by one; times are the thread's own (CPU time) on one core. Delay: another process
sends lines of JSON over TCP on this machine, 1,000 a second, each with the time at which it is sent; a sample is known
when the last urgent part has taken it, and the difference of the two is the delay. Beside it stand the delay of a
program that does nothing but receive, and how long one takes that then counts to a few thousand: both are the machine's
own. Of the delay the watch's own part is what passes from its being woken to the sample's being known and, where it was
busy with others when the sample was sent, until it was ready. Outputs and snapshots are written meanwhile. Sender,
receiver and the process that sees samples ask for real-time priority (`--real-time`), as one would on a robot's
computer; where it is refused, whatever else the machine does is in the delays, and the table says so. The observer in C
(`steelyard export --observer`) is compiled by gcc and timed alone.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import one_core, save, show
from observer_in_c import c_microseconds

from steelyard.dynamics import Model
from steelyard.robot import load_robot
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.live_source import LiveSource, ReconnectingSource, SourceOptions, open_source
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.monitor_base import MONITORS, Monitor, StateArrays, WatchSetup
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, make_output
from steelyard.watch.snapshots import Snapshots

RATE = 1000.0
_COUNTED = range(3000)
SENDER = """
import json, os, socket, sys, time
import numpy as np
port, count, rate, path = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
if sys.argv[5] == "1":
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
rows = np.load(path)
n = (rows.shape[1] - 1) // 3
ends = [json.dumps({"q": r[1:1+n].tolist(), "dq": r[1+n:1+2*n].tolist(), "tau": r[1+2*n:].tolist()})[1:] for r in rows]
out = socket.create_connection(("127.0.0.1", port))
out.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
begin = time.monotonic()
for k in range(count):
    wait = begin + k / rate - time.monotonic()
    if wait > 0.0:
        time.sleep(wait)
    out.sendall(f'{{"t": {time.monotonic()!r}, {ends[k % len(ends)]}\\n'.encode())
time.sleep(0.2)
"""


def motion(model: Model, count: int, rate: float = RATE) -> np.ndarray:
    """A smooth motion with the model's own torques and some noise: t, q, dq, tau."""
    t, n = np.arange(count) / rate, model.robot.dof
    k = 1.0 + 0.3 * np.arange(n)
    phase = np.outer(t, k)
    q, dq, ddq = np.sin(phase), k * np.cos(phase), -(k**2) * np.sin(phase)
    tau = model.torque(q, dq, ddq) + 0.1 * np.random.default_rng(0).normal(size=q.shape)
    return np.column_stack([t, q, dq, tau])


def throughput(model: Model, rows: np.ndarray, size: int, names: list[str]) -> dict[str, float]:
    """Microseconds of CPU time a sample: clock, observer, every part, all."""
    clock, observer = SampleClock(plausible_bounds(model.robot)), MomentumObserver(model)
    setup = WatchSetup(model)  # one for all: they share what they work out of a batch
    parts = {name: MONITORS[name](setup) for name in names}
    spent = dict.fromkeys(["clock", "observer", *names], 0.0)
    pieces = [rows[k : k + size] for k in range(0, len(rows), size)]
    first = len(pieces) // 5  # until machine code is made, and everything has its size
    done = 0
    for k, piece in enumerate(pieces):
        marks = [time.thread_time()]
        batches = clock.add(piece)
        marks.append(time.thread_time())
        seen = [observer.observe(batch) for batch in batches]
        marks.append(time.thread_time())
        for part in parts.values():
            for one in seen:
                part.update(one)
            part.fetch_events()
            marks.append(time.thread_time())
        if k >= first:
            done += len(piece)
            for name, span in zip(spent, np.diff(marks), strict=True):
                spent[name] += span
    out = {name: 1e6 * seconds / done for name, seconds in spent.items()}
    return {**out, "all": sum(out.values())}


class Woken:
    """A selector that remembers when it began to wait, and when it was woken, now and the time before."""

    def __init__(self, selector: Any) -> None:
        self._selector, self.before, self.began, self.woken = selector, 0.0, 0.0, 0.0

    def select(self, wait_s: float) -> Any:
        self.before, self.began = self.woken, time.monotonic()
        found = self._selector.select(wait_s)
        self.woken = time.monotonic()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)


class Delays(Monitor):
    """The last part: how late each sample is known, and how much of that is the watch's own: since it was woken for the
    sample and, where it was busy with others when the sample was sent, until it was ready again."""

    urgent = True

    def __init__(self, setup: WatchSetup, count: int) -> None:
        super().__init__(setup)
        self.found, self.count, self.over = np.zeros((count, 2)), 0, False
        self.source: Any = None

    def update(self, batch: ObservedBatch) -> None:
        now, stop = time.monotonic(), min(len(self.found), self.count + len(batch.samples))
        sent = batch.samples.t[: stop - self.count]
        self.found[self.count : stop, 0] = now - sent
        wait = self.source and self.source._selector
        if wait:
            busy = wait.began - np.maximum(sent, wait.before)
            self.found[self.count : stop, 1] = now - wait.woken + np.maximum(busy, 0.0)
        self.count = stop

    def report(self) -> dict[str, Any]:
        return {"samples": self.count}

    def state(self) -> StateArrays:
        done = self.count >= len(self.found)
        return {"found": self.found.copy(), "count": np.array(self.count)} if done else {}

    def restore(self, state: StateArrays) -> None:
        self.found, self.count = state["found"], int(state["count"])


def delays(
    model: Model, rows: np.ndarray, seconds: float, names: list[str], folder: Path, ahead: bool, use_helper: bool = True
) -> np.ndarray:
    """Delays (s) of all samples but those of the first second, and what of them is the watch's own."""
    count = int(seconds * RATE)
    source = open_source("tcp:0", SourceOptions(model.robot))
    setup = WatchSetup(model)
    last = Delays(setup, count)
    parts: dict[str, Monitor] = {**{name: MONITORS[name](setup) for name in names}, "delays": last}
    made = OutputSetup(model.robot.joint_names)
    outputs = [make_output(f"jsonl={folder / 'told.jsonl'}", made), make_output("prometheus=0", made)]
    for output in outputs:
        output.open()
    observer = MomentumObserver(model)
    watch = RobotWatch(
        ReconnectingSource(source), SampleClock(plausible_bounds(model.robot)), observer, parts, Outputs(outputs),
        Snapshots(folder / "state", model), WatchTimes(0.2, 2.0), use_helper=use_helper, real_time=ahead,
    )  # fmt: skip
    for k in range(0, 5000, 10):  # machine code is made when the work adds up
        seen = observer.observe(SampleBatch.of_rows(rows[k : k + 10], fresh=k == 0))
        for part in parts.values():
            part.update(seen)
    watch.step(0.0)
    source._selector = Woken(source._selector)  # type: ignore[attr-defined]
    last.source, last.count = source, 0
    np.save(folder / "rows.npy", rows[:5000])
    sender = [sys.executable, "-c", SENDER, str(_port(source)), str(count), str(RATE), str(folder / "rows.npy")]
    with subprocess.Popen([*sender, str(int(ahead))]) as process:
        watch.run(lambda: process.poll() is not None)
    return last.found[int(RATE) : last.count]


def floor(rows: np.ndarray, seconds: float, folder: Path, ahead: bool) -> np.ndarray:
    """Delays of the same lines to somebody who does nothing but receive them, and how long it takes to count then, as
    long as a sample takes: what this machine takes for itself."""
    count = int(seconds * RATE)
    late = np.zeros((count, 2))
    np.save(folder / "rows.npy", rows[:5000])
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = [str(server.getsockname()[1]), str(count), str(RATE), str(folder / "rows.npy")]
        with subprocess.Popen([sys.executable, "-c", SENDER, *place, str(int(ahead))]):
            connection, _ = server.accept()
            done = 0
            while done < count and (data := connection.recv(1 << 18)):
                now = time.monotonic()
                for line in data.split(b"\n")[:-1]:
                    if line.startswith(b'{"t": '):
                        late[done, 0] = now - float(line[6 : line.index(b",")])
                        sum(_COUNTED)
                        late[done, 1] = time.monotonic() - now
                        done += 1
            connection.close()
    return late[int(RATE) : done]


def real_time(wanted: bool) -> bool:
    """Go before all ordinary processes, or no longer; whether that is so."""
    try:
        os.sched_setscheduler(
            0, *((os.SCHED_FIFO, os.sched_param(10)) if wanted else (os.SCHED_OTHER, os.sched_param(0)))
        )
    except (AttributeError, OSError):
        return False
    return wanted


def _port(source: LiveSource) -> int:
    return int(source.port)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    model = Model.nominal(load_robot("ns16"))
    rows = motion(model, 20_000 if quick else 100_000)
    names = list(MONITORS)
    with tempfile.TemporaryDirectory() as folder:
        ahead = real_time(True)
        bare, counted = floor(rows, 5.0 if quick else 31.0, Path(folder), ahead).T
        real_time(False)
        late, own = delays(model, rows, 5.0 if quick else 61.0, names, Path(folder), ahead).T
    one_core()
    speeds = {}
    for size in (1, 20, 500):
        speeds[f"batches of {size}"] = throughput(model, rows[: 5000 * size], size, names)
    heads = ["", *next(iter(speeds.values())), "kHz"]
    table = [
        [name, *(f"{x:.1f}" for x in found.values()), f"{1e3 / found['all']:.1f}"] for name, found in speeds.items()
    ]
    show("A watch of six axes: µs of one core a sample", heads, table)
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "all": 1.0}
    found = {"received alone": bare, "counting then": counted, "known": late, "of that, the watch's own": own}
    quantiles = {
        what: {name: 1e3 * float(np.quantile(x, share)) for name, share in shares.items()} for what, x in found.items()
    }
    priority = "real-time priority" if ahead else "ordinary priority"
    heads = ["", "samples", *(f"{name}, ms" for name in shares)]
    table = [[what, str(len(found[what])), *(f"{x:.3f}" for x in some.values())] for what, some in quantiles.items()]
    show(f"Delay from a sender at 1 kHz over TCP, {priority}", heads, table)
    in_c = c_microseconds(model, SampleBatch.of_rows(rows[:5000], fresh=True))
    show("The observer in C, gcc -O2", ["µs a sample"], [[f"{in_c:.2f}"]])
    told = {"priority": priority, "microseconds": speeds, "delay_ms": quantiles, "c_observer_microseconds": in_c}
    save("watch", told)


if __name__ == "__main__":
    main()
