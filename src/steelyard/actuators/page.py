"""Report page and terminal text of an identified drive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.actuators.card import actuator_card, drive_verdict
from steelyard.ground.numbers import number

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.actuators.actuator_identification import ActuatorIdentification

_MRAD = 1e3


def actuator_report(result: ActuatorIdentification) -> str:
    """Render the page of an identified drive, the actuator card.

    Args:
        result: Identified drive.
    """
    return actuator_card(result, result.delivered)


def print_actuator(result: ActuatorIdentification, out: Console, folder: str = "") -> None:
    """Print an identified drive.

    Args:
        result: Identified drive.
        out: Console.
        folder: Run folder; "" if none was written.
    """
    from steelyard.report.terminal import bold, say, table

    model = result.model
    say(out, bold(f"{model.name}: {model.kind} drive, friction {model.friction}"))
    verdict = drive_verdict(result)
    say(out, verdict.headline)
    if verdict.kind == "bad":
        say(out, f" • {verdict.points[0]}")
    say(out, f" • Rollouts of {len(result.logs)} runs of the fit: {_mrad(result.error('fit'))} mrad (mean absolute).")
    if result.holdout:
        say(out, f" • Rollouts of {len(result.holdout)} held-out runs: {_mrad(result.error('hold-out'))} mrad.")
    for item in result.inseparable:
        say(out, f" • Not separated: {', '.join(item.parameters)}. {item.reason} {item.experiment}")
    for run in result.runs:
        if not run.predictable:
            say(out, f" • Run '{run.name}' is not predictable from the others: {run.reason}.")
    for note in result.notes:
        say(out, f" • {note}")
    rows = [
        [r["name"], number(r["value"]), _interval(r), r["unit"], r["about"]]
        for r in model.rows()
    ]  # fmt: skip
    out.print(table("Parameters", ["parameter", "value", "95 %", "unit", "meaning"], rows, right=("value",)))
    runs = [
        [r.name, r.role, _mrad(r.error), _mrad(r.left_out_error), _mrad(r.goal_error), "" if r.predictable else "no"]
        for r in result.runs
    ]
    heads = ["run", "role", "error [mrad]", "left out [mrad]", "goal − position [mrad]", "predictable"]
    out.print(table("Rollouts from the first sample", heads, runs, right=heads[2:5]))
    if result.structures:
        tried = [
            [s.label, str(s.parameters), _mrad(s.left_out_error), "chosen" if s.chosen else ""]
            for s in result.structures
        ]
        title = f"Structures, by runs left out by {result.grouped_by}" if result.grouped_by else "Structures"
        out.print(table(title, ["structure", "parameters", "score [mrad]", ""], tried, right=("parameters",)))
    if result.delivered is not None:
        for replay in result.delivered.replays:
            say(out, f" • MuJoCo, from the written {replay.shown()}")
        for line in result.delivered.drive.missing:
            say(out, f" • In the files for simulators: {line}")
    if folder:
        say(out, f"\nWritten to {folder}: {', '.join(['result.json', 'report.html', *result.files()])}.")


def _interval(row: dict[str, Any]) -> str:
    return f"{number(row['low'], 3)} … {number(row['high'], 3)}" if row["estimated"] else "given"


def _mrad(value: float) -> str:
    return number(_MRAD * value, 3) if math.isfinite(value) else "–"
