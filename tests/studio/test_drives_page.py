"""The page of drives: from dropped command logs to an identified drive, its card and its files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from actuators.command_files import bam_document, write_bam
from actuators.drive_plants import DrivePlant
from run_cases import Visitor

TRUTH = {
    "kp_gain": 1.0, "kd_gain": 1.0, "torque_limit": 4.0, "armature": 0.01, "friction_base": 0.05,
    "friction_viscous": 0.02, "delay": 0.0,
}  # fmt: skip


def write_logs(folder: Path) -> tuple[Path, Path]:
    """Write the runs of a drive in MuJoCo, with a torque loop, and the table of its runs."""
    plant = DrivePlant("torque", "M1", TRUTH, gains=(8.0, 20.0), duration=2.0, off=False)
    runs = plant.record(1)
    with (folder / "servo.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["log", "t_s", "q_goal_rad", "q_rad"])
        for run in runs:
            writer.writerows([run.name, *map(float, row)] for row in zip(run.time, run.goal, run.position, strict=True))
    with (folder / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["log", "mass", "length", "kp", "kd"])
        writer.writerows([run.name, run.load.mass, run.load.length, run.kp, run.kd] for run in runs)
    return folder / "servo.csv", folder / "runs.csv"


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    folder = tmp_path_factory.mktemp("drives")
    (folder / "drives").mkdir()
    write_logs(folder / "drives")
    return Visitor(folder)


def test_the_form_lists_runs_and_hold_outs(visitor: Visitor) -> None:
    assert "/data/drives/form" in visitor.see("/drives")
    form = visitor.see("/data/drives/form")
    assert "4 runs" in form
    for words in ("kp=8", "kp=20", "mass=0.3", "runs.csv"):
        assert words in form
    words = visitor.see("/data/drives/words?runs=drives/runs.csv&holdout=kp%3D20&simulators=yes")
    assert "actuator drives/servo.csv --runs drives/runs.csv --holdout kp=20 --simulators" in words


def test_missing_loads_are_named_and_can_be_typed(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "drives").mkdir()
    document = bam_document()
    del document["mass"]
    write_bam(tmp_path / "drives/one.json", document)
    own = Visitor(tmp_path)
    assert "the load is not known" in own.see("/data/drives/form")
    own.do("drives/start", read="yes", mass="0.5", length="0.1")
    form = own.see("/data/drives/form")
    assert "the load is not known" not in form
    assert "1 runs" in form
    assert "not a number" in own.do("drives/start", status=422, mass="heavy")
    assert "no command log" in _dropped(own, tmp_path / "drives/notes.pdf")
    assert not (tmp_path / "drives/notes.pdf").exists()


def _dropped(visitor: Visitor, path: Path) -> str:
    path.write_text("nothing")
    return visitor.do("drives/add", status=422, file=f"drives/{path.name}")


def test_from_logs_to_a_card_and_files(visitor: Visitor) -> None:
    """The parameters are those of MuJoCo's drive, within their intervals times two."""
    visitor.do("drives/start", runs="drives/runs.csv", kind="torque", name="my servo", simulators="yes")
    visitor.wait()
    page = visitor.see("/drives")
    for words in ("Actuator card", "measured-and-predicted-positions", "armature", "drive.json", ".xml"):
        assert words in page, words
    result = json.loads((visitor.folder.root / "runs/actuator-1/result.json").read_text())
    assert result["verdict"]["grade"] in ("good", "warning")
    rows = {row["name"]: row for row in result["parameters"]}
    for name in ("kp_gain", "armature"):
        middle, half = rows[name]["value"], 0.5 * (rows[name]["high"] - rows[name]["low"])
        assert abs(middle - TRUTH[name]) < 2.0 * half + 0.1 * TRUTH[name], name
    assert "my servo" in visitor.see("/library")


def test_the_example_has_the_parameters_of_its_simulation(tmp_path: Path) -> None:
    """From an empty page in two actions; MuJoCo moves like the example under the same torques."""
    own = Visitor(tmp_path)
    assert "Try the example" in own.see("/drives")
    own.do("drives/example")
    assert "4 runs" in own.see("/data/drives/form")
    assert "already" in own.do("drives/example", status=422)
    rows = list(csv.DictReader((tmp_path / "drives/example-servo.csv").open()))
    run = np.array([[float(r["t_s"]), float(r["q_goal_rad"]), float(r["q_rad"])] for r in rows if r["log"] == "run4"])
    plant = DrivePlant(
        "torque", "M1",
        {"kp_gain": 1.0, "kd_gain": 1.0, "torque_limit": 2.5, "armature": 0.008, "friction_base": 0.06,
         "friction_viscous": 0.02, "delay": 0.012},
        off=False, kd=0.15, duration=6.0,
    )  # fmt: skip
    theirs = _played(plant, 15.0, 0.8, 0.12, run)
    assert np.abs(theirs - run[:, 2]).mean() < 2e-3


def _played(plant: DrivePlant, kp: float, mass: float, length: float, run: np.ndarray) -> np.ndarray:
    """Play the goals of the example in MuJoCo."""
    from unittest.mock import patch

    with patch("actuators.drive_plants._motion", lambda time, rng: np.interp(time, run[:, 0], run[:, 1])):
        log = plant._run("", kp, mass, length, np.random.default_rng(0))
    return log.position


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_is_accessible_and_fits(visitor: Visitor, page: Any, studio: Any, width: int) -> None:
    from test_studio_whole_way import serious

    page.set_viewport_size({"width": width, "height": 900})
    (studio.folder / "drives").mkdir()
    for path in (visitor.folder.root / "drives").glob("*.csv"):
        (studio.folder / "drives" / path.name).write_bytes(path.read_bytes())
    page.goto(studio.base + "/drives")
    page.get_by_role("button", name="Identify the drive").wait_for()
    assert not serious(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.fill("[name=mass]", "heavy")
    page.get_by_role("button", name="Identify the drive").click()
    message = page.locator(".trouble.refusal")
    message.wait_for()
    box = message.bounding_box()
    assert box["height"] > 20
    assert 0 <= box["x"] <= width - box["width"]
    assert 0 <= box["y"] <= 900 - box["height"]
    assert "Mass at the end of the lever" in message.inner_text()
    assert np.isfinite(box["width"])
