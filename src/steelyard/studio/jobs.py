"""`Jobs`: runs commands in child processes that outlive the server.

A job is a folder in the user's state folder, never in the studio's folder, which may come from a stranger. Its files
are written atomically. A running job holds a file lock; a free lock marks it as lost. So a restarted server finds all
jobs again.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from steelyard.ground.atomic_files import lock_file
from steelyard.ground.files import write_whole
from steelyard.studio.allowed_commands import check_command
from steelyard.studio.studio_folder import StudioError, StudioFolder

JobState = Literal["waiting", "running", "done", "failed", "cancelled", "lost"]
JOB_FILE, START_FILE, END_FILE, EVENTS_FILE, OUTPUT_FILE, CANCEL_FILE, STOP_FILE, LOCK_FILE = (
    "job.json", "begun.json", "ended.json", "events.jsonl", "said.txt", "cancelled", "stopped", "lock",
)  # fmt: skip
BEING_STOPPED = "being stopped"
# Time between SIGTERM and SIGKILL [s].
_KILL_SECONDS = 3.0
# Largest part of a job's events or console output that is read [bytes].
_TAIL = 400_000


@dataclass(frozen=True)
class JobLimits:
    """Limits of jobs.

    Attributes:
        memory_gb: Memory of a job with all its processes [GB].
        hours: Run time [h].
        at_once: Number of jobs that run at a time.
    """

    memory_gb: float = 8.0
    hours: float = 24.0
    at_once: int = 2


@dataclass(frozen=True)
class StudioJob:
    """A command in the queue and its state.

    Args:
        id: Name of its folder; sorts by creation time.
        stage: Stage that started it.
        title: Title on the page.
        words: Words of the command, without `steelyard`.
        output: Run folder that it writes, relative; "" if none.
        state: State of the job.
        code: Exit code; None before it ended.
        message: Last message, or the reason why it ended.
        began: Start time [s since 1970]; 0.0 before.
        ended: End time [s since 1970]; 0.0 before.
    """

    id: str
    stage: str
    title: str
    words: tuple[str, ...]
    output: str = ""
    state: JobState = "waiting"
    code: int | None = None
    message: str = ""
    began: float = 0.0
    ended: float = 0.0

    @property
    def command(self) -> str:
        """The command line, quoted for a shell."""
        return shlex.join(["steelyard", *self.words])

    @property
    def live(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")


class Jobs:
    """The jobs of a studio.

    Args:
        folder: The studio's folder.
        limits: Limits of jobs.
    """

    def __init__(self, folder: StudioFolder, limits: JobLimits | None = None) -> None:
        self.folder, self.limits = folder, limits or JobLimits()
        self.home = folder.state_path("jobs", "x").parent
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._kill_times: dict[str, float] = {}
        self._ended: dict[str, StudioJob] = {}  # cache: ended jobs do not change
        self._failed_starts: dict[str, str] = {}  # messages of processes that ended before they wrote START_FILE

    # ------------------------------------------------------------ reading

    def all(self) -> list[StudioJob]:
        """List every job, newest first."""
        names = sorted(os.listdir(self.home), reverse=True)
        return [job for name in names if (job := self._cached(name)) is not None]

    def get(self, name: str) -> StudioJob:
        """Return the job with the id `name`."""
        job = self._cached(name) if name.replace("-", "").isalnum() else None
        if job is None:
            raise StudioError("This job does not exist; it may have been cleared. Reload the page.")
        return job

    def of_stage(self, stage: str) -> Iterator[StudioJob]:
        """Iterate over the jobs of a `stage`, newest first."""
        return (job for job in self.all() if job.stage == stage)

    def outputs(self) -> tuple[str, ...]:
        """Return the run folders that waiting and running jobs will write."""
        return tuple(job.output for job in self.all() if job.live and job.output)

    def events(self, name: str, begin: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Read events of a job; returns them with the position for the next call.

        Args:
            name: Id of the job.
            begin: Position in its event file [bytes].
        """
        events: list[dict[str, Any]] = []
        with contextlib.suppress(OSError), (self.home / name / EVENTS_FILE).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size - begin > _TAIL:
                file.seek(size - _TAIL)
                file.readline()
                begin = file.tell()
            file.seek(begin)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                begin += len(line)
                with contextlib.suppress(ValueError):
                    events.append(json.loads(line))
        return events, begin

    def console_output(self, name: str) -> str:
        """Return the end of the console output of the job `name`."""
        with contextlib.suppress(OSError), (self.home / name / OUTPUT_FILE).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            return file.read().decode("utf-8", "replace")
        return ""

    def job_folder(self, name: str) -> Path:
        """Return the folder of the job `name`."""
        return self.home / self.get(name).id

    # ------------------------------------------------------------ actions

    def add(self, stage: str, title: str, words: Sequence[str], output: str = "") -> StudioJob:
        """Put a command into the queue; a StudioError if the studio does not compose such commands.

        Args:
            stage: Stage that starts it.
            title: Title on the page.
            words: Words of the command, without `steelyard`.
            output: Run folder that it writes, relative; "" if none.
        """
        self.check(words)
        job = StudioJob(
            f"{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(3)}", stage, title, tuple(words), output
        )
        staging = self.folder.state_path("new", job.id)
        staging.mkdir()
        limits = asdict(self.limits)
        document = {"stage": stage, "title": title, "words": list(words), "output": output, "limits": limits}
        write_whole(staging / JOB_FILE, json.dumps(document))
        staging.rename(self.home / job.id)
        self.step()
        return self.get(job.id)

    def check(self, words: Sequence[str]) -> None:
        """Raise a StudioError if a job may not run the command `words` (without `steelyard`)."""
        self.folder.project()  # checks the project's paths, which the command will read
        check_command(self.folder.root, tuple(words), self.folder.state_path("pyramids", "x").parent)

    def cancel(self, name: str) -> None:
        """End the job `name` with all its processes; its run folder is not written."""
        job = self.get(name)
        if job.live:
            (self.home / name / CANCEL_FILE).touch()
            self._signal(name, signal.SIGTERM)
            self._kill_times[name] = time.monotonic() + _KILL_SECONDS

    def stop(self, name: str) -> None:
        """Interrupt the search `name` once, so that it saves its best result; a second signal would abort it."""
        if self.get(name).state == "running" and not (self.home / name / STOP_FILE).exists():
            (self.home / name / STOP_FILE).touch()
            self._signal(name, signal.SIGINT)

    def clear(self, name: str) -> None:
        """Remove the ended job `name` from the list; its run stays."""
        job = self.get(name)
        if job.live:
            raise StudioError("The job is running; cancel it first.")
        shutil.rmtree(self.home / name, ignore_errors=True)
        self._ended.pop(name, None)
        self._failed_starts.pop(name, None)

    def step(self) -> None:
        """Start waiting jobs and kill cancelled ones; called periodically."""
        for name, process in list(self._started.items()):
            if process.poll() is not None:
                del self._started[name]
                if _object(self.home / name / START_FILE) is None:
                    lines = self.console_output(name).split("\n")
                    why = next((line.strip() for line in reversed(lines) if line.strip()), "the disk may be full")
                    self._failed_starts[name] = f"The job could not start: {why}"
        for name, when in list(self._kill_times.items()):
            if time.monotonic() > when:
                self._signal(name, signal.SIGKILL)
                del self._kill_times[name]
        jobs = self.all()
        running = sum(job.state == "running" or job.id in self._started for job in jobs)
        for job in reversed(jobs):
            if job.state == "waiting" and job.id not in self._started and running < self.limits.at_once:
                self._start(job.id)
                running += 1

    def _start(self, name: str) -> None:
        folder = self.home / name
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "100", "NO_COLOR": "1"}
        with (folder / OUTPUT_FILE).open("ab") as output:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-m", "steelyard.studio.worker", str(folder)],
                cwd=self.folder.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def _signal(self, name: str, number: int) -> None:
        """Send a signal to the job; a signal that ends it goes to all its processes."""
        pid = _number(self.home / name / START_FILE, "pid") if self._alive(name) else None
        if pid is None and name in self._started and self._started[name].poll() is None:
            pid = self._started[name].pid
        if pid is None:
            return
        with contextlib.suppress(OSError):
            if number == signal.SIGINT or not hasattr(os, "killpg"):
                os.kill(int(pid), number)
            else:
                os.killpg(int(pid), number)

    # ------------------------------------------------------------ state from files

    def _alive(self, name: str) -> bool:
        """Whether the process of a job is alive and holds its lock."""
        try:
            with (self.home / name / LOCK_FILE).open("ab") as file:
                return not lock_file(file)
        except OSError:
            return False

    def _cached(self, name: str) -> StudioJob | None:
        if name in self._ended:
            return self._ended[name]
        job = self._read(name)
        if job is not None and not job.live:
            self._ended[name] = job
        return job

    def _read(self, name: str) -> StudioJob | None:
        folder = self.home / name
        job, start, end = (_object(folder / file) for file in (JOB_FILE, START_FILE, END_FILE))
        if job is None:
            return None
        state, code, message = self._state(name, start, end)
        return StudioJob(
            name, job.get("stage", ""), job.get("title", ""), tuple(job.get("words", ())),
            job.get("output", ""), state, code, message, (start or {}).get("time", 0.0),
            (end or {}).get("time", 0.0),
        )  # fmt: skip

    def _state(
        self, name: str, start: dict[str, Any] | None, end: dict[str, Any] | None
    ) -> tuple[JobState, int | None, str]:
        if end is not None:
            code = int(end.get("code", 1))
            words = str(end.get("message", ""))
            # Also done: a result with a poor verdict (codes 1, 2), and a stopped search with its best result (130).
            return "done" if end.get("delivered") else "failed", code, words
        if start is not None and self._alive(name):
            return "running", None, BEING_STOPPED if (self.home / name / STOP_FILE).exists() else ""
        if (self.home / name / CANCEL_FILE).exists():
            process = self._started.get(name)
            if process is not None and process.poll() is None:
                return "running", None, "being cancelled"
            return "cancelled", None, "Cancelled; nothing was written."
        if start is not None:
            # The job may have ended after END_FILE was read and before its lock was tested.
            end = _object(self.home / name / END_FILE)
            if end is not None:
                return self._state(name, start, end)
            if (self.home / name / STOP_FILE).exists():
                return "cancelled", None, "Stopped before the first result; nothing was written."
            return "lost", None, "The job ended without a message (killed, or the machine went down). Start it again."
        if name in self._failed_starts:
            return "failed", None, self._failed_starts[name]
        return "waiting", None, ""


def _object(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _number(path: Path, key: str) -> float | None:
    value = (_object(path) or {}).get(key)
    return value if isinstance(value, int | float) else None
