"""The stage *Identify*: from logs to a judged model, watched while it searches; runs side by side."""

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
from steelyard.ground.untrusted import read_json
from steelyard.report.elements import Html, callout, join, text
from steelyard.studio.basis import basis_of, fits_now, log_texts, remember_basis, runs_of
from steelyard.studio.identify_facts import compared_html, identified_html, identify_facts
from steelyard.studio.identify_page import again_html, runs_html, search_html, settings_html
from steelyard.studio.identify_settings import identify_words, keep_identify_settings, kept_settings
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, command_line, job_html
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.shelf import ShelvedRun, shelved
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing, StandingKind
from steelyard.studio.summaries import moving_error

_TEACH = (
    "Here the numbers of the robot's dynamics are found: inertias, rotors and friction, with error bars, judged on "
    "data that took no part in the fit. Without a setting the command chooses well; which friction laws a joint needs "
    "is searched for."
)
_ROLES = ("identify", "validate")
_GRADES: dict[str, StandingKind] = {"good": "done", "usable": "warning", "poor": "bad"}
# Runs that can be beside each other and still be read.
_MOST_COMPARED = 5


class IdentifyStage(Stage):
    """From logs to a judged model."""

    name = "identify"
    title = "Identify"
    scripts = ("later.js", "identify.js")

    async def standing(self, desk: Desk) -> Standing:
        place = desk.place
        try:
            if _at_work(desk):
                return Standing("working", "at work")
            if _lacking(place):
                return Standing("empty", "needs a robot and a log")
            runs = runs_of(place, "identify")
            if not runs:
                return Standing("empty", "not yet")
            run = runs[0]
            at = _judged(str(run), (run / RESULT).stat().st_mtime_ns)
            if not fits_now(place, run, basis_of(place, _ROLES)):
                return Standing("warning", "the project has changed since")
        except (SteelyardError, OSError):
            return Standing("empty", "not yet")
        return at

    async def body(self, desk: Desk, query: Sent) -> Html:
        place = desk.place
        pieces: list[str] = [Html("<h1>Identify</h1>")]
        runs = runs_of(place, "identify")
        if lacking := _lacking(place):
            return join(
                *pieces,
                callout("note", Html(f"{_TEACH} {lacking}")),
                *([runs_html(_shelf(place, runs), [])] if len(runs) > 1 else []),
            )
        both = list(dict.fromkeys(query.all("both")))
        if both:
            return join(*pieces, *await _compared(desk, both), runs_html(_shelf(place, runs), both))
        pieces += await _before(desk)
        live = _at_work(desk)
        for job in live:
            pieces.append(search_html(job_html(job), job.id))
        if not live:
            pieces += _ended_badly(desk)
        if runs:
            pieces += _found(desk, runs, query)
        facts = await _facts(desk)
        made = settings_html(place, kept_settings(place), facts)
        pieces.append(again_html(made) if runs or live else join(Html(f'<p class="hint">{_TEACH}</p>'), made))
        if len(runs) > 1:
            pieces.append(runs_html(_shelf(place, runs), []))
        return join(*pieces)

    def actions(self) -> Mapping[str, Action]:
        return {"set": _set, "start": _start}

    async def data(self, desk: Desk, what: str, query: Sent) -> Any:
        """What scripts ask for: `found`, what a run has found, as HTML."""
        if what != "found":
            raise StudioError("There is nothing at this address.")
        run = desk.place.run(query["run"])
        return str(await desk.aside.ask(identified_html, desk.place.relative(run)))


# ---------------------------------------------------------------- where it stands


def _lacking(place: StudioFolder) -> str:
    """What must come first, as HTML; "" if nothing."""
    if not place.project().robot:
        return 'Choose the <a href="/robot">robot</a> first.'
    return "" if log_texts(place, "identify") else 'Add a <a href="/data">log</a> to identify from first.'


def _at_work(desk: Desk) -> list[StudioJob]:
    return [job for job in desk.jobs.of_stage("identify") if job.live]


