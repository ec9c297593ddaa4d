"""A result is handed out one way: a folder holds what the result lists, whole or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.ground.folders import RunFolderError, growing_folder
from steelyard.ground.outcome import Content, Outcome


@dataclass(frozen=True)
class Weighed(Outcome):
    """A mass, with a folder below its own and a file that writes itself."""

    mass: float
    breaks: bool = False

    def to_json(self) -> dict[str, float]:
        return {"mass": self.mass}

    def page(self) -> str:
        return f"<p>{self.mass}</p>"

    def files(self) -> dict[str, Content]:
        return {"tables/mass.csv": f"mass\n{self.mass}\n", "mass.bin": self._write}

    def tell(self, out: Any, folder: str = "") -> None:
        out.append(f"{self.mass} kg, in {folder}")

    def _write(self, path: Path) -> None:
        if self.breaks:
            raise OSError("the disk is full")
        path.write_bytes(b"\x01")


def held(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_folder_holds_result_page_and_what_the_result_lists(tmp_path: Path) -> None:
    place = Weighed(2.5).save(tmp_path / "a" / "run")
    assert held(place) == {"result.json", "report.html", "tables/mass.csv", "mass.bin", "manifest.json"}
    assert json.loads((place / "result.json").read_text()) == {"mass": 2.5}
    assert (place / "report.html").read_text() == "<p>2.5</p>"


def test_a_result_that_cannot_be_written_leaves_nothing_and_spoils_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"):
        Weighed(2.5, breaks=True).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    Weighed(1.0).save(tmp_path / "run")
    with pytest.raises(OSError, match="full"):
        Weighed(2.5, breaks=True).save(tmp_path / "run", overwrite=True)
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == {"mass": 1.0}


def test_an_existing_run_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    Weighed(1.0).save(tmp_path / "run")
    with pytest.raises(RunFolderError, match="--overwrite"):
        Weighed(2.0).save(tmp_path / "run")
    Weighed(2.0).save(tmp_path / "run", overwrite=True)
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == {"mass": 2.0}


def test_a_folder_that_grew_is_replaced_by_the_finished_run_which_keeps_what_it_is_told_to(tmp_path: Path) -> None:
    with growing_folder(tmp_path / "run", "lines") as place:
        (place / "lines").write_text("1\n2\n")
    Weighed(1.0).save(tmp_path / "run", overwrite=True, keep=["lines"])
    assert held(tmp_path / "run") == {
        "result.json", "report.html", "tables/mass.csv", "mass.bin", "manifest.json", "lines",
    }  # fmt: skip
    assert (tmp_path / "run" / "lines").read_text() == "1\n2\n"


def test_a_full_disk_names_the_file_where_it_would_have_been(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full") as caught:
        Weighed(2.5, breaks=True).save(tmp_path / "run")
    assert caught.value.filename == str(tmp_path / "run" / "mass.bin")
