"""What can be identified."""

from __future__ import annotations

import re

import numpy as np

from steelyard.papers.paper import Item, asserted, table
from steelyard.papers.szabo3r.lab import TABLE2, Lab


def base_combinations(lab: Lab) -> Item:
    """Section 6: the 15 combinations of inertial parameters."""
    rows, same = [], 0
    names = [p.name for p in lab.base.parameters]
    for key, ours in zip(lab.base.names, lab.base.formulas, strict=True):
        theirs = next(n for n, text in lab.own.formulas.items() if re.match(rf"{key}\b", text))
        equal = np.allclose(lab.base.matrix[lab.base.names.index(key)], lab.own.matrix[lab.own.names.index(theirs)])
        same += equal
        rows.append((theirs, TABLE2.words("expression")[lab.own.names.index(theirs)], ours, bool(equal)))
    kinds = dict(zip(names, lab.base.classes, strict=True))
    alone = [n for n, kind in kinds.items() if kind == "alone" and not n.startswith("Fs")]
    of_link_1 = [n for n in names[:10] if kinds[n] != "none"]
    return Item(
        text="Row reduction of the regressor over random states, columns in the paper's order. Lengths of 0.5 m make "
        "the paper's halves and twos.",
        tables=(table(("row", "in print", "ours", "the same"), rows),),
        statements=(
            asserted(
                "24 parameters can be identified: 15 combinations of inertial ones and 9 of friction.",
                lab.base.rank == 24 and sum(not n.startswith("Fs") for n in lab.base.names) == 15,
                f"Rank {lab.base.rank}.",
            ),
            asserted("The combinations are those of Table 2.", same == 24, f"{same} of 24, every coefficient."),
            asserted(
                "Six inertial parameters and all of friction can be identified on their own.",
                set(alone) == {"Ixy2", "Ixy3", "Iyz2", "Iyz3", "my2", "my3"},
                f"{', '.join(alone)}; of link 1 only {', '.join(of_link_1)} shows, in a combination.",
            ),
        ),
        differences=(
            "The text calls the inertia of link 1 unidentifiable, but Iyy1 leads row 5 of its Table 2.",
            "Negative exact values are no errors: moments are counted from the far end of each link.",
        ),
    )  # fmt: skip
