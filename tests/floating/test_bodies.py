"""Bodies from a regressor: planted ones come back, and a person on a balance board."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from log_files import real_logs, write_parquet
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.errors import SteelyardError
from steelyard.floating import identify_bodies, read_bodies
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.robot import load_robot
from steelyard.robot.free import draw_orientations
from steelyard.robot.spatial import parameters_from_com

TEN = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
URDF = """<robot name="two"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial></link><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="j" type="spherical"><parent link="a"/><child link="b"/><origin xyz="0 0 0.4"/>
</joint></robot>"""


def body(mass: float, size: float, rng: np.random.Generator) -> np.ndarray:
    points = rng.normal(scale=size, size=(6, 3))
    com = points.mean(axis=0)
    d = points - com
    tensor = mass / 6 * sum(x @ x * np.eye(3) - np.outer(x, x) for x in d)
    return parameters_from_com(mass, com, tensor)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path, np.ndarray]:
    """Two bodies joined by a ball, moving freely: force and moment on the first, with noise."""
    rng = np.random.default_rng(5)
    robot = load_robot(URDF, floating=True)
    true = np.concatenate([body(4.0, 0.2, rng), body(2.0, 0.15, rng)])
    described = np.concatenate([body(3.0, 0.2, rng), body(2.5, 0.15, rng)])
    count = 120
    q, dq, ddq = (size * rng.standard_normal((count, robot.dof)) for size in (1.0, 1.0, 3.0))
    A = robot.torque_regressor(draw_orientations(robot, q, rng), dq, ddq)[:, :6]
    b = A @ true + 0.05 * rng.standard_normal((count, 6))
    rows = {"t": np.repeat(np.arange(count) * 0.1, 6), "row_in_sample": np.tile(np.arange(6), count)}
    for k, name in enumerate("ab"):
        rows |= {f"{symbol}_{name}": A[:, :, 10 * k + i].ravel() for i, symbol in enumerate(TEN)}
    write_parquet(tmp_path / "rows.parquet", rows | {"b": b.ravel()})
    table = {"body": np.array(["a", "b"])} | {s: described.reshape(2, 10)[:, i] for i, s in enumerate(TEN)}
    write_parquet(tmp_path / "bodies.parquet", table)
    return tmp_path / "bodies.parquet", tmp_path / "rows.parquet", true


def test_planted_bodies_come_back_with_honest_intervals(tables: tuple[Path, Path, np.ndarray]) -> None:
    bodies, rows, true = tables
    result = identify_bodies(bodies, rows, holdout=0.25)
    assert result.verdict().kind == "warning"  # the description decides what a ball hides
    estimate = result.fit.estimate
    # A ball hides one parameter: the mass of the second body counts like a point of the first.
    assert estimate.base.rank == 19 < result.structural_rank == 20
    z = (estimate.beta - estimate.base.matrix @ true) / estimate.standard_errors
    assert np.mean(np.abs(z) < 2.0) > 0.8  # 19 intervals of 95 % in one log
    assert np.abs(z).max() < 4.5
    assert np.all(smallest_pseudo_eigenvalues(result.model.theta) > 0.0)
    assert result.scores[0].error < 0.1 * result.scores[0].described


def test_the_command_writes_files_that_mujoco_loads(tables: tuple[Path, Path, np.ndarray], tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    bodies, rows, _ = tables
    done = CliRunner().invoke(app, ["identify", str(bodies), str(rows), "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    assert "Stretches of time left out" in done.output
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "run" / "bodies.xml"))
    masses = [p["value"] for p in document["parameters"] if p["name"] in ("m1", "m2")]
    assert model.body_mass[1:] == pytest.approx(masses, rel=1e-9)
    assert model.nv == 12
    assert "<script>alert" not in (tmp_path / "run" / "report.html").read_text()


def test_wrong_tables_are_refused_with_the_column(tables: tuple[Path, Path, np.ndarray], tmp_path: Path) -> None:
    bodies, rows, _ = tables
    robot = read_bodies(bodies)
    write_parquet(tmp_path / "few.parquet", {"m_a": np.ones(3), "b": np.ones(3)})
    with pytest.raises(SteelyardError, match="column 'mx_a' is missing"):
        identify_bodies(robot, tmp_path / "few.parquet")
    with pytest.raises(SteelyardError, match="LENGTH:K"):
        identify_bodies(robot, rows, holdout_blocks="five")
    done = CliRunner().invoke(app, ["identify", str(bodies), str(rows), "--terms", "viscous"])
    assert done.exit_code == 2


@pytest.mark.proof
def test_a_person_on_a_balance_board_is_predicted_better_than_by_the_description() -> None:
    """Lee, Wensing & Park 2020: the odd blocks of 33 samples take no part in the choice of the weight."""
    folder = real_logs("floating/human_segments")
    result = identify_bodies(folder / "bodies.parquet", folder / "regressor.parquet", holdout_blocks="33:2")
    score = result.scores[0]
    assert score.described == pytest.approx(3.36, abs=0.01)
    assert score.error < 2.3
    assert np.sum(smallest_pseudo_eigenvalues(result.model.theta) > 0.0) == 16
