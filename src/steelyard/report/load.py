"""A weighed load for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from steelyard.payload.load import Load
from steelyard.report.terminal import number, table


def print_load(load: Load, out: Console, folder: str = "") -> None:
    """Mass, centre of gravity and inertia with their error bars, in the units that robot makers ask for."""
    low, high = load.interval()
    cog, cog_error = 1000.0 * load.center_of_gravity, 1000.0 * load.center_of_gravity_error
    moments = [(i, j) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    names = "xyz"
    rows = [["mass", "kg", number(load.mass), number(load.mass_error, 2)]]
    rows += [[f"centre of gravity {names[k]}", "mm", number(cog[k]), number(cog_error[k], 2)] for k in range(3)]
    rows += [
        [f"inertia {names[i]}{names[j]}", "kg m²", number(load.inertia[i, j], 3), number(error, 2)]
        for (i, j), error in zip(moments, load.inertia_error, strict=True)
    ]
    title = f"Load in frame '{load.frame}', inertia about its centre of gravity"
    out.print(
        table(escape(title), ["", "unit", "value", "± standard error"], rows, right=("value", "± standard error"))
    )
    out.print(f"The mass lies between {number(low)} and {number(high)} kg with 95 % confidence.")
    for note in load.notes:
        out.print(f" • {escape(note)}")
    if folder:
        out.print(f"\nWritten to {escape(folder)}: result.json, load.csv, load.yaml and the robot with it.")
