"""The stage *Use*: exports, payloads, friction, tests on other logs, and live monitoring with the model."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence

from steelyard.errors import SteelyardError
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.jobs import StudioJob
from steelyard.studio.live import live_html, watch_command, watch_form, watch_html
from steelyard.studio.page import attribute, command_line, form
from steelyard.studio.roles import ListedLog, listed_logs
from steelyard.studio.run_entries import RunEntry, run_entries, run_entry
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus, status_kind
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.use_commands import USE_COMMANDS, model_argument, path_argument
from steelyard.studio.use_facts import export_formats, friction_figure_html, load_choices
from steelyard.studio.use_pages import (
    cards_html,
    command_of_form,
    export_form,
    export_html,
    friction_html,
    job_status,
    load_form,
    load_html,
    log_ticks,
    model_choice_html,
    section,
)

# Largest number of models to choose from, newest first.
_MOST_MODELS = 50
# End of the monitor's output that is searched for its last report [characters].
_MONITOR_TAIL = 40_000
_NO_LOGS = "Logs are missing; add some in the stage Data."


class UseStage(Stage):
    """Uses the model."""

    name = "use"
    title = "Use"
    scripts = ("lazy.js", "command_preview.js", "live.js")

    async def status(self, context: StageContext) -> StageStatus:
        try:
            name, run = await asyncio.to_thread(chosen_model, context.folder)
            written = bool(context.folder.project().model)
        except SteelyardError:
            return StageStatus("empty", "not yet")
        if any(job.live for job in context.jobs.of_stage("use")):
            return StageStatus("working", "running")
        if not name:
            return StageStatus("empty", "needs a model")
        if run is None:
            exists = (context.folder.root / name).exists()
            return StageStatus("done", name) if exists else StageStatus("bad", f"{name} is missing")
        if not written:
            return StageStatus("empty", f"ready: {run.name}")
        return StageStatus(status_kind(run.summary.headline.kind), run.name)

    async def body(self, context: StageContext, query: FormData) -> Html:
        return await asyncio.to_thread(_body, context)

    async def data(self, context: StageContext, what: str, query: FormData) -> str:
        """Return forms (`exports`, `payload`), the figure of `friction`, the `live` page, or a form's command."""
        folder = context.folder
        name, run = chosen_model(folder)
        if what == "exports":
            return export_form(await context.helper.ask(export_formats), name)
        if what == "payload":
            choices = await context.helper.ask(load_choices, str(folder.project_file))
            return load_form(list(listed_logs(folder).values()), choices, name if run is not None else "")
        if what == "friction":
            run_path = folder.get_run(query["run"])
            return str(await context.helper.ask(friction_figure_html, str(folder.project_file), str(run_path)))
        if what == "live":
            job = context.jobs.get(query["job"])
            return live_html(context.jobs.console_output(job.id)[-_MONITOR_TAIL:])
        if what == "words" and query.get("what") == "watch":
            try:
                return command_line(shlex.join(["steelyard", *watch_command(folder, query)]))
            except StudioError as error:
                return f'<p class="hint">{text(str(error))}</p>'
        if what == "words" and query.get("what") in USE_COMMANDS:
            try:
                words = USE_COMMANDS[query["what"]][1](folder, query)
            except StudioError as error:  # a hint, since the user has not submitted the form yet
                return f'<p class="hint">{text(str(error))}</p>'
            return command_line(shlex.join(["steelyard", *words, "-o", _new(context, words[0])]))
        raise StudioError("There is nothing of this name.")

    def actions(self) -> Mapping[str, Action]:
        return {"take": _take, "watch": _watch, **{kind: _start(kind) for kind in USE_COMMANDS}}


STUDIO_STAGES.register("use")(UseStage())


# ------------------------------------------------------------ model


def chosen_model(folder: StudioFolder) -> tuple[str, RunEntry | None]:
    """Choose the model of a `folder` and return its name and, if it is one, its run.

    It is the model of the project, else the newest good run, else the newest usable one, else the newest; "" if none.
    """
    name = folder.project().model.rstrip("/")
    if name:
        try:
            return name, run_entry(folder, folder.get_run(name))
        except StudioError:
            return name, None
    models = [run for run in run_entries(folder) if run.has_model][:_MOST_MODELS]
    for kind in ("good", "warning"):
        for run in models:
            if run.summary.headline.kind == kind:
                return run.name, run
    return (models[0].name, models[0]) if models else ("", None)


# ------------------------------------------------------------ HTML


