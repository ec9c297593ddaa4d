"""`Robot`: an immutable tree of joints and links."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError, UnknownNameError, shortened, unfit_for_a_name
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.ground.short_repr import short_repr
from steelyard.robot.loop_constraints import Loop as Loop
from steelyard.robot.spatial import LinkFrame
from steelyard.robot.transmission import Transmission

if TYPE_CHECKING:
    from steelyard.dynamics.engine import Dynamics

JointKind = Literal["revolute", "prismatic"]
LinkKind = Literal["revolute", "prismatic", "floating", "spherical", "planar"]
# Free joints and the number of their coordinates (`robot/free.py`).
FREE_WIDTHS = {"floating": 6, "spherical": 3, "planar": 3}

# A humanoid with both hands has fewer than a hundred.
MOST_JOINTS = 256
# A limit (rad, m, per second, N m, N) of this size or more means "no limit": files that must state one write such
# numbers.
UNLIMITED = 1e9
# [m/s²]; on the Sun it is 274.
_STRONGEST_GRAVITY = 1e4


@short_repr
@dataclass(frozen=True)
class Joint:
    """An independent coordinate: one channel of a log, one row of every regressor.

    Attributes:
        name: Name in files, logs and messages.
        kind: "revolute" or "prismatic".
        lower: Lower position limit [rad, m]; infinite if unknown or at least `UNLIMITED` (all limits).
        upper: Upper position limit [rad, m].
        velocity: Speed limit [rad/s, m/s].
        effort: Torque or force limit [N m, N].
    """

    name: str
    kind: JointKind
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "effort"):
            if abs(value := getattr(self, name)) >= UNLIMITED:
                object.__setattr__(self, name, float(np.copysign(np.inf, value)))

    @property
    def unit(self) -> str:
        return "rad" if self.kind == "revolute" else "m"

    @property
    def effort_unit(self) -> str:
        return "N m" if self.kind == "revolute" else "N"


@dataclass(frozen=True, eq=False)
class MovingBody:
    """A moving body and the tree joint that carries it.

    Attributes:
        name: Name of the body.
        joint: Name of the joint.
        kind: "revolute", "prismatic", or a free joint: "floating", "spherical" or "planar".
        parent: Index of the parent link; -1 is the base.
        rotation: Rotation of the joint frame in the parent's joint frame, before the joint moves.
        translation: Origin of the joint frame in the parent's joint frame [m].
        axis: Unit vector of the joint axis in the joint frame (planar: normal of the plane).
    """

    name: str
    joint: str
    kind: LinkKind
    parent: int
    rotation: Array
    translation: Array
    axis: Array


@short_repr
@dataclass(frozen=True, eq=False)
class Link(MovingBody):
    """A moving body whose joint moves by `ratio`·q[`coordinate`] + `offset`; a mimic joint has a ratio other than 1.

    Attributes:
        coordinate: Index of the robot's joint that moves this link; of a free joint the first of several.
        ratio: Motion of this joint per unit of the coordinate.
        offset: Constant part of this joint's position [rad, m].
        inertia: Ten inertial parameters in the link's own frame; None if unknown.
        frame_rotation: Rotation of the link's own frame in the moved joint frame (identity, except in
            Denavit–Hartenberg tables with other link frames).
        frame_translation: Origin of the link's own frame in the moved joint frame [m].
    """

    coordinate: int
    ratio: float = 1.0
    offset: float = 0.0
    inertia: Array | None = None
    frame_rotation: Array = field(default_factory=lambda: frozen(np.eye(3)))
    frame_translation: Array = field(default_factory=lambda: frozen(np.zeros(3)))

    def __post_init__(self) -> None:
        for name in ("rotation", "translation", "axis", "frame_rotation", "frame_translation"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        if self.inertia is not None:
            object.__setattr__(self, "inertia", frozen(self.inertia))

    @property
    def coordinates(self) -> range:
        """Indices of the robot's joints that move this link."""
        return range(self.coordinate, self.coordinate + FREE_WIDTHS.get(self.kind, 1))

    @property
    def own_frame(self) -> bool:
        """Whether the link's own frame differs from its joint frame."""
        return bool(np.any(self.frame_rotation != np.eye(3)) or np.any(self.frame_translation != 0.0))


