"""`inspect_robot`: the properties of a robot description and its identifiable parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError, StructureError
from steelyard.ground.display import DisplayMixin, Headline, NamedColumns
from steelyard.ground.numbers import number
from steelyard.ground.outcome import Outcome
from steelyard.ground.progress import report_progress
from steelyard.ground.reasons import explained
from steelyard.loops.mechanism import Mechanism, structure_of
from steelyard.parameters.inertial import smallest_pseudo_eigenvalues
from steelyard.parameters.terms import TermsLike, as_terms, nominal_terms
from steelyard.regression.base_parameters import BaseParameters, EliminationMethod, Identifiability, base_parameters
from steelyard.robot.load import RobotLike, load_robot, nearly_aligned
from steelyard.robot.robot import Link, Robot
from steelyard.robot.transmission import ConstantRatio

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class JointRow:
    """A joint; limits in rad or m, per second, and N m or N. An unknown limit is infinite."""

    why_null: ClassVar = dict.fromkeys(
        ("lower", "upper", "velocity", "effort"), "The description states no finite limit."
    )
    name: str
    kind: str
    unit: str
    lower: float
    upper: float
    velocity: float
    effort: float
    torque_used: bool


@dataclass(frozen=True)
class LinkRow:
    """A link: mass [kg], centre of mass [m]; None if the description does not state it."""

    why_null: ClassVar = {
        "parent": "The parent is the base.",
        "mass": "The description states no inertia.",
        "center_of_mass": "The description states no inertia, or a mass of zero.",
        "physically_possible": "The description states no inertia.",
    }
    name: str
    joint: str
    parent: str | None
    mass: float | None
    center_of_mass: tuple[float, ...] | None
    physically_possible: bool | None


@dataclass(frozen=True)
class TransmissionRow:
    """A motor: its drive coordinate is the sum of the joints' positions, weighted."""

    why_null: ClassVar = {"ratio": "It depends on the posture."}
    motor: str
    weights: tuple[float, ...]
    ratio: float | None

    def moves(self, joints: Sequence[str]) -> str:
        """Write its drive coordinate as a sum over `joints`, by name."""
        text = ""
        for weight, joint in zip(self.weights, joints, strict=True):
            if weight:
                sign = ("- " if weight < 0 else "+ ") if text else ("-" if weight < 0 else "")
                size = "" if abs(weight) == 1.0 else f"{number(abs(weight), 6)}·"
                text += (" " if text else "") + f"{sign}{size}{joint}"
        return text or "nothing"


@dataclass(frozen=True)
class LoopRow:
    """A closed loop: the joints in it, and the number of its equations."""

    name: str
    joints: tuple[str, ...]
    equations: int


@dataclass(frozen=True)
class LoopSummary:
    """Closed loops: degrees of freedom, joints with a drive (none if not stated), and joints without one."""

    degrees_of_freedom: int
    driven: tuple[str, ...]
    passive: tuple[str, ...]
    loops: tuple[LoopRow, ...]


@dataclass(frozen=True)
class BaseRow:
    """A base parameter.

    `nominal` is its value from the description, if known. `links` are the bodies in it: those whose parameters are
    summed, or whose joints a term acts on.
    """

    why_null: ClassVar = {"nominal": "The description does not state all of its parts."}
    name: str
    formula: str
    unit: str
    nominal: float | None
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseSummary:
    """The base parameters, and the clarity of their number.

    `condition_number` is σ₁/σᵣ and `rank_gap` σᵣ/σᵣ₊₁ of all columns scaled to unit norm, over random states.
    """

    why_null: ClassVar = {"rank_gap": "It is infinite: every column is independent, or the others are exactly zero."}
    count: int
    method: str
    condition_number: float
    rank_gap: float
    parameters: tuple[BaseRow, ...]


