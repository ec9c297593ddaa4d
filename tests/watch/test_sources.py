"""Sources: valid samples arrive and faulty data are counted, whatever a sender does."""

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
from live_samples import arm, csv_lines, json_lines, samples

from steelyard.ground.arrays import Array
from steelyard.signals.log import Log
from steelyard.signals.read import read_log
from steelyard.watch.diagnostics import Diagnostics
from steelyard.watch.line_decoder import MAX_LINE, LineDecoder
from steelyard.watch.live_source import (
    LIVE_SOURCES,
    LiveSource,
    ReconnectingSource,
    SourceError,
    SourceLostError,
    SourceOptions,
    host_and_port,
    open_source,
)

OPTIONS = SourceOptions(arm())


def decode(data: bytes, mapping: str = "") -> tuple[Array, dict[str, int], list[str]]:
    diagnostics = Diagnostics()
    decoder = LineDecoder(SourceOptions(arm(), mapping), diagnostics)
    rows = decoder.feed(data)
    decoder.finish()
    return rows, diagnostics.counts, diagnostics.fetch()


@pytest.mark.parametrize("lines", [json_lines, csv_lines, lambda rows: json_lines(rows, joints=True)])
def test_decoded_lines_are_exact(lines: Any) -> None:
    rows = samples(50)
    decoded_rows, counts, messages = decode(b"".join(lines(rows)))
    assert np.array_equal(decoded_rows, rows)
    assert counts == {}
    assert messages == []


def test_csv_header_and_mapping(tmp_path: Path) -> None:
    rows, n = samples(20), arm().dof
    mapping = tmp_path / "map.toml"
    mapping.write_text('[units]\ntime = "ms"\nposition = "deg"\n', encoding="utf-8")
    header = ",".join(["tau1", "tau2", "tau3", "t", "q1", "q2", "q3", "dq1", "dq2", "dq3", "motor_temp"])
    lines_sent = np.column_stack([
        rows[:, 1 + 2 * n :], 1e3 * rows[:, 0], np.degrees(rows[:, 1 : 1 + n]), rows[:, 1 + n : 1 + 2 * n],
        np.full(20, np.nan),
    ])  # fmt: skip
    decoded_rows, counts, _ = decode(header.encode() + b"\n" + b"".join(csv_lines(lines_sent)), str(mapping))
    assert counts == {}
    assert np.allclose(decoded_rows, rows, rtol=1e-14, atol=1e-14)


def test_joints_in_another_order_with_additional_ones() -> None:
    rows, names = samples(5), list(arm().joint_names)
    lines_sent = []
    for row in rows.tolist():
        words = {"time": row[0], "name": ["gripper", *reversed(names)]}
        for k, word in enumerate(("position", "velocity", "effort")):
            words[word] = [7.0, *reversed(row[1 + 3 * k : 4 + 3 * k])]
        lines_sent.append(json.dumps(words))
    decoded_rows, counts, _ = decode("\n".join([*lines_sent, ""]).encode())
    assert counts == {}
    assert np.array_equal(decoded_rows, rows)


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
def test_invalid_line_is_counted_with_one_message(name: str) -> None:
    bad, kind = BAD[name]
    bad = bad.replace(b"\n", b"")
    rows = samples(4)
    good = json_lines(rows)
    decoded_rows, counts, messages = decode(
        b"\n".join([good[0].strip(), bad, good[1].strip(), bad, good[2].strip(), good[3]])
    )
    assert np.array_equal(decoded_rows, rows)
    assert counts == {kind: 2}
    (sentence,) = messages
    assert sentence.endswith(".")
    assert len(sentence) < 320
    assert sentence.isprintable()


def test_nan_and_null_are_passed_to_the_clock() -> None:
    decoded_rows, counts, _ = decode(
        b'{"t":1,"q":[NaN,2,3],"dq":[1,2,3],"tau":[1,2,3]}\n{"t":2,"q":[null,2,3],"dq":[1,2,3],"tau":[1,2,3]}\n'
    )
    assert counts == {}
    assert np.isnan(decoded_rows[:, 1]).all()
    assert np.array_equal(decoded_rows[:, 0], [1.0, 2.0])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_result_does_not_depend_on_the_pieces(data: st.DataObject) -> None:
    rows = samples(6).round(9)  # the last digits change when the evaluator compiles
    lines = json_lines(rows)
    for place in data.draw(st.lists(st.integers(0, 6), max_size=4)):
        lines.insert(place, data.draw(st.binary(max_size=40)).replace(b"{", b"") + b"\n")
    whole = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    diagnostics = Diagnostics()
    decoder = LineDecoder(OPTIONS, diagnostics)
    pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
    decoded_rows = np.vstack([decoder.feed(piece) for piece in pieces])
    once, counts, _ = decode(whole)
    assert np.array_equal(decoded_rows, once)
    assert diagnostics.counts == counts


