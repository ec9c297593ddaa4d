"""The ROS 2 package compiles against small stand-ins for the headers of ROS and computes the model's numbers."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.export import model_to_c
from steelyard.robot.library import builtin

ROOT = Path(__file__).parents[2]
PACKAGE, HERE = ROOT / "ros2" / "steelyard_dynamics", Path(__file__).parent
Q, DQ, DDQ = np.array([0.3, -0.5, 0.7]), np.array([0.4, 0.2, -0.6]), np.array([1.0, 0.0, -2.0])


@pytest.fixture(scope="module")
def model() -> sy.Model:
    return sy.Model.nominal(builtin("rotradi"))


@pytest.fixture(scope="module")
def folder(model: sy.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported C code, compiled, and the header that CMake would write."""
    if shutil.which("g++") is None or shutil.which("gcc") is None:
        pytest.skip("there is no compiler")
    out = tmp_path_factory.mktemp("ros2")
    model_to_c(model, out / "robot.c", "robot")
    template = (PACKAGE / "src" / "model_name.hpp.in").read_text()
    names = template.replace("@MODEL_NAME@", "robot").replace("@MODEL_CONSTANT@", "ROBOT")
    (out / "model_name.hpp").write_text(names)
    subprocess.run(["gcc", "-std=c99", "-c", "robot.c", "-o", "robot.o"], cwd=out, check=True)
    return out


def compiled(folder: Path, *sources: Path) -> list[str]:
    """Lines that the program of the sources prints."""
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{HERE / 'headers'}", f"-I{folder}"]
    words = ["g++", *flags, *map(str, sources), "robot.o", "-o", "program"]
    subprocess.run(words, cwd=folder, check=True)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_plug_in_computes_the_models_torques(folder: Path, model: sy.Model) -> None:
    lines = dict(
        line.split(" ", 1) for line in compiled(folder, PACKAGE / "src" / "solver.cpp", HERE / "call_solver.cpp")
    )
    got = {name: np.array(words.split(), dtype=float) for name, words in lines.items() if name != "error"}
    still = np.zeros(3)
    gravity = model.torque(Q, still, still)
    assert got["torques"] == pytest.approx(model.torque(Q, DQ, DDQ), rel=1e-12)
    assert got["gravity"] == pytest.approx(gravity, rel=1e-12)
    assert got["inertia"].reshape(3, 3) == pytest.approx(model.mass_matrix(Q), rel=1e-12)
    rigid = model.rigid_torque(Q, DQ, still) - model.rigid_torque(Q, still, still)
    assert got["coriolis"] == pytest.approx(rigid, rel=1e-9, abs=1e-12)
    friction = model.torque(Q, DQ, still) - model.rigid_torque(Q, DQ, still)
    assert got["friction"] == pytest.approx(friction, rel=1e-9, abs=1e-12)
    assert lines["error"] == "joint_positions has 2 entries; the model has 3 joints."


def test_the_node_orders_joints_by_name(folder: Path, model: sy.Model) -> None:
    lines = compiled(folder, PACKAGE / "src" / "model_torque.cpp", HERE / "call_node.cpp")
    assert [line.split()[0] for line in lines] == ["~/torque", "~/external"]  # none for the message without velocities
    torque, external = (np.array(line.split()[1:], dtype=float) for line in lines)
    expected = model.torque(Q, DQ, np.zeros(3))
    assert torque == pytest.approx(expected, rel=1e-12)
    assert external == pytest.approx(np.array([1.0, 2.0, 3.0]) - expected, rel=1e-12)


def test_the_files_of_the_package_name_each_other() -> None:
    package = ET.parse(PACKAGE / "package.xml").getroot()
    cmake = (PACKAGE / "CMakeLists.txt").read_text()
    needed = {d.text for d in package.findall("depend")} - {"eigen"}
    assert needed <= set(re.findall(r"find_package\((\w+)", cmake))
    library = ET.parse(PACKAGE / "steelyard_dynamics.xml").getroot()
    solver = library.find("class")
    assert solver is not None
    assert library.get("path") in re.findall(r"add_library\((\w+) SHARED", cmake)
    export = (PACKAGE / "src" / "solver.cpp").read_text()
    assert f"PLUGINLIB_EXPORT_CLASS({solver.get('type')}, {solver.get('base_class_type')})" in export
    for source in re.findall(r"src/\w+\.cpp", cmake):
        assert (PACKAGE / source).is_file()
    assert package.findtext("version") == version("steelyard")
