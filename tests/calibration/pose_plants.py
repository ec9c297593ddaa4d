"""Robots with known errors that hold poses: their kinematics come from Pinocchio or MuJoCo, never from the package."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import steelyard as sy
from steelyard.robot.robot import Robot

Floats = NDArray[np.float64]

# A six-axis arm of one metre with an offset wrist; no two lengths are equal.
AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
PLACES = ("0 0 0.15", "0.05 0 0.25", "0 0 0.42", "0.11 0 0.07", "0.35 0 0", "0.08 0 0.03")
MASSES = (8.0, 9.0, 6.0, 3.0, 1.5, 0.5)


def arm(places: tuple[str, ...] = PLACES, turns: Floats | None = None) -> str:
    """MJCF of the arm; `turns` are rotation vectors of the bodies, one row each."""
    text, tail = '<mujoco model="plant"><compiler autolimits="true"/><worldbody>', ""
    for k, (axis, place, mass) in enumerate(zip(AXES, places, MASSES, strict=True)):
        turn = np.zeros(3) if turns is None else turns[k]
        x, y, z, w = Rotation.from_rotvec(turn).as_quat().tolist()
        text += (
            f'<body name="link{k + 1}" pos="{place}" quat="{w!r} {x!r} {y!r} {z!r}">'
            f'<joint name="joint{k + 1}" axis="{axis}" range="-150 150"/>'
            f'<inertial pos="0.05 0.01 0.1" mass="{mass}" diaginertia="0.02 0.02 0.02"/>'
        )
        tail += "</body>"
    return f"{text}{tail}</worldbody></mujoco>"


@dataclass(frozen=True)
class Errors:
    """Planted errors: shifts [m] and rotation vectors of the bodies, offsets and compliances of the joints."""

    shifts: Floats
    turns: Floats
    offsets: Floats
    compliance: Floats
    backlash: Floats

    @classmethod
    def drawn(cls, seed: int, size: float = 1.0) -> Errors:
        rng = np.random.default_rng(seed)
        return cls(
            size * 5e-4 * rng.normal(size=(6, 3)), size * 1e-3 * rng.normal(size=(6, 3)),
            size * 3e-3 * rng.normal(size=6),
            size * 1e-4 * np.array([0.0, 1.0, 1.5, 2.0, 2.0, 0.0]) * np.abs(rng.normal(size=6)), np.zeros(6),
        )  # fmt: skip


def nominal() -> Robot:
    """The arm as its maker describes it."""
    return sy.load_robot(arm(), snap=0.0)


def poses(errors: Errors, count: int, seed: int, points: int = 1, noise: float = 5e-5) -> dict[str, Floats]:
    """Table of poses that a tracker measured, from MuJoCo's kinematics of the arm with its errors.

    The joints sag under the gravity torques of the posture, also computed by MuJoCo.
    """
    rng = np.random.default_rng([seed, 7])
    q = rng.uniform(-1.8, 1.8, (count, 6))
    places = tuple(
        " ".join(repr(float(x)) for x in np.array(p.split(), float) + s)
        for p, s in zip(PLACES, errors.shifts, strict=True)
    )
    model = mujoco.MjModel.from_xml_string(arm(places, errors.turns))
    data = mujoco.MjData(model)
    base = Rotation.from_euler("xyz", [0.1, -0.2, 2.0]).as_matrix()
    spots = np.array([[0.12, 0.02, 0.05], [0.05, -0.1, 0.03], [0.1, 0.08, -0.06]])[:points]
    signs = np.sign(np.diff(q, axis=0, prepend=q[:1]))
    seen = np.zeros((count, points, 3))
    for k in range(count):
        data.qpos[:] = q[k]
        mujoco.mj_forward(model, data)  # at rest the bias force is the torque that holds the arm against gravity
        data.qpos[:] = q[k] + errors.offsets - errors.compliance * data.qfrc_bias + errors.backlash * signs[k]
        mujoco.mj_kinematics(model, data)
        rotation, place = data.xmat[-1].reshape(3, 3), data.xpos[-1]
        seen[k] = (spots @ rotation.T + place) @ base.T + [1.5, 0.4, -0.2]
    seen += noise * rng.normal(size=seen.shape)
    table = {f"q{j + 1}_rad": q[:, j] for j in range(6)}
    return table | {f"p{i + 1}{x}_m": seen[:, i, c] for i in range(points) for c, x in enumerate("xyz")}
