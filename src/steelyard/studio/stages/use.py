"""The stage *Use*: what the model is good for."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence

from steelyard.errors import SteelyardError
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.jobs import StudioJob
from steelyard.studio.live import live_html, watch_form, watch_words, watched_html
from steelyard.studio.page import attribute, command_line, form
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.roles import ListedLog, listed_logs
from steelyard.studio.shelf import ShelvedRun, shelved, shelved_runs
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing, StandingKind
from steelyard.studio.use_facts import export_formats, friction_seen, load_choices
from steelyard.studio.use_pages import (
    cards_html,
    command_of_form,
    export_form,
    exported_html,
    friction_html,
    load_form,
    load_html,
    log_ticks,
    section,
    shown_job,
    used_model,
)
from steelyard.studio.use_words import USE_COMMANDS, as_path, model_word

_KINDS: dict[str, StandingKind] = {"good": "done", "warning": "warning", "bad": "bad", "note": "done"}
# Among how many of the newest models one is chosen.
_MOST_MODELS = 50
# Characters of what a watch has said in which its last report stands.
_TOLD = 40_000
_NO_LOGS = "There are no logs here; drop some in the stage Data."


class UseStage(Stage):
    """What the model is good for."""

    name = "use"
    title = "Use"
    scripts = ("later.js", "words.js", "live.js")

    async def standing(self, desk: Desk) -> Standing:
        try:
            name, run = await asyncio.to_thread(chosen_model, desk.place)
            written = bool(desk.place.project().model)
        except SteelyardError:
            return Standing("empty", "not yet")
        if any(job.live for job in desk.jobs.of_stage("use")):
            return Standing("working", "at work")
        if not name:
            return Standing("empty", "needs a model")
        if run is None:
            gone = not (desk.place.root / name).exists()
            return Standing("bad", f"{name} is gone") if gone else Standing("done", name)
        if not written:
            return Standing("empty", f"ready: {run.name}")
        return Standing(_KINDS[run.summary.glance.kind], run.name)

    async def body(self, desk: Desk, query: Sent) -> Html:
        return await asyncio.to_thread(_body, desk)

    async def data(self, desk: Desk, what: str, query: Sent) -> str:
        """What takes a moment: the forms for `exports` and `payload`, and the figure of `friction`."""
        place = desk.place
        name, run = chosen_model(place)
        if what == "exports":
            return export_form(await desk.aside.ask(export_formats), name)
        if what == "payload":
            choices = await desk.aside.ask(load_choices, str(place.project_file))
            return load_form(list(listed_logs(place).values()), choices, name if run is not None else "")
        if what == "friction":
            found = place.run(query["run"])
            return str(await desk.aside.ask(friction_seen, str(place.project_file), str(found)))
        if what == "live":
            job = desk.jobs.get(query["job"])
            return live_html(desk.jobs.said(job.id)[-_TOLD:])
        if what == "words" and query.get("what") == "watch":
            try:
                return command_line(shlex.join(["steelyard", *watch_words(place, query)]))
            except StudioError as error:
                return f'<p class="hint">{text(str(error))}</p>'
        if what == "words" and query.get("what") in USE_COMMANDS:
            try:
                words = USE_COMMANDS[query["what"]][1](place, query)
            except StudioError as error:  # nobody has sent it yet
                return f'<p class="hint">{text(str(error))}</p>'
            return command_line(shlex.join(["steelyard", *words, "-o", _new(desk, words[0])]))
        raise StudioError("There is nothing of this name.")

    def actions(self) -> Mapping[str, Action]:
        return {"take": _take, "watch": _watch, **{kind: _started(kind) for kind in USE_COMMANDS}}


STUDIO_STAGES.register("use")(UseStage())


# ------------------------------------------------------------ which model


def chosen_model(place: StudioFolder) -> tuple[str, ShelvedRun | None]:
    """The model of a `place`: its name, and its run where it is one. That of the project; else the newest good one of
    all that were identified, else the newest that is usable; "" where there is none."""
    name = place.project().model.rstrip("/")
    if name:
        try:
            return name, shelved(place, place.run(name))
        except StudioError:
            return name, None
    models = [run for run in shelved_runs(place) if run.has_model][:_MOST_MODELS]
    for kind in ("good", "warning"):
        for run in models:
            if run.summary.glance.kind == kind:
                return run.name, run
    return (models[0].name, models[0]) if models else ("", None)


# ------------------------------------------------------------ what is shown


def _body(desk: Desk) -> Html:
    place = desk.place
    name, run = chosen_model(place)
    head = Html("<h1>Use</h1>")
    runs = shelved_runs(place)
    logs = list(listed_logs(place).values())
    parts = [head]
    if name:
        written = bool(place.project().model)
        if run is None and not (place.root / name).exists():
            gone = f"The project's model {name} is not there any more; put it back from the trash, or choose another."
            parts.append(callout("bad", gone))
        parts += [
            used_model(name, run, [one for one in runs if one.has_model][:_MOST_MODELS], written),
            _exports(desk, name, runs),
        ]
    else:
        parts.append(
            callout("note", Html(
                'There is no model yet: <a href="/identify">identify</a> one. Here it is then judged, written for '
                "simulators, controllers and C, and tried on other logs. Loads and friction are found from logs alone."
            ), "No model")
        )  # fmt: skip
    parts += [_loads(desk, runs, logs), _frictions(desk, runs, logs)]
    if name:
        parts.append(_others(desk, name, runs, logs))
        parts.append(_live(desk, name, logs))
    return join(*parts)


def _later(what: str, words: str) -> Html:
    return Html(f'<div data-later="/data/use/{what}" aria-busy="true"><p class="hint">{words}</p></div>')


def _job(desk: Desk, *kinds: str) -> StudioJob | None:
    return next((job for job in desk.jobs.of_stage("use") if job.words[:1] and job.words[0] in kinds), None)


def _exports(desk: Desk, name: str, runs: Sequence[ShelvedRun]) -> Html:
    last = next((one for one in runs if one.kind == "export" and one.inputs[:1] == (as_path(name),)), None)
    asked = _later("exports", "Looking which formats can be written …")
    return section("exports", "For other programs", asked, shown_job(_job(desk, "export")), exported_html(last))


def _loads(desk: Desk, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "payload"), None)
    teach = Html(
        '<p class="hint">Let the robot play the same motion with the load and without it, and drop both logs in the '
        'stage <a href="/data">Data</a>. Mass, centre and inertia of the load come with error bars.</p>'
    )
    asked = (
        _later("payload", "Looking at the robot …") if logs else _none("payload --with LOADED.csv --without BARE.csv")
    )
    shown = load_html(last) if last is not None else Html("")
    return section("payload", "What it carries", teach, asked, shown_job(_job(desk, "payload")), shown)


def _frictions(desk: Desk, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "friction"), None)
    ticked = log_ticks(logs, ("friction", "identify"), "Logs")
    inside = f'{ticked}<button class="main">Measure friction</button>{command_of_form("friction")}'
    asked = form("use/friction", inside) if logs else _none("friction ROBOT LOG.csv")
    shown = friction_html(last) if last is not None else Html("")
    return section("friction", "Friction", asked, shown_job(_job(desk, "friction")), shown)


def _others(desk: Desk, name: str, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    asked = form(
        "use/judge",
        f'{log_ticks(logs, ("validate",), "Logs")}<input type="hidden" name="model" value="{attribute(name)}">'
        '<div class="row"><button class="main" name="how" value="validate">Judge it by how it moves</button>'
        f'<button name="how" value="predict">Predict torques</button></div>{command_of_form("judge")}',
    )
    done = [one for one in runs if one.kind in ("validate", "predict") and one.inputs[:1] == (as_path(name),)]
    last = shown_job(_job(desk, "validate", "predict"))
    return section("others", "On other logs", asked, last, cards_html(done[:4])) if logs else Html("")


def _live(desk: Desk, name: str, logs: Sequence[ListedLog]) -> Html:
    teach = Html(
        '<p class="hint">While the robot works its model tells what touches it, what it carries and whether it still '
        "holds. A source on this machine, or a log that is played again.</p>"
    )
    return section("live", "Watch it work", teach, watch_form(logs, name), watched_html(_job(desk, "watch")))


def _none(command: str) -> Html:
    return join(callout("note", _NO_LOGS, "No logs"), command_line(f"steelyard {command}"))


def _new(desk: Desk, name: str) -> str:
    return desk.place.new_run(name, desk.jobs.outputs())


# ------------------------------------------------------------ what is done


async def _watch(desk: Desk, sent: Sent) -> None:
    if (job := _job(desk, "watch")) is not None and job.live:
        raise StudioError("A watch is at work already; cancel it first.")
    desk.jobs.add("use", "Watch the robot", watch_words(desk.place, sent))


async def _take(desk: Desk, sent: Sent) -> None:
    _keep_model(desk.place, sent["model"])


def _keep_model(place: StudioFolder, name: str) -> None:
    """The model that a browser names is from now on that of the project."""
    model_word(place, name)
    if name != place.project().model:
        place.set(model=place.relative(place.run(name)))


def _started(kind: str) -> Action:
    """What puts the command of a form into the queue."""

    async def start(desk: Desk, sent: Sent) -> None:
        title, made = USE_COMMANDS[kind]
        words = made(desk.place, sent)
        if sent.get("model"):
            _keep_model(desk.place, sent["model"])
        output = _new(desk, words[0])
        desk.jobs.add("use", title, [*words, "-o", output], output)

    return start
