"""`serve`: runs the studio's web server on this machine.

`TimedProtocol` closes connections that send no complete request, so that idle ones cannot block the server: uvicorn
limits the time between two requests, but not the time until the headers of a request are complete.
"""

from __future__ import annotations

import asyncio
import html
import shutil
import socket
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from steelyard.ground.atomic_files import lock_file
from steelyard.ground.extras import import_extra
from steelyard.ground.files import write_whole
from steelyard.studio.helper_process import HelperProcess
from steelyard.studio.jobs import JobLimits, Jobs
from steelyard.studio.studio_folder import START_PAGE, StudioError, StudioFolder

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# First page of the browser: redirects to the address with the token, which therefore is in no process's arguments.
_START_HTML = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={address}"></head>
<body><p><a href="{address}">Open the studio</a></p></body></html>
"""


@dataclass(frozen=True)
class ServeOptions:
    """Settings of the server.

    Args:
        host: Address to listen at. Other addresses than loopback admit anyone on the network with the token.
        port: Port; 0 for a free one.
        show: Whether to open a browser.
        limits: Limits of the jobs.
        upload_gb: Largest upload [GB].
        names: Further allowed values of the Host header, with port.
    """

    host: str = "127.0.0.1"
    port: int = 8421
    show: bool = True
    limits: JobLimits = field(default_factory=JobLimits)
    upload_gb: float = 16.0
    names: tuple[str, ...] = ()


def serve(folder: str, options: ServeOptions, say: Callable[[str], Any] = print) -> None:
    """Serve the studio of a folder until the process ends.

    Args:
        folder: The working folder; created if it does not exist.
        options: Settings of the server.
        say: Receives the address of the studio.
    """
    uvicorn = import_extra("uvicorn", "studio", "The studio", StudioError)
    import_extra("starlette", "studio", "The studio", StudioError)
    import_extra("tomlkit", "studio", "The studio", StudioError)
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise StudioError(f"{folder} is a file; give a folder.")
    path.mkdir(parents=True, exist_ok=True)
    studio = StudioFolder(path)
    with studio.state_path("lock").open("ab") as lock:
        if not lock_file(lock):
            raise StudioError(f"Another studio is already open in {studio.root}; use that one, or end it first.")
        studio.sweep_uploads()
        shutil.rmtree(studio.state_path("new"), ignore_errors=True)  # unfinished job folders of a killed server
        sock = open_socket(options)
        port = sock.getsockname()[1]
        app, address = make_app(studio, options, port)
        say(address)
        if options.show:
            # All users of a machine can see process arguments, so the token goes into a private file.
            start_page = studio.state_path(START_PAGE)
            write_whole(start_page, _START_HTML.format(address=html.escape(address)), private=True)
            webbrowser.open(start_page.as_uri())
        uvicorn.Server(server_config(app)).run(sockets=[sock])


def server_config(app: Any) -> Any:
    """Return the uvicorn settings for the guarded application `app` (ASGI)."""
    import uvicorn

    return uvicorn.Config(
        app, log_level="critical", access_log=False, limit_concurrency=200, timeout_keep_alive=5, ws="none",
        timeout_graceful_shutdown=2, server_header=False, date_header=False, http=TimedProtocol,
    )  # fmt: skip


def make_app(
    folder: StudioFolder, options: ServeOptions, port: int, helper: HelperProcess | None = None
) -> tuple[Any, str]:
    """Create the guarded application of a folder, and the address with the token that opens it.

    Args:
        folder: The studio's folder.
        options: Settings of the server.
        port: Port of the server.
        helper: Runs small computations; default: a new helper process.
    """
    from steelyard.studio.app import Studio
    from steelyard.studio.guard import Guard, Keys
    from steelyard.studio.stage import StageContext

    keys = Keys(port)
    studio = Studio(
        StageContext(folder, Jobs(folder, options.limits), helper or HelperProcess(folder)),
        int(options.upload_gb * 1e9),
    )
    host = f"[{options.host}]" if ":" in options.host else options.host
    names = [f"{name}:{port}" for name in (*_LOOPBACK, host)] + list(options.names)
    host = "127.0.0.1" if host in ("0.0.0.0", "[::]") else host
    return Guard(studio.app(), keys, names), f"http://{host}:{port}/?token={keys.token}"


def open_socket(options: ServeOptions) -> socket.socket:
    """Return a listening socket at the host and port of the `options`."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((options.host, options.port))
        sock.listen()  # from now on a browser waits until the server is ready
    except OSError as error:
        sock.close()
        raise StudioError(
            f"Port {options.port} of {options.host} cannot be used ({error.strerror}); choose another one with --port, "
            "or --port 0 for any free port."
        ) from None
    return sock


# Time limit for the headers of a request [s].
HEADER_SECONDS = 10.0
# Largest number of idle connections; the oldest is closed if there are more.
MOST_IDLE = 64


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a time limit for headers and a limit on idle connections."""

    # Idle connections by server, oldest first.
    _idle: dict[int, dict[TimedProtocol, asyncio.TimerHandle]] = {}  # noqa: RUF012

    @property
    def _mine(self) -> dict[TimedProtocol, asyncio.TimerHandle]:
        return self._idle.setdefault(id(self.server_state), {})

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of a new connection with this `transport`."""
        super().connection_made(transport)
        self._wait()

    def handle_events(self) -> None:
        """Process received data; a complete request ends the time limit."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request."""
        super().on_response_complete()
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended; `exc` is the error, or None if it was closed."""
        self._stop_waiting()
        if not self._mine:
            self._idle.pop(id(self.server_state), None)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._mine[self] = self.loop.call_later(HEADER_SECONDS, self._give_up)
        while len(self._mine) > MOST_IDLE:
            next(iter(self._mine))._give_up()

    def _stop_waiting(self) -> None:
        timer = self._mine.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()
