"""Independent models of the robots under test, in Pinocchio and MuJoCo."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.robot import Robot
from steelyard.robot.spatial import move_parameters

# Public robots of example-robot-data: arms, hands, humanoids, quadrupeds; revolute, continuous, prismatic, branched.
PUBLIC = {
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "solo": "solo_description/robots/solo12.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "double-pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
}
# Robots that are tested with a floating base only.
FLOATING = {
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "icub": "icub_description/robots/icub_reduced.urdf",
    "hector": "hector_description/robots/quadrotor_base.urdf",
}


def public_robot_path(name: str) -> Path:
    """The URDF of a public robot; skips where example-robot-data is not installed."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    path = folder / (PUBLIC | FLOATING)[name]
    if not path.exists():
        pytest.skip(f"{path.name} is not in this example-robot-data")
    return path


def pinocchio_of(robot: Robot):
    """Our description as a Pinocchio model, one joint per link (mimic joints move freely there)."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle (pip install 'steelyard[oracle]')")
    model = pin.Model()
    model.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    ids = {-1: 0}
    for index, link in enumerate(robot.links):
        kind = pin.JointModelRevoluteUnaligned if link.kind == "revolute" else pin.JointModelPrismaticUnaligned
        place = pin.SE3(np.array(link.rotation), np.array(link.translation))
        ids[index] = model.addJoint(ids[link.parent], kind(np.array(link.axis)), place, f"{index}")
        given = np.zeros(10) if link.inertia is None else link.inertia
        body = move_parameters(given, link.frame_rotation, link.frame_translation)
        model.appendBodyToJoint(ids[index], pin.Inertia.FromDynamicParameters(body), pin.SE3.Identity())
    return model


class PinocchioOracle:
    """Everything about a robot, computed sample by sample with Pinocchio; mimic joints by projection."""

    def __init__(self, robot: Robot, model=None) -> None:
        self.pin = pytest.importorskip("pinocchio")
        self.robot = robot
        self.model = model if model is not None else pinocchio_of(robot)
        self.data = self.model.createData()
        self.follow = np.zeros((len(robot.links), robot.dof))
        for i, link in enumerate(robot.links):
            self.follow[i, link.coordinate] = link.ratio
        self.offset = np.array([link.offset for link in robot.links])

    def tree(self, q, *rates):
        position = self.pin.integrate(self.model, self.pin.neutral(self.model), self.follow @ q + self.offset)
        return position, *(self.follow @ r for r in rates)

    def regressor(self, q, dq, ddq):
        y = self.pin.computeJointTorqueRegressor(self.model, self.data, *self.tree(q, dq, ddq))
        return self.follow.T @ np.reshape(y, (len(self.robot.links), -1))  # one joint comes as a plain vector

    def torque(self, q, dq, ddq):
        return self.follow.T @ self.pin.rnea(self.model, self.data, *self.tree(q, dq, ddq))

    def mass(self, q):
        """By unit accelerations: Pinocchio's crba wants joints in depth-first order, which random trees lack."""
        still = np.zeros(self.robot.dof)
        weight = self.torque(q, still, still)
        return np.array([self.torque(q, still, unit) - weight for unit in np.eye(self.robot.dof)]).T

    def acceleration(self, q, dq, tau):
        bias = self.torque(q, dq, np.zeros_like(dq))
        return np.linalg.solve(self.mass(q), tau - bias)

    def kinetic(self, q, dq):
        return self.pin.computeKineticEnergy(self.model, self.data, *self.tree(q, dq))

    def potential(self, q):
        return self.pin.computePotentialEnergy(self.model, self.data, self.tree(q)[0])

    def over(self, function, *arrays):
        return np.array([getattr(self, function)(*row) for row in zip(*arrays, strict=True)])


def states(robot: Robot, samples: int, seed: int = 0) -> SimpleNamespace:
    """Random positions, velocities and accelerations of comparable size."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, samples, robot.dof))
    return SimpleNamespace(q=q, dq=dq, ddq=ddq)


def relative(ours, theirs) -> float:
    """Largest difference as a fraction of the largest value."""
    theirs = np.asarray(theirs)
    return float(np.max(np.abs(np.asarray(ours) - theirs)) / max(np.max(np.abs(theirs)), 1e-300))
