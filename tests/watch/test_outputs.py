"""Outputs: content, and compatibility with their readers."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_samples import arm, samples
from rosbags.highlevel import AnyReader

from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array
from steelyard.signals.read import read_log
from steelyard.watch.batch import ObservedBatch, SampleBatch
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, Outputs, OutputSetup, WatchReport, make_output
from steelyard.watch.outputs import mcap as recording
from steelyard.watch.outputs.foxglove import foxglove_layout
from steelyard.watch.outputs.terminal import TerminalPage

SETUP = OutputSetup(arm().joint_names, "arm at tcp:5005", {"contact": "Contact"}, ["N m"] * 3)
CONTACT = {"external_torque": [1.5, -0.25, float("nan")], "touched": True, "mass": 2.8, "link": "tool\x1b[2J"}
REPORT = WatchReport(12.5, True, 0.75, 0.002, {"samples": 10, "late": 2}, {"contact": CONTACT})
EVENT = WatchEvent(12.25, "contact", "Contact at the tool.", {"delay_ms": 4.0}, alarm=True)


def observed_batch(rows: Array) -> ObservedBatch:
    batch = SampleBatch.of_rows(rows)
    r = 0.1 * batch.tau
    return ObservedBatch(batch, r, r, r, r)


def write_all(text: str, rows: Array, size: int = 50) -> None:
    output = make_output(text, SETUP)
    output.open()
    outputs = Outputs([output], waits=True)
    for start in range(0, len(rows), size):
        outputs.write_samples(observed_batch(rows[start : start + size]))
        outputs.write_report(REPORT)
    outputs.write_event(EVENT)
    outputs.close()
    assert outputs.diagnostics.counts == {}


def test_json_lines(tmp_path: Path) -> None:
    write_all(f"jsonl={tmp_path / 'told.jsonl'}", samples(100))
    lines = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert [line.get("event") for line in lines] == [None, None, "contact"]
    assert lines[0]["contact"]["external_torque"] == [1.5, -0.25, None]
    assert lines[0]["stale"]
    assert lines[0]["counts"] == {"samples": 10, "late": 2}
    assert lines[2]["delay_ms"] == 4.0
    assert lines[2]["alarm"]


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_recording_is_readable_as_a_log(tmp_path: Path, start: float) -> None:
    rows = samples(300, start=start)
    path = tmp_path / "all.mcap"
    write_all(f"mcap={path}", rows)
    log = read_log(path, arm())
    assert np.allclose(log.t, rows[:, 0] - start, atol=1e-6)
    for recorded, expected in zip((log.q, log.dq, log.tau), np.split(rows[:, 1:], 3, axis=1), strict=True):
        assert np.array_equal(recorded, expected)
    with AnyReader([path]) as bag:
        messages: dict[str, list[Any]] = {}
        for connection, _, data in bag.messages():
            messages.setdefault(connection.topic, []).append(bag.deserialize(data, connection.msgtype))
    external = np.array([message.data for message in messages["/steelyard/external_torque"]])
    assert np.array_equal(external, 0.1 * rows[:, 7:])
    assert [json.loads(message.data)["event"] for message in messages["/steelyard/events"]] == ["contact"]
    assert len(messages["/steelyard/report"]) == 6
    assert list(tmp_path.iterdir()) == [path]
    write_all(f"mcap={path}", rows[:100])  # a restart replaces no file
    assert len(read_log(path, arm())) == 300
    assert len(read_log(tmp_path / "all-2.mcap", arm())) == 100


def test_long_recording_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_MAX_BYTES", 20_000)
    rows = samples(500)
    write_all(f"mcap={tmp_path / 'all.mcap'}", rows)
    files = sorted(tmp_path.iterdir(), key=lambda path: (len(path.name), path.name))
    assert len(files) > 2
    assert np.array_equal(np.vstack([read_log(path, arm()).q for path in files]), rows[:, 1:4])


def test_prometheus_metrics() -> None:
    output = make_output("prometheus=0", SETUP)
    sentence = output.open()
    output.write_report(REPORT)
    output.write_event(EVENT)
    output.write_report(REPORT)
    port = output.port  # type: ignore[attr-defined]
    assert sentence == f"Metrics are at http://127.0.0.1:{port}/metrics."
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    output.close()
    lines = text.splitlines()
    joint = arm().joint_names[1]
    for expected in (
        "steelyard_stale 1", 'steelyard_counted_total{kind="late"} 2', "# TYPE steelyard_counted_total counter",
        f'steelyard_contact_external_torque{{joint="{joint}"}} -0.25', "steelyard_contact_mass 2.8",
        'steelyard_events_total{kind="contact",alarm="yes"} 1',
    ):  # fmt: skip
        assert expected in lines
    assert text.endswith("\n")


def request(port: int, *headers: str, path: str = "/metrics") -> bytes:
    """Send an HTTP request with these headers; return the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall("\r\n".join([f"GET {path} HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    "headers",
    [["Host: evil.example"], ["Host: 127.0.0.1", "Host: evil.example"], [],
     ["Host: 127.0.0.1", "Origin: https://evil.example"]],
)  # fmt: skip
def test_metrics_refuse_other_hosts_and_origins(headers: list[str]) -> None:
    output = make_output("prometheus=0", SETUP)
    output.open()
    output.write_report(REPORT)
    answer = request(output.port, *headers)  # type: ignore[attr-defined]
    output.close()
    assert answer.startswith(b"HTTP/1.0 403")
    assert b"steelyard_" not in answer
    assert output.diagnostics.counts == {"refused": 1}
    assert "--allow-origin" in output.diagnostics.fetch()[0]


def test_metrics_accept_an_allowed_name() -> None:
    output = make_output("prometheus=0", replace(SETUP, origins=("http://robot.local:9464",)))
    output.open()
    output.write_report(REPORT)
    answer = request(output.port, "Host: robot.local:9464")  # type: ignore[attr-defined]
    output.close()
    assert answer.startswith(b"HTTP/1.0 200")
    assert b"steelyard_stale 1" in answer


def test_terminal_page_has_all_values_and_no_control_characters() -> None:
    from rich.console import Console

    page = TerminalPage("", SETUP)
    page._events.append(EVENT)
    console = Console(file=io.StringIO(), width=120)
    console.print(page.page(REPORT))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for expected in (
        "STALE for 0.8 s",
        "500 Hz",
        "10 samples; 2 late",
        "Contact · external torque",
        "-0.25",
        "2.8",
        EVENT.message,
    ):
        assert expected in text
    assert "\x1b" not in text


def test_a_pipe_gets_one_line_per_event_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    page = TerminalPage("", SETUP)
    page.open()
    page.write_report(REPORT)
    page.write_event(EVENT)
    page.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "12.250  ALARM contact: Contact at the tool.",
        "End at t = 12.50 s: 10 samples, 500 Hz, 2 late, 1 alarm.",
    ]


def test_foxglove_messages_and_layout(tmp_path: Path) -> None:
    pytest.importorskip("websockets")
    output = make_output("foxglove=0", SETUP)
    sentence = output.open()
    port = output.port  # type: ignore[attr-defined]
    assert f"ws://127.0.0.1:{port}" in sentence
    assert foxglove_layout() in sentence
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
        )
        answer = b""
        while b"/steelyard/events" not in answer:  # the announcement of the server
            answer += client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 101")
        channels_offered = answer[answer.index(b'{"op":"advertise"') :].decode("utf-8", "replace")
        topics = {c["topic"]: c["id"] for c in json.JSONDecoder().raw_decode(channels_offered)[0]["channels"]}
        subscriptions_ = [
            {"id": k, "channelId": topics[f"/steelyard/{name}"]} for k, name in enumerate(("samples", "events"))
        ]
        words = json.dumps({"op": "subscribe", "subscriptions": subscriptions_}).encode()
        client.sendall(bytes([0x81, 0x80 | len(words)]) + bytes(4) + words)  # a frame of text, masked by zeros
        answer = b""
        client.settimeout(0.1)
        for _ in range(100):
            if b"external_torque" in answer and EVENT.message.encode() in answer:
                break
            output._next = 0.0  # type: ignore[attr-defined]
            output.write_samples(observed_batch(samples(3)))
            output.write_report(REPORT)
            output.write_event(EVENT)
            with contextlib.suppress(TimeoutError):
                answer += client.recv(65536)
        else:
            pytest.fail("nothing was sent")
    output.close()
    layout = json.loads(Path(foxglove_layout()).read_text("utf-8"))
    shown = {path["value"] for config in layout["configById"].values() for path in config.get("paths", ())}
    shown |= {config[key] for config in layout["configById"].values() for key in ("topicPath", "path") if key in config}
    samples_sent = {"t", "q", "dq", "tau", "external_torque"}
    for path in shown:
        topic, _, rest = path.partition(".")
        assert topic in {"/steelyard/samples", "/steelyard/report", "/steelyard/events"}
        name = rest.split("[")[0]
        assert not rest or name in (samples_sent if topic.endswith("samples") else REPORT.plain())


