"""The page *Drives*: a servo or another drive from its own command logs. It is not on the rail and needs no robot."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.ground.files import write_whole
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import Html, join, text
from steelyard.signals.table import READERS
from steelyard.studio.drive_facts import DRIVES, drive_facts, drive_files
from steelyard.studio.drive_page import DRIVE_NUMBERS, drive_form, drive_html, files_table
from steelyard.studio.example import EXAMPLE_RUNS, write_example_runs
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import button, command_line, drop_zone, job_html
from steelyard.studio.run_entries import run_entries
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.uploads import accept_folder
from steelyard.studio.use_commands import number_of, path_argument

_ABOUT = (
    "Servos and quasi-direct drives log goals and positions, but no torque. This page identifies the motor, its "
    "friction and its delays from such logs, with error bars, and writes files for simulators. Drop the logs, and if "
    "there are several loads or gains, a table with one row per run (log, mass, length, kp, vin)."
)
_SETTINGS_FILE = "drives.json"
_FIELDS = ("runs", "holdout", "kind", "joint", "position", "name", *(name for name, *_ in DRIVE_NUMBERS))
_NAME = re.compile(r"\w[\w .+-]{0,59}")


class DrivesStage(Stage):
    """Identifies a drive from command logs."""

    name = "drives"
    title = "Drives"
    scripts = ("lazy.js", "command_preview.js")

    async def status(self, context: StageContext) -> StageStatus:
        return StageStatus("done", "")

    async def body(self, context: StageContext, query: FormData) -> Html:
        folder = context.folder
        files, suffixes = drive_files(folder), sorted({s for kind in READERS.values() for s in kind.suffixes})
        zone = drop_zone(
            DRIVES, "drives/add", "Command logs of a drive, and a table with a row per run",
            ",".join([*suffixes, ".json"]),
            "BAM's JSON files, SAGE, LeRobot data set",
        )  # fmt: skip
        pieces: list[str] = [Html(f'<h1>Drives</h1><p class="hint">{_ABOUT}</p>'), zone]
        if files:
            pieces += [files_table(files), Html('<div id="drive-form" data-lazy="/data/drives/form" aria-busy="true">'
                                                '<p class="hint">Reading the logs …</p></div>')]  # fmt: skip
        else:
            pieces.append(_example())
        job = _last_job(context)
        if job is not None and job.state != "done":
            pieces.append(job_html(job))
        runs = [run for run in run_entries(folder) if run.kind == "actuator"]
        return join(*pieces, *(drive_html(run) for run in runs[:1]))

    def actions(self) -> Mapping[str, Action]:
        return {"add": _add, "remove": _remove, "start": _start, "example": _use_example}

    async def data(self, context: StageContext, what: str, query: FormData) -> str:
        """Return the `form` with the runs of the logs, or the command of the form (`words`)."""
        if what == "form":
            return await _form(context)
        if what == "words":
            try:
                words = actuator_words(context.folder, query)
            except StudioError as error:  # a hint, since the form was not sent yet
                return Html(f'<p class="hint">{text(str(error))}</p>')
            return command_line(shlex.join(["steelyard", *words, "-o", _new(context)]))
        raise StudioError("There is nothing of this name.")


STUDIO_STAGES.register("drives")(DrivesStage())


def _example() -> Html:
    return Html(
        '<div class="card example"><h2>No logs at hand?</h2><p>Four runs of a simulated servo that moves a pendulum, '
        "with two gains and two masses, friction and a delay.</p>"
        f"{button('drives/example', 'Try the example', 'main')}</div>"
    )


def _last_job(context: StageContext) -> StudioJob | None:
    return next(context.jobs.of_stage("drives"), None)


def _new(context: StageContext) -> str:
    return context.folder.new_run("actuator", context.jobs.outputs())


async def _form(context: StageContext) -> Html:
    folder, fields = context.folder, _saved(context.folder)
    settings = {name: float(fields[name]) for name, *_ in DRIVE_NUMBERS if fields.get(name)}
    units = {"position": fields["position"]} if fields.get("position") else {}
    facts: dict[str, Any] = await context.helper.ask(
        drive_facts, str(folder.project_file), drive_files(folder), fields.get("runs", ""), settings, units,
        fields.get("joint", ""),
    )  # fmt: skip
    return drive_form(facts, fields, await context.helper.ask(_kinds))


def _kinds() -> dict[str, str]:
    from steelyard.actuators import DRIVE_KINDS

    return dict(DRIVE_KINDS)


# ------------------------------------------------------------ settings and command


def _saved(folder: StudioFolder) -> FormData:
    """Return the values that the form was last sent with."""
    with suppress(SteelyardError, OSError):
        saved = read_json(folder.state_path(_SETTINGS_FILE), StudioError, "delete it").value
        if isinstance(saved, dict):
            return FormData([(k, v) for k, v in saved.items() if k in _FIELDS and isinstance(v, str)])
    return FormData([])


def _save(folder: StudioFolder, fields: FormData) -> None:
    values = {name: fields[name].strip() for name in _FIELDS if fields.get(name)}
    for name, _, label, _unit in DRIVE_NUMBERS:
        number_of(values.get(name, ""), label)
    write_whole(folder.state_path(_SETTINGS_FILE), json.dumps(values))


def actuator_words(folder: StudioFolder, fields: FormData) -> list[str]:
    """Return the words of the command for the form.

    Args:
        folder: The studio's folder.
        fields: Fields of the form.
    """
    files, runs = drive_files(folder), fields.get("runs", "")
    if runs and runs not in files:
        raise StudioError(f"'{runs[:120]}' is not a file of this page; reload the page.")
    logs = [path_argument(name) for name in files if name != runs]
    if not logs:
        raise StudioError("The command logs are missing; drop them first.")
    words = ["actuator", *logs, *(["--runs", path_argument(runs)] if runs else [])]
    for option in ("holdout", "kind"):
        words += [f"--{option}", fields[option]] if fields.get(option) else []
    for name, option, label, _unit in DRIVE_NUMBERS:
        words += [option, fields[name].strip()] if number_of(fields.get(name, ""), label) is not None else []
    if joint := fields.get("joint"):
        words += ["--robot", path_argument(folder.project().robot), "--joint", joint]
    if unit := fields.get("position"):
        words += ["--units", f"position={unit}"]
    name = fields.get("name", "").strip()
    if name and not _NAME.fullmatch(name):
        raise StudioError(f"Name of the drive: '{name[:40]}' may only have letters, digits, spaces and . + - _.")
    words += ["--name", name] if name not in ("", "drive") else []
    return [*words, "--simulators"] if fields.get("simulators") else words


# ------------------------------------------------------------ actions


async def _add(context: StageContext, fields: FormData) -> None:
    """Keep uploaded files; their content is read with the form, because a log may need its table of runs."""
    folder = context.folder
    for name in fields.all("file"):
        if folder.path_inside(name).parent != folder.root / DRIVES or not folder.path_inside(name).is_file():
            raise StudioError(f"{name} is not a new file in {DRIVES}; drop it again.")
        if name not in drive_files(folder):
            folder.path_inside(name).unlink()
            raise StudioError(f"{name} is no command log; drop a table (CSV, Parquet, …) or BAM's JSON.")
    for sent in fields.all("folder"):
        accept_folder(folder, sent, DRIVES)


async def _use_example(context: StageContext, fields: FormData) -> None:
    """Write the command logs of the example."""
    folder = context.folder
    if drive_files(folder):
        raise StudioError("This page has logs already; the example needs an empty list.")
    paths = [folder.relative(folder.free_path(DRIVES, name)) for name in EXAMPLE_RUNS]
    await context.helper.ask(write_example_runs, *paths)


async def _remove(context: StageContext, fields: FormData) -> None:
    if fields["file"] not in drive_files(context.folder):
        raise StudioError(f"'{fields['file'][:120]}' is not a file of this page; reload the page.")
    context.folder.move_to_trash(context.folder.root / fields["file"])


async def _start(context: StageContext, fields: FormData) -> None:
    """Save the form, and start the identification unless the logs are only to be read again."""
    _save(context.folder, fields)
    if fields.get("read"):
        return
    words, output = actuator_words(context.folder, fields), _new(context)
    context.jobs.add("drives", "Identify the drive", [*words, "-o", output], output)
