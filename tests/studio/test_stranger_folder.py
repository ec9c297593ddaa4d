"""A folder from a stranger is data: its jobs do not start, its keys are ignored, and its paths cannot lead out."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the studio's packages are not installed")

from conftest_studio import Client, Served, job_folders
from run_cases import Visitor
from simulated_arms import arm_folder

from steelyard.studio.allowed_commands import check_command
from steelyard.studio.containment import StudioError
from steelyard.studio.jobs import Jobs
from steelyard.studio.studio_folder import StudioFolder

EXPORT = ["export", "RUN", "--to", "c", "-o", "../outside"]
FLEET = ["fleet", "fleet.toml", "--scheduler", "tcp://127.0.0.1:1", "-o", "runs/x"]
CHECK = ["check", "-o", "runs/check-1"]


def plant_job(folder: Path, words: list[str], name: str = "1") -> Path:
    """Write a job file into the folder."""
    job = folder / ".steelyard" / "jobs" / name
    job.mkdir(parents=True)
    limits = {"memory_gb": 8, "hours": 1}
    said = {"stage": "identify", "title": "x", "words": words, "output": "", "limits": limits}
    (job / "job.json").write_text(json.dumps(said))
    return job


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "arm"
    made.mkdir()
    return made


def test_a_planted_job_never_starts(folder: Path) -> None:
    """Neither the queue nor any page starts a process or writes a file other than the job file."""
    jobs = [plant_job(folder, words, str(k)) for k, words in enumerate((EXPORT, FLEET, CHECK))]
    served = Served(folder)
    served.start()
    try:
        client = Client(served)
        for path in ("/robot", "/identify", "/library", "/jobs"):
            assert client.ask("GET", path)[0] == 200
        time.sleep(1.0)  # five polls of the queue
        shown = client.ask("GET", "/jobs")[1].decode()
    finally:
        served.end()
    assert [sorted(path.name for path in job.iterdir()) for job in jobs] == [["job.json"]] * 3
    assert not list(job_folders(folder).iterdir())
    assert not (folder.parent / "outside").exists()
    assert "Job files in this folder, not started" in shown
    assert "steelyard export RUN --to c -o ../outside" in shown
    assert shown.count("job/start-foreign") == 1, "only a command of the studio has a button"


def test_a_foreign_job_starts_only_by_its_button(folder: Path) -> None:
    plant_job(folder, CHECK, "good")
    plant_job(folder, FLEET, "bad")
    visitor = Visitor(folder)
    shown = visitor.see("/jobs")
    assert "steelyard check -o runs/check-1" in shown
    refused = visitor.do("job/start-foreign", 422, id="bad")
    assert "does not run this command" in refused
    for name in ("../jobs/good", "none", "", "/etc"):
        visitor.do("job/start-foreign", 422, id=name)
    assert not visitor.jobs.all()
    shown = visitor.do("job/start-foreign", id="good")
    (job,) = visitor.jobs.all()
    assert job.words == tuple(CHECK)
    assert not (folder / ".steelyard/jobs/good").exists()
    assert visitor.jobs.home not in folder.parents
    visitor.do("job/remove-foreign", id="bad")
    assert "not started" not in visitor.see("/jobs")


def test_a_foreign_project_is_not_checked_automatically(folder: Path) -> None:
    arm_folder(folder)
    visitor = Visitor(folder)
    for page in ("/", "/robot", "/data", "/check", "/motion", "/identify", "/use", "/library"):
        visitor.client.get(page)
    assert "Check the logs" in visitor.see("/check")
    assert not visitor.jobs.all()
    assert not (folder / "runs").exists()
    visitor.do("check/start")
    assert [job.words for job in visitor.jobs.all()] == [("check", "-o", "runs/check-1")]


BAD_WORDS = [
    [], ["fleet", "x.toml"], ["export", "RUN"], ["export", "runs/a", "--to", "c", "-o", "../outside"],
    ["export", "/etc", "--to", "c", "-o", "runs/x"], ["check", "-o", "runs/x", "--fix", "a.toml"],
    ["check", "--project", "/x"], ["-c", "x"],
    ["identify", "--validate", "../x.csv", "-o", "runs/x"], ["identify", "-o"], ["identify", "-oruns/x"],
    ["identify", "--output=runs/x"], ["predict", "runs/a", "/etc/passwd", "-o", "runs/x"],
    ["watch", "runs/a", "tcp:5005", "--state", "/tmp/x"], ["watch", "runs/a", "https://evil.example/x"],
    ["excite", "--checkpoint", "/tmp/x.json", "-o", "runs/x"], ["excite", "--checkpoint", ".steelyard/jobs/x.json"],
    ["excite", "--checkpoint", ".steelyard/motion/../../x.json"], ["reproduce", "all"], ["studio", "."],
    ["-m", "pyramid", "logs/a.csv", "/tmp/x"], ["-m", "pyramid", "../a.csv", "PYRAMIDS/x"], ["-m", "os", "x"],
    ["export", "runs/away", "--to", "c", "-o", "runs/x"], ["rehearse", "../arm.urdf", "runs/a", "-o", "runs/x"],
    ["payload", "--with", "name=../x.csv", "-o", "runs/x"], ["check", "-o", "s3://bucket/x"],
    ["check", "-o", "runs/a\0b"],
]  # fmt: skip


@pytest.mark.parametrize("words", BAD_WORDS, ids=[" ".join(w).replace("\0", "NUL") or "none" for w in BAD_WORDS])
def test_other_commands_are_refused(folder: Path, words: list[str]) -> None:
    (folder / "runs" / "a").mkdir(parents=True)
    (folder / "runs" / "away").symlink_to(folder.parent)
    jobs = Jobs(StudioFolder(folder))
    pyramids = jobs.folder.state_path("pyramids", "x").parent
    words = [word.replace("PYRAMIDS", str(pyramids)) for word in words]
    if words == ["export", "RUN"]:  # incomplete: the command itself reports it
        assert check_command(folder, words) == ("export", "RUN")
        return
    with pytest.raises(StudioError):
        jobs.add("use", "x", words)
    assert not jobs.all()


def test_the_worker_checks_the_command_again(folder: Path) -> None:
    """A job file in the state folder cannot run another command."""
    import subprocess
    import sys

    jobs = Jobs(StudioFolder(folder))
    job = jobs.home / "0-aa"
    job.mkdir()
    limits = {"memory_gb": 8, "hours": 1}
    (job / "job.json").write_text(json.dumps({"words": EXPORT, "output": "", "limits": limits}))
    for where, path in ((folder, job), (folder, plant_job(folder, CHECK)), (folder.parent, job)):
        done = subprocess.run(
            [sys.executable, "-m", "steelyard.studio.worker", str(path)], cwd=where, capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.startswith("steelyard: ")
        assert "Traceback" not in done.stderr
    assert not (folder.parent / "outside").exists()


@pytest.mark.parametrize("token", ["", "known", None, 5, ["known"]])
def test_a_planted_key_is_ignored(folder: Path, token: Any) -> None:
    (folder / ".steelyard").mkdir()
    (folder / ".steelyard" / "key.json").write_text(json.dumps({"token": token}))
    served = Served(folder, own_process=False)
    served.start()
    try:
        client = Client(served)
        assert len(client.token) >= 43, "32 random bytes"
        for query in ("", "?token=", "?token=known", "?token=None", "?token=5"):
            status, _, headers = client.ask("GET", f"/{query}", cookie=False)
            assert status == 401
            assert "set-cookie" not in headers
    finally:
        served.end()


def test_the_state_folder_must_be_the_users(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("STEELYARD_STATE", str(state))
    jobs = Jobs(StudioFolder(folder))
    assert jobs.home.is_relative_to(state)
    for path in (state, state / "studio", jobs.home.parent, jobs.home):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    (state / "studio").chmod(0o777)
    with pytest.raises(StudioError, match="others may write"):
        Jobs(StudioFolder(folder))
    (state / "studio").chmod(0o700)
    if os.geteuid() == 0:
        os.chown(jobs.home.parent, 12345, 12345)
        with pytest.raises(StudioError, match="belongs to another user"):
            Jobs(StudioFolder(folder))
        os.chown(jobs.home.parent, 0, 0)
    jobs.home.rmdir()
    jobs.home.symlink_to(tmp_path)
    with pytest.raises(StudioError, match="is not a folder"):
        Jobs(StudioFolder(folder))


OUTSIDE = {
    "runs": 'runs = "../x"', "absolute": 'runs = "/tmp/x"', "robot": 'robot = "../secret.urdf"',
    "mapping": 'mapping = "/etc/passwd"', "log": '[logs]\nidentify = ["../secret.csv"]',
    "pattern": '[logs]\nidentify = ["../*.csv"]', "linked": '[logs]\nidentify = ["logs/*.csv"]',
    "load": '[logs]\npayload = {tool = "../secret.csv"}', "model": 'model = "../run"', "packages": 'packages = ["/"]',
    "controller": 'controller = "a/../../x.toml"', "motion": 'motion = "../run"', "address": 'robot = "http://evil/x"',
}  # fmt: skip


@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_project_file_that_leads_out_is_refused(folder: Path, kind: str) -> None:
    (folder.parent / "secret.csv").write_text("t,q1\n0,0\n")
    (folder / "logs").mkdir()
    (folder / "logs" / "a.csv").symlink_to(folder.parent / "secret.csv")
    (folder / "steelyard.toml").write_text(OUTSIDE[kind])
    studio = StudioFolder(folder)
    with pytest.raises(StudioError, match=r"steelyard.toml: .* is outside the folder of this studio; copy it"):
        studio.project()
    with pytest.raises(StudioError):
        studio.set_keys(gravity=[0.0, 0.0, -9.81])
    assert (folder / "steelyard.toml").read_text() == OUTSIDE[kind]
    visitor = Visitor(folder)
    for stage in ("robot", "data", "check", "identify"):
        assert "is outside the folder" in visitor.see(f"/body/{stage}")
    assert not (folder.parent / "x").exists()


def test_links_that_lead_out_are_not_followed(folder: Path) -> None:
    """Links in the project file, runs, results, the hidden folder and the trash."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "manifest.json").write_text('{"format": "steelyard-run-1", "command": "SECRET", "files": {}}')
    (outside / "result.json").write_text('{"robot": "SECRET"}')
    (outside / "from").write_text("SECRET")
    (folder / "runs" / "b").mkdir(parents=True)
    (folder / "runs" / "b" / "manifest.json").symlink_to(outside / "manifest.json")
    (folder / "runs" / "c").mkdir()
    (folder / "runs" / "c" / "manifest.json").write_text('{"format": "steelyard-run-1", "command": "", "files": {}}')
    (folder / "runs" / "c" / "result.json").symlink_to(outside / "result.json")
    old = folder / ".steelyard" / "trash" / "20260101-000000"
    old.mkdir(parents=True)
    (old / "run").mkdir()
    (old / ".from").symlink_to(outside / "from")
    visitor = Visitor(folder)
    assert visitor.folder.run_paths() == []
    assert visitor.folder.trash_entries() == []
    assert "SECRET" not in visitor.see("/library") + visitor.see("/library?view=trash")
    os.rename(folder / ".steelyard", folder / "moved")
    (folder / ".steelyard").symlink_to(outside)
    with pytest.raises(StudioError, match="not a folder of this studio"):
        visitor.folder.move_to_trash(folder / "runs" / "b")
    assert visitor.folder.trash_entries() == []
    assert sorted(p.name for p in outside.iterdir()) == ["from", "manifest.json", "result.json"]
    (folder / "steelyard.toml").symlink_to(outside / "steelyard.toml")
    with pytest.raises(StudioError, match="leads out"):
        visitor.folder.set_keys(robot="ns16")
    assert not (outside / "steelyard.toml").exists()


