"""The process of a job: `python -m steelyard.studio.worker FOLDER`.

It runs the command, writes progress events and enforces its own limits, because the server may be gone. Jobs that are
not commands of the package, such as the plot of a long log, are `-m NAME WORDS…`.
"""

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
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from steelyard.errors import SteelyardError
from steelyard.ground.atomic_files import lock_file
from steelyard.ground.files import plain, write_whole
from steelyard.ground.interrupt import on_interrupt
from steelyard.ground.progress import ProgressReport, report_progress_to
from steelyard.studio.jobs import CANCEL_FILE, END_FILE, EVENTS_FILE, JOB_FILE, LOCK_FILE, OUTPUT_FILE, START_FILE, Jobs
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Module and function by name; the function takes the remaining words.
_INTERNAL_JOBS: dict[str, tuple[str, str]] = {"pyramid": ("steelyard.studio.mapping_editor", "draw")}


def _run_internal(words: Sequence[str]) -> None:
    """Run the internal job that the first of `words` names."""
    module, function = _INTERNAL_JOBS[words[0]]
    getattr(import_module(module), function)(*words[1:])


# Seconds between two checks of memory and time.
_CHECK_SECONDS = 0.5
# Shortest time between two events that only report progress [s].
_EVENT_SECONDS = 0.1


def run_job(folder: Path) -> int:
    """Run the job in `folder` for the studio of the current directory and return its exit code."""
    root = Path.cwd().resolve()
    jobs = Jobs(StudioFolder(root))
    if jobs.home != folder.parent:
        raise StudioError(f"{folder} is not a job of the studio in {root}; start the job from its page.")
    with (folder / LOCK_FILE).open("ab") as lock:
        if not lock_file(lock) or (folder / END_FILE).exists() or (folder / CANCEL_FILE).exists():
            return 0  # it runs in another process, or it has ended
        job = json.loads((folder / JOB_FILE).read_text("utf-8"))
        jobs.check(job["words"])
        write_whole(folder / START_FILE, json.dumps({"pid": os.getpid(), "time": time.time()}))
        # A background server may ignore SIGINT, but jobs are stopped by it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        on_interrupt()
        limits = job["limits"]
        threading.Thread(
            target=_enforce_limits, args=(folder, limits["memory_gb"], limits["hours"]), daemon=True
        ).start()
        with (folder / EVENTS_FILE).open("a", encoding="utf-8") as events, report_progress_to(_EventWriter(events)):
            code = _run(job["words"], root)
        # A check that finds an unusable log exits with 2 but still writes its result.
        output = job["output"]
        delivered = code in (0, 1, 130) or (code == 2 and bool(output) and (root / output).is_dir())
        _end(folder, code, "" if delivered else _last_line(folder), delivered)
        return code


def _run(words: list[str], root: Path) -> int:
    os.chdir(root)
    sys.argv = ["steelyard", *words]
    try:
        if words[0] == "-m":  # an internal job
            _run_internal(words[1:])
            return 0
        runpy.run_module("steelyard", run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 2
    except Exception:  # a bug: the traceback goes to the output and the job fails
        traceback.print_exc()
        return 2
    return 0


class _EventWriter:
    """Writes progress as one JSON line per event."""

    def __init__(self, events: IO[str]) -> None:
        self._events, self._last, self._stage = events, 0.0, ""

    def __call__(self, at: ProgressReport) -> None:
        results = getattr(at, "results", None)
        now = time.monotonic()
        # A search repeats its current trial (`now`) in the next event, so dropping one loses nothing.
        if (not results or "now" in results) and at.stage == self._stage and now - self._last < _EVENT_SECONDS:
            return
        self._last, self._stage = now, at.stage
        event: dict[str, Any] = {"stage": at.stage, "fraction": at.fraction, "message": at.message, "time": time.time()}
        if results:
            event["seen"] = plain(dict(results))
        self._events.write(json.dumps(event) + "\n")
        self._events.flush()


def _enforce_limits(folder: Path, memory_gb: float, hours: float) -> None:
    """End the job and all its processes when it exceeds its memory or time."""
    start = time.monotonic()
    while True:
        time.sleep(_CHECK_SECONDS)
        used = sum(_resident(pid) for pid in _process_tree(os.getpid())) / 1e9
        if used > memory_gb:
            _abort(folder, f"The job used {used:.1f} GB of memory; the limit is {memory_gb:g} GB (--memory).")
        if time.monotonic() - start > 3600.0 * hours:
            _abort(folder, f"The job took longer than its limit of {hours:g} h (--hours).")


def _abort(folder: Path, why: str) -> None:
    _end(folder, 2, why)
    if hasattr(os, "killpg"):
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os._exit(2)


def _process_tree(pid: int) -> list[int]:
    """List a process and its descendants; only itself where there is no /proc."""
    tree = [pid]
    for process in tree:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                tree += [int(word) for word in (thread / "children").read_text().split()]
    return tree


def _resident(pid: int) -> int:
    """Return the resident memory of a process [bytes]."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        if pid != os.getpid() or sys.platform == "win32":
            return 0
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _end(folder: Path, code: int, message: str, delivered: bool = False) -> None:
    end = {"code": code, "message": message, "delivered": delivered, "time": time.time()}
    write_whole(folder / END_FILE, json.dumps(end))


def _last_line(folder: Path) -> str:
    sys.stderr.flush()
    lines = [line.strip() for line in (folder / OUTPUT_FILE).read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("steelyard: ") if lines else "The job failed without a message."


if __name__ == "__main__":
    try:
        sys.exit(run_job(Path(sys.argv[1])))
    except (SteelyardError, OSError) as error:
        sys.exit(f"steelyard: {error}")
