"""The stage *Data*: the logs, their roles, the mapping of their columns, and plots."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode

from steelyard.errors import SteelyardError
from steelyard.project import ROLES
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.signals.table import READERS
from steelyard.studio.log_folders import is_log_folder
from steelyard.studio.log_plots import draw_long, drawing_job, plot_data, plot_source
from steelyard.studio.mapping_editor import (
    check_readable,
    column_meanings,
    edited_mapping,
    facts,
    merged_mapping,
    proposal,
    scene,
)  # fmt: skip
from steelyard.studio.mapping_page import (
    column_rows,
    editor_html,
    proposal_answers,
    proposal_html,
    remove_mapping_html,
    write_mapping,
)
from steelyard.studio.page import attribute, button, choice, command_line, drop_zone, form, trouble
from steelyard.studio.roles import (
    LOGS,
    ListedLog,
    first_needed,
    forget_pyramids,
    listed_logs,
    log_named,
    pyramid_file,
    role_of_name,
    set_role,
)
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.uploads import accept_folder

_ROLE_TEXTS = {
    "": "not used",
    "identify": "identify: fit of the model",
    "validate": "validate: hold-out log",
    "friction": "friction: constant speeds",
    "payload": "payload: with payload",
    "bare": "bare: same motion without payload",
    "healthy": "healthy: reference for later logs",
}
_INTRODUCTION = """<div class="callout note" role="note"><span class="sign" aria-hidden="true">i</span><div>
<strong class="word">Contents of a log.</strong> Time, position, and torque or motor current of every joint, one row per
sample (100 Hz or more); velocities help. Record half a minute to a few minutes in which every joint accelerates, brakes
and reverses; the stage Motion designs such a motion. A second log with another motion validates the model.
</div></div>"""


class DataStage(Stage):
    """Logs, roles and mapping."""

    name = "data"
    title = "Data"
    scripts = ("lazy.js", "tiles.js", "strips.js", "plot_parts.js", "plot.js", "data.js")

    async def status(self, context: StageContext) -> StageStatus:
        try:
            logs = [log for log in listed_logs(context.folder).values() if log.roles]
        except SteelyardError:
            return StageStatus("bad", "the project file has an error")
        if not logs:
            return StageStatus("empty", "drop a log")
        if any(log.size < 0 for log in logs):
            return StageStatus("bad", "a log is missing")
        if not any("identify" in log.roles for log in logs):
            return StageStatus("warning", "no log for identify")
        mapped = ", mapped" if context.folder.project().mapping else ", no mapping"
        return StageStatus("done", f"{len(logs)} log{'s' if len(logs) > 1 else ''}{mapped}")

    async def body(self, context: StageContext, query: FormData) -> Html:
        logs = listed_logs(context.folder)
        suffixes = sorted({ending for kind in READERS.values() for ending in kind.suffixes})
        drop = drop_zone(
            LOGS, "data/add", "Logs of the robot's motion", ",".join([*suffixes, ".gz", ".bz2", ".xz", ".zst"]),
            "rosbag2, LeRobot data set, one file per signal",
        )  # fmt: skip
        formats = Html(f'<p class="hint">{text(", ".join(suffixes))}; any size.</p>')
        head = Html("<h1>Data</h1>")
        if not logs:
            example = 'No log at hand? The stage <a href="/robot">Robot</a> of an empty folder offers an example.'
            return join(head, Html(_INTRODUCTION), drop, formats, Html(f'<p class="hint">{example}</p>'))
        selected = logs.get(query.get("log", ""), next(iter(logs.values())))
        rows = [_row(log, log is selected) for log in logs.values()]
        table = table_html(
            ["log", "role", "content", Html('<span class="unseen">remove</span>')],
            rows,
            "Logs of this project",
        )
        return join(head, table, drop, formats, *_log_html(context, selected, bool(query.get("propose", ""))))

    def actions(self) -> Mapping[str, Action]:
        return {
            "add": _add,
            "role": _role,
            "use": _use,
            "edit": _edit,
            "common": _common,
            "unmap": _unmap,
            "remove": _remove,
            "draw": draw_long,
        }

    async def data(self, context: StageContext, what: str, query: FormData) -> Any:
        """Return data for scripts: `facts` and `meaning` of a log (HTML), its `plot`, or the robot's `scene`."""
        log = log_named(context.folder, query["log"])
        if what == "scene":
            return await context.helper.ask(scene, str(pyramid_file(context.folder, log)))
        if what == "facts":
            return _facts_html(await context.helper.ask(facts, log.text))
        if what == "meaning":
            return await _mapping_html(context, log, bool(query.get("propose", "")))
        if what == "plot":
            return await plot_data(context, log, query)
        raise StudioError("There is nothing at this address.")


# ---------------------------------------------------------------- HTML


