"""The stage *Identify*: settings, progress and results of identifications, and runs side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from steelyard.errors import SteelyardError
from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.identify_facts import comparison_html, identification_html, identify_facts
from steelyard.studio.identify_page import again_html, runs_html, search_html, settings_html
from steelyard.studio.identify_settings import identify_command, save_identify_settings, saved_settings
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, command_line, job_html
from steelyard.studio.provenance import is_current, log_texts, provenance_of, runs_of, save_provenance
from steelyard.studio.run_entries import RunEntry, run_entry
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus, status_kind
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.summaries import moving_error

_INTRODUCTION = (
    "This stage identifies inertias, rotors and friction with error bars, and validates the model on hold-out data. "
    "The default settings suit most robots; the friction laws of each joint are chosen by a search."
)
_ROLES = ("identify", "validate")
# Largest number of runs that fit side by side.
_MOST_COMPARED = 5


class IdentifyStage(Stage):
    """Identifies a model from logs."""

    name = "identify"
    title = "Identify"
    scripts = ("lazy.js", "identify.js")

    async def status(self, context: StageContext) -> StageStatus:
        folder = context.folder
        try:
            if _live_jobs(context):
                return StageStatus("working", "running")
            if _missing_step(folder):
                return StageStatus("empty", "needs a robot and a log")
            runs = runs_of(folder, "identify")
            if not runs:
                return StageStatus("empty", "not yet")
            run = runs[0]
            status = _status_of(str(run), (run / RESULT).stat().st_mtime_ns)
            if not is_current(folder, run, provenance_of(folder, _ROLES)):
                return StageStatus("warning", "the project has changed since")
        except (SteelyardError, OSError):
            return StageStatus("empty", "not yet")
        return status

    async def body(self, context: StageContext, query: FormData) -> Html:
        folder = context.folder
        pieces: list[str] = [Html("<h1>Identify</h1>")]
        runs = runs_of(folder, "identify")
        if step := _missing_step(folder):
            return join(
                *pieces,
                callout("note", Html(f"{_INTRODUCTION} {step}")),
                *([runs_html(_entries(folder, runs), [])] if len(runs) > 1 else []),
            )
        both = list(dict.fromkeys(query.all("both")))
        if both:
            return join(*pieces, *await _comparison(context, both), runs_html(_entries(folder, runs), both))
        pieces += await _check_notice(context)
        live = _live_jobs(context)
        for job in live:
            pieces.append(search_html(job_html(job), job.id))
        if not live:
            pieces += _failed_job(context)
        if runs:
            pieces += _result(context, runs, query)
        settings = settings_html(folder, saved_settings(folder), await _facts(context))
        introduction = Html(f'<p class="hint">{_INTRODUCTION}</p>')
        pieces.append(again_html(settings) if runs or live else join(introduction, settings))
        if len(runs) > 1:
            pieces.append(runs_html(_entries(folder, runs), []))
        return join(*pieces)

    def actions(self) -> Mapping[str, Action]:
        return {"set": _set, "start": _start}

    async def data(self, context: StageContext, what: str, query: FormData) -> Any:
        """Return the HTML of a run's result (`found`) for scripts."""
        if what != "found":
            raise StudioError("There is nothing at this address.")
        run = context.folder.get_run(query["run"])
        name = context.folder.relative(run)
        report = f"/file/{quote(name)}/report.html" if (run / "report.html").is_file() else ""
        return str(await context.helper.ask(identification_html, name, report))


# ---------------------------------------------------------------- state


def _missing_step(folder: StudioFolder) -> str:
    """Return the step that must come first, as HTML; "" if none."""
    if not folder.project().robot:
        return 'Choose the <a href="/robot">robot</a> first.'
    return "" if log_texts(folder, "identify") else 'Add a <a href="/data">log</a> with the role identify first.'


def _live_jobs(context: StageContext) -> list[StudioJob]:
    return [job for job in context.jobs.of_stage("identify") if job.live]


