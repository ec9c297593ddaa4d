"""What a simulated arm carries, and what a real one did."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worked import nearly

from steelyard import read_log
from steelyard.dynamics import Model
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import Mishap, WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.parts import WatchEvent, WatchSetup
from steelyard.watch.told.load import LoadPart

DATA = os.environ.get("STEELYARD_DATA")
UR10E = Path(DATA or "") / "ur10e"
MAPPING = str(Path(__file__).parents[2] / "benchmarks" / "maps" / "ur10e.toml")
ARM = Model.nominal(builtin("rotradi"))


def batches(life: WorkingLife, sizes: Iterable[int] = (500,)) -> list[SampleBatch]:
    """The first shift of a life, cut into batches of these sizes, the last of them again and again."""
    columns = [np.concatenate(x) for x in zip(*life.blocks(0, 1, 30.0), strict=True)]
    out, start, wanted = [], 0, list(sizes)
    while start < len(columns[0]):
        stop = start + (wanted.pop(0) if len(wanted) > 1 else wanted[0])
        out.append(SampleBatch(*(x[start:stop] for x in columns), fresh=start == 0))
        start = stop
    return out


def watched(part: LoadPart, model: Model, given: Iterable[SampleBatch]) -> list[WatchEvent]:
    observer = MomentumObserver(model)
    for batch in given:
        part.take(observer.take(batch))
    return part.fetch_events()


def life(seconds: float, *mishaps: Mishap) -> WorkingLife:
    return WorkingLife(ARM, mishaps, shift_s=seconds, begins_s=0.0)


def test_a_part_is_picked_up_and_put_down_again_and_each_is_dated() -> None:
    part = LoadPart(WatchSetup(ARM))
    events = watched(part, ARM, batches(life(120.0, Mishap(30.0, 0, "tool", 1.5), Mishap(90.0, 0, "tool", -1.5))))
    assert [e.kind for e in events] == ["load", "load over"]
    # A second is the grain of the looks, and one of them may hold both loads.
    assert [e.t for e in events] == pytest.approx([30.0, 90.0], abs=2.1)
    assert all(e.detail["found_after_s"] < 15.0 for e in events)
    assert events[0].detail["mass"] == pytest.approx(1.5, abs=4.0 * events[0].detail["mass_error"])
    told = part.telling()
    assert told["carries"] is False
    assert abs(told["mass"]) < 3.0 * told["mass_error"]
    assert told["mass_error"] < 0.15


def test_a_tool_is_weighed_from_the_moment_it_came() -> None:
    """Seconds before it hold another load; were they learnt from together, the mass would be between the two."""
    believed = nearly()
    part = LoadPart(WatchSetup(believed))
    events = watched(part, believed, batches(life(330.0, Mishap(300.0, 0, "tool", 2.0))))
    assert [e.kind for e in events] == ["load"]
    assert events[0].t == pytest.approx(300.0, abs=1.1)
    assert events[0].detail["mass"] == pytest.approx(2.0, abs=3.0 * events[0].detail["mass_error"])


def test_mass_and_centre_are_the_bodys() -> None:
    part = LoadPart(WatchSetup(ARM))
    watched(part, ARM, batches(life(90.0, Mishap(30.0, 0, "tool", 2.0))))
    told = part.telling()
    assert told["mass"] == pytest.approx(2.0, abs=3.0 * told["mass_error"])
    assert told["mass_error"] < 0.15
    deviation = np.array(told["center"]) - [0.02, 0.01, 0.08]
    assert np.all(np.abs(deviation) < 4.0 * np.array(told["center_error"]))


@pytest.mark.parametrize("seed", range(3))
def test_a_cold_gear_weighs_nothing(seed: int) -> None:
    """Friction that is 30 % above the model's and falls, teeth that ripple, a sensor that jumps: no load."""
    part = LoadPart(WatchSetup(ARM))
    cold = WorkingLife(ARM, (Mishap(60.0, 1, "offset", 1.0),), shift_s=300.0, begins_s=0.0, warm_up_s=100.0, seed=seed)
    assert not watched(part, ARM, batches(cold))
    told = part.telling()
    assert told["carries"] is False
    assert abs(told["mass"]) < 3.5 * told["mass_error"]


