"""The stage *Use*: what the model is good for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.errors import SteelyardError
from steelyard.report.elements import Html, callout, join
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, form
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.roles import ListedLog, listed_logs, log_named
from steelyard.studio.shelf import ShelvedRun, shelved, shelved_runs
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing, StandingKind
from steelyard.studio.use_facts import export_formats, friction_seen, load_choices
from steelyard.studio.use_pages import (
    USUAL_FORMATS,
    cards_html,
    export_form,
    exported_html,
    friction_html,
    job_and_command,
    load_form,
    load_html,
    log_ticks,
    section,
    used_model,
)

_KINDS: dict[str, StandingKind] = {"good": "done", "warning": "warning", "bad": "bad", "note": "done"}
_NAME = re.compile(r"\w[\w-]{0,59}")
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# Descriptions whose meshes and names an export keeps.
_DESCRIPTIONS = (".urdf", ".xml")
# Among how many of the newest models one is chosen.
_MOST_MODELS = 50
_NO_LOGS = "There are no logs here; drop some in the stage Data."


class UseStage(Stage):
    """What the model is good for."""

    name = "use"
    title = "Use"
    scripts = ("later.js",)

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
        raise StudioError("There is nothing of this name.")

    def actions(self) -> Mapping[str, Action]:
        return {
            "take": _take, "export": _export, "payload": _payload, "friction": _friction, "validate": _validate,

        }  # fmt: skip


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


async def _take(desk: Desk, sent: Sent) -> None:
    _written(desk.place, sent["model"])


def _written(place: StudioFolder, name: str) -> str:
    """A model that a browser names, written to the project as the one that is used, and as commands name it."""
    project = place.project()
    if not name or name != project.model:
        run = shelved(place, place.run(name))
        if not run.has_model:
            raise StudioError(f"{name} is a run of {run.kind}, which finds no model; choose one of identify.")
        place.set(model=run.name)
        name = run.name
    return _path(name)


def _path(name: str) -> str:
    """A path that no command takes for an option."""
    return f"./{name}" if name.startswith("-") else name


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
    return join(*parts)


def _later(what: str, words: str) -> Html:
    return Html(f'<div data-later="/data/use/{what}" aria-busy="true"><p class="hint">{words}</p></div>')


def _job(desk: Desk, *kinds: str) -> StudioJob | None:
    return next((job for job in desk.jobs.of_stage("use") if job.words[:1] and job.words[0] in kinds), None)


def _exports(desk: Desk, name: str, runs: Sequence[ShelvedRun]) -> Html:
    last = next((one for one in runs if one.kind == "export" and one.inputs[:1] == (_path(name),)), None)
    words = ["export", _path(name), "--to", ",".join(USUAL_FORMATS), "-o", _new(desk, "export")]
    return section(
        "exports", "For other programs", _later("exports", "Looking which formats can be written …"),
        job_and_command(_job(desk, "export"), words), exported_html(last),
    )  # fmt: skip


def _loads(desk: Desk, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "payload"), None)
    teach = Html(
        '<p class="hint">Let the robot play the same motion with the load and without it, and drop both logs in the '
        'stage <a href="/data">Data</a>. Mass, centre and inertia of the load come with error bars.</p>'
    )
    carrying, bare = _of_role(logs, "payload", "LOADED.csv"), _of_role(logs, "bare", "BARE.csv")
    words = ["payload", "--with", carrying, "--without", bare, "-o", _new(desk, "payload")]
    asked = _later("payload", "Looking at the robot …") if logs else callout("note", _NO_LOGS, "No logs")
    shown = load_html(last) if last is not None else Html("")
    return section("payload", "What it carries", teach, asked, job_and_command(_job(desk, "payload"), words), shown)


def _frictions(desk: Desk, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    last = next((one for one in runs if one.kind == "friction"), None)
    ticked = log_ticks(logs, ("friction", "identify"), "Logs")
    asked = (
        form("use/friction", f'{ticked}<button class="main">Measure friction</button>')
        if logs
        else callout("note", _NO_LOGS, "No logs")
    )
    words = ["friction", "-o", _new(desk, "friction")]
    shown = friction_html(last) if last is not None else Html("")
    return section("friction", "Friction", asked, job_and_command(_job(desk, "friction"), words), shown)


def _others(desk: Desk, name: str, runs: Sequence[ShelvedRun], logs: Sequence[ListedLog]) -> Html:
    if not logs:
        return Html("")
    ticked = log_ticks(logs, ("validate",), "Logs")
    asked = form(
        "use/validate",
        f'{ticked}<input type="hidden" name="model" value="{attribute(name)}"><div class="row">'
        '<button class="main" name="how" value="validate">Judge it by how it moves</button>'
        '<button name="how" value="predict">Predict torques</button></div>',
    )
    words = ["validate", _path(name), "--log", _of_role(logs, "validate", "LOG.csv"), "-o", _new(desk, "validate")]
    done = [one for one in runs if one.kind in ("validate", "predict") and one.inputs[:1] == (_path(name),)]
    return section(
        "others",
        "On other logs",
        asked,
        job_and_command(_job(desk, "validate", "predict"), words),
        cards_html(done[:4]),
    )


def _of_role(logs: Sequence[ListedLog], role: str, example: str) -> str:
    return next((_path(log.text) for log in logs if role in log.roles), example)


def _new(desk: Desk, name: str) -> str:
    return desk.place.new_run(name, desk.jobs.outputs())


# ------------------------------------------------------------ what is done


def _add(desk: Desk, title: str, words: Sequence[str]) -> None:
    output = _new(desk, words[0])
    desk.jobs.add("use", title, [*words, "-o", output], output)


def _logs(place: StudioFolder, names: Sequence[str]) -> list[str]:
    if not names:
        raise StudioError("No log is chosen; tick at least one.")
    return [_path(log_named(place, name).text) for name in names]


async def _export(desk: Desk, sent: Sent) -> None:
    formats, name = sent.all("to"), sent.get("name", "").strip()
    if not formats or not all(_WORD.fullmatch(one) for one in formats):
        raise StudioError("No format is chosen; tick at least one.")
    if name and not _NAME.fullmatch(name):
        raise StudioError("Files and C functions can be named by letters, digits, _ and -, up to 60 of them.")
    words = ["export", _written(desk.place, sent["model"]), "--to", ",".join(formats)]
    words += ["--name", name] if name else []
    robot = desk.place.project().robot
    if Path(robot).suffix.lower() in _DESCRIPTIONS and (desk.place.root / robot).is_file():
        words += ["--description", _path(robot)]
    _add(desk, f"Export {sent['model']}", words)


async def _payload(desk: Desk, sent: Sent) -> None:
    place = desk.place
    chosen: dict[str, list[str]] = {"with": [], "without": []}
    for key, value in sent.items():
        if key.startswith("log:") and value in chosen:
            chosen[value].append(key[4:])
    if not chosen["with"]:
        raise StudioError("No log with the load is chosen; say which one carries it.")
    words = ["payload"]
    for log in _logs(place, chosen["with"]):
        words += ["--with", log]
    if sent.get("arm"):
        words += ["--arm", _written(place, sent["arm"])]
    elif not chosen["without"]:
        raise StudioError("No log without the load is chosen; say which one, or take the model as the bare arm.")
    for log in _logs(place, chosen["without"]) if chosen["without"] else ():
        words += ["--without", log]
    if sent.get("frame"):
        words += ["--frame", _option(sent["frame"])]
    targets = sent.all("for")
    if targets and all(_WORD.fullmatch(one) for one in targets):
        words += ["--for", ",".join(targets)]
    _add(desk, "Weigh the load", words)


async def _friction(desk: Desk, sent: Sent) -> None:
    robot = desk.place.project().robot
    if not robot:
        raise StudioError("There is no robot; choose one in the stage Robot.")
    _add(desk, "Measure friction", ["friction", _path(robot), *_logs(desk.place, sent.all("log"))])


async def _validate(desk: Desk, sent: Sent) -> None:
    logs = _logs(desk.place, sent.all("log"))
    model = _written(desk.place, sent["model"])
    if sent.get("how") == "predict":
        _add(desk, f"Predict by {model}", ["predict", model, *logs])
        return
    named = [word for log in logs for word in ("--log", log)]
    _add(desk, f"Judge {model}", ["validate", model, *named])


def _option(value: str) -> str:
    if value.startswith("-"):
        raise StudioError(f"'{value[:40]}' is no name that a command can be given.")
    return value