def test_only_unfinished_uploads_are_removed(folder: Path) -> None:
    uploads = folder / ".steelyard" / "uploads"
    uploads.mkdir(parents=True)
    (uploads / ("0a" * 8)).write_bytes(b"cut")
    (uploads / "notes.txt").write_text("mine")
    (uploads / ("0b" * 8)).symlink_to(folder.parent / "x")
    served = Served(folder)
    served.start()
    served.end()
    assert sorted(p.name for p in uploads.iterdir()) == ["0b" * 8, "notes.txt"]


def test_a_full_disk_gives_a_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a form that writes, a page that writes, and a job that cannot be queued."""
    (folder / "steelyard.toml").write_text('robot = "szabo3r"\n')
    visitor = Visitor(folder)

    def full(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    for module in ("studio_folder", "jobs", "identify_settings", "motion_settings", "stages.robot"):
        monkeypatch.setattr(f"steelyard.studio.{module}.write_whole", full)
    with pytest.raises(OSError, match="No space"):
        visitor.jobs.add("check", "x", CHECK)
    for answer in (
        visitor.do("robot/gravity", 422, x="0", y="0", z="-9"), visitor.do("robot/builtin", 422, name="ns16"),
        visitor.do("motion/start", 422, duration="5"),
    ):  # fmt: skip
        assert "No space left on device; free some disk space" in answer
        assert "Traceback" not in answer


def test_a_job_that_cannot_start_has_failed(folder: Path) -> None:
    """As on a full disk; the job is not started again."""
    (folder / "steelyard.toml").write_text('robot = "szabo3r"\n')
    jobs = Jobs(StudioFolder(folder))
    (jobs.home / "0-aa").mkdir()
    (jobs.home / "0-aa" / "job.json").write_text('{"words": ["check", "-o", "/x"], "stage": "check", "title": "t"}')
    end = time.monotonic() + 30.0
    while jobs.get("0-aa").live and time.monotonic() < end:
        jobs.step()
        time.sleep(0.05)
    found = jobs.get("0-aa")
    assert found.state == "failed"
    assert "could not start" in found.message
    assert "does not run this command" in found.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe in a folder, as Unix has it")
def test_a_pipe_in_a_run_does_not_block(folder: Path) -> None:
    run = folder / "runs" / "identify-1"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"format": "steelyard-run-1", "command": "steelyard identify a", "files": {}}')
    os.mkfifo(run / "result.json")
    arm_folder(folder)
    visitor = Visitor(folder)
    begun = time.monotonic()
    assert visitor.folder.run_paths() == []
    for page in ("/identify", "/library"):
        visitor.see(page)
    assert time.monotonic() - begun < 30.0  # s; reading the pipe would block


@pytest.mark.parametrize("result", ["{}", "[]", '{"logs": []}', '{"logs": [[]]}', '{"logs": ["x"]}', "[" * 5000])
def test_a_damaged_check_gives_a_message(folder: Path, result: str) -> None:
    arm_folder(folder)
    run = folder / "runs" / "check-1"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"format": "steelyard-run-1", "command": "steelyard check", "files": {}}')
    (run / "result.json").write_text(result)
    visitor = Visitor(folder)
    shown = visitor.see("/body/check")
    assert "runs/check-1/result.json" in shown or "cannot be read" in shown
    assert "its result cannot be read" in visitor.see("/rail/check")


def test_the_helper_process_does_not_follow_a_linked_project_file(folder: Path) -> None:
    (folder.parent / "steelyard.toml").write_text('robot = "SECRET"\n')
    (folder / "steelyard.toml").symlink_to(folder.parent / "steelyard.toml")
    visitor = Visitor(folder)
    run = folder / "runs" / "c"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"format": "steelyard-run-1", "command": "steelyard excite", "files": {}}')
    shown = visitor.see("/data/motion/shown?run=runs/c", 422)
    assert "leads out of the folder" in shown
    assert "SECRET" not in shown
