"""Security of clusters and schedulers: no access for others, and one error line for servers that are not schedulers."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from steelyard.cli.app import app
from steelyard.fleet import executor
from steelyard.fleet.connection import ExecutorError, connect_client, import_distributed, worker_cores
from steelyard.fleet.executor import DaskExecutor, check_outcome
from tests.fleet.faulty_worker import squared
from tests.fleet.planar_fleet import write_fleet

distributed = pytest.importorskip("distributed")

OTHER_USER = 65534  # nobody
# A process that knows all addresses of a cluster but not its key. It requests the execution of code, as a client and by
# plain messages, without certificates and with its own ones. Its last line has the answers.
STRANGER = """
import asyncio, logging, os, sys
import distributed
from distributed.comm import connect
from distributed.protocol.pickle import dumps
logging.getLogger("distributed").setLevel(logging.CRITICAL)
own, got, user, WAIT = distributed.Security.temporary(), [], int(sys.argv[1]), float(sys.argv[2])

def tell_user():
    import os
    return f"user {os.getuid()}"

async def ask(address, given, message):
    comm = await connect(address, timeout=WAIT, **given)
    await comm.write(message)
    return await asyncio.wait_for(comm.read(), WAIT)

for given in ({}, own.get_connection_args("client")):  # what it loads, it loads before it is another
    try:
        asyncio.run(ask(f"{'tls' if given else 'tcp'}://127.0.0.1:9", given, {}))
    except OSError:
        pass
if user != os.getuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
for address in sys.argv[3:]:
    place = address.partition("://")[2]
    for given in ({}, own.get_connection_args("client")):
        scheme = "tls" if given else "tcp"
        op = "run_function" if address == sys.argv[3] else "run"
        message = {"op": op, "function": dumps(tell_user), "reply": True}
        try:
            got.append(str(asyncio.run(ask(f"{scheme}://{place}", given, message))))
        except Exception as error:
            print(scheme, place, type(error).__name__)
for security in (None, own):
    try:
        scheme = "tls" if security else "tcp"
        place = sys.argv[3].partition("://")[2]
        with distributed.Client(f"{scheme}://{place}", security=security, timeout=WAIT) as client:
            got.append(client.submit(tell_user, pure=False).result(timeout=5))
    except Exception as error:
        print(scheme, place, "client", type(error).__name__)
