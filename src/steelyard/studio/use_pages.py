"""HTML of the stage *Use*: the model and its limits, exports, payloads, friction, and tests on other logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from steelyard.ground.grades import HALF_WIDTH_95
from steelyard.ground.numbers import Known, number
from steelyard.report.elements import Html, TableColumn, callout, join, table_html, text, whisker
from steelyard.studio.jobs import StudioJob
from steelyard.studio.library_pages import files_html, headline_html, library_link, when_words
from steelyard.studio.page import attribute, choice, entry, form, job_html
from steelyard.studio.roles import ListedLog
from steelyard.studio.run_entries import RunEntry
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.summaries import moving_error

# Formats selected by default.
DEFAULT_FORMATS = ("urdf", "mjcf", "c", "csv")
_AXES = "xyz"
_MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
# Indices of the inertias in the ten parameters of a body.
_INERTIA_INDEX = {"Ixx": 4, "Ixy": 5, "Iyy": 6, "Ixz": 7, "Iyz": 8, "Izz": 9}
# Errors of a result in another format.
_FORMAT_ERRORS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StudioError)


def section(name: str, title: str, *pieces: str) -> Html:
    """Render a section of the page.

    Args:
        name: Name for its id.
        title: Its heading.
        pieces: HTML of its content.
    """
    return Html(f'<section id="use-{name}"><h2>{text(title)}</h2>{join(*pieces)}</section>')


def ticks(name: str, options: Sequence[tuple[str, str]], selected: Sequence[str], legend: str) -> Html:
    """Render a group of checkboxes.

    Args:
        name: Name of the field.
        options: Value and text of each box.
        selected: Values of the selected boxes.
        legend: Heading of the group.
    """
    boxes = "".join(
        f'<label class="tick"><input type="checkbox" name="{attribute(name)}" value="{attribute(value)}"'
        f"{' checked' if value in selected else ''}><span>{text(words)}</span></label>"
        for value, words in options
    )
    return Html(f"<fieldset><legend>{text(legend)}</legend>{boxes}</fieldset>")


def job_status(job: StudioJob | None) -> Html:
    """Render the last `job` of a section unless it is done."""
    return job_html(job) if job is not None and job.state != "done" else Html("")


def command_of_form(kind: str) -> Html:
    """Render the place for the command of a form of a `kind`; the page's script updates it."""
    return Html(f'<div data-words="{kind}" role="status"></div>')


# ------------------------------------------------------------ the model


def model_choice_html(name: str, run: RunEntry | None, models: Sequence[RunEntry], written: bool) -> Html:
    """Render the choice of the model and its limits.

    Args:
        name: Name of the model.
        run: Its run, if it is one.
        models: Runs to choose from.
        written: Whether the project file names the model.
    """
    grades = {"good": "good", "warning": "with warnings", "bad": "unreliable", "note": ""}
    options = [(one.name, f"{one.name}: {grades[one.summary.headline.kind]}, {when_words(one.when)}") for one in models]
    if run is None:
        options.insert(0, (name, name))
    word = "Use this model" if written else "Use as the project's model"
    menu = form(
        "use/take", f'<div class="row">{choice("model", "Model", options, name)}<button>{word}</button></div>',
        live=True,
    )  # fmt: skip
    hint = "" if written else (
        '<p class="hint">This is the newest good model. Any action with it on this page makes it the model of the '
        "project.</p>"
    )  # fmt: skip
    if run is None:
        about = callout("note", f"{name} is not a run of this folder, so its validation is not known here.")
        return section("model", "Model", menu, about)
    links = f"{library_link('Report and files', run=run.name)}"
    return section(
        "model", "Model", menu, Html(hint), headline_html(run.summary.headline), trust_html(run), Html(links)
    )


def trust_html(run: RunEntry) -> Html:
    """Render the accuracy and the limits of the model of a `run`."""
    try:
        return _trust(run.result())
    except _FORMAT_ERRORS:
        return callout("warning", "The result.json of this model is from another version; open its report.")


