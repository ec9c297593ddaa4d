"""`model_to_pinocchio`, `model_to_mujoco`: convert a model to objects of other libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._bodies import Body, bodies_of
from steelyard.export._simple_terms import ARMATURE, DAMPING, FRICTION, simple_terms
from steelyard.export.mjcf import mjcf_text
from steelyard.ground.extras import import_extra


class LeftOutWarning(UserWarning):
    """A part of a model is not supported by another library."""


def model_to_pinocchio(model: Model) -> Any:
    """Convert a `model` to a `pinocchio.Model` with limits, gravity, frames, armature, damping and friction.

    Find joints by name: their order is that of the robot's links, which may differ from that of the arrays after
    `load_robot(…, joints=[…])`. Pinocchio's `rnea` includes the armature, but neither damping nor friction. An
    unsupported part causes a `LeftOutWarning`.
    """
    pin = import_extra("pinocchio", "collision", "to_pinocchio", ExportError)
    terms, bodies = simple_terms(model, (DAMPING, FRICTION, ARMATURE)), bodies_of(model)
    out, ids = pin.Model(), {-1: 0}
    out.name = model.robot.name
    out.gravity = pin.Motion(np.array(model.robot.gravity), np.zeros(3))
    for k, body in enumerate(bodies):
        kind = pin.JointModelRevoluteUnaligned if body.kind == "revolute" else pin.JointModelPrismaticUnaligned
        place = pin.SE3(np.array(body.rotation), np.array(body.translation))
        axis = np.array(body.axis) / np.linalg.norm(body.axis)
        ids[k] = out.addJoint(ids[body.parent], kind(axis), place, body.joint, *_limits(body))
        out.addJointFrame(ids[k])
        inertia = pin.Inertia(body.inertial.mass, np.array(body.inertial.com), np.array(body.inertial.tensor))
        out.appendBodyToJoint(ids[k], inertia, pin.SE3.Identity())
        out.addBodyFrame(body.name, ids[k], pin.SE3.Identity(), -1)
    for name, frame in model.robot.frames.items():
        place = pin.SE3(np.array(frame.rotation), np.array(frame.translation))
        out.addFrame(pin.Frame(name, ids[frame.host], 0, place, pin.FrameType.OP_FRAME))
    for k, body in enumerate(bodies):
        if body.follows is None:
            continue
        if not hasattr(pin, "transformJointIntoMimic"):
            raise ExportError(
                f"Joint '{body.joint}' follows '{body.follows.leader}', which this version of Pinocchio does not "
                "support; update it."
            )
        leader = out.getJointId(body.follows.leader)
        out = pin.transformJointIntoMimic(out, leader, ids[k], body.follows.ratio, body.follows.offset)
    indices = [out.joints[out.getJointId(joint.name)].idx_v for joint in model.robot.joints]
    for name, values in (("armature", terms.armature), ("damping", terms.damping), ("friction", terms.friction)):
        each = np.zeros(out.nv)
        each[indices] = values
        setattr(out, name, each)
        if name == "friction" and hasattr(out, "lowerDryFrictionLimit"):
            out.lowerDryFrictionLimit = -each
    _warn(terms.missing)
    return out


def _limits(body: Body) -> tuple[Any, ...]:
    """Effort, velocity, lowest and highest position; Pinocchio uses the largest float for "no limit"."""
    most = np.finfo(float).max
    limits = (body.limits.effort, body.limits.velocity, body.limits.lower, body.limits.upper)
    return tuple(np.array([np.clip(x, -most, most)]) for x in limits)


def model_to_mujoco(model: Model) -> Any:
    """Convert a `model` to a compiled `mujoco.MjModel`, like `model_to_mjcf` without a file.

    Find joints by name; each independent joint has a torque motor. A part that MuJoCo does not support exactly causes a
    `LeftOutWarning`.
    """
    mujoco = import_extra("mujoco", "oracle", "to_mujoco", ExportError)
    text, notes = mjcf_text(model)
    _warn(notes)
    return mujoco.MjModel.from_xml_string(text)


def _warn(notes: tuple[str, ...]) -> None:
    for note in notes:
        warnings.warn(note, LeftOutWarning, stacklevel=4)  # the caller of the result's method
