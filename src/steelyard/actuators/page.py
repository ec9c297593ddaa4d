"""The page of an identified drive, its actuator card, and its text on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from steelyard.actuators.card import actuator_card
from steelyard.ground.numbers import number
from steelyard.report import bold, say, table

if TYPE_CHECKING:
    from rich.console import Console

    from steelyard.actuators.identification import ActuatorIdentification

# Runs listed on a terminal; the page has all.
_MOST_RUNS = 20
_MRAD = 1e3


def actuator_report(result: ActuatorIdentification) -> str:
    """Render the page of a `result`."""
    return actuator_card(result, result.delivered)


def print_actuator(result: ActuatorIdentification, out: Console, folder: str = "") -> None:
    """Print a drive, the errors of its rollouts, and what the logs cannot separate.

    Args:
        result: Identified drive.
        out: Console.
        folder: Run folder; "" if none was written.
    """
    model = result.model
    rows = [
        [r["name"], f"{r['value']:.5g}", _between(r["low"], r["high"]) if r["estimated"] else "given", r["unit"], r["about"]]
        for r in model.rows()
    ]
    title = f"Drive '{model.name}': {model.kind}, friction {model.friction}"
    out.print(table(title, ["parameter", "value", "95 %", "unit", "meaning"], rows))
    worst = sorted(result.runs, key=lambda r: (r.role != "hold-out", -r.error))
    errors = [
        [r.name, r.role, _mrad(r.goal_error), _mrad(r.error), _mrad(r.left_out_error), "" if r.predictable else r.reason]
        for r in worst[:_MOST_RUNS]
    ]
    heads = ["run", "role", "goal [mrad]", "rollout [mrad]", "left out [mrad]", ""]
    out.print(table("Mean absolute position errors", heads, errors))
    for item in result.inseparable:
        say(out, f"Not separable: {', '.join(item.parameters)}. {item.reason} {item.convention}")
        say(out, f"  Next experiment: {item.experiment}")
    for note in result.notes:
        say(out, note)
    if result.delivered is not None:
        for replay in result.delivered.replays:
            say(out, f"MuJoCo from the written {replay.shown()}")
        for line in result.delivered.drive.missing:
            say(out, line)
    out.print(bold(_summary(result)))
    if folder:
        say(out, f"Written: {folder} (the actuator card is report.html).")


def _summary(result: ActuatorIdentification) -> str:
    held, left = result.error("hold-out"), [r.left_out_error for r in result.runs if math.isfinite(r.left_out_error)]
    if math.isfinite(held):
        return f"Held-out runs: {_mrad(held)} mrad; runs of the fit: {_mrad(result.error('fit'))} mrad."
    if left:
        return f"Left-out runs: {_mrad(float(np.mean(left)))} mrad; runs of the fit: {_mrad(result.error('fit'))} mrad."
    return f"Runs of the fit: {_mrad(result.error('fit'))} mrad; no run was left out."


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"


def _mrad(value: float) -> str:
    return number(_MRAD * value, 3) if math.isfinite(value) else "–"
