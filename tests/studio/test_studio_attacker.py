"""Attacks on the server: foreign hosts and pages, no token, paths that lead out, hostile names, floods."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="the studio's packages are not installed")

from conftest_studio import HOSTILE, Client, Served, all_files

SECRET = "root:x:0:0"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One studio for all attacks, which it must survive."""
    served = Served(tmp_path_factory.mktemp("attacked") / "arm")
    served.start()
    yield served
    served.end()


@pytest.fixture
def client(studio: Any) -> Client:
    return Client(studio)


def test_requests_without_token_are_refused(studio: Any, client: Client) -> None:
    before = all_files(studio.folder)
    for path in ("/", "/robot", "/events", "/jobs", "/assets/studio.js", "/file/runs/a/report.html", "/body/use"):
        status, body, headers = client.ask("GET", path, cookie=False)
        assert status == 401
        assert b"token" in body
        assert "set-cookie" not in headers
    wrong = studio.address.rpartition("=")[0] + "=" + "A" * 43
    assert client.ask("GET", "/?" + wrong.partition("?")[2], cookie=False)[0] == 401
    for method, path in (("POST", "/do/robot/choose"), ("PUT", "/upload/logs/a.csv"), ("POST", "/do/job/cancel")):
        assert client.ask(method, path, b"x=1", cookie=False)[0] in (401, 403)
    assert all_files(studio.folder) == before


def test_the_token_becomes_a_strict_cookie(studio: Any, client: Client) -> None:
    status, _, headers = client.ask("GET", "/" + studio.address.rpartition("/")[2], cookie=False)
    assert status == 303
    cookie = headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert client.token not in cookie, "the cookie contains the token"
    assert client.token not in headers["location"]
    assert "max-age" not in cookie.lower(), "the cookie outlives the browser"
    assert "expires" not in cookie.lower()
    assert str(studio.port) in cookie.partition("=")[0], "browsers send a cookie to every port"
    kept = [p for p in studio.folder.rglob("*") if p.is_file() and client.token.encode() in p.read_bytes()]
    assert not kept, "the token is in the folder"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil:80"]
)
def test_foreign_hosts_are_refused(client: Client, host: str) -> None:
    """With DNS rebinding the Host header is the attacker's."""
    assert client.ask("GET", "/robot", headers={"Host": host})[0] in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_foreign_origins_are_refused(client: Client, origin: str) -> None:
    status, _, headers = client.ask("POST", "/do/job/cancel", b"id=1", headers={"Origin": origin})
    assert status == 403
    assert "access-control-allow-origin" not in headers
    assert client.ask("GET", "/events", headers={"Origin": origin})[0] == 403


def test_forms_of_other_pages_are_refused(client: Client) -> None:
    bare = {"X-Steelyard": None, "Sec-Fetch-Site": "cross-site"}
    assert client.ask("POST", "/do/job/cancel", b"id=1", headers=bare)[0] == 403
    assert client.ask("POST", "/do/job/cancel", b"id=1", headers={"X-Steelyard": None})[0] == 403
    assert client.ask("GET", "/jobs", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0] == 403


