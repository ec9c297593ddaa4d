"""`steelyard identify` from files: its files, and its refusals: one sentence, and no file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard import identify
from steelyard.cli import app
from steelyard.demo import simulated_log
from steelyard.dynamics import Model
from steelyard.robot.library import builtin


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of the Rotradi arm, every tenth sample: t, q1…, dq1…, tau1…"""
    log = simulated_log(Model.nominal(builtin("rotradi")), 1)
    assert log.dq is not None
    assert log.tau is not None
    table = np.column_stack([log.t, log.q, log.dq, log.tau])[::10]
    path = tmp_path_factory.mktemp("logs") / "run.csv"
    names = ["t", *(f"{x}{k}" for x in ("q", "dq", "tau") for k in (1, 2, 3))]
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")
    return path


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_a_csv_becomes_a_run(csv: Path, tmp_path: Path) -> None:
    terms = ("--terms", "viscous,coulomb")
    code, out, err = run("identify", "rotradi", str(csv), "--holdout", "0.3", *terms, "-o", str(tmp_path / "run"))
    assert (code, err) == (0, "")
    assert "(validation, scored at" in out
    files = {p.name for p in (tmp_path / "run").iterdir()}
    expected = {"result.json", "report.html", "rotradi.urdf", "rotradi.xml", "rotradi.steelyard.json"}
    assert expected | {"parameters.csv", "covariance.csv", "manifest.json"} == files
    # The last lines name every file; those of robots with their own error.
    last = " ".join(out[out.rindex("Report:") :].split())
    places = re.findall(re.escape(str(tmp_path / "run")) + r"/[\w.]+\w", last)
    assert {Path(place).name for place in places} == expected - {"rotradi.steelyard.json"} | {
        "parameters.csv", "covariance.csv",
    }  # fmt: skip
    assert all(Path(place).is_file() for place in places)
    assert last.count("torque error") == 2
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["base_parameters"]["count"] == 21
    assert result["validation"][0]["joints"][0]["nrmse_percent"] < 5.0
    code, out, err = run("identify", "rotradi", str(csv), *terms, "-o", str(tmp_path / "run"))
    assert code == 2
    assert "--overwrite" in err
    own = tmp_path / "run" / "log.csv"
    own.write_bytes(csv.read_bytes())
    code, out, err = run("identify", "rotradi", str(own), *terms, "-o", str(tmp_path / "run"), "--overwrite")
    assert code == 2
    assert "contains 'log.csv', which no run wrote" in err
    assert own.exists()
    code, out, _ = run("identify", "rotradi", str(csv), *terms, "--json")
    assert code == 0
    assert json.loads(out)["physically_consistent"] is True


def changed(csv: Path, change: Callable[[list[list[str]]], object]) -> str:
    rows = [line.split(",") for line in csv.read_text().splitlines()]
    out = change(rows)
    return "\n".join(",".join(row) for row in (out if isinstance(out, list) else rows)) + "\n"


def put(row: int, column: int, text: str) -> Callable[[list[list[str]]], object]:
    def change(rows: list[list[str]]) -> None:
        rows[row][column] = text

    return change


def all_of(column: int, text: str) -> Callable[[list[list[str]]], object]:
    def change(rows: list[list[str]]) -> None:
        for row in rows[1:]:
            row[column] = text

    return change