def test_the_second_in_which_a_jump_is_found_counts_once() -> None:
    """What is known (1/P) is what was known before the jump, the joint's own three forgotten, and each second since."""
    part, observer = LoadPart(WatchSetup(ARM)), MomentumObserver(ARM)
    found = 0
    for batch in batches(life(90.0, Mishap(30.0, 1, "offset", 10.0)), (100,)):
        part.take(observer.take(batch))
        state = part.state()
        if batch.t[0] < 30.0 or state["carried_seen"][1] > 0.0:
            continue
        found += 1
        P, N, known = (state[f"carried_{name}"] for name in ("ring_P", "ring_N", "P"))
        forgotten, least = np.r_[13:16], np.inf
        for ago in range(2, 17):
            before = P[-ago].copy()
            before[forgotten] = before[:, forgotten] = 0.0
            before[forgotten, forgotten] = 1.0
            expected = np.linalg.inv(before) + N[-ago:].sum(axis=0)
            least = min(least, np.abs(expected @ known - np.eye(len(known))).max())
        assert least < 1e-6  # of solving; the last second's own share would be a tenth or more
        break
    assert found


@settings(max_examples=5, deadline=None)
@given(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=6).map(lambda x: [*x, 700]))
def test_batches_and_restarts_make_no_difference(sizes: list[int]) -> None:
    work = life(60.0, Mishap(30.0, 0, "tool", 1.5))
    whole, parts = LoadPart(WatchSetup(ARM)), LoadPart(WatchSetup(ARM))
    expected = watched(whole, ARM, batches(work))
    observer, events = MomentumObserver(ARM), []
    for k, batch in enumerate(batches(work, sizes)):
        parts.take(observer.take(batch))
        events += parts.fetch_events()
        if k == len(sizes):
            state = {name: np.array(x) for name, x in parts.state().items()}
            parts = LoadPart(WatchSetup(ARM))
            parts.restore(state)
    assert [e.kind for e in events] == [e.kind for e in expected]
    for name in ("mass", "mass_error"):
        assert parts.telling()[name] == pytest.approx(whole.telling()[name], rel=1e-6)


@cache
def real_arm() -> Model:
    """A UR10e, from runs of other days than those that are watched."""
    others = ("20_02_10-30sec_12harm", "20_02_12-40sec_12harm", "20_02_12-50sec_12harm")
    logs = [UR10E / f"ident__{name}.parquet" for name in others]
    return identify(UR10E / "robot.urdf", logs, mapping=MAPPING, check=False).model


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA is not set: no logs of real robots here")
@pytest.mark.parametrize("harmonics", [14, 15])
def test_the_known_mass_on_a_real_ur10e_within_fifteen_seconds_and_back_to_none(harmonics: int) -> None:
    """Bare, loaded, and bare again, one after the other, as one stream."""
    model = real_arm()
    part, observer, begin = LoadPart(WatchSetup(model)), MomentumObserver(model), 0.0
    for loaded in (False, True, False):
        name = f"ident__20_02_19_{harmonics}harm50sec{'Load' if loaded else ''}.parquet"
        log = read_log(UR10E / name, model.robot, MAPPING)
        t = log.t - log.t[0] + begin
        for k in range(0, len(t), 95):
            some = slice(k, k + 95)
            part.take(observer.take(SampleBatch(t[some], log.q[some], log.dq[some], log.tau[some], k == 0)))
            told = part.telling()
            if t[k] > begin + 15.0:
                assert told["carries"] is loaded
                assert told["mass"] == pytest.approx(2.805 if loaded else 0.0, abs=0.1)
        begin = t[-1] + 0.5
    assert [e.kind for e in part.fetch_events()] == ["load", "load over"]
