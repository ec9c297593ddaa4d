"""One row of a Denavit–Hartenberg table: a joint, its four constants, its limits and its link's inertia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.robot.robot import Joint, JointKind
from steelyard.robot.spatial import inertia_matrix, inertial_parameters, parameters_from_com

COLUMNS = ("theta", "d", "a", "alpha")
_ROW_KEYS = ("joint", "type", "dh", *COLUMNS, "sign", "parent", "limits", "link")
_LINK_KEYS = ("name", "mass", "com", "first_moment", "inertia_com", "inertia_origin")
_MOMENTS = ("xx", "xy", "yy", "xz", "yz", "zz")  # the order of the ten parameters


@dataclass(frozen=True)
class Row:
    """A row in SI units without the joint variable: theta and d are constants."""

    joint: Joint
    link: str
    parent: int
    theta: float
    d: float
    a: float
    alpha: float
    sign: float
    inertia: Array | None


def read_row(entry: Field, index: int, before: Sequence[Row], columns: Sequence[str], degrees: bool) -> Row:
    """Read one row of the table.

    Args:
        entry: The row: a list of numbers or a table.
        index: Number of the row, from 0.
        before: Rows read so far.
        columns: Order of the numbers in a list.
        degrees: Whether angles are in degrees.
    """
    name = f"q{index + 1}"
    if isinstance(entry.value, Mapping) and entry.value.get("joint") is not None:
        name = entry.inside(entry.value["joint"], "joint").text()
    entry = Field(entry.value, f"{entry.place} ({name})", entry.names)
    keys = {} if isinstance(entry.value, list | tuple) else entry.table((), _ROW_KEYS)
    numbers = _columns(entry, keys, columns)
    _refuse_duplicate(entry, "joint", name, [row.joint.name for row in before])

    kind, sign, constants = _variable(entry, keys, numbers, name)
    angle = np.pi / 180.0 if degrees else 1.0
    joint = _joint(name, kind, keys.get("limits"), angle if kind == "revolute" else 1.0)
    link, inertia = read_link(keys.get("link"), f"link{index + 1}")
    _refuse_duplicate(entry, "link", link, [row.link for row in before])
    return Row(
        joint=joint,
        link=link,
        parent=_parent(keys.get("parent"), [row.joint.name for row in before]),
        theta=constants["theta"] * angle,
        d=constants["d"],
        a=constants["a"],
        alpha=constants["alpha"] * angle,
        sign=sign,
        inertia=inertia,
    )


def _refuse_duplicate(entry: Field, kind: str, name: str, before: Sequence[str]) -> None:
    if name in before:
        entry.fail(
            f"{kind} '{name}' appears twice, first in row {before.index(name) + 1}; name every {kind} differently."
        )


def _columns(entry: Field, keys: Mapping[str, Field], columns: Sequence[str]) -> dict[str, Field]:
    """Return the stated numbers of the row: from a list that is the whole row, from the list `dh`, or by name."""
    listed = keys.get("dh") if isinstance(entry.value, Mapping) else entry
    numbers: dict[str, Field] = {}
    if listed is not None:
        values = listed.value if isinstance(listed.value, list | tuple) else ()
        if len(values) != len(columns):
            order = ", ".join(columns)
            listed.fail(f"wrong number of columns, {len(values)} instead of {len(columns)}; write [{order}].")
        numbers = {column: listed.inside(value, column) for column, value in zip(columns, values, strict=True)}
    for column in COLUMNS:
        if column in keys and column in numbers:
            keys[column].fail("is stated twice, here and in 'dh'; keep one of the two.")
        if column in keys:
            numbers[column] = keys[column]
    return numbers


def _variable(
    entry: Field, keys: Mapping[str, Field], numbers: Mapping[str, Field], name: str
) -> tuple[JointKind, float, dict[str, float]]:
    """Return the joint's kind, the sign of its variable, and the four constants."""
    variables = {"q", name}
    constants: dict[str, float] = {}
    slopes: dict[str, float] = {}
    for column, number in numbers.items():
        constants[column], slope = number.affine(variables if column in ("theta", "d") else ())
        if slope:
            slopes[column] = slope
        if slope and abs(slope) != 1.0:
            number.fail(f"moves by {slope:g} per unit of the joint; write q or -q plus a constant.")
    if len(slopes) > 1:
        entry.fail("both theta and d contain the joint's variable; use it in only one of them.")

    kind: JointKind = "prismatic" if "d" in slopes else "revolute"
    if "type" in keys:
        stated = keys["type"].choice(("revolute", "prismatic"))
        if slopes and stated != kind:
            keys["type"].fail(
                f"is {stated}, but the joint's variable appears in {next(iter(slopes))}; correct one of the two."
            )
        kind = "prismatic" if stated == "prismatic" else "revolute"
    moved = "theta" if kind == "revolute" else "d"
    for column in COLUMNS:
        if column not in constants and column != moved:
            entry.fail(f"'{column}' is missing; write {column}: 0 if it is zero.")

    sign = slopes.get(moved, 1.0)
    if "sign" in keys:
        if slopes:
            keys["sign"].fail(f"is stated twice, here and in the formula of {moved}; keep one of the two.")
        sign = keys["sign"].number()
        if abs(sign) != 1.0:
            keys["sign"].fail("must be 1 or -1.")
    return kind, sign, {moved: 0.0, **constants}


