"""Random hostile folders with fixed seeds: no job starts, and nothing outside is read or written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the studio's packages are not installed")
if not hasattr(os, "mkfifo"):
    pytest.skip("folders hold pipes, as Unix has them", allow_module_level=True)

from fuzz import folders
from fuzz.folders import FolderWatch, campaign, trial
from fuzz.hostile_folder import HostileFolder
from steelyard.studio import containment, studio_folder
from steelyard.studio.studio_folder import StudioFolder

FEW, MANY = 30, 20_000


@pytest.fixture(autouse=True)
def own_settings() -> Iterator[None]:
    """Restore the state folder and the working directory, which a campaign changes.

    Playwright leaves a running event loop in this thread for the whole session; a campaign runs loops of its own.
    """
    before, here = os.environ["STEELYARD_STATE"], Path.cwd()
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)
    os.environ["STEELYARD_STATE"] = before
    os.chdir(here)


def test_few_hostile_folders_do_no_harm() -> None:
    assert campaign(FEW, seed=7) == []


@pytest.mark.proof
def test_many_hostile_folders_do_no_harm() -> None:
    assert campaign(MANY, seed=0) == []


def _is_detected(tmp_path: Path, words: str, trials: int = 200) -> bool:
    """Whether a trial fails with these words."""
    watch, hostile = FolderWatch(), HostileFolder(tmp_path)
    return any(words in trial(hostile, watch, 7, number) for number in range(trials))


def test_started_jobs_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the state folder inside FOLDER/.steelyard, its job files would run."""

    def in_folder(self: StudioFolder, *parts: str) -> Path:
        path = self.root.joinpath(".steelyard", *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    monkeypatch.setattr(StudioFolder, "state_path", in_folder)
    monkeypatch.setattr(folders, "SECONDS_EACH", 1.0)
    assert _is_detected(tmp_path, "subprocess.Popen")


def test_reading_outside_files_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks, paths of the project file and links would be followed."""
    monkeypatch.setattr(studio_folder, "check_project", lambda root, project: project)
    monkeypatch.setattr(containment, "is_inside", lambda root, path: True)
    monkeypatch.setattr(studio_folder, "is_inside", lambda root, path: True)
    assert _is_detected(tmp_path, "opened /")
