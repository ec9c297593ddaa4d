"""An identification as a page, a list of sections, each from results to HTML; and in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from steelyard.assessment.score import JointScore
from steelyard.assumptions.page import assumptions_section, lines
from steelyard.check.page import checked
from steelyard.estimation.history_page import history_section
from steelyard.ground.numbers import Known, number
from steelyard.identification.files_page import files_section
from steelyard.identification.identification import Identification
from steelyard.identification.next_page import next_section
from steelyard.identification.parameters_page import (
    base_parameters_section,
    between_logs_section,
    model_section,
    reduced,
    significance_sentence,
)
from steelyard.identification.robot_page import robot_section
from steelyard.identification.score_page import (
    friction_section,
    residuals_section,
    scores_section,
    torques_section,
)
from steelyard.identification.structure import StructureStep
from steelyard.regression.band import BandChoice
from steelyard.regression.inspection import right_angle_note
from steelyard.report.elements import Html, TableCell, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import bold, say, table


def identification_report(
    found: Identification, inputs: Sequence[Path] = (), missing: Mapping[str, str] | None = None
) -> str:
    """The page of what was `found`, self-contained.

    Args:
        found: the identification.
        inputs: the files that it was found from, for commands.
        missing: files that the run folder lacks, with the reason.
    """
    verdict = found.verdict
    history = found.free.parameter_history
    kind = {"good": "good", "usable": "warning", "poor": "bad"}[verdict.grade]
    sections: list[Section | None] = [
        scores_section(found),
        files_section(found),
        _missing(missing or {}),
        next_section(found, inputs),
        robot_section(found),
        torques_section(found),
        residuals_section(found),
        checked(found.checks, found.singular_values),
        assumptions_section(found.assumptions),
        _band(found),
        _structure(found),
        friction_section(found),
        base_parameters_section(found),
        between_logs_section(found),
        reduced(found),
        model_section(found),
        None if history is None else history_section(history),
        _how(found),
    ]
    return render_report(
        f"{found.robot.name}: identified model",
        [s for s in sections if s is not None],
        verdict=Verdict(kind, verdict.sentence, verdict.reasons),  # type: ignore[arg-type]
        subtitle=_subtitle(found),
    )


def _subtitle(found: Identification) -> str:
    used, judged = len(found.identification), len(found.validation)
    logs = f"{used} log{'s' if used > 1 else ''}"
    rest = f", judged on {judged} other{'s' if judged > 1 else ''}" if judged else ", not judged on others"
    return f"{found.base.rank} base parameters of {found.robot.dof} joints from {logs}{rest}"


def _missing(missing: Mapping[str, str]) -> Section | None:
    """Name the files that could not be written, with the reason."""
    if not missing:
        return None
    words = "The run has no such file. All other files of the run hold the whole result."
    rows: list[Sequence[TableCell]] = list(missing.items())
    return Section("Files that could not be written", join(paragraph(words), table_html(["file", "reason"], rows)))


def _structure(found: Identification) -> Section | None:
    """What the search tried, gained and chose, joint by joint."""
    if found.structure is None:
        return None
    words = (
        f"{found.structure.sentence} Errors are in per cent of a torque's standard deviation, on blocks of the "
        "identification logs that took no part in the fit; “=” takes the usual dry friction's place, “+” is added, “-” "
        "is taken away as idle. A term is taken where it gains more than its doubt (one standard error)."
    )
    steps = structure_table(found.structure.steps)
    return Section("Structure of friction and drives", join(paragraph(words), steps))


def structure_table(steps: Sequence[StructureStep]) -> Html:
    """The `steps` of a search for the structure."""
    rows: list[Sequence[TableCell]] = [
        (s.joint, s.change, *(Known(x, s.doubt_percent) for x in (s.before_percent, s.after_percent)),
         s.doubt_percent, "taken" if s.taken else "left")
        for s in steps
    ]  # fmt: skip
    return table_html(["joint", "change", "error before", "after", "doubt", ""], rows)


def _mark(band: BandChoice, frequency: float) -> str:
    """Which candidate was used or would help."""
    used = ("stated" if band.stated else "chosen") if frequency == band.cutoff_hz else ""
    return ", ".join(filter(None, [used, "advised" if frequency == band.advised_hz else ""]))


def _band(found: Identification) -> Section | None:
    """Show how left-out blocks chose the cut-off."""
    band = found.band
    if band is None:
        return None
    shares: Sequence[float | None] = (None, *band.explained)
    rows: list[Sequence[TableCell]] = [
        (frequency, error, share, _mark(band, frequency))
        for frequency, error, share in zip(band.candidates_hz, band.left_out_percent, shares, strict=True)
    ]
    columns = ["cut-off, Hz", "error on left-out blocks, %", "R² of the torque in the octave below", ""]
    note = (
        f"All cut-offs are judged below {number(band.judged_hz, 3)} Hz, where a fit to everything below an octave "
        "predicts the torque of left-out blocks in it. A negative R² means that the measured motion is noise there. "
        f"The highest cut-off that does no harm is {'advised' if band.stated else 'used'}."
    )
    dash = "There is no candidate below the lowest."
    return Section("Cut-off", join(paragraph(band.sentence), table_html(columns, rows, dash=dash), paragraph(note)))


def _how(found: Identification) -> Section:
    s = found.settings
    rows: list[Sequence[TableCell]] = [
        ("scheme", s.scheme),
        ("estimator", s.estimator + (", physically possible" if s.physical else ", free")),
        ("prior", s.prior),
        ("cut-off of the fit", f"{number(found.cutoff_hz, 4)} Hz"),
        ("velocity", found.velocity + _late(found)),
        *([("torque between samples", found.between.text)] if found.between is not None else []),
        *([("delay of the torques", found.delay_sentence)] if found.delay_sentence else []),
        *([("right angles", right_angle_note(found.robot))] if found.robot.snap_distances else []),
        *([("structure", found.structure.sentence)] if found.structure is not None else []),
        ("result", found.estimate.result.value),
        *(("note", note) for note in found.estimate.notes),
    ]
    return Section("How it was done", table_html(["setting", "value"], rows))


def _late(found: Identification) -> str:
    """Name the logged velocities that were late and have been shifted."""
    if not found.late_velocities:
        return ""
    late = ", ".join(f"{joint} {1e3 * delay:.2g} ms" for joint, delay in found.late_velocities.items())
    return f" (shifted by its delay: {late})"


def _error_table(title: str, scores: Sequence[JointScore]) -> Table:
    """The errors of all joints: first while they move, which is the figure of the verdict, then of all samples."""
    stands = any(j.standing for j in scores)
    columns = ["joint", "RMSE", *(["moving, % of std", "all samples %"] if stands else ["NRMSE, % of std"])]
    columns += ["R²", "relative %", *(["standing %", "of the time %"] if stands else [])]
    rows = [_error_row(j.told, stands) for j in scores]
    means = [np.mean([getattr(j, f) for j in scores]) for f in ("moving_nrmse_percent", "nrmse_percent")]
    shown = [number(float(m), 3) for m in (means if stands else means[1:])]
    rows.append(["mean of joints", "", *shown, *[""] * (len(columns) - 2 - len(shown))])
    return table(title, columns, rows, right=columns[1:])


def _error_row(j: JointScore, stands: bool) -> list[str]:
    """One joint of the table of errors; with figures of standstill where some joint `stands`."""
    percents = [j.moving.get("nrmse_percent"), j.nrmse_percent] if stands else [j.nrmse_percent]
    shown = ["" if x is None else number(x, 3) for x in percents]
    out = [j.joint, number(j.rmse), *shown, number(j.r2, 5), number(j.relative_error_percent, 3)]
    if not stands:
        return out
    standing = j.standing.get("nrmse_percent")
    return [*out, "" if standing is None else number(standing, 3), number(100.0 * j.standing.get("share", 0.0), 3)]


def print_identification(
    found: Identification, console: Console, folder: str = "", missing: Mapping[str, str] | None = None
) -> None:
    """Print scores and verdict of what was `found`, and where to look.

    Args:
        found: the identification.
        console: where to.
        folder: the run folder; "" if there is none.
        missing: files that cannot be written, with the reason.
    """
    kind = "physically possible" if found.possible else "not physically possible"
    say(
        console,
        bold(found.robot.name),
        f": {found.base.rank} base parameters, condition number "
        f"{number(found.condition_number, 3)}, {kind}; "
        f"low-pass {number(found.cutoff_hz, 3)} Hz, velocity {found.velocity}{_late(found)}\n",
    )
    if found.band is not None and (found.band.advice or not (found.band.stated or found.band.is_ceiling)):
        say(console, f"{found.band.sentence}\n")
    if found.between is not None and found.between.name != "auto":
        say(console, f"{found.between.text}\n")
    if found.delay_sentence:
        say(console, f"{found.delay_sentence}\n")
    if found.structure is not None:
        say(console, f"{found.structure.sentence}\n")
    error = found.torque_error
    if len(error.logs) > 1:
        console.print(_error_table(f"{len(error.logs)} logs that judge, together", error.joints))
    for scores, title in ((found.validation, "not used for the fit"), (found.identification, "used for the fit")):
        for s in scores:
            console.print(_error_table(f"{s.log} ({title}, scored at {number(s.cutoff_hz, 3)} Hz)", s.joints))
    for file in found.files:
        say(console, file.sentence)
    say(console, bold(found.verdict.sentence))
    for reason in found.verdict.reasons:
        say(console, f" · {reason}")
    for line in lines(found.assumptions, found.verdict.reasons):
        say(console, f" · {line}")
    if found.reduced is not None:
        say(console, f" · {significance_sentence(found)}")
        gone = ", ".join(s.name for s in found.reduced.details["removals"].steps)
        if gone:
            what = "the free fit" if found.settings.physical else "the delivered model"
            say(console, f"   Taken away from {what}, in this order: {gone}.")
        if found.settings.physical:
            say(console, "   The delivered model is physically possible and keeps all of them.")
    for name, check in found.checks:
        say(console, f" · Check of {name}: {check.verdict}")
        for advice in check.advice:
            say(console, f"   {advice}")
    for name, why in (missing or {}).items():
        say(console, f" · {name} cannot be written: {why}")
    if folder:
        say(console, f"\nLook at {folder}/report.html; the model is in {folder}.")
