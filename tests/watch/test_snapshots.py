"""Damaged and foreign snapshots are refused with one sentence, and no file is lost."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_samples import arm, model, samples
from test_watch import save_log

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import check_arrays
from steelyard.ground.arrays import Array
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.live_source import ReconnectingSource, SourceOptions, open_source
from steelyard.watch.loop import RobotWatch
from steelyard.watch.monitor_base import MONITORS, StateArrays, WatchSetup
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs
from steelyard.watch.settings import WatchSettings, make_watch
from steelyard.watch.snapshots import ForeignSnapshotError, SnapshotError, Snapshots

REMEDY = "start from scratch with --fresh"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_log(samples(1500, 250.0), tmp_path_factory.mktemp("log") / "log.npz")


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> str:
    from steelyard.export.sidecar import model_to_sidecar
    from steelyard.export.urdf import model_to_urdf

    path = tmp_path_factory.mktemp("model") / "arm.urdf"
    model_to_urdf(model(), path)
    model_to_sidecar(model(), path.with_suffix(".steelyard.json"))
    return str(path)


def start(robot: str, source: str, state: Path, **more: Any) -> RobotWatch:
    watch, _ = make_watch(robot, [source], WatchSettings(monitors=["contact"], state=str(state), speed=np.inf, **more))
    return watch


def run(robot: str, source: str, state: Path, **more: Any) -> RobotWatch:
    watch = start(robot, source, state, **more)
    watch.run()
    return watch


def test_state_of_another_source_is_refused_and_fresh_renames_it(robot: str, log: Path, tmp_path: Path) -> None:
    state, messages = tmp_path / "state", tmp_path / "told.jsonl"
    live = start(robot, "tcp:0", state)
    assert live.snapshots is not None
    live.snapshots.write(live.state())
    live.snapshots.close()
    content = (state / "state.npz").read_bytes()
    with pytest.raises(ForeignSnapshotError, match=rf"another source \('tcp:0', not 'a log'\).*{REMEDY}"):
        start(robot, str(log), state, outputs=[f"jsonl={messages}"])
    assert not messages.exists()  # a refusal creates no output
    with pytest.raises(ForeignSnapshotError, match="another source"):
        start(robot, "tcp:1", state)
    with pytest.raises(ForeignSnapshotError, match="another source"):
        start(robot, "udp:0", state)
    assert (state / "state.npz").read_bytes() == content
    run(robot, str(log), state, fresh=True)
    assert (state / "state-old.npz").read_bytes() == content
    assert run(robot, str(log), state).counts()["samples"] == 1500


def test_old_format_is_recognised_by_its_content(robot: str, log: Path, tmp_path: Path) -> None:
    """The first format has only the digest of the model."""
    from steelyard.export.sidecar import load_model
    from steelyard.watch.snapshots import model_digest

    def write_old_format(source: str, state: Path) -> None:
        watch = start(robot, source, state)
        assert watch.snapshots is not None
        arrays = {name: x for name, x in watch.state().items() if name != "source/last"}
        np.savez(state / "state.npz", **arrays, model=np.array(model_digest(load_model(robot))))
        watch.snapshots.close()

    write_old_format("tcp:0", tmp_path / "live")
    with pytest.raises(ForeignSnapshotError, match=f"another source.*{REMEDY}"):
        start(robot, str(log), tmp_path / "live")
    write_old_format(str(log), tmp_path / "replay")
    with pytest.raises(ForeignSnapshotError, match=f"another source.*{REMEDY}"):
        start(robot, "tcp:0", tmp_path / "replay")
    assert run(robot, str(log), tmp_path / "replay").counts()["samples"] == 1500


def test_state_of_another_log_is_refused(robot: str, tmp_path: Path) -> None:
    """Both logs are cut from one table, since recomputed rows may differ in the last bit after compilation."""
    state = tmp_path / "state"
    rows = samples(1500, 250.0)
    run(robot, str(save_log(rows[:900], tmp_path / "short.npz")), state)
    assert run(robot, str(save_log(rows, tmp_path / "long.npz")), state).counts()["samples"] == 1500
    other = rows.copy()
    other[:, 1] += 0.01
    for name, table in (("other.npz", other), ("cut.npz", rows[:700])):
        with pytest.raises(ForeignSnapshotError, match=f"another log.*{name}.*{REMEDY}"):
            run(robot, str(save_log(table, tmp_path / name)), state)


def test_state_of_another_robot_or_model_is_refused(robot: str, log: Path, tmp_path: Path) -> None:
    run(robot, str(log), tmp_path / "state")
    from dataclasses import replace

    heavier = replace(model(), theta=1.01 * model().theta)
    with pytest.raises(ForeignSnapshotError, match="another model"):
        Snapshots(tmp_path / "state", heavier).read()
    other = replace(model(), robot=replace(arm(), name="elsewhere"))
    with pytest.raises(ForeignSnapshotError, match="another robot"):
        Snapshots(tmp_path / "state", other).read()


def test_fresh_needs_a_state_folder(robot: str, log: Path) -> None:
    with pytest.raises(SteelyardError, match="--state"):
        make_watch(robot, [str(log)], WatchSettings(fresh=True))


# ---------------------------------------------------------------- damaged


def watch_maker(folder: Path) -> Callable[[], RobotWatch]:
    """Return a function that resets one set of monitors and makes a watch of them."""
    setup = WatchSetup(model(), options={"adapt": str(folder), "adapt_every_s": 1e9})
    monitors = {name: cls(setup) for name, cls in MONITORS.items()}
    source = ReconnectingSource(open_source("-", SourceOptions(arm())))
    new: list[StateArrays] = []

    def make() -> RobotWatch:
        clock = SampleClock(plausible_bounds(arm()))
        watch = RobotWatch(source, clock, MomentumObserver(model()), {}, Outputs([], waits=True))
        watch.monitors |= monitors
        watch.background._queue._threaded = False
        new.append(watch.state()) if not new else watch.restore(new[0])
        return watch

    return make


def feed(watch: RobotWatch, rows: Array) -> None:
    for batch in watch.clock.add(rows):
        watch._process(batch)
    watch.report()


def damaged_values(x: Any) -> Iterator[Any]:
    """Yield damaged versions of an array; None removes it."""
    yield None
    yield np.array("x" * 500)
    yield np.concatenate([np.atleast_1d(x)] * 2)
    yield np.atleast_1d(x)[:0]
    yield np.zeros(np.shape(x), dtype="c16")
    if x.dtype.kind in "fiub":
        for number in (np.nan, np.inf, 1e308, -1e140):
            yield np.full(np.shape(x), number)
            y = np.array(x, dtype=float)
            y.reshape(-1)[:1] = number
            yield y


def test_every_damaged_field_is_refused_or_harmless(tmp_path: Path) -> None:
    """A damaged state is refused with one sentence, or the watch continues; a failing monitor is removed."""
    make = watch_maker(tmp_path / "adapted")
    watch = make()
    rows = samples(900, 100.0)
    feed(watch, rows[:700])
    state = watch.state()
    assert len(state) > 90
    snapshots = Snapshots(tmp_path / "state", model(), "stdin:")
    refusals: list[str] = []
    accepted = 0
    for name in state:
        for x in damaged_values(state[name]):
            damaged = {key: value for key, value in state.items() if key != name} | ({} if x is None else {name: x})
            try:
                watch._restore_from_file(damaged)
            except SnapshotError as error:
                refusals.append(str(error))
                continue
            accepted += 1
            if accepted % 10 == 0:  # an accepted state is harmless
                feed(watch, rows[700:])
                watch = make()
    assert len(refusals) > 900
    assert accepted < 0.2 * len(refusals)
    assert not any("\n" in sentence for sentence in refusals)
    # The same through a file.
    del state["clock/clock"]
    snapshots.write(state)
    with pytest.raises(SnapshotError, match=rf"state\.npz.*clock.*missing.*{REMEDY}"):
        snapshots.read(make()._restore_from_file)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"\x00" * 500, b"{}", json.dumps({"a": 1}).encode()],
    ids=["empty", "two bytes", "zeros", "a table", "json"],
)
def test_invalid_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.npz").write_bytes(content)
    with pytest.raises(SnapshotError, match=REMEDY):
        Snapshots(tmp_path, model()).read()


def test_other_archives_folders_and_broken_links_are_refused(tmp_path: Path) -> None:
    for number, make in enumerate((
        lambda path: np.savez(path, a=np.eye(3)),
        lambda path: np.savez(path, head=np.array("[" * 5000)),
        lambda path: np.savez(path, head=np.array("3")),
        lambda path: np.savez(path, head=np.arange(3.0)),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere"),
    )):  # fmt: skip
        path = tmp_path / str(number)
        path.mkdir()
        make(path / "state.npz")
        with pytest.raises(SnapshotError, match=REMEDY):
            Snapshots(path, model()).read()


def test_previous_state_is_used_if_the_last_is_inconsistent(robot: str, log: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    run(robot, str(log), state)
    good = (state / "state.npz").read_bytes()
    with np.load(io.BytesIO(good)) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["observer/observer"] = arrays["observer/observer"][:3]
    (state / "state-before.npz").write_bytes(good)
    np.savez(state / "state.npz", **arrays)
    assert start(robot, str(log), state).counts()["samples"] == 1500


# ---------------------------------------------------------------- intact


def test_every_written_state_is_accepted(tmp_path: Path) -> None:
    """At rest, in motion, in a contact and after gaps, with NaN and inf for unknown values."""
    make = watch_maker(tmp_path / "adapted")
    watch, rng = make(), np.random.default_rng(0)
    watch.check_state(watch.state())
    begin = 0.0
    for k in range(12):
        rows = samples(int(rng.integers(1, 400)), 100.0, begin)
        if k % 3 == 1:
            rows[:, 4:7] = 0.0
            rows[:, 1:4] = rows[0, 1:4]
        if k % 4 == 2:
            rows[len(rows) // 2 :, -1] += 5.0
        feed(watch, rows)
        state = watch.state()
        fresh = make()
        fresh.check_state(state)
        watch = make()
        watch.restore(state)
        begin = float(rows[-1, 0]) + float(rng.choice([0.01, 3.0, 4000.0]))


def test_states_of_a_month_fit_the_rules() -> None:
    from simulated_work import approximate_model
    from test_health_monitor import DAY_S, life, watch

    from steelyard.watch.monitors.consistency import ConsistencyMonitor
    from steelyard.watch.monitors.health import HealthMonitor

    options = {"day_s": DAY_S, "first_days": 2.0}
    for cls in (HealthMonitor, ConsistencyMonitor):
        monitor, new = (cls(WatchSetup(approximate_model(), options=options)) for _ in range(2))
        work = life(shift_s=400.0)
        for days in range(4):
            watch([monitor], work, days + 1, 400.0)
            check_arrays(new.state(), monitor.state(), cls.state_rules, "state", SnapshotError)


def test_moved_log_is_recognised_by_its_samples(log: Path, tmp_path: Path) -> None:
    """A log is recognised by its samples, not by its name or folder."""
    moved = tmp_path / "elsewhere.npz"
    moved.write_bytes(log.read_bytes())
    first, second = (open_source(str(path), SourceOptions(arm(), speed=np.inf)) for path in (log, moved))
    first.open()
    first.read(0.0)
    assert second.restore(first.state())