BAD = {
    "a missing column": (lambda rows: [r[:3] + r[4:] for r in rows], ["q3"]),
    "text in a number": (put(7, 5, "fast"), ["fast"]),
    "not a number": (put(7, 2, "nan"), ["q2"]),
    "constant time": (all_of(0, "1.0"), ["time"]),
    "three samples": (lambda rows: rows[:4], ["sample"]),
    "an empty file": (lambda rows: [[""]], []),
    "two joints only": (lambda rows: [[r[0], r[1], r[2], r[4], r[5], r[7], r[8]] for r in rows], ["q3"]),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_logs_are_refused_in_one_sentence(what: str, csv: Path, tmp_path: Path) -> None:
    change, words = BAD[what]
    bad = tmp_path / "bad.csv"
    bad.write_text(changed(csv, change))  # type: ignore[arg-type]
    code, _, err = run("identify", "rotradi", str(bad), "-o", str(tmp_path / "run"))
    assert code == 2, err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert "bad.csv" in err
    for word in words:
        assert word in err
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_torque_that_is_all_zero_is_refused(csv: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    rows = [line.split(",") for line in csv.read_text().splitlines()]
    bad.write_text("\n".join(",".join(r if k == 0 else [*r[:7], "0", "0", "0"]) for k, r in enumerate(rows)))
    code, _, err = run("identify", "rotradi", str(bad), "-o", str(tmp_path / "run"))
    assert code == 2, err
    assert "torque" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--estimator", "wsl"], "Did you mean 'wls'"),
        (["--terms", "viscuos"], "Did you mean 'viscous'"),
        (["--terms", "coulomb:smooth"], "name=value"),
        (["--scheme", "energetic"], "Known: dynamic"),
        (["--holdout", "1.5"], "give 0 to 1"),
        (["--holdout-blocks", "5"], "seconds:every"),
        (["--holdout", "0.3", "--holdout-blocks", "0.5:3"], "exclude each other"),
        (["--prior", "mine"], "There is no prior 'mine'"),
        (["--cutoff", "900"], "half the sampling rate"),
        (["--map", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_mistakes_are_named(words: list[str], message: str, csv: Path, tmp_path: Path) -> None:
    code, _, err = run("identify", "rotradi", str(csv), *words, "-o", str(tmp_path / "run"))
    assert code == 2, err
    assert message in err
    assert not (tmp_path / "run").exists()


def test_an_output_that_cannot_be_written_is_named_before_any_work(csv: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = run("identify", "rotradi", str(csv), "-o", str(tmp_path / "file" / "run"))
    assert code == 2
    assert "cannot be written" in err or "Not a directory" in err


def test_a_fact_is_printed_once(csv: Path, tmp_path: Path) -> None:
    log, other = tmp_path / "currents.csv", tmp_path / "others.csv"
    text = csv.read_text().replace("tau", "i")
    log.write_text(text)
    # Other noise, so that the logs are no copies of each other.
    table = np.genfromtxt(log, delimiter=",", skip_header=1)
    table[:, 1:] += 1e-4 * np.random.default_rng(0).normal(size=table[:, 1:].shape)
    np.savetxt(other, table, delimiter=",", header=text.splitlines()[0], comments="")
    code, out, _ = run("identify", "rotradi", str(log), "--validate", str(other), "--terms", "viscous,coulomb")
    assert code == 1
    assert "Do not use this model" in " ".join(out.split())
    assert " ".join(out.split()).count("Give torque_constants") == 1
    assert "currents, others (validation): The log has motor currents" in " ".join(out.split())


def test_a_free_fit_is_always_kept(csv: Path, tmp_path: Path) -> None:
    """Without a prior a link of the free fit has an impossible inertia. The robot files hold the possible fit."""
    folder = tmp_path / "run"
    code, out, err = run("identify", "rotradi", str(csv), "--plain", "--free", "--prior", "none", "-o", str(folder))
    assert (code, err) == (0, "")
    files = {p.name for p in folder.iterdir()}
    assert {"result.json", "report.html", "parameters.csv", "covariance.csv"} <= files
    missing = {x["file"]: x["reason"] for x in json.loads((folder / "result.json").read_text())["missing_files"]}
    assert set(missing) == {"rotradi.urdf", "rotradi.xml"} - files
    assert missing == {}
    said = " ".join(out.split())
    for file, reason in missing.items():
        assert "--physical" in reason
        assert f"{file} cannot be written: {reason}" in said
        assert file in (folder / "report.html").read_text()


def test_a_negative_mass_costs_the_robot_files_alone(tmp_path: Path) -> None:
    robot = builtin("rotradi")
    found = identify(robot, simulated_log(Model.nominal(robot), 1), plain=True, check=False)
    theta = found.model.theta.copy()
    theta[10] = -1.0
    # Without separate fits, as with files=False, the robot files hold the full model.
    free = replace(found, model=Model(robot, found.model.terms, theta), possible=False, formats=(), files=())
    free.save(tmp_path / "run")
    assert "parameters.csv" in {p.name for p in (tmp_path / "run").iterdir()}
    missing = {
        x["file"]: x["reason"] for x in json.loads((tmp_path / "run" / "result.json").read_text())["missing_files"]
    }
    assert set(missing) == {"rotradi.urdf", "rotradi.xml"}
    assert "negative mass (-1 kg)" in missing["rotradi.urdf"]


def test_a_possible_model_misses_no_file(csv: Path, tmp_path: Path) -> None:
    code, out, _ = run("identify", "rotradi", str(csv), "--plain", "-o", str(tmp_path / "run"))
    assert code == 0
    assert "cannot be written" not in out
    assert json.loads((tmp_path / "run" / "result.json").read_text())["missing_files"] == []
