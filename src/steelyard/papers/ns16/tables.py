"""Table II: which combinations of parameters there are, and what its numbers can and cannot be."""

from __future__ import annotations

import re

import numpy as np

import steelyard as sy
from steelyard.ground import evaluate_expression
from steelyard.papers.ns16._lab import Lab
from steelyard.papers.own_parameters import OwnParameters
from steelyard.papers.paper import Item, asserted, measured, paper_table, printed
from steelyard.report import TableColumn

# Rows 23 to 40 with the coefficients that the printed decimals stand for.
COMBINED = {
    23: "Iyy1 + Ia1 + a1**2*m2 + Iyy2 + (a1**2 + a2**2)*m3 + Izz3 + (a1**2 + a2**2 + a3**2)*(m4 + m5 + m6)",
    24: "mx2 + a2*(m3 + m4 + m5 + m6)",
    25: "Ixx2 - Iyy2 - a2**2*(m3 + m4 + m5 + m6)",
    26: "Ixz2 + a2*my3",
    27: "Izz2 + Ia2 + a2**2*(m3 + m4 + m5 + m6)",
    28: "mx3 + a3*(m4 + m5 + m6)",
    29: "mz3 + my4 + d4*(m5 + m6)",
    30: "Ixx3 - Izz3 - a3**2*m4 + Izz4 + (d4**2 - a3**2)*(m5 + m6)",
    31: "Ixz3 - a3*my4 - a3*d4*(m5 + m6)",
    32: "Iyy3 + a3**2*m4 + Izz4 + (a3**2 + d4**2)*(m5 + m6)",
    33: "mz4 - my5",
    34: "Ixx4 - Izz4 + Izz5",
    35: "Iyy4 + Izz5",
    36: "Iyz4 + d4*my5",
    37: "mz5 + mz6",
    38: "Ixx5 - Izz5 + Iyy6",
    39: "Iyy5 + Iyy6",
    40: "Ixx6 - Iyy6",
}


def formulas() -> dict[str, str]:
    """All 40 rows in our names."""
    out = {}
    for row, text in enumerate(printed("ns16", "table2").words("expression")[:40], start=1):
        out[str(row)] = COMBINED.get(row) or _ours(text)
    return out


def _ours(text: str) -> str:
    """mc2y → my2, I2xy → Ixy2, I3m → Ia3."""
    text = re.sub(r"mc(\d)([xyz])", r"m\2\1", text)
    text = re.sub(r"I(\d)m", r"Ia\1", text)
    return re.sub(r"I(\d)([xyz]{2})", r"I\2\1", text)


def _printed_coefficients(text: str) -> dict[str, float]:
    """The coefficients of a printed row by parameter, in our names."""
    signed = re.findall(r"([+-]?)\s*(?:(\d\.\d+)\s+)?([A-Za-z]\w*)", text)
    return {_ours(name): (-1.0 if sign == "-" else 1.0) * float(size or 1.0) for sign, size, name in signed}


def table_2(lab: Lab) -> Item:
    """Table II: the parameters and their combinations, regenerated from the geometry."""
    robot = lab.robot
    ranks = [sy.base_parameters(robot).rank, sy.base_parameters(robot, sy.terms(robot, "rotor")).rank, lab.base.rank]
    own = OwnParameters.of(formulas(), sy.base_parameters(robot, sy.terms(robot, "rotor")))
    texts = printed("ns16", "table2").words("expression")[:40]
    names = [p.name for p in own.base.parameters]
    rows, worst = [], 0.0
    for row, (text, exact) in enumerate(zip(texts, own.formulas.values(), strict=True), start=1):
        ours = dict(zip(names, own.matrix[row - 1], strict=True))
        off = max((abs(v - ours[n]) for n, v in _printed_coefficients(text).items()), default=0.0)
        missing = {n for n, v in ours.items() if v} ^ set(_printed_coefficients(text))
        worst = max(worst, off if not missing else 1.0)
        value = evaluate_expression(exact, {**dict.fromkeys(names, 0.0), **_true(lab)})[0]
        rows.append((row, text, exact, off, value))
    return Item(
        text="Every row is written with the robot's lengths and must be a combination that the motion shows; together "
        "they must be all there are. Link frames have the orientation of frame i and their origin on axis i.",
        tables=(
            paper_table(
                (
                    "row",
                    "as printed",
                    "from the geometry",
                    TableColumn("difference", digits=2),
                    TableColumn("value here"),
                ),
                rows,
            ),
        ),
        statements=(
            asserted("Ranks: 36 for the links, 40 with rotors, 58 with friction.", ranks == [36, 40, 58], f"{ranks}."),
            asserted(
                "The 40 rows are an exact regrouping: each can be found from the motion, and they are independent.",
                own.rank == 40,
                f"Rank {own.rank}; every row regroups to 1e-9.",
            ),
            asserted(
                "Printed coefficients are ours with three decimals cut off, not rounded.",
                5e-4 < worst < 1e-3,
                f"Largest difference {worst:.1e}.",
            ),
        ),
        differences=(
            "Row 10 has lost its label in print; it must be the rotor of joint 4, or the rank would be 39.",
            "“40 parameters for a 6-dof manipulator” holds with independent rotors on joints 3 to 6 only.",
        ),
    )


