"""Convert models of other libraries to a `Robot`: `pinocchio.Model`, `mujoco.MjModel` and `mujoco.MjSpec`.

The module of the object's class identifies the library, so nothing is imported that the caller did not import. Joints,
placements, bodies, limits, gravity, armature, damping and dry friction are read; springs, tendons and actuators are
ignored, as in files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.robot._tree import Follower, Tree, couple, cut_cycles, joint_terms, joints_between
from steelyard.robot.lock import lock_joints
from steelyard.robot.loops import unlocked_loops
from steelyard.robot.robot import FREE_WIDTHS, Joint, JointKind, Link, LinkKind, Loop, Robot
from steelyard.robot.spatial import LinkFrame, move_parameters, parameters_from_com, rotation_from_quaternion

_TERMS = ("viscous", "coulomb", "rotor")


def robot_from_object(model: Any) -> Robot | None:
    """Convert `model`, an object of another library; None if it is of no supported class."""
    library = type(model).__module__.partition(".")[0]
    kind = type(model).__name__
    if library == "mujoco" and kind == "MjSpec":
        model, kind = model.copy().compile(), "MjModel"
    if library == "mujoco" and kind == "MjModel":
        return _RobotBuilder(model.names[: model.names.index(b"\0")].decode() or "robot").of_mujoco(model)
    if library == "pinocchio" and kind == "Model":
        return _RobotBuilder(model.name or "robot").of_pinocchio(model)
    return None


class _RobotBuilder:
    """Collects the parts of a robot while its joints are read."""

    def __init__(self, name: str) -> None:
        self.name, self.tree = name, Tree()
        self.joints: list[Joint] = []
        self.followers: dict[str, Follower] = {}
        # Closed loops: text and the links at both ends.
        self.closed: list[tuple[str, int, int]] = []
        self.terms: dict[str, dict[str, float]] = {kind: {} for kind in _TERMS}

    def error(self, joint: str, message: str) -> RobotError:
        return RobotError(f"{self.name}: joint '{joint}' {message}")

    def errors_of(self, joint: str) -> Callable[[str], RobotError]:
        return lambda message: self.error(joint, message)

    def robot(self, gravity: Array, fixed: dict[str, float]) -> Robot:
        if not self.joints:
            raise RobotError(f"{self.name}: no joint moves; a robot needs at least one revolute or prismatic joint.")
        followers, loops = cut_cycles(self.followers)
        joints, links = couple(self.tree.links(), self.joints, followers)
        loops += [Loop(f"{self.name}: {text}", joints_between(links, joints, a, b)) for text, a, b in self.closed]
        robot = Robot(
            self.name, joints, links, gravity,
            nominal_terms=joint_terms(links, len(joints), self.terms),
            frames={n: p for n, p in self.tree.frames.items() if n not in {link.name for link in links}},
            loops=unlocked_loops(loops, [joint.name for joint in joints]),
        )  # fmt: skip
        return lock_joints(robot, [n for n in robot.joint_names if n not in fixed], fixed) if fixed else robot

    # ------------------------------------------------------------ Pinocchio

    def of_pinocchio(self, model: Any) -> Robot:
        import pinocchio as pin

        data = model.createData()
        pin.forwardKinematics(model, data, pin.neutral(model))
        leaders = dict(zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ()), strict=True))
        bodies = _body_names(model)
        known = any(inertia.mass or np.any(inertia.inertia) for inertia in model.inertias)
        places = {0: LinkFrame()}
        for k in range(1, model.njoints):
            name, joint = str(model.names[k]), model.joints[k]
            kind, axis = _free_kind(joint) or self._screw(name, joint, np.ravel(data.joints[k].S))
            if kind in FREE_WIDTHS:
                self.joints.append(Joint(name, "revolute"))
            elif k in leaders:
                follows = joint.extract()
                if not follows.scaling:
                    raise self.error(name, "follows another joint with scaling 0; fix it instead.")
                axis = axis * np.sign(follows.scaling)  # the library's own axis has the sign of the scaling
                follower = str(model.names[leaders[k]]), float(follows.scaling), float(follows.offset)
                self.followers[name] = Follower(*follower, self.errors_of(name))
                self.joints.append(Joint(name, _coordinate_kind(kind)))
            else:
                self.joints.append(_limits(model, joint, name, _coordinate_kind(kind)))
                for term, values in zip(_TERMS, (model.damping, model.friction, model.armature), strict=True):
                    self.terms[term][name] = float(values[joint.idx_v])
            link = Link(bodies.get(k, name), name, kind, -1, np.eye(3), np.zeros(3), axis, coordinate=0)
            foot = model.jointPlacements[k]
            places[k] = self.tree.hang(places[model.parents[k]].at(foot.rotation, foot.translation), link)
            self.tree.weld(places[k], model.inertias[k].toDynamicParameters() if known else None)
        for frame in model.frames:
            if "JOINT" not in str(frame.type):
                where = frame.placement
                self.tree.frames[frame.name] = places[_parent(frame)].at(where.rotation, where.translation)
        return self.robot(np.array(model.gravity.linear), {})

    def _screw(self, name: str, joint: Any, s: Array) -> tuple[LinkKind, Array]:
        """Return the kind of a joint and its axis, from the library's Jacobian column."""
        turns = np.any(s[3:]) if s.shape == (6,) else False
        if s.shape != (6,) or (turns and np.any(s[:3])) or not np.any(s):
            raise self.error(
                name,
                f"is a {joint.shortname()}, but only joints that turn about one axis or slide along it, free flyers, "
                "spherical and planar joints are supported; build it from several such joints.",
            )
        part = s[3:] if turns else s[:3]
        return ("revolute" if turns else "prismatic"), part / np.linalg.norm(part)

    # ------------------------------------------------------------ MuJoCo

    def of_mujoco(self, model: Any) -> Robot:
        import mujoco

        names = [model.joint(k).name or f"joint{k + 1}" for k in range(model.njnt)]
        places = [LinkFrame()]
        for body in range(1, model.nbody):
            rotation = rotation_from_quaternion(*model.body_quat[body])
            place = places[model.body_parentid[body]].at(rotation, model.body_pos[body])
            first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
            called = model.body(body).name or f"body{body}"
            for k in range(first, first + count):
                link = called if k == first + count - 1 else f"{names[k]}_body"
                place = self._mujoco_joint(mujoco, model, k, names[k], link, place)
            own = parameters_from_com(model.body_mass[body], np.zeros(3), np.diag(model.body_inertia[body]))
            turn = rotation_from_quaternion(*model.body_iquat[body])
            self.tree.weld(place, move_parameters(own, turn, model.body_ipos[body]))
            if not count:
                self.tree.frames[called] = place
            places.append(place)
        for k in range(model.nsite):
            if model.site(k).name:
                turn = rotation_from_quaternion(*model.site_quat[k])
                self.tree.frames[model.site(k).name] = places[model.site_bodyid[k]].at(turn, model.site_pos[k])
        fixed = self._equalities(mujoco, model, names, places)
        weightless = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
        return self.robot(np.zeros(3) if weightless else np.array(model.opt.gravity), fixed)

    def _mujoco_joint(self, mujoco: Any, model: Any, k: int, name: str, link: str, place: LinkFrame) -> LinkFrame:
        """Attach one joint at its anchor and return the body's frame behind it."""
        types = mujoco.mjtJoint
        kinds: dict[int, LinkKind] = {
            int(types.mjJNT_HINGE): "revolute", int(types.mjJNT_SLIDE): "prismatic",
            int(types.mjJNT_FREE): "floating", int(types.mjJNT_BALL): "spherical",
        }  # fmt: skip
        kind = kinds[int(model.jnt_type[k])]
        if kind in FREE_WIDTHS:
            # The position of a free body is that in the world; a ball turns about its anchor.
            foot = np.zeros(3) if kind == "floating" else np.array(model.jnt_pos[k])
            own = Link(link, name, kind, -1, np.eye(3), np.zeros(3), np.eye(3)[2], 0, inertia=np.zeros(10))
            self.joints.append(Joint(name, "revolute"))
            start = LinkFrame() if kind == "floating" else place.at(np.eye(3), foot)
            return self.tree.hang(start, own).at(np.eye(3), -foot)
        at = int(model.jnt_dofadr[k])
        if hasattr(model, "dof_dampingpoly") and np.any(model.dof_dampingpoly[at]):
            raise self.error(name, "has a polynomial for damping, which is not supported; keep its first coefficient.")
        lower, upper = model.jnt_range[k] if model.jnt_limited[k] else (-np.inf, np.inf)
        effort = float(np.max(np.abs(model.jnt_actfrcrange[k]))) if model.jnt_actfrclimited[k] else np.inf
        turns: JointKind = "revolute" if kind == "revolute" else "prismatic"
        self.joints.append(Joint(name, turns, float(lower), float(upper), effort=effort))
        for term, values in zip(_TERMS, (model.dof_damping, model.dof_frictionloss, model.dof_armature), strict=True):
            self.terms[term][name] = float(values[at])
        foot, reference = model.jnt_pos[k], float(model.qpos0[model.jnt_qposadr[k]])
        axis = np.array(model.jnt_axis[k])
        moving_link = Link(
            link, name, kind, -1, np.eye(3), np.zeros(3), axis, 0, offset=-reference, inertia=np.zeros(10)
        )  # fmt: skip
        return self.tree.hang(place.at(np.eye(3), foot), moving_link).at(np.eye(3), -foot)

    def _equalities(self, mujoco: Any, model: Any, names: list[str], places: list[LinkFrame]) -> dict[str, float]:
        """Collect joints that follow others, and return the locked joints with their positions."""
        fixed: dict[str, float] = {}
        for k in range(model.neq):
            if not model.eq_active0[k]:
                continue
            if int(model.eq_type[k]) in (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)):
                ends = [int(model.eq_obj1id[k]), int(model.eq_obj2id[k])]
                if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
                    ends = [int(model.site_bodyid[end]) for end in ends]
                text = f"equality '{model.eq(k).name or k + 1}' closes a loop"
                self.closed.append((text, places[ends[0]].host, places[ends[1]].host))
                continue
            if int(model.eq_type[k]) != int(mujoco.mjtEq.mjEQ_JOINT):
                raise RobotError(f"{self.name}: an equality closes a loop or couples tendons; remove it.")
            follower_joint, leader = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
            constant, slope, *higher = model.eq_data[k][:5]
            if any(higher) and leader >= 0:
                raise self.error(
                    names[follower_joint], "follows another by a curve; only a straight line is supported."
                )
            if leader < 0:
                fixed[names[follower_joint]] = float(model.qpos0[model.jnt_qposadr[follower_joint]] + constant)
            else:
                follower = Follower(names[leader], float(slope), float(constant), self.errors_of(names[follower_joint]))
                self.followers[names[follower_joint]] = follower
        return fixed


