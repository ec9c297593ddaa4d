"""What the stage *Use* shows: the model and when not to trust it, exports, loads, friction, other logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from steelyard.ground.numbers import Known, number
from steelyard.report.elements import Html, TableColumn, callout, join, table_html, text, whisker
from steelyard.studio.jobs import StudioJob
from steelyard.studio.library_pages import files_html, glance_html, library_link, when_words
from steelyard.studio.page import attribute, choice, entry, form, job_html
from steelyard.studio.place import StudioError
from steelyard.studio.roles import ListedLog
from steelyard.studio.shelf import ShelvedRun
from steelyard.studio.summaries import moving_error

# What is ticked where nobody has chosen.
USUAL_FORMATS = ("urdf", "mjcf", "c", "csv")
_AXES = "xyz"
_MOMENTS = ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
# Where the parameters Ixx … of the ten stand.
_PLACES = {"Ixx": 4, "Ixy": 5, "Iyy": 6, "Ixz": 7, "Iyz": 8, "Izz": 9}
_ODD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StudioError)


def section(name: str, title: str, *pieces: str) -> Html:
    """A part of the page called `name`, with a `title`, of `pieces`."""
    return Html(f'<section id="use-{name}"><h2>{text(title)}</h2>{join(*pieces)}</section>')


def ticks(name: str, options: Sequence[tuple[str, str]], chosen: Sequence[str], legend: str) -> Html:
    """Boxes to be ticked, called `name`: `options` (value, words), of which some are `chosen`, below a `legend`."""
    made = "".join(
        f'<label class="tick"><input type="checkbox" name="{attribute(name)}" value="{attribute(value)}"'
        f"{' checked' if value in chosen else ''}><span>{text(words)}</span></label>"
        for value, words in options
    )
    return Html(f"<fieldset><legend>{text(legend)}</legend>{made}</fieldset>")


def shown_job(job: StudioJob | None) -> Html:
    """The last `job` of a part, as long as it has something to say."""
    return job_html(job) if job is not None and job.state != "done" else Html("")


def command_of_form(kind: str) -> Html:
    """In a form of a `kind`: the command that it stands for, kept true by the page's script."""
    return Html(f'<div data-words="{kind}" role="status"></div>')


# ------------------------------------------------------------ the model


def used_model(name: str, run: ShelvedRun | None, models: Sequence[ShelvedRun], written: bool) -> Html:
    """Which model is used: `name`, a `run` among `models` or something else; and whether that is `written` down."""
    grades = {"good": "good", "warning": "with reservations", "bad": "not to be trusted", "note": ""}
    options = [(one.name, f"{one.name}: {grades[one.summary.glance.kind]}, {when_words(one.when)}") for one in models]
    if run is None:
        options.insert(0, (name, name))
    word = "Use this one" if written else "Use this one from now on"
    menu = form(
        "use/take", f'<div class="row">{choice("model", "Model", options, name)}<button>{word}</button></div>',
        live=True,
    )  # fmt: skip
    hint = "" if written else (
        '<p class="hint">The newest good model is proposed; what you do here with it writes it to the project file '
        "as its model.</p>"
    )  # fmt: skip
    if run is None:
        about = callout("note", f"{name} is no run of this folder: what it was judged by is not known here.")
        return section("model", "The model", menu, about)
    links = f"{library_link('Its report and files', run=run.name)}"
    return section(
        "model", "The model", menu, Html(hint), glance_html(run.summary.glance), trust_html(run), Html(links)
    )


def trust_html(run: ShelvedRun) -> Html:
    """When not to trust the model of a `run`: how far off it is, and what the data it comes from did not show."""
    try:
        return _trust(run.result())
    except _ODD:
        return callout("warning", "Its result.json is not as this version writes it; look at its report.")


def _trust(result: Mapping[str, Any]) -> Html:
    repeated = {copy["log"] for copy in result.get("copies", ()) if not copy.get("rest_judges")}
    others = [score for score in result["validation"] if score["log"] not in repeated]
    judged = (others or result["identification"])[0]
    before = {j["joint"]: moving_error(j) for s in result["nominal"][:1] for j in s["joints"]}
    seen: dict[str, tuple[float, ...]] = {}
    for check in result["check"]:
        for joint in (check["excitation"] or {}).get("joints", ()):
            low, high = joint["lowest"], joint["highest"]
            old = seen.get(joint["joint"], (low, high, 0.0))
            seen[joint["joint"]] = (min(old[0], low), max(old[1], high), max(old[2], joint["speed"]))
    rows: list[list[Any]] = []
    for one in judged["joints"]:
        at = seen.get(one["joint"])
        reach = f"{number(at[0], 3)} … {number(at[1], 3)}" if at else None
        rows.append([one["joint"], moving_error(one), before.get(one["joint"]), reach, at[2] if at else None])
    columns: list[TableColumn | str] = [
        "joint", TableColumn("torque off", "% of σ", 3), TableColumn("as described", "% of σ", 3),
        TableColumn("positions", "rad, m", 3), TableColumn("speed", "rad/s, m/s", 3),
    ]  # fmt: skip
    cutoff = number(float(judged["score_cutoff_hz"]), 3)
    by = f"the log '{judged['log']}', which it has not seen" if others else "the data that it was fitted to"
    words = (
        f"Judged by {by}, below {cutoff} Hz. Do not trust it for motions that are wider or faster than those it comes "
        "from, for what happens within less time (impacts, vibration), with another tool or load, or where the robot "
        "is much colder or warmer: friction changes."
    )
    title = "How far off it is, and what motion it comes from"
    return join(table_html(columns, rows, title, "It is not known."), callout("note", words, "When not to trust it"))