def _row(log: ListedLog, is_current: bool) -> list[str]:
    roles = [(role, _ROLE_TEXTS[role]) for role in ("", *ROLES)]
    hidden = f'<input type="hidden" name="log" value="{attribute(log.text)}">'
    menu = choice("role", f"Role of {log.text}", roles, log.role, hide_label=True)
    mark = ' aria-current="true"' if is_current else ""
    link = f'<a href="/data?{urlencode({"log": log.text})}"{mark}>{text(log.text)}</a>'
    others = f' <span class="hint">and {text(", ".join(log.roles[1:]))}</span>' if log.roles[1:] else ""
    ask = f"Remove {log.text} from the project? The file goes to the trash folder, .steelyard/trash."
    missing = callout("bad", "This file does not exist any more; drop it again, or remove it.")
    facts_html = _lazy("facts", "Reading …", log=log.text)
    role = Html(form("data/role", hidden + menu, live=True, kind="inline") + others)
    content = join(_bytes(log.size), facts_html) if log.size >= 0 else missing
    return [Html(link), role, content, button("data/remove", "Remove", "danger", ask, log=log.text)]


def _log_html(context: StageContext, log: ListedLog, propose: bool) -> list[str]:
    """Render the selected log: its mapping, its plot with the robot, and the command."""
    project = context.folder.project()
    title = Html(f"<h2>{text(log.text)}</h2>")
    if log.size < 0:
        return [title, trouble(f"{log.text}: this file does not exist; drop it again, or remove it.")]
    columns = _lazy("meaning", "Reading the columns …", log=log.text, propose="1" if propose else "")
    robot = [project.robot] if project.robot else []
    command = command_line(shlex.join(["steelyard", "map", log.text, *robot, "-o", project.mapping or "columns.toml"]))
    if not project.robot:
        hint = "Choose the robot first: it is needed for joint names, units and plots."
        return [title, callout("note", hint), columns, command]
    source = plot_source(context, log)
    drawn = Html(
        f'<div class="plot-and-robot"><div data-plot="{attribute(source)}" data-log="{attribute(log.text)}" '
        f'data-title="Recorded signals"></div><figure class="follower" data-follows="{attribute(log.text)}">'
        '<div class="space"><canvas tabindex="0" role="img" aria-label="The robot in the posture at the cursor of the '
        'plot; arrow keys rotate the view"></canvas></div><figcaption>The robot follows the cursor in the plot.'
        '</figcaption></figure></div><div id="values"></div>'
    )  # fmt: skip
    if not project.mapping:
        hint = Html('<p class="hint">Drawn without a mapping, as the commands read the log now.</p>')
        return [title, columns, command, hint, drawn, _redraw_button(context, log)]
    return [title, drawn, _redraw_button(context, log), Html("<h3>Mapping of the columns</h3>"), columns, command]


def _redraw_button(context: StageContext, log: ListedLog) -> Html:
    """Render a button if the plot of a long log failed."""
    job = drawing_job(context, log)
    if job is None or job.live or job.state == "done":
        return Html("")
    return button("data/draw", "Draw it again", log=log.text)


async def _mapping_html(context: StageContext, log: ListedLog, propose: bool) -> Html:
    mapping = context.folder.project().mapping
    editor = await context.helper.ask(column_meanings, log.text)
    scope = "" if len(listed_logs(context.folder)) < 2 else "log" if editor["own"] or editor["error"] else "all"
    pieces: list[str] = []
    if mapping and not propose:
        link = attribute(f"/data?{urlencode({'log': log.text, 'propose': '1'})}")
        part = f", the part for {log.text} only" if editor["own"] else ""
        again = "Propose a mapping for this log only" if editor["error"] and scope else "Propose a new mapping"
        pieces.append(Html(f'<p>From <strong>{text(mapping)}</strong>{text(part)}. <a href="{link}">{again}</a></p>'))
    else:
        try:
            pieces.append(proposal_html(log.text, await context.helper.ask(proposal, log.text, {}, {}), scope))
        except StudioError as error:
            pieces.append(callout("warning", str(error)))
    form_html = editor_html(log.text, editor, scope)
    if mapping:
        pieces += [form_html, remove_mapping_html(mapping)]
        if editor["own"]:
            pieces.append(button("data/common", "Use the mapping of all logs for this one too", log=log.text))
    else:
        pieces.append(Html(f'<details id="by-column"><summary>Edit column by column</summary>{form_html}</details>'))
    return join(*pieces)


def _facts_html(log: Mapping[str, Any]) -> Html:
    if log["error"]:
        return callout("bad", str(log["error"]))
    about = "" if log["exact"] else "about "
    words = [f"{about}{log['rows']:,} samples".replace(",", " "), f"{log['columns']} columns"]
    if "rate" in log:
        words.insert(1, f"{log['rate']:.4g} Hz")
        kinds = {"torque": "torques", "current": "currents, no torque constants"}
        words.append(kinds.get(log["torque"], "no torques"))
    findings = [
        Html(f'<p class="finding {"warning" if kind == "warning" else "bad"}">{text(message)}</p>')
        for kind, message in log.get("findings", [])[:3]
    ]
    return join(" · ".join(words), *findings)


