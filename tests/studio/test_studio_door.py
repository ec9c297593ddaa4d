"""Access to the studio: the token is in no process arguments, cookies hold for one server, connections time out."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import pytest

pytest.importorskip("uvicorn", reason="the studio's packages are not installed")

from conftest_studio import Client, Served

from steelyard.studio import server

linux = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="arguments are read from /proc")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Studios of two folders at two ports."""
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append(Served(tmp_path / name, own_process=False))
        made[-1].start()
    yield made[0], made[1]
    for served in made:
        served.end()


def test_a_leaked_cookie_is_refused_at_another_port(two: tuple[Served, Served]) -> None:
    first, second = (Client(served) for served in two)
    name, _, value = second.cookie.partition("=")
    assert second.ask("GET", "/jobs")[0] == 200
    leaked = first.cookie.partition("=")[2]
    for cookie in (
        first.cookie,
        f"{name}={leaked}",
        f"{first.cookie}; {name}={leaked}",
        f"{name}=",
        f"{name}={value}x",
    ):
        assert second.ask("GET", "/jobs", headers={"Cookie": cookie})[0] == 401
        assert second.ask("POST", "/do/job/clear", b"id=1", headers={"Cookie": cookie})[0] == 401
    # A browser sends the cookies of all ports; the right one is enough.
    assert second.ask("GET", "/jobs", headers={"Cookie": f"{first.cookie}; {second.cookie}"})[0] == 200


def test_cookie_and_token_are_invalid_after_a_restart(tmp_path: Path) -> None:
    """The folder is served again at the same port and at another one."""
    served = Served(tmp_path, own_process=False)
    served.start()
    before = Client(served)
    served.end()
    for port in (served.port, 0):
        again = Served(tmp_path, own_process=False, port=port)
        again.start()
        try:
            after = Client(again)
            assert after.token != before.token
            assert after.cookie.partition("=")[0] != before.cookie.partition("=")[0]
            assert after.ask("GET", "/jobs", headers={"Cookie": before.cookie})[0] == 401
            assert after.ask("GET", f"/?token={before.token}", cookie=False)[0] == 401
        finally:
            again.end()


def arguments_of_all_processes() -> str:
    """Return the arguments of every process, as `ps -ef` shows them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(found)


@linux
def test_the_token_is_in_no_process_s_arguments(tmp_path: Path) -> None:
    """The browser is a script that keeps running and records its arguments."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$@" > {opened}\nsleep 5\n')
    browser.chmod(0o755)
    served = subprocess.Popen(
        [sys.executable, "-m", "steelyard", "studio", str(tmp_path / "arm"), "--port", "0"],
        env={**os.environ, "BROWSER": f"{browser} %s &", "PYTHONUNBUFFERED": "1"}, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        said = ""
        for line in served.stdout or ():
            said += line
            if "token=" in line:
                break
        token = re.search(r"token=(\S+)", said)[1]  # type: ignore[index]
        end = time.monotonic() + 20.0
        while not (opened.exists() and opened.read_text().strip()):
            assert time.monotonic() < end, "no browser was started"
            time.sleep(0.05)
        shown = arguments_of_all_processes()
        assert str(browser) in shown, "the browser is missing from the list of processes"
        assert token not in shown
        assert token not in opened.read_text()
        file = Path(url2pathname(opened.read_text().strip().removeprefix("file://")))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert token in file.read_text()
        if os.geteuid() == 0:  # as another user, who can see all processes
            look = ["/bin/sh", "-c", f"cat /proc/[0-9]*/cmdline; cat {file}"]
            others = subprocess.run(look, user=65534, group=65534, capture_output=True, cwd="/", check=False)
            assert str(browser).encode() in others.stdout
            assert token.encode() not in others.stdout
            assert b"denied" in others.stderr
    finally:
        served.terminate()
        served.wait(20.0)
    assert not file.exists(), "the page with the token was not removed"


def test_the_start_page_leads_to_the_studio(chromium: Any, studio: Served, tmp_path: Path) -> None:
    """The page is a file, that is another site: after a redirect from there browsers do not send strict cookies."""
    from steelyard.studio.server import _START_HTML

    (tmp_path / "open.html").write_text(_START_HTML.format(address=studio.address))
    context = chromium.new_context()
    page = context.new_page()
    page.goto((tmp_path / "open.html").as_uri())
    page.wait_for_selector("#rail")
    assert page.url.startswith(studio.base)
    assert "token" not in page.url
    (cookie,) = context.cookies()
    assert cookie["sameSite"] == "Strict"
    assert cookie["httpOnly"]
    assert cookie["expires"] == -1, "the cookie outlives the browser"
    context.close()


def test_the_token_address_cannot_redirect_to_another_server(studio: Served) -> None:
    client = Client(studio)
    for path in (
        "//evil.example/",
        "/%2fevil.example",
        "/\\evil.example",
        "/%5cevil.example",
        "/a%0d%0aSet-Cookie:x=1",
    ):
        status, _, headers = client.ask("GET", f"{path}?token={client.token}", cookie=False)
        if status == 303:
            assert re.fullmatch(r"/([^/\\].*)?", headers["location"])
        assert "x=1" not in headers.get("set-cookie", "")


def half_open(port: int, count: int) -> list[socket.socket]:
    held = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), timeout=5.0)
        one.sendall(b"GET /robot HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port)
        held.append(one)
    return held


def closed(one: socket.socket) -> bool:
    one.settimeout(0.2)
    try:
        return one.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_half_open_connections_do_not_block(studio: Served) -> None:
    client = Client(studio)
    held = half_open(studio.port, 230)
    held += [socket.create_connection(("127.0.0.1", studio.port), timeout=5.0) for _ in range(50)]
    begun = time.monotonic()
    assert client.ask("GET", "/robot")[0] == 200
    assert client.ask("POST", "/do/job/clear", b"id=1")[0] == 422
    assert time.monotonic() - begun < 5.0  # s; without time limits there is no answer
    assert sum(map(closed, held[:20])) == 20, "the oldest are closed first"
    for one in held:
        one.close()


def test_headers_and_idle_connections_time_out(studio: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.5)
    (slow,) = half_open(studio.port, 1)
    silent = socket.create_connection(("127.0.0.1", studio.port), timeout=5.0)
    end = time.monotonic() + 5.0
    while time.monotonic() < end and not closed(slow):
        slow.sendall(b"X-More: 1\r\n")  # a slow line does not extend the limit
        time.sleep(0.05)
    assert time.monotonic() < end
    assert closed(silent)


def test_a_body_that_stalls_is_aborted(studio: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.studio.guard.BODY_SECONDS", 0.3)
    client = Client(studio)
    with socket.create_connection(("127.0.0.1", studio.port), timeout=5.0) as one:
        one.sendall(client.head("PUT", "/upload/logs/a.csv", 1000) + b"t,q1\n")
        answer = one.recv(1000)
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert not (studio.folder / "logs" / "a.csv").exists()
    assert not list((studio.folder / ".steelyard" / "uploads").iterdir())
    # Endless answers such as events continue.
    with socket.create_connection(("127.0.0.1", studio.port), timeout=5.0) as one:
        one.sendall(client.head("GET", "/events", 0))
        time.sleep(0.6)
        assert b" 200 " in one.recv(1000)
        one.settimeout(0.5)
        assert not closed(one)
