"""`Tree`: builds the links of a robot and merges bodies that do not move into the link that carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.robot.free import free_coordinates
from steelyard.robot.robot import FREE_WIDTHS, MOST_JOINTS, Joint, Link, Loop, NominalTerm
from steelyard.robot.spatial import LinkFrame, move_parameters


class Tree:
    """Links read so far, with the inertia collected from the bodies welded to each."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._collected: list[Array | None] = []
        self._unknown: set[int] = set()
        self.frames: dict[str, LinkFrame] = {}

    def hang(self, place: LinkFrame, link: Link) -> LinkFrame:
        """Attach a moving link and return its joint frame.

        Args:
            place: Frame of the joint in the parent link.
            link: Link whose placement is replaced.
        """
        if len(self._links) >= MOST_JOINTS:
            raise RobotError(f"Joint '{link.joint}' exceeds the maximum of {MOST_JOINTS} joints of a robot.")
        self._links.append(replace(link, parent=place.host, rotation=place.rotation, translation=place.translation))
        self._collected.append(None)
        return LinkFrame(len(self._links) - 1)

    def weld(self, place: LinkFrame, parameters: ArrayLike | None) -> None:
        """Add a body to the link that carries it; bodies welded to the base never move and are ignored.

        One unknown body makes the inertia of the whole link unknown: a sum with a missing part would look valid.

        Args:
            place: The body's own frame.
            parameters: Ten parameters of the body; None if unknown.
        """
        if place.host < 0:
            return
        if parameters is None:
            self._unknown.add(place.host)
            return
        moved = move_parameters(parameters, place.rotation, place.translation)
        before = self._collected[place.host]
        self._collected[place.host] = moved if before is None else before + moved

    def links(self) -> tuple[Link, ...]:
        """Return the links. A link without its own inertia and without welded bodies has unknown inertia."""
        return tuple(
            replace(link, inertia=None if index in self._unknown else _sum(link, collected))
            for index, (link, collected) in enumerate(zip(self._links, self._collected, strict=True))
        )


def _sum(link: Link, collected: Array | None) -> Array | None:
    """Sum a link's own inertia and the inertia collected in the joint frame, in the link's own frame."""
    if collected is None:
        return link.inertia
    if link.own_frame:
        back = link.frame_rotation.T
        collected = move_parameters(collected, back, -back @ link.frame_translation)
    return collected if link.inertia is None else link.inertia + collected


@dataclass(frozen=True)
class Follower:
    """A joint that moves by `ratio` times the motion of `leader` plus `offset`.

    Attributes:
        leader: Name of the joint that this one follows.
        ratio: Motion per unit of the leader.
        offset: Constant part of the position [rad, m].
        error: Builds an error that names the place in the file.
    """

    leader: str
    ratio: float
    offset: float
    error: Callable[[str], RobotError]


def cut_cycles(followers: Mapping[str, Follower]) -> tuple[dict[str, Follower], list[Loop]]:
    """Free joints that follow themselves in a cycle, and return each cycle as a loop."""
    free, loops = dict(followers), []
    for name in followers:
        way, current = [name], name
        while current in free and free[current].leader not in way:
            current = free[current].leader
            way.append(current)
        if current in free:  # its leader was visited already
            circle = way[way.index(free[current].leader) :]
            place = str(free[current].error("follows itself in a loop"))
            loops.append(Loop(place, tuple(circle)))
            free = {k: v for k, v in free.items() if k not in circle}
    return free, loops


def joints_between(links: Sequence[Link], joints: Sequence[Joint], a: int, b: int) -> tuple[str, ...]:
    """Return the coordinates that move two links relative to each other.

    Args:
        links: Links of the tree.
        joints: Coordinates of the robot.
        a: Index of the first link; -1 is the base.
        b: Index of the second link.
    """

    def above(k: int) -> set[int]:
        out = set()
        while k >= 0:
            out.add(k)
            k = links[k].parent
        return out

    way = above(a) ^ above(b)
    return tuple(dict.fromkeys(joints[links[k].coordinate].name for k in sorted(way)))


def couple(
    links: Sequence[Link], joints: Sequence[Joint], followers: Mapping[str, Follower]
) -> tuple[tuple[Joint, ...], tuple[Link, ...]]:
    """Assign a coordinate to every link, and merge followers with the joint that leads them.

    Args:
        links: Links of the tree.
        joints: One joint per link; a free one is replaced by its coordinates.
        followers: Followers by joint name, without cycles (`cut_cycles`).
    """
    index = {joint.name: k for k, joint in enumerate(joints)}
    kinds = {link.joint: link.kind for link in links if link.kind in FREE_WIDTHS}
    free: list[Joint] = []
    coordinate: dict[str, int] = {}
    for joint in joints:
        if joint.name not in followers:
            coordinate[joint.name] = len(free)
            free += free_coordinates(joint.name, kinds[joint.name]) if joint.name in kinds else [joint]
    out = []
    for link in links:
        ratio, shift, current = 1.0, 0.0, link.joint
        while current in followers:
            follower = followers[current]
            if current in kinds or follower.leader in kinds:
                raise follower.error("couples a free joint, which cannot follow or lead another; remove the coupling.")
            if follower.leader not in index:
                raise follower.error(
                    f"follows joint '{follower.leader}', which does not exist or does not move; name a moving joint."
                )
            shift += ratio * follower.offset
            ratio *= follower.ratio
            current = follower.leader
            if not (abs(ratio) <= LARGEST_NUMBER and abs(shift) <= LARGEST_NUMBER):
                raise follower.error("makes a joint move impossibly fast; write a smaller factor or offset.")
        leader = links[index[current]]
        out.append(replace(link, coordinate=coordinate[current], ratio=ratio, offset=ratio * leader.offset + shift))
    return tuple(free), tuple(out)


# Power of the ratio that transfers a follower's value to its leading coordinate (virtual work): dissipation and
# kinetic energy scale with the square of the ratio, a constant friction torque with its magnitude.
_POWER = {"viscous": 2, "coulomb": 1, "rotor": 2}


def joint_terms(links: Sequence[Link], dof: int, values: Mapping[str, Mapping[str, float]]) -> tuple[NominalTerm, ...]:
    """Collect joint terms by coordinate; a kind whose values are all zero is omitted.

    Args:
        links: Links of the robot.
        dof: Number of coordinates.
        values: `values[kind][joint]`.
    """
    terms = []
    for kind, by_joint in values.items():
        sums = [0.0] * dof
        for link in links:
            sums[link.coordinate] += abs(link.ratio) ** _POWER[kind] * by_joint.get(link.joint, 0.0)
        if any(sums):
            terms.append(NominalTerm(kind, (tuple(sums),)))
    return tuple(terms)
