"""The whole loop: from a source to what is told, whatever happens on the way."""

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
from live_cases import arm, json_lines, model, samples

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.watch.batch import Seen
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.loop import RobotWatch, WatchTimes
from steelyard.watch.making import WatchSettings, make_watch, rate_of
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs, OutputSetup, WatchOutput, WatchReport
from steelyard.watch.parts import PartState, WatchEvent, WatchPart, WatchSetup
from steelyard.watch.snapshots import SnapshotError, Snapshots
from steelyard.watch.source import Lasting, LiveSource, SourceOptions, open_source


class Summed(WatchPart):
    """A stand-in for what is told: the time integral of the squared external torque, sample by sample."""

    title = "Summed"
    urgent = True

    def __init__(self, setup: WatchSetup) -> None:
        super().__init__(setup)
        self.count, self.total = 0, 0.0

    def take(self, seen: Seen) -> None:
        for row in seen.r:
            self.count += 1
            self.total = 0.999 * self.total + float(row @ row)
            if self.count % 1000 == 0:
                self.tell(WatchEvent(float(seen.batch.t[-1]), "thousand", "A thousand more."))

    def telling(self) -> dict[str, Any]:
        return {"count": self.count, "total": self.total, "by_joint": [self.total] * arm().dof}

    def state(self) -> PartState:
        return {"count": np.array(self.count), "total": np.array(self.total)}

    def restore(self, state: PartState) -> None:
        self.count, self.total = int(state["count"]), float(state["total"])


class Patient(Summed):
    """The same, of what can wait."""

    urgent = False


class Kept(WatchOutput):
    """An output that keeps everything."""

    wants_samples = True

    def __init__(self) -> None:
        super().__init__("", OutputSetup(arm().joint_names))
        self.seen: list[Seen] = []
        self.reports: list[WatchReport] = []
        self.events: list[WatchEvent] = []

    def took(self, seen: Seen) -> None:
        self.seen.append(seen)

    def told(self, report: WatchReport) -> None:
        self.reports.append(report)

    def happened(self, event: WatchEvent) -> None:
        self.events.append(event)