# ------------------------------------------------------------ exports


def export_form(formats: Sequence[tuple[str, str, str]], model: str) -> Html:
    """What a `model` can be written as: `formats` with what they lack."""
    there = [(name, f"{name}: {about}") for name, about, lacking in formats if not lacking]
    lacking = [(name, about, need) for name, about, need in formats if need]
    missing = "".join(f"<li>{text(name)} ({text(about)}): {text(need)}</li>" for name, about, need in lacking)
    more = f'<p class="hint">Not installed here:</p><ul class="hint">{missing}</ul>' if missing else ""
    inside = (
        f'<input type="hidden" name="model" value="{attribute(model)}">'
        f'{ticks("to", there, USUAL_FORMATS, "Formats")}{more}<div class="row">'
        f"{entry('name', 'Name of files and C functions', placeholder='as the robot', maxlength='60')}"
        f'<button class="main">Export</button></div>{command_of_form("export")}'
    )
    return form("use/export", inside)


def exported_html(run: ShelvedRun | None) -> Html:
    """The files of the last export, a `run`."""
    return files_html(run, f"Files of {run.name}") if run is not None else Html("")


# ------------------------------------------------------------ loads


def load_form(
    logs: Sequence[ListedLog], choices: Mapping[str, Sequence[tuple[str, str]]], model: str
) -> Html:  # fmt: skip
    """What to weigh: `logs` with and without the load, in a frame and for controllers of `choices`; or against a
    `model` of the bare arm ("": there is none)."""
    uses = [("", "not used"), ("with", "with the load"), ("without", "without it")]
    of_role = {"payload": "with", "bare": "without"}
    rows = [
        [log.text, choice(f"log:{log.text}", log.text, uses, of_role.get(log.role, ""), hide_label=True)]
        for log in logs
    ]
    frames = [("", "the last link"), *choices["frames"]]
    inside = (
        f"{table_html(['log', 'what it carries'], rows, 'Logs', tall=len(rows) > 12)}"
        f'<div class="row">{choice("frame", "Described in the frame of", frames)}</div>'
    )
    if model:
        inside += (
            f'<label class="tick"><input type="checkbox" name="model" value="{attribute(model)}"><span>There is no log '
            f"without the load: take {text(model)} as the bare arm, exactly</span></label>"
        )
    inside += f"{ticks('for', choices['controllers'], (), 'Write it for controllers')}"
    return form("use/payload", f'{inside}<button class="main">Weigh</button>{command_of_form("payload")}')


def load_html(run: ShelvedRun) -> Html:
    """What a `run` has weighed, with error bars."""
    try:
        result = run.result()
        loads = result.get("loads") or {"": result}
        shown = [_load(name, load) for name, load in loads.items()]
    except _ODD:
        shown = [Html("")]
    return join(
        Html(f"<h3>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h3>"),
        glance_html(run.summary.glance), *shown, files_html(run),
    )  # fmt: skip


def _load(name: str, load: Mapping[str, Any]) -> Html:
    shown = load["parameters"]["shown"]
    mass, centre, inertia = load["mass"], load["center_of_gravity"], load["inertia"]
    rows = [("mass", "kg", mass["value"], mass["standard_error"], shown[0])]
    rows += [
        (f"centre of gravity {axis}", "mm", 1e3 * centre["value"][k], 1e3 * centre["standard_error"][k], shown[1 + k])
        for k, axis in enumerate(_AXES)
    ]
    rows += [
        (f"inertia {m}", "kg m²", inertia["value"][m], inertia["standard_error"][m], shown[_PLACES[m]])
        for m in _MOMENTS
    ]
    cells = [
        [what, unit, whisker(value, 1.96 * error), Known(value, error), 1.96 * error, "" if seen else "not shown"]
        for what, unit, value, error, seen in rows
    ]
    columns: list[TableColumn | str] = [
        "what",
        "unit",
        "on its own scale",
        "value",
        TableColumn("± 95 %", digits=2),
        "remark",
    ]
    title = f"{name + ': ' if name else ''}load in frame '{load['frame']}', inertia about its centre of gravity"
    return table_html(columns, cells, title, "The data do not tell it.")


# ------------------------------------------------------------ friction, and other logs


def log_ticks(logs: Sequence[ListedLog], roles: Sequence[str], legend: str) -> Html:
    """`logs` to be ticked, below a `legend`; those of the first of `roles` that has any are."""
    chosen: list[str] = next((of for role in roles if (of := [log.text for log in logs if role in log.roles])), [])
    options = [(log.text, f"{log.text} ({', '.join(log.roles) or 'not used'})") for log in logs]
    return ticks("log", options, chosen, legend)


def friction_html(run: ShelvedRun) -> Html:
    """The last `run` of friction, whose figure is made when it is looked at."""
    figure = attribute(f"/data/use/friction?{urlencode({'run': run.name})}")
    return join(
        Html(f"<h3>{library_link(run.name, run=run.name)}, {when_words(run.when)}</h3>"),
        glance_html(run.summary.glance),
        Html(f'<div data-later="{figure}" aria-busy="true"><p class="hint">Drawing friction over velocity …</p></div>'),
    )


def cards_html(runs: Sequence[ShelvedRun]) -> Html:
    """`runs`, each with its picture and its sentence."""
    made = "".join(
        f'<div class="card">{run.summary.picture}<p>{library_link(run.name, run=run.name)} <span class="hint">'
        f"{when_words(run.when)}</span></p><p>{text(run.summary.glance.sentence)}</p></div>"
        for run in runs
    )
    return Html(f'<div class="cards">{made}</div>' if made else "")
