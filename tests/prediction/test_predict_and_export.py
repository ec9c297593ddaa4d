"""`steelyard predict` and `steelyard export` against the model itself and a C compiler."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard import identify
from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.export import ModelExport, load_model, model_to_sidecar, model_to_urdf, sidecar_path
from steelyard.parameters.terms import terms
from steelyard.prediction import predict
from steelyard.robot.library import builtin
from steelyard.signals.log import Log

ROBOT = builtin("szabo3r")
BOUND = terms(ROBOT, "viscous", "coulomb")
MODEL = Model(ROBOT, BOUND, np.concatenate([ROBOT.inertial_parameters, np.full(len(BOUND), 0.3)]))


def states(seconds: float = 20.0, rate: float = 200.0) -> tuple[np.ndarray, ...]:
    t = np.arange(int(seconds * rate)) / rate
    w, size = 2.0 * np.pi * np.array([0.2, 0.31, 0.17]), np.array([0.8, 0.5, 0.9])
    return t, size * np.sin(w * t[:, None]), size * w * np.cos(w * t[:, None]), -size * w**2 * np.sin(w * t[:, None])


def log(noise: float = 0.0) -> Log:
    t, q, dq, ddq = states()
    tau = MODEL.torque(q, dq, ddq)
    rng = np.random.default_rng(0)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau + noise * np.std(tau, axis=0) * rng.normal(size=tau.shape))


def run(*arguments: str | Path) -> tuple[int, str]:
    out = CliRunner().invoke(app, [str(x) for x in arguments], env={"COLUMNS": "200"})
    return out.exit_code, " ".join(out.output.split())


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    model_to_urdf(MODEL, tmp_path / "arm.urdf")
    model_to_sidecar(MODEL, sidecar_path(tmp_path / "arm.urdf"))
    log(0.05).save(tmp_path / "log.csv")
    return tmp_path / "arm.urdf"


def test_torques_of_a_log(model_file: Path, tmp_path: Path) -> None:
    code, output = run("predict", model_file, tmp_path / "log.csv", "-o", tmp_path / "torques")
    assert code == 0, output
    with (tmp_path / "torques" / "log.csv").open() as file:
        heads, *rows = csv.reader(file)
    assert heads == ["t", "tau_q1", "tau_q2", "tau_q3"]
    table = np.array(rows, dtype=float)
    t, q, dq, ddq = states()
    expected = np.column_stack([np.interp(table[:, 0], t, x) for x in MODEL.torque(q, dq, ddq).T])
    inner = slice(200, -200)  # derivatives are worst at the ends
    # Friction jumps where a joint reverses, and a sample may be on either side.
    error = np.abs(table[inner, 1:] - expected[inner]) / np.std(expected, axis=0)
    assert np.quantile(error, 0.99) < 0.02
    found = json.loads((tmp_path / "torques" / "result.json").read_text())
    # The filter leaves the part of 5 % white noise below its cut-off, of 100 Hz; friction adds up to half of it.
    [errors] = [one["error_percent"] for one in found["logs"]]
    assert max(errors) < 1.5 * 5.0 * np.sqrt(found["cutoff_hz"] / 100.0)
    assert "Measured and predicted" in (tmp_path / "torques" / "report.html").read_text()


def test_a_log_without_torque_is_predicted_without_comparison() -> None:
    t, q, dq, _ = states()
    found = predict(MODEL, [Log(ROBOT.joint_names, t, q, dq=dq)])
    assert found.logs[0].error_percent is None
    assert "no torque to compare" in found.page()
    assert "error_percent" not in found.to_json()["logs"][0]


def test_exported_files(model_file: Path, tmp_path: Path) -> None:
    code, output = run("export", model_file, "--name", "my arm", "-o", tmp_path / "out")
    assert code == 0, output
    result = {p.name for p in (tmp_path / "out").iterdir()}
    expected = {"my_arm.urdf", "my_arm.steelyard.json", "my_arm.xml", "my_arm.c", "my_arm.h", "parameters.csv"}
    assert result == expected | {"result.json", "manifest.json"}
    _, q, dq, ddq = states(1.0, 20.0)
    again = load_model(tmp_path / "out" / "my_arm.urdf")
    np.testing.assert_allclose(again.torque(q, dq, ddq), MODEL.torque(q, dq, ddq), atol=1e-9)
    if shutil.which("gcc"):
        strict = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "my_arm.c", "-o", "my_arm.o"]
        subprocess.run(strict, cwd=tmp_path / "out", check=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("export", "szabo3r", "--to", "stl"), "no format 'stl'"),
        (("export", "szabo3r", "--to", ","), "There is no format"),
        (("export", "nobody"), "nobody"),
        (("predict", "szabo3r", "missing.csv"), "missing.csv"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], words: str) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert words in output


@pytest.mark.parametrize("name", ["7axis", "für", "*/ int main"])
def test_invalid_names_are_changed_for_c(name: str, tmp_path: Path) -> None:
    ModelExport(MODEL, ("c",), name).save(tmp_path / "out")
    [header] = (tmp_path / "out").glob("*.h")
    [function] = re.findall(r"(\w+)_inverse_dynamics\(", header.read_text())
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", function)


def test_a_run_provides_its_band(tmp_path: Path) -> None:
    """Measured torques of another log are inside the run's 95 % band in about 95 % of the samples."""
    t, q, dq, ddq = states()
    found = identify(ROBOT, log(0.05), plain=True, check=False)
    folder = found.save(tmp_path / "run")
    rng = np.random.default_rng(5)
    tau = MODEL.torque(0.8 * q, 0.8 * dq, 0.8 * ddq)
    noisy = tau + 0.05 * np.std(MODEL.torque(q, dq, ddq), axis=0) * rng.normal(size=tau.shape)
    other = Log(ROBOT.joint_names, t, 0.8 * q, dq=0.8 * dq, tau=noisy)
    result = predict(folder, [other], cutoff_hz=found.cutoff_hz)
    (one,) = result.logs
    assert one.inside_percent is not None
    assert one.half_width is not None
    # 20 s below the cut-error have several hundred independent samples, so the share is 95 % ± 2 %.
    assert 90.0 < np.mean(one.inside_percent) <= 100.0
    (direct,) = predict(found, [other], cutoff_hz=found.cutoff_hz).logs
    assert direct.half_width is not None
    np.testing.assert_allclose(direct.half_width, one.half_width, rtol=1e-6)
    result.save(tmp_path / "torques")
    with next((tmp_path / "torques").glob("*.csv")).open() as file:
        row = next(csv.DictReader(file))
    name = ROBOT.joint_names[0]
    assert float(row[f"lower_{name}"]) < float(row[f"tau_{name}"]) < float(row[f"upper_{name}"])
    assert predict(MODEL, [other]).logs[0].half_width is None


def test_a_joint_at_rest_has_a_wider_band(tmp_path: Path) -> None:
    found = identify(ROBOT, log(0.05), plain=True, check=False)
    band = found.torque_band
    q, still = np.full((5, 3), 0.3), np.zeros((5, 3))
    moving, standing = (band.half_width(q, still, still, np.full((5, 3), x)) for x in (False, True))
    # The Coulomb friction of this robot is 0.3 N m; its viscous friction of 0.3 N m s/rad adds a little.
    assert np.all(standing - moving > 0.25)
    assert np.all(standing - moving < 0.45)