@dataclass(frozen=True, repr=False)
class Inspection(Outcome, DisplayMixin):
    """The result of `steelyard inspect`."""

    why_null: ClassVar = {
        "base_parameters": "Their number is not clear; the notes give the reason.",
        "loops": "The robot is a tree.",
    }
    robot: str
    source: str
    gravity: tuple[float, ...]
    joints: tuple[JointRow, ...]
    links: tuple[LinkRow, ...]
    transmission: tuple[TransmissionRow, ...]
    terms: tuple[str, ...]
    base_parameters: BaseSummary | None
    identifiable: dict[Identifiability, tuple[str, ...]]
    regressor_operations: int
    notes: tuple[str, ...] = field(default=())
    loops: LoopSummary | None = None

    def headline(self) -> Headline:
        size = f"{self.robot}: {len(self.joints)} joints, {len(self.links)} moving links"
        if self.loops is not None:
            size += f", {len(self.loops.loops)} closed loops, {self.loops.degrees_of_freedom} degrees of freedom"
        base = self.base_parameters
        if base is None:
            return Headline("warning", f"{size}; the number of base parameters is not clear.", self.notes)
        hidden = len(self.identifiable.get("none", ()))
        never = f" {hidden} of the links' and terms' parameters do not affect any torque." if hidden else ""
        return Headline("note", f"{size}, {base.count} base parameters.{never}", self.notes)

    def tables(self) -> Mapping[str, Callable[[], NamedColumns]]:
        def of(rows: Sequence[Any]) -> Callable[[], NamedColumns]:
            heads = [f.name for f in fields(rows[0])] if rows else []
            return lambda: {head: [getattr(row, head) for row in rows] for head in heads}

        base = self.base_parameters.parameters if self.base_parameters is not None else ()
        return {"base_parameters": of(base), "joints": of(self.joints), "links": of(self.links)}

    def to_json(self) -> dict[str, Any]:
        return explained(self)

    def print_to(self, out: Console, folder: str = "") -> None:
        from steelyard.regression._inspection_page import print_inspection

        print_inspection(self, out)


def inspect_robot(
    robot: RobotLike, terms: TermsLike | None = None, method: EliminationMethod = "qr"
) -> Inspection:  # fmt: skip
    """Inspect a robot: joints, links, drives, base parameters, and notes.

    Args:
        robot: Robot.
        terms: Joint terms for the base parameters; default: none.
        method: Elimination method of `base_parameters`.
    """
    robot = robot if isinstance(robot, Robot) else load_robot(robot, loops=True)
    terms = as_terms(robot, terms)
    notes = list(_notes(robot))
    loops = _loops(robot, notes) if robot.loops else None
    base: BaseParameters | None = None
    try:
        report_progress("Finding the base parameters")
        base = base_parameters(robot, terms, method)
    except StructureError as error:
        notes.append(str(error))
    return Inspection(
        robot=robot.name,
        source=robot.source,
        gravity=tuple(float(x) for x in robot.gravity),
        joints=tuple(
            JointRow(j.name, j.kind, j.unit, j.lower, j.upper, j.velocity, j.effort, used)
            for j, used in zip(robot.joints, robot.torque_used, strict=True)
        ),
        links=tuple(_link_row(robot, link) for link in robot.links),
        transmission=_transmission_rows(robot),
        terms=tuple(term.kind if term.on == "joint" else f"{term.kind}@{term.on}" for term in terms.terms)
        if terms is not None
        else (),
        base_parameters=None if base is None else _summary(robot, base),
        identifiable={} if base is None else _by_class(base),
        regressor_operations=Dynamics(robot, terms).function("torque_regressor").cost,
        notes=tuple(notes),
        loops=loops,
    )


def _loops(robot: Robot, notes: list[str]) -> LoopSummary:
    """Summarise closed loops; joints that the drives leave open are noted."""
    structure = structure_of(robot)
    rows = [row.loop for row in structure.closure.rows]
    driven = robot.actuated
    if driven:
        try:
            Mechanism(robot, driven)
        except SteelyardError as error:
            notes.append(str(error))
    return LoopSummary(
        structure.mobility,
        driven,
        tuple(name for name in robot.joint_names if name not in driven) if driven else (),
        tuple(LoopRow(loop.name, loop.joints, rows.count(k)) for k, loop in enumerate(robot.loops)),
    )