def _body(context: StageContext) -> Html:
    folder = context.folder
    name, run = chosen_model(folder)
    head = Html("<h1>Use</h1>")
    runs = run_entries(folder)
    logs = list(listed_logs(folder).values())
    parts = [head]
    if name:
        written = bool(folder.project().model)
        if run is None and not (folder.root / name).exists():
            words = f"The project's model {name} does not exist; restore it from the trash, or choose another one."
            parts.append(callout("bad", words))
        parts += [
            model_choice_html(name, run, [one for one in runs if one.has_model][:_MOST_MODELS], written),
            _exports(context, name, runs),
        ]
    else:
        parts.append(
            callout("note", Html(
                'There is no model yet: <a href="/identify">identify</a> one. Then export it for simulators, '
                "controllers and C, and test it on other logs. Payloads and friction need only logs."
            ), "No model")
        )  # fmt: skip
    parts += [_loads(context, runs, logs), _frictions(context, runs, logs)]
    if name:
        parts.append(_others(context, name, runs, logs))
        parts.append(_live(context, name, logs))
    return join(*parts)


def _lazy(what: str, words: str) -> Html:
    return Html(f'<div data-lazy="/data/use/{what}" aria-busy="true"><p class="hint">{words}</p></div>')


def _job(context: StageContext, *kinds: str) -> StudioJob | None:
    return next((job for job in context.jobs.of_stage("use") if job.words[:1] and job.words[0] in kinds), None)


def _exports(context: StageContext, name: str, runs: Sequence[RunEntry]) -> Html:
    last = next((one for one in runs if one.kind == "export" and one.inputs[:1] == (path_argument(name),)), None)
    ask = _lazy("exports", "Loading the formats …")
    return section("exports", "Export", ask, job_status(_job(context, "export")), export_html(last))


def _loads(context: StageContext, runs: Sequence[RunEntry], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "payload"), None)
    about = Html(
        '<p class="hint">Record the same motion with and without the payload, and add both logs in the stage '
        '<a href="/data">Data</a>. The result is the mass, centre of gravity and inertia with error bars.</p>'
    )
    ask = _lazy("payload", "Reading the robot …") if logs else _none("payload --with LOADED.csv --without BARE.csv")
    result = load_html(last) if last is not None else Html("")
    return section("payload", "Payload", about, ask, job_status(_job(context, "payload")), result)


def _frictions(context: StageContext, runs: Sequence[RunEntry], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "friction"), None)
    boxes = log_ticks(logs, ("friction", "identify"), "Logs")
    inside = f'{boxes}<button class="main">Identify friction</button>{command_of_form("friction")}'
    ask = form("use/friction", inside) if logs else _none("friction ROBOT LOG.csv")
    result = friction_html(last) if last is not None else Html("")
    return section("friction", "Friction", ask, job_status(_job(context, "friction")), result)


def _others(context: StageContext, name: str, runs: Sequence[RunEntry], logs: Sequence[ListedLog]) -> Html:
    ask = form(
        "use/judge",
        f'{log_ticks(logs, ("validate",), "Logs")}<input type="hidden" name="model" value="{attribute(name)}">'
        '<div class="row"><button class="main" name="how" value="validate">Validate in simulation</button>'
        f'<button name="how" value="predict">Predict torques</button></div>{command_of_form("judge")}',
    )
    done = [one for one in runs if one.kind in ("validate", "predict") and one.inputs[:1] == (path_argument(name),)]
    last = job_status(_job(context, "validate", "predict"))
    return section("others", "Other logs", ask, last, cards_html(done[:4])) if logs else Html("")


def _live(context: StageContext, name: str, logs: Sequence[ListedLog]) -> Html:
    about = Html(
        '<p class="hint">The live monitor reports contacts, the payload and whether the model is still valid. It reads '
        "samples from a live source, or replays a log.</p>"
    )
    return section("live", "Live monitor", about, watch_form(logs, name), watch_html(_job(context, "watch")))


def _none(command: str) -> Html:
    return join(callout("note", _NO_LOGS, "No logs"), command_line(f"steelyard {command}"))


def _new(context: StageContext, name: str) -> str:
    return context.folder.new_run(name, context.jobs.outputs())


# ------------------------------------------------------------ actions


async def _watch(context: StageContext, fields: FormData) -> None:
    if (job := _job(context, "watch")) is not None and job.live:
        raise StudioError("A monitor is already running; cancel it first.")
    context.jobs.add("use", "Monitor the robot", watch_command(context.folder, fields))


async def _take(context: StageContext, fields: FormData) -> None:
    _set_model(context.folder, fields["model"])


def _set_model(folder: StudioFolder, name: str) -> None:
    """Make the model that a browser names the model of the project."""
    model_argument(folder, name)
    if name != folder.project().model:
        folder.set_keys(model=folder.relative(folder.get_run(name)))


def _start(kind: str) -> Action:
    """Return the action that puts the command of a form into the queue."""

    async def start(context: StageContext, fields: FormData) -> None:
        title, compose = USE_COMMANDS[kind]
        words = compose(context.folder, fields)
        if fields.get("model"):
            _set_model(context.folder, fields["model"])
        output = _new(context, words[0])
        context.jobs.add("use", title, [*words, "-o", output], output)

    return start
