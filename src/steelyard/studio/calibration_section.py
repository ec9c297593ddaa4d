"""The section *Calibration* of the stage Robot: tables of held poses, the result, and use of the calibrated robot."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

from steelyard.ground.numbers import number
from steelyard.ground.outcome import REPORT
from steelyard.report.elements import Html, TableCell, callout, join, table_html, text
from steelyard.studio.library_pages import files_html, headline_html, library_link, when_words
from steelyard.studio.page import attribute, button, choice, drop_zone, entry, form, job_html, trouble
from steelyard.studio.pose_tables import POSES, pose_facts, pose_table_named, pose_tables
from steelyard.studio.robot_files import ROBOT_FOLDER
from steelyard.studio.run_entries import RunEntry, run_entries, run_entry
from steelyard.studio.stage import Action, FormData, StageContext
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.use_commands import number_of, path_argument
from steelyard.studio.use_pages import command_of_form

_STAGES = {"nominal": "description", "geometry": "corrected description", "full": "with all effects"}
# Factor and unit in which errors of a channel are shown.
_UNITS = {"position": (1e3, "mm"), "distance": (1e3, "mm"), "rotation": (180.0 / math.pi, "°")}
_POSES = {"fit": "fit", "holdout": "hold-out"}
# End of the name of a calibrated description, as `steelyard calibrate` writes it.
_CALIBRATED = "_calibrated"
_ABOUT = (
    "Optional. The real joints differ from the drawing by some tenths of a millimetre. A table of held poses that a "
    "tracker, a camera or a probe measured corrects the description: one row per pose, columns <code>q1_rad</code> …, "
    "<code>p1x_m</code>, <code>p1y_m</code>, <code>p1z_m</code>."
)
_FORMAT_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StudioError)


def calibration_html(context: StageContext) -> Html:
    """Render the section of the studio in `context`: tables of poses, form, last job and newest result."""
    folder = context.folder
    tables = pose_tables(folder)
    runs = [run for run in run_entries(folder) if run.kind == "calibrate" and _has_result(run)]
    job = next((job for job in context.jobs.of_stage("robot")), None)
    busy = job is not None and job.state != "done"
    zone = drop_zone(POSES, "robot/poses", "Table of held poses: CSV, Parquet and other log formats")
    source = f"/data/robot/poses?{urlencode({'table': tables[0]})}" if tables else ""
    pieces: list[str] = [Html(f'<p class="hint">{_ABOUT}</p>'), zone]
    if tables:
        pieces.append(
            Html(f'<div id="pose-form" data-lazy="{attribute(source)}" aria-busy="true"><p class="hint">Reading '
                 f"{text(tables[0])} …</p></div>")
        )  # fmt: skip
    if busy and job is not None:
        pieces.append(job_html(job))
    pieces.append(_in_use(folder))
    if runs:
        pieces.append(result_html(folder, runs[0]))
    is_open = " open" if tables or runs else ""
    return Html(
        f'<details id="calibration"{is_open}><summary>Calibration: the true places of the joints</summary>'
        f"{join(*pieces)}</details>"
    )


async def pose_form(context: StageContext, query: FormData) -> Html:
    """Render the facts of a table of poses and the form of its calibration."""
    folder = context.folder
    table, tables = pose_table_named(folder, query["table"]), pose_tables(folder)
    menu = Html("")
    if len(tables) > 1:
        options = [(name, PurePosixPath(name).name) for name in tables]
        menu = form("robot/table", choice("table", "Table of poses", options, table), "", "pose-form", live=True)
    remove = button("robot/forget", "Remove", "danger", f"Move {table} to the trash?", table=table)
    head = Html(f'<div class="row">{menu}<strong>{text(table)}</strong>{remove}</div>')
    try:
        facts = await context.helper.ask(pose_facts, str(folder.project_file), table)
    except StudioError as error:
        return join(head, trouble(str(error)))
    words = f"{facts['poses']} poses, measurement: {facts['kind']}."
    if facts["points"]:
        words += f" Points: {', '.join(facts['points'])}."
    notes = [callout("note", note) for note in facts["notes"]]
    return join(head, Html(f"<p>{text(words)}</p>"), *notes, _form(table, facts))


def _form(table: str, facts: Mapping[str, Any]) -> Html:
    rows = [entry("holdout", "Hold-out share", "0.3", inputmode="decimal")]
    if not facts["sigma"]:
        rows.append(entry("sigma", "Standard deviation of the sensor", "", "mm", inputmode="decimal",
                          placeholder="not known"))  # fmt: skip
    if facts["flags"]:
        options = [("", "all rows"), *((flag, f"rows in which {flag} is true") for flag in facts["flags"])]
        rows.append(choice("only", "Rows", options))
    if len(facts["points"]) > 1:
        rows.append(entry("points", "Points", "", placeholder=",".join(facts["points"])))
    if facts["torques"]:
        rows.append(
            Html('<label class="tick"><input type="checkbox" name="torques" value="yes" checked><span>Identify gravity '
                 "from the torques of this table too</span></label>")
        )  # fmt: skip
    inside = (
        f'<input type="hidden" name="table" value="{attribute(table)}"><div class="row">{"".join(rows)}</div>'
        f'<button class="main">Calibrate</button>{command_of_form("calibrate")}'
    )
    return form("robot/calibrate", inside)


def calibrate_words(folder: StudioFolder, fields: FormData) -> list[str]:
    """Return the words of the command for the form.

    Args:
        folder: The studio's folder.
        fields: Fields of the form.
    """
    robot = folder.project().robot
    if not robot:
        raise StudioError("The robot is missing; choose one first.")
    table = path_argument(pose_table_named(folder, fields["table"]))
    words = ["calibrate", path_argument(robot), table]
    share = number_of(fields.get("holdout", ""), "Hold-out share")
    if share is not None:
        if not 0.0 <= share < 0.9:
            raise StudioError(f"Hold-out share: {share:g} is not from 0 to 0.9.")
        words += ["--holdout", f"{share:g}"] if share else []
    sigma = number_of(fields.get("sigma", ""), "Standard deviation of the sensor")
    words += ["--sigma", f"{1e-3 * sigma:g}"] if sigma is not None else []
    for name in ("only", "points"):
        if value := fields.get(name, "").replace(" ", ""):
            words += [f"--{name}", value]
    if fields.get("torques"):
        # The mapping of the project is for logs of motions, not for this table.
        words += ["--torques", table, "--map", ""]
    return words


# ------------------------------------------------------------ result


def _has_result(run: RunEntry) -> bool:
    """Whether a run of `calibrate` is a calibration, not a design of poses."""
    return any(name.endswith(f"{_CALIBRATED}.urdf") for name, _ in run.files())


def result_html(folder: StudioFolder, run: RunEntry) -> Html:
    """Render a calibration: verdict, errors before and after, its report, and a button to use the robot.

    Args:
        folder: The studio's folder.
        run: Its run.
    """
    pieces: list[str] = [
        Html(f"<h3>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h3>"),
        headline_html(run.summary.headline),
    ]
    try:
        pieces.append(_errors(run.result()))
    except _FORMAT_ERRORS:
        pieces.append(callout("warning", "The result.json of this run is from another version; calibrate again."))
    use = button("robot/calibrated", "Use the calibrated robot", "main", run=run.name)
    address = attribute(quote(f"/file/{run.name}/{REPORT}"))
    report = f'<a href="{address}" target="_blank" rel="noopener">Report in a new tab</a>'
    pieces.append(Html(f'<div class="row">{use}{report if run.has_report else ""}</div>'))
    if run.has_report:
        pieces.append(
            Html(f'<details id="calibration-report" open><summary>Report: errors in space, parameters, poses</summary>'
                 f'<iframe class="report" loading="lazy" sandbox="allow-scripts allow-popups allow-downloads" '
                 f'src="{address}" title="Report of {attribute(run.name)}"></iframe></details>')
        )  # fmt: skip
    return join(*pieces, files_html(run))


def _errors(result: Mapping[str, Any]) -> Html:
    rows: list[list[TableCell]] = []
    for poses, by_stage in result["errors"].items():
        where = f"{_POSES.get(poses, poses)} ({int(result['poses'][poses])})"
        for stage, label in _STAGES.items():
            for channel, errors in by_stage.get(stage, {}).items():
                factor, unit = _UNITS.get(channel, (1.0, ""))
                shown = [f"{number(factor * float(errors[key]), 3)} {unit}" for key in ("mean", "p95", "largest")]
                rows.append([where, label, channel, *shown])
    columns = ["poses", "model", "reading", "mean", "95 %", "largest"]
    words = ", ".join(str(effect["name"]) for effect in result["effects"]) or "none: the described geometry stays"
    table = table_html(columns, rows, "Distance of predicted and measured readings")
    return join(table, Html(f"<p>Effects, chosen by left-out poses: {text(words)}.</p>"))


def _in_use(folder: StudioFolder) -> Html:
    """Say that the project uses a calibrated robot, with a button that goes back to its description."""
    project = folder.project()
    stem = PurePosixPath(project.robot).stem
    if _CALIBRATED not in stem:
        return Html("")
    words = "Identify, Motion and Use work with the calibrated robot; small angles are kept exactly (snap = 0)."
    before = _description_of(folder, project.robot)
    back = button("robot/described", "Back to the description") if before else ""
    return join(callout("good", words, "In use"), Html(back))


def _description_of(folder: StudioFolder, robot: str) -> str:
    """Return the description from which a calibrated `robot` was made; "" if no run of the folder states it."""
    stem = PurePosixPath(robot).stem
    for run in run_entries(folder):
        names = {PurePosixPath(name).stem for name, _ in run.files()} if run.kind == "calibrate" else set()
        if any(stem == name or stem.startswith(f"{name}-") for name in names if _CALIBRATED in name) and run.inputs:
            return run.inputs[0].removeprefix("./")
    return ""


# ------------------------------------------------------------ actions


async def _poses(context: StageContext, fields: FormData) -> None:
    """Keep uploaded tables that can be read as a table; a wrong one is removed with its error."""
    from steelyard.studio.mapping_editor import check_readable

    folder, errors = context.folder, list[str]()
    for name in fields.all("file"):
        path = folder.path_inside(name)
        if path.parent != folder.root / POSES or not path.is_file():
            raise StudioError(f"{name} is not a new file in {POSES}; drop it again.")
        try:
            await context.helper.ask(check_readable, name)
        except StudioError as error:
            path.unlink(missing_ok=True)
            errors.append(str(error))
    if errors:
        raise StudioError(" ".join(errors))


async def _table(context: StageContext, fields: FormData) -> Html:
    return await pose_form(context, fields)


async def _forget(context: StageContext, fields: FormData) -> None:
    context.folder.move_to_trash(context.folder.root / pose_table_named(context.folder, fields["table"]))


async def _calibrate(context: StageContext, fields: FormData) -> None:
    words = calibrate_words(context.folder, fields)
    output = context.folder.new_run("calibrate", context.jobs.outputs())
    context.jobs.add("robot", "Calibrate the robot", [*words, "-o", output], output)


async def _calibrated(context: StageContext, fields: FormData) -> None:
    """Copy the corrected description of a run beside the original and make it the project's robot."""
    folder = context.folder
    run = run_entry(folder, folder.get_run(fields["run"]))
    project = folder.project()
    suffixes = (".xml", ".urdf") if project.robot.lower().endswith(".xml") else (".urdf",)
    files = [name for suffix in suffixes for name, _ in run.files() if name.endswith(f"{_CALIBRATED}{suffix}")]
    if run.kind != "calibrate" or not files:
        raise StudioError(f"{run.name} has no calibrated robot; calibrate again.")
    # Beside the original, because the paths of meshes are relative.
    original = folder.root / (run.inputs[0].removeprefix("./") if run.inputs else project.robot)
    home = folder.relative(original.parent) if original.is_file() and original.parent != folder.root else ""
    if not original.is_file():
        home = ROBOT_FOLDER
    target = folder.free_path(home, files[0])
    shutil.copyfile(run.path / files[0], target)
    folder.set_keys(robot=folder.relative(target), snap=0.0)


async def _described(context: StageContext, fields: FormData) -> None:
    before = _description_of(context.folder, context.folder.project().robot)
    if not before:
        raise StudioError("The description of this robot is not known here; choose its file above.")
    context.folder.set_keys(robot=before, snap=None)


CALIBRATION_ACTIONS: Mapping[str, Action] = {
    "poses": _poses, "table": _table, "forget": _forget, "calibrate": _calibrate, "calibrated": _calibrated,
    "described": _described,
}  # fmt: skip
