"""The command `steelyard payload`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_identify_payload import BODY, ROBOT, log_of, motion, plant
from test_sensor import played
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.export import model_to_urdf
from steelyard.payload import Payload, cuboid, read_payload
from steelyard.signals.read import read_log

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")

run = CliRunner()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    model_to_urdf(Model.nominal(ROBOT), tmp_path / "arm.urdf")
    log_of(plant(), 1).save(tmp_path / "bare.csv")
    log_of(plant(BODY), 2).save(tmp_path / "loaded.csv")
    return {name: str(tmp_path / name) for name in ("arm.urdf", "bare.csv", "loaded.csv", "run")}


def test_results_files_and_the_robot_with_its_payload(files: dict[str, str]) -> None:
    command = ["payload", files["arm.urdf"], "--without", files["bare.csv"], "--with", files["loaded.csv"]]
    terms = ["--terms", "rotor,viscous,coulomb:smooth=0,quadratic"]
    out = run.invoke(app, [*command, *terms, "--for", "ur,abb", "-o", files["run"], "--json"])
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert found["mass"]["value"] == pytest.approx(6.0, abs=0.1)
    script = (Path(files["run"]) / "load.script").read_text(encoding="ascii").splitlines()[-1]
    assert float(script.removeprefix("set_target_payload(").partition(",")[0]) == pytest.approx(6.0, abs=0.1)
    module = (Path(files["run"]) / "load_abb.mod").read_text(encoding="ascii").splitlines()
    assert (module[0], module[-1]) == ("MODULE WeighedLoad", "ENDMODULE")  # RAPID allows no lines outside a module
    assert "PERS loaddata" in module[-2]
    assert found["mass"]["standard_error"] > 0.0
    assert len(found["center_of_gravity"]["value"]) == 3
    tool = yaml.safe_load((Path(files["run"]) / "load.yaml").read_text())
    assert tool["mass_kg"] == pytest.approx(found["mass"]["value"])
    # In Pinocchio, the written robot is heavier by the mass of the payload.
    bare = pin.buildModelFromUrdf(files["arm.urdf"])
    carrying = pin.buildModelFromUrdf(str(next(Path(files["run"]).glob("*_with_load.urdf"))))
    more = sum(i.mass for i in carrying.inertias) - sum(i.mass for i in bare.inertias)
    assert more == pytest.approx(found["mass"]["value"])
    idle = run.invoke(app, [*command, "--for", "ur", "--design"])
    assert idle.exit_code == 2
    assert "--for writes an identified payload" in idle.stderr
    wrong = run.invoke(app, [*command, "--for", "urr"])
    assert wrong.exit_code == 2
    assert "urr" in wrong.stderr
    again = run.invoke(app, [*command, "-o", files["run"]])
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_the_table_on_the_terminal(files: dict[str, str]) -> None:
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


TERMS = ("--terms", "rotor,viscous,coulomb:smooth=0,quadratic")


def test_several_payloads_at_once(files: dict[str, str], tmp_path: Path) -> None:
    other = cuboid(2.0, np.array([0.1, 0.1, 0.1]), np.array([0.0, 0.05, 0.05]))
    log_of(plant(other), 3).save(tmp_path / "other.csv")
    both = ["--with", f"heavy={files['loaded.csv']}", "--with", f"light={tmp_path / 'other.csv'}"]
    command = ["payload", files["arm.urdf"], "--without", files["bare.csv"], *both, *TERMS]
    out = run.invoke(app, [*command, "-o", files["run"], "--json"])
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)["loads"]
    assert [found[name]["mass"]["value"] for name in ("heavy", "light")] == pytest.approx([6.0, 2.0], abs=0.1)
    assert {p.parent.name for p in Path(files["run"]).glob("*/load.yaml")} == {"heavy", "light"}
    mixed = run.invoke(app, [*command, "--with", files["loaded.csv"]])
    assert mixed.exit_code == 2
    assert "name all or none" in " ".join(mixed.stderr.split())


def test_gains_from_a_known_payload(tmp_path: Path) -> None:
    """The payload file is in the format of the command; its gains.toml corrects the torques of a log."""
    truth = np.array([1.3, 0.8, 1.1, 0.9, 1.2, 1.05])
    model_to_urdf(Model.nominal(ROBOT), tmp_path / "arm.urdf")
    for name, model, seed in (("bare", plant(), 1), ("loaded", plant(BODY), 2)):
        log_of(model, seed, 0.2, truth).save(tmp_path / f"{name}.csv")
    load = Payload(ROBOT.link_names[-1], BODY, np.zeros((10, 10)))
    (tmp_path / "load.yaml").write_text(load.to_yaml())
    np.testing.assert_allclose(read_payload(tmp_path / "load.yaml").parameters, BODY, atol=1e-12)
    logs = ["--without", str(tmp_path / "bare.csv"), "--with", str(tmp_path / "loaded.csv")]
    command = ["payload", str(tmp_path / "arm.urdf"), *logs, *TERMS, "--known", str(tmp_path / "load.yaml")]
    out = run.invoke(app, [*command, "-o", str(tmp_path / "gains")])
    assert out.exit_code == 0, out.output
    found = json.loads((tmp_path / "gains" / "result.json").read_text())["torque_scale"]
    away = [(x["value"] - g) / x["standard_error"] for x, g in zip(found, truth, strict=True)]
    assert np.max(np.abs(away)) < 4.0
    with_map = read_log(tmp_path / "bare.csv", ROBOT, tmp_path / "gains" / "gains.toml")
    right = plant().torque(*motion(1)[1:])
    # Noise of 0.2 N m, and the errors of the gains.
    assert np.sqrt(np.mean((with_map.tau - right) ** 2)) < 0.05 * np.std(right)
    (tmp_path / "load.yaml").write_text("frame: tool\nmass_kg: -2\n")
    bad = run.invoke(app, command)
    assert bad.exit_code == 2
    assert "load.yaml" in bad.stderr


def test_a_motion_for_the_sensor_and_both_forms_of_its_equations(tmp_path: Path) -> None:
    designed = run.invoke(
        app, ["payload", "irp6-wrist", "--design", "--duration", "1.5", "--rate", "30", "-o", str(tmp_path / "motion")]
    )
    assert designed.exit_code == 0, designed.output
    table = np.loadtxt(tmp_path / "motion" / "motion.csv", delimiter=",", skiprows=1)
    assert table[-1, 0] == pytest.approx(1.5, abs=0.04)
    log = played(0, 1.83)
    columns = ["t", *(f"{x}{k}" for x in ("q", "dq") for k in range(1, 6)), "fx", "fy", "fz", "tx", "ty", "tz"]
    rows = np.column_stack([log.t, log.q, log.dq, log.channels["wrench"]])
    np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=",".join(columns), comments="")
    (tmp_path / "map.toml").write_text('wrench = ["fx", "fy", "fz", "tx", "ty", "tz"]\n')
    logs = ["--with", str(tmp_path / "run.csv"), "--map", str(tmp_path / "map.toml")]
    command = ["payload", "irp6-wrist", "--sensor", *logs, "--json"]
    masses = []
    for more in ((), ("--integral", "0.1")):
        out = run.invoke(app, [*command, *more])
        assert out.exit_code == 0, out.output
        masses.append(json.loads(out.stdout)["mass"])
    # Both forms identify the same cuboid of 1.91 kg.
    assert masses[0]["value"] != masses[1]["value"]
    assert all(abs(m["value"] - 1.91) < 4.0 * m["standard_error"] for m in masses)
    alone = run.invoke(app, ["payload", "irp6-wrist", *logs, "--integral", "0.1"])
    assert alone.exit_code == 2
