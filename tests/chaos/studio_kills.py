"""A studio that is killed while files are sent, forms are changed and jobs are queued; then it is opened again."""

from __future__ import annotations

import http.client
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from steelyard.studio.jobs import Jobs
from steelyard.studio.studio_folder import StudioFolder

NAME = "studio"
# Bytes of a file that is sent, and seconds within which the kill comes.
_SIZE, _LATEST = 3_000_000, 1.5
_GRAVITIES = [f"-9.{k}" for k in range(10)]


class _Running:
    """A studio in a separate process, and a browser that has opened it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "steelyard", "studio", str(folder), "--no-open", "--port", "0"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        self.said, found = "", None
        for line in self.process.stdout or ():
            self.said += line.decode()
            if found := re.search(r"http://127.0.0.1:(\d+)/(\?token=\S+)", self.said):
                break
        assert found, self.said
        self.port, self.cookie = int(found[1]), ""
        self.cookie = self.ask("GET", "/" + found[2])[1].partition(";")[0]

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
        """Ask for a page; returns the status and the cookie that is set."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20.0)
        try:
            link.request(method, path, body or None, {"Cookie": self.cookie, "X-Steelyard": "1"})
            answer = link.getresponse()
            answer.read()
            return answer.status, answer.getheader("set-cookie") or ""
        finally:
            link.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def studio_trial(root: Path, number: int) -> dict[str, Any]:
    """Kill a studio at a random moment; returns what came of it, as a trial of a command.

    Args:
        root: a folder for the trial.
        number: chooses the moment.
    """
    rng = random.Random(f"{number} studio")
    folder = root / f"studio-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "arm").mkdir(parents=True)
    os.environ["STEELYARD_STATE"] = str(folder / "state")
    told: dict[str, Any] = {"command": NAME, "fault": "kill", "kills": 1, "within": 0, "compared": False, "wrong": ""}
    studio = _Running(folder / "arm")
    ended = threading.Event()

    def go_on(method: str, path: str, bodies: list[bytes]) -> None:
        with suppress(OSError, http.client.HTTPException):
            while not ended.is_set():
                studio.ask(method, path, rng.choice(bodies))

    work: list[tuple[str, str, list[bytes]]] = [
        ("PUT", "/upload/logs/a.csv", [b"x" * _SIZE]),
        ("POST", "/do/robot/gravity", [f"x=0&y=0&z={z}".encode() for z in _GRAVITIES]),
        ("POST", "/do/robot/builtin", [b"name=szabo3r", b"name=ns16"]),
        ("POST", "/do/motion/start", [b"duration=5&time=1"]),
    ]
    threads = [threading.Thread(target=go_on, args=one) for one in work]
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.0, _LATEST))
    studio.kill()
    ended.set()
    for thread in threads:
        thread.join()
    told["within"] = len(list((folder / "arm").glob(".steelyard/uploads/*")))
    again = _Running(folder / "arm")
    try:
        told["wrong"] = _wrong(again, StudioFolder(folder / "arm"))
    except Exception as error:
        told["wrong"] = f"{type(error).__name__}: {error}"
    finally:
        jobs = Jobs(StudioFolder(folder / "arm"))
        for job in jobs.all():
            jobs.cancel(job.id)
        again.kill()
        time.sleep(0.2)
        _end_jobs(jobs)
    shutil.rmtree(folder, ignore_errors=True)
    return told


def _wrong(studio: _Running, folder: StudioFolder) -> str:
    """Faults after the studio was opened again; "" if all is well."""
    for page in ("/robot", "/data", "/motion", "/library", "/jobs"):
        if (status := studio.ask("GET", page)[0]) != 200:
            return f"{page} answers {status}"
    if left := [p.name for p in folder.root.glob(".steelyard/uploads/*")]:
        return f"unfinished uploads are left: {left}"
    if torn := [p.name for p in folder.root.glob("logs/*") if p.stat().st_size != _SIZE]:
        return f"files are cut: {torn}"
    project = folder.project()  # a SteelyardError if it is torn
    if project.robot not in ("", "szabo3r", "ns16"):
        return f"the project names the robot {project.robot}"
    if left := [p.name for p in folder.root.rglob("*.steelyard-new-*")] + [
        p.name for p in folder.state_path("new", "x").parent.glob("*")
    ]:
        return f"left aside: {left}"
    lost = [job.state for job in Jobs(folder).all() if job.state == "failed" and "could not start" in job.message]
    return f"jobs cannot start: {lost}" if lost else ""


def _end_jobs(jobs: Jobs) -> None:
    """End the processes of the trial's own jobs."""
    for begun in jobs.home.glob("*/begun.json"):
        with suppress(OSError, TypeError, ValueError):
            os.killpg(int(re.search(r'"pid": (\d+)', begun.read_text())[1]), signal.SIGKILL)  # type: ignore[index]
