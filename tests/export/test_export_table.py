"""Parameters as a table, and atomic writing of files."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import ShapeError
from steelyard.export import parameters_to_csv
from steelyard.ground.files import write_whole
from steelyard.robot import load_robot


def test_every_parameter_has_its_row(tmp_path):
    model = Model.nominal(load_robot("irp6"))
    errors = np.linspace(0.01, 0.1, len(model.theta))
    errors[3] = np.nan
    parameters_to_csv(model, tmp_path / "p.csv", errors)
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == list(model.theta)
    assert rows[0] | {"value": ""} == {
        **{
            "name": "m1",
            "unit": "kg",
            "value": "",
            "standard_error": "0.01",
            "lower": "0.0",
            "upper": "",
            "of": "link1",
        }
    }
    assert rows[3]["standard_error"] == ""
    assert (rows[-1]["name"], rows[-1]["of"]) == ("Fv_motor3", "motor3")
    parameters_to_csv(model, tmp_path / "q.csv")
    assert ",,0.0," in (tmp_path / "q.csv").read_text(encoding="utf-8").splitlines()[1]
    with pytest.raises(ShapeError, match="standard_errors has shape"):
        parameters_to_csv(model, tmp_path / "q.csv", [1.0])


def test_a_file_is_written_atomically(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_whole(path, "ä")
    assert path.read_bytes() == "ä".encode()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text(encoding="utf-8") == "ä"
