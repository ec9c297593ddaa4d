"""`Loop`: a closed chain of joints, with the constraint that closes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from steelyard.robot.spatial import LinkFrame

# Kinds of joints that close a loop, with the rows that they hold: translations along x, y, z (0, 1, 2) and rotations
# about them (3, 4, 5), in the axes of the first frame.
CLOSINGS: dict[str, tuple[int, ...]] = {
    "point": (0, 1, 2),  # a ball
    "pose": (0, 1, 2, 3, 4, 5),  # a weld
    "hinge": (0, 1, 2, 3, 4),  # turns about z
    "slider": (0, 1, 3, 4, 5),  # slides along z
    "cylinder": (0, 1, 3, 4),  # turns about z and slides along it
    "plane": (2, 3, 4),  # slides and turns in the plane of x and y
    "pin": (0, 1),  # coincides along x and y: a hinge about z in a planar mechanism
}


@dataclass(frozen=True, eq=False)
class FramePair:
    """Two frames that coincide, or partly coincide.

    Attributes:
        first: Frame on one link, in whose axes the rows are.
        second: Frame on the other link.
        rows: Numbers of the rows in which they coincide, as in `CLOSINGS`.
    """

    first: LinkFrame
    second: LinkFrame
    rows: tuple[int, ...] = CLOSINGS["point"]


@dataclass(frozen=True)
class JointCurve:
    """A joint that follows another one by a polynomial: x₁ = Σ c_k x₂ᵏ, both counted from their reference positions.

    Attributes:
        follower: Name of the joint that follows; "": it is locked, and x₁ = 0.
        leader: Name of the other joint; "": it is locked, and x₂ = 0.
        coefficients: c_0, c_1, … in powers of x₂ [rad, m].
    """

    follower: str
    leader: str
    coefficients: tuple[float, ...]

    def value(self, x: float) -> float:
        """Compute Σ c_k xᵏ at `x`."""
        return float(sum(c * x**k for k, c in enumerate(self.coefficients)))


@dataclass(frozen=True)
class Loop:
    """A closed chain, which a tree cannot represent; it disappears once all its joints are locked.

    Attributes:
        place: File, element and problem: the beginning of a message.
        joints: Coordinates that must be locked.
        cut: Joints that close the chain. They are not in the tree but may be locked by name like the others.
        name: Short name.
        constraint: Equations that close it; None: they are not known.
    """

    place: str
    joints: tuple[str, ...]
    cut: tuple[str, ...] = ()
    name: str = ""
    constraint: FramePair | JointCurve | None = field(default=None, compare=False)

    @property
    def sentence(self) -> str:
        """Error text: the problem and the joints to lock."""
        options = " ".join(f"--lock {name}=0" for name in self.joints)
        end = "remove it" if self.constraint is None else "identify it"
        return (
            f"{self.place}, which a tree of joints cannot represent; lock its joints at their positions ({options}, or "
            f"leave them out of --joints), or {end}."
        )


def unlocked_loops(loops: Sequence[Loop], moving: Sequence[str]) -> tuple[Loop, ...]:
    """Return the loops with at least one moving joint, reduced to the joints still to be locked.

    Args:
        loops: Closed chains.
        moving: Names of moving joints.
    """
    reduced = [replace(loop, joints=tuple(name for name in loop.joints if name in moving)) for loop in loops]
    return tuple(loop for loop in reduced if loop.joints)


def moved_loops(loops: Sequence[Loop], places: Sequence[LinkFrame], locked: Mapping[str, float]) -> tuple[Loop, ...]:
    """Return loops whose links were merged into others.

    Args:
        loops: Closed chains.
        places: Frame of each former link on its new one.
        locked: Positions of locked tree joints, counted from their reference positions [rad, m].
    """

    def at(frame: LinkFrame) -> LinkFrame:
        return frame if frame.host < 0 else places[frame.host].at(frame.rotation, frame.translation)

    out = []
    for loop in loops:
        constraint = loop.constraint
        if isinstance(constraint, FramePair):
            constraint = replace(constraint, first=at(constraint.first), second=at(constraint.second))
        elif isinstance(constraint, JointCurve):
            follower, leader, numbers = constraint.follower, constraint.leader, constraint.coefficients
            if leader in locked:
                leader, numbers = "", (constraint.value(locked[leader]),)
            if follower in locked:
                follower, numbers = "", (numbers[0] - locked[follower], *numbers[1:])
            constraint = JointCurve(follower, leader, numbers)
        out.append(replace(loop, constraint=constraint))
    return tuple(out)
