"""A run folder holds the files that a result lists, and is written atomically."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.ground.folders import RunFolderError, growing_folder
from steelyard.ground.outcome import Content, Outcome


@dataclass(frozen=True)
class Mass(Outcome):
    """A mass, with a file in a subfolder and a file written by a function."""

    mass: float
    breaks: bool = False

    def to_json(self) -> dict[str, float]:
        return {"mass": self.mass}

    def page(self) -> str:
        return f"<p>{self.mass}</p>"

    def files(self) -> dict[str, Content]:
        return {"tables/mass.csv": f"mass\n{self.mass}\n", "mass.bin": self._write}

    def print_to(self, out: Any, folder: str = "") -> None:
        out.append(f"{self.mass} kg, in {folder}")

    def _write(self, path: Path) -> None:
        if self.breaks:
            raise OSError("the disk is full")
        path.write_bytes(b"\x01")


def file_names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_run_folder_holds_result_page_and_listed_files(tmp_path: Path) -> None:
    folder = Mass(2.5).save(tmp_path / "a" / "run")
    assert file_names(folder) == {"result.json", "report.html", "tables/mass.csv", "mass.bin", "manifest.json"}
    assert json.loads((folder / "result.json").read_text()) == {"mass": 2.5}
    assert (folder / "report.html").read_text() == "<p>2.5</p>"


def test_a_failed_write_leaves_no_trace_and_keeps_the_old_run(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"):
        Mass(2.5, breaks=True).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    Mass(1.0).save(tmp_path / "run")
    with pytest.raises(OSError, match="full"):
        Mass(2.5, breaks=True).save(tmp_path / "run", overwrite=True)
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == {"mass": 1.0}


def test_an_existing_run_is_replaced_only_on_request(tmp_path: Path) -> None:
    Mass(1.0).save(tmp_path / "run")
    with pytest.raises(RunFolderError, match="--overwrite"):
        Mass(2.0).save(tmp_path / "run")
    Mass(2.0).save(tmp_path / "run", overwrite=True)
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == {"mass": 2.0}


def test_the_finished_run_replaces_a_growing_one_and_keeps_its_files_on_request(tmp_path: Path) -> None:
    with growing_folder(tmp_path / "run", "lines") as folder:
        (folder / "lines").write_text("1\n2\n")
    Mass(1.0).save(tmp_path / "run", overwrite=True, keep=["lines"])
    assert file_names(tmp_path / "run") == {
        "result.json", "report.html", "tables/mass.csv", "mass.bin", "manifest.json", "lines",
    }  # fmt: skip
    assert (tmp_path / "run" / "lines").read_text() == "1\n2\n"


def test_an_error_of_a_full_disk_names_the_final_path(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full") as caught:
        Mass(2.5, breaks=True).save(tmp_path / "run")
    assert caught.value.filename == str(tmp_path / "run" / "mass.bin")