def test_every_answer_has_the_security_headers(client: Client) -> None:
    for path in ("/robot", "/library", "/nothing-here", "/assets/studio.js"):
        _, _, headers = client.ask("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        script = re.search(r"script-src ([^;]*)", policy)
        assert script is not None
        assert script[1].split() == ["'self'"]
        assert headers["x-content-type-options"] == "nosniff"
    _, body, _ = client.ask("GET", "/robot")
    assert b"<script>" not in body
    assert not re.search(rb"\son\w+=", body), "an inline event handler"


OUT = [
    "/file/../../../../etc/passwd", "/file/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/file/..%2f..%2f..%2fetc%2fpasswd",
    "/file//etc/passwd", "/file/%2fetc%2fpasswd", "/file/.steelyard/key.json", "/file/runs/%2e%2e/.steelyard/key.json",
    "/assets/..%2f..%2fserver.py", "/assets/%2e%2e/app.py", "/file/runs/link/passwd", "/file/steelyard.toml",
    "/file/runs/away/passwd", "/file/.steelyard/trash/old/passwd", "/file/runs/%2e%2e/%2e%2e/outside/passwd",
    "/file/runs%5c..%5c..%5cetc", "/file/runs/a%00b",
]  # fmt: skip


@pytest.mark.parametrize("path", OUT)
def test_no_path_leads_outside(studio: Any, client: Client, path: str) -> None:
    runs = studio.folder / "runs"
    # Run folders that the studio must not show.
    outside, kept = studio.folder.parent / "outside", studio.folder / ".steelyard" / "trash" / "old"
    for place in (outside, kept):
        place.mkdir(parents=True, exist_ok=True)
        (place / "manifest.json").write_text("{}")
        (place / "passwd").write_text(SECRET)
    runs.mkdir(exist_ok=True)
    for name, target in (("link", "/etc"), ("away", str(outside))):
        if not (runs / name).is_symlink():
            (runs / name).symlink_to(target)
    status, body, _ = client.ask("GET", path)
    assert status in (400, 404, 422)
    assert SECRET.encode() not in body
    assert client.token.encode() not in body
    assert b"import" not in body


NAMES = [
    "../../evil.csv",
    "..%2f..%2fevil.csv",
    "/etc/evil.csv",
    ".bashrc",
    "C:\\evil.csv",
    "a\0b.csv",
    "..",
    "con\n.csv",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_upload_leads_outside(studio: Any, client: Client, name: str) -> None:
    status, body, _ = client.ask("PUT", "/upload/logs/" + quote(name, safe=""), b"t,q1\n0,0\n")
    above = {p for p in studio.folder.parent.rglob("*evil*") if not p.is_relative_to(studio.folder / "logs")}
    assert not above
    if status == 200:
        made = studio.folder / json.loads(body)["path"]
        assert made.resolve().parent == (studio.folder / "logs").resolve()
        assert not made.name.startswith(".")
        assert made.stat().st_mode & 0o111 == 0, "an upload is executable"
    else:
        assert status in (400, 404, 422)
    for folder in ("..", ".steelyard", "runs", "src"):
        assert client.ask("PUT", f"/upload/{quote(folder, safe='')}/a.csv", b"x")[0] in (404, 422)


def test_a_broken_or_too_large_upload_leaves_no_file(studio: Any, client: Client) -> None:
    before = all_files(studio.folder)
    with socket.create_connection(("127.0.0.1", studio.port)) as half:
        half.sendall(client.head("PUT", "/upload/logs/half.csv", 1000) + b"t,q1\n")
    status, body, _ = client.ask("PUT", "/upload/logs/huge.csv", b"x", headers={"Content-Length": str(10**13)})
    assert status == 422
    assert b"--upload-limit" in body
    end = time.monotonic() + 10.0
    while all_files(studio.folder) != before and time.monotonic() < end:
        time.sleep(0.05)
    assert all_files(studio.folder) == before


def test_hostile_names_run_no_script(studio: Any, page: Any) -> None:
    """A robot, a log and a run with HTML names; the page fixture fails if their scripts run."""
    (studio.folder / "robot").mkdir(exist_ok=True)
    (studio.folder / "robot" / "evil.urdf").write_text(HOSTILE.urdf, "utf-8")
    (studio.folder / "logs").mkdir(exist_ok=True)
    (studio.folder / "logs" / "<img src=x onerror=alert(1)>.csv").write_text(HOSTILE.csv, "utf-8")
    run = studio.folder / "runs" / "<script>alert(1)<"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(json.dumps(HOSTILE.manifest), "utf-8")
    (run / "result.json").write_text(json.dumps(HOSTILE.result), "utf-8")
    attacks = "[() => { top.stolen = 1; }, () => parent.document.body.remove()]"
    report = f"<script>for (const f of {attacks}) {{ try {{ f(); }} catch (e) {{ document.title += e; }} }}</script>"
    (run / "report.html").write_text(report, "utf-8")
    (studio.folder / "steelyard.toml").write_text(HOSTILE.project, "utf-8")
    said: list[str] = []
    page.on("dialog", lambda d: (said.append(d.message), d.dismiss()))
    for stage in ("robot", "data", "check", "motion", "identify", "use", "library"):
        page.goto(f"{studio.base}/{stage}")
        page.wait_for_selector("main h1")
        assert page.locator("main").locator("img[src=x], script:not([type='text/plain'])").count() == 0
    page.goto(f"{studio.base}/library?run=" + quote("runs/<script>alert(1)<"))
    page.wait_for_timeout(300)
    assert page.evaluate("window.stolen") is None
    assert page.locator("#rail").count() == 1
    assert not said


def test_a_flood_is_survived(studio: Any, client: Client) -> None:
    """Websockets are refused, and idle connections, listeners and incomplete requests are dropped."""
    for _ in range(30):
        status, _, _ = client.ask(
            "GET", "/events", headers={"Upgrade": "websocket", "Connection": "Upgrade"}, read=False
        )
        assert status in (200, 400, 403, 422, 503)
    held = []
    for _ in range(150):
        one = socket.create_connection(("127.0.0.1", studio.port), timeout=5.0)
        one.sendall(b"GET /robot HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % studio.port)
        held.append(one)
    for one in held:
        one.close()
    large = b"x=" + b"1" * 2_000_000
    assert client.ask("POST", "/do/job/cancel", large)[0] in (413, 422)
    many = b"&".join(b"a=1" for _ in range(20_000))
    assert client.ask("POST", "/do/job/cancel", many)[0] == 422
    status, body, _ = client.ask("GET", "/robot")
    assert status == 200
    assert b"</html>" in body


def test_malformed_requests_are_refused(studio: Any, client: Client) -> None:
    for raw in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"A" * 100_000):
        with socket.create_connection(("127.0.0.1", studio.port), timeout=5.0) as one:
            try:
                one.sendall(raw)
                one.settimeout(2.0)
                assert SECRET.encode() not in one.recv(10_000)
            except OSError:
                pass
    assert client.ask("GET", "/jobs")[0] == 200


def test_two_studios_do_not_share_a_folder(studio: Any) -> None:
    import subprocess
    import sys

    again = subprocess.run(
        [sys.executable, "-m", "steelyard", "studio", str(studio.folder), "--no-open", "--port", "0"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert again.returncode == 2
    assert "already" in again.stderr
    assert "Traceback" not in again.stderr
