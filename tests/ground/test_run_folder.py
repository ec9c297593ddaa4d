"""A run folder appears whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.ground.files import RunFolderError, run_folder


def fill(folder: Path, text: str) -> None:
    (folder / "result.json").write_text(text)
    (folder / "more.txt").write_text(text)


def test_a_run_appears_at_the_end(tmp_path: Path) -> None:
    with run_folder(tmp_path / "a" / "run") as aside:
        fill(aside, "1")
        assert not (tmp_path / "a" / "run").exists()
    assert (tmp_path / "a" / "run" / "more.txt").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["run"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with run_folder(tmp_path / "run") as aside:
            fill(aside, "1")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_replaced_whole_and_only_on_request(tmp_path: Path) -> None:
    with run_folder(tmp_path / "run") as aside:
        fill(aside, "old")
        (aside / "extra").write_text("old")
    with pytest.raises(RunFolderError, match="--overwrite"), run_folder(tmp_path / "run"):
        pass
    with run_folder(tmp_path / "run", overwrite=True) as aside:
        fill(aside, "new")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["more.txt", "result.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_is_no_run_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("dear to me")
    with pytest.raises(RunFolderError, match="holds no run"), run_folder(tmp_path / "home", overwrite=True):
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="is a file"), run_folder(tmp_path / "file", overwrite=True):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="cannot be written"), run_folder(tmp_path / "file" / "run"):
        pass


SCRIPT = """
import sys
from pathlib import Path
from steelyard.ground.files import run_folder
k = 0
while True:
    k += 1
    with run_folder(sys.argv[1], overwrite=True) as aside:
        for name in ("result.json", "more.txt"):
            (aside / name).write_text(str(k))
    print(k, flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="folders are exchanged in one step on Linux only")
def test_a_kill_at_any_moment_leaves_a_whole_run(tmp_path: Path) -> None:
    target = tmp_path / "run"
    for attempt in range(6):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(target)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        contents = {(target / name).read_text() for name in ("result.json", "more.txt")}
        assert len(contents) == 1
        assert contents != {""}