def _trust(result: Mapping[str, Any]) -> Html:
    repeated = {copy["log"] for copy in result.get("copies", ()) if not copy.get("rest_judges")}
    others = [score for score in result["validation"] if score["log"] not in repeated]
    score = (others or result["identification"])[0]
    before = {j["joint"]: moving_error(j) for s in result["nominal"][:1] for j in s["joints"]}
    motion: dict[str, tuple[float, ...]] = {}
    for check in result["check"]:
        for joint in (check["excitation"] or {}).get("joints", ()):
            low, high = joint["lowest"], joint["highest"]
            old = motion.get(joint["joint"], (low, high, 0.0))
            motion[joint["joint"]] = (min(old[0], low), max(old[1], high), max(old[2], joint["speed"]))
    rows: list[list[Any]] = []
    for joint in score["joints"]:
        span = motion.get(joint["joint"])
        reach = f"{number(span[0], 3)} … {number(span[1], 3)}" if span else None
        old_error = before.get(joint["joint"])
        rows.append([joint["joint"], moving_error(joint), old_error, reach, span[2] if span else None])
    columns: list[TableColumn | str] = [
        "joint", TableColumn("torque error", "% of σ", 3), TableColumn("nominal model", "% of σ", 3),
        TableColumn("positions", "rad, m", 3), TableColumn("speed", "rad/s, m/s", 3),
    ]  # fmt: skip
    cutoff = number(float(score["score_cutoff_hz"]), 3)
    data = f"the hold-out log '{score['log']}'" if others else "the data of the fit"
    words = (
        f"Validated on {data}, below {cutoff} Hz. Do not rely on the model for wider or faster motions than in its "
        "data, for higher frequencies (impacts, vibration), with another tool or payload, or if the robot is much "
        "colder or warmer, because friction changes."
    )
    title = "Accuracy, and motion in the data"
    return join(table_html(columns, rows, title, "Not known."), callout("note", words, "Limits of the model"))


# ------------------------------------------------------------ exports


def export_form(formats: Sequence[tuple[str, str, str]], model: str) -> Html:
    """Render the form of an export.

    Args:
        formats: Formats, from `export_formats`.
        model: Name of the model.
    """
    available = [(name, f"{name}: {about}") for name, about, need in formats if not need]
    unavailable = [(name, about, need) for name, about, need in formats if need]
    missing = "".join(f"<li>{text(name)} ({text(about)}): {text(need)}</li>" for name, about, need in unavailable)
    more = f'<p class="hint">Not installed here:</p><ul class="hint">{missing}</ul>' if missing else ""
    inside = (
        f'<input type="hidden" name="model" value="{attribute(model)}">'
        f'{ticks("to", available, DEFAULT_FORMATS, "Formats")}{more}<div class="row">'
        f"{entry('name', 'Name of files and C functions', placeholder='name of the robot', maxlength='60')}"
        f'<button class="main">Export</button></div>{command_of_form("export")}'
    )
    return form("use/export", inside)


def export_html(run: RunEntry | None) -> Html:
    """Render the files of the last export, a `run`."""
    return files_html(run, f"Files of {run.name}") if run is not None else Html("")


# ------------------------------------------------------------ loads


def load_form(
    logs: Sequence[ListedLog], choices: Mapping[str, Sequence[tuple[str, str]]], model: str
) -> Html:  # fmt: skip
    """Render the form of a payload identification.

    Args:
        logs: Logs to choose from.
        choices: Frames and controllers, from `load_choices`.
        model: Model of the bare arm; "" if none.
    """
    uses = [("", "not used"), ("with", "with payload"), ("without", "without payload")]
    of_role = {"payload": "with", "bare": "without"}
    rows = [
        [log.text, choice(f"log:{log.text}", log.text, uses, of_role.get(log.role, ""), hide_label=True)]
        for log in logs
    ]
    frames = [("", "the last link"), *choices["frames"]]
    inside = (
        f"{table_html(['log', 'payload'], rows, 'Logs', tall=len(rows) > 12)}"
        f'<div class="row">{choice("frame", "Frame of the result", frames)}</div>'
    )
    if model:
        inside += (
            f'<label class="tick"><input type="checkbox" name="model" value="{attribute(model)}"><span>No log '
            f"without payload: use {text(model)} as the exact model of the bare arm</span></label>"
        )
    inside += f"{ticks('for', choices['controllers'], (), 'Controllers to write files for')}"
    inside += f'<button class="main">Identify the payload</button>{command_of_form("payload")}'
    return form("use/payload", inside)


