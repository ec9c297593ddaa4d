"""HTML of the page *Drives*: the runs of the logs, the form, and the last identified drive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from steelyard.ground.outcome import REPORT
from steelyard.report.elements import Html, TableCell, TableColumn, callout, join, table_html, text, whisker
from steelyard.studio.library_pages import files_html, headline_html, library_link, when_words
from steelyard.studio.page import attribute, button, choice, entry, form, trouble
from steelyard.studio.run_entries import RunEntry
from steelyard.studio.stage import FormData
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.use_pages import command_of_form

_MRAD = 1e3
# Fields with a number: name in the form, option of the command, label, unit, factor to the option's unit.
DRIVE_NUMBERS = (
    ("mass", "--mass", "Mass at the end of the lever", "kg"),
    ("length", "--length", "Length of the lever", "m"),
    ("arm_mass", "--arm-mass", "Mass of the lever", "kg"),
    ("kp", "--kp", "Position gain kp", ""),
    ("kd", "--kd", "Velocity gain kd", ""),
    ("volts", "--volts", "Supply voltage", "V"),
)  # fmt: skip
_FORMAT_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StudioError)


def files_table(files: list[str]) -> Html:
    """Render the list of the `files` with buttons that remove them."""
    rows = [
        [PurePosixPath(name).name, button("drives/remove", "Remove", "danger", f"Move {name} to the trash?", file=name)]
        for name in files
    ]
    return table_html(["file", Html('<span class="unseen">remove</span>')], rows, "Files")


def drive_form(facts: Mapping[str, Any], fields: FormData, kinds: Mapping[str, str]) -> Html:
    """Render the runs of the logs and the form of an identification.

    Args:
        facts: From `drive_facts`.
        fields: Values that the form was last sent with.
        kinds: Kinds of drives, with their descriptions.
    """
    pieces: list[str] = []
    if facts["error"]:
        pieces.append(trouble(facts["error"]))
    elif facts["runs"]:
        pieces.append(_runs(facts["runs"]))
    tables = [("", "none"), *((name, PurePosixPath(name).name) for name in facts["tables"])]
    load = join(
        choice("runs", "Table with a row per run", tables, facts["table"]) if facts["tables"] else "",
        *(entry(name, label, fields.get(name, ""), unit, inputmode="decimal", placeholder="as logged")
          for name, _, label, unit in DRIVE_NUMBERS),
        choice("joint", "Instead of a lever: joint of the project's robot",
               [("", "none"), *((j, j) for j in facts["joints"])], fields.get("joint", "")) if facts["joints"] else "",
        choice("position", "Unit of positions", [("", "as in the logs"), ("deg", "degrees"), ("rad", "radians")],
               fields.get("position", "")),
    )  # fmt: skip
    holdouts = [("", "none: every run is fitted"), *((name, name) for name in facts["holdouts"])]
    known = fields.get("holdout", "")
    drive = join(
        entry("name", "Name of the drive", fields.get("name", "drive"), maxlength="60"),
        choice("holdout", "Runs that only judge", holdouts, known if known in facts["holdouts"] else ""),
        choice("kind", "Kind of drive", [("", "by the logs"), *((k, f"{k}: {about}") for k, about in kinds.items())],
               fields.get("kind", "")),
        Html('<label class="tick"><input type="checkbox" name="simulators" value="yes" checked><span>Files for MuJoCo, '
             "BAM, Isaac Lab, mjlab, USD and URDF</span></label>"),
    )  # fmt: skip
    inside = (
        f'<fieldset id="drive-load"><legend>Load and gains of all runs</legend>{load}</fieldset>'
        f"<fieldset><legend>Identification</legend>{drive}</fieldset>"
        f'<button class="main">Identify the drive</button> <button name="read" value="yes">Read the logs again</button>'
        f"{command_of_form('drives')}"
    )
    return join(*pieces, form("drives/start", inside))


def _runs(runs: list[dict[str, Any]]) -> Html:
    rows: list[list[TableCell]] = [
        [run["name"], run["motion"], run["seconds"], run["rate"], run["kp"], run["mass"], run["length"]] for run in runs
    ]
    columns: list[TableColumn | str] = [
        "run", "motion", TableColumn("time", "s", 3), TableColumn("rate", "Hz", 4), TableColumn("kp", digits=4),
        TableColumn("mass", "kg", 3), TableColumn("lever", "m", 3),
    ]  # fmt: skip
    return table_html(columns, rows, f"{len(rows)} runs", "Not known.", tall=len(rows) > 12)


def drive_html(run: RunEntry) -> Html:
    """Render the drive of a `run`: verdict, card with measured and predicted positions, parameters, files."""
    pieces: list[str] = [
        Html(f"<h2>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h2>"),
        headline_html(run.summary.headline),
    ]
    if run.has_report:
        address = attribute(quote(f"/file/{run.name}/{REPORT}"))
        pieces.append(
            Html(
                f'<iframe class="report pictures" sandbox="allow-scripts allow-popups allow-downloads" '
                f'title="Actuator card of {attribute(run.name)}" src="{address}#measured-and-predicted-positions">'
                f'</iframe><p><a href="{address}" target="_blank" rel="noopener">Card in a new tab</a></p>'
            )
        )
    try:
        pieces.append(_parameters(run.result()))
    except _FORMAT_ERRORS:
        pieces.append(callout("warning", "The result.json of this run is from another version; identify again."))
    return join(*pieces, files_html(run, "Files: drive, card, simulators"))


def _parameters(result: Mapping[str, Any]) -> Html:
    rows: list[list[TableCell]] = []
    for row in result["parameters"]:
        value, low, high = (float(row[key]) for key in ("value", "low", "high"))
        known = bool(row["estimated"])
        mark = whisker(value, 0.5 * (high - low)) if known else Html("")
        rows.append([str(row["name"]), str(row["unit"]), mark, value, low if known else None, high if known else None,
                     str(row["about"])])  # fmt: skip
    columns: list[TableColumn | str] = [
        "parameter", "unit", "interval", TableColumn("value", digits=5), TableColumn("from", digits=3),
        TableColumn("to", digits=3), "meaning",
    ]  # fmt: skip
    inseparable = [
        callout("note", f"{text(str(i['reason']))} {text(str(i['experiment']))}", ", ".join(map(str, i["parameters"])))
        for i in result["inseparable"]
    ]
    table = table_html(columns, rows, "Parameters with 95 % intervals", "Given, not estimated.")
    return join(table, *inseparable)
