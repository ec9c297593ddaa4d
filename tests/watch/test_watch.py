"""The whole loop, from a source to the outputs, with faults and restarts."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_samples import arm, json_lines, model, samples

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.watch.batch import ObservedBatch
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.live_source import LiveSource, ReconnectingSource, SourceOptions, open_source
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.monitor_base import Monitor, StateArrays, WatchEvent, WatchSetup
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, WatchOutput, WatchReport
from steelyard.watch.settings import WatchSettings, make_watch, rate_of
from steelyard.watch.snapshots import SnapshotError, Snapshots


class IntegralMonitor(Monitor):
    """A test monitor: leaky integral of the squared external torque."""

    title = "Summed"
    urgent = True

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self.count, self.total = 0, 0.0

    def update(self, batch: ObservedBatch) -> None:
        for row in batch.r:
            self.count += 1
            self.total = 0.999 * self.total + float(row @ row)
            if self.count % 1000 == 0:
                self.add_event(WatchEvent(float(batch.samples.t[-1]), "thousand", "A thousand more."))

    def report(self) -> dict[str, Any]:
        return {"count": self.count, "total": self.total, "by_joint": [self.total] * arm().dof}

    def state(self) -> StateArrays:
        return {"count": np.array(self.count), "total": np.array(self.total)}

    def restore(self, state: StateArrays) -> None:
        self.count, self.total = int(state["count"]), float(state["total"])


class SlowIntegralMonitor(IntegralMonitor):
    """The same without urgency."""

    urgent = False


class Recorder(WatchOutput):
    """An output that records everything."""

    wants_samples = True

    def __init__(self) -> None:
        super().__init__("", OutputSetup(arm().joint_names))
        self.batches: list[ObservedBatch] = []
        self.reports: list[WatchReport] = []
        self.events: list[WatchEvent] = []

    def write_samples(self, batch: ObservedBatch) -> None:
        self.batches.append(batch)

    def write_report(self, report: WatchReport) -> None:
        self.reports.append(report)

    def write_event(self, event: WatchEvent) -> None:
        self.events.append(event)


def with_push(count: int, rate: float = 500.0) -> Array:
    """A motion with a push in the middle."""
    rows = samples(count, rate)
    rows[count // 2 : count // 2 + count // 10, -1] -= 2.0
    return rows


def save_log(rows: Array, path: Path) -> Path:
    q, dq, tau = np.split(rows[:, 1:], 3, axis=1)
    Log(arm().joint_names, rows[:, 0], q, dq, None, tau).save(path)
    return path


def make_recorded_watch(source: LiveSource, state: Path | None = None, **more: Any) -> tuple[RobotWatch, Recorder]:
    recorder = Recorder()
    parts = {"summed": IntegralMonitor(WatchSetup(model())), "patient": SlowIntegralMonitor(WatchSetup(model()))}
    snapshots = None if state is None else Snapshots(state, model())
    clock = SampleClock(plausible_bounds(arm()))
    outputs = Outputs([recorder], waits=not source.live)
    return RobotWatch(
        ReconnectingSource(source, 0.3), clock, MomentumObserver(model()), parts, outputs, snapshots, **more
    ), recorder


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_log(with_push(3000), tmp_path_factory.mktemp("log") / "log.npz")


def replay(log: Path, size: int) -> LiveSource:
    return open_source(str(log), SourceOptions(arm(), speed=np.inf, size=size))


def test_result_does_not_depend_on_the_batches_of_a_replay(log: Path) -> None:
    results = []
    for size in (1, 7, 400, 100_000):
        watch, recorder = make_recorded_watch(replay(log, size))
        watch.run()
        assert sum(len(batch.samples) for batch in recorder.batches) == 3000
        assert [event.kind for event in recorder.events] == ["thousand"] * 6
        assert recorder.reports[-1].monitors["patient"] == recorder.reports[-1].monitors["summed"]
        results.append(
            (np.vstack([batch.r for batch in recorder.batches]), recorder.reports[-1].monitors["summed"]["total"])
        )
    for r, total in results[1:]:
        assert np.array_equal(r, results[0][0])
        assert total == results[0][1]
    assert np.abs(results[0][0][:1400]).max() < 0.05  # sampling error only
    assert np.abs(results[0][0][1600, -1]) == pytest.approx(2.0, abs=0.1)


def test_stopped_replay_continues(log: Path, tmp_path: Path) -> None:
    watch, recorder = make_recorded_watch(replay(log, 50))
    watch.run()
    whole = recorder.reports[-1]
    rng = random.Random(3)
    batches: list[ObservedBatch] = []
    for _ in range(100):
        watch, recorder = make_recorded_watch(replay(log, 50), tmp_path / "state")
        steps = rng.randint(0, 12)
        finished = False
        while steps and not finished:
            finished = not watch.step()
            steps -= 1
        assert watch.snapshots is not None
        watch.snapshots.write(watch.state())
        watch.snapshots.close()
        watch.outputs.close()
        batches += recorder.batches
        if finished:
            break
    assert finished
    assert sum(len(batch.samples) for batch in batches) == 3000
    assert watch.report().monitors == whole.monitors
    assert watch.counts() == dict(whole.counts)


def test_state_is_always_intact_and_locked(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    watch, _ = make_recorded_watch(replay(log, 500), folder)
    for _ in range(3):
        watch.step()
        assert watch.snapshots is not None
        watch.snapshots.write(watch.state())
    with pytest.raises(SnapshotError, match="in use by another watch"):
        Snapshots(folder, model())
    watch.snapshots.close()
    (folder / "state.npz").write_bytes((folder / "state.npz").read_bytes()[:300])  # a truncated file
    restarted, _ = make_recorded_watch(replay(log, 500), folder)
    assert restarted.report().monitors["summed"]["count"] == 1000  # from the previous state
    assert restarted.snapshots is not None
    restarted.snapshots.close()
    other = replace(model(), theta=1.01 * model().theta)
    with pytest.raises(SnapshotError, match="of another model"):
        Snapshots(folder, other).read()


COMMAND = [sys.executable, "-m", "steelyard", "watch", arm().name]


def start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_killed_watch_continues_with_the_same_result(log: Path, tmp_path: Path) -> None:
    """SIGKILL at random times, also while a snapshot is written."""
    common = [str(log), "--every", "0.5", "--snapshot", "0.1", "--to", f"jsonl={tmp_path / 'told.jsonl'}"]
    subprocess.run([*COMMAND, str(log), "--speed", "max", "--to", f"jsonl={tmp_path / 'whole.jsonl'}"], check=True)
    expected = json.loads((tmp_path / "whole.jsonl").read_text().splitlines()[-1])
    rng = random.Random(5)
    for _ in range(3):
        process = start(*common, "--speed", "2", "--state", str(tmp_path / "state"))
        wait_for(lambda: (tmp_path / "state" / "state.npz").exists())
        time.sleep(rng.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = start(*common, "--speed", "max", "--state", str(tmp_path / "state"))
    assert done.wait(60) == 0
    last = json.loads((tmp_path / "told.jsonl").read_text().splitlines()[-1])
    assert last["counts"] == expected["counts"]
    assert last["contact"] == expected["contact"]
    assert last["t"] == expected["t"]


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "timed out"
        time.sleep(0.01)


def test_live_watch_survives_invalid_senders(tmp_path: Path) -> None:
    source = open_source("tcp:0", SourceOptions(arm()))
    watch, recorder = make_recorded_watch(source, tmp_path / "state", times=WatchTimes(0.05, 0.1))
    stop = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stop.is_set,))
    thread.start()
    wait_for(lambda: watch.source.connected)
    port = source.port  # type: ignore[attr-defined]
    rows = samples(4000, 1000.0)
    lines = json_lines(rows)
    million = json.dumps({"t": 1.0, "q": [0.0] * 1_000_000, "dq": [], "tau": []}).encode() + b"\n"
    with socket.create_connection(("127.0.0.1", port)) as good, socket.create_connection(("127.0.0.1", port)) as bad:
        good.sendall(b"".join(lines[:1000]))
        bad.sendall(os.urandom(100_000))
        bad.sendall(b'\n{"t": 1.5, "q": [NaN, 0, 0], "dq": [0, 0, 0], "tau": [0, 0, 0]}\n')
        bad.sendall(b'{"t": 1.5, "joints": ["a"], "q": [0], "dq": [0], "tau": [0]}\n')
        bad.sendall(b'{"t": 1.5, "q": [0, 0, 0], "dq": [1e300, 0, 0], "tau": [0, 0, 0]}\n')
        bad.sendall(million)
        bad.sendall(b'{"t": 1.5, "q": [0, 0')
        bad.close()
        good.sendall(b"".join(lines[1000:]))  # as fast as the socket accepts
        wait_for(lambda: watch.clock.diagnostics.counts.get("samples", 0) == 4000)
        wait_for(lambda: watch.source.stale)
        wait_for(lambda: any(report.stale for report in recorder.reports))
        good.sendall(json_lines(samples(1, start=5.0))[0])
        wait_for(lambda: any(event.kind == "fresh" for event in recorder.events))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    counts = recorder.reports[-1].counts
    for kind in ("not understood", "other joints", "too long", "half a line", "not finite", "impossible", "stale"):
        assert counts[kind] >= 1, kind
    messages = [event.message for event in recorder.events if event.kind == "source"]
    assert len(messages) == len(set(messages)) <= 8  # one message each
    assert np.array_equal(np.concatenate([batch.samples.t for batch in recorder.batches])[:4000], rows[:, 0])
    assert recorder.reports[-1].monitors["patient"] == recorder.reports[-1].monitors["summed"]
    restarted, _ = make_recorded_watch(open_source("tcp:0", SourceOptions(arm())), tmp_path / "state")
    assert restarted.report().monitors == recorder.reports[-1].monitors
    assert restarted.snapshots is not None
    restarted.snapshots.close()
    assert all(event.alarm for event in recorder.events if event.kind == "stale")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no helper process")
def test_helper_process(tmp_path: Path) -> None:
    socket_path, output = tmp_path / "robot", tmp_path / "told.jsonl"
    common = [f"unix:{socket_path}", "--every", "0.05", "--snapshot", "0.1", "--state", str(tmp_path / "state")]
    common += ["--parts", "contact,load", "--to", f"jsonl={output}"]
    lines = json_lines(samples(2000))

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        wait_for(lambda: socket_path.exists() and connection.connect_ex(str(socket_path)) == 0)
        return connection

    def last_report() -> dict[str, Any]:
        lines_out = [json.loads(text) for text in output.read_text().splitlines()] if output.exists() else []
        reports = [line for line in lines_out if "counts" in line]
        return reports[-1] if reports else {"counts": {}}

    def saved_samples() -> int:
        try:
            with np.load(tmp_path / "state" / "state.npz") as state:
                return int(json.loads(str(state["counts"]))["samples"])
        except (OSError, KeyError):
            return 0

    def children(process: subprocess.Popen[str]) -> list[int]:
        pids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return [int(pid) for pid in pids.split()]

    process = start(*common)
    with connect() as sender:
        (helper,) = children(process)
        sender.sendall(b"".join(lines[:500]) + b"nonsense\n" + b"".join(lines[500:1000]))
        wait_for(lambda: last_report()["counts"].get("samples") == 1000)
        assert last_report()["counts"]["not understood"] == 1
        assert last_report()["load"]["carries"] is None  # one second is too short for an estimate
        wait_for(lambda: saved_samples() == 1000)
    process.kill()
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{helper}").exists())
    process = start(*common)
    with connect() as sender:
        sender.sendall(b"".join(lines[1000:1500]))
        wait_for(lambda: saved_samples() == 1500)
        os.kill(*children(process), signal.SIGKILL)
        wait_for(lambda: "reads samples died" in output.read_text())
    with connect() as sender:  # to the remaining process
        sender.sendall(b"".join(lines[1500:]))
        wait_for(lambda: last_report()["counts"].get("samples") == 2000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert last_report()["t"] == pytest.approx(1.999)


def test_failing_monitor_and_output_are_removed(log: Path) -> None:
    class Broken(IntegralMonitor):
        def update(self, batch: ObservedBatch) -> None:
            raise RuntimeError("a mistake of ours")

    class Full(Recorder):
        def write_report(self, report: WatchReport) -> None:
            raise OSError(28, "No space left on device")

    watch, recorder = make_recorded_watch(replay(log, 100))
    watch.monitors["broken"] = Broken(WatchSetup(model()))
    full = Full()
    watch.outputs.members.append(full)
    watch.run()
    assert recorder.reports[-1].monitors["summed"]["count"] == 3000
    assert [event.message for event in recorder.events if event.kind == "failed"] == [
        "Monitor 'broken' failed (RuntimeError: a mistake of ours); the watch continues without it."
    ]
    assert watch.outputs.members == [recorder]
    assert any("No space left" in event.message for event in recorder.events)


def test_memory_is_bounded() -> None:
    """After 80 s of faulty samples at 1 kHz only the counts have grown."""

    class Endless(LiveSource):
        live = False

        def open(self) -> None:
            self.k = 0

        def read(self, wait_s: float) -> Array | None:
            rows = samples(1000, start=float(self.k))
            rows[10:20, 1] = np.nan
            rows[30:40, 0] = rows[29, 0]
            rows[50:55, 0] -= 0.5
            self.k += 1 if self.k % 7 else -3
            return rows

        def close(self) -> None:
            pass

    watch, _ = make_recorded_watch(Endless("", SourceOptions(arm())))
    watch.outputs.members.clear()
    watch.monitors.clear()  # they have their own tests
    for _ in range(20):
        watch.step()
    tracemalloc.start()
    for _ in range(20):
        watch.step()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(40):
        watch.step()
    later = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    watch.outputs.close()
    assert later - first < 200_000  # the size of two batches; all samples need 15 times as much
    assert watch.counts()["samples"] > 70_000


def test_make_watch_and_its_refusals(log: Path, tmp_path: Path) -> None:
    assert rate_of("1/day") == pytest.approx(1 / 86400)
    assert rate_of("2/hours") == pytest.approx(2 / 3600)
    for wrong in ("0/day", "x", "1/fortnight", "-1/day"):
        with pytest.raises(SteelyardError, match="is not a rate"):
            rate_of(wrong)
    watch, sentences = make_watch(arm().name, [str(log), str(log)], WatchSettings(speed=np.inf))
    watch.run()
    assert sentences == []
    assert watch.counts() == {"samples": 6000, "gap": 1}
    with pytest.raises(SteelyardError, match="does not exist"):
        make_watch(arm().name, [str(log), "tcp:5000"], WatchSettings())
    refused = subprocess.run([*COMMAND, "tcp:nowhere"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "has no valid port" in refused.stderr
