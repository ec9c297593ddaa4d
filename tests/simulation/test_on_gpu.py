"""Robots that follow a motion all at once move as each does alone."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_here import HERE

from steelyard.dynamics.cuda.device import Device, gpu
from steelyard.dynamics.cuda.grams import has_gpu
from steelyard.dynamics.model import Model
from steelyard.errors import SimulationError
from steelyard.excitation.trajectories import Fourier, Trajectory
from steelyard.parameters.terms import identification_terms
from steelyard.rehearsal.plants import true_model
from steelyard.robot import load_robot
from steelyard.simulation.on_gpu import FollowOnGpu
from steelyard.simulation.play import play


def motion(joints: int) -> Trajectory:
    families = (Fourier(2, 1.0),) * joints
    calm = Trajectory.standing(families, np.full(joints, 0.3))
    return calm.with_coefficients(calm.coefficients + 0.1 * np.random.default_rng(0).normal(size=calm.size))


def agreement(device: Device) -> None:
    robot = load_robot("szabo3r")
    terms = identification_terms(robot)
    nominal, robots = true_model(robot, terms), [true_model(robot, terms, "perturbed", 0.2, k) for k in range(3)]
    theta = np.array([model.theta for model in robots])
    follow = FollowOnGpu(nominal, motion(3), 200.0, nominal, 30.0, device)
    found = [device.fetch(x) for x in follow(theta)]
    expected = play(nominal, motion(3), 200.0, believed=nominal, bandwidth_rad_s=30.0, theta=theta)
    for mine, other in zip(found, (expected.q, expected.dq, expected.tau), strict=True):
        assert mine.shape == (201, 3, 3)
        assert np.abs(mine.transpose(2, 0, 1) - other).max() <= 1e-12 * np.abs(other).max()


def test_robots_side_by_side_move_as_each_alone() -> None:
    agreement(HERE)


def test_on_a_gpu() -> None:
    if not has_gpu():
        pytest.skip("there is no GPU on this machine")
    agreement(gpu())


def test_what_a_gpu_cannot_simulate_is_said() -> None:
    robot = load_robot("szabo3r")
    remembering = true_model(robot, identification_terms(robot, ["viscous", "stop"]))
    with pytest.raises(SimulationError, match="run without --gpu"):
        FollowOnGpu(remembering, motion(3), 200.0, remembering, 30.0, HERE)
    plain = true_model(robot, identification_terms(robot))
    hollow = Model(robot, plain.terms, np.where(np.arange(len(plain.theta)) == 29, -1e-6, plain.theta))
    with pytest.raises(SimulationError):
        FollowOnGpu(plain, motion(3), 200.0, plain, 30.0, HERE)(hollow.theta[None])
