"""Attack the studio with hostile folders: python -m fuzz.folders [--trials N] [--seed N] [--first N].

Each trial makes a folder (`fuzz.hostile_folder`), opens the studio in it, looks at its jobs and asks for some of its
pages. A trial fails if a process starts or gets a signal, a connection opens, a pickle loads, a file outside of the
folder and of the user's state is opened, made, moved or removed, a page fails or shows a script, or if it takes long.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz.hostile_folder import SCRIPT, SECRET, HostileFolder
from fuzz.run import _own_time
from steelyard.errors import SteelyardError
from steelyard.studio.helper_process import HelperProcess, _call
from steelyard.studio.jobs import Jobs
from steelyard.studio.server import ServeOptions, make_app
from steelyard.studio.studio_folder import StudioError, StudioFolder

SECONDS_EACH = 10.0
PORT = 8421
PAGES = (
    "/", "/robot", "/data", "/check", "/motion", "/identify", "/use", "/library", "/library?view=trash",
    "/library?run=runs/a", "/library?run=runs/b", "/library?run=runs/c", "/library?run=runs/d", "/library?run=runs/e",
    "/library?compare=runs/a&compare=runs/c", "/file/runs/a/report.html", "/file/runs/e/../../../outside/log.csv",
    "/data/data/plot?log=logs/a.csv", "/data/motion/shown?run=runs/c", "/body/robot", "/body/check", "/rail/use",
    "/use?model=runs/a", "/identify?run=runs/a", "/jobs/1/events", "/drives", "/data/drives/form", "/body/data",
    "/data/robot/poses?table=poses/a.csv", "/data/data/meaning?log=logs/bag", "/library?run=runs/f",
    "/library?run=runs/g",
)  # fmt: skip
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pickle.find_class",
    "socket.connect", "os.kill", "os.killpg", "os.putenv", "os.chmod", "os.chown",
)  # fmt: skip
# Events that change a file, and how many of their arguments are paths.
_CHANGES = {
    "os.remove": 1, "os.rename": 2, "os.rmdir": 1, "os.mkdir": 1, "os.symlink": 2, "os.link": 2, "os.truncate": 1,
    "shutil.rmtree": 1, "os.mkfifo": 1,
}  # fmt: skip


class Breach(BaseException):
    """The studio did what no folder may make it do."""


class FolderWatch:
    """Sees what happens during a trial, by Python's audit events and a clock."""

    def __init__(self) -> None:
        self._allowed: tuple[str, ...] = ()
        self._guarded = ""
        self.breach = ""
        self._on, self._begun = False, 0.0
        sys.addaudithook(self._audit)

    @contextmanager
    def watching(self, hostile: HostileFolder) -> Iterator[None]:
        """Watch one trial.

        Args:
            hostile: the folder; it and the state may be changed, nothing else beside it may be opened.
        """
        self._allowed = tuple(os.path.realpath(p) for p in (hostile.folder, hostile.state))
        self._guarded, self.breach = os.path.realpath(hostile.bait), ""
        self._begun = _own_time()
        before = signal.signal(signal.SIGALRM, self._over)
        signal.setitimer(signal.ITIMER_REAL, SECONDS_EACH)
        # Importing a module during a trial may write its compiled form beside it, which is not a fault of the studio.
        compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        self._on = True
        try:
            yield
        finally:
            self._on, sys.dont_write_bytecode = False, compiled
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _over(self, number: int, frame: FrameType | None) -> None:
        left = SECONDS_EACH - (_own_time() - self._begun)
        if left < 0.01:
            self._fail(f"it took more than {SECONDS_EACH:g} s")
        signal.setitimer(signal.ITIMER_REAL, left)  # others had the processor

    def _fail(self, words: str) -> None:
        self._on = False
        self.breach = words + "\n" + "".join(traceback.format_stack(limit=14)[:-2])
        raise Breach(words)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _FORBIDDEN:
            self._fail(f"{event} {arguments!r:.300}")
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            self._opened(os.fsdecode(arguments[0]), arguments[1], arguments[2])
        for path in arguments[: _CHANGES.get(event, 0)]:
            text = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
            if text and not os.path.isabs(text) and isinstance(arguments[-1], int) and arguments[-1] >= 0:
                text = os.path.join(os.readlink(f"/proc/self/fd/{arguments[-1]}"), text)
            if text and text not in self._allowed and not self._is_inside(os.path.dirname(text)):
                self._fail(f"{event} {arguments!r:.300}")

    def _opened(self, path: str, mode: Any, flags: Any) -> None:
        self._on = False  # to resolve a path opens nothing, but it must not watch itself
        real = os.path.realpath(path)
        self._on = True
        writes = (isinstance(mode, str) and bool(set(mode) & set("wax+"))) or (
            isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        )
        if real.startswith(self._guarded) or real in ("/etc/passwd", "/etc/shadow", "/dev/zero"):
            self._fail(f"opened {path}")
        if writes and not self._is_inside(real) and real != "/dev/null":
            self._fail(f"opened for writing {path}")

    def _is_inside(self, path: str) -> bool:
        self._on, on = False, self._on
        real = os.path.realpath(path)
        self._on = on
        return any(real == one or real.startswith(one + os.sep) for one in self._allowed)


