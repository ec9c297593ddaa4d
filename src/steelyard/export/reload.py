"""`reload_file`: loads an exported robot file with another program to compute its torques."""

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
    """A robot file loaded by a program.

    Args:
        robot: Robot of the model; its joints give the order of all arrays.
        program: Name and version of the program.
        answer: Computes joint torques [N m or N] from positions [rad or m], velocities and accelerations, shape
            (samples, joints).
        band_hz: Highest frequency of interest [Hz]. Other programs compute one sample at a time, so only twenty samples
            per period of it are computed, with linear interpolation; 0: every sample.
    """

    robot: Robot
    program: str
    answer: _Torque
    band_hz: float = 0.0

    def torque(self, q: Array, dq: Array, ddq: Array, period: float | None = None) -> Array:
        """Compute the joint torques along a motion, shape (samples, joints).

        Args:
            q: Positions [rad or m], shape (samples, joints).
            dq: Velocities [rad/s or m/s].
            ddq: Accelerations [rad/s² or m/s²].
            period: Sampling period [s]; with `band_hz` it determines the samples that are skipped.
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
    """Load a file with MuJoCo (MJCF) or Pinocchio (URDF) if installed, else with Steelyard.

    Args:
        format_name: "urdf" or "mjcf".
        path: Path of the file.
        model: Model in the file.
        assets: Folder for relative names of meshes; None: that of the file.
    """
    has_mimic = len(model.robot.links) > model.robot.dof
    # Other programs treat mimic joints as constraints or separate joints, whose torques must be added.
    if not has_mimic and format_name == "mjcf" and find_spec("mujoco"):
        return _with_mujoco(Path(path), model.robot, assets)
    if not has_mimic and format_name == "urdf" and find_spec("pinocchio"):
        return _with_pinocchio(Path(path), model.robot)
    return _with_steelyard(format_name, Path(path), model)


def _with_mujoco(path: Path, robot: Robot, assets: Path | None) -> ReloadedFile:
    """Use `mj_inverse`: rigid bodies, armature, damping, springs, and frictionloss with MuJoCo's soft constraint."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
        if assets is not None:
            spec.modelfiledir = str(assets)
        mj = spec.compile()
    except ValueError as error:
        raise ExportError(f"{path.name}: MuJoCo cannot read it: {error}") from None
    flags = mujoco.mjtDisableBit
    mj.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT
    data = mujoco.MjData(mj)
    joints = [mj.joint(name).id for name in robot.joint_names]
    q_index, v_index = mj.jnt_qposadr[joints], mj.jnt_dofadr[joints]

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        positions, speeds, rises, forces = (np.tile(x, (len(q), 1)) for x in (data.qpos, *[np.zeros(mj.nv)] * 3))
        positions[:, q_index], speeds[:, v_index], rises[:, v_index] = q, dq, ddq
        # Look up MuJoCo's arrays once, because the loop runs for every sample.
        qpos, qvel, qacc, force = data.qpos, data.qvel, data.qacc, data.qfrc_inverse
        for k in range(len(q)):
            qpos[:], qvel[:], qacc[:] = positions[k], speeds[k], rises[k]
            mujoco.mj_inverse(mj, data)
            forces[k] = force
        return np.asarray(forces[:, v_index])

    return ReloadedFile(robot, f"MuJoCo {mujoco.__version__}", torque)


def _with_pinocchio(path: Path, robot: Robot) -> ReloadedFile:
    """Use `rnea`, which ignores damping and friction, and add both with the numbers of the file."""
    import pinocchio as pin

    try:
        pm = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as error:
        raise ExportError(f"{path.name}: Pinocchio cannot read it: {error}") from None
    pm.gravity = pin.Motion(np.array(robot.gravity), np.zeros(3))
    data = pm.createData()
    joints = [pm.joints[pm.getJointId(name)] for name in robot.joint_names]
    v_index = np.array([joint.idx_v for joint in joints])
    damping, friction = np.array(pm.damping)[v_index], _pinocchio_friction(pm)[v_index]

    def torque(q: Array, dq: Array, ddq: Array) -> Array:
        positions, speeds, rises = np.zeros((len(q), pm.nq)), np.zeros((len(q), pm.nv)), np.zeros((len(q), pm.nv))
        for k, joint in enumerate(joints):
            # Pinocchio represents a joint without limits by cosine and sine.
            entries = (np.cos(q[:, k]), np.sin(q[:, k])) if joint.nq == 2 else (q[:, k],)
            positions[:, joint.idx_q : joint.idx_q + joint.nq] = np.column_stack(entries)
        speeds[:, v_index], rises[:, v_index] = dq, ddq
        rigid = np.array([pin.rnea(pm, data, *row)[v_index] for row in zip(positions, speeds, rises, strict=True)])
        return np.asarray(rigid.reshape(q.shape) + damping * dq + friction * np.sign(dq))

    return ReloadedFile(robot, f"Pinocchio {pin.__version__}", torque)


def _pinocchio_friction(pm: Any) -> Array:
    """Dry friction, which newer versions of Pinocchio call a limit."""
    return np.array(pm.upperDryFrictionLimit if hasattr(pm, "upperDryFrictionLimit") else pm.friction)


def _with_steelyard(format_name: str, path: Path, model: Model) -> ReloadedFile:
    """Use kinematics and inertias of the file, and the joint numbers of the export."""
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
