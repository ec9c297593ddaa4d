"""`Jobs`: commands that run in processes of their own, two at a time, and outlive the server.

A job is a folder in this user's state folder, never in the studio's folder, which may come from a stranger. Its files
appear whole. A running job holds a file lock; a free lock marks it as lost. So a server that was killed finds
everything again.
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
from steelyard.studio.allowed_commands import check_words
from steelyard.studio.place import StudioError, StudioFolder

JobState = Literal["waiting", "running", "done", "failed", "cancelled", "lost"]
JOB, BEGUN, ENDED, EVENTS, SAID, CANCELLED, STOPPED, LOCK = (
    "job.json", "begun.json", "ended.json", "events.jsonl", "said.txt", "cancelled", "stopped", "lock",
)  # fmt: skip
BEING_STOPPED = "being stopped"
# Seconds from asking a process to end until it is made to.
_PATIENCE = 3.0
# Bytes of a job's events and words that are looked at.
_TAIL = 400_000


@dataclass(frozen=True)
class JobLimits:
    """What a job may take: `memory_gb` with all its processes, `hours` from its start, jobs `at_once`."""

    memory_gb: float = 8.0
    hours: float = 24.0
    at_once: int = 2


@dataclass(frozen=True)
class StudioJob:
    """A command, and what became of it.

    Args:
        id: its folder's name; later ones sort behind.
        stage: the stage that asked for it.
        title: for people.
        words: of the command, without `steelyard`.
        output: the run folder that it writes, relative; "" if none.
        state: what became of it.
        code: its exit code; None as long as it has none.
        message: what it said last, or why it ended.
        began: seconds since 1970; 0.0 before.
        ended: likewise.
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
        """As a shell takes it."""
        return shlex.join(["steelyard", *self.words])

    @property
    def live(self) -> bool:
        """Whether something may still come of it."""
        return self.state in ("waiting", "running")


