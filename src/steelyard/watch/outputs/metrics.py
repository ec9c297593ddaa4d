"""`PrometheusMetrics`: metrics for Prometheus on a port of this machine."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from steelyard.ground.local_web import AllowedNames
from steelyard.watch.live_source import SourceError, host_and_port
from steelyard.watch.monitor_base import WatchEvent
from steelyard.watch.output import WATCH_OUTPUTS, OutputSetup, WatchOutput, WatchReport

_PORT = 9464  # within the usual range of exporters
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@WATCH_OUTPUTS.register("prometheus")
class PrometheusMetrics(WatchOutput):
    """Serves the last report, and the number of events by kind, at /metrics."""

    description = "metrics for Prometheus at a port of this machine"

    def __init__(self, where: str, setup: OutputSetup) -> None:
        super().__init__(where, setup)
        self._events: dict[tuple[str, str], int] = {}
        self._text = b""

    def open(self) -> str:
        outer = self
        address = (
            host_and_port(self.where, "prometheus", _PORT)
            if not self.where.isdecimal()
            else ("127.0.0.1", int(self.where))
        )

        names = AllowedNames(address[0], self.setup.origins)

        class Handler(BaseHTTPRequestHandler):
            """Handles one request."""

            timeout = 5.0

            def do_GET(self) -> None:
                why = names.refusal(self.headers.get_all("Host", ()), self.headers.get_all("Origin", ()))
                if why:
                    outer.diagnostics.count(
                        "refused", f"A request for metrics is refused: {why} To allow it, use --allow-origin."
                    )
                    self._send(403, f"{why}\n".encode())
                    return
                exists = self.path.split("?")[0] == "/metrics"
                body = outer._text if exists else b"Metrics are at /metrics.\n"
                self._send(200 if exists else 404, body)

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", _TYPE)
                self.send_header("X-Content-Type-Options", "nosniff")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *details: Any) -> None:
                pass

        try:
            self._server = ThreadingHTTPServer(address, Handler)
        except OSError as why:
            raise SourceError(
                f"prometheus={self.where} cannot be opened ({why.strerror}); give another port."
            ) from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.port = int(self._server.server_address[1])
        return f"Metrics are at http://{address[0]}:{self.port}/metrics."

    def write_event(self, event: WatchEvent) -> None:
        key = (event.kind, "yes" if event.alarm else "no")
        self._events[key] = self._events.get(key, 0) + 1

    def write_report(self, report: WatchReport) -> None:
        self._text = metrics_text(report, self.setup.joints, self._events).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def metrics_text(report: WatchReport, joints: Any, events: dict[tuple[str, str], int]) -> str:
    """Format a report for Prometheus.

    Args:
        report: The report.
        joints: Names of the joints, the labels of lists.
        events: Number of events by kind and alarm.
    """
    out: dict[str, list[str]] = {}

    def add(name: str, value: float, **labels: str) -> None:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        out.setdefault(_metric_name(f"steelyard_{name}"), []).append(
            f"{{{pairs}}} {value!r}" if pairs else f" {value!r}"
        )

    add("stale", int(report.stale))
    add("age_seconds", report.age_s)
    add("period_seconds", report.period_s)
    for kind, count in report.counts.items():
        add("counted_total", count, kind=kind)
    for (kind, alarm), count in events.items():
        add("events_total", count, kind=kind, alarm=alarm)
    for monitor, name, value in report.numbers():
        if not isinstance(value, list):
            add(f"{monitor}_{name}", float(value))
        elif len(value) == len(joints):
            for joint, x in zip(joints, value, strict=True):
                add(f"{monitor}_{name}", float(x), joint=joint)
    lines = []
    for name, samples in out.items():
        lines.append(f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}")
        lines += [name + sample for sample in samples]
    return "\n".join([*lines, ""])


def _metric_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
