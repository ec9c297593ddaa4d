"""Whatever a sender does, samples that are samples arrive, the rest is counted, and the source lives on."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_cases import arm, csv_lines, json_lines, samples

from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.read import read_log
from steelyard.watch.lines import MOST_LINE, LineDecoder
from steelyard.watch.source import (
    LIVE_SOURCES,
    Lasting,
    LiveSource,
    SourceError,
    SourceLost,
    SourceOptions,
    host_and_port,
    open_source,
)
from steelyard.watch.tally import Tally

OPTIONS = SourceOptions(arm())


def decoded(data: bytes, mapping: str = "") -> tuple[Array, dict[str, int], list[str]]:
    tally = Tally()
    decoder = LineDecoder(SourceOptions(arm(), mapping), tally)
    rows = decoder.feed(data)
    decoder.end()
    return rows, tally.counts, tally.fetch()


@pytest.mark.parametrize("lines", [json_lines, csv_lines, lambda rows: json_lines(rows, joints=True)])
def test_lines_hold_what_was_sent_to_the_last_digit(lines: Any) -> None:
    rows = samples(50)
    found, counts, told = decoded(b"".join(lines(rows)))
    assert np.array_equal(found, rows)
    assert counts == {}
    assert told == []


def test_a_header_names_the_columns_and_a_mapping_says_their_units(tmp_path: Path) -> None:
    rows, n = samples(20), arm().dof
    mapping = tmp_path / "map.toml"
    mapping.write_text('[units]\ntime = "ms"\nposition = "deg"\n', encoding="utf-8")
    header = ",".join(["tau1", "tau2", "tau3", "t", "q1", "q2", "q3", "dq1", "dq2", "dq3", "motor_temp"])
    sent = np.column_stack([
        rows[:, 1 + 2 * n :], 1e3 * rows[:, 0], np.degrees(rows[:, 1 : 1 + n]), rows[:, 1 + n : 1 + 2 * n],
        np.full(20, np.nan),
    ])  # fmt: skip
    found, counts, _ = decoded(header.encode() + b"\n" + b"".join(csv_lines(sent)), str(mapping))
    assert counts == {}
    assert np.allclose(found, rows, rtol=1e-14, atol=1e-14)


def test_joints_may_come_in_another_order_with_others_among_them() -> None:
    rows, names = samples(5), list(arm().joint_names)
    sent = []
    for row in rows.tolist():
        words = {"time": row[0], "name": ["gripper", *reversed(names)]}
        for k, word in enumerate(("position", "velocity", "effort")):
            words[word] = [7.0, *reversed(row[1 + 3 * k : 4 + 3 * k])]
        sent.append(json.dumps(words))
    found, counts, _ = decoded("\n".join([*sent, ""]).encode())
    assert counts == {}
    assert np.array_equal(found, rows)


MANY = json.dumps({"t": 0.0, "q": [0.0] * 1_000_000, "dq": [0.0], "tau": [0.0]}).encode()
BAD = {
    "garbage": (bytes(range(11, 256)) * 4, "not understood"),
    "a text": (b"hello robot", "not understood"),
    "half a line": (json_lines(samples(1))[0][:40], "not understood"),
    "another shape": (b'{"t": 1, "q": 5, "dq": [1], "tau": {}}', "not understood"),
    "deeply nested": (b'{"t":' + b"[" * 30000 + b"]" * 30000 + b"}", "not understood"),
    "no velocities": (b'{"t": 1, "q": [1, 2, 3], "tau": [1, 2, 3]}', "not understood"),
    "other joints": (b'{"t":1,"joints":["a","b","c"],"q":[1,2,3],"dq":[1,2,3],"tau":[1,2,3]}', "other joints"),
    "too few joints": (b'{"t":1,"q":[1,2],"dq":[1,2],"tau":[1,2]}', "other joints"),
    "too few columns": (b"1,2,3,4", "other joints"),
    "a million joints": (MANY, "too long"),
    "beyond all floats": (b'{"t":1,"q":[1' + b"0" * 400 + b',2,3],"dq":[1,2,3],"tau":[1,2,3]}', "not understood"),
    "too many digits": (b'{"t":1,"q":[1' + b"0" * 5000 + b',2,3],"dq":[1,2,3],"tau":[1,2,3]}', "not understood"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_sample_is_told_once_and_counted_and_what_follows_is_understood(name: str) -> None:
    bad, kind = BAD[name]
    bad = bad.replace(b"\n", b"")
    rows = samples(4)
    good = json_lines(rows)
    found, counts, told = decoded(b"\n".join([good[0].strip(), bad, good[1].strip(), bad, good[2].strip(), good[3]]))
    assert np.array_equal(found, rows)
    assert counts == {kind: 2}
    (sentence,) = told
    assert sentence.endswith(".")
    assert len(sentence) < 320
    assert sentence.isprintable()


def test_nan_and_null_come_through_for_the_clock_to_count() -> None:
    found, counts, _ = decoded(
        b'{"t":1,"q":[NaN,2,3],"dq":[1,2,3],"tau":[1,2,3]}\n{"t":2,"q":[null,2,3],"dq":[1,2,3],"tau":[1,2,3]}\n'
    )
    assert counts == {}
    assert np.isnan(found[:, 1]).all()
    assert np.array_equal(found[:, 0], [1.0, 2.0])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_how_bytes_are_cut_on_their_way_makes_no_difference(data: st.DataObject) -> None:
    rows = samples(6)
    lines = json_lines(rows)
    for place in data.draw(st.lists(st.integers(0, 6), max_size=4)):
        lines.insert(place, data.draw(st.binary(max_size=40)).replace(b"{", b"") + b"\n")
    whole = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    tally = Tally()
    decoder = LineDecoder(OPTIONS, tally)
    pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
    found = np.vstack([decoder.feed(piece) for piece in pieces])
    once, counts, _ = decoded(whole)
    assert np.array_equal(found, once)
    assert tally.counts == counts


def test_a_line_that_never_ends_takes_no_memory() -> None:
    tally = Tally()
    decoder = LineDecoder(OPTIONS, tally)
    for _ in range(100):
        decoder.feed(b"[" * MOST_LINE)
        assert len(decoder._half) <= MOST_LINE
    rows = samples(1)
    assert np.array_equal(decoder.feed(b"\n" + json_lines(rows)[0]), rows)
    assert tally.counts == {"too long": 1}


# ---------------------------------------------------------------- sockets


@contextmanager
def opened(text: str) -> Iterator[Any]:
    source = open_source(text, OPTIONS)
    source.open()
    try:
        yield source
    finally:
        source.close()


def gathered(source: LiveSource, count: int, tries: int = 200) -> Array:
    out = [source.nothing()]
    for _ in range(tries):
        rows = source.read(0.05)
        if rows is None:
            break
        out.append(rows)
        if sum(map(len, out)) >= count:
            break
    return np.vstack(out)


def test_a_listener_is_on_this_machine_unless_told_otherwise() -> None:
    with opened("tcp:0") as source:
        assert source._server.getsockname()[0] == "127.0.0.1"
    with opened("udp:0") as source:
        assert source._socket.getsockname()[0] == "127.0.0.1"
    assert host_and_port("5000", "tcp") == ("127.0.0.1", 5000)
    assert host_and_port("robot:5000", "tcp") == ("robot", 5000)
    assert host_and_port("[::1]:5000", "tcp") == ("::1", 5000)
    assert host_and_port("", "rtde", 30004) == ("127.0.0.1", 30004)
    assert host_and_port("robot", "rtde", 30004) == ("robot", 30004)
    for wrong in ("", "robot", "5000000", "robot:x"):
        with pytest.raises(SourceError, match="names no port"):
            host_and_port(wrong, "tcp")


def test_senders_come_and_go_and_one_who_talks_nonsense_harms_nobody() -> None:
    rows = samples(300)
    lines = json_lines(rows)
    with opened("tcp:0") as source:
        rude = socket.create_connection(("127.0.0.1", source.port))
        kind = socket.create_connection(("127.0.0.1", source.port))
        found = [source.nothing()]
        for start in range(0, 200, 20):
            rude.sendall(os.urandom(3000) + b'\n{"t":1\n')
            kind.sendall(b"".join(lines[start : start + 20]))
            found.append(gathered(source, 20))
        kind.sendall(lines[200][:30])
        kind.close()
        assert len(gathered(source, 1, 5)) == 0
        again = socket.create_connection(("127.0.0.1", source.port))
        again.sendall(b"".join(lines[200:]))
        found.append(gathered(source, 100))
        assert np.array_equal(np.vstack(found), rows)
        assert source.tally.counts["half a line"] >= 1
        assert source.tally.counts["not understood"] >= 10
        assert source.tally.counts["senders"] == 3
        for connection in (rude, again):
            connection.close()


def test_more_senders_than_there_is_room_for_are_hung_up_on() -> None:
    with opened("tcp:0") as source, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(socket.create_connection(("127.0.0.1", source.port)))
            source.read(0.05)
        assert source.tally.counts["hung up on"] == 4
        assert len(source._senders) == 4


def test_datagrams_hold_one_or_more_lines() -> None:
    rows = samples(60)
    lines = csv_lines(rows)
    with opened("udp:0") as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for start in range(0, 60, 3):
            sender.sendto(b"".join(lines[start : start + 3]), ("127.0.0.1", source.port))
            sender.sendto(b"\x00\xff" * 100, ("127.0.0.1", source.port))
        assert np.array_equal(gathered(source, 60), rows)
        assert source.tally.counts == {"not understood": 20}


def test_a_unix_socket_is_for_its_user_alone_and_outlives_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "robot")
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(path)
    dead.close()  # what a killed process leaves behind
    rows = samples(10)
    with opened(f"unix:{path}") as source:
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0
        with pytest.raises(SourceError, match="cannot be had"), opened(f"unix:{path}"):
            pass
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sender:
            sender.connect(path)
            sender.sendall(b"".join(json_lines(rows)))
            assert np.array_equal(gathered(source, 10), rows)
    assert not os.path.exists(path)


# ---------------------------------------------------------------- lost and found


class Flaky(LiveSource):
    """A source that cannot be opened for a while, then speaks a few times, then dies."""

    silent_s = 3.0

    def __init__(self, fails: int) -> None:
        super().__init__("flaky", OPTIONS)
        self.fails, self.opened, self.said = fails, [], 0
        self.clock = 0.0

    def open(self) -> None:
        self.opened.append(self.clock)
        if len(self.opened) <= self.fails:
            raise SourceLost("nobody there")
        self.said = 0

    def read(self, wait_s: float) -> Array | None:
        self.clock += wait_s
        self.said += 1
        return samples(1) if self.said <= 3 else self.nothing()

    def close(self) -> None:
        pass


def test_a_source_that_dies_is_tried_again_later_and_later_and_told_stale() -> None:
    source = Flaky(8)

    def sleep(seconds: float) -> None:
        source.clock += seconds

    lasting = Lasting(source, stale_s=0.5, now=lambda: source.clock, sleep=sleep)
    while not source.said:
        assert len(lasting.read(0.1)) == (1 if source.said else 0)
    waits = np.diff(source.opened)
    assert np.allclose(waits, np.minimum(0.25 * 2.0 ** np.arange(8), 30.0), atol=0.11)
    assert not lasting.reopened
    assert not lasting.stale
    for _ in range(3):
        lasting.read(0.1)
    while lasting.connected:  # it stalls: after silent_s it is given up
        lasting.read(0.1)
    assert lasting.stale
    assert source.tally.counts["lost"] == 9
    lasting.read(0.1)
    while not lasting.connected:
        lasting.read(0.1)
    assert source.clock - source.opened[-1] < 0.4  # after it had spoken, the first pause is short again
    assert lasting.reopened


def test_a_server_that_goes_and_comes_back_is_found_again() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    lasting = Lasting(open_source(f"tcp-to:{port}", OPTIONS))
    rows = samples(40)

    def serve(some: Array) -> None:
        lasting.read(0.01)
        connection, _ = server.accept()
        connection.sendall(b"".join(json_lines(some)))
        got = [lasting.read(0.2) for _ in range(3)]
        assert np.array_equal(np.vstack(got), some)
        connection.close()

    serve(rows[:20])
    assert not lasting.reopened
    for _ in range(3):
        lasting.read(0.05)
    assert not lasting.connected
    while not lasting.connected:
        lasting.read(0.1)
    serve(rows[20:])
    assert lasting.reopened
    lasting.close()
    server.close()


# ---------------------------------------------------------------- logs


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows, n = samples(3000, 250.0), arm().dof
    path = tmp_path_factory.mktemp("log") / "log.npz"
    q, dq, tau = (rows[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))
    Log(arm().joint_names, rows[:, 0], q, dq, None, tau).save(path)
    return path


def played(source: LiveSource) -> Array:
    source.open()
    out = [source.nothing()]
    while (rows := source.read(0.01)) is not None:
        out.append(rows)
    return np.vstack(out)


@pytest.mark.parametrize("size", [1, 500, 100_000])
def test_a_replayed_log_is_the_log(recorded: Path, size: int) -> None:
    log = read_log(recorded, arm())
    found = played(open_source(str(recorded), SourceOptions(arm(), speed=np.inf, size=size)))
    assert np.array_equal(found, np.column_stack([log.t, log.q, log.dq, log.tau]))


def test_a_log_is_replayed_at_its_own_speed_and_at_others(recorded: Path) -> None:
    source = open_source(str(recorded), SourceOptions(arm(), speed=200.0))
    before = time.perf_counter()
    assert len(played(source)) == 3000
    assert time.perf_counter() - before >= (3000 - 1) / 250.0 / 200.0


def test_a_replay_goes_on_where_it_was(recorded: Path) -> None:
    options = SourceOptions(arm(), speed=np.inf, size=70)
    two = f"{recorded}\n{recorded}"
    whole = played(open_source(two, options))
    assert np.all(np.diff(whole[:, 0]) > 0.0)
    first = open_source(two, options)
    first.open()
    for _ in range(55):
        first.read(0.0)
    second = open_source(two, options)
    assert second.restore(first.state())
    assert np.array_equal(played(second), whole[int(first.state()["samples"]) :])


def test_every_source_says_what_it_is() -> None:
    for name, kind in LIVE_SOURCES.items():
        assert kind.description, name
        assert kind.example, name
    with pytest.raises(SourceError, match="tcp:PORT"):
        open_source("nowhere.csv", OPTIONS)
