"""Evolutionary searches record every generation: the best so far, the mean, the number of feasible individuals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.excitation.evolution.evolve import _Record

REGIONS = "regions:\n  left: {joints: {q1: [-1.2, 0.0], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}\n"


def test_a_generation_has_the_best_so_far_and_the_mean_of_feasible_individuals() -> None:
    record = _Record()
    for values in ([np.inf, np.inf], [3.0, np.inf], [5.0, 1.0], [4.0, 2.0]):
        record.add(np.zeros((2, 1)), np.array(values))
    generations = record.fitness("value", lambda x: 10.0 * x).generations
    assert [(g.evaluations, g.best, g.mean, g.feasible) for g in generations] == [
        (4, 30.0, 30.0, 1), (6, 10.0, 30.0, 2), (8, 10.0, 30.0, 2)
    ]  # fmt: skip


def table(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open() as file:
        heads, *rows = csv.reader(file)
    return heads, np.array([[float(x or "nan") for x in row] for row in rows])


@pytest.mark.parametrize("optimiser", ["ga", "cma"])
def test_excite_writes_and_draws_the_generations(tmp_path: Path, optimiser: str) -> None:
    words = ["excite", "rotradi", "--optimiser", optimiser, "--generations", "4", "--population", "8", "--duration",
             "3", "-o", tmp_path / "run"]  # fmt: skip
    assert CliRunner().invoke(app, [str(w) for w in words]).exit_code == 0
    heads, rows = table(tmp_path / "run" / "fitness.csv")
    assert heads == ["generation", "evaluations", "best", "mean", "feasible", "individuals"]
    assert rows[-1, 1] == 4 * 8
    assert np.all(np.diff(rows[:, 2]) <= 0.0)  # the condition number, the smaller the better
    known = rows[np.isfinite(rows[:, 3])]
    assert np.all(known[:, 3] >= known[:, 2])  # no mean is better than the best
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert [g["best"] for g in result["criterion"]["fitness"]] == pytest.approx(rows[:, 2].tolist())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Fitness by generation" in page


def test_local_design_writes_and_draws_them_for_every_region(tmp_path: Path) -> None:
    (tmp_path / "regions.yaml").write_text(REGIONS)
    words = ["local", "design", "rotradi", tmp_path / "regions.yaml", "--how", "evolved", "--duration", "3",
             "--population", "8", "--generations", "4", "--via-points", "2", "-o", tmp_path / "motions"]  # fmt: skip
    assert CliRunner().invoke(app, [str(w) for w in words]).exit_code == 0
    _, rows = table(tmp_path / "motions" / "left-fitness.csv")
    assert len(rows) == 4
    region = json.loads((tmp_path / "motions" / "result.json").read_text())["regions"][0]
    assert [g["mean"] for g in region["fitness"]] == pytest.approx(rows[:, 3].tolist())
    assert "Fitness by generation" in (tmp_path / "motions" / "report.html").read_text()
