"""Pinocchio and MuJoCo compute the model's torques with the converted objects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles import relative, states
from random_robots import make_tree

from steelyard import Model, load_robot, terms
from steelyard.errors import ExportError
from steelyard.export import LeftOutWarning, model_to_mujoco, model_to_pinocchio
from steelyard.parameters.friction import Coulomb

# Sums in another order; MuJoCo also computes principal axes, with an accuracy of about 1e-12.
ROUNDING = {"pinocchio": 1e-11, "mujoco": 1e-8}


def with_terms(robot, seed: int = 0) -> Model:
    """Rotors, viscous and (unsmoothed) dry friction of every joint."""
    bound = terms(robot, "rotor", "viscous", Coulomb(smooth=0.0))
    values = np.random.default_rng(seed).uniform(0.1, 2.0, len(bound))
    return Model(robot, bound, np.concatenate([robot.inertial_parameters, values]))


@pytest.mark.parametrize(("seed", "mimic"), [(0, False), (1, False), (2, True), (5, True)])
def test_pinocchio_computes_the_same_torques(seed: int, mimic: bool) -> None:
    pin = pytest.importorskip("pinocchio")
    if mimic and not hasattr(pin, "transformJointIntoMimic"):
        pytest.skip("this Pinocchio has no mimic joints")
    model = with_terms(make_tree(seed, 6, mimic=mimic), seed)
    converted, s = model_to_pinocchio(model), states(model.robot, 10, seed)
    data = converted.createData()
    at = [converted.joints[converted.getJointId(name)].idx_v for name in model.robot.joint_names]
    theirs = []
    for q, dq, ddq in zip(s.q, s.dq, s.ddq, strict=True):
        x = np.zeros((3, converted.nv))
        x[:, at] = q, dq, ddq
        theirs.append(
            (pin.rnea(converted, data, *x) + converted.damping * x[1] + converted.friction * np.sign(x[1]))[at]
        )
    assert relative(model.torque(s.q, s.dq, s.ddq), theirs) < ROUNDING["pinocchio"]
    assert np.all(converted.armature > 0.0)
    assert converted.name == model.robot.name


@pytest.mark.parametrize("seed", [0, 3])
def test_mujoco_computes_the_same_torques(seed: int) -> None:
    mujoco = pytest.importorskip("mujoco")
    model = with_terms(make_tree(seed, 6), seed)
    converted, s = model_to_mujoco(model), states(model.robot, 10, seed)
    data, theirs = mujoco.MjData(converted), []
    at = [converted.joint(name).dofadr[0] for name in model.robot.joint_names]
    for q, dq, ddq in zip(s.q, s.dq, s.ddq, strict=True):
        data.qpos[at], data.qvel[at], data.qacc[at] = q, dq, ddq
        mujoco.mj_inverse(converted, data)  # M q̈ + bias − passive − constraint forces (the dry friction)
        dry = converted.dof_frictionloss[at] * np.sign(dq)
        theirs.append(data.qfrc_inverse[at] + data.qfrc_constraint[at] + dry)
    assert relative(model.torque(s.q, s.dq, s.ddq), theirs) < ROUNDING["mujoco"]


def test_limits_frames_and_gravity_are_converted(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = load_robot("rotradi")
    first = replace(robot.joints[0], lower=-1.0, upper=2.0, velocity=3.0, effort=4.0)
    robot = replace(robot, joints=(first, *robot.joints[1:])).with_gravity((1.0, 2.0, -3.0))
    converted = model_to_pinocchio(Model.nominal(robot))
    assert (converted.lowerPositionLimit[0], converted.upperPositionLimit[0]) == (-1.0, 2.0)
    assert (converted.velocityLimit[0], converted.effortLimit[0]) == (3.0, 4.0)
    np.testing.assert_array_equal(converted.gravity.linear, (1.0, 2.0, -3.0))
    back = load_robot(converted)
    assert back.joint_names == robot.joint_names
    assert back.link_names == robot.link_names
    s = states(robot, 5)
    ours, theirs = (Model.nominal(r).torque(s.q, s.dq, s.ddq) for r in (robot, back))
    assert relative(theirs, ours) < ROUNDING["pinocchio"]
    assert converted.existFrame(robot.link_names[-1], pin.FrameType.BODY)


def test_unsupported_terms_cause_a_warning() -> None:
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    robot = make_tree(0, 3)
    bound = terms(robot, "stribeck", "offset")
    model = Model(robot, bound, np.concatenate([robot.inertial_parameters, np.ones(len(bound))]))
    with pytest.warns(LeftOutWarning, match="offset on joint"):
        model_to_pinocchio(model)
    impossible = Model(robot, terms(robot), -robot.inertial_parameters)
    with pytest.raises(ExportError, match="physical"):
        model_to_mujoco(impossible)