def test_endless_line_takes_no_memory() -> None:
    diagnostics = Diagnostics()
    decoder = LineDecoder(OPTIONS, diagnostics)
    for _ in range(100):
        decoder.feed(b"[" * MAX_LINE)
        assert len(decoder._half) <= MAX_LINE
    rows = samples(1)
    assert np.array_equal(decoder.feed(b"\n" + json_lines(rows)[0]), rows)
    assert diagnostics.counts == {"too long": 1}


# ---------------------------------------------------------------- sockets


@contextmanager
def open_for_test(text: str) -> Iterator[Any]:
    source = open_source(text, OPTIONS)
    source.open()
    try:
        yield source
    finally:
        source.close()


def collect(source: LiveSource, count: int, tries: int = 200) -> Array:
    out = [source.no_samples()]
    for _ in range(tries):
        rows = source.read(0.05)
        if rows is None:
            break
        out.append(rows)
        if sum(map(len, out)) >= count:
            break
    return np.vstack(out)


def test_default_host_is_this_machine() -> None:
    with open_for_test("tcp:0") as source:
        assert source._server.getsockname()[0] == "127.0.0.1"
    with open_for_test("udp:0") as source:
        assert source._socket.getsockname()[0] == "127.0.0.1"
    assert host_and_port("5000", "tcp") == ("127.0.0.1", 5000)
    assert host_and_port("robot:5000", "tcp") == ("robot", 5000)
    assert host_and_port("[::1]:5000", "tcp") == ("::1", 5000)
    assert host_and_port("", "rtde", 30004) == ("127.0.0.1", 30004)
    assert host_and_port("robot", "rtde", 30004) == ("robot", 30004)
    for wrong in ("", "robot", "5000000", "robot:x"):
        with pytest.raises(SourceError, match="has no valid port"):
            host_and_port(wrong, "tcp")


def test_invalid_sender_does_not_disturb_others() -> None:
    rows = samples(300)
    lines = json_lines(rows)
    with open_for_test("tcp:0") as source:
        faulty = socket.create_connection(("127.0.0.1", source.port))
        kind = socket.create_connection(("127.0.0.1", source.port))
        decoded_rows = [source.no_samples()]
        for start in range(0, 200, 20):
            faulty.sendall(os.urandom(3000) + b'\n{"t":1\n')
            kind.sendall(b"".join(lines[start : start + 20]))
            decoded_rows.append(collect(source, 20))
        kind.sendall(lines[200][:30])
        kind.close()
        assert len(collect(source, 1, 5)) == 0
        again = socket.create_connection(("127.0.0.1", source.port))
        again.sendall(b"".join(lines[200:]))
        decoded_rows.append(collect(source, 100))
        assert np.array_equal(np.vstack(decoded_rows), rows)
        assert source.diagnostics.counts["half a line"] >= 1
        assert source.diagnostics.counts["not understood"] >= 10
        assert source.diagnostics.counts["senders"] == 3
        for connection in (faulty, again):
            connection.close()


def test_number_of_senders_is_limited() -> None:
    with open_for_test("tcp:0") as source, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(socket.create_connection(("127.0.0.1", source.port)))
            source.read(0.05)
        assert source.diagnostics.counts["hung up on"] == 4
        assert len(source._senders) == 4


def test_datagrams_with_several_lines() -> None:
    rows = samples(60)
    lines = csv_lines(rows)
    with open_for_test("udp:0") as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for start in range(0, 60, 3):
            sender.sendto(b"".join(lines[start : start + 3]), ("127.0.0.1", source.port))
            sender.sendto(b"\x00\xff" * 100, ("127.0.0.1", source.port))
        assert np.array_equal(collect(source, 60), rows)
        assert source.diagnostics.counts == {"not understood": 20}


def test_unix_socket_permissions_and_stale_file(tmp_path: Path) -> None:
    path = str(tmp_path / "robot")
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(path)
    dead.close()  # as after a kill
    rows = samples(10)
    with open_for_test(f"unix:{path}") as source:
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0
        with pytest.raises(SourceError, match="cannot be opened"), open_for_test(f"unix:{path}"):
            pass
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sender:
            sender.connect(path)
            sender.sendall(b"".join(json_lines(rows)))
            assert np.array_equal(collect(source, 10), rows)
    assert not os.path.exists(path)


# ---------------------------------------------------------------- reconnection