def _coordinate_kind(kind: LinkKind) -> JointKind:
    return "prismatic" if kind == "prismatic" else "revolute"


def _free_kind(joint: Any) -> tuple[LinkKind, Array] | None:
    """Return the kind of a free joint of Pinocchio and the normal of its plane; None for others."""
    kinds: dict[str, LinkKind] = {"FreeFlyer": "floating", "Spherical": "spherical", "Planar": "planar"}
    kind = kinds.get(str(joint.shortname()).removeprefix("JointModel"))
    return None if kind is None else (kind, np.array([0.0, 0.0, 1.0]))


def _body_names(model: Any) -> dict[int, str]:
    """Return the body in each joint's own frame, by index of the joint."""
    out: dict[int, str] = {}
    for frame in model.frames:
        if str(frame.type).endswith("BODY") and frame.placement.isIdentity():
            out.setdefault(_parent(frame), str(frame.name))
    return out


def _parent(frame: Any) -> int:
    return int(frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent)


def _limits(model: Any, joint: Any, name: str, kind: JointKind) -> Joint:
    """Read a joint with its limits; a position stored as cosine and sine has no limits."""
    at, rate = joint.idx_q, joint.idx_v
    lower, upper = (
        (float(model.lowerPositionLimit[at]), float(model.upperPositionLimit[at]))
        if joint.nq == 1
        else (-np.inf, np.inf)
    )
    return Joint(name, kind, lower, upper, float(model.velocityLimit[rate]), float(model.effortLimit[rate]))
