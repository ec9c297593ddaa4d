"""Servers on loopback that tests read logs from: http with ranges, and S3 by moto. Both count what they hand out."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Served:
    """The requests that a server has answered.

    Attributes:
        url: where it is.
        requests: method, path and bytes of each answer.
        drops: how many of the next requests are left without an answer.
    """

    url: str
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    drops: int = 0

    @property
    def gets(self) -> int:
        return sum(method == "GET" for method, _, _ in self.requests)

    @property
    def total(self) -> int:
        return sum(size for _, _, size in self.requests)


@contextmanager
def http_server(folder: Path, ranges: bool = True) -> Iterator[Served]:
    """The files of a folder; those with "secret" in their path are refused; without `ranges` only whole."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(self.command == "GET")

        do_HEAD = do_GET

        def _answer(self, body: bool) -> None:
            if body and served.drops:
                served.drops -= 1
                self.close_connection = True
                return
            path = folder / self.path.partition("?")[0].lstrip("/")
            data, code = (path.read_bytes(), 200) if path.is_file() else (b"", 404)
            if "secret" in self.path:
                data, code = b"", 403
            tag, wanted = hashlib.sha256(data).hexdigest(), self.headers.get("Range")
            if code == 200 and ranges and wanted:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                data, code = data[int(first) : int(last) + 1 if last else None], 206
            served.requests.append((self.command, self.path, len(data) if body else 0))
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", f'"{tag}"')
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Served(f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield served
        finally:
            server.shutdown()


@contextmanager
def s3_server() -> Iterator[Served]:
    """moto's server: buckets in memory, spoken to as S3."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    application = DomainDispatcherApplication(create_backend_app)

    def counted(environ: Any, start: Any) -> Any:
        answer = b"".join(application(environ, start))
        served.requests.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], len(answer)))
        return [answer]

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            pass

    server = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=Quiet)
    served = Served(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def s3_bucket(name: str) -> Iterator[tuple[Served, Any]]:
    """A new bucket on such a server, which every client finds by the environment; and s3fs, to fill it."""
    s3fs = pytest.importorskip("s3fs")
    with s3_server() as served, pytest.MonkeyPatch.context() as patch:
        for variable, value in s3_environment(served).items():
            patch.setenv(variable, value)
        s3fs.S3FileSystem.clear_instance_cache()
        system = s3fs.S3FileSystem()
        system.mkdir(name)
        yield served, system
    s3fs.S3FileSystem.clear_instance_cache()


def s3_environment(served: Served) -> dict[str, str]:
    """The variables that lead every client of S3 to that server, in this process and in others."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
    return {**keys, "AWS_ENDPOINT_URL": served.url, "AWS_DEFAULT_REGION": "us-east-1"}