class Flaky(LiveSource):
    """A source that fails to open a few times, then sends three samples, then stalls."""

    max_silence_s = 3.0

    def __init__(self, fails: int) -> None:
        super().__init__("flaky", OPTIONS)
        self.fails, self.open_for_test, self.reads = fails, [], 0
        self.clock = 0.0

    def open(self) -> None:
        self.open_for_test.append(self.clock)
        if len(self.open_for_test) <= self.fails:
            raise SourceLostError("not available")
        self.reads = 0

    def read(self, wait_s: float) -> Array | None:
        self.clock += wait_s
        self.reads += 1
        return samples(1) if self.reads <= 3 else self.no_samples()

    def close(self) -> None:
        pass


def test_lost_source_is_reopened_with_growing_pauses() -> None:
    source = Flaky(8)

    def sleep(seconds: float) -> None:
        source.clock += seconds

    reconnecting = ReconnectingSource(source, stale_s=0.5, now=lambda: source.clock, sleep=sleep)
    while not source.reads:
        assert len(reconnecting.read(0.1)) == (1 if source.reads else 0)
    waits = np.diff(source.open_for_test)
    assert np.allclose(waits, np.minimum(0.25 * 2.0 ** np.arange(8), 30.0), atol=0.11)
    assert not reconnecting.reopened
    assert not reconnecting.stale
    for _ in range(3):
        reconnecting.read(0.1)
    while reconnecting.connected:  # after max_silence_s the stalled source is closed
        reconnecting.read(0.1)
    assert reconnecting.stale
    assert source.diagnostics.counts["lost"] == 9
    reconnecting.read(0.1)
    while not reconnecting.connected:
        reconnecting.read(0.1)
    assert source.clock - source.open_for_test[-1] < 0.4  # after a sample the first pause is short again
    assert reconnecting.reopened


def test_client_reconnects_to_a_server() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    reconnecting = ReconnectingSource(open_source(f"tcp-to:{port}", OPTIONS))
    rows = samples(40)

    def serve(some: Array) -> None:
        reconnecting.read(0.01)
        connection, _ = server.accept()
        connection.sendall(b"".join(json_lines(some)))
        received = [reconnecting.read(0.2) for _ in range(3)]
        assert np.array_equal(np.vstack(received), some)
        connection.close()

    serve(rows[:20])
    assert not reconnecting.reopened
    for _ in range(3):
        reconnecting.read(0.05)
    assert not reconnecting.connected
    while not reconnecting.connected:
        reconnecting.read(0.1)
    serve(rows[20:])
    assert reconnecting.reopened
    reconnecting.close()
    server.close()


# ---------------------------------------------------------------- logs


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows, n = samples(3000, 250.0), arm().dof
    path = tmp_path_factory.mktemp("log") / "log.npz"
    q, dq, tau = (rows[:, 1 + k * n : 1 + (k + 1) * n] for k in range(3))
    Log(arm().joint_names, rows[:, 0], q, dq, None, tau).save(path)
    return path


def read_all(source: LiveSource) -> Array:
    source.open()
    out = [source.no_samples()]
    while (rows := source.read(0.01)) is not None:
        out.append(rows)
    return np.vstack(out)


@pytest.mark.parametrize("size", [1, 500, 100_000])
def test_replay_returns_all_samples(recording: Path, size: int) -> None:
    log = read_log(recording, arm())
    decoded_rows = read_all(open_source(str(recording), SourceOptions(arm(), speed=np.inf, size=size)))
    assert np.array_equal(decoded_rows, np.column_stack([log.t, log.q, log.dq, log.tau]))


def test_replay_speed(recording: Path) -> None:
    source = open_source(str(recording), SourceOptions(arm(), speed=200.0))
    before = time.perf_counter()
    assert len(read_all(source)) == 3000
    assert time.perf_counter() - before >= (3000 - 1) / 250.0 / 200.0


def test_replay_continues_from_its_state(recording: Path) -> None:
    options = SourceOptions(arm(), speed=np.inf, size=70)
    two = f"{recording}\n{recording}"
    whole = read_all(open_source(two, options))
    assert np.all(np.diff(whole[:, 0]) > 0.0)
    first = open_source(two, options)
    first.open()
    for _ in range(55):
        first.read(0.0)
    second = open_source(two, options)
    assert second.restore(first.state())
    assert np.array_equal(read_all(second), whole[int(first.state()["samples"]) :])


def test_every_source_has_a_description() -> None:
    for name, kind in LIVE_SOURCES.items():
        assert kind.description, name
        assert kind.example, name
    with pytest.raises(SourceError, match="tcp:PORT"):
        open_source("nowhere.csv", OPTIONS)
