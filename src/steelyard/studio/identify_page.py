"""HTML of the stage *Identify*: the form, the table of a running search, and the list of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.report.elements import Html, join, table_html, text
from steelyard.studio.identify_settings import NUMBERS, IdentifySettings
from steelyard.studio.library_pages import when_html
from steelyard.studio.page import attribute, choice, entry, form
from steelyard.studio.provenance import log_texts
from steelyard.studio.run_entries import RunEntry
from steelyard.studio.studio_folder import StudioFolder

_HINTS = {"cutoff": "automatic", "score_cutoff": "as for the fit"}


def settings_html(folder: StudioFolder, settings: IdentifySettings, facts: Mapping[str, Any]) -> Html:
    """Render the form of an identification.

    Args:
        folder: The studio's folder.
        settings: Values of the fields.
        facts: Options, from `identify_facts`.
    """
    fitted = ", ".join(log_texts(folder, "identify"))
    numbers = [
        entry(name, label, settings.get(name), unit, inputmode="decimal", placeholder=_HINTS.get(name, "none"))
        for name, _, label, unit in NUMBERS
    ]
    friction_runs = [("", "none"), *((run, run) for run in facts["friction"])]
    more = join(
        *numbers, _menu("velocity", "Velocity", facts["velocity"], settings),
        _menu("prior", "Prior", facts["prior"], settings), _menu("scheme", "Scheme", facts["scheme"], settings),
        choice("friction", "Known friction", friction_runs, settings.get("friction")),
        _tick("significant", "yes", "Remove parameters that are not significant", bool(settings.get("significant"))),
    )  # fmt: skip
    possible = [("physical", "physically possible"), ("free", "free fit")]
    return form(
        "identify/start",
        f'<p class="hint">Fitted to {text(fitted)}. Choose the role of each log under <a href="/data">Data</a>.</p>'
        f"<fieldset><legend>Validation</legend>{_validation(folder, settings)}</fieldset>"
        f"<fieldset><legend>Model</legend>{_structure(folder, settings, facts)}"
        + choice("form", "Parameters", possible, settings.get("form"))
        + _menu("estimator", "Estimator", [row[:2] for row in facts["estimator"]], settings)
        + f'</fieldset><details id="identify-more"><summary>More</summary>{more}</details>'
        '<div id="identify-command" role="status"></div><button class="main">Start the identification</button>',
        kind="identify-form",
    )


def _validation(folder: StudioFolder, settings: IdentifySettings) -> Html:
    validation_logs, all_logs = log_texts(folder, "validate"), log_texts(folder)
    logs = [log for log in all_logs if log not in log_texts(folder, "identify")]
    ways = [("share", "the last part of each log"), ("blocks", "blocks spread over each log")]
    none = [] if validation_logs else [("none", "none: no validation")]
    ways = [*([("logs", "other logs")] if logs else []), *ways, *none]
    selected = settings.many.get("judge_by", ())
    ticks = "".join(_tick("judge_by", log, log, log in selected) for log in logs)
    group = _when("judge=logs", ticks, settings, ' role="group" aria-label="Hold-out logs"')
    return join(
        choice("judge", "Hold-out data", ways, settings.get("judge")),
        group if logs else "",
        _when("judge=share", entry("share", "Hold-out share", settings.get("share"), inputmode="decimal"), settings),
        _when("judge=blocks", entry("blocks", "Seconds : every", settings.get("blocks")), settings),
    )


def _structure(folder: StudioFolder, settings: IdentifySettings, facts: Mapping[str, Any]) -> Html:
    terms = folder.project().terms
    listed = terms if isinstance(terms, str) else ", ".join(terms)
    if listed:
        ways = [("", f"as in the project: {listed}"), ("tune", "as in the project, and search for more")]
    else:
        ways = [("", "search"), ("plain", "default terms, no search")]
    ways.append(("given", "these:"))
    ticks = "".join(
        _tick("term", name, name, name in settings.many.get("term", ()), about) for name, about in facts["term"]
    )
    return join(
        choice("structure", "Friction and drives", ways, settings.get("structure")),
        _when("structure=given", ticks, settings, ' role="group" aria-label="Terms"', " terms"),
    )


def _when(condition: str, inside: str, settings: IdentifySettings, more: str = "", kind: str = "") -> Html:
    """Show fields only while another field has a value, such as "judge=share"; the page's script follows changes."""
    name, _, value = condition.partition("=")
    away = "" if settings.get(name) == value else " hidden"
    return Html(f'<span class="when{kind}" data-when="{attribute(condition)}"{more}{away}>{inside}</span>')


def _menu(name: str, label: str, options: Sequence[Sequence[str]], settings: IdentifySettings) -> Html:
    texts = [(value, value if not about or about == value else f"{value}: {about}") for value, about in options]
    return choice(name, label, texts, settings.get(name))


def _tick(name: str, value: str, label: str, on: bool, about: str = "") -> Html:
    checked = " checked" if on else ""
    hint = f' title="{attribute(about)}"' if about else ""
    return Html(
        f'<label class="tick"{hint}><input type="checkbox" name="{name}" value="{attribute(value)}"{checked}>'
        f"<span>{text(label)}</span></label>"
    )


def again_html(settings_form: str) -> Html:
    """Fold the `settings_form` for a folder that already has a result."""
    return Html(
        f'<details id="identify-again"><summary>Identify again with other settings</summary>{settings_form}</details>'
    )


def search_html(above: str, job: str) -> Html:
    """Render the table of a structure search; the page's script adds a row per event of the job.

    Args:
        above: HTML above the table.
        job: Id of the job.
    """
    heads = "".join(
        f'<th scope="col"{" class=number" if right else ""}>{name}</th>'
        for name, right in (("joint", 0), ("change", 0), ("error before [%]", 1), ("after [%]", 1), ("gain", 0),
                            ("uncertainty [%]", 1), ("decision", 0))
    )  # fmt: skip
    return Html(
        f'<section class="search" data-search="{attribute(job)}" aria-label="Search for the structure">{above}'
        '<p class="numbers" role="status">The search has not started yet.</p><div class="scroll tall" tabindex="0" '
        f'hidden><table aria-label="Steps of the search"><thead><tr>{heads}</tr></thead><tbody></tbody></table></div>'
        '<p class="hint" hidden>Errors on hold-out parts of the logs, in % of a torque&#39;s standard deviation. A '
        "term is accepted if its gain is larger than the uncertainty.</p></section>"
    )


def runs_html(runs: Sequence[RunEntry], selected: Sequence[str]) -> Html:
    """Render the list of runs, with boxes to select runs for a comparison.

    Args:
        runs: The runs.
        selected: Names of the selected runs.
    """
    rows = []
    for run in runs:
        settings = " ".join(f"{name} {value}".strip() for name, value in run.settings) or "no options"
        link = f'<a href="/identify?run={attribute(run.name)}">{text(run.name)}</a>'
        box = (
            f'<label class="tick"><input type="checkbox" form="beside" name="both" value="{attribute(run.name)}"'
            f'{" checked" if run.name in selected else ""}><span class="unseen">Compare {text(run.name)}</span></label>'
        )
        verdict = run.summary.headline.sentence.split(". ")[0].rstrip(".") + "."
        rows.append([Html(box), Html(link), when_html(run.when), verdict, settings])
    table = table_html(["compare", "run", "written", "verdict", "settings"], rows, "Runs of identify in this folder")
    compare = Html(
        '<form id="beside" method="get" action="/identify"><button>Compare the selected runs</button></form>'
    )
    return join(Html("<h2>Runs</h2>"), table, compare)
