"""`reload_file`: a written robot file as another program reads it, ready to be asked for torques."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._simple_terms import simple_terms
from steelyard.export.capability import CAPABILITIES
from steelyard.ground.arrays import Array
from steelyard.robot.load import load_robot
from steelyard.robot.lock import lock_joints
from steelyard.robot.robot import Robot

_Torque = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class ReloadedFile:
    """A robot file as `program` reads it.

    Args:
        robot: the model's robot, whose joints say the order of all arrays.
        program: the program that answers, with its version.
        answer: joint torques (N m, N) of positions (rad, m), velocities and accelerations, `(samples, joints)`.
        band_hz: asked for torques up to this frequency: other programs answer one sample at a time, so that they are
            given twenty samples in a period of it, with lines in between; 0: every sample.
    """

    robot: Robot
    program: str
    answer: _Torque
    band_hz: float = 0.0

    def torque(self, q: Array, dq: Array, ddq: Array, period: float | None = None) -> Array:
        """Joint torques that the file asks for along a motion, `(samples, joints)`.

        Args:
            q: joint positions, rad or m, `(samples, joints)`.
            dq: their velocities.
            ddq: their accelerations.
            period: between samples, s; with `band_hz` it says how many of them are left out.
        """
        every = int(0.05 / (self.band_hz * period)) if self.band_hz and period else 1
        if every < 2 or len(q) < 2:
            return self.answer(q, dq, ddq)
        at = np.unique(np.append(np.arange(0, len(q), every), len(q) - 1))
        some, samples = self.answer(q[at], dq[at], ddq[at]), np.arange(len(q))
        return np.column_stack([np.interp(samples, at, column) for column in some.T])


def reload_file(
    format_name: str, path: str | os.PathLike[str], model: Model, assets: Path | None = None
) -> ReloadedFile:
    """The file at `path`, read by MuJoCo (MJCF) or Pinocchio (URDF) where they are installed, else by Steelyard.

    Args:
        format_name: "urdf" or "mjcf".
        path: of the file.
        model: what was written to it.
        assets: the folder that names of meshes in the file are relative to; None: its own.
    """
    follows = len(model.robot.links) > model.robot.dof
    # Joints that follow others are constraints or separate joints in the other programs, whose torques add up.
    if not follows and format_name == "mjcf" and find_spec("mujoco"):
        return _in_mujoco(Path(path), model.robot, assets)
    if not follows and format_name == "urdf" and find_spec("pinocchio"):
        return _in_pinocchio(Path(path), model.robot)
    return _by_ourselves(format_name, Path(path), model)


def _in_mujoco(path: Path, robot: Robot, assets: Path | None) -> ReloadedFile:
    """`mj_inverse`: rigid bodies, armature, damping, springs, and frictionloss as MuJoCo's soft constraint has it."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
        if assets is not None:
            spec.modelfiledir = str(assets)
        made = spec.compile()
    except ValueError as error:
        raise ExportError(f"{path.name}: MuJoCo does not read it: {error}") from None
    off = mujoco.mjtDisableBit
    made.opt.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_LIMIT
    data = mujoco.MjData(made)
    joints = [made.joint(name).id for name in robot.joint_names]
    places, rates = made.jnt_qposadr[joints], made.jnt_dofadr[joints]

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        at, speed, rise, found = (np.tile(x, (len(q), 1)) for x in (data.qpos, *[np.zeros(made.nv)] * 3))
        at[:, places], speed[:, rates], rise[:, rates] = q, dq, ddq
        # MuJoCo's own arrays, asked for once: every sample goes through this loop.
        qpos, qvel, qacc, force = data.qpos, data.qvel, data.qacc, data.qfrc_inverse
        for k in range(len(q)):
            qpos[:], qvel[:], qacc[:] = at[k], speed[k], rise[k]
            mujoco.mj_inverse(made, data)
            found[k] = force
        return np.asarray(found[:, rates])

    return ReloadedFile(robot, f"MuJoCo {mujoco.__version__}", torque)


def _in_pinocchio(path: Path, robot: Robot) -> ReloadedFile:
    """`rnea`, which knows neither damping nor friction: both are added as the file states them."""
    import pinocchio as pin

    try:
        made = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as error:
        raise ExportError(f"{path.name}: Pinocchio does not read it: {error}") from None
    made.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    data = made.createData()
    joints = [made.joints[made.getJointId(name)] for name in robot.joint_names]
    rates = np.array([joint.idx_v for joint in joints])
    damping, friction = np.array(made.damping)[rates], _pinocchio_friction(made)[rates]

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        at, speed, rise = np.zeros((len(q), made.nq)), np.zeros((len(q), made.nv)), np.zeros((len(q), made.nv))
        for k, joint in enumerate(joints):
            # A joint without limits is a point on a circle there.
            turned = (np.cos(q[:, k]), np.sin(q[:, k])) if joint.nq == 2 else (q[:, k],)
            at[:, joint.idx_q : joint.idx_q + joint.nq] = np.column_stack(turned)
        speed[:, rates], rise[:, rates] = dq, ddq
        rigid = np.array([pin.rnea(made, data, *row)[rates] for row in zip(at, speed, rise, strict=True)])
        return np.asarray(rigid.reshape(q.shape) + damping * dq + friction * np.sign(dq))

    return ReloadedFile(robot, f"Pinocchio {pin.__version__}", torque)


def _pinocchio_friction(made: Any) -> Array:
    """Newer Pinocchios call it a limit of dry friction."""
    return np.array(made.upperDryFrictionLimit if hasattr(made, "upperDryFrictionLimit") else made.friction)


def _by_ourselves(format_name: str, path: Path, model: Model) -> ReloadedFile:
    """Inertias and kinematics from the file, the numbers of its joints as they were written."""
    read = lock_joints(load_robot(path), model.robot.joint_names)
    rigid = Model.nominal(replace(read, gravity=model.robot.gravity, nominal_terms=()))
    terms = simple_terms(model, CAPABILITIES[format_name].numbers)

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        friction = terms.damping * dq + terms.friction * np.sign(dq)
        others = terms.armature * ddq + terms.stiffness * (q - terms.rest) + terms.offset
        for drive in terms.coupled:
            speed = dq @ drive.weights
            push = drive.armature * (ddq @ drive.weights) + drive.damping * speed + drive.friction * np.sign(speed)
            others = others + push[:, None] * drive.weights
        return np.asarray(rigid.torque(q, dq, ddq) + friction + others)

    return ReloadedFile(model.robot, "Steelyard", torque)
