"""Models on the command line: a run, an exported model, a robot with inertias."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.cli.options import ROBOT_OPTIONS, RobotOptions
from steelyard.errors import SteelyardError
from steelyard.export import model_to_sidecar, model_to_urdf, sidecar_path


@pytest.fixture
def exported(tmp_path: Path) -> tuple[sy.Model, Path]:
    """A model different from the nominal one, exported like `identify` does: URDF and sidecar in a folder."""
    robot = sy.load_robot("szabo3r")
    nominal = sy.Model.nominal(robot)
    model = replace(nominal, theta=nominal.theta * 1.1)
    path = tmp_path / "run" / "arm.urdf"
    path.parent.mkdir()
    model_to_urdf(model, path)
    model_to_sidecar(model, sidecar_path(path))
    return model, path


def test_a_run_and_its_urdf_give_the_exported_model(exported: tuple[sy.Model, Path]) -> None:
    model, path = exported
    motion = np.random.default_rng(1).normal(size=(3, 5, model.robot.dof))
    for source in (path, path.parent):
        loaded = ROBOT_OPTIONS.model(str(source))
        assert np.allclose(loaded.torque(*motion), model.torque(*motion), rtol=1e-9)  # digits of a URDF


def test_a_robot_gives_its_nominal_model(exported: tuple[sy.Model, Path]) -> None:
    model, path = exported
    assert np.array_equal(ROBOT_OPTIONS.model("szabo3r").theta, sy.Model.nominal(sy.load_robot("szabo3r")).theta)
    sidecar_path(path).unlink()
    plain = RobotOptions(gravity="0,0,0").model(str(path))
    assert np.all(plain.gravity_torque(np.ones((1, model.robot.dof))) == 0.0)


@pytest.mark.parametrize(("option", "value"), [("joints", "q1"), ("gravity", "0,0,-9.81"), ("snap", 1e-4)])
def test_options_of_a_description_are_refused_for_a_model(
    exported: tuple[sy.Model, Path], option: str, value: str | float
) -> None:
    with pytest.raises(SteelyardError, match=f"--{option} is for robots, but .* remove it"):
        RobotOptions(**{option: value}).model(str(exported[1]))  # type: ignore[arg-type]


def test_a_robot_without_inertias_is_refused(tmp_path: Path) -> None:
    bare = tmp_path / "bare.yaml"
    bare.write_text("convention: standard\nrows: [[q, 0.1, 0.2, 0.3]]\n")
    with pytest.raises(SteelyardError, match="no inertia is given for link"):
        ROBOT_OPTIONS.model(str(bare))