UPGRADE = (
    "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: foxglove.sdk.v1",
)  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [["Host: 127.0.0.1", "Origin: https://evil.example"], ["Host: evil.example"],
     ["Host: evil.example", "Origin: http://evil.example"], ["Host: 127.0.0.1", "Origin: null"],
     ["Host: 127.0.0.1", "Host: evil.example"], ["Host: 127.0.0.1", "Origin: file://"]],
)  # fmt: skip
def test_live_view_refuses_other_hosts_and_origins(headers: list[str]) -> None:
    pytest.importorskip("websockets")
    output = make_output("foxglove=0", SETUP)
    output.open()
    answer = request(output.port, *headers, *UPGRADE, path="/")  # type: ignore[attr-defined]
    output.close()
    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))  # a request with two hosts is invalid
    assert b"/steelyard/" not in answer
    if len(headers) == 2 and headers[1].startswith("Origin: https"):
        assert output.diagnostics.fetch() == [
            "A page of 'https://evil.example' requested the live view and was refused; allow it with "
            "--allow-origin https://evil.example."
        ]


def test_live_view_equals_foxgloves_own_server() -> None:
    """Compare announcements, answers and messages to equal requests, without session numbers."""
    foxglove = pytest.importorskip("foxglove")
    from websockets.exceptions import InvalidHandshake
    from websockets.sync.client import connect

    protocol = ["foxglove.sdk.v1"]
    context = foxglove.Context()
    theirs = foxglove.start_server(name="x", host="127.0.0.1", port=0, context=context)
    channels = [
        foxglove.Channel(f"/steelyard/{name}", schema={"type": "object"}, message_encoding="json", context=context)
        for name in ("samples", "report", "events")
    ]
    ours = make_output("foxglove=0", replace(SETUP, title="x", origins=("https://app.foxglove.dev",)))
    ours.open()
    exchanges = []
    for port, log in (
        (theirs.port, lambda: channels[2].log({"a": 1}, log_time=5_000_000_000)),
        (ours.port, lambda: ours._log("events", 5.0, {"a": 1})),  # type: ignore[attr-defined]
    ):
        with connect(f"ws://127.0.0.1:{port}", subprotocols=protocol, origin="https://app.foxglove.dev") as client:
            assert client.subprotocol == protocol[0]
            greeting = [json.loads(client.recv(timeout=5)) for _ in range(2)]
            channels_offered = greeting[1]["channels"]
            channels_offered.sort(key=lambda channel: channel["id"])  # the order is arbitrary
            subscriptions = [{"id": 7, "channelId": channels_offered[2]["id"]}]
            client.send(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))
            client.send("nonsense")
            status = json.loads(client.recv(timeout=5))
            message = None
            for _ in range(100):  # a subscription takes effect after some time
                log()
                with contextlib.suppress(TimeoutError):
                    message = client.recv(timeout=0.05)
                    break
            client.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [7]}))
            while True:  # messages from before the end of the subscription
                log()
                try:
                    client.recv(timeout=0.2)
                except TimeoutError:
                    break
        for entry in greeting[1]["channels"]:
            entry.pop("schemaName")
        greeting[0].pop("sessionId"), greeting[0].pop("metadata"), status.pop("message")
        exchanges.append((greeting, status, message))
        with pytest.raises(InvalidHandshake):
            connect(f"ws://127.0.0.1:{port}", subprotocols=["other"])
    assert exchanges[0] == exchanges[1]
    ours.close()
    theirs.stop()


