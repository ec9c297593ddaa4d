"""A simulated month of days that are a twelfth as long: what happens to the robot is found, and nothing else."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from worked import nearly

from steelyard.dynamics import Model
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import Mishap, WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.drives import friction_at
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.parts import WatchEvent, WatchPart, WatchSetup
from steelyard.watch.told.consistency import ConsistencyPart
from steelyard.watch.told.health import HealthPart

ARM = Model.nominal(builtin("rotradi"))
FRICTION = friction_at(ARM, np.full(3, 0.75))
DAY_S, SHIFT_S = 7200.0, 900.0


def life(*mishaps: Mishap, **more: float) -> WorkingLife:
    given = {"rate_hz": 25.0, "shift_s": SHIFT_S, "day_s": DAY_S, "begins_s": 0.0, "warm_up_s": 200.0, **more}
    return WorkingLife(ARM, mishaps, **given)


def watch(parts: list[WatchPart], work: WorkingLife, days: int, block_s: float = 60.0) -> list[list[WatchEvent]]:
    model = parts[0].setup.model
    observer, told = MomentumObserver(model), [[] for _ in parts]
    for day in range(days):
        for k, (t, q, dq, tau) in enumerate(work.blocks(day, 1, block_s)):
            seen = observer.take(SampleBatch(t, q, dq, tau, fresh=k == 0))
            for part, events in zip(parts, told, strict=True):
                part.take(seen)
                events += part.fetch_events()
    return told


@cache
def month() -> tuple[HealthPart, list[WatchEvent], tuple[float, ...]]:
    """Wear from the tenth day on, 5 % a week for the days are short; an offset on the fifteenth."""
    wear, jump = 9.1 * DAY_S, 14.1 * DAY_S
    setup = WatchSetup(nearly(), options={"day_s": DAY_S})
    part = HealthPart(setup)
    mishaps = Mishap(wear, 1, "wear", 0.05), Mishap(jump, 2, "offset", 0.3 * float(FRICTION[2]))
    return part, watch([part], life(*mishaps), 22)[0], (wear, jump)


def test_wear_and_a_jump_are_found_with_their_dates_and_nothing_else() -> None:
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


def test_friction_against_the_model_is_told_and_how_it_falls_with_warmth() -> None:
    part, _, _ = month()
    told = part.telling()
    assert told["compares"] is True
    # Friction falls by 0.3 of itself from the coldest start on; the model's is within 3 % of the true one.
    assert told["warm_up"] == pytest.approx([0.3] * 3, abs=0.12)
    assert all(len(told[name]) == 3 for name in ("friction", "viscous", "coulomb", "offset", "gain", "friction_error"))


def test_mornings_cold_and_warm_are_no_alarm() -> None:
    setup = WatchSetup(nearly(2), options={"day_s": DAY_S})
    assert watch([HealthPart(setup)], life(seed=4, weather=0.8), 12)[0] == []


@pytest.mark.parametrize(
    ("mishap", "cause", "joint"),
    [
        (Mishap(3900.0, 0, "tool", 2.0), "load", ""),
        (Mishap(3900.0, 1, "gain", 0.15), "gain", "q2"),
        (Mishap(3900.0, 2, "offset", 3.0 * float(FRICTION[2])), "sensor", "q3"),
    ],
)
def test_the_model_is_no_longer_true_and_why(mishap: Mishap, cause: str, joint: str) -> None:
    part = ConsistencyPart(WatchSetup(nearly()))
    events = watch([part], life(mishap, shift_s=4500.0, cold=0.1), 1)[0]
    assert len(events) == 1
    assert events[0].t == pytest.approx(mishap.t, abs=120.0)  # rounds of a minute
    assert (events[0].detail["cause"], events[0].detail["cause_joint"]) == (cause, joint)
    assert events[0].detail["share"] > 0.5
    told = part.telling()
    assert told["true"] is False
    assert told["cause"] == cause


def test_a_zero_that_has_moved_is_kinematics() -> None:
    work, part = life(shift_s=4500.0, cold=0.1), ConsistencyPart(WatchSetup(nearly()))
    observer, events = MomentumObserver(nearly()), []
    for k, (t, q, dq, tau) in enumerate(work.blocks(0, 1)):
        moved = q + np.array([0.0, 0.06, 0.0]) * (t[0] > 3900.0)
        part.take(observer.take(SampleBatch(t, moved, dq, tau, fresh=k in (0, 65))))
        events += part.fetch_events()
    assert [e.detail["cause"] for e in events] == ["kinematics"]
    assert events[0].detail["cause_joint"] == "q2"


@pytest.mark.parametrize("made", [HealthPart, ConsistencyPart])
def test_batches_and_restarts_make_no_difference(made: type[WatchPart]) -> None:
    options = {"day_s": DAY_S, "first_days": 2.0}
    whole, parts = made(WatchSetup(nearly(), options=options)), made(WatchSetup(nearly(), options=options))
    work = life(shift_s=400.0)
    watch([whole], work, 4, 400.0)
    observer = MomentumObserver(parts.setup.model)
    for day in range(4):
        for k, (t, q, dq, tau) in enumerate(work.blocks(day, 1, 400.0)):
            edges = [0, 1, 40, 41, 3000, len(t)]
            for a, b in pairwise(edges):
                parts.take(observer.take(SampleBatch(t[a:b], q[a:b], dq[a:b], tau[a:b], fresh=k == 0 and a == 0)))
        state = parts.state()
        parts = made(WatchSetup(nearly(), options=options))
        parts.restore(state)
    told, expected = parts.telling(), whole.telling()
    assert told.keys() == expected.keys()
    for name, value in expected.items():
        if value is not None:
            assert told[name] == pytest.approx(value, rel=1e-5, abs=1e-7), name
