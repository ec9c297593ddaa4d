"""An identification in a few lines for the terminal."""

from __future__ import annotations

from rich.console import Console

from steelyard.identification.identification import Identification
from steelyard.report.reduced import significance_sentence
from steelyard.report.terminal import number, table


def print_identification(found: Identification, console: Console, folder: str = "") -> None:
    """Scores, verdict, and where to look."""
    kind = "physically possible" if found.physically_consistent else "not physically possible"
    console.print(
        f"[bold]{found.robot.name}[/bold]: {found.base.rank} base parameters, condition number "
        f"{found.condition_number:.3g}, {kind}; low-pass {found.cutoff:.3g} Hz, velocity {found.velocity}\n"
    )
    if found.tuning is not None:
        console.print(f"{found.tuning.sentence}\n")
    for scores, title in ((found.validation, "not used for the fit"), (found.identification, "used for the fit")):
        for s in scores:
            rows = [
                [j.joint, number(j.rmse), f"{j.nrmse_percent:.1f}", f"{j.r2:.4f}", f"{j.relative_error_percent:.1f}"]
                for j in s.joints
            ]
            columns = ["joint", "RMSE", "% of std", "R²", "relative %"]
            console.print(table(f"{s.log} ({title}, scored at {s.cutoff:.3g} Hz)", columns, rows, right=columns[1:]))
    console.print(f"[bold]{found.verdict.sentence}[/bold]")
    for reason in found.verdict.reasons:
        console.print(f" · {reason}")
    if found.reduced is not None:
        console.print(f" · {significance_sentence(found)}")
        gone = ", ".join(s.name for s in found.reduced.details["removals"].steps)
        if gone:
            what = "the free fit" if found.settings.physical else "the delivered model"
            console.print(f"   Taken away from {what}, in this order: {gone}.")
        if found.settings.physical:
            console.print("   The delivered model is physically possible and keeps all of them.")
    for name, check in found.checks:
        console.print(f" · Check of {name}: {check.verdict}")
        for advice in check.advice:
            console.print(f"   {advice}")
    if folder:
        console.print(f"\nLook at {folder}/report.html; the model is in {folder}.")