class _InProcess(HelperProcess):
    """Small computations in this process, where they are watched."""

    async def ask(self, function: Callable[..., Any], *args: Any, seconds: float = 60.0) -> Any:
        self.check_project()
        kind, found = _call(str(self.folder.root), function, args)
        if kind == "error":
            raise StudioError(found)
        return found


def trial(hostile: HostileFolder, watch: FolderWatch, seed: int, number: int) -> str:
    """Make a folder and attack; returns what went wrong, or "".

    Args:
        hostile: where the folder is made.
        watch: sees what happens.
        seed: of the campaign.
        number: of the trial.
    """
    rng = random.Random(f"{seed}/folder/{number}")
    hostile.make(rng)
    os.environ["STEELYARD_STATE"] = str(hostile.state)
    before = _listing(hostile.bait)
    here = os.getcwd()
    pages = ["/jobs", *rng.sample(PAGES, 3)]
    try:
        with watch.watching(hostile):
            said = asyncio.run(_attack(hostile, pages))
    except Breach:
        said = watch.breach
    except BaseException:  # whatever it is, it is a finding
        said = watch.breach or traceback.format_exc(limit=-12)
    finally:
        os.chdir(here)
    if watch.breach and not said:  # something caught it on its way
        said = watch.breach
    if _listing(hostile.bait) != before:
        said += "\nthe bait outside has changed"
    return f"trial {number}, {pages}: {said}" if said else ""


async def _attack(hostile: HostileFolder, pages: list[str]) -> str:
    folder = StudioFolder(hostile.folder)
    folder.sweep_uploads()
    jobs = Jobs(folder)
    jobs.step()
    app, address = make_app(folder, ServeOptions(), PORT, _InProcess(folder))
    cookie = (await _ask(app, "/?" + address.partition("?")[2], ""))[2]
    if not cookie:
        return "the right token does not open the door"
    for path in ("/", "/?token=", f"/?token={SECRET}", "/jobs"):
        status, _, leaked = await _ask(app, path, "")
        if status != 401 or leaked:
            return f"{path} opens the door without the token"
    for path in pages:
        status, body, _ = await _ask(app, path, cookie)
        if status >= 500 or b"Traceback" in body:
            return f"{path}: answered {status}"
        if SECRET.encode() in body:
            return f"{path}: shows what lies outside"
        if SCRIPT.encode() in body and not path.startswith("/file/"):
            return f"{path}: shows a script"
    jobs.step()
    return "a job is in the queue" if jobs.all() else ""


async def _ask(app: Any, path: str, cookie: str) -> tuple[int, bytes, str]:
    """Ask the application itself; returns status, body and the cookie that it sets."""
    where, _, query = path.partition("?")
    headers = [(b"host", b"127.0.0.1:%d" % PORT), (b"x-steelyard", b"1")]
    headers += [(b"cookie", cookie.encode())] if cookie else []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": where, "raw_path": where.encode(), "query_string": query.encode(), "headers": headers, "root_path": "",
        "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    status, body, made = 0, bytearray(), ""

    asked = False

    async def receive() -> Any:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()  # a browser that waits for its answer
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, made
        if message["type"] == "http.response.start":
            status = message["status"]
            found = dict(message["headers"]).get(b"set-cookie", b"")
            made = found.decode().partition(";")[0]
        else:
            body.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(body), made


def _listing(folder: Path) -> list[Any]:
    return sorted((p.name, p.lstat().st_size, p.lstat().st_mtime_ns) for p in folder.rglob("*"))


def campaign(trials: int, seed: int, first: int = 0, say: Callable[[str], Any] = print) -> list[str]:
    """Run some trials; returns what went wrong, one text for each kind of failure.

    Args:
        trials: how many.
        seed: of all of them.
        first: the number of the first.
        say: is told how far it is.
    """
    base = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    state = os.environ.get("STEELYARD_STATE")
    watch, kinds, begun = FolderWatch(), dict[str, str](), time.monotonic()
    counts: Counter[str] = Counter()
    try:
        hostile = HostileFolder(base)
        for number in range(first, first + trials):
            if said := trial(hostile, watch, seed, number):
                lines = [line for line in said.splitlines() if line.strip().startswith("File ")]
                key = "\n".join(lines[-2:]) or said.partition(": ")[2]
                kinds.setdefault(key, said)
                counts[key] += 1
            if (number - first) % 1000 == 999:
                say(f"{number + 1 - first} folders, {sum(counts.values())} failed, {time.monotonic() - begun:.0f} s")
    finally:
        shutil.rmtree(base, ignore_errors=True)
        os.environ.pop("STEELYARD_STATE", None)
        if state is not None:
            os.environ["STEELYARD_STATE"] = state
    return [f"{counts[key]} times: {said}" for key, said in kinds.items()]


def main() -> int:
    """Run the campaign of the command line."""
    parser = argparse.ArgumentParser(prog="fuzz.folders", description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    found = campaign(given.trials, given.seed, given.first, lambda words: print(words, flush=True))
    for said in found:
        print(f"\n{said}")
    print(f"{given.trials} folders, {len(found)} kinds of failures")
    return 1 if found else 0


if __name__ == "__main__":
    with suppress(SteelyardError):
        sys.exit(main())