def _lazy(what: str, words: str, **query: str) -> Html:
    """Render `words` until the page's script has loaded the content."""
    address = attribute(f"/data/data/{what}?{urlencode(query)}")
    return Html(f'<div class="{what}" data-lazy="{address}" aria-busy="true">{text(words)}</div>')


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{max(size, 0)} B"


# ---------------------------------------------------------------- actions


def _query_of(log: str) -> FormData:
    return FormData([("log", log)])


async def _body(context: StageContext, log: str, *above: str) -> Html:
    return join(*above, await STUDIO_STAGES["data"].body(context, _query_of(log)))


async def _add(context: StageContext, fields: FormData) -> Html:
    """Add uploaded logs to the project; an unreadable file is deleted and its error shown."""
    folder, errors, first = context.folder, list[str](), ""
    names = fields.all("file")
    for name in names:
        path, listed = folder.path_inside(name), listed_logs(folder).get(name)
        if path.parent != folder.root / LOGS or not path.is_file() or (listed is not None and listed.roles):
            raise StudioError(f"{name} is not a new file in {LOGS}; drop it again.")
    names += [folder.relative(accept_folder(folder, sent, LOGS)) for sent in fields.all("folder")]
    has_validation = any(role_of_name(PurePosixPath(name).stem) == "validate" for name in names)
    for name in names:
        path = folder.path_inside(name)
        try:
            if path.is_dir() and not is_log_folder(path):
                kinds = (
                    "a rosbag2 (metadata.yaml), a LeRobot data set (meta/info.json) or one file per signal (q.csv, …)"
                )
                raise StudioError(f"{name}: this folder is no log; drop {kinds}, or the log file itself.")
            await context.helper.ask(check_readable, name)
        except StudioError as error:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            errors.append(str(error))
            continue
        first = first or name
        # A name with "ident" does not fix the role: one of several such logs validates, unless another name says so.
        role = role_of_name(path.stem)
        if role in ("", "identify"):
            role = "identify" if has_validation else first_needed(folder)
        set_role(folder, name, role)
        if folder.project().robot:
            errors += await _write_certain_mapping(context, name)
    return await _body(context, first, *(trouble(message) for message in errors))


async def _write_certain_mapping(context: StageContext, log: str) -> list[str]:
    """Write the proposed mapping of a log if it is certain; return errors.

    If there is a mapping that cannot read the log, the proposal becomes the mapping of this log only.
    """
    mapped = bool(context.folder.project().mapping)
    try:
        if mapped and not (await context.helper.ask(facts, log))["error"]:
            return []
        proposed = await context.helper.ask(proposal, log, {}, {})
    except StudioError as error:
        return [] if mapped else [str(error)]
    if proposed["certain"]:
        await _write(context, log, proposed["toml"], mapped)
    return []


async def _write(context: StageContext, log: str, toml: str, only: bool) -> None:
    write_mapping(context.folder, await context.helper.ask(merged_mapping, log, toml, only))


async def _role(context: StageContext, fields: FormData) -> Html:
    log = log_named(context.folder, fields["log"])
    set_role(context.folder, log.text, fields["role"])
    return await _body(context, log.text)


async def _use(context: StageContext, fields: FormData) -> Html:
    log = log_named(context.folder, fields["log"])
    proposed = await context.helper.ask(proposal, log.text, *proposal_answers(fields))
    await _write(context, log.text, proposed["toml"], fields.get("scope") == "log")
    return await _body(context, log.text)


async def _edit(context: StageContext, fields: FormData) -> Html:
    log = log_named(context.folder, fields["log"])
    _, numbers = proposal_answers(fields)
    toml = await context.helper.ask(edited_mapping, log.text, column_rows(fields), fields.get("rate", ""), numbers)
    await _write(context, log.text, toml, fields.get("scope") == "log")
    return await _body(context, log.text)


async def _common(context: StageContext, fields: FormData) -> Html:
    """Remove the part of the mapping that is for one log only."""
    log = log_named(context.folder, fields["log"])
    await _write(context, log.text, "", False)
    return await _body(context, log.text)


async def _unmap(context: StageContext, fields: FormData) -> None:
    context.folder.set_keys(mapping=None)


async def _remove(context: StageContext, fields: FormData) -> Html:
    log = log_named(context.folder, fields["log"])
    set_role(context.folder, log.text, "")
    forget_pyramids(context.folder, log)
    if log.size >= 0 and log.path.resolve().is_relative_to(context.folder.root):  # never move files elsewhere
        context.folder.move_to_trash(log.path)
    return await _body(context, "")


STUDIO_STAGES.register("data")(DataStage())