def test_client_that_does_not_read_has_a_bounded_queue() -> None:
    from steelyard.watch.outputs.foxglove import _MAX_WAITING, _Client

    client = _Client(None)
    client.handle(json.dumps({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 1}]}))
    for k in range(3 * _MAX_WAITING):
        client.log(1, k, b"{}")
    assert client._waiting.qsize() == _MAX_WAITING
    first = client._waiting.get_nowait()
    assert isinstance(first, bytes)
    assert int.from_bytes(first[5:13], "little") == 2 * _MAX_WAITING  # the newest remain


def test_rerun_reads_the_recording(tmp_path: Path) -> None:
    """With the reader of Rerun 0.41 or later."""
    reader = pytest.importorskip("rerun.chunk").RrdReader
    rows = samples(100)
    write_all(f"rerun={tmp_path / 'all.rrd'}", rows)
    recorded: dict[str, list[tuple[float, object]]] = {}
    for chunk in reader(tmp_path / "all.rrd").stream().to_chunks():
        table = chunk.to_record_batch()
        if "time" in table.schema.names:
            times = np.array(table.column("time"), dtype="timedelta64[ns]") / np.timedelta64(1, "s")
            values = [row[0] for row in table.column(table.schema.names[-1]).to_pylist()]
            recorded.setdefault(chunk.entity_path, []).extend(zip(times.tolist(), values, strict=True))
    for k in range(3):
        for name, part in (("measured", 1.0), ("external", 0.1)):
            t, torque = np.array(sorted(recorded[f"/torque/{arm().joint_names[k]}/{name}"])).T
            assert t == pytest.approx(rows[:, 0], abs=1e-9)
            assert torque == pytest.approx(part * rows[:, 7 + k])
    assert recorded["/contact/mass"] == [(12.5, 2.8)] * 2
    assert recorded["/events"] == [(12.25, "Contact at the tool.")]


def test_slow_output_drops_reports_without_blocking() -> None:
    import threading

    gate = threading.Event()

    class Slow(TerminalPage):
        def write_report(self, report: WatchReport) -> None:
            gate.wait(20)

    outputs = Outputs([Slow("", SETUP)])
    for _ in range(6000):
        outputs.write_report(REPORT)
    assert outputs.diagnostics.counts["not written"] >= 1000
    gate.set()
    outputs.close()


def test_every_output_has_a_description() -> None:
    for name, kind in WATCH_OUTPUTS.items():
        assert kind.description, name
    with pytest.raises(SteelyardError, match="no output 'paper'"):
        make_output("paper=x", SETUP)