print("user", os.getuid(), "came in:", got, flush=True)
os._exit(0)
"""


def stranger_says(addresses: list[str], wait_s: float) -> str:
    """Return the answers of a cluster to another process; as another user if this one has the right."""
    user = OTHER_USER if os.geteuid() == 0 else os.geteuid()
    words = [sys.executable, "-c", STRANGER, str(user), str(wait_s), *addresses]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180)
    *_, last = done.stdout.splitlines() or [""]
    assert last.startswith(f"user {user} came in: "), done.stderr
    return last.partition("came in: ")[2]


@pytest.mark.skipif(sys.platform == "win32", reason="users are POSIX")
def test_another_process_cannot_join_a_local_fleet() -> None:
    """A foreign process has no access to scheduler, nanny and worker; it has access to a cluster without TLS."""
    with DaskExecutor(workers=1) as ours:
        info = ours._client.scheduler_info()
        addresses = [ours._client.scheduler.address, *info["workers"], *(w["nanny"] for w in info["workers"].values())]
        assert len(addresses) == 3
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert stranger_says(addresses, 1.5) == "[]"
        assert dict(ours.results(squared, [3])) == {3: 9}, "the cluster still works"
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=None, silence_logs=logging.CRITICAL
    ) as open_to_all:
        assert "user " in stranger_says([open_to_all.scheduler_address], 8.0)


def test_the_dashboard_of_a_local_fleet_serves_its_own_pages_alone() -> None:
    """Other pages of a browser cannot connect to it, and it forwards no requests."""
    from http.client import HTTPConnection

    with DaskExecutor(workers=1) as ours:
        assert ours.dashboard.startswith("http://localhost:")
        port = ours.dashboard.split(":")[2].split("/")[0]
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "x" * 22 + "==", "Sec-WebSocket-Protocol": "bokeh"}  # fmt: skip
        for page, origin, code in (
            ("/status/ws", "http://elsewhere.example", 403),
            ("/proxy/1/127.0.0.1/x", f"http://localhost:{port}", 404),
            ("/status", f"http://localhost:{port}", 200),
        ):
            asked = HTTPConnection("127.0.0.1", int(port), timeout=10)
            asked.request("GET", page, headers={**(upgrade if "ws" in page else {}), "Origin": origin})
            assert asked.getresponse().status == code, page
            asked.close()


# ---------------------------------------------------------------- named schedulers


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fleet(tmp_path_factory.mktemp("fleet") / "logs", robots=1, logs=1, samples=400)


def refusal_of(logs: Path, output: Path, *words: str) -> str:
    """Run a command that fails with exit code 2, one error line and no output folder; return the line."""
    done = CliRunner().invoke(app, ["fleet", str(logs), "-o", str(output), *words])
    assert done.exit_code == 2, done.output
    assert len(done.stderr.strip().splitlines()) == 1
    assert not output.exists()
    return str(done.stderr)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", "ws://127.0.0.1:8786", "nonsense"])
def test_a_scheduler_without_tls_must_be_called_insecure(logs: Path, tmp_path: Path, address: str) -> None:
    said = refusal_of(logs, tmp_path / "run", "--scheduler", address)
    assert f"--scheduler {address}: this connection is neither encrypted nor authenticated" in said
    assert "--insecure-scheduler" in said


def test_insecure_without_a_scheduler_is_refused(logs: Path, tmp_path: Path) -> None:
    assert "name one" in refusal_of(logs, tmp_path / "run", "--insecure-scheduler")


def test_tls_needs_the_certificates_of_dask(logs: Path, tmp_path: Path) -> None:
    import dask

    said = refusal_of(logs, tmp_path / "run", "--scheduler", "tls://127.0.0.1:9")
    assert "certificates for TLS are not configured; set distributed.comm.tls.ca-file" in said
    files = {"ca-file": "none.pem", "client.cert": "none.pem", "client.key": "none.pem"}
    with dask.config.set({f"distributed.comm.tls.{key}": str(tmp_path / name) for key, name in files.items()}):
        said = refusal_of(logs, tmp_path / "run", "--scheduler", "tls://127.0.0.1:9")
    assert "certificates for TLS cannot be read (No such file" in said


def test_a_scheduler_with_tls_is_used_with_the_certificates_of_dask(tmp_path: Path) -> None:
    import dask

    security = distributed.Security.temporary()
    for name, text in (("ca", security.tls_ca_file), ("key", security.tls_client_key)):
        (tmp_path / f"{name}.pem").write_text(text)
    files = {"ca-file": "ca", "client.cert": "ca", "client.key": "key"}
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, protocol="tls://", security=security, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        dask.config.set({f"distributed.comm.tls.{k}": str(tmp_path / f"{v}.pem") for k, v in files.items()}),
        DaskExecutor(cluster.scheduler_address) as made,
    ):
        assert dict(made.results(squared, range(3))) == {0: 0, 1: 1, 2: 4}


# ---------------------------------------------------------------- servers that are not schedulers


def answer_http(talk: socket.socket) -> None:
    talk.recv(100)
    talk.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nno\r\n")


def answer_garbage(talk: socket.socket) -> None:
    talk.sendall(bytes(range(1, 256)) * 20)
    talk.recv(1 << 16)


def answer_zeros(talk: socket.socket) -> None:
    talk.sendall(bytes(5000))
    talk.recv(1 << 16)


def announce_terabytes(talk: socket.socket) -> None:
    talk.sendall((1 << 44).to_bytes(8, "little") + (1 << 36).to_bytes(8, "little") * 20)
    talk.recv(1 << 16)


def say_nothing(talk: socket.socket) -> None:
    talk.settimeout(20)
    while talk.recv(1 << 16):
        pass


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Open a port; `answer` handles every connection."""

    def serve_one(talk: socket.socket) -> None:
        with talk:
            try:
                answer(talk)
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                talk, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=serve_one, args=(talk,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=serve, daemon=True).start()
        yield door.getsockname()[1]


