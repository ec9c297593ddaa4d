"""A model in C compiles without warnings and gives the numbers of the package."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from exported import Compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import PinocchioOracle, public_robot_path, relative, states
from random_robots import make_tree, trees

from steelyard.dynamics.model import Model
from steelyard.export import ExportError, model_to_c
from steelyard.export.c import _c_functions, regrouped
from steelyard.parameters import TERMS, Lag, LoadedCoulomb, LoadedStop, Stop, StopElement, make_term, terms
from steelyard.robot import load_robot
from steelyard.robot.library import builtin_names

SAME = 1e-12


def check(model: Model, folder: Path) -> Compiled:
    code = Compiled(model, folder)
    s, n = states(model.robot, 4), model.robot.dof
    start = 1 if model.has_memory else 0  # stops start without force, and one step between random states saturates them
    ours, theirs = model.torque(s.q, s.dq, s.ddq), code("inverse_dynamics", (n,), s.q, s.dq, s.ddq)
    assert relative(theirs[start:], ours[start:]) < SAME
    assert relative(code("gravity", (n,), s.q), model.dynamics.gravity_torque(s.q, model.theta)) < SAME
    assert relative(code("mass_matrix", (n, n), s.q), model.mass_matrix(s.q)) < SAME
    return code


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_robots(name, tmp_path):
    check(Model.nominal(load_robot(name)), tmp_path)


@pytest.mark.parametrize("name", ["ur10", "panda"])
def test_public_robots_against_pinocchio(name, tmp_path):
    robot = load_robot(public_robot_path(name))
    model = Model(robot, terms(robot), robot.inertial_parameters)
    code, s = check(model, tmp_path), states(robot, 4)
    theirs = PinocchioOracle(robot).over("torque", s.q, s.dq, s.ddq)
    assert relative(code("inverse_dynamics", (robot.dof,), s.q, s.dq, s.ddq), theirs) < 1e-10


@given(trees(max_links=5, mimic=True, own_frames=True), st.sampled_from(sorted(TERMS)))
@settings(max_examples=12, deadline=None)
def test_any_tree_with_any_term(robot, kind):
    bound = terms(robot, make_term(kind))
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, np.linspace(0.1, 2.0, len(bound))]))
    with tempfile.TemporaryDirectory() as folder:
        check(model, Path(folder))


@pytest.mark.parametrize("options", [{"smooth": 0.1}, {"dead_band": 0.5}])
def test_smoothed_and_cut_friction(options, tmp_path):
    robot = load_robot("rotradi")
    model = Model(robot, terms(robot, make_term("coulomb", **options)), np.r_[robot.inertial_parameters, 1.0, 2.0, 3.0])
    check(model, tmp_path)


def test_unused_inputs_and_constants_are_fine(tmp_path):
    """A massless robot with an offset: no input is used, everything is constant."""
    robot = make_tree(0, 2)
    bound = terms(robot, "offset")
    check(Model(robot, bound, np.r_[np.zeros(20), np.arange(1.0, 1.0 + len(bound))]), tmp_path)


@pytest.mark.parametrize(("name", "most"), [("arm7", 0.86), ("irp6", 0.6), ("ns16", 0.86)])
def test_regrouping_and_zeros_save_operations(name, most):
    model = Model.nominal(load_robot(name))
    general = model.dynamics.function("inverse_dynamics").cost
    assert _c_functions(model)["inverse_dynamics"].cost < most * general


def test_regrouping_keeps_the_joints_whose_torque_is_not_used():
    robot = load_robot("arm7").with_torque_used(["joint2"])
    model = Model.nominal(robot)
    lean, s = regrouped(model), states(robot, 5)
    assert np.count_nonzero(lean.theta) < np.count_nonzero(model.theta)
    assert relative(lean.torque(s.q, s.dq, s.ddq), model.torque(s.q, s.dq, s.ddq)) < SAME


def test_the_header_describes_joints_gravity_and_operations(tmp_path):
    model = Model.nominal(load_robot("arm7"))
    _, header = model_to_c(model, tmp_path / "arm.c", "arm7")
    text = header.read_text()
    for known in ("0: joint1 (rad, N m)", "#define ARM7_JOINTS 7", "Gravity in the base frame", "Operations per call"):
        assert known in text
    # Sines and cosines of six joints: no torque depends on the first, which has a vertical axis.
    assert re.search(r"inverse_dynamics: \d+, \d+, 0, 12, \d+", text)
    assert "#include <math.h>" in (tmp_path / "arm.c").read_text()
    assert (tmp_path / "arm.c").read_text().count("#include") == 2


@pytest.mark.parametrize("name", ["7arm", "my arm", "double", "", "a-b"])
def test_bad_names_are_refused(name, tmp_path):
    with pytest.raises(ExportError, match="not a valid name in C"):
        model_to_c(Model.nominal(load_robot("arm7")), tmp_path / "arm.c", name)
    with pytest.raises(ExportError, match=r"must end in \.c"):
        model_to_c(Model.nominal(load_robot("arm7")), tmp_path / "arm.h", "arm")


def test_names_cannot_break_out_of_a_comment(tmp_path):
    robot = replace(make_tree(2, 2), name="evil */ int main(void)")
    Compiled(Model.nominal(robot), tmp_path)


def test_friction_with_hysteresis_has_its_state_in_a_struct(tmp_path: Path) -> None:
    """Two stops, one load-dependent: sample by sample, starting without force, according to the definition."""
    robot = load_robot("szabo3r")
    remembering = (StopElement(width=0.003), LoadedStop(width=0.05, load_limit=2.0), LoadedCoulomb(smooth=0.1), Lag())
    bound = terms(robot, "rotor", "viscous", *remembering)
    theta = np.r_[robot.inertial_parameters, np.linspace(0.1, 0.3, len(bound))]
    model = Model(robot, bound, theta)
    t = np.linspace(0.0, 3.0, 400)[:, None]
    phase = np.array([0.0, 1.0, 2.0][: robot.dof])
    q, dq, ddq = np.sin(2.0 * t + phase), 2.0 * np.cos(2.0 * t + phase), -4.0 * np.sin(2.0 * t + phase)
    past = model.dynamics.history(q, dq, ddq, theta)
    for k, (along, c) in enumerate(bound.history):
        if isinstance(along, Stop):
            s, states = 0.0, [0.0]
            for step in np.diff(q[:, c.index]):
                s = min(max(s + step / along.width, -1.0), 1.0)
                states.append(s)
            past[:, k] = states
    compiled = Compiled(model, tmp_path)
    np.testing.assert_allclose(
        compiled("inverse_dynamics", (robot.dof,), q, dq, ddq),
        model.dynamics.inverse_dynamics(q, dq, ddq, theta, past),
        rtol=0.0,
        atol=1e-11,
    )
    header = compiled.header.read_text("utf-8")
    assert "arm_state *state" in header
    assert "is not part of the robot" in header
    plain = Model(robot, terms(robot, "viscous"), theta[: robot.inertial_count + robot.dof])
    assert "state *" not in Compiled(plain, tmp_path, "plain").header.read_text("utf-8")
