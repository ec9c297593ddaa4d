"""`model_to_pinocchio`, `model_to_mujoco`: the identified model as another library's object, without a file between."""

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
    """What of a model another library's object cannot hold."""


def model_to_pinocchio(model: Model) -> Any:
    """`model` as a `pinocchio.Model`: joints, bodies, limits, gravity, frames; armature, damping and friction are set.

    Joints come in the order of the robot's links, parents first, and are to be found by their names: after
    `load_robot(…, joints=[…])` that may be another order than the arrays'. Pinocchio's own `rnea` counts the armature,
    but neither damping nor friction. What it cannot hold at all is a `LeftOutWarning`.
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
    for name, where in model.robot.frames.items():
        place = pin.SE3(np.array(where.rotation), np.array(where.translation))
        out.addFrame(pin.Frame(name, ids[where.host], 0, place, pin.FrameType.OP_FRAME))
    for k, body in enumerate(bodies):
        if body.follows is None:
            continue
        if not hasattr(pin, "transformJointIntoMimic"):
            raise ExportError(
                f"Joint '{body.joint}' follows '{body.follows.leader}', which this Pinocchio cannot say; update it."
            )
        leader = out.getJointId(body.follows.leader)
        out = pin.transformJointIntoMimic(out, leader, ids[k], body.follows.ratio, body.follows.offset)
    places = [out.joints[out.getJointId(joint.name)].idx_v for joint in model.robot.joints]
    for name, values in (("armature", terms.armature), ("damping", terms.damping), ("friction", terms.friction)):
        each = np.zeros(out.nv)
        each[places] = values
        setattr(out, name, each)
        if name == "friction" and hasattr(out, "lowerDryFrictionLimit"):
            out.lowerDryFrictionLimit = -each
    _warn(terms.missing)
    return out


def _limits(body: Body) -> tuple[Any, ...]:
    """Effort, velocity, lowest and highest position, as Pinocchio writes "none"."""
    most = np.finfo(float).max
    limits = (body.limits.effort, body.limits.velocity, body.limits.lower, body.limits.upper)
    return tuple(np.array([np.clip(x, -most, most)]) for x in limits)


def model_to_mujoco(model: Model) -> Any:
    """`model` as a compiled `mujoco.MjModel`: what `model_to_mjcf` writes, without a file.

    Joints are to be found by their names; each that moves on its own has a torque motor. What MuJoCo cannot hold, or
    only nearly, is a `LeftOutWarning`.
    """
    mujoco = import_extra("mujoco", "oracle", "to_mujoco", ExportError)
    text, notes = mjcf_text(model)
    _warn(notes)
    return mujoco.MjModel.from_xml_string(text)


def _warn(notes: tuple[str, ...]) -> None:
    for note in notes:
        warnings.warn(note, LeftOutWarning, stacklevel=4)  # the caller of the result's method
