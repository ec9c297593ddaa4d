"""Small robots and goals for the tests of excitation."""

from __future__ import annotations

import numpy as np

import steelyard as sy
from steelyard.excitation._motion_rows import TorqueRows
from steelyard.excitation.criteria import CRITERIA
from steelyard.excitation.goal import Goal
from steelyard.excitation.sampled_motions import SampledMotions
from steelyard.excitation.trajectories import Fourier
from steelyard.robot import Joint, Link, Robot


def szabo():
    """A three-axis arm with its nominal friction terms: 24 base parameters."""
    robot = sy.load_robot("szabo3r")
    return robot, sy.nominal_terms(robot)[0]


def pendulum() -> Robot:
    """Return one link on a horizontal axis, upright at q = 0: the gravity columns are cos q and sin q."""
    up = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    link = Link("arm", "q", "revolute", -1, up, np.zeros(3), np.array([0.0, 0.0, 1.0]), 0)
    return Robot("pendulum", (Joint("q", "revolute", -0.7, 0.7, 1.5),), (link,))


def torque_goal(robot, terms=None, criterion="cond", samples=150, harmonics=3, **more):
    """Return a goal over torque rows, its base parameters and its sampled motions."""
    base = sy.base_parameters(robot, terms)
    families = [Fourier(harmonics, 4.0)] * robot.dof
    sampled = SampledMotions(families, np.arange(samples) * 4.0 / samples)
    rows = TorqueRows(base.structure.dynamics, base.independent, sampled, range(robot.dof))
    return Goal(rows, CRITERIA[criterion], base.names, **more), base, sampled


def central(function, x, direction, step=1e-5):
    """Compute a directional derivative by Richardson's extrapolation of central differences: error of order step⁴."""

    def slope(h):
        return (function(x + h * direction) - function(x - h * direction)) / (2.0 * h)

    return (4.0 * slope(0.5 * step) - slope(step)) / 3.0