@pytest.mark.parametrize(
    "answer", [socket.socket.close, answer_http, answer_garbage, answer_zeros, announce_terabytes, say_nothing]
)
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_a_server_that_is_not_a_scheduler_gives_one_error_line(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, answer: Callable[[socket.socket], None]
) -> None:
    monkeypatch.setattr(executor, "_CONNECT_S", 1.0)
    monkeypatch.setattr(executor, "scheduler_security", lambda _: distributed.Security.temporary())
    if scheme == "tcp":
        monkeypatch.setattr(executor, "scheduler_security", lambda _: None)
    begun = time.monotonic()
    with listening(answer) as port:
        address = f"{scheme}://127.0.0.1:{port}"
        said = refusal_of(logs, tmp_path / "run", "--scheduler", address, "--insecure-scheduler")
    assert address in said
    assert any(words in said for words in ("not a scheduler of Dask", "closed before a scheduler", "no scheduler"))
    assert time.monotonic() - begun < 20.0


@contextmanager
def odd_scheduler(**answers: Any) -> Iterator[str]:
    """Start a server with Dask's protocol and fixed answers."""
    from distributed.core import Server
    from distributed.utils import LoopRunner

    def answering(value: Any) -> Callable[..., Any]:
        async def answer(**_: Any) -> Any:
            return value

        return answer

    async def start() -> Any:
        server = Server({name: answering(value) for name, value in answers.items()})
        await server.listen("tcp://127.0.0.1:0")
        return server

    runner = LoopRunner()
    runner.start()
    server = runner.run_sync(start)
    try:
        yield server.address
    finally:
        runner.run_sync(server.close)
        runner.stop()


def test_a_wrong_or_inconsistent_dask_server_is_reported() -> None:
    """A server with Dask's protocol that is a worker, and one that claims to be a scheduler and answers nonsense."""
    for identity in ("x", {"type": "Worker"}, None):
        with odd_scheduler(identity=identity) as address, pytest.raises(ExecutorError, match="not a scheduler of Dask"):
            connect_client(address, None, 2.0)
    with (
        odd_scheduler(identity={"type": "Scheduler"}, **{"register-client": ["x"]}) as address,
        pytest.raises(ExecutorError, match=r"not a scheduler of Dask|no scheduler|closed before"),
    ):
        connect_client(address, None, 2.0)


@pytest.mark.parametrize("answer", [["x"], {"a": "b"}, {"a": -1}, None, 5])
def test_invalid_worker_lists_are_reported(answer: Any) -> None:
    class Odd:
        scheduler = type("S", (), {"address": "tls://x:1"})

        def ncores(self, callback_timeout: float) -> Any:
            return answer

    with pytest.raises(ExecutorError, match="not a scheduler of Dask"):
        worker_cores(Odd(), 1.0)


@pytest.mark.parametrize("outcome", [None, 5, (1.0,), ("x", [1]), (1.0, [1, 2]), (float("nan"), [1]), (1.0, "x")])
def test_invalid_outcomes_are_reported(outcome: Any) -> None:
    with pytest.raises(ExecutorError, match="sent an invalid result"):
        check_outcome(outcome, 1, "tls://host:1")


def test_the_extra_installs_distributed() -> None:
    assert import_distributed() is distributed


@pytest.mark.proof
def test_random_answers_of_a_scheduler_give_one_error() -> None:
    """300 answers, half of them with valid lengths of Dask's frames."""
    import random

    rng = random.Random(1)

    def answer(talk: socket.socket) -> None:
        body = rng.randbytes(rng.choice((1, 8, 40, 400)))
        if rng.random() < 0.5:
            count = rng.choice((0, 1, 2, 7))
            sizes = [rng.choice((0, 1, len(body), 1 << 20)).to_bytes(8, "little") for _ in range(count)]
            frames = count.to_bytes(8, "little") + b"".join(sizes) + body
            body = len(frames).to_bytes(8, "little") + frames
        talk.sendall(body)

    with listening(answer) as port:
        for _ in range(300):
            with pytest.raises(ExecutorError):
                connect_client(f"tcp://127.0.0.1:{port}", None, 1.0)