@dataclass(frozen=True)
class NominalTerm:
    """A joint term (friction, rotor inertia, …) with values from the description, as plain data.

    Attributes:
        kind: Name of the term.
        values: `values[k]` is the term's k-th parameter for every coordinate it acts on.
        on: Coordinates it acts on: "joint", "drive" or "motor".
        options: Keyword arguments of the term.
    """

    kind: str
    values: tuple[tuple[float, ...], ...]
    on: str = "joint"
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """An immutable tree of revolute, prismatic and free joints.

    Attributes:
        name: Name of the robot.
        joints: Coordinates, in the order of the last axis of every array.
        links: Moving bodies, parents before children, in the order of the parameter blocks.
        gravity: Gravity in the base frame [m/s²].
        transmission: Coupling of motors and joints; None if each motor moves one joint.
        torque_used: Whether each joint's torque is trusted; rows of the other joints are ignored.
        lengths: Named constants for formulas of base parameters [m].
        nominal_terms: Joint terms with values from the description.
        frames: Named frames fixed to links or to the base: flanges, tool points, sensors.
        source: Path of the file.
        snap_distances: Joints whose nearly right angles were made exact on reading, with the size of the correction.
        loops: Closed chains; `load_robot` keeps them only with `loops=True`.
        start: Positions of the description, if not zero [rad, m]; loops close near them.
        actuated: Joints with a drive, if the description states them.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Array = field(default_factory=lambda: frozen([0.0, 0.0, -9.81]))
    transmission: Transmission | None = None
    torque_used: tuple[bool, ...] = ()
    lengths: Mapping[str, float] = field(default_factory=dict)
    nominal_terms: tuple[NominalTerm, ...] = ()
    frames: Mapping[str, LinkFrame] = field(default_factory=dict)
    source: str = ""
    snap_distances: Mapping[str, float] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    start: Mapping[str, float] = field(default_factory=dict)
    actuated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", frozen(self.gravity))
        object.__setattr__(self, "lengths", dict(self.lengths))
        if not self.torque_used:
            object.__setattr__(self, "torque_used", (True,) * len(self.joints))
        self._check()

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {len(self.joints)} joints ({shortened(', '.join(self.joint_names))})>"

    def _check(self) -> None:
        where = f"{self.source or self.name}: "
        if not self.joints:
            raise RobotError(f"{where}no joint moves; a robot needs at least one revolute or prismatic joint.")
        if max(len(self.joints), len(self.links)) > MOST_JOINTS:
            raise RobotError(f"{where}{len(self.joints)} joints exceed the maximum of {MOST_JOINTS}.")
        for kind, name in self._names():
            wrong = unfit_for_a_name(name)
            if wrong:
                raise RobotError(f"{where}{kind} {name!r:.60} {wrong}; rename it.")
        names = [joint.name for joint in self.joints]
        if len(set(names)) < len(names):
            duplicate = next(n for n in names if names.count(n) > 1)
            raise RobotError(f"{where}joint '{duplicate}' appears twice; give every joint its own name.")
        for index, link in enumerate(self.links):
            if not -1 <= link.parent < index:
                raise RobotError(f"{where}link '{link.name}' comes before its parent; list parents first.")
            if not 0 <= link.coordinate <= link.coordinates[-1] < len(self.joints):
                raise RobotError(f"{where}link '{link.name}' follows a joint that does not exist.")
            self._check_numbers(f"{where}link '{link.name}': ", link)
        if self.gravity.shape != (3,) or not np.all(np.abs(self.gravity) <= _STRONGEST_GRAVITY):
            raise RobotError(
                f"{where}gravity must be three finite numbers in m/s² of at most {_STRONGEST_GRAVITY:g}, e.g. "
                "(0, 0, -9.81)."
            )
        if self.transmission is not None and self.transmission.joints != len(self.joints):
            raise RobotError(
                f"{where}the transmission couples {self.transmission.joints} joints, the robot has {len(self.joints)}."
            )

    def _names(self) -> Iterator[tuple[str, str]]:
        yield "the robot", self.name
        yield from (("joint", joint.name) for joint in self.joints)
        yield from (("link", link.name) for link in self.links)
        yield from (("joint", link.joint) for link in self.links)
        yield from (("frame", name) for name in self.frames)
        yield from (("motor", name) for name in (self.transmission.motors if self.transmission else ()))

    @staticmethod
    def _check_numbers(where: str, link: Link) -> None:
        numbers = {
            "placement": (*link.rotation.flat, *link.translation, *link.axis),
            "frame": (*link.frame_rotation.flat, *link.frame_translation),
            "joint": (link.ratio, link.offset),
            "inertia": () if link.inertia is None else link.inertia,
        }
        for name, values in numbers.items():
            if not np.all(np.abs(values) <= LARGEST_NUMBER):
                raise RobotError(f"{where}its {name} is not finite or beyond {LARGEST_NUMBER:g}; write it in SI units.")

    # ---------------------------------------------------------------- properties

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.links)

    @property
    def dof(self) -> int:
        return len(self.joints)

    def joint_index(self, name: str) -> int:
        """Return the index, from 0, of the joint called `name`."""
        try:
            return self.joint_names.index(name)
        except ValueError:
            raise UnknownNameError("joint", name, self.joint_names) from None

    def moving_frame(self, name: str = "") -> LinkFrame:
        """Return the frame called `name` if it moves; refuse frames fixed to the base."""
        frame = self.frame(name)
        if frame.host < 0:
            raise RobotError(f"Frame '{name}' is fixed to the base, which does not move; name one on a moving link.")
        return frame

    def frame(self, name: str = "") -> LinkFrame:
        """Return the frame, or the link's own frame, called `name`; default: that of the last link."""
        if name in self.frames:
            return self.frames[name]
        if name and name not in self.link_names:
            raise UnknownNameError("frame", name, (*self.link_names, *self.frames))
        host = self.link_names.index(name) if name else len(self.links) - 1
        link = self.links[host]
        return LinkFrame(host, link.frame_rotation, link.frame_translation)

    @property
    def has_inertia(self) -> bool:
        """Whether every link's ten parameters are known."""
        return all(link.inertia is not None for link in self.links)

    @property
    def inertial_count(self) -> int:
        """Number of inertial parameters: ten per link. Parameters of joint terms come after them."""
        return 10 * len(self.links)

    @property
    def inertial_parameters(self) -> Array:
        """Nominal parameters, ten per link, in the order of the regressors' columns."""
        missing = [link.name for link in self.links if link.inertia is None]
        if missing:
            raise RobotError(f"{self.name}: no inertia is given for link '{missing[0]}'; state it or identify it.")
        return np.concatenate([link.inertia for link in self.links if link.inertia is not None])

    def ancestors(self, link: int) -> list[int]:
        """Return the links from the base up to and including `link`."""
        chain: list[int] = []
        while link >= 0:
            chain.append(link)
            link = self.links[link].parent
        return chain[::-1]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the motion (no names, no inertias): the key of compiled code."""
        digest = hashlib.sha256()
        for link in self.links:
            numbers = [link.rotation, link.translation, link.axis, link.frame_rotation, link.frame_translation]
            digest.update(f"{link.kind} {link.parent} {link.coordinate} ".encode())
            digest.update(np.concatenate([np.ravel(x) for x in numbers] + [[link.ratio, link.offset]]).tobytes())
        digest.update(self.gravity.tobytes())
        digest.update(str(len(self.joints)).encode())
        if self.transmission is not None:
            digest.update(self.transmission.fingerprint.encode())
        return digest.hexdigest()

    # ---------------------------------------------------------------- modified copies

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """Return a copy with `gravity` [m/s²] in its base frame."""
        return replace(self, gravity=frozen(gravity))

    def with_inertial_parameters(self, parameters: ArrayLike) -> Robot:
        """Return a copy with other nominal `parameters`, ten per link [kg, kg m, kg m²]."""
        blocks = np.asarray(parameters, dtype=float).reshape(len(self.links), 10)
        return replace(self, links=tuple(replace(k, inertia=b) for k, b in zip(self.links, blocks, strict=True)))

    def with_torque_used(self, names: Sequence[str]) -> Robot:
        """Return a copy that trusts only the torques of the joints `names`; the others still move."""
        used = {self.joint_index(name) for name in names}
        return replace(self, torque_used=tuple(i in used for i in range(self.dof)))

    def with_joints(self, names: Sequence[str], locked: Mapping[str, float] | None = None) -> Robot:
        """Return a copy with only some of the joints; the others are locked.

        Args:
            names: Joints that move, in this order.
            locked: Positions of locked joints [rad, m]; default 0.
        """
        from steelyard.robot.lock import lock_joints

        return lock_joints(self, names, locked or {})

    # ---------------------------------------------------------------- physics (traced in `dynamics/`)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the physics, which refers to the robot and is rebuilt on first use."""
        return {name: value for name, value in vars(self).items() if name != "dynamics"}

    @cached_property
    def dynamics(self) -> Dynamics:
        """Rigid-body physics of this robot: regressors, inverse and forward dynamics, derivatives."""
        from steelyard.dynamics.engine import Dynamics

        return Dynamics(self)

    def torque_regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Compute Y with τ = Y θ, shape `(samples, joints, 10·links)`; without the first axis for a single state.

        Args:
            q: Positions [rad, m], shape `(samples, joints)` or `(joints,)`.
            dq: Velocities [rad/s, m/s], same shape.
            ddq: Accelerations [rad/s², m/s²], same shape.
        """
        return self.dynamics.torque_regressor(q, dq, ddq)
