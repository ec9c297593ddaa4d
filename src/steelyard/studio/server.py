"""`serve`: the studio on this machine, until it is ended."""

from __future__ import annotations

import html
import shutil
import socket
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from steelyard.ground.atomic_files import lock_file
from steelyard.ground.extras import import_extra
from steelyard.ground.files import write_whole
from steelyard.studio.aside import AsideProcess
from steelyard.studio.jobs import JobLimits, Jobs
from steelyard.studio.place import DOORWAY, StudioError, StudioFolder

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# The page that a browser is started with: it leads on to the address, which no process has in its arguments.
_DOORWAY = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={address}"></head>
<body><p><a href="{address}">Open the studio</a></p></body></html>
"""


@dataclass(frozen=True)
class ServeOptions:
    """How a studio is served.

    Args:
        host: the address to listen at; others than this machine's own let others in who have the token.
        port: 0: a free one.
        show: open a browser.
        limits: of the jobs.
        upload_gb: the largest file that may be sent.
        names: more names, with port, under which it may be asked for.
    """

    host: str = "127.0.0.1"
    port: int = 8421
    show: bool = True
    limits: JobLimits = field(default_factory=JobLimits)
    upload_gb: float = 16.0
    names: tuple[str, ...] = ()


def serve(folder: str, options: ServeOptions, say: Callable[[str], Any] = print) -> None:
    """Serve the studio of a `folder`, with `options`, until it is ended; `say` is told the address."""
    uvicorn = import_extra("uvicorn", "studio", "The studio", StudioError)
    import_extra("starlette", "studio", "The studio", StudioError)
    import_extra("tomlkit", "studio", "The studio", StudioError)
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise StudioError(f"{folder} is a file; a studio works in a folder.")
    path.mkdir(parents=True, exist_ok=True)
    place = StudioFolder(path)
    with place.own("lock").open("ab") as lock:
        _alone(lock, place)
        place.sweep_uploads()
        shutil.rmtree(place.own("new"), ignore_errors=True)  # jobs that a killed server did not finish writing
        sock = listening(options)
        port = sock.getsockname()[1]
        app, address = make_app(place, options, port)
        say(address)
        if options.show:
            # Arguments of a process are visible to all users of the machine: the token stands in a file instead.
            doorway = place.own(DOORWAY)
            write_whole(doorway, _DOORWAY.format(address=html.escape(address)), private=True)
            webbrowser.open(doorway.as_uri())
        uvicorn.Server(server_config(app)).run(sockets=[sock])


def server_config(app: Any) -> Any:
    """The settings of uvicorn for the studio.

    Args:
        app: the guarded application (ASGI).
    """
    import uvicorn

    from steelyard.studio.connections import TimedProtocol

    return uvicorn.Config(
        app, log_level="critical", access_log=False, limit_concurrency=200, timeout_keep_alive=5, ws="none",
        timeout_graceful_shutdown=2, server_header=False, date_header=False, http=TimedProtocol,
    )  # fmt: skip


def make_app(
    place: StudioFolder, options: ServeOptions, port: int, aside: AsideProcess | None = None
) -> tuple[Any, str]:
    """Make the guarded application of a folder; returns it with the address that opens it.

    Args:
        place: the folder.
        options: how it is served.
        port: where it listens.
        aside: runs small computations; default: a process of its own.
    """
    from steelyard.studio.app import Studio
    from steelyard.studio.guard import Guard, Keys
    from steelyard.studio.stage import Desk

    keys = Keys(port)
    studio = Studio(
        Desk(place, Jobs(place, options.limits), aside or AsideProcess(place)), int(options.upload_gb * 1e9)
    )
    shown = f"[{options.host}]" if ":" in options.host else options.host
    names = [f"{name}:{port}" for name in (*_LOOPBACK, shown)] + list(options.names)
    shown = "127.0.0.1" if shown in ("0.0.0.0", "[::]") else shown
    return Guard(studio.app(), keys, names), f"http://{shown}:{port}/?token={keys.token}"


def _alone(lock: IO[bytes], place: StudioFolder) -> None:
    if not lock_file(lock):
        raise StudioError(f"A studio is open in {place.root} already; use that one, or end it first.")


def listening(options: ServeOptions) -> socket.socket:
    """A socket at the address that `options` name."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    if sys.platform != "win32":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((options.host, options.port))
        sock.listen()  # a browser that is quicker than the server waits
    except OSError as error:
        sock.close()
        raise StudioError(
            f"Port {options.port} of {options.host} cannot be used ({error.strerror}); give another one with --port, "
            "or 0 for any that is free."
        ) from None
    return sock
