"""Derivatives of the torque with respect to zeros, gravity and joint placements match Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles import PinocchioOracle, pinocchio_of, public_robot_path

from steelyard.assumptions.placement import Placements, across
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import rotation_about

# Sums of some hundred products of numbers of about 10, in double precision.
ROUNDING = 1e-10
# A central difference over 2e-4 of the largest torque derivatives here: its error is of their third derivative.
STEP, DIFFERENCE = 1e-4, 1e-5


def states(robot: Robot, count: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, count, robot.dof))
    return q, dq, ddq


def placements(robot: Robot) -> Placements:
    return Placements(robot, *states(robot), robot.inertial_parameters)


@pytest.mark.parametrize("name", ["rotradi", "arm7", "prrrp"])
def test_a_zero_moves_the_torque_as_pinocchio_says(name: str) -> None:
    robot = load_robot(name)
    ours, oracle = placements(robot), PinocchioOracle(robot)
    slopes = np.concatenate([ours.displacement_slopes(k, ours.screws[k][:, :, None]) for k in range(robot.dof)], axis=2)
    for k, state in enumerate(zip(*states(robot), strict=True)):
        oracle.pin.computeRNEADerivatives(oracle.model, oracle.data, *oracle.tree(*state))
        np.testing.assert_allclose(slopes[k], oracle.data.dtau_dq, atol=ROUNDING)


def moved(robot: Robot, link: int, rotation: np.ndarray, shift: np.ndarray) -> Robot:
    """The robot with the joint frame of a link elsewhere: turned and shifted in its own directions."""
    links = list(robot.links)
    old = links[link]
    links[link] = replace(old, rotation=old.rotation @ rotation, translation=old.translation + old.rotation @ shift)
    return replace(robot, links=tuple(links))


@pytest.mark.parametrize("name", ["arm7", "prrrp"])
def test_a_joint_frame_elsewhere_moves_the_torque_as_pinocchio_says(name: str) -> None:
    robot = load_robot(name)
    ours = placements(robot)
    for link in range(1, len(robot.links)):
        axis = np.array(robot.links[link].axis)
        u, w = across(axis)
        slopes = ours.displacement_slopes(link, ours.directions(link))
        changes = [(np.eye(3), d) for d in (axis, u, w)] + [(d, np.zeros(3)) for d in (u, w)]
        for k, (turn, shift) in enumerate(changes):
            ends = []
            for step in (STEP, -STEP):
                rotation = np.eye(3) if turn.ndim == 2 else rotation_about(turn, step)
                other = moved(robot, link, rotation, step * shift)
                ends.append(PinocchioOracle(other, pinocchio_of(other)).over("torque", *states(robot)))
            expected = (ends[0] - ends[1]) / (2.0 * STEP)
            np.testing.assert_allclose(slopes[:, :, k], expected, atol=DIFFERENCE)


def test_gravity_pulls_as_pinocchio_says() -> None:
    robot = load_robot("arm7")
    change = np.array([0.3, -0.2, 0.5])
    pulled = placements(robot).gravity_slopes(change)
    torques = [
        PinocchioOracle(r).over("torque", *states(r)) for r in (robot, robot.with_gravity(robot.gravity + change))
    ]
    np.testing.assert_allclose(pulled, torques[1] - torques[0], atol=ROUNDING)


def test_the_torque_of_a_public_arm_is_pinocchios() -> None:
    robot = load_robot(public_robot_path("ur10"))
    np.testing.assert_allclose(
        placements(robot).torque, PinocchioOracle(robot).over("torque", *states(robot)), atol=1e-9
    )
