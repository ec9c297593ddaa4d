"""`Robot`: what is known of a robot before it moves: an immutable tree of joints and links."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import RobotError, UnknownNameError, unfit_for_a_name
from steelyard.ground.arrays import Array, frozen
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.robot.spatial import Place
from steelyard.robot.transmission import Transmission

if TYPE_CHECKING:
    from steelyard.dynamics.engine import Dynamics

JointKind = Literal["revolute", "prismatic"]

# A humanoid with both hands has fewer than a hundred.
MOST_JOINTS = 256
# Limits (rad, m, per second, N m, N) from here on are none: files that must state one, ours too, write such numbers.
UNLIMITED = 1e9
# m/s²; the Sun has 274.
_STRONGEST_GRAVITY = 1e4


@dataclass(frozen=True)
class Joint:
    """A coordinate that moves on its own: one channel of a log, one row of every regressor.

    Limits are in rad or m, per second, and in N m or N; an unknown limit is infinite, and so is one
    of `UNLIMITED` or more.
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
class Carried:
    """A moving body and the tree joint that carries it.

    The joint frame stands at (`rotation`, `translation`) in the joint frame of link `parent` (−1: the base) and then
    turns about, or slides along, `axis`.
    """

    name: str
    joint: str
    kind: JointKind
    parent: int
    rotation: Array
    translation: Array
    axis: Array


