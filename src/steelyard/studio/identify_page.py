"""What the stage *Identify* is made of: the form, the table of a search that grows, and the list of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.report.elements import Html, join, table_html, text
from steelyard.studio.basis import log_texts
from steelyard.studio.identify_settings import NUMBERS, IdentifySettings
from steelyard.studio.library_pages import when_html
from steelyard.studio.page import attribute, choice, entry, form
from steelyard.studio.place import StudioFolder
from steelyard.studio.shelf import ShelvedRun

_HINTS = {"cutoff": "by a rule", "score_cutoff": "that of the fit"}


def settings_html(place: StudioFolder, given: IdentifySettings, facts: Mapping[str, Any]) -> Html:
    """The form of a `place`, which holds what is `given`; `facts` say what can be chosen."""
    fitted = ", ".join(log_texts(place, "identify"))
    numbers = [
        entry(name, label, given.get(name), unit, inputmode="decimal", placeholder=_HINTS.get(name, "none"))
        for name, _, label, unit in NUMBERS
    ]
    known = [("", "none"), *((run, run) for run in facts["friction"])]
    more = join(
        *numbers, _menu("velocity", "Velocity", facts["velocity"], given),
        _menu("prior", "Prior", facts["prior"], given), _menu("scheme", "Scheme", facts["scheme"], given),
        choice("friction", "Friction that is known", known, given.get("friction")),
        _tick("significant", "yes", "Also take away what the data do not support", bool(given.get("significant"))),
    )  # fmt: skip
    possible = [("physical", "physically possible"), ("free", "the free fit")]
    return form(
        "identify/start",
        f'<p class="hint">Fitted to {text(fitted)}; what a log is for is said under <a href="/data">Data</a>.</p>'
        f"<fieldset><legend>Judged by</legend>{_judging(place, given)}</fieldset>"
        f"<fieldset><legend>Model</legend>{_structure(place, given, facts)}"
        + choice("form", "Parameters", possible, given.get("form"))
        + _menu("estimator", "Estimator", [row[:2] for row in facts["estimator"]], given)
        + f'</fieldset><details id="identify-more"><summary>More</summary>{more}</details>'
        '<div id="identify-command" role="status"></div><button class="main">Start the identification</button>',
        kind="identify-form",
    )


def _judging(place: StudioFolder, given: IdentifySettings) -> Html:
    judges, others = log_texts(place, "validate"), log_texts(place)
    logs = [log for log in others if log not in log_texts(place, "identify")]
    ways = [("share", "the last part of each log"), ("blocks", "blocks all over each log")]
    ways = [*([("logs", "other logs")] if logs else []), *ways, *([] if judges else [("none", "nothing: not judged")])]
    chosen = given.many.get("judge_by", ())
    ticks = "".join(_tick("judge_by", log, log, log in chosen) for log in logs)
    group = f'<span class="when" data-when="judge=logs" role="group" aria-label="Logs to judge by">{ticks}</span>'
    return join(
        choice("judge", "By what it has not seen", ways, given.get("judge")),
        Html(group if logs else ""),
        _when("judge=share", entry("share", "Share that is held out", given.get("share"), inputmode="decimal")),
        _when("judge=blocks", entry("blocks", "Seconds : every", given.get("blocks"))),
    )


def _structure(place: StudioFolder, given: IdentifySettings, facts: Mapping[str, Any]) -> Html:
    named = place.project().terms
    listed = named if isinstance(named, str) else ", ".join(named)
    if listed:
        ways = [("", f"as the project has them: {listed}"), ("tune", "the same, and a search for more")]
    else:
        ways = [("", "searched for"), ("plain", "the usual, without a search")]
    ways.append(("given", "these:"))
    ticks = "".join(
        _tick("term", name, name, name in given.many.get("term", ()), about) for name, about in facts["term"]
    )
    return join(
        choice("structure", "Friction and drives", ways, given.get("structure")),
        Html(f'<span class="when terms" data-when="structure=given" role="group" aria-label="Terms">{ticks}</span>'),
    )


def _when(condition: str, inside: str) -> Html:
    return Html(f'<span class="when" data-when="{attribute(condition)}">{inside}</span>')


def _menu(name: str, label: str, options: Sequence[Sequence[str]], given: IdentifySettings) -> Html:
    shown = [(value, value if not about or about == value else f"{value}: {about}") for value, about in options]
    return choice(name, label, shown, given.get(name))


def _tick(name: str, value: str, label: str, on: bool, about: str = "") -> Html:
    checked = " checked" if on else ""
    hint = f' title="{attribute(about)}"' if about else ""
    return Html(
        f'<label class="tick"{hint}><input type="checkbox" name="{name}" value="{attribute(value)}"{checked}>'
        f"<span>{text(label)}</span></label>"
    )


def again_html(made: str) -> Html:
    """The form, `made` before, where something was found already."""
    return Html(f'<details id="identify-again"><summary>Identify again, otherwise</summary>{made}</details>')


def search_html(above: str, job: str) -> Html:
    """A table of the search for the structure that grows as the job called `job` tells of it, below what stands
    `above`."""
    heads = "".join(
        f'<th scope="col"{" class=number" if right else ""}>{name}</th>'
        for name, right in (("joint", 0), ("what was tried", 0), ("error before [%]", 1), ("after [%]", 1), ("gain", 0),
                            ("doubt [%]", 1), ("what became of it", 0))
    )  # fmt: skip
    return Html(
        f'<section class="search" data-search="{attribute(job)}" aria-label="Search for the structure">{above}'
        '<p class="numbers" role="status">No search has begun yet.</p><div class="scroll tall" tabindex="0" hidden>'
        f'<table aria-label="What the search tried"><thead><tr>{heads}</tr></thead><tbody></tbody></table></div>'
        '<p class="hint" hidden>Errors are those on parts of the logs that took no part in the fit, in % of a '
        "torque&#39;s standard deviation; a term is taken where it gains more than its doubt.</p></section>"
    )


def runs_html(runs: Sequence[ShelvedRun], chosen: Sequence[str]) -> Html:
    """All `runs` of the command, of which some, those `chosen` first, can be put beside each other."""
    rows = []
    for run in runs:
        settings = " ".join(f"{name} {value}".strip() for name, value in run.settings) or "no options"
        link = f'<a href="/identify?run={attribute(run.name)}">{text(run.name)}</a>'
        box = (
            f'<label class="tick"><input type="checkbox" form="beside" name="both" value="{attribute(run.name)}"'
            f'{" checked" if run.name in chosen else ""}><span class="unseen">Compare {text(run.name)}</span></label>'
        )
        rows.append([Html(box), Html(link), when_html(run.when), run.summary.glance.sentence, settings])
    table = table_html(["compare", "run", "written", "verdict", "settings"], rows, "Runs of identify in this folder")
    asked = Html(
        '<form id="beside" method="get" action="/identify"><button>Put the ticked runs side by side</button></form>'
    )
    return join(Html("<h2>Runs</h2>"), table, asked)
