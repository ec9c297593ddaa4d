"""Jobs: real processes whose state is on disk, also after crashes of the server or the job."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from steelyard.studio.jobs import JobLimits, Jobs, StudioJob
from steelyard.studio.studio_folder import StudioError, StudioFolder

# A search that takes very long, and a fast one.
LONG = ["excite", "--optimiser", "ga", "--generations", "100000", "-o", "runs/long"]
SHORT = ["excite", "--harmonics", "2", "--duration", "2", "--rate", "20", "--search-time", "0.1"]


def _until(what: Callable[[], bool], seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    (tmp_path / "steelyard.toml").write_text('robot = "szabo3r"\n')
    return Jobs(StudioFolder(tmp_path), JobLimits())


def _ended(jobs: Jobs, job: StudioJob) -> bool:
    jobs.step()
    return not jobs.get(job.id).live


def _has_events(jobs: Jobs, job: StudioJob) -> bool:
    jobs.step()
    return bool(jobs.events(job.id)[0])


def test_a_finished_job_keeps_its_output(jobs: Jobs) -> None:
    job = jobs.add("robot", "List", SHORT)
    _until(lambda: _ended(jobs, job))
    found = jobs.get(job.id)
    assert (found.state, found.code) == ("done", 0)
    assert "szabo3r" in jobs.console_output(job.id)


def test_a_failed_job_has_the_message_of_the_command(jobs: Jobs) -> None:
    job = jobs.add("robot", "Inspect", ["rehearse", "no-such-robot", "runs/none"])
    _until(lambda: _ended(jobs, job))
    found = jobs.get(job.id)
    assert found.state == "failed"
    assert found.code == 2
    assert "no-such-robot" in found.message
    assert "Traceback" not in jobs.console_output(job.id)


def test_a_new_server_finds_and_cancels_a_running_job(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.add("motion", "Search", LONG)
    _until(lambda: _has_events(jobs, job))
    others = Jobs(StudioFolder(tmp_path))  # as after a restart
    assert others.get(job.id).state == "running"
    others.step()
    others.cancel(job.id)
    _until(lambda: _ended(others, job))
    assert others.get(job.id).state == "cancelled"
    assert not (tmp_path / "runs" / "long").exists()
    assert not list((tmp_path / "runs").glob(".*")) if (tmp_path / "runs").exists() else True


def test_a_killed_job_is_lost(jobs: Jobs) -> None:
    job = jobs.add("motion", "Search", LONG)
    _until(lambda: _has_events(jobs, job))
    pid = int((jobs.job_folder(job.id) / "begun.json").read_text().partition('"pid": ')[2].partition(",")[0])
    os.killpg(pid, signal.SIGKILL)
    _until(lambda: _ended(jobs, job))
    assert jobs.get(job.id).state == "lost"
    jobs.clear(job.id)
    assert not jobs.all()


def test_at_most_two_jobs_run_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text('robot = "szabo3r"\n')
    jobs = Jobs(StudioFolder(tmp_path), JobLimits(at_once=1))
    first, second = jobs.add("robot", "one", SHORT), jobs.add("robot", "two", SHORT)
    assert jobs.get(second.id).state == "waiting"
    _until(lambda: _ended(jobs, first))
    _until(lambda: _ended(jobs, second))
    a, b = jobs.get(first.id), jobs.get(second.id)
    assert a.ended <= b.began


def test_a_cancelled_waiting_job_never_starts(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text('robot = "szabo3r"\n')
    jobs = Jobs(StudioFolder(tmp_path), JobLimits(at_once=1))
    first, second = jobs.add("robot", "one", SHORT), jobs.add("robot", "two", SHORT)
    jobs.cancel(second.id)
    _until(lambda: _ended(jobs, first))
    jobs.step()
    found = jobs.get(second.id)
    assert (found.state, found.began) == ("cancelled", 0.0)


def test_a_job_is_ended_at_its_limits(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text('robot = "szabo3r"\n')
    jobs = Jobs(StudioFolder(tmp_path), JobLimits(hours=2.0 / 3600.0))
    job = jobs.add("motion", "Search", LONG)
    _until(lambda: _ended(jobs, job))
    assert jobs.get(job.id).state == "failed"
    assert "--hours" in jobs.get(job.id).message
    small = Jobs(StudioFolder(tmp_path), JobLimits(memory_gb=0.02))
    other = small.add("motion", "Search", LONG)
    _until(lambda: _ended(small, other))
    assert "--memory" in small.get(other.id).message


def test_names_of_jobs_are_not_paths(jobs: Jobs) -> None:
    for name in ("../../etc", "/etc", "", "a/b"):
        with pytest.raises(StudioError):
            jobs.get(name)
