"""Arms drawn at random, and what sensors read of them: all kinematics come from Pinocchio, never from the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import steelyard as sy
from steelyard.robot.robot import Robot

Floats = NDArray[np.float64]
SPOTS = np.array([[0.12, 0.02, 0.05], [0.05, -0.1, 0.03], [0.1, 0.08, -0.06]])
# The robot's base in the sensor's frame.
BASE = pin.SE3(Rotation.from_euler("xyz", [0.1, -0.2, 2.0]).as_matrix(), np.array([1.5, 0.4, -0.2]))


def urdf(seed: int, joints: int = 6, prismatic: float = 0.0, square: float = 0.5) -> str:
    """A serial arm; `prismatic` and `square` are the shares of sliding joints and of right angles between axes."""
    rng = np.random.default_rng(seed)
    text = '<robot name="arm"><link name="base"/>'
    for k in range(joints):
        if rng.random() < square:
            axis = ("1 0 0", "0 1 0", "0 0 1")[rng.integers(3)]
            rpy = np.pi / 2 * rng.integers(-1, 3, 3)
        else:
            axis = " ".join(repr(float(x)) for x in rng.normal(size=3))
            rpy = rng.uniform(-1.5, 1.5, 3)
        place = rng.choice([-1.0, 1.0], 3) * rng.uniform(0.03, 0.3, 3)
        kind = "prismatic" if rng.random() < prismatic else "revolute"
        text += (
            f'<link name="link{k + 1}"><inertial><origin xyz="0.05 0.02 0.08"/><mass value="{8.0 * 0.6**k}"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint{k + 1}" type="{kind}">'
            f'<origin xyz="{" ".join(repr(float(x)) for x in place)}" rpy="{" ".join(repr(float(x)) for x in rpy)}"/>'
            f'<parent link="{"base" if k == 0 else f"link{k}"}"/><child link="link{k + 1}"/><axis xyz="{axis}"/>'
            '<limit lower="-2.8" upper="2.8" velocity="2" effort="100"/></joint>'
        )
    return text + "</robot>"


@dataclass(frozen=True)
class TrueArm:
    """An arm whose joints stand elsewhere than in its description: values of deviations by their name."""

    text: str
    values: Mapping[str, float]

    @cached_property
    def robot(self) -> Robot:
        """The arm as described."""
        return sy.load_robot(self.text, snap=0.0)

    @cached_property
    def _models(self) -> tuple[pin.Model, pin.Model]:
        nominal, true = pin.buildModelFromXML(self.text), pin.buildModelFromXML(self.text)
        chain = sy.calibration.Chain(self.robot, self.robot.frame())
        for k, (link, across) in enumerate(zip(chain.links, chain.across, strict=True)):
            shift, tilt = np.zeros(3), np.zeros(3)
            for vector, letters in zip(across, ("xu", "yv", "z"), strict=False):
                near = int(np.argmax(np.abs(vector)))
                exact = abs(vector[near]) > 1.0 - 1e-9
                letter = "xyz"[near] if exact else letters[1]
                shift += self.values.get(f"{link.joint}.shift_{letter}", 0.0) * vector
                tilt += self.values.get(f"{link.joint}.tilt_{letter}", 0.0) * vector
            small = pin.SE3(np.eye(3), shift) * pin.SE3(pin.exp3(tilt), np.zeros(3))
            true.jointPlacements[k + 1] = true.jointPlacements[k + 1] * small
        return nominal, true

    def joint_values(self, what: str) -> Floats:
        return np.array([self.values.get(f"{name}.{what}", 0.0) for name in self.robot.joint_names])

    def tip(self, q: Floats) -> pin.SE3:
        """Pose of the last link for commanded joint positions."""
        nominal, true = self._models
        data = nominal.createData()
        sag = self.joint_values("compliance") * pin.computeGeneralizedGravity(nominal, data, q)
        data = true.createData()
        pin.forwardKinematics(true, data, q + self.joint_values("offset") - sag)
        return data.oMi[-1].copy()


def joint_columns(q: Floats) -> dict[str, Floats]:
    return {f"q{j + 1}_rad": q[:, j] for j in range(q.shape[1])}


def point_table(arm: TrueArm, q: Floats, points: int, noise: float, rng: np.random.Generator) -> dict[str, Floats]:
    """What a tracker reads of reflectors."""
    seen = np.array([[(BASE * arm.tip(x)).act(s) for s in SPOTS[:points]] for x in q])
    seen = seen + noise * rng.normal(size=seen.shape)
    return joint_columns(q) | {f"p{i + 1}{x}_m": seen[:, i, c] for i in range(points) for c, x in enumerate("xyz")}


def pose_table(arm: TrueArm, q: Floats, noise: float, turn: float, rng: np.random.Generator) -> dict[str, Floats]:
    """What a camera reads of a board."""
    board = pin.SE3(Rotation.from_euler("xyz", [0.3, 0.5, -0.4]).as_matrix(), SPOTS[0])
    seen = [BASE * arm.tip(x) * board for x in q]
    turns = [Rotation.from_matrix(s.rotation) * Rotation.from_rotvec(turn * rng.normal(size=3)) for s in seen]
    places = np.array([s.translation for s in seen]) + noise * rng.normal(size=(len(q), 3))
    numbers = np.array([r.as_quat() for r in turns])
    table = joint_columns(q) | {f"cam_{x}_m": places[:, c] for c, x in enumerate("xyz")}
    return table | {f"cam_q{x}": numbers[:, c] for c, x in enumerate("xyzw")}


def distance_table(
    arm: TrueArm, q: Floats, anchors: Floats, noise: float, rng: np.random.Generator
) -> dict[str, Floats]:
    """What wires from anchors to a point of the tool measure."""
    points = np.array([arm.tip(x).act(SPOTS[0]) for x in q])
    lengths = np.linalg.norm(points[:, None] - anchors, axis=2) + noise * rng.normal(size=(len(q), len(anchors)))
    return joint_columns(q) | {f"wire{k + 1}_m": lengths[:, k] for k in range(len(anchors))}


def meeting(arm: TrueArm, q: Floats, gap, dimensions: int) -> Floats:
    """Move commanded postures until the tool's point, where it really is, closes a gap: what a probe stops at.

    Args:
        arm: Arm.
        q: First postures.
        gap: Function of the point's position, with values to be zero.
        dimensions: Number of these values.
    """
    out = []
    for x in q:
        x = x.copy()
        for _ in range(60):
            here = np.atleast_1d(gap(arm.tip(x).act(SPOTS[0])))
            if np.max(np.abs(here)) < 1e-12:
                break
            J = np.zeros((dimensions, len(x)))
            for k in range(len(x)):
                moved = x.copy()
                moved[k] += 1e-7
                J[:, k] = (np.atleast_1d(gap(arm.tip(moved).act(SPOTS[0]))) - here) / 1e-7
            step = -J.T @ np.linalg.solve(J @ J.T + 1e-12 * np.eye(dimensions), here)
            x += step * min(1.0, 0.3 / max(float(np.max(np.abs(step))), 1e-12))
        else:
            continue
        if np.max(np.abs(x)) < 2.8:
            out.append(x)
    return np.array(out)


def contact_table(
    arm: TrueArm, kind: str, count: int, surfaces: int, noise: float, seed: int
) -> tuple[dict[str, Floats], Floats]:
    """Commanded postures in which a probe touches planes, balls or holes; the noise is that of the joints [rad].

    Returns:
        Table, and the points where the probe really is.
    """
    rng = np.random.default_rng([seed, 5])
    places = rng.uniform(-0.3, 0.3, (surfaces, 3)) + np.array([0.3, 0.1, 0.3])
    normals = np.linalg.qr(rng.normal(size=(3, 3)))[0][np.arange(surfaces) % 3]
    radius, rows, labels = 0.08, [], []
    for s in range(surfaces):
        gap = {
            "plane": lambda p, s=s: normals[s] @ (p - places[s]),
            "sphere": lambda p, s=s: np.linalg.norm(p - places[s]) - radius,
            "hole": lambda p, s=s: p - places[s],
        }[kind]
        met = meeting(arm, rng.uniform(-1.8, 1.8, (3 * count, arm.robot.dof)), gap, 3 if kind == "hole" else 1)[:count]
        rows.append(met)
        labels += [f"{kind} {s + 1}"] * len(met)
    q = np.vstack(rows)
    seen = q + noise * rng.normal(size=q.shape)
    table = joint_columns(seen) | {kind: np.array(labels)}
    return table | ({"radius_m": np.full(len(q), radius)} if kind == "sphere" else {}), q


def drawn_values(
    robot: Robot, seed: int, effects: tuple[str, ...] = ("offsets", "axes", "compliance")
) -> dict[str, float]:
    """Deviations of usual size: half a millimetre, a milliradian, offsets of three."""
    rng = np.random.default_rng([seed, 11])
    chain = sy.calibration.Chain(robot, robot.frame())
    out = {}
    for effect in effects:
        for p in sy.calibration.EFFECTS[effect].deviations(chain):
            size = {"offsets": 3e-3, "compliance": 1e-4}.get(effect, 5e-4 if p.unit == "m" else 1e-3)
            out[p.name] = size * float(rng.normal())
    return out