def _parent(entry: Field | None, before: Sequence[str]) -> int:
    if entry is None:
        return len(before) - 1
    name = entry.choice(("base", *before))
    return -1 if name == "base" else before.index(name)


def _joint(name: str, kind: JointKind, limits: Field | None, unit: float) -> Joint:
    if limits is None:
        return Joint(name, kind)
    if isinstance(limits.value, list | tuple):
        lower, upper = limits.vector(2)
        stated: dict[str, Field] = {}
    else:
        stated = limits.table((), ("lower", "upper", "velocity", "effort"))
        lower = stated["lower"].number(infinite=True) if "lower" in stated else -np.inf
        upper = stated["upper"].number(infinite=True) if "upper" in stated else np.inf
    if lower >= upper:
        limits.fail(f"lower ({lower:g}) must be below upper ({upper:g}).")
    velocity = stated["velocity"].positive(infinite=True) if "velocity" in stated else np.inf
    effort = stated["effort"].positive(infinite=True) if "effort" in stated else np.inf
    return Joint(name, kind, lower * unit, upper * unit, velocity * unit, effort)


def read_link(entry: Field | None, default: str) -> tuple[str, Array | None]:
    """Read the name of a link and its ten parameters in the link frame.

    Args:
        entry: The table of the link; None if there is none.
        default: Name where none is stated.
    """
    if entry is None:
        return default, None
    keys = entry.table((), _LINK_KEYS)
    name = keys["name"].text() if "name" in keys else default
    if set(keys) <= {"name"}:
        return name, None
    mass_at = [key for key in ("com", "first_moment") if key in keys]
    moments_at = [key for key in ("inertia_com", "inertia_origin") if key in keys]
    if "mass" not in keys or len(mass_at) != 1 or len(moments_at) != 1:
        entry.fail(
            "needs mass, one of com and first_moment, and one of inertia_com and inertia_origin, or none of them."
        )
    mass = keys["mass"].number()
    if mass < 0.0:
        keys["mass"].fail(f"{mass:g} kg is negative; a mass is zero or more.")
    at = np.array(keys[mass_at[0]].vector(3))
    first_moment = mass * at if mass_at == ["com"] else at
    tensor = _tensor(keys[moments_at[0]])
    if moments_at == ["inertia_origin"]:
        return name, inertial_parameters(mass, first_moment, tensor)
    if mass_at == ["first_moment"] and mass == 0.0:
        keys["mass"].fail("a massless link has no centre of mass; state inertia_origin.")
    com = at if mass_at == ["com"] else at / mass
    return name, parameters_from_com(mass, com, tensor)


def _tensor(entry: Field) -> Array:
    """Read a tensor of inertia: a table of moments (products default to 0) or a symmetric 3×3 matrix."""
    if isinstance(entry.value, list | tuple):
        rows = entry.matrix(3)
        matrix = np.array(rows)
        if matrix.shape != (3, 3) or np.any(matrix != matrix.T):
            entry.fail("must be a symmetric matrix of 3 rows.")
        return matrix
    keys = entry.table(("xx", "yy", "zz"), ("xy", "xz", "yz"))
    values = [keys[moment].number() if moment in keys else 0.0 for moment in _MOMENTS]
    return inertia_matrix([0.0, 0.0, 0.0, 0.0, *values])
