"""Summary of closed loops in a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.floating.motion import Preparer
from steelyard.loops.mechanism import Mechanism


def loop_summary(mechanism: Mechanism, preparer: Preparer, rows: Mapping[str, int]) -> dict[str, Any]:
    """Summarise closed loops for the result.

    Args:
        mechanism: The loops.
        preparer: Preparer of the logs.
        rows: Rows used and left out, by reason.
    """
    prefix = "samples left out: "
    return {
        "names": [loop.name for loop in mechanism.robot.loops],
        "degrees_of_freedom": mechanism.mobility,
        "measured": list(mechanism.measured_names),
        "solved": list(mechanism.solved_names),
        "largest_gap": preparer.gap * mechanism.structure.length,
        "singular_samples": rows.get(f"{prefix}singular poses", 0),
        "open_samples": rows.get(f"{prefix}poses at which the loops do not close", 0),
    }


def loop_sentence(loops: Mapping[str, Any]) -> str:
    """Write the summary of closed loops.

    Args:
        loops: The summary.
    """
    solved = loops["solved"]
    names = ", ".join(solved[:6]) + (f" and {len(solved) - 6} more" if len(solved) > 6 else "")
    text = (
        f"{len(loops['names'])} closed loop(s), {loops['degrees_of_freedom']} degree(s) of freedom; the positions of "
        f"{', '.join(loops['measured'])} determine those of {names}."
    )
    parts = [
        (loops["singular_samples"], "near singular poses"),
        (loops["open_samples"], "where the loops do not close"),
    ]
    counts = [f"{count} {place}" for count, place in parts if count]
    return text + (f" Samples left out: {', '.join(counts)}." if counts else "")
