"""`Tree`: grows the links of a robot while whatever does not move is folded into the link that carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from steelyard.errors import RobotError
from steelyard.ground.arrays import Array
from steelyard.ground.field import LARGEST_NUMBER
from steelyard.robot.robot import MOST_JOINTS, Joint, Link, Loop, NominalTerm
from steelyard.robot.spatial import Place, move_parameters


class Tree:
    """The links so far, with the inertia that each has gathered from the bodies welded to it."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._gathered: list[Array | None] = []
        self._unknown: set[int] = set()
        self.frames: dict[str, Place] = {}

    def hang(self, place: Place, link: Link) -> Place:
        """Hang a moving link at `place`, which becomes its placement; returns the place of its joint frame."""
        if len(self._links) >= MOST_JOINTS:
            raise RobotError(f"Joint '{link.joint}' is one more than the {MOST_JOINTS} that a robot may have.")
        self._links.append(replace(link, parent=place.host, rotation=place.rotation, translation=place.translation))
        self._gathered.append(None)
        return Place(len(self._links) - 1)

    def weld(self, place: Place, parameters: ArrayLike | None) -> None:
        """Weld a body whose own frame is `place` to the link that carries it; None: its inertia is unknown.

        What is welded to the base never moves and vanishes. One unknown body makes the whole link unknown:
        a sum with a missing part would look like knowledge.
        """
        if place.host < 0:
            return
        if parameters is None:
            self._unknown.add(place.host)
            return
        moved = move_parameters(parameters, place.rotation, place.translation)
        before = self._gathered[place.host]
        self._gathered[place.host] = moved if before is None else before + moved

    def links(self) -> tuple[Link, ...]:
        """The finished links. A link that has nothing of its own and nothing welded to it has unknown inertia."""
        return tuple(
            replace(link, inertia=None if index in self._unknown else _sum(link, gathered))
            for index, (link, gathered) in enumerate(zip(self._links, self._gathered, strict=True))
        )


def _sum(link: Link, gathered: Array | None) -> Array | None:
    """A link's own inertia plus what was gathered in the joint frame, in the link's own frame."""
    if gathered is None:
        return link.inertia
    if link.own_frame:
        back = link.frame_rotation.T
        gathered = move_parameters(gathered, back, -back @ link.frame_translation)
    return gathered if link.inertia is None else link.inertia + gathered


@dataclass(frozen=True)
class Follower:
    """A joint that moves by `ratio` times the motion of `leader` plus `offset`; `error` makes its messages."""

    leader: str
    ratio: float
    offset: float
    error: Callable[[str], RobotError]


def cut_cycles(followers: Mapping[str, Follower]) -> tuple[dict[str, Follower], list[Loop]]:
    """Let joints that follow themselves in a circle move freely, and note each circle as a loop."""
    free, loops = dict(followers), []
    for name in followers:
        way, current = [name], name
        while current in free and free[current].leader not in way:
            current = free[current].leader
            way.append(current)
        if current in free:  # its leader is on the way already
            circle = way[way.index(free[current].leader) :]
            place = str(free[current].error("follows itself in a loop"))
            loops.append(Loop(place, tuple(circle)))
            free = {k: v for k, v in free.items() if k not in circle}
    return free, loops


def joints_between(links: Sequence[Link], joints: Sequence[Joint], a: int, b: int) -> tuple[str, ...]:
    """The coordinates that move links `a` and `b` (by number; -1: the base) against each other."""

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
    """Give every link its coordinate. `joints` has one entry per link; followers end at the joint that leads them,
    none of them in a circle (`cut_cycles`)."""
    index = {joint.name: k for k, joint in enumerate(joints)}
    free = [joint for joint in joints if joint.name not in followers]
    coordinate = {joint.name: k for k, joint in enumerate(free)}
    out = []
    for link in links:
        ratio, shift, current = 1.0, 0.0, link.joint
        while current in followers:
            follower = followers[current]
            if follower.leader not in index:
                raise follower.error(
                    f"follows joint '{follower.leader}', which does not move or does not exist; name one that moves."
                )
            shift += ratio * follower.offset
            ratio *= follower.ratio
            current = follower.leader
            if not (abs(ratio) <= LARGEST_NUMBER and abs(shift) <= LARGEST_NUMBER):
                raise follower.error("makes a joint move faster than anything can; write a smaller factor or offset.")
        leader = links[index[current]]
        out.append(replace(link, coordinate=coordinate[current], ratio=ratio, offset=ratio * leader.offset + shift))
    return tuple(free), tuple(out)


# How a value of a follower counts at the coordinate that leads it, by virtual work: dissipation and kinetic
# energy go with the square of the ratio, a constant friction torque with its magnitude.
_POWER = {"viscous": 2, "coulomb": 1, "rotor": 2}


def joint_terms(links: Sequence[Link], dof: int, values: Mapping[str, Mapping[str, float]]) -> tuple[NominalTerm, ...]:
    """The terms of `values[kind][joint]`, gathered by coordinate; a kind whose values are all zero is left out."""
    terms = []
    for kind, by_joint in values.items():
        sums = [0.0] * dof
        for link in links:
            sums[link.coordinate] += abs(link.ratio) ** _POWER[kind] * by_joint.get(link.joint, 0.0)
        if any(sums):
            terms.append(NominalTerm(kind, (tuple(sums),)))
    return tuple(terms)