@lru_cache(64)
def _judged(run: str, _changed: int) -> Standing:
    """What the verdict of a run is on the rail."""
    with suppress(StudioError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        found = read_json(Path(run) / RESULT, StudioError, "make the run anew").value
        kind = _GRADES[found["verdict"]["grade"]]
        scores = found["validation"] or found["identification"]
        # While they move, as the verdict has it: at rest friction is whatever holds a joint. Runs of old have the
        # logs one by one.
        pooled = found.get("torque_error")
        joints = pooled["joints"] if pooled else [joint for score in scores for joint in score["joints"]]
        errors = [moving_error(joint) for joint in joints]
        where = "" if found["validation"] else " of the fit"
        return Standing(kind, f"torque error{where} {sum(errors) / len(errors):.2g} %")
    return Standing("bad", "its result cannot be read")


async def _facts(desk: Desk) -> dict[str, Any]:
    """What can be chosen; the same as long as the studio runs, but for runs."""
    controlled = bool(desk.place.project().controller)
    if controlled not in _KNOWN:
        _KNOWN[controlled] = await desk.aside.ask(identify_facts, controlled)
    friction = [desk.place.relative(run) for run in runs_of(desk.place, "friction")]
    return {**_KNOWN[controlled], "friction": friction}


_KNOWN: dict[bool, dict[str, Any]] = {}


# ---------------------------------------------------------------- what is shown


async def _before(desk: Desk) -> list[str]:
    """What the check says against it."""
    at = await STUDIO_STAGES["check"].standing(desk)
    if at.kind == "bad":
        words = f'The <a href="/check">check</a> found {text(at.words)}: mend that first, or the model will be wrong.'
        return [callout("warning", Html(words))]
    if at.kind == "empty":
        return [callout("note", Html('The logs are not <a href="/check">checked</a> yet.'))]
    return []


def _ended_badly(desk: Desk) -> list[str]:
    job = next(desk.jobs.of_stage("identify"), None)
    if job is None or job.state == "done":
        return []
    kind = "bad" if job.state == "failed" else "warning"
    return [callout(kind, job.message or job.state, "Cancelled" if job.state == "cancelled" else "Not done")]  # type: ignore[arg-type]


def _found(desk: Desk, runs: list[Path], query: Sent) -> list[str]:
    """A run: the one that is asked for, or the newest."""
    place = desk.place
    run = place.run(query["run"]) if query.get("run") else runs[0]
    name = place.relative(run)
    report = f"/file/{quote(name)}/report.html"
    source = f"/data/identify/found?{urlencode({'run': name})}"
    job = next((job for job in desk.jobs.of_stage("identify") if job.output == name), None)
    pieces: list[str] = [Html(f"<h2>{text(name)}</h2>")]
    if not fits_now(place, run, basis_of(place, _ROLES)):
        pieces.append(callout("warning", "The project has changed since this was found: identify again."))
    pieces.append(Html(f'<div data-later="{attribute(source)}" aria-busy="true">Reading what was found …</div>'))
    if job is not None:
        searched = search_html(Html(""), job.id)
        pieces.append(
            Html(f'<details id="searched"><summary>How the structure was searched</summary>{searched}</details>')
        )
    use = attribute(f"/use?{urlencode({'run': name})}")
    links = f'<a href="{attribute(report)}" target="_blank" rel="noopener">Report in a tab of its own</a>'
    frame = (
        f'<iframe class="report" loading="lazy" sandbox="allow-scripts allow-popups allow-downloads" '
        f'title="Report of {attribute(name)}" src="{attribute(report)}"></iframe>'
    )
    pieces.append(Html(f'<p class="row">{links} <a href="{use}">Use this model</a></p>'))
    pieces.append(Html(f'<details id="report"><summary>Report</summary>{frame}</details>'))
    pieces.append(command_line(place.command_of(run)))
    return pieces


async def _compared(desk: Desk, names: list[str]) -> list[str]:
    """Runs beside each other."""
    runs = [desk.place.relative(desk.place.run(name)) for name in names]
    if len(runs) > _MOST_COMPARED:
        raise StudioError(f"{len(runs)} runs are ticked; tick at most {_MOST_COMPARED} of them.")
    made = await desk.aside.ask(compared_html, runs)
    return [Html('<p><a href="/identify">← identify</a></p><h2>Runs side by side</h2>'), Html(made)]


def _shelf(place: StudioFolder, runs: list[Path]) -> list[ShelvedRun]:
    return [shelved(place, run) for run in runs]


# ---------------------------------------------------------------- what is done


async def _asked(desk: Desk, sent: Sent) -> list[str]:
    pairs = [(name, value) for name in sent for value in sent.all(name)]
    given = keep_identify_settings(desk.place, pairs)
    return identify_words(desk.place, given, await _facts(desk))


async def _set(desk: Desk, sent: Sent) -> Html:
    """Keep what the form says, and show the command that it makes."""
    return command_line(shlex.join(["steelyard", *await _asked(desk, sent)]))


async def _start(desk: Desk, sent: Sent) -> None:
    """Begin an identification."""
    words, place = await _asked(desk, sent), desk.place
    if _lacking(place):
        raise StudioError("There is no robot, or no log to identify from, yet.")
    output = place.new_run("identify", desk.jobs.outputs())
    remember_basis(place, output, basis_of(place, _ROLES))
    desk.jobs.add("identify", f"Identification {output.rpartition('-')[2]}", [*words, "-o", output], output)


STUDIO_STAGES.register("identify")(IdentifyStage())
