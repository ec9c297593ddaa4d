"""Shared by tests of the studio: a running studio, an HTTP client, and robots, logs and runs with hostile names."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EVIL = "<img src=x onerror=alert(1)>"

_URDF = """<robot name="E"><link name="base"/><link name="L"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="J" type="revolute"><parent link="base"/><child link="L"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="1" effort="10"/></joint></robot>"""
_escaped = EVIL.replace("<", "&lt;").replace(">", "&gt;")

HOSTILE = SimpleNamespace(
    urdf=_URDF.replace('"E"', f'"{_escaped}"').replace('"L"', f'"{_escaped} link"').replace('"J"', f'"{_escaped}"'),
    csv="t,<script>alert(2)</script>,tau\n0,0,0\n0.01,0,0\n",
    project=f'robot = "robot/evil.urdf"\nruns = "runs"\n[logs]\nidentify = ["logs/{EVIL}.csv"]\n',
    manifest={
        "format": "steelyard-run-1",
        "command": f"steelyard identify '{EVIL}'",
        "command_in": "..",
        "growing": [],
        "files": {},
    },
    result={"format": EVIL, "robot": EVIL, "verdict": {"word": EVIL, "sentence": EVIL}, EVIL: EVIL},
)


def job_folders(folder: Path) -> Path:
    """Return the folder of a studio's jobs in the state folder."""
    from steelyard.studio.studio_folder import StudioFolder

    return StudioFolder(folder).state_path("jobs", "x").parent


@dataclass
class Served:
    """A running studio."""

    folder: Path
    options: tuple[str, ...] = ()
    address: str = ""
    process: Any = None
    port: int = 0
    own_process: bool = True  # can be killed; otherwise it runs in a thread, which starts faster
    _server: Any = None
    _thread: Any = None

    @property
    def base(self) -> str:
        return self.address.partition("?")[0].rstrip("/")

    def start(self) -> None:
        if not self.own_process:
            self._start_thread()
            return
        command = [sys.executable, "-m", "steelyard", "studio", str(self.folder), "--no-open", "--port", str(self.port)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [*command, *self.options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        output = ""
        for line in self.process.stdout:
            output += line
            if found := re.search(r"http://\S+", line):
                self.address = found[0]
                self.port = int(re.search(r":(\d+)/", self.address)[1])  # type: ignore[index]
                break
        assert self.address, output
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(self.base + "/", timeout=5.0)
            except urllib.error.HTTPError:
                return  # 401: it answers, and the token is missing
            except OSError:
                time.sleep(0.05)
        raise AssertionError("The studio does not answer.")

    def _start_thread(self) -> None:
        import threading

        import uvicorn

        from steelyard.studio.server import ServeOptions, make_app, open_socket, server_config
        from steelyard.studio.studio_folder import StudioFolder

        options = ServeOptions(port=self.port, show=False)
        sock = open_socket(options)
        self.port = sock.getsockname()[1]
        app, self.address = make_app(StudioFolder(self.folder), options, self.port)
        self._server = uvicorn.Server(server_config(app))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [sock]}, daemon=True)
        self._thread.start()
        end = time.monotonic() + 20.0
        while not self._server.started:
            assert time.monotonic() < end, "The studio does not start."
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
            self._thread.join(10.0)
        with contextlib.suppress(OSError, AttributeError):
            self.process.terminate()
            self.process.wait(10.0)
        # Jobs outlive a studio, but none may outlive its test.
        for start in job_folders(self.folder).glob("*/begun.json"):
            with contextlib.suppress(Exception):
                os.killpg(int(re.search(r'"pid": (\d+)', start.read_text())[1]), signal.SIGKILL)  # type: ignore[index]


def own_process(test: Any) -> Any:
    """Mark a test whose studio must run in its own process."""
    test.own_process = True
    return test


class Client:
    """Sends any requests to a studio; by default with the right host name and cookie."""

    def __init__(self, studio: Any) -> None:
        self.studio = studio
        self.token = studio.address.rpartition("=")[2]
        _, _, headers = self.ask("GET", "/" + studio.address.rpartition("/")[2], cookie=False)
        self.cookie = headers["set-cookie"].partition(";")[0]

    def ask(
        self, method: str, path: str, body: bytes = b"", cookie: bool = True, headers: Any = None, read: bool = True
    ) -> tuple[int, bytes, dict[str, str]]:
        sent = {"Host": f"127.0.0.1:{self.studio.port}", "X-Steelyard": "1"}
        if method in ("POST", "PUT"):
            sent["Content-Length"] = str(len(body))
        if cookie:
            sent["Cookie"] = self.cookie
        sent = {k: v for k, v in {**sent, **(headers or {})}.items() if v is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.studio.port, timeout=20.0)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            streams = (answer.getheader("content-type") or "").startswith("text/event-stream")
            content = answer.read() if read and not streams else b""
            return answer.status, content, {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def head(self, method: str, path: str, length: int) -> bytes:
        """Return the head of a request."""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.studio.port}\r\nCookie: {self.cookie}\r\n"
            f"X-Steelyard: 1\r\nContent-Length: {length}\r\n\r\n"
        ).encode()

    def do(self, action: str, **fields: str) -> tuple[int, str]:
        """Send a form."""
        from urllib.parse import urlencode

        status, body, _ = self.ask("POST", f"/do/{action}", urlencode(fields).encode())
        return status, body.decode()

    def json(self, path: str) -> Any:
        return json.loads(self.ask("GET", path)[1])


def all_files(folder: Path) -> set[str]:
    """List every file below a folder except locks."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "lock" not in p.name}
