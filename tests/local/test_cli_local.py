"""`steelyard local` from regions to a validated and recalibrated bank: atomic folders, one-sentence errors."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from local_cases import arm
from typer.testing import CliRunner

from steelyard import Log, load_robot
from steelyard.cli import app
from steelyard.local import load_bank

REGIONS = """
regions:
  left: {joints: {q1: [-1.2, 0.0], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
  right: {joints: {q1: [0.0, 1.2], q2: [-0.8, 0.8], q3: [-1.0, 1.0]}}
"""
FIT = ("--terms", "viscous,coulomb", "--free", "--prior", "none", "--cutoff", "30")


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(w) for w in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(name="folder", scope="module")
def local_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Regions, motions and a bank."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "regions.yaml").write_text(REGIONS)
    how = ("--how", "via-points", "--duration", "6")
    code, out, err = run(
        "local", "design", "rotradi", folder / "regions.yaml", *how, "-o", folder / "motions", "--json"
    )
    assert (code, err) == (0, "")
    assert [r["name"] for r in json.loads(out)["regions"]] == ["left", "right"]
    code, out, err = run(
        "local", "identify", "rotradi", folder / "regions.yaml", "--simulate", "--motions", folder / "motions", *FIT,
        "-o", folder / "bank", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert json.loads(out)["schema"] == "steelyard.bank/1"
    return folder


def test_motions_and_bank_are_whole_folders(folder: Path) -> None:
    assert sorted(p.name for p in (folder / "motions").iterdir()) == [
        "left.csv",
        "manifest.json",
        "result.json",
        "right.csv",
    ]
    assert sorted(p.name for p in (folder / "bank").iterdir()) == [
        "left",
        "manifest.json",
        "report.html",
        "result.json",
        "right",
    ]
    assert (folder / "bank" / "left" / "trajectory.json").exists()


def test_validation_writes_a_report(folder: Path) -> None:
    few = ("--simulate", "--trajectories", "2", "--points", "2")
    code, out, err = run("local", "validate", "rotradi", folder / "bank", *few, "-o", folder / "validation", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert set(result["mean_error_percent_of_nominal"]) == {"left", "right", "bank"}
    page = (folder / "validation" / "report.html").read_text()
    for title in ("Regions", "Errors", "Transfer between regions", "Torque in region left", "Parameters"):
        assert f"<h2>{title}</h2>" in page
    code, out, _ = run("local", "validate", "rotradi", folder / "bank", *few)
    assert code == 0
    assert "in left" in out


def test_recalibration_from_a_file(folder: Path) -> None:
    bank = load_bank(folder / "bank", load_robot("rotradi"))
    arm(seed=5)(bank.local("left").motion, 1).save(folder / "again.npz")
    new = folder / "bank-later"
    code, out, err = run(
        "local", "recalibrate", "rotradi", folder / "bank", "left", "--log", folder / "again.npz", "-o", new
    )
    assert (code, err) == (0, "")
    assert "Region left, recalibrated" in out
    assert json.loads((new / "result.json").read_text())["drift"]["region"] == "left"
    assert load_bank(new, load_robot("rotradi")).local("left").seconds != bank.local("left").seconds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("identify", "rotradi", "{regions}", "--simulate", "-o", "{bank}"), "exists"),
        (("identify", "rotradi", "{regions}"), "or --simulate"),
        (("identify", "rotradi", "{regions}", "--log", "left"), "REGION=LOG"),
        (("identify", "rotradi", "{nothing}", "--simulate"), "no such file"),
        (("identify", "ns16", "{regions}", "--simulate", "--how", "magic"), "gradient"),
        (("identify", "ns16", "{regions}", "--simulate", "--motions", "{motions}"), "another robot"),
        (("validate", "ns16", "{bank}", "--simulate"), "belongs to robot 'rotradi'"),
        (("validate", "rotradi", "{motions}", "--simulate"), "no bank"),
        (("recalibrate", "rotradi", "{bank}", "middle", "--log", "x.csv"), "no region 'middle'"),
        (("design", "rotradi", "{far}"), "cannot reach region 'far'"),
        (("design", "rotradi", "{empty}"), "is empty"),
    ],
)
def test_errors_are_one_sentence_and_leave_nothing(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "far.yaml").write_text("regions: {far: {lower: [8, 8, 8], upper: [9, 9, 9]}}")
    (folder / "empty.yaml").write_text("regions: {none: {lower: [1, 1, 1], upper: [1, 2, 2]}}")
    names = {"regions": "regions.yaml", "far": "far.yaml", "empty": "empty.yaml"}
    before = sorted(p.name for p in folder.iterdir())
    places = {k: folder / names.get(k, k) for k in (*names, "bank", "motions", "nothing")}
    filled = [w.format(**places) for w in arguments]
    code, out, err = run("local", *filled)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert sorted(p.name for p in folder.iterdir()) == before


EVOLVED = ("--how", "evolved", "--duration", "3", "--population", "8", "--generations", "4", "--via-points", "2")


@pytest.mark.skipif(sys.platform == "win32", reason="a process there cannot press Ctrl-C on itself")
def test_an_evolution_is_stopped_killed_and_resumed_to_the_same_motions(folder: Path, tmp_path: Path) -> None:
    """Ctrl-C in the second generation writes the best result so far, with exit code 130. From its checkpoints, cut back
    to one generation as after a kill, the search ends in the same bytes as an uninterrupted search.
    """
    arguments = ("local", "design", "rotradi", folder / "regions.yaml", *EVOLVED)
    assert run(*arguments, "-o", tmp_path / "whole", "--json")[0] == 0
    script = (
        "import importlib, os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # background processes ignore SIGINT
        "evolve = importlib.import_module('steelyard.excitation.evolution.evolve')\n"
        "report = evolve._Evolution._report\n"
        "def pressing(self):\n"
        "    if len(self.record.values) == 2:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return report(self)\n"
        "evolve._Evolution._report = pressing\n"
        "from steelyard.cli.app import main\nmain()\n"
    )
    more = ("--checkpoint", tmp_path / "state.json")
    typed = [str(w) for w in (*arguments, *more, "-o", tmp_path / "early")]
    done = subprocess.run([sys.executable, "-c", script, *typed], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("so far is returned")) == (130, 1)
    early = json.loads((tmp_path / "early" / "result.json").read_text())
    assert [r["name"] for r in early["regions"]] == ["left", "right"]
    # The same holds for an identification that designs its motions.
    typed = [*(str(w) for w in arguments), "--simulate", "-o", str(tmp_path / "bank")]
    typed[1] = "identify"
    done = subprocess.run([sys.executable, "-c", script, *typed], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("returned")) == (130, 1)
    # A process that has not designed a motion can read them.
    t = np.arange(400) / 200.0
    log = Log(("q1", "q2", "q3"), t, np.outer(np.sin(t), [0.5, 0.2, 0.2]))
    log.save(tmp_path / "work.csv")
    typed = ["predict", str(tmp_path / "bank"), str(tmp_path / "work.csv"), "--robot", "rotradi"]
    done = subprocess.run([sys.executable, "-m", "steelyard", *typed], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("left", "right"):
        file = tmp_path / f"state-{name}.json"
        document = json.loads(file.read_text())
        assert 1 <= len(document["values"]) < 4
        file.write_text(json.dumps({**document, "values": document["values"][:1], "best": None}))
    assert run(*arguments, *more, "-o", tmp_path / "late")[0] == 0
    for file in (tmp_path / "whole").iterdir():
        if file.name != "manifest.json":
            assert file.read_bytes() == (tmp_path / "late" / file.name).read_bytes()
    code, _, err = run(*arguments, *more, "--population", "9", "-o", tmp_path / "other")
    assert code == 2
    assert "belongs to another search" in " ".join(err.split())


def test_a_bank_predicts_a_log_and_counts_samples_outside_all_regions(folder: Path, tmp_path: Path) -> None:
    t = np.arange(2000) / 200.0
    motion = np.array([1.0, 0.5, 0.6]) * np.sin(2.0 * np.pi * np.array([0.2, 0.31, 0.17]) * t[:, None])
    for name, q in (("inside", motion), ("beyond", motion + np.array([0.0, 0.6, 0.0]))):
        Log(("q1", "q2", "q3"), t, q).save(tmp_path / f"{name}.csv")
    logs = (tmp_path / "inside.csv", tmp_path / "beyond.csv")
    code, out, err = run("predict", folder / "bank", *logs, "--robot", "rotradi", "-o", tmp_path / "torques", "--json")
    assert (code, err) == (0, "")
    inside, beyond = json.loads(out)["logs"]
    assert inside["outside_all_regions"] == 0.0
    assert beyond["outside_all_regions"] > 0.1
    assert "error_percent" not in inside
    with (tmp_path / "torques" / "inside.csv").open() as file:
        heads, *rows = csv.reader(file)
    assert heads[4:7] == ["sigma_q1", "sigma_q2", "sigma_q3"]
    table = np.array(rows, dtype=float)
    bank = load_bank(folder / "bank", load_robot("rotradi"))
    w = 2.0 * np.pi * np.array([0.2, 0.31, 0.17])
    q = np.array([1.0, 0.5, 0.6]) * np.sin(w * table[:, :1])
    dq, ddq = np.array([1.0, 0.5, 0.6]) * w * np.cos(w * table[:, :1]), -(w**2) * q
    expected = bank.prediction(q, dq, ddq)
    inner = slice(200, -200)
    off = np.abs(table[inner, 1:4] - expected.torque[inner]) / np.std(expected.torque, axis=0)
    assert np.quantile(off, 0.98) < 0.02  # the rest are jumps of friction
    code, _, err = run("predict", folder / "bank", tmp_path / "inside.csv")
    assert code == 2
    assert "there is no model" in err