@lru_cache(64)
def _status_of(run: str, _changed: int) -> StageStatus:
    """Return the status for the result of a run."""
    with suppress(StudioError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        result = read_json(Path(run) / RESULT, StudioError, "identify again").value
        kind = status_kind(result["verdict"]["grade"])
        scores = result["validation"] or result["identification"]
        # Errors while moving, as in the verdict: at rest the friction torque is undetermined. Older runs have no
        # pooled error.
        pooled = result.get("torque_error")
        joints = pooled["joints"] if pooled else [joint for score in scores for joint in score["joints"]]
        errors = [moving_error(joint) for joint in joints]
        where = "" if result["validation"] else " of the fit"
        return StageStatus(kind, f"torque error{where} {sum(errors) / len(errors):.2g} %")
    return StageStatus("bad", "its result cannot be read")


async def _facts(context: StageContext) -> dict[str, Any]:
    """Return the options of the form; all but the friction runs are cached."""
    controlled = bool(context.folder.project().controller)
    if controlled not in _facts_cache:
        _facts_cache[controlled] = await context.helper.ask(identify_facts, controlled)
    friction = [context.folder.relative(run) for run in runs_of(context.folder, "friction")]
    return {**_facts_cache[controlled], "friction": friction}


_facts_cache: dict[bool, dict[str, Any]] = {}


# ---------------------------------------------------------------- HTML


async def _check_notice(context: StageContext) -> list[str]:
    """Warn if the check found problems or is missing."""
    status = await STUDIO_STAGES["check"].status(context)
    if status.kind == "bad":
        words = f'The <a href="/check">check</a> found {text(status.words)}. Fix this first for a correct model.'
        return [callout("warning", Html(words))]
    if status.kind == "empty":
        return [callout("note", Html('The logs are not <a href="/check">checked</a> yet.'))]
    return []


def _failed_job(context: StageContext) -> list[str]:
    job = next(context.jobs.of_stage("identify"), None)
    if job is None or job.state == "done":
        return []
    kind = "bad" if job.state == "failed" else "warning"
    return [callout(kind, job.message or job.state, "Cancelled" if job.state == "cancelled" else "Failed")]  # type: ignore[arg-type]


def _result(context: StageContext, runs: list[Path], query: FormData) -> list[str]:
    """Render the run of the query, or the newest."""
    folder = context.folder
    run = folder.get_run(query["run"]) if query.get("run") else runs[0]
    name = folder.relative(run)
    report = f"/file/{quote(name)}/report.html"
    source = f"/data/identify/found?{urlencode({'run': name})}"
    job = next((job for job in context.jobs.of_stage("identify") if job.output == name), None)
    pieces: list[str] = [Html(f"<h2>{text(name)}</h2>")]
    if not is_current(folder, run, provenance_of(folder, _ROLES)):
        pieces.append(callout("warning", "The project has changed since this run; identify again."))
    pieces.append(Html(f'<div data-lazy="{attribute(source)}" aria-busy="true">Reading the result …</div>'))
    if job is not None:
        search = search_html(Html(""), job.id)
        pieces.append(Html(f'<details id="searched"><summary>Search for the structure</summary>{search}</details>'))
    use = attribute(f"/use?{urlencode({'run': name})}")
    links = f'<a href="{attribute(report)}" target="_blank" rel="noopener">Report in a new tab</a>'
    pieces.append(Html(f'<p class="row">{links} <a href="{use}">Use this model</a></p>'))
    pieces.append(command_line(folder.command_of(run)))
    return pieces


async def _comparison(context: StageContext, names: list[str]) -> list[str]:
    """Render runs side by side."""
    runs = [context.folder.relative(context.folder.get_run(name)) for name in names]
    if len(runs) > _MOST_COMPARED:
        raise StudioError(f"{len(runs)} runs are selected; select at most {_MOST_COMPARED}.")
    html = await context.helper.ask(comparison_html, runs)
    return [Html('<p><a href="/identify">← identify</a></p><h2>Runs side by side</h2>'), Html(html)]


def _entries(folder: StudioFolder, runs: list[Path]) -> list[RunEntry]:
    return [run_entry(folder, run) for run in runs]


# ---------------------------------------------------------------- actions


async def _command(context: StageContext, fields: FormData) -> list[str]:
    pairs = [(name, value) for name in fields for value in fields.all(name)]
    settings = save_identify_settings(context.folder, pairs)
    return identify_command(context.folder, settings, await _facts(context))


async def _set(context: StageContext, fields: FormData) -> Html:
    """Save the form and show its command."""
    return command_line(shlex.join(["steelyard", *await _command(context, fields)]))


async def _start(context: StageContext, fields: FormData) -> None:
    """Start an identification."""
    words, folder = await _command(context, fields), context.folder
    if _missing_step(folder):
        raise StudioError("The project needs a robot and a log with the role identify; add them first.")
    output = folder.new_run("identify", context.jobs.outputs())
    save_provenance(folder, output, provenance_of(folder, _ROLES))
    context.jobs.add("identify", f"Identification {output.rpartition('-')[2]}", [*words, "-o", output], output)


STUDIO_STAGES.register("identify")(IdentifyStage())