def load_html(run: RunEntry) -> Html:
    """Render the payloads of a `run`, with error bars."""
    try:
        result = run.result()
        loads = result.get("loads") or {"": result}
        tables = [_load(name, load) for name, load in loads.items()]
    except _FORMAT_ERRORS:
        tables = [Html("")]
    return join(
        Html(f"<h3>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h3>"),
        headline_html(run.summary.headline), *tables, files_html(run),
    )  # fmt: skip


def _load(name: str, load: Mapping[str, Any]) -> Html:
    identifiable = load["parameters"]["shown"]
    mass, centre, inertia = load["mass"], load["center_of_gravity"], load["inertia"]
    rows = [("mass", "kg", mass["value"], mass["standard_error"], identifiable[0])]
    centres = zip(_AXES, centre["value"], centre["standard_error"], identifiable[1:4], strict=True)
    rows += [
        (f"centre of gravity {axis}", "mm", 1e3 * value, 1e3 * error, is_known)
        for axis, value, error, is_known in centres
    ]
    rows += [
        (f"inertia {m}", "kg m²", inertia["value"][m], inertia["standard_error"][m], identifiable[_INERTIA_INDEX[m]])
        for m in _MOMENTS
    ]
    cells = [
        [
            what,
            unit,
            whisker(value, HALF_WIDTH_95 * error),
            Known(value, error),
            HALF_WIDTH_95 * error,
            "" if ok else "not identifiable",
        ]
        for what, unit, value, error, ok in rows
    ]
    columns: list[TableColumn | str] = [
        "parameter", "unit", "interval", "value", TableColumn("± 95 %", digits=2), "remark",
    ]  # fmt: skip
    title = f"{name + ': ' if name else ''}payload in frame '{load['frame']}', inertia about its centre of gravity"
    return table_html(columns, cells, title, "Not identifiable from the data.")


# ------------------------------------------------------------ friction, and other logs


def log_ticks(logs: Sequence[ListedLog], roles: Sequence[str], legend: str) -> Html:
    """Render checkboxes for logs; those with the first role that any log has are selected.

    Args:
        logs: The logs.
        roles: Roles, by priority.
        legend: Heading of the group.
    """
    selected: list[str] = next((of for role in roles if (of := [log.text for log in logs if role in log.roles])), [])
    options = [(log.text, f"{log.text} ({', '.join(log.roles) or 'not used'})") for log in logs]
    return ticks("log", options, selected, legend)


def friction_html(run: RunEntry) -> Html:
    """Render the last `run` of friction; its figure is loaded on demand."""
    figure = attribute(f"/data/use/friction?{urlencode({'run': run.name})}")
    return join(
        Html(f"<h3>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h3>"),
        headline_html(run.summary.headline),
        Html(f'<div data-lazy="{figure}" aria-busy="true"><p class="hint">Drawing friction over velocity …</p></div>'),
    )


def cards_html(runs: Sequence[RunEntry]) -> Html:
    """Render `runs` as cards with picture and verdict."""
    cards = "".join(
        f'<div class="card">{run.summary.picture}<p>{library_link(run.name, run=run.name)} <span class="hint">'
        f"{when_words(run.when)}</span></p><p>{text(run.summary.headline.sentence)}</p></div>"
        for run in runs
    )
    return Html(f'<div class="cards">{cards}</div>' if cards else "")