def _true(lab: Lab) -> dict[str, float]:
    named = {p.name: float(v) for p, v in zip(lab.base.parameters, lab.truth.theta, strict=True)}
    return {**named, **{k: float(v) for k, v in lab.robot.lengths.items()}}


def printed_values(_: Lab) -> Item:
    """Table II: the printed values as bodies."""
    rows = printed("ns16", "table2")
    values = {x: rows.numbers(x)[:40] for x in "ABC"}
    which = {6: "I3m", 21: "I6zz", 23: "inertia about axis 1", 35: "I4yy + I5zz", 39: "I5yy + I6yy"}
    shown = [(row, name, *(values[x][row - 1] for x in "ABC")) for row, name in which.items()]
    negative = {x: [row for row in which if values[x][row - 1] < 0.0] for x in "ABC"}
    largest = [float(np.max(np.abs(values[x]))) for x in "ABC"]
    return Item(
        text="Moments of inertia and of rotors are positive, and so are sums of them.",
        tables=(paper_table(("row", "what", "A", "B", "C"), shown),),
        statements=(
            asserted(
                "None of the three printed sets is physically possible.",
                all(negative.values()),
                "; ".join(f"{x}: rows {', '.join(map(str, r))} are negative" for x, r in negative.items()) + ".",
            ),
            measured("How far apart the sets are.", f"Largest values {', '.join(f'{s:.0f}' for s in largest)}."),
        ),
        differences=("They are no truth to simulate with; the simulated arm has its own, possible bodies.",),
    )


def friction_labels(lab: Lab) -> Item:
    """Table II, rows 41–58: whose friction it is."""
    rows = printed("ns16", "table2")
    shares = {x: rows.numbers(x)[40:52] for x in "ABC"}
    read = {
        "as labelled (rows 41–46)": np.array([shares[x][:6] for x in "ABC"]),
        "every other row (41, 43, … 51)": np.array([shares[x][::2] for x in "ABC"]),
    }
    percent = {name: 100.0 * values / lab.nominal for name, values in read.items()}
    cells = [(name, *(f"{p[:, k].min():.1f} … {p[:, k].max():.1f}" for k in range(6))) for name, p in percent.items()]
    wide, narrow = (float(p.max() / p.min()) for p in percent.values())
    return Item(
        text="Coulomb friction of geared joints is some percent of their nominal torque, on all joints alike.",
        tables=(
            paper_table(
                ("reading", *(f"f0 of joint {k} [% of nominal]" for k in range(1, 7))), cells, "Range over A, B, C"
            ),
        ),
        statements=(
            asserted(
                "Read as labelled, joint 5 rubs with most of its nominal torque and joint 2 hardly at all; read as "
                "interleaved, all joints lie between 3 and 22 %.",
                wide > 300.0 and narrow < 8.0,
                f"Largest over smallest: {wide:.0f} as labelled, {narrow:.1f} interleaved.",
            ),
        ),
        differences=("The labels are most probably interleaved; this is an inference from plausibility.",),
    )