class Jobs:
    """All jobs of a place.

    Args:
        place: the folder.
        limits: what a job may take.
    """

    def __init__(self, place: StudioFolder, limits: JobLimits | None = None) -> None:
        self.place, self.limits = place, limits or JobLimits()
        self.home = place.own("jobs", "x").parent
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._killing: dict[str, float] = {}
        self._over: dict[str, StudioJob] = {}  # of what is over nothing changes any more
        self._failed_starts: dict[str, str] = {}  # jobs whose process ended before it could say that it began

    # ------------------------------------------------------------ what there is

    def all(self) -> list[StudioJob]:
        """Every job, the newest first."""
        names = sorted(os.listdir(self.home), reverse=True)
        return [job for name in names if (job := self._known(name)) is not None]

    def get(self, name: str) -> StudioJob:
        """The job called `name`."""
        job = self._known(name) if name.replace("-", "").isalnum() else None
        if job is None:
            raise StudioError("There is no such job; it may have been cleared away.")
        return job

    def of_stage(self, stage: str) -> Iterator[StudioJob]:
        """Those that a `stage` asked for, the newest first."""
        return (job for job in self.all() if job.stage == stage)

    def outputs(self) -> tuple[str, ...]:
        """The run folders that jobs will write, which nobody else may take."""
        return tuple(job.output for job in self.all() if job.live and job.output)

    def events(self, name: str, begin: int = 0) -> tuple[list[dict[str, Any]], int]:
        """What the job `name` has told from byte `begin` of its events on, and the byte to go on from."""
        found: list[dict[str, Any]] = []
        with contextlib.suppress(OSError), (self.home / name / EVENTS).open("rb") as file:
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
                    found.append(json.loads(line))
        return found, begin

    def said(self, name: str) -> str:
        """What the job `name` printed; of a long text the end."""
        with contextlib.suppress(OSError), (self.home / name / SAID).open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - _TAIL, 0))
            return file.read().decode("utf-8", "replace")
        return ""

    def folder(self, name: str) -> Path:
        """The folder of the job `name`, for what it keeps between runs (a checkpoint)."""
        return self.home / self.get(name).id

    # ------------------------------------------------------------ what is done

    def add(self, stage: str, title: str, words: Sequence[str], output: str = "") -> StudioJob:
        """Put a command into the queue; a StudioError if the studio does not compose such commands.

        Args:
            stage: as in `StudioJob`.
            title: likewise.
            words: likewise.
            output: likewise.
        """
        self.check(words)
        job = StudioJob(
            f"{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(3)}", stage, title, tuple(words), output
        )
        aside = self.place.own("new", job.id)
        aside.mkdir()
        limits = asdict(self.limits)
        kept = {"stage": stage, "title": title, "words": list(words), "output": output, "limits": limits}
        write_whole(aside / JOB, json.dumps(kept))
        aside.rename(self.home / job.id)
        self.step()
        return self.get(job.id)

    def check(self, words: Sequence[str]) -> None:
        """Raise a StudioError if a job may not run a command.

        Args:
            words: of the command, without `steelyard`.
        """
        self.place.project()  # the command reads its paths: all of them must lie in the folder
        check_words(self.place.root, tuple(words), self.place.own("pyramids", "x").parent)

    def cancel(self, name: str) -> None:
        """End the job `name` for certain: nothing of it goes on, and its run folder does not appear."""
        job = self.get(name)
        if job.live:
            (self.home / name / CANCELLED).touch()
            self._signal(name, signal.SIGTERM)
            self._killing[name] = time.monotonic() + _PATIENCE

    def stop(self, name: str) -> None:
        """Ask the search `name` to end now and to deliver the best that it has; asked twice it would not."""
        if self.get(name).state == "running" and not (self.home / name / STOPPED).exists():
            (self.home / name / STOPPED).touch()
            self._signal(name, signal.SIGINT)

    def clear(self, name: str) -> None:
        """Forget the job `name`, which has ended; its run stays."""
        job = self.get(name)
        if job.live:
            raise StudioError("The job is at work; cancel it first.")
        shutil.rmtree(self.home / name, ignore_errors=True)
        self._over.pop(name, None)
        self._failed_starts.pop(name, None)

    def step(self) -> None:
        """Start what may start, and make an end of what was cancelled; called again and again."""
        for name, process in list(self._started.items()):
            if process.poll() is not None:
                del self._started[name]
                if _object(self.home / name / BEGUN) is None:
                    lines = self.said(name).split("\n")
                    why = next((line.strip() for line in reversed(lines) if line.strip()), "the disk may be full")
                    self._failed_starts[name] = f"It could not begin: {why}"
        for name, when in list(self._killing.items()):
            if time.monotonic() > when:
                self._signal(name, signal.SIGKILL)
                del self._killing[name]
        jobs = self.all()
        at_work = sum(job.state == "running" or job.id in self._started for job in jobs)
        for job in reversed(jobs):
            if job.state == "waiting" and job.id not in self._started and at_work < self.limits.at_once:
                self._start(job.id)
                at_work += 1

    def _start(self, name: str) -> None:
        folder = self.home / name
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "100", "NO_COLOR": "1"}
        with (folder / SAID).open("ab") as said:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-m", "steelyard.studio.worker", str(folder)],
                cwd=self.place.root, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip

    def _signal(self, name: str, number: int) -> None:
        """To the job and, where it is to end, to all its processes."""
        pid = _number(self.home / name / BEGUN, "pid") if self._alive(name) else None
        if pid is None and name in self._started and self._started[name].poll() is None:
            pid = self._started[name].pid
        if pid is None:
            return
        with contextlib.suppress(OSError):
            if number == signal.SIGINT or not hasattr(os, "killpg"):
                os.kill(int(pid), number)
            else:
                os.killpg(int(pid), number)

    # ------------------------------------------------------------ what its files say

    def _alive(self, name: str) -> bool:
        """Whether the process of a job lives: it holds the lock."""
        try:
            with (self.home / name / LOCK).open("ab") as file:
                return not lock_file(file)
        except OSError:
            return False

    def _known(self, name: str) -> StudioJob | None:
        if name in self._over:
            return self._over[name]
        job = self._read(name)
        if job is not None and not job.live:
            self._over[name] = job
        return job

    def _read(self, name: str) -> StudioJob | None:
        folder = self.home / name
        asked, begun, ended = (_object(folder / file) for file in (JOB, BEGUN, ENDED))
        if asked is None:
            return None
        state, code, message = self._state(name, begun, ended)
        return StudioJob(
            name, asked.get("stage", ""), asked.get("title", ""), tuple(asked.get("words", ())),
            asked.get("output", ""), state, code, message, (begun or {}).get("time", 0.0),
            (ended or {}).get("time", 0.0),
        )  # fmt: skip

    def _state(
        self, name: str, begun: dict[str, Any] | None, ended: dict[str, Any] | None
    ) -> tuple[JobState, int | None, str]:
        if ended is not None:
            code = int(ended.get("code", 1))
            words = str(ended.get("message", ""))
            # Delivered: also with a verdict that is not good (1, 2), or stopped with the best so far (130).
            return "done" if ended.get("delivered") else "failed", code, words
        if begun is not None and self._alive(name):
            return "running", None, BEING_STOPPED if (self.home / name / STOPPED).exists() else ""
        if (self.home / name / CANCELLED).exists():
            process = self._started.get(name)
            if process is not None and process.poll() is None:
                return "running", None, "being cancelled"
            return "cancelled", None, "Cancelled; nothing was written."
        if begun is not None:
            # Between the last look at its end and at its lock it may have ended.
            again = _object(self.home / name / ENDED)
            if again is not None:
                return self._state(name, begun, again)
            if (self.home / name / STOPPED).exists():
                return "cancelled", None, "Stopped before there was anything to deliver; nothing was written."
            return "lost", None, "It ended without a word: killed, or the machine went down. Start it again."
        if name in self._failed_starts:
            return "failed", None, self._failed_starts[name]
        return "waiting", None, ""


def _object(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _number(path: Path, key: str) -> float | None:
    found = (_object(path) or {}).get(key)
    return found if isinstance(found, int | float) else None
