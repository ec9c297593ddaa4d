"""Presents an identification as an HTML report and as terminal output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from steelyard.assessment.columns import SCORES, score_row
from steelyard.assessment.score import JointScore
from steelyard.assumptions.page import assumptions_section, lines
from steelyard.check.page import checked
from steelyard.estimation.history_page import history_section
from steelyard.ground.grades import tone
from steelyard.ground.numbers import Known, number
from steelyard.identification.first_look import first_look_section, reasons_section, remarks_section
from steelyard.identification.identification import Identification
from steelyard.identification.next_page import next_section
from steelyard.identification.parameters_page import (
    base_parameters_section,
    between_logs_section,
    model_section,
    significance_section,
    significance_sentence,
)
from steelyard.identification.score_page import (
    files_section,
    friction_section,
    residuals_section,
    scores_section,
    torque_parts_section,
)
from steelyard.identification.structure import StructureStep
from steelyard.regression.band import BandChoice
from steelyard.regression.inspection import right_angle_note
from steelyard.report.elements import Html, TableCell, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import bold, say, table


def identification_report(
    result: Identification, inputs: Sequence[Path] = (), missing: Mapping[str, str] | None = None
) -> str:
    """Build the report of an identification as one self-contained HTML page.

    Args:
        result: Identification to show.
        inputs: Robot file and logs, in this order; the suggested commands name them.
        missing: Files that could not be written, with reasons.
    """
    verdict = result.verdict
    history = result.free.parameter_history
    kind = tone(verdict.grade)
    sections: list[Section | None] = [
        first_look_section(result),
        reasons_section(verdict.reasons),
        scores_section(result),
        files_section(result),
        _missing(missing or {}),
        remarks_section(verdict.remarks),
        next_section(result, inputs),
        torque_parts_section(result),
        residuals_section(result),
        checked(result.checks, result.singular_values),
        assumptions_section(result.assumptions),
        _band(result),
        _structure(result),
        friction_section(result),
        base_parameters_section(result),
        between_logs_section(result),
        significance_section(result),
        model_section(result),
        None if history is None else history_section(history),
        _settings(result),
    ]
    return render_report(
        f"{result.robot.name}: identified model",
        [s for s in sections if s is not None],
        verdict=Verdict(kind, verdict.sentence),  # type: ignore[arg-type]
        subtitle=_subtitle(result),
    )


def _subtitle(result: Identification) -> str:
    used, judged = len(result.identification), len(result.validation)
    logs = f"{used} log{'s' if used > 1 else ''}"
    rest = f", validated on {judged} other{'s' if judged > 1 else ''}" if judged else ", no validation log"
    return f"{result.base.rank} base parameters of {result.robot.dof} joints from {logs}{rest}"


def _missing(missing: Mapping[str, str]) -> Section | None:
    """List files that could not be written, with the reason."""
    if not missing:
        return None
    words = "These files could not be written. The other files of the run contain the complete result."
    rows: list[Sequence[TableCell]] = list(missing.items())
    return Section("Files that could not be written", join(paragraph(words), table_html(["file", "reason"], rows)))


def _structure(result: Identification) -> Section | None:
    """Show the steps of the structure search, joint by joint."""
    if result.structure is None:
        return None
    words = (
        f"{result.structure.sentence} Errors are in per cent of the torque's standard deviation, by cross-validation "
        "on blocks of the identification logs. “=”: the term replaces the default dry friction; “+”: a term is added; "
        "“-”: a term without effect is removed. A term is accepted if its gain exceeds one standard error."
    )
    steps = structure_table(result.structure.steps)
    return Section("Structure of friction and drives", join(paragraph(words), steps))


def structure_table(steps: Sequence[StructureStep]) -> Html:
    """Build the table of the `steps` of a structure search."""
    rows: list[Sequence[TableCell]] = [
        (s.joint, s.change, *(Known(x, s.doubt_percent) for x in (s.before_percent, s.after_percent)),
         s.doubt_percent, "accepted" if s.taken else "rejected")
        for s in steps
    ]  # fmt: skip
    return table_html(["joint", "change", "error before", "after", "standard error", ""], rows)


def _mark(band: BandChoice, frequency: float) -> str:
    """Mark the candidate that was used and the one that is recommended."""
    used = ("stated" if band.stated else "chosen") if frequency == band.cutoff_hz else ""
    return ", ".join(filter(None, [used, "recommended" if frequency == band.advised_hz else ""]))


def _band(result: Identification) -> Section | None:
    """Show how cross-validation selected the cut-off."""
    band = result.band
    if band is None:
        return None
    shares: Sequence[float | None] = (None, *band.explained)
    rows: list[Sequence[TableCell]] = [
        (frequency, error, share, _mark(band, frequency))
        for frequency, error, share in zip(band.candidates_hz, band.left_out_percent, shares, strict=True)
    ]
    columns = ["cut-off, Hz", "cross-validation error, %", "R² of the torque in the octave below", ""]
    note = (
        f"All cut-offs are compared on frequencies below {number(band.judged_hz, 3)} Hz. For each octave, R² is that "
        "of a fit to all frequencies below it, on the left-out blocks. A negative R² means that the measured motion "
        "is noise in this octave. The highest cut-off that does not increase the error is "
        f"{'recommended' if band.stated else 'used'}."
    )
    dash = "Lowest candidate: there is no octave below it."
    return Section("Cut-off", join(paragraph(band.sentence), table_html(columns, rows, dash=dash), paragraph(note)))


def _settings(result: Identification) -> Section:
    s = result.settings
    rows: list[Sequence[TableCell]] = [
        ("scheme", s.scheme),
        ("estimator", s.estimator + (", physically possible" if s.physical else ", free")),
        ("prior", s.prior),
        ("cut-off of the fit", f"{number(result.cutoff_hz, 4)} Hz"),
        ("velocity", result.velocity + _velocity_delays(result)),
        *([("torque between samples", result.between.text)] if result.between is not None else []),
        *([("delay of the torques", result.delay_sentence)] if result.delay_sentence else []),
        *([("right angles", right_angle_note(result.robot))] if result.robot.snap_distances else []),
        *([("structure", result.structure.sentence)] if result.structure is not None else []),
        ("result", result.estimate.result.value),
        *(("note", note) for note in result.estimate.notes),
    ]
    return Section("Settings", table_html(["setting", "value"], rows))


def _velocity_delays(result: Identification) -> str:
    """Name the logged velocities that had a delay and were shifted."""
    if not result.late_velocities:
        return ""
    late = ", ".join(f"{joint} {1e3 * delay:.2g} ms" for joint, delay in result.late_velocities.items())
    return f" (shifted by its delay: {late})"


def _error_table(title: str, scores: Sequence[JointScore]) -> Table:
    """Build the table of joint errors. The verdict uses the error in motion."""
    stands = any(j.standing for j in scores)
    moving, standing = (("moving_percent",), ("standing_percent", "time_standing_percent")) if stands else ((), ())
    names = ("joint", "rmse", *moving, "nrmse_percent", "r2", "relative_error_percent", *standing)
    columns = [SCORES[name].printed or SCORES[name].head for name in names]
    if not stands:
        columns[names.index("nrmse_percent")] = "NRMSE, % of std"
    rows = [[_printed(row[name], SCORES[name].digits) for name in names] for row in map(score_row, scores)]
    means = [np.mean([getattr(j, f) for j in scores]) for f in ("moving_nrmse_percent", "nrmse_percent")]
    shown = [number(float(m), 3) for m in (means if stands else means[1:])]
    rows.append(["mean of joints", "", *shown, *[""] * (len(columns) - 2 - len(shown))])
    return table(title, columns, rows, right=columns[1:])


def _printed(value: str | float | None, digits: int) -> str:
    return "" if value is None else value if isinstance(value, str) else number(value, digits)


def print_identification(
    result: Identification, console: Console, folder: str = "", missing: Mapping[str, str] | None = None
) -> None:
    """Print the scores, the verdict and the path of the report.

    Args:
        result: Identification to print.
        console: Console to print to.
        folder: Run folder; "" without one.
        missing: Files that could not be written, with reasons.
    """
    kind = "physically possible" if result.possible else "not physically possible"
    say(
        console,
        bold(result.robot.name),
        f": {result.base.rank} base parameters, condition number "
        f"{number(result.condition_number, 3)}, {kind}; "
        f"low-pass {number(result.cutoff_hz, 3)} Hz, velocity {result.velocity}{_velocity_delays(result)}\n",
    )
    if result.band is not None and (result.band.advice or not (result.band.stated or result.band.is_ceiling)):
        say(console, f"{result.band.sentence}\n")
    if result.between is not None and result.between.name != "auto":
        say(console, f"{result.between.text}\n")
    if result.delay_sentence:
        say(console, f"{result.delay_sentence}\n")
    if result.structure is not None:
        say(console, f"{result.structure.sentence}\n")
    error = result.torque_error
    if len(error.logs) > 1:
        console.print(
            _error_table(f"{len(error.logs)} {'validation' if error.unseen else 'fitted'} logs together", error.joints)
        )
    for scores, title in ((result.validation, "validation"), (result.identification, "fitted")):
        for s in scores:
            console.print(_error_table(f"{s.log} ({title}, scored at {number(s.cutoff_hz, 3)} Hz)", s.joints))
    say(console, bold(result.verdict.sentence))
    for reason in result.verdict.reasons:
        say(console, f" · {reason}")
    if result.verdict.grade != "poor":
        said = (result.verdict.sentence, *result.verdict.reasons, *result.verdict.remarks)
        for line in lines(result.assumptions, said):
            say(console, f" · {line}")
    if result.reduced is not None:
        say(console, f" · {significance_sentence(result)}")
        gone = ", ".join(s.name for s in result.reduced.details["removals"].steps)
        if gone:
            fit = "the free fit" if result.settings.physical else "the delivered model"
            say(console, f"   Removed from {fit}, in this order: {gone}.")
        if result.settings.physical:
            say(console, "   The delivered model is physically possible and has all parameters.")
    for name, check in result.checks:
        # The reasons of the verdict have the complaints that matter, with their advice.
        if not any(reason.startswith(f"{name}:") for reason in result.verdict.reasons):
            say(console, f" · Check of {name}: {check.verdict}")
    if result.verdict.remarks:
        say(console, f" · {len(result.verdict.remarks)} remarks on the model and its files are in the report.")
    _print_files(result, console, folder, missing or {})


def _print_files(result: Identification, console: Console, folder: str, missing: Mapping[str, str]) -> None:
    """Print the path of each written file; that of a robot file with its own torque error."""
    at = f"{folder}/" if folder else ""
    if folder:
        say(console, f"\nReport: {at}report.html", whole_words=True)
        say(console, f"Model:  {folder} (for steelyard validate, predict, export and watch)", whole_words=True)
    for file in result.files:
        if file.file not in missing:
            say(console, f"{'Robot:  ' if folder else ''}{at}{file.sentence}", whole_words=True)
    for name, why in missing.items():
        say(console, f"{name} cannot be written: {why}")
    if folder:
        say(console, f"Data:   {at}result.json, {at}parameters.csv, {at}covariance.csv", whole_words=True)
