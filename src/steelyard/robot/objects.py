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
from steelyard.robot.free import free_coordinates, vector_part
from steelyard.robot.lock import lock_joints
from steelyard.robot.loop_constraints import CLOSINGS, FramePair, JointCurve, unlocked_loops
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
        # Closed loops: name, both ends, and constraint.
        self.closed: list[tuple[str, LinkFrame, LinkFrame, FramePair]] = []
        self.curves: list[tuple[str, JointCurve]] = []
        self.start: dict[str, float] = {}
        self.actuated: set[str] = set()
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
        own = [joint.name for joint in joints]
        for name, a, b, pair in self.closed:
            between = joints_between(links, joints, a.host, b.host)
            loops.append(Loop(f"{self.name}: equality '{name}' closes a loop", between, name=name, constraint=pair))
        for name, curve in self.curves:
            both = tuple(own[link.coordinate] for link in links if link.joint in (curve.follower, curve.leader))
            text = f"{self.name}: equality '{name}' lets a joint follow another by a curve"
            loops.append(Loop(text, both, name=name, constraint=curve))
        moved = {own[link.coordinate] for link in links if link.joint in self.actuated}
        robot = Robot(
            self.name, joints, links, gravity,
            nominal_terms=joint_terms(links, len(joints), self.terms),
            frames={n: p for n, p in self.tree.frames.items() if n not in {link.name for link in links}},
            loops=unlocked_loops(loops, own),
            start={name: x for name, x in self.start.items() if x and name in own} if loops else {},
            actuated=tuple(name for name in own if name in moved) if loops else (),
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
        turned = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
        self.actuated = {
            names[model.actuator_trnid[k][0]] for k in range(model.nu) if model.actuator_trntype[k] in turned
        }
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
            if kind == "floating":
                at = int(model.jnt_qposadr[k])
                pose = [*model.qpos0[at : at + 3], *vector_part(model.qpos0[at + 3 : at + 7])]
                self.start |= dict(zip((j.name for j in free_coordinates(name, kind)), map(float, pose), strict=True))
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
        self.start[name] = reference
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
                self.closed.append(
                    (_eq_name(model, k), places[ends[0]], places[ends[1]], _pair(mujoco, model, k, places))
                )
                continue
            if int(model.eq_type[k]) != int(mujoco.mjtEq.mjEQ_JOINT):
                raise RobotError(f"{self.name}: an equality closes a loop or couples tendons; remove it.")
            follower_joint, leader = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
            constant, slope, *higher = model.eq_data[k][:5]
            if any(higher) and leader >= 0:
                curve = JointCurve(names[follower_joint], names[leader], tuple(map(float, model.eq_data[k][:5])))
                self.curves.append((_eq_name(model, k), curve))
            elif leader < 0:
                fixed[names[follower_joint]] = float(model.qpos0[model.jnt_qposadr[follower_joint]] + constant)
            else:
                follower = Follower(names[leader], float(slope), float(constant), self.errors_of(names[follower_joint]))
                self.followers[names[follower_joint]] = follower
        return fixed


def _eq_name(model: Any, k: int) -> str:
    return str(model.eq(k).name or k + 1)


def _pair(mujoco: Any, model: Any, k: int, places: list[LinkFrame]) -> FramePair:
    """Return the frames that a <connect> or <weld> keeps together."""
    ends, data = (int(model.eq_obj1id[k]), int(model.eq_obj2id[k])), model.eq_data[k]
    point = int(model.eq_type[k]) == int(mujoco.mjtEq.mjEQ_CONNECT)
    rows = CLOSINGS["point" if point else "pose"]
    if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
        first, second = (
            places[model.site_bodyid[x]].at(rotation_from_quaternion(*model.site_quat[x]), model.site_pos[x])
            for x in ends
        )
        return FramePair(first, second, rows)
    if point:
        return FramePair(places[ends[0]].at(np.eye(3), data[:3]), places[ends[1]].at(np.eye(3), data[3:6]), rows)
    first = places[ends[0]].at(rotation_from_quaternion(*data[6:10]), data[3:6])
    return FramePair(first, places[ends[1]].at(np.eye(3), data[:3]), rows)


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
