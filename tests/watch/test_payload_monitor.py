"""Payload of a simulated and a real arm."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_work import approximate_model

from steelyard import read_log
from steelyard.dynamics import Model
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import Mishap, WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.monitor_base import WatchEvent, WatchSetup
from steelyard.watch.monitors.payload import PayloadMonitor
from steelyard.watch.observer import MomentumObserver

DATA = os.environ.get("STEELYARD_DATA")
UR10E = Path(DATA or "") / "ur10e"
MAPPING = str(Path(__file__).parents[2] / "benchmarks" / "maps" / "ur10e.toml")
ARM = Model.nominal(builtin("rotradi"))


def batches(life: WorkingLife, sizes: Iterable[int] = (500,)) -> list[SampleBatch]:
    """Cut the first shift into batches of these sizes; the last size repeats."""
    columns = [np.concatenate(x) for x in zip(*life.blocks(0, 1, 30.0), strict=True)]
    out, start, wanted = [], 0, list(sizes)
    while start < len(columns[0]):
        stop = start + (wanted.pop(0) if len(wanted) > 1 else wanted[0])
        out.append(SampleBatch(*(x[start:stop] for x in columns), fresh=start == 0))
        start = stop
    return out


def run_monitor(monitor: PayloadMonitor, model: Model, samples: Iterable[SampleBatch]) -> list[WatchEvent]:
    observer = MomentumObserver(model)
    for batch in samples:
        monitor.update(observer.observe(batch))
    return monitor.fetch_events()


def life(seconds: float, *mishaps: Mishap) -> WorkingLife:
    return WorkingLife(ARM, mishaps, shift_s=seconds, begins_s=0.0)


def test_payload_is_detected_and_dated() -> None:
    monitor = PayloadMonitor(WatchSetup(ARM))
    events = run_monitor(
        monitor, ARM, batches(life(120.0, Mishap(30.0, 0, "tool", 1.5), Mishap(90.0, 0, "tool", -1.5)))
    )
    assert [e.kind for e in events] == ["load", "load over"]
    # The resolution is one second, and one second may contain both payloads.
    assert [e.t for e in events] == pytest.approx([30.0, 90.0], abs=2.1)
    assert all(e.detail["found_after_s"] < 15.0 for e in events)
    assert events[0].detail["mass"] == pytest.approx(1.5, abs=4.0 * events[0].detail["mass_error"])
    report = monitor.report()
    assert report["carries"] is False
    assert abs(report["mass"]) < 3.0 * report["mass_error"]
    assert report["mass_error"] < 0.15


def test_mass_uses_only_data_after_the_change() -> None:
    """Otherwise the mass would be between the old and the new payload."""
    model = approximate_model()
    monitor = PayloadMonitor(WatchSetup(model))
    events = run_monitor(monitor, model, batches(life(330.0, Mishap(300.0, 0, "tool", 2.0))))
    assert [e.kind for e in events] == ["load"]
    assert events[0].t == pytest.approx(300.0, abs=1.1)
    assert events[0].detail["mass"] == pytest.approx(2.0, abs=3.0 * events[0].detail["mass_error"])


def test_mass_and_centre_are_correct() -> None:
    monitor = PayloadMonitor(WatchSetup(ARM))
    run_monitor(monitor, ARM, batches(life(90.0, Mishap(30.0, 0, "tool", 2.0))))
    report = monitor.report()
    assert report["mass"] == pytest.approx(2.0, abs=3.0 * report["mass_error"])
    assert report["mass_error"] < 0.15
    deviation = np.array(report["center"]) - [0.02, 0.01, 0.08]
    assert np.all(np.abs(deviation) < 4.0 * np.array(report["center_error"]))


@pytest.mark.parametrize("seed", range(3))
def test_friction_and_sensor_changes_are_no_payload(seed: int) -> None:
    """Friction starts 30 % above the model and falls, gears ripple, a sensor jumps."""
    monitor = PayloadMonitor(WatchSetup(ARM))
    cold = WorkingLife(ARM, (Mishap(60.0, 1, "offset", 1.0),), shift_s=300.0, begins_s=0.0, warm_up_s=100.0, seed=seed)
    assert not run_monitor(monitor, ARM, batches(cold))
    report = monitor.report()
    assert report["carries"] is False
    assert abs(report["mass"]) < 3.5 * report["mass_error"]


def test_second_of_detection_counts_once() -> None:
    """The information (1/P) is that before the jump, with the joint's parameters reset, plus each second since."""
    monitor, observer = PayloadMonitor(WatchSetup(ARM)), MomentumObserver(ARM)
    found = 0
    for batch in batches(life(90.0, Mishap(30.0, 1, "offset", 10.0)), (100,)):
        monitor.update(observer.observe(batch))
        state = monitor.state()
        if batch.t[0] < 30.0 or state["carried_seen"][1] > 0.0:
            continue
        found += 1
        P, N, estimate = (state[f"carried_{name}"] for name in ("ring_P", "ring_N", "P"))
        reset, least = np.r_[13:16], np.inf
        for ago in range(2, 17):
            before = P[-ago].copy()
            before[reset] = before[:, reset] = 0.0
            before[reset, reset] = 1.0
            expected = np.linalg.inv(before) + N[-ago:].sum(axis=0)
            least = min(least, np.abs(expected @ estimate - np.eye(len(estimate))).max())
        assert least < 1e-6  # rounding; counting the last second twice would give at least 0.1
        break
    assert found


