"""A snapshot that is damaged, or that belongs to another watch: one sentence, no traceback, and nothing is lost."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_cases import arm, model, samples
from test_watch import saved

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import check_arrays
from steelyard.ground.arrays import Array
from steelyard.watch.clock import SampleClock, plausible_bounds
from steelyard.watch.loop import RobotWatch
from steelyard.watch.making import WatchSettings, make_watch
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.output import Outputs
from steelyard.watch.parts import WATCH_PARTS, PartState, WatchSetup
from steelyard.watch.snapshots import OtherWatchError, SnapshotError, Snapshots
from steelyard.watch.source import Lasting, SourceOptions, open_source

REMEDY = "begin anew with --fresh"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(samples(1500, 250.0), tmp_path_factory.mktemp("log") / "log.npz")


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> str:
    from steelyard.export.sidecar import model_to_sidecar
    from steelyard.export.urdf import model_to_urdf

    place = tmp_path_factory.mktemp("model") / "arm.urdf"
    model_to_urdf(model(), place)
    model_to_sidecar(model(), place.with_suffix(".steelyard.json"))
    return str(place)


def watched(robot: str, source: str, state: Path, **more: Any) -> RobotWatch:
    watch, _ = make_watch(robot, [source], WatchSettings(parts=["contact"], state=str(state), speed=np.inf, **more))
    return watch


def run(robot: str, source: str, state: Path, **more: Any) -> RobotWatch:
    watch = watched(robot, source, state, **more)
    watch.run()
    return watch


def test_a_state_of_another_source_is_refused_by_name_and_fresh_sets_it_aside(
    robot: str, log: Path, tmp_path: Path
) -> None:
    state, told = tmp_path / "state", tmp_path / "told.jsonl"
    live = watched(robot, "tcp:0", state)
    assert live.snapshots is not None
    live.snapshots.write(live.state())
    live.snapshots.close()
    kept = (state / "state.npz").read_bytes()
    with pytest.raises(OtherWatchError, match=rf"another source \('tcp:0', not 'a log'\).*{REMEDY}"):
        watched(robot, str(log), state, outputs=[f"jsonl={told}"])
    assert not told.exists()  # a refusal leaves nothing behind
    with pytest.raises(OtherWatchError, match="another source"):
        watched(robot, "tcp:1", state)
    with pytest.raises(OtherWatchError, match="another source"):
        watched(robot, "udp:0", state)
    assert (state / "state.npz").read_bytes() == kept
    run(robot, str(log), state, fresh=True)
    assert (state / "state-old.npz").read_bytes() == kept
    assert run(robot, str(log), state).counts()["samples"] == 1500


def test_a_state_that_was_written_before_sources_were_named_is_told_by_what_it_holds(
    robot: str, log: Path, tmp_path: Path
) -> None:
    """The first format has the mark of the model alone."""
    from steelyard.export.sidecar import load_model
    from steelyard.watch.snapshots import model_mark

    def as_before(source: str, state: Path) -> None:
        watch = watched(robot, source, state)
        assert watch.snapshots is not None
        arrays = {name: x for name, x in watch.state().items() if name != "source/last"}
        np.savez(state / "state.npz", **arrays, model=np.array(model_mark(load_model(robot))))
        watch.snapshots.close()

    as_before("tcp:0", tmp_path / "live")
    with pytest.raises(OtherWatchError, match=f"another source.*{REMEDY}"):
        watched(robot, str(log), tmp_path / "live")
    as_before(str(log), tmp_path / "replay")
    with pytest.raises(OtherWatchError, match=f"another source.*{REMEDY}"):
        watched(robot, "tcp:0", tmp_path / "replay")
    assert run(robot, str(log), tmp_path / "replay").counts()["samples"] == 1500


def test_a_state_of_another_log_is_refused_and_one_that_has_grown_goes_on(robot: str, tmp_path: Path) -> None:
    """Both logs are cut from one table: rows computed anew may differ in the last bit, once the engine is compiled."""
    state = tmp_path / "state"
    rows = samples(1500, 250.0)
    run(robot, str(saved(rows[:900], tmp_path / "short.npz")), state)
    assert run(robot, str(saved(rows, tmp_path / "long.npz")), state).counts()["samples"] == 1500
    other = rows.copy()
    other[:, 1] += 0.01
    for name, table in (("other.npz", other), ("cut.npz", rows[:700])):
        with pytest.raises(OtherWatchError, match=f"another log.*{name}.*{REMEDY}"):
            run(robot, str(saved(table, tmp_path / name)), state)


def test_a_state_of_another_robot_or_model_is_refused(robot: str, log: Path, tmp_path: Path) -> None:
    run(robot, str(log), tmp_path / "state")
    from dataclasses import replace

    heavier = replace(model(), theta=1.01 * model().theta)
    with pytest.raises(OtherWatchError, match="another model"):
        Snapshots(tmp_path / "state", heavier).read()
    other = replace(model(), robot=replace(arm(), name="elsewhere"))
    with pytest.raises(OtherWatchError, match="another robot"):
        Snapshots(tmp_path / "state", other).read()


def test_fresh_needs_a_state_to_set_aside(robot: str, log: Path) -> None:
    with pytest.raises(SteelyardError, match="--state"):
        make_watch(robot, [str(log)], WatchSettings(fresh=True))


# ---------------------------------------------------------------- damaged


def whole_watch(folder: Path) -> Callable[[], RobotWatch]:
    """Makes watches with all parts, which are made once and given a new state each time."""
    setup = WatchSetup(model(), options={"adapt": str(folder), "adapt_every_s": 1e9})
    parts = {name: made(setup) for name, made in WATCH_PARTS.items()}
    source = Lasting(open_source("-", SourceOptions(arm())))
    new: list[PartState] = []

    def make() -> RobotWatch:
        clock = SampleClock(plausible_bounds(arm()))
        watch = RobotWatch(source, clock, MomentumObserver(model()), {}, Outputs([], waits=True))
        watch.parts |= parts
        watch.aside._patient._threaded = False
        new.append(watch.state()) if not new else watch.go_on(new[0])
        return watch

    return make


def fed(watch: RobotWatch, rows: Array) -> None:
    for batch in watch.clock.take(rows):
        watch._take(batch)
    watch.report()


def damages(x: Any) -> Iterator[Any]:
    """What a hostile hand makes of one array of a snapshot; None: it is not there."""
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


def test_every_field_of_a_snapshot_may_be_absent_of_another_shape_or_kind_nan_or_huge(tmp_path: Path) -> None:
    """Refused in a sentence, or the watch goes on; a part that cannot use it is left out, with an event."""
    make = whole_watch(tmp_path / "adapted")
    watch = make()
    rows = samples(900, 100.0)
    fed(watch, rows[:700])
    state = watch.state()
    assert len(state) > 90
    snapshots = Snapshots(tmp_path / "state", model(), "stdin:")
    sentences: list[str] = []
    accepted = 0
    for name in state:
        for x in damages(state[name]):
            damaged = {key: value for key, value in state.items() if key != name} | ({} if x is None else {name: x})
            try:
                watch._go_on_from_file(damaged)
            except SnapshotError as error:
                sentences.append(str(error))
                continue
            accepted += 1
            if accepted % 10 == 0:  # and what was believed does no harm
                fed(watch, rows[700:])
                watch = make()
    assert len(sentences) > 900
    assert accepted < 0.2 * len(sentences)
    assert not any("\n" in sentence for sentence in sentences)
    # The whole way, through the file.
    del state["clock/clock"]
    snapshots.write(state)
    with pytest.raises(SnapshotError, match=rf"state\.npz.*clock.*missing.*{REMEDY}"):
        snapshots.read(make()._go_on_from_file)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"\x00" * 500, b"{}", json.dumps({"a": 1}).encode()],
    ids=["empty", "two bytes", "zeros", "a table", "json"],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.npz").write_bytes(content)
    with pytest.raises(SnapshotError, match=REMEDY):
        Snapshots(tmp_path, model()).read()


def test_an_archive_of_something_else_a_folder_and_a_link_to_nowhere_are_no_snapshots(tmp_path: Path) -> None:
    for number, make in enumerate((
        lambda path: np.savez(path, a=np.eye(3)),
        lambda path: np.savez(path, head=np.array("[" * 5000)),
        lambda path: np.savez(path, head=np.array("3")),
        lambda path: np.savez(path, head=np.arange(3.0)),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere"),
    )):  # fmt: skip
        place = tmp_path / str(number)
        place.mkdir()
        make(place / "state.npz")
        with pytest.raises(SnapshotError, match=REMEDY):
            Snapshots(place, model()).read()


def test_the_state_before_is_used_where_the_last_one_contradicts_itself(robot: str, log: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    run(robot, str(log), state)
    good = (state / "state.npz").read_bytes()
    with np.load(io.BytesIO(good)) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["observer/observer"] = arrays["observer/observer"][:3]
    (state / "state-before.npz").write_bytes(good)
    np.savez(state / "state.npz", **arrays)
    assert watched(robot, str(log), state).counts()["samples"] == 1500


# ---------------------------------------------------------------- what a watch itself has written


def test_no_state_that_a_watch_has_written_is_refused(tmp_path: Path) -> None:
    """At rest, in motion, in a contact, after gaps: also what is not known (NaN) and what holds for ever (inf)."""
    make = whole_watch(tmp_path / "adapted")
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
        fed(watch, rows)
        state = watch.state()
        fresh = make()
        fresh.check_state(state)
        watch = make()
        watch.go_on(state)
        begin = float(rows[-1, 0]) + float(rng.choice([0.01, 3.0, 4000.0]))


def test_the_states_of_a_month_are_those_that_the_rules_allow() -> None:
    from test_health_told import DAY_S, life, watch
    from worked import nearly

    from steelyard.watch.told.consistency import ConsistencyPart
    from steelyard.watch.told.health import HealthPart

    options = {"day_s": DAY_S, "first_days": 2.0}
    for made in (HealthPart, ConsistencyPart):
        part, new = (made(WatchSetup(nearly(), options=options)) for _ in range(2))
        work = life(shift_s=400.0)
        for days in range(4):
            watch([part], work, days + 1, 400.0)
            check_arrays(new.state(), part.state(), made.state_rules, "state", SnapshotError)


def test_log_and_state_agree_on_what_a_log_is(log: Path, tmp_path: Path) -> None:
    """The samples that were seen tell the log, not its name or place."""
    moved = tmp_path / "elsewhere.npz"
    moved.write_bytes(log.read_bytes())
    first, second = (open_source(str(path), SourceOptions(arm(), speed=np.inf)) for path in (log, moved))
    first.open()
    first.read(0.0)
    assert second.restore(first.state())