def pushed(count: int, rate: float = 500.0) -> Array:
    """A motion with somebody's push in the middle."""
    rows = samples(count, rate)
    rows[count // 2 : count // 2 + count // 10, -1] -= 2.0
    return rows


def saved(rows: Array, path: Path) -> Path:
    q, dq, tau = np.split(rows[:, 1:], 3, axis=1)
    Log(arm().joint_names, rows[:, 0], q, dq, None, tau).save(path)
    return path


def watching(source: LiveSource, state: Path | None = None, **more: Any) -> tuple[RobotWatch, Kept]:
    kept = Kept()
    parts = {"summed": Summed(WatchSetup(model())), "patient": Patient(WatchSetup(model()))}
    snapshots = None if state is None else Snapshots(state, model())
    clock = SampleClock(plausible_bounds(arm()))
    outputs = Outputs([kept], waits=not source.live)
    return RobotWatch(Lasting(source, 0.3), clock, MomentumObserver(model()), parts, outputs, snapshots, **more), kept


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(pushed(3000), tmp_path_factory.mktemp("log") / "log.npz")


def replayed(log: Path, size: int) -> LiveSource:
    return open_source(str(log), SourceOptions(arm(), speed=np.inf, size=size))


def test_a_replay_tells_the_same_in_whatever_pieces_it_is_handed_over(log: Path) -> None:
    results = []
    for size in (1, 7, 400, 100_000):
        watch, kept = watching(replayed(log, size))
        watch.run()
        assert sum(len(seen.batch) for seen in kept.seen) == 3000
        assert [event.kind for event in kept.events] == ["thousand"] * 6
        assert kept.reports[-1].parts["patient"] == kept.reports[-1].parts["summed"]
        results.append((np.vstack([seen.r for seen in kept.seen]), kept.reports[-1].parts["summed"]["total"]))
    for r, total in results[1:]:
        assert np.array_equal(r, results[0][0])
        assert total == results[0][1]
    assert np.abs(results[0][0][:1400]).max() < 0.05  # the model knows its own torques, but for the sampling
    assert np.abs(results[0][0][1600, -1]) == pytest.approx(2.0, abs=0.1)


def test_a_replay_that_is_stopped_anywhere_goes_on_as_if_it_had_not_been(log: Path, tmp_path: Path) -> None:
    watch, kept = watching(replayed(log, 50))
    watch.run()
    whole = kept.reports[-1]
    turns = random.Random(3)
    told: list[Seen] = []
    for _ in range(100):
        watch, kept = watching(replayed(log, 50), tmp_path / "state")
        left = turns.randint(0, 12)
        ended = False
        while left and not ended:
            ended = not watch.turn()
            left -= 1
        assert watch.snapshots is not None
        watch.snapshots.write(watch.state())
        watch.snapshots.close()
        watch.outputs.close()
        told += kept.seen
        if ended:
            break
    assert ended
    assert sum(len(seen.batch) for seen in told) == 3000
    assert watch.report().parts == whole.parts
    assert watch.counts() == dict(whole.counts)


def test_a_state_is_whole_at_every_moment_and_of_one_model_and_one_watch(log: Path, tmp_path: Path) -> None:
    place = tmp_path / "state"
    watch, _ = watching(replayed(log, 500), place)
    for _ in range(3):
        watch.turn()
        assert watch.snapshots is not None
        watch.snapshots.write(watch.state())
    with pytest.raises(SnapshotError, match="in use by another watch"):
        Snapshots(place, model())
    watch.snapshots.close()
    (place / "state.npz").write_bytes((place / "state.npz").read_bytes()[:300])  # a disk that lost power
    again, _ = watching(replayed(log, 500), place)
    assert again.report().parts["summed"]["count"] == 1000  # the one before
    assert again.snapshots is not None
    again.snapshots.close()
    other = replace(model(), theta=1.01 * model().theta)
    with pytest.raises(SnapshotError, match="of another model"):
        Snapshots(place, other).read()


COMMAND = [sys.executable, "-m", "steelyard", "watch", arm().name]


def started(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_killed_at_random_moments_it_goes_on_and_ends_with_the_same(log: Path, tmp_path: Path) -> None:
    """Really killed (SIGKILL), in the middle of whatever it is doing, snapshots among it."""
    common = [str(log), "--every", "0.5", "--snapshot", "0.1", "--to", f"jsonl={tmp_path / 'told.jsonl'}"]
    subprocess.run([*COMMAND, str(log), "--speed", "max", "--to", f"jsonl={tmp_path / 'whole.jsonl'}"], check=True)
    expected = json.loads((tmp_path / "whole.jsonl").read_text().splitlines()[-1])
    when = random.Random(5)
    for _ in range(3):
        process = started(*common, "--speed", "2", "--state", str(tmp_path / "state"))
        wait_for(lambda: (tmp_path / "state" / "state.npz").exists())
        time.sleep(when.uniform(0.05, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = started(*common, "--speed", "max", "--state", str(tmp_path / "state"))
    assert done.wait(60) == 0
    last = json.loads((tmp_path / "told.jsonl").read_text().splitlines()[-1])
    assert last["counts"] == expected["counts"]
    assert last["contact"] == expected["contact"]
    assert last["t"] == expected["t"]


def wait_for(true: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


def test_a_live_watch_survives_every_kind_of_sender_and_tells_of_each(tmp_path: Path) -> None:
    source = open_source("tcp:0", SourceOptions(arm()))
    watch, kept = watching(source, tmp_path / "state", times=WatchTimes(0.05, 0.1))
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
        good.sendall(b"".join(lines[1000:]))  # ten times the rate and more: as fast as the socket takes it
        wait_for(lambda: watch.clock.tally.counts.get("samples", 0) == 4000)
        wait_for(lambda: watch.source.stale)
        wait_for(lambda: any(report.stale for report in kept.reports))
        good.sendall(json_lines(samples(1, start=5.0))[0])
        wait_for(lambda: any(event.kind == "fresh" for event in kept.events))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    counts = kept.reports[-1].counts
    for kind in ("not understood", "other joints", "too long", "half a line", "not finite", "impossible", "stale"):
        assert counts[kind] >= 1, kind
    told = [event.message for event in kept.events if event.kind == "source"]
    assert len(told) == len(set(told)) <= 8  # one sentence each
    assert np.array_equal(np.concatenate([seen.batch.t for seen in kept.seen])[:4000], rows[:, 0])
    assert kept.reports[-1].parts["patient"] == kept.reports[-1].parts["summed"]
    again, _ = watching(open_source("tcp:0", SourceOptions(arm())), tmp_path / "state")
    assert again.report().parts == kept.reports[-1].parts
    assert again.snapshots is not None
    again.snapshots.close()
    assert all(event.alarm for event in kept.events if event.kind == "stale")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere samples are seen in the same process")
def test_samples_are_seen_in_a_process_of_their_own_that_lives_and_dies_with_the_watch(tmp_path: Path) -> None:
    place, told = tmp_path / "robot", tmp_path / "told.jsonl"
    common = [f"unix:{place}", "--every", "0.05", "--snapshot", "0.1", "--state", str(tmp_path / "state")]
    common += ["--parts", "contact,load", "--to", f"jsonl={told}"]
    lines = json_lines(samples(2000))

    def connected() -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        wait_for(lambda: place.exists() and made.connect_ex(str(place)) == 0)
        return made

    def last() -> dict[str, Any]:
        found = [json.loads(text) for text in told.read_text().splitlines()] if told.exists() else []
        reports = [line for line in found if "counts" in line]
        return reports[-1] if reports else {"counts": {}}

    def kept() -> int:
        try:
            with np.load(tmp_path / "state" / "state.npz") as state:
                return int(json.loads(str(state["counts"]))["samples"])
        except (OSError, KeyError):
            return 0

    def twins(process: subprocess.Popen[str]) -> list[int]:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    process = started(*common)
    with connected() as sender:
        (twin,) = twins(process)
        sender.sendall(b"".join(lines[:500]) + b"nonsense\n" + b"".join(lines[500:1000]))
        wait_for(lambda: last()["counts"].get("samples") == 1000)
        assert last()["counts"]["not understood"] == 1
        assert last()["load"]["carries"] is None  # a second is too short to say; but the part has seen it
        wait_for(lambda: kept() == 1000)
    process.kill()
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{twin}").exists())
    process = started(*common)
    with connected() as sender:
        sender.sendall(b"".join(lines[1000:1500]))
        wait_for(lambda: kept() == 1500)
        os.kill(*twins(process), signal.SIGKILL)
        wait_for(lambda: "has died" in told.read_text())
    with connected() as sender:  # to the process that is left
        sender.sendall(b"".join(lines[1500:]))
        wait_for(lambda: last()["counts"].get("samples") == 2000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert last()["t"] == pytest.approx(1.999)


def test_a_part_and_an_output_that_fail_do_not_take_the_others_with_them(log: Path) -> None:
    class Broken(Summed):
        def take(self, seen: Seen) -> None:
            raise RuntimeError("a mistake of ours")

    class Full(Kept):
        def told(self, report: WatchReport) -> None:
            raise OSError(28, "No space left on device")

    watch, kept = watching(replayed(log, 100))
    watch.parts["broken"] = Broken(WatchSetup(model()))
    full = Full()
    watch.outputs.members.append(full)
    watch.run()
    assert kept.reports[-1].parts["summed"]["count"] == 3000
    assert [event.message for event in kept.events if event.kind == "failed"] == [
        "The part 'broken' has failed (RuntimeError: a mistake of ours); the watch goes on without it."
    ]
    assert watch.outputs.members == [kept]
    assert any("No space left" in event.message for event in kept.events)


def test_memory_is_flat() -> None:
    """A stream with every fault, for as long as eighty seconds at 1 kHz: nothing is kept of it but counts."""

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

    watch, _ = watching(Endless("", SourceOptions(arm())))
    watch.outputs.members.clear()
    watch.parts.clear()  # each has its own test
    for _ in range(20):
        watch.turn()
    tracemalloc.start()
    for _ in range(20):
        watch.turn()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(40):
        watch.turn()
    later = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    watch.outputs.close()
    assert later - first < 200_000  # what a batch or two take; all samples would be 15 times as much
    assert watch.counts()["samples"] > 70_000


def test_what_is_typed_becomes_a_watch_or_a_sentence(log: Path, tmp_path: Path) -> None:
    assert rate_of("1/day") == pytest.approx(1 / 86400)
    assert rate_of("2/hours") == pytest.approx(2 / 3600)
    for wrong in ("0/day", "x", "1/fortnight", "-1/day"):
        with pytest.raises(SteelyardError, match="is no rate"):
            rate_of(wrong)
    watch, told = make_watch(arm().name, [str(log), str(log)], WatchSettings(speed=np.inf))
    watch.run()
    assert told == []
    assert watch.counts() == {"samples": 6000, "gap": 1}
    with pytest.raises(SteelyardError, match="is no log that exists"):
        make_watch(arm().name, [str(log), "tcp:5000"], WatchSettings())
    refused = subprocess.run([*COMMAND, "tcp:nowhere"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "names no port" in refused.stderr