@settings(max_examples=5, deadline=None)
@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=6).map(lambda x: [*x, 700]))
def test_result_does_not_depend_on_batches_and_restarts(sizes: list[int]) -> None:
    work = life(60.0, Mishap(30.0, 0, "tool", 1.5))
    whole, restarted = PayloadMonitor(WatchSetup(ARM)), PayloadMonitor(WatchSetup(ARM))
    expected = run_monitor(whole, ARM, batches(work))
    observer, events = MomentumObserver(ARM), []
    for k, batch in enumerate(batches(work, sizes)):
        restarted.update(observer.observe(batch))
        events += restarted.fetch_events()
        if k == len(sizes):
            state = {name: np.array(x) for name, x in restarted.state().items()}
            restarted = PayloadMonitor(WatchSetup(ARM))
            restarted.restore(state)
    assert [e.kind for e in events] == [e.kind for e in expected]
    for name in ("mass", "mass_error"):
        assert restarted.report()[name] == pytest.approx(whole.report()[name], rel=1e-6)


@cache
def real_arm() -> Model:
    """UR10e model from runs of other days."""
    others = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_12-50sec_12harm")
    logs = [UR10E / f"ident__{name}.parquet" for name in others]
    return identify(UR10E / "robot.urdf", logs, mapping=MAPPING, check=False).model


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
@pytest.mark.parametrize("harmonics", [14, 15])
def test_mass_on_a_real_ur10e_within_fifteen_seconds(harmonics: int) -> None:
    """A stream of three logs: without, with and without payload."""
    model = real_arm()
    monitor, observer, begin = PayloadMonitor(WatchSetup(model)), MomentumObserver(model), 0.0
    for is_loaded in (False, True, False):
        name = f"ident__20_02_19_{harmonics}harm50sec{'Load' if is_loaded else ''}.parquet"
        log = read_log(UR10E / name, model.robot, MAPPING)
        t = log.t - log.t[0] + begin
        for k in range(0, len(t), 95):
            some = slice(k, k + 95)
            monitor.update(observer.observe(SampleBatch(t[some], log.q[some], log.dq[some], log.tau[some], k == 0)))
            report = monitor.report()
            if t[k] > begin + 15.0:
                assert report["carries"] is is_loaded
                assert report["mass"] == pytest.approx(2.805 if is_loaded else 0.0, abs=0.1)
        begin = t[-1] + 0.5
    assert [e.kind for e in monitor.fetch_events()] == ["load", "load over"]
