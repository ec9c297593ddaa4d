"""Folders as a stranger could prepare them, fixed seeds: nothing starts, nothing outside is touched."""

from __future__ import annotations

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
from steelyard.studio import containment, place
from steelyard.studio.place import StudioFolder

FEW, MANY = 30, 20_000


@pytest.fixture(autouse=True)
def own_settings() -> Iterator[None]:
    """A campaign moves the state folder and goes into the folders that it makes."""
    before, here = os.environ["STEELYARD_STATE"], Path.cwd()
    yield
    os.environ["STEELYARD_STATE"] = before
    os.chdir(here)


def test_no_folder_gives_an_order() -> None:
    assert campaign(FEW, seed=7) == []


@pytest.mark.proof
def test_no_folder_of_many_gives_an_order() -> None:
    assert campaign(MANY, seed=0) == []


def _is_seen(tmp_path: Path, words: str, trials: int = 200) -> bool:
    """Whether some trial fails with these words."""
    watch, hostile = FolderWatch(), HostileFolder(tmp_path)
    return any(words in trial(hostile, watch, 7, number) for number in range(trials))


def test_it_sees_jobs_that_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when jobs lay in the folder: what is in FOLDER/.steelyard is taken for the studio's own."""

    def in_folder(self: StudioFolder, *parts: str) -> Path:
        path = self.root.joinpath(".steelyard", *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    monkeypatch.setattr(StudioFolder, "own", in_folder)
    monkeypatch.setattr(folders, "SECONDS_EACH", 1.0)
    assert _is_seen(tmp_path, "subprocess.Popen")


def test_it_sees_files_that_are_read_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when paths of the project file and links were followed."""
    monkeypatch.setattr(place, "check_project", lambda root, project: project)
    monkeypatch.setattr(containment, "is_inside", lambda root, path: True)
    monkeypatch.setattr(place, "is_inside", lambda root, path: True)
    assert _is_seen(tmp_path, "opened /")
