"""Health and consistency over a simulated month with days of two hours: detection and false alarms."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from simulated_work import approximate_model

from steelyard.dynamics import Model
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import Mishap, WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.drives import friction_at
from steelyard.watch.monitor_base import Monitor, WatchEvent, WatchSetup
from steelyard.watch.monitors.consistency import ConsistencyMonitor
from steelyard.watch.monitors.health import HealthMonitor
from steelyard.watch.observer import MomentumObserver

ARM = Model.nominal(builtin("rotradi"))
FRICTION = friction_at(ARM, np.full(3, 0.75))
DAY_S, SHIFT_S = 7200.0, 900.0


def life(*mishaps: Mishap, **more: float) -> WorkingLife:
    options = {"rate_hz": 25.0, "shift_s": SHIFT_S, "day_s": DAY_S, "begins_s": 0.0, "warm_up_s": 200.0, **more}
    return WorkingLife(ARM, mishaps, **options)


def watch(monitors: list[Monitor], work: WorkingLife, days: int, block_s: float = 60.0) -> list[list[WatchEvent]]:
    model = monitors[0].setup.model
    observer, found = MomentumObserver(model), [[] for _ in monitors]
    for day in range(days):
        for k, (t, q, dq, tau) in enumerate(work.blocks(day, 1, block_s)):
            batch = observer.observe(SampleBatch(t, q, dq, tau, fresh=k == 0))
            for monitor, events in zip(monitors, found, strict=True):
                monitor.update(batch)
                events += monitor.fetch_events()
    return found


@cache
def month() -> tuple[HealthMonitor, list[WatchEvent], tuple[float, ...]]:
    """Wear of 5 % a week from the tenth day on, and an offset on the fifteenth."""
    wear, jump = 9.1 * DAY_S, 14.1 * DAY_S
    setup = WatchSetup(approximate_model(), options={"day_s": DAY_S})
    monitor = HealthMonitor(setup)
    mishaps = Mishap(wear, 1, "wear", 0.05), Mishap(jump, 2, "offset", 0.3 * float(FRICTION[2]))
    return monitor, watch([monitor], life(*mishaps), 22)[0], (wear, jump)


def test_wear_and_jump_are_detected_and_dated() -> None:
    _, events, (wear, jump) = month()
    assert {(e.detail["joint"], e.detail["what"]) for e in events} <= {("q2", "friction"), ("q3", "offset")}
    jumped = [e for e in events if e.detail["what"] == "offset"]
    assert len(jumped) == 1
    assert jumped[0].t == pytest.approx(jump, abs=60.0)  # six rounds
    assert jumped[0].detail["size"] == pytest.approx(0.3 * FRICTION[2], abs=4.0 * jumped[0].detail["error"])
    worn = [e for e in events if e.detail["what"] == "friction"]
    assert worn
    assert wear - 2.0 * DAY_S < worn[0].t < wear + 7.0 * DAY_S
    assert worn[0].detail["relative"] > 0.01
    assert all(e.alarm for e in events)


def test_report_has_friction_and_warm_up() -> None:
    monitor, _, _ = month()
    report = monitor.report()
    assert report["compares"] is True
    # Friction falls by 30 % from a cold start; the friction of the model is correct to 3 %.
    assert report["warm_up"] == pytest.approx([0.3] * 3, abs=0.12)
    assert all(
        len(report[name]) == 3 for name in ("friction", "viscous", "coulomb", "offset", "gain", "friction_error")
    )


def test_temperature_causes_no_alarm() -> None:
    setup = WatchSetup(approximate_model(2), options={"day_s": DAY_S})
    assert watch([HealthMonitor(setup)], life(seed=4, weather=0.8), 12)[0] == []


@pytest.mark.parametrize(
    ("mishap", "cause", "joint"),
    [
        (Mishap(3900.0, 0, "tool", 2.0), "load", ""),
        (Mishap(3900.0, 1, "gain", 0.15), "gain", "q2"),
        (Mishap(3900.0, 2, "offset", 3.0 * float(FRICTION[2])), "sensor", "q3"),
    ],
)
def test_model_change_is_detected_with_its_cause(mishap: Mishap, cause: str, joint: str) -> None:
    monitor = ConsistencyMonitor(WatchSetup(approximate_model()))
    events = watch([monitor], life(mishap, shift_s=4500.0, cold=0.1), 1)[0]
    assert len(events) == 1
    assert events[0].t == pytest.approx(mishap.t, abs=120.0)  # rounds of a minute
    assert (events[0].detail["cause"], events[0].detail["cause_joint"]) == (cause, joint)
    assert events[0].detail["share"] > 0.5
    report = monitor.report()
    assert report["true"] is False
    assert report["cause"] == cause


def test_joint_zero_error_is_detected() -> None:
    work, monitor = life(shift_s=4500.0, cold=0.1), ConsistencyMonitor(WatchSetup(approximate_model()))
    observer, events = MomentumObserver(approximate_model()), []
    for k, (t, q, dq, tau) in enumerate(work.blocks(0, 1)):
        moved = q + np.array([0.0, 0.06, 0.0]) * (t[0] > 3900.0)
        monitor.update(observer.observe(SampleBatch(t, moved, dq, tau, fresh=k in (0, 65))))
        events += monitor.fetch_events()
    assert [e.detail["cause"] for e in events] == ["kinematics"]
    assert events[0].detail["cause_joint"] == "q2"


@pytest.mark.parametrize("cls", [HealthMonitor, ConsistencyMonitor])
def test_result_does_not_depend_on_batches_and_restarts(cls: type[Monitor]) -> None:
    options = {"day_s": DAY_S, "first_days": 2.0}
    setup = WatchSetup(approximate_model(), options=options)
    whole, restarted = cls(setup), cls(WatchSetup(approximate_model(), options=options))
    work = life(shift_s=400.0)
    watch([whole], work, 4, 400.0)
    observer = MomentumObserver(restarted.setup.model)
    for day in range(4):
        for k, (t, q, dq, tau) in enumerate(work.blocks(day, 1, 400.0)):
            edges = [0, 1, 40, 41, 3000, len(t)]
            for a, b in pairwise(edges):
                restarted.update(
                    observer.observe(SampleBatch(t[a:b], q[a:b], dq[a:b], tau[a:b], fresh=k == 0 and a == 0))
                )
        state = restarted.state()
        restarted = cls(WatchSetup(approximate_model(), options=options))
        restarted.restore(state)
    report, expected = restarted.report(), whole.report()
    assert report.keys() == expected.keys()
    for name, value in expected.items():
        if value is not None:
            assert report[name] == pytest.approx(value, rel=1e-5, abs=1e-7), name
