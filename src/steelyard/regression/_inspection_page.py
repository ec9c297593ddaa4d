"""An inspection as tables for the terminal."""

from __future__ import annotations

from rich.console import Console

from steelyard.ground.numbers import number
from steelyard.regression.inspection import Inspection
from steelyard.report.terminal import bold, say, table

_MEANING = {
    "alone": "alone (each has its own base parameter)",
    "combined": "combined (only in sums with others)",
    "none": "not at all (no torque depends on them)",
}


def print_inspection(inspection: Inspection, out: Console) -> None:
    """Print all tables of `inspection`, joints first and notes last."""
    gravity = ", ".join(number(x) for x in inspection.gravity)
    say(out, bold(inspection.robot), f": {len(inspection.joints)} joints, {len(inspection.links)} moving links")
    say(out, f"gravity ({gravity}) m/s²" + (f", read from {inspection.source}" if inspection.source else ""))
    out.print()
    _joints(inspection, out)
    _links(inspection, out)
    if inspection.transmission:
        _transmission(inspection, out)
    _loops(inspection, out)
    _base(inspection, out)
    say(out, f"The torque regressor takes {inspection.regressor_operations} operations per sample.")
    for note in inspection.notes:
        say(out, bold("Note:"), f" {note}")


def _joints(inspection: Inspection, out: Console) -> None:
    columns = ["joint", "kind", "lower", "upper", "velocity", "effort", "torque"]
    rows = [
        [j.name, j.kind, *(number(x) for x in (j.lower, j.upper, j.velocity, j.effort)),
         "used" if j.torque_used else "not used"]
        for j in inspection.joints
    ]  # fmt: skip
    out.print(table("Joints (rad or m, N m or N)", columns, rows, right=("lower", "upper", "velocity", "effort")))


def _links(inspection: Inspection, out: Console) -> None:
    rows = []
    for link in inspection.links:
        com = "–" if link.center_of_mass is None else ", ".join(number(x, 3) for x in link.center_of_mass)
        possible = {True: "yes", False: "NO", None: "unknown"}[link.physically_possible]
        rows.append([link.name, link.parent or "base", number(link.mass), com, possible])
    columns = ["link", "on", "mass [kg]", "centre of mass [m]", "possible"]
    out.print(table("Links", columns, rows, right=("mass [kg]",)))


def _transmission(inspection: Inspection, out: Console) -> None:
    rows = [
        [t.motor, t.moves([j.name for j in inspection.joints]), "by posture" if t.ratio is None else number(t.ratio, 6)]
        for t in inspection.transmission
    ]
    out.print(table("Drives", ["motor", "moves", "ratio"], rows, right=("ratio",)))


def _loops(inspection: Inspection, out: Console) -> None:
    loops = inspection.loops
    if loops is None:
        return
    rows = [[loop.name, str(loop.equations), ", ".join(loop.joints)] for loop in loops.loops]
    out.print(table("Closed loops", ["loop", "equations", "joints"], rows, right=("equations",)))
    drives = f"{_few(loops.driven)} (the others follow)" if loops.driven else "not stated; name them in the mapping"
    say(out, f"Degrees of freedom: {loops.degrees_of_freedom}. Driven joints: {drives}.")


def _base(inspection: Inspection, out: Console) -> None:
    base = inspection.base_parameters
    if base is None:
        say(out, "Base parameters: not determined; see the note below.")
        return
    title = (
        f"{base.count} base parameters"
        + (f" with {', '.join(inspection.terms)}" if inspection.terms else "")
        + " (identifiable)"
    )
    rows = [[str(k), p.formula, p.unit, number(p.nominal)] for k, p in enumerate(base.parameters, start=1)]
    out.print(table(title, ["#", "formula", "unit", "nominal"], rows, right=("#", "nominal")))
    count = sum(len(names) for names in inspection.identifiable.values())
    summary = [
        [_MEANING[kind], str(len(names)), _few(names)] for kind, names in inspection.identifiable.items() if names
    ]
    out.print(table(f"Identifiability of the {count} parameters", ["how", "count", "which"], summary, right=("count",)))
    say(
        out,
        f"Rank by {base.method}: condition {number(base.condition_number, 3)} of the columns scaled to unit norm, "
        f"then a gap of {number(base.rank_gap, 2)}.",
    )


def _few(names: tuple[str, ...], most: int = 60) -> str:
    return " ".join(names[:most]) + (f" … ({len(names) - most} more)" if len(names) > most else "")
