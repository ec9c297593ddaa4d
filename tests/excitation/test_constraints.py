"""Gradients of constraints, and bounds that hold between the samples."""

from __future__ import annotations

import numpy as np
import pytest
from excitation_cases import central
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import pinocchio_of
from random_robots import make_tree

import steelyard as sy
from steelyard.dynamics.graph import evaluate_graph
from steelyard.excitation.constraints import JointLimits, Plane, Point, box
from steelyard.excitation.constraints._certify import Interval, IntervalLibrary
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.constraints.traced_limit import power_limit, torque_limit, workspace
from steelyard.excitation.trajectories import Fourier, Trajectory

GRID = np.linspace(0.0, 4.0, 41)
DENSE = np.linspace(0.0, 4.0, 4001)


def a_motion(robot, seed=0, size=0.5):
    families = [Fourier(3, 4.0)] * robot.dof
    x = size * np.random.default_rng(seed).normal(size=7 * robot.dof - 2 * robot.dof)
    return families, Trajectory(tuple(families), x)


def constraints_of(robot, families):
    limits = limits_from(robot, {"q": 1.0, "dq": 1.0, "ddq": 2.0, "jerk": 9.0, "tau": 5.0, "power": 3.0})
    model = sy.Model.nominal(robot)
    planes = [*box((-0.5, -0.5, 0.0), (0.5, 0.5, 1.0)), Plane((1, 1, 0), 0.4)]
    tip = Point(robot.link_names[-1], (0.1, 0.2, 0.3), radius=0.05)
    return {
        "joint limits": JointLimits(limits, families, GRID, robot.joint_names),
        "torque": torque_limit(model, limits, families, GRID, margin=0.1),
        "power": power_limit(model, limits, families, GRID),
        "region": workspace(robot, [tip], planes, families, GRID),
    }


@pytest.mark.parametrize("which", ["joint limits", "torque", "power", "region"])
def test_gradients(which):
    robot = sy.load_robot("szabo3r")
    families, motion = a_motion(robot)
    constraint = constraints_of(robot, families)[which]
    x = motion.coefficients
    values, pull = constraint.evaluate(x)
    rng = np.random.default_rng(1)
    multipliers, direction = rng.uniform(size=len(values)), rng.normal(size=len(x))
    # Friction changes sign within 2 mrad/s here, so the steps must be short.
    slope = central(lambda y: float(multipliers @ constraint.evaluate(y)[0]), x, direction, 1e-5)
    assert pull(multipliers) @ direction == pytest.approx(slope, rel=1e-6)
    q = rng.normal(size=robot.dof)
    values, pull = constraint.at_rest(q)
    multipliers = rng.uniform(size=len(values))
    slope = central(lambda p: float(multipliers @ constraint.at_rest(p)[0]), q, q, 1e-4)
    assert pull(multipliers) @ q == pytest.approx(slope, rel=1e-6, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=5)
def test_bounds_cover_every_instant_and_are_tight(seed, links):
    robot = make_tree(seed, links)
    families, motion = a_motion(robot, seed)
    dense = constraints_dense(robot, motion)
    for name, constraint in constraints_of(robot, families).items():
        bound = constraint.excess(motion)
        reached = dense[name]
        assert bound >= reached - 1e-12, name
        if bound > 0.0:  # a positive bound is the size of the violation; a negative one only proves the limit
            assert bound <= reached + 3e-3 * (1.0 + abs(reached)), name  # pieces are halved until within 1e-3


def constraints_dense(robot, motion):
    """Return the largest value of every constraint on a dense grid, with the point's position by Pinocchio."""
    pin = pytest.importorskip("pinocchio")
    q, dq, ddq = motion.sample(DENSE)
    tau = sy.Model.nominal(robot).torque(q, dq, ddq)
    model = pinocchio_of(robot)
    data = model.createData()
    positions = []
    for row in q[::20]:
        pin.forwardKinematics(model, data, pin.integrate(model, pin.neutral(model), row))
        positions.append(data.oMi[len(robot.links)].act(np.array([0.1, 0.2, 0.3])))
    p = np.array(positions)
    outside = [p - [0.5, 0.5, 1.0] + 0.05, [-0.5, -0.5, 0.0] - p + 0.05]
    slanted = (p[:, 0] + p[:, 1] - 0.4) / np.sqrt(2.0) + 0.05
    limits = (np.abs(q), np.abs(dq), np.abs(ddq) / 2.0, np.abs(motion.jerk(DENSE)) / 9.0)
    return {
        "joint limits": max(float(x.max()) for x in limits) - 1.0,
        "torque": float(np.abs(tau).max()) / 4.5 - 1.0,
        "power": float(np.abs(tau * dq).max()) / 3.0 - 1.0,
        "region": max(float(np.max(outside)), float(slanted.max())),
    }


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_interval_arithmetic_encloses_all_values(seed):
    robot = make_tree(seed, 3)
    function = sy.Dynamics(robot, sy.terms(robot, "coulomb", "viscous")).function("torque_regressor")
    rng = np.random.default_rng(seed)
    middle, width = rng.normal(size=(3, robot.dof)), rng.uniform(0, 0.5, (3, robot.dof))
    inputs = {
        x: [Interval(np.array([m - w]), np.array([m + w])) for m, w in zip(middle[k], width[k], strict=True)]
        for k, x in enumerate(("q", "dq", "ddq"))
    }
    bounds = evaluate_graph(function.graph, function.outputs, inputs, IntervalLibrary())
    inside = {
        x: list((middle[k] + width[k] * rng.uniform(-1, 1, (200, robot.dof))).T)
        for k, x in enumerate(("q", "dq", "ddq"))
    }
    for bound, values in zip(bounds, evaluate_graph(function.graph, function.outputs, inside), strict=True):
        if isinstance(bound, Interval):
            assert np.all(values >= bound.low - 1e-9)
            assert np.all(values <= bound.high + 1e-9)


def test_friction_jumps_are_not_missed():
    """At a reversal Coulomb friction jumps: the bound covers both sides although no sample is near them."""
    robot = sy.load_robot("arm7").with_joints(["joint7"])
    families, motion = a_motion(robot, 2, 0.05)
    limits = limits_from(robot, {"tau": 1.0})
    terms = sy.terms(robot, "coulomb")
    model = sy.Model(robot, terms, np.concatenate([np.zeros(10), [1.2]]))
    assert torque_limit(model, limits, families, GRID).excess(motion) == pytest.approx(0.2, abs=1e-6)


def test_limits_come_from_the_robot_and_from_the_user():
    robot = sy.load_robot("arm7")
    own = sy.excitation.default_limits(robot)
    assert own.upper == pytest.approx([j.upper for j in robot.joints])
    assert own.ddq == pytest.approx(3.0 * own.dq)
    limits = limits_from(robot, {"q": [(-1.0, 0.5)] * 7, "dq": 1.0, "tau": None})
    assert limits.lower == pytest.approx(-1.0)
    assert limits.ddq == pytest.approx(3.0)
    assert np.all(np.isinf(limits.tau))


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"q": -1.0}, "cannot move"),
        ({"q": [(0.5, 0.5)] * 3}, "cannot move"),
        ({"dq": 0.0}, "cannot move"),
        ({"ddq": [1.0, 2.0]}, "one per joint"),
        ({"speed": 1.0}, "no limit 'speed'"),
    ],
)
def test_impossible_limits_are_refused(limits, sentence):
    with pytest.raises(sy.SteelyardError, match=sentence):
        limits_from(sy.load_robot("szabo3r"), limits)