@dataclass(frozen=True, eq=False)
class Link(Carried):
    """A moving body whose joint moves by `ratio`·q[`coordinate`] + `offset`; a ratio other than 1 is a mimic joint.

    The ten `inertia` parameters (None: unknown) are expressed in the link's own frame,
    which stands at (`frame_rotation`, `frame_translation`) in the moved joint frame: identity but for
    Denavit–Hartenberg tables whose link frames sit elsewhere.
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
    def own_frame(self) -> bool:
        """Whether the parameters live in a frame of their own rather than in the joint frame."""
        return bool(np.any(self.frame_rotation != np.eye(3)) or np.any(self.frame_translation != 0.0))


@dataclass(frozen=True)
class NominalTerm:
    """A joint term (friction, rotor inertia, …) whose values the description states, as plain data.

    `values[k]` holds the term's k-th parameter for every coordinate it acts on; `options` are keyword
    arguments of the term, `on` says which coordinates: "joint", "drive" or "motor".
    """

    kind: str
    values: tuple[tuple[float, ...], ...]
    on: str = "joint"
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Loop:
    """A closed chain in a description, which a tree cannot hold; it is gone once all its joints are locked.

    Attributes:
        place: Where it stands, and what it does: the beginning of a message.
        joints: Coordinates that must be locked.
        cut: Joints that close it; the tree does not have them, and they may be locked by name like the others.
    """

    place: str
    joints: tuple[str, ...]
    cut: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What is wrong, and which joints to lock."""
        options = " ".join(f"--lock {name}=0" for name in self.joints)
        return (
            f"{self.place}, which a tree of joints cannot hold; lock its joints where they stand ({options}, or leave "
            "them out of --joints), or remove it."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Robot:
    """An immutable tree of revolute and prismatic joints.

    `joints` are the coordinates, in the order of every array's last axis; `links` are the moving bodies,
    parents before children, in the order of the parameter blocks. `torque_used` tells the joints whose
    torque can be trusted: the others move, but their rows count nowhere. `lengths` are named constants that
    formulas of base parameters may use. `frames` are the named frames of the description that do not move on their
    own: flanges, tool points, sensors. `snapped` names the joints whose nearly right angles were made exact when the
    description was read, with how far each was off. `loops` are closed chains that are still to be locked; what
    `load_robot` returns has none.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Array = field(default_factory=lambda: frozen([0.0, 0.0, -9.81]))
    transmission: Transmission | None = None
    torque_used: tuple[bool, ...] = ()
    lengths: Mapping[str, float] = field(default_factory=dict)
    nominal_terms: tuple[NominalTerm, ...] = ()
    frames: Mapping[str, Place] = field(default_factory=dict)
    source: str = ""
    snapped: Mapping[str, float] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", frozen(self.gravity))
        object.__setattr__(self, "lengths", dict(self.lengths))
        if not self.torque_used:
            object.__setattr__(self, "torque_used", (True,) * len(self.joints))
        self._check()

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {len(self.joints)} joints ({', '.join(self.joint_names)})>"

    def _check(self) -> None:
        where = f"{self.source or self.name}: "
        if not self.joints:
            raise RobotError(f"{where}no joint moves; a robot needs at least one revolute or prismatic joint.")
        if max(len(self.joints), len(self.links)) > MOST_JOINTS:
            raise RobotError(f"{where}{len(self.joints)} joints are more than the {MOST_JOINTS} that a robot may have.")
        for kind, name in self._names():
            wrong = unfit_for_a_name(name)
            if wrong:
                raise RobotError(f"{where}{kind} {name!r:.60} {wrong}; rename it.")
        names = [joint.name for joint in self.joints]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise RobotError(f"{where}joint '{twice}' appears twice; give every joint its own name.")
        for index, link in enumerate(self.links):
            if not -1 <= link.parent < index:
                raise RobotError(f"{where}link '{link.name}' comes before its parent; list parents first.")
            if not 0 <= link.coordinate < len(self.joints):
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
        for what, values in numbers.items():
            if not np.all(np.abs(values) <= LARGEST_NUMBER):
                raise RobotError(f"{where}its {what} is not finite or beyond {LARGEST_NUMBER:g}; write it in SI units.")

    # ---------------------------------------------------------------- what there is

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
        """The number, from 0, of the joint called `name`."""
        try:
            return self.joint_names.index(name)
        except ValueError:
            raise UnknownNameError("joint", name, self.joint_names) from None

    def moving_frame(self, name: str = "") -> Place:
        """The frame called `name`, as `frame` gives it, if it moves: one that stands on the base is refused."""
        place = self.frame(name)
        if place.host < 0:
            raise RobotError(f"Frame '{name}' stands on the base, which does not move; name one on a moving link.")
        return place

    def frame(self, name: str = "") -> Place:
        """The frame called `name`: a named one, or that of a link; none given: the last link's."""
        if name in self.frames:
            return self.frames[name]
        if name and name not in self.link_names:
            raise UnknownNameError("frame", name, (*self.link_names, *self.frames))
        host = self.link_names.index(name) if name else len(self.links) - 1
        link = self.links[host]
        return Place(host, link.frame_rotation, link.frame_translation)

    @property
    def has_inertia(self) -> bool:
        """Whether every link's ten parameters are known."""
        return all(link.inertia is not None for link in self.links)

    @property
    def inertial_count(self) -> int:
        """How many parameters its links have, ten each; those of joint terms come after them."""
        return 10 * len(self.links)

    @property
    def inertial_parameters(self) -> Array:
        """The nominal parameters, ten per link, in the order of the regressors' columns."""
        missing = [link.name for link in self.links if link.inertia is None]
        if missing:
            raise RobotError(f"{self.name}: no inertia is given for link '{missing[0]}'; state it or identify it.")
        return np.concatenate([link.inertia for link in self.links if link.inertia is not None])

    def ancestors(self, link: int) -> list[int]:
        """The links from the base up to and including `link`."""
        chain: list[int] = []
        while link >= 0:
            chain.append(link)
            link = self.links[link].parent
        return chain[::-1]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the motion depends on (not of names or inertias): the key of compiled code."""
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

    # ---------------------------------------------------------------- other robots like this one

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The same robot mounted so that `gravity` (m/s², three numbers) points elsewhere in its base frame."""
        return replace(self, gravity=frozen(gravity))

    def with_inertial_parameters(self, parameters: ArrayLike) -> Robot:
        """The same robot with other nominal `parameters`, ten per link (kg, kg m, kg m²)."""
        blocks = np.asarray(parameters, dtype=float).reshape(len(self.links), 10)
        return replace(self, links=tuple(replace(k, inertia=b) for k, b in zip(self.links, blocks, strict=True)))

    def with_torque_used(self, names: Sequence[str]) -> Robot:
        """The same robot where only the torques of the joints `names` can be trusted; the others still move."""
        used = {self.joint_index(name) for name in names}
        return replace(self, torque_used=tuple(i in used for i in range(self.dof)))

    def with_joints(self, names: Sequence[str], locked: Mapping[str, float] | None = None) -> Robot:
        """The robot with just the joints `names`, in this order; the others stand at `locked` (rad, m; else 0)."""
        from steelyard.robot.lock import lock_joints

        return lock_joints(self, names, locked or {})

    # ---------------------------------------------------------------- its physics (traced in `dynamics/`)

    def __getstate__(self) -> dict[str, Any]:
        """Without the physics, which knows the robot and is made anew where it is asked for."""
        return {name: value for name, value in vars(self).items() if name != "dynamics"}

    @cached_property
    def dynamics(self) -> Dynamics:
        """The rigid-body physics of this robot: regressors, inverse and forward dynamics, derivatives."""
        from steelyard.dynamics.engine import Dynamics

        return Dynamics(self)

    def torque_regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Y with τ = Y θ: `(samples, joints, 10·links)`, or without the first axis for a single state.

        Positions `q` (rad, m), velocities `dq` and accelerations `ddq` are `(samples, joints)`, or `(joints,)`.
        """
        return self.dynamics.torque_regressor(q, dq, ddq)
