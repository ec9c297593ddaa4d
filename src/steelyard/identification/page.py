"""An identification as a page, a list of sections, each from results to HTML; and in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from steelyard.assessment.score import JointScore, Score
from steelyard.check.page import checked
from steelyard.estimation.history_page import history_section
from steelyard.ground.numbers import Known, number
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
from steelyard.report.elements import Html, TableCell, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.terminal import bold, say, table


def identification_report(found: Identification, inputs: Sequence[Path] = ()) -> str:
    """The page of what was `found`, self-contained; `inputs` are the files that it was found from, for commands."""
    verdict = found.verdict
    history = found.free.parameter_history
    kind = {"good": "good", "usable": "warning", "poor": "bad"}[verdict.grade]
    sections: list[Section | None] = [
        scores_section(found),
        next_section(found, inputs),
        robot_section(found),
        torques_section(found),
        residuals_section(found),
        checked(found.checks, found.singular_values),
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


def _how(found: Identification) -> Section:
    s = found.settings
    rows: list[Sequence[TableCell]] = [
        ("scheme", s.scheme),
        ("estimator", s.estimator + (", physically possible" if s.physical else ", free")),
        ("prior", s.prior),
        ("cut-off of the fit", f"{number(found.cutoff_hz, 4)} Hz"),
        ("velocity", found.velocity),
        *([("structure", found.structure.sentence)] if found.structure is not None else []),
        ("result", found.estimate.result.value),
        *(("note", note) for note in found.estimate.notes),
    ]
    return Section("How it was done", table_html(["setting", "value"], rows))


def _apart(s: Score, j: JointScore) -> tuple[float | None, ...]:
    """If a joint of `s` stands: the error of `j` moving and standing, in percent of the std, and how long it stands."""
    if not s.stands:
        return ()
    share = 100.0 * j.standing.get("share", 0.0)
    return (j.moving.get("nrmse_percent"), j.standing.get("nrmse_percent"), share)


def print_identification(found: Identification, console: Console, folder: str = "") -> None:
    """Scores and verdict of what was `found`, to `console`, and where to look: the run's `folder`, if there is one."""
    kind = "physically possible" if found.possible else "not physically possible"
    say(
        console,
        bold(found.robot.name),
        f": {found.base.rank} base parameters, condition number "
        f"{number(found.condition_number, 3)}, {kind}; "
        f"low-pass {number(found.cutoff_hz, 3)} Hz, velocity {found.velocity}\n",
    )
    if found.structure is not None:
        say(console, f"{found.structure.sentence}\n")
    for scores, title in ((found.validation, "not used for the fit"), (found.identification, "used for the fit")):
        for s in scores:
            rows = [
                [
                    j.joint,
                    number(j.rmse),
                    number(j.nrmse_percent, 3),
                    number(j.r2, 5),
                    number(j.relative_error_percent, 3),
                ]
                for j in (joint.told for joint in s.joints)
            ]
            columns = ["joint", "RMSE", "NRMSE, % of std", "R²", "relative %"]
            if s.stands:
                columns += ["moving %", "standing %", "of the time %"]
                rows = [
                    [*row, *("" if x is None else number(x, 3) for x in _apart(s, j.told))]
                    for row, j in zip(rows, s.joints, strict=True)
                ]
            console.print(
                table(f"{s.log} ({title}, scored at {number(s.cutoff_hz, 3)} Hz)", columns, rows, right=columns[1:])
            )
    say(console, bold(found.verdict.sentence))
    for reason in found.verdict.reasons:
        say(console, f" · {reason}")
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
    if folder:
        say(console, f"\nLook at {folder}/report.html; the model is in {folder}.")