def _link_row(robot: Robot, link: Link) -> LinkRow:
    parent = robot.links[link.parent].name if link.parent >= 0 else None
    if link.inertia is None:
        return LinkRow(link.name, link.joint, parent, None, None, None)
    mass = float(link.inertia[0])
    com = tuple(float(x) / mass for x in link.inertia[1:4]) if mass > 0.0 else None
    possible = bool(smallest_pseudo_eigenvalues(link.inertia)[0] > 0.0)
    return LinkRow(link.name, link.joint, parent, mass, com, possible)


def _transmission_rows(robot: Robot) -> tuple[TransmissionRow, ...]:
    t = robot.transmission
    if t is None:
        return ()
    return tuple(
        TransmissionRow(motor, tuple(float(x) for x in row), ratio.ratio if isinstance(ratio, ConstantRatio) else None)
        for motor, row, ratio in zip(t.motors, t.matrix, t.ratios, strict=True)
    )


def _summary(robot: Robot, base: BaseParameters) -> BaseSummary:
    nominal: list[float | None] = [None] * base.rank
    if robot.has_inertia:
        stated = dict(zip((p.name for p in nominal_terms(robot)[0].parameters), nominal_terms(robot)[1], strict=True))
        of_terms = [stated.get(name, np.nan) for name in base.terms.names]
        theta = np.concatenate([robot.inertial_parameters, of_terms])
        # A sum with an unknown part is unknown, but 0 · unknown is 0.
        values = [float(row[row != 0.0] @ theta[row != 0.0]) for row in base.matrix]
        nominal = [value if math.isfinite(value) else None for value in values]
    takes_part = _links_of_parameters(robot, base)
    links = [
        tuple(link.name for k, link in enumerate(robot.links) if np.any(row[takes_part[:, k]] != 0.0))
        for row in base.matrix
    ]
    rows = zip(base.names, base.formulas, base.units, nominal, links, strict=True)
    return BaseSummary(base.rank, base.method, base.condition, base.gap, tuple(BaseRow(*row) for row in rows))


def _links_of_parameters(robot: Robot, base: BaseParameters) -> NDArray[np.bool_]:
    """Return a mask `(parameters, links)`: the parameter is one of the link's ten, or of a term on its joint."""
    own = np.repeat(np.eye(len(robot.links), dtype=bool), 10, axis=0)
    moved_by = np.array([link.coordinate for link in robot.links])
    acted_on = base.terms.per_parameter(lambda _, c: np.asarray(c.weights)[moved_by] != 0.0)
    return np.vstack([own, *acted_on])


def _by_class(base: BaseParameters) -> dict[Identifiability, tuple[str, ...]]:
    kinds: tuple[Identifiability, ...] = ("alone", "combined", "none")
    return {
        kind: tuple(p.name for p, c in zip(base.parameters, base.classes, strict=True) if c == kind) for kind in kinds
    }


def right_angle_note(robot: Robot) -> str:
    """Name the joints whose nearly right angles were made exact.

    Args:
        robot: Robot with at least one such joint.
    """
    off = max(robot.snap_distances.values())
    return (
        f"Nearly right angles were made exact: {', '.join(robot.snap_distances)} (off by up to {off:.1e}). "
        "--snap 0 keeps the description unchanged."
    )


def _notes(robot: Robot) -> list[str]:
    out = []
    if robot.snap_distances:
        out.append(right_angle_note(robot))
    askew = nearly_aligned(robot)
    if askew:
        names = ", ".join(name for name, _ in askew)
        out.append(
            f"Not exactly aligned (off by {max(d for _, d in askew):.1e}): {names}. If these angles were only written "
            f"with few digits, --snap 1e-4 makes them exact, the formulas shorter and the code faster."
        )
    impossible = [
        link.name
        for link in robot.links
        if link.inertia is not None and smallest_pseudo_eigenvalues(link.inertia)[0] <= 0.0
    ]
    if impossible:
        out.append(f"The description states physically impossible inertias for: {', '.join(impossible)}.")
    unknown = [link.name for link in robot.links if link.inertia is None]
    if unknown:
        out.append(f"The description states no inertia for: {', '.join(unknown)}.")
    unused = [j.name for j, used in zip(robot.joints, robot.torque_used, strict=True) if not used]
    if unused:
        out.append(f"Torque not used, rows ignored: {', '.join(unused)}.")
    return out
