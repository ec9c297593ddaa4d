"""`steelyard payload` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_weigh import BODY, ROBOT, log_of, plant
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.export import model_to_urdf

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")

run = CliRunner()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    model_to_urdf(Model.nominal(ROBOT), tmp_path / "arm.urdf")
    log_of(plant(), 1).save(tmp_path / "bare.csv")
    log_of(plant(BODY), 2).save(tmp_path / "loaded.csv")
    return {name: str(tmp_path / name) for name in ("arm.urdf", "bare.csv", "loaded.csv", "run")}


def test_weighed_written_and_merged(files: dict[str, str]) -> None:
    command = ["payload", files["arm.urdf"], "--without", files["bare.csv"], "--with", files["loaded.csv"]]
    terms = ["--terms", "rotor,viscous,coulomb:smooth=0,quadratic"]
    out = run.invoke(app, [*command, *terms, "-o", files["run"], "--json"])
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert found["mass"]["value"] == pytest.approx(6.0, abs=0.1)
    assert found["mass"]["standard_error"] > 0.0
    assert len(found["center_of_gravity"]["value"]) == 3
    tool = yaml.safe_load((Path(files["run"]) / "load.yaml").read_text())
    assert tool["mass_kg"] == pytest.approx(found["mass"]["value"])
    # The robot that carries the load, read by somebody else, weighs as much more.
    bare = pin.buildModelFromUrdf(files["arm.urdf"])
    carrying = pin.buildModelFromUrdf(str(next(Path(files["run"]).glob("*_with_load.urdf"))))
    more = sum(i.mass for i in carrying.inertias) - sum(i.mass for i in bare.inertias)
    assert more == pytest.approx(found["mass"]["value"])
    again = run.invoke(app, [*command, "-o", files["run"]])
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_a_table_for_people(files: dict[str, str]) -> None:
    command = ["payload", files["arm.urdf"], "--without", files["bare.csv"], "--with", files["loaded.csv"]]
    out = run.invoke(app, command)
    assert out.exit_code == 0, out.output
    assert "centre of gravity x" in out.stdout
    assert "95 % confidence" in out.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--with", "loaded.csv"], "give logs without it"),
        (["--with", "loaded.csv", "--without", "bare.csv", "--frame", "tol"], "There is no frame 'tol'"),
        (["--with", "loaded.csv", "--without", "bare.csv", "--friction", "none"], "choose own or common"),
        (["--with", "loaded.csv", "--sensor"], "there is no wrench"),
        (["--with", "loaded.csv", "--arm", "."], "there is no model"),
    ],
)
def test_bad_input(files: dict[str, str], options: list[str], words: str) -> None:
    empty = Path(files["run"])
    empty.mkdir()
    named = [str(empty) if word == "." else files.get(word, word) for word in options]
    out = run.invoke(app, ["payload", files["arm.urdf"], *named])
    assert out.exit_code == 2
    assert words in " ".join(out.stderr.split())
    assert np.array_equal(list(empty.iterdir()), [])
