"""The process of a job: `python -m steelyard.studio.worker JOB`. It runs the command, tells how far it is, and keeps to
its limits by itself, since the server may be gone."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Any

from steelyard.errors import SteelyardError
from steelyard.ground.atomic_files import lock_file
from steelyard.ground.files import plain, write_whole
from steelyard.ground.interrupt import on_interrupt
from steelyard.ground.progress import HowFar, report_progress_to
from steelyard.studio.jobs import BEGUN, CANCELLED, ENDED, EVENTS, JOB, LOCK, SAID, Jobs
from steelyard.studio.place import StudioError, StudioFolder

# Seconds between two looks at memory and time.
_LOOK = 0.5
# Events that carry nothing but how far it is are told no more often.
_OFTEN = 0.1


def work_off(folder: Path) -> int:
    """Run a job of the studio whose folder is the working folder; returns its exit code.

    Args:
        folder: of the job, in this user's state folder of that studio.
    """
    root = Path.cwd().resolve()
    jobs = Jobs(StudioFolder(root))
    if jobs.home != folder.parent:
        raise StudioError(f"{folder} is no job of the studio of {root}; start the job from its page.")
    with (folder / LOCK).open("ab") as lock:
        if not lock_file(lock) or (folder / ENDED).exists() or (folder / CANCELLED).exists():
            return 0  # another one runs it, or it is over
        asked = json.loads((folder / JOB).read_text("utf-8"))
        jobs.check(asked["words"])
        write_whole(folder / BEGUN, json.dumps({"pid": os.getpid(), "time": time.time()}))
        # What a server in the background was told to ignore, its jobs are not: it is how they are stopped.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        on_interrupt()
        limits = asked["limits"]
        threading.Thread(target=_watch, args=(folder, limits["memory_gb"], limits["hours"]), daemon=True).start()
        with (folder / EVENTS).open("a", encoding="utf-8") as events, report_progress_to(_Teller(events)):
            code = _run(asked["words"], root)
        # A check that finds a log of no use exits with 2, and delivers all the same.
        output = asked["output"]
        delivered = code in (0, 1, 130) or (code == 2 and bool(output) and (root / output).is_dir())
        _end(folder, code, "" if delivered else _last_words(folder), delivered)
        return code


def _run(words: list[str], root: Path) -> int:
    os.chdir(root)
    sys.argv = ["steelyard", *words]
    try:
        if words[0] == "-m":  # what the studio prepares for itself
            from steelyard.studio.prepared import run

            run(words[1:])
            return 0
        runpy.run_module("steelyard", run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except Exception:  # a mistake of ours: what it says is kept, and the job is known to have failed
        traceback.print_exc()
        return 2
    return 0


class _Teller:
    """Writes what is told, a line each."""

    def __init__(self, events: IO[str]) -> None:
        self._events, self._last, self._stage = events, 0.0, ""

    def __call__(self, at: HowFar) -> None:
        seen = getattr(at, "seen", None)
        now = time.monotonic()
        # What a search tries at this moment (`now`) is told again at the next one.
        if (not seen or "now" in seen) and at.stage == self._stage and now - self._last < _OFTEN:
            return
        self._last, self._stage = now, at.stage
        told: dict[str, Any] = {"stage": at.stage, "fraction": at.fraction, "message": at.message, "time": time.time()}
        if seen:
            told["seen"] = plain(dict(seen))
        self._events.write(json.dumps(told) + "\n")
        self._events.flush()


def _watch(folder: Path, memory_gb: float, hours: float) -> None:
    """Ends the job, with all its processes, when it takes too much."""
    begun = time.monotonic()
    while True:
        time.sleep(_LOOK)
        used = sum(_resident(pid) for pid in _family(os.getpid())) / 1e9
        if used > memory_gb:
            _give_up(folder, f"It took {used:.1f} GB of memory, and {memory_gb:g} GB are allowed (--memory).")
        if time.monotonic() - begun > 3600.0 * hours:
            _give_up(folder, f"It took longer than the {hours:g} h that are allowed (--hours).")


def _give_up(folder: Path, why: str) -> None:
    _end(folder, 2, why)
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(2)


def _family(pid: int) -> list[int]:
    """A process and all that it has started, as far as the system says."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += [int(word) for word in (thread / "children").read_text().split()]
    return found


def _resident(pid: int) -> int:
    """Bytes of memory that a process has at this moment."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        if pid != os.getpid() or sys.platform == "win32":
            return 0
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _end(folder: Path, code: int, message: str, delivered: bool = False) -> None:
    ended = {"code": code, "message": message, "delivered": delivered, "time": time.time()}
    write_whole(folder / ENDED, json.dumps(ended))


def _last_words(folder: Path) -> str:
    sys.stderr.flush()
    lines = [line.strip() for line in (folder / SAID).read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("steelyard: ") if lines else "It ended with an error, and said nothing."


if __name__ == "__main__":
    try:
        sys.exit(work_off(Path(sys.argv[1])))
    except (SteelyardError, OSError) as error:
        sys.exit(f"steelyard: {error}")
