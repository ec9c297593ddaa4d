"""HTML of the stage *Motion*: the form, the running search, its result, the rehearsal, and files for the robot."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from steelyard.ground.grades import Tone
from steelyard.ground.numbers import number
from steelyard.report.elements import (
    Html,
    TableCell,
    TableColumn,
    callout,
    join,
    paragraph,
    table_html,
    text,
)
from steelyard.studio.jobs import BEING_STOPPED, StudioJob
from steelyard.studio.motion_settings import BOX_SIDES, LIMIT_COLUMNS, SEARCH_OPTIONS, limit_text, search_command
from steelyard.studio.page import attribute, button, choice, command_line, entry, form, trouble
from steelyard.studio.studio_folder import StudioError

_LABELS = {a.name: a for a in SEARCH_OPTIONS}
_WORDS = {
    "cond": "condition number", "information": "its square", "frobenius": "its smooth variant",
    "d": "all error bars (D)", "a": "mean variance (A)", "e": "worst direction (E)", "sigma": "worst direction (σ)",
}  # fmt: skip


def address(run: str, name: str) -> str:
    """Return the address of a file of a run, quoted for an attribute.

    Args:
        run: The run.
        name: Name of the file.
    """
    return attribute(quote(f"/file/{run}/{name}"))


def no_robot() -> Html:
    """Render the stage for a project without a robot."""
    return join(
        Html("<h1>Motion</h1>"),
        paragraph(
            "Only excited parameters are identifiable. This stage designs a motion that excites all of them, within "
            "the limits of joints and torques, a box, the floor and self-collisions."
        ),
        callout("note", Html('<a href="/robot">Choose a robot</a> first.')),
    )


# ------------------------------------------------------------ the form


def settings_form(facts: Mapping[str, Any], settings: Mapping[str, str], terms: str, first: bool) -> Html:
    """Render the form of a search.

    Args:
        facts: Data of the robot, from `motion_facts`.
        settings: Values of the fields.
        terms: Terms of the project; "" if none.
        first: Whether this is the first search; otherwise the form is folded.
    """

    def field(name: str, hint: str = "none", **more: str) -> Html:
        option = _LABELS[name]
        value = settings.get(name, "")
        return entry(name, option.label, value, option.unit, inputmode="decimal", placeholder=hint, **more)

    excited = [("default", "links, rotors and friction (as identify)"), ("", "links only")]
    if terms:
        excited = [("", f"as in the project: {terms}"), excited[0]]
    bodies = "yes" if facts["collision"] else "no (the robot's file lacks collision bodies)"
    collision = [("", f"automatic: {bodies}"), ("yes", "yes"), ("no", "no")]
    links = [("", f"{facts['links'][-1]} (last)"), *((name, name) for name in facts["links"][:-1])]
    optimisers = [("gradient", "gradients (fast)"), ("ga", "genetic algorithm"), ("cma", "CMA-ES")]
    criteria = [(name, f"{_WORDS.get(name, name)}, {of}") for name, of in facts["criteria"]]
    box = "".join(
        entry(name, f"{name[0]} {'from' if name[1] == '0' else 'to'}", settings.get(name, ""), "m", inputmode="decimal",
              placeholder="none")
        for name in BOX_SIDES
    )  # fmt: skip

    def menu(name: str, options: Sequence[tuple[str, str]]) -> Html:
        return choice(name, _LABELS[name].label, options, settings.get(name, ""))

    box_open = " open" if any(settings.get(side) for side in BOX_SIDES) else ""
    inside = (
        f"<fieldset><legend>Joint limits</legend>{_limits_table(facts['joints'])}"
        '<p class="hint">Empty: limit of the robot&#39;s file. Limits are saved under [limits] in the project.</p>'
        f"</fieldset><fieldset><legend>Space</legend>{field('floor')}{menu('collision', collision)}{field('clearance')}"
        f'<details id="motion-box"{box_open}><summary>Keep a link inside a box</summary>{box}{menu("frame", links)}'
        "</details></fieldset>"
        f"<fieldset><legend>Search</legend>{field('duration')}{menu('criterion', criteria)}{menu('terms', excited)}"
        f"{field('time', 'no time limit')}{field('seed')}"
        f'<details id="motion-more"><summary>More</summary>{menu("optimiser", optimisers)}'
        f'<span class="evolution">{field("population")}{field("generations")}</span>{field("harmonics")}'
        f"{field('rate')}{field('torque_margin')}</details></fieldset>"
        f'<div id="motion-command" role="status">{_command(settings)}</div>'
        '<button class="main">Start the search</button>'
    )
    html = form("motion/start", inside, kind="motion-form")
    if first:
        return html
    return Html(f'<details id="motion-again"><summary>Limits, and another search</summary>{html}</details>')


def _command(settings: Mapping[str, str]) -> Html:
    try:
        return command_line(shlex.join(["steelyard", *search_command(settings)]))
    except StudioError as error:
        return trouble(str(error))


def _limits_table(joints: Sequence[Mapping[str, Any]]) -> Html:
    def unit(joint: Mapping[str, Any], per: str | None) -> str:
        return str(joint["effort_unit"] if per is None else joint["unit"] + per)

    heads, same = [], {}
    for key, name, per in LIMIT_COLUMNS:
        units = {unit(joint, per) for joint in joints}
        same[key] = len(units) == 1
        words = f' <span class="unit">[{text(units.pop())}]</span>' if same[key] else ""
        heads.append(f'<th scope="col">{text(name)}{words}</th>')
    rows = []
    for k, joint in enumerate(joints):
        cells = []
        for key, name, per in LIMIT_COLUMNS:
            own, label = joint["own"][key], f"{joint['name']}, {name}, {unit(joint, per)}"
            suffix = "" if same[key] else f'<span class="unit">{text(unit(joint, per))}</span>'
            cells.append(
                f'<td><span class="cell"><input name="{key}_{k}" value="{attribute(limit_text(joint["now"][key]))}" '
                f'inputmode="decimal" placeholder="{attribute("none" if own is None else limit_text(own))}" '
                f'aria-label="{attribute(label)}">{suffix}</span></td>'
            )
        rows.append(f'<tr><th scope="row">{text(joint["name"])}</th>{"".join(cells)}</tr>')
    return Html(
        '<div class="scroll" tabindex="0"><table class="limits" aria-label="Joint limits"><thead><tr>'
        f'<th scope="col">joint</th>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


# ------------------------------------------------------------ running jobs


def search_panel(job: StudioJob) -> Html:
    """Render the running search `job`: its curve, and buttons that end it."""
    wait = "" if job.state == "running" else paragraph("The search waits until another job ends.")
    stop = button("motion/stop", "Stop and use the best motion", "main", id=job.id)
    if job.message == BEING_STOPPED:
        stop = callout("note", "Stopping: the best motion so far is adjusted to all limits and saved.")
    cancel = button("motion/cancel", "Cancel", "danger", ask="Cancel the search without saving a motion?", id=job.id)
    return Html(
        f'<section id="motion-search" class="job" data-job="{job.id}" data-state="{job.state}">'
        f"<h2>The search</h2>{wait}"
        f'<progress max="1" value="0" aria-label="Progress of the search"></progress>'
        f'<p class="how" aria-live="off">starting; the first motion takes a few seconds</p>{curve(job.id)}'
        '<p class="hint">Line: best value so far. Dots: trials. Diamond: motion within all limits.</p>'
        f'<div class="row">{stop}{cancel}</div>{command_line(job.command)}</section>'
    )


def curve(job: str = "", history: Sequence[Sequence[float]] = (), of: str = "") -> Html:
    """Render the curve of the best value over the evaluations, drawn by motion.js.

    Args:
        job: Id of a running search, whose events are drawn.
        history: Evaluations and values of a search that has ended.
        of: Name of the values.
    """
    data = f' data-history="{attribute(json.dumps(list(history)))}" data-of="{attribute(of)}"' if history else ""
    source = f' data-curve="{attribute(job)}"' if job else " data-curve"
    return Html(f'<div class="curve"{source}{data}><p class="hint">No trial yet.</p></div>')


def rehearsal_panel(job: StudioJob) -> Html:
    """Render the running rehearsal `job`: a table with one row per simulated robot."""
    heads = "".join(f'<th scope="col">{h}</th>' for h in _TRIAL_HEADS)
    return Html(
        f'<section class="job" data-job="{job.id}" data-state="{job.state}"><h2>Rehearsal</h2>'
        '<progress max="1" value="0" aria-label="Progress of the rehearsal"></progress>'
        '<p class="how">preparing the simulated robots</p>'
        f'<div class="scroll" tabindex="0"><table data-trials="{job.id}" aria-label="Robots so far"><thead><tr>{heads}'
        f"</tr></thead><tbody></tbody></table></div>{button('motion/cancel', 'Cancel', 'danger', id=job.id)}</section>"
    )


# ------------------------------------------------------------ result


def result_panel(run: str, result: Mapping[str, Any], others: Sequence[str], job: str) -> Html:
    """Render a motion.

    Args:
        run: Its run folder.
        result: Its result.json.
        others: All motions of the folder.
        job: Id of its search if that can be continued, else "".
    """
    verdict, criterion, plan = result["verdict"], result["criterion"], result["plans"][-1]
    kind: Tone = "good" if verdict["grade"] == "good" else "warning"
    notes = [callout("note", note) for note in result["notes"] if note not in verdict["reasons"]]
    words = " ".join([verdict["sentence"], *verdict["reasons"]])
    random = result["random_motion"]["condition_number"]
    facts = (
        f"Condition number {number(result['condition_number'])} (random motion: {number(random)}), "
        f"{result['base_parameters']['count']} base parameters, {number(plan['duration'])} s, "
        f"{criterion['evaluations']} evaluations."
    )
    more = button("motion/continue", "Continue the search", id=job) if job else ""
    menu = choice("run", "Motion", [(name, name) for name in others], run) if len(others) > 1 else ""
    pick = form("motion/pick", menu, live=True, kind="inline") if menu else ""
    report = address(run, "report.html")
    return Html(
        f'<section id="motion-found" data-run="{attribute(run)}"><h2>The motion '
        f'<span class="hint">{text(run)}</span></h2>'
        f"{pick}{callout(kind, words)}{join(*notes)}{paragraph(facts)}{more}"
        f'<div data-lazy="/data/motion/shown?run={attribute(quote(run))}" aria-busy="true">'
        '<p class="hint">Drawing the arm …</p></div>'
        f"{_joints(result)}{_margins(plan)}<h3>The search</h3>{curve('', criterion['history'], criterion['of'])}"
        f'<details id="motion-report"><summary>Full report</summary><p><a href="{report}" target="_blank" '
        f'rel="noopener">Open in a new tab</a></p><iframe class="report" loading="lazy" '
        f'sandbox="allow-scripts" src="{report}" title="Report of the motion"></iframe></details></section>'
    )


def _joints(result: Mapping[str, Any]) -> Html:
    rows: list[list[TableCell]] = []
    for entry_ in result["plans"][-1]["joints"]:
        torque, limit = entry_["torque"], entry_["torque_limit"]
        share = None if torque is None or limit is None else 100.0 * torque / limit
        values = [entry_[x] for x in ("joint", "lowest", "highest", "velocity", "acceleration")]
        rows.append([*values, torque, share])
    names = ("from", "to", "velocity", "acceleration", "torque")
    columns: list[TableColumn | str] = ["joint", *(TableColumn(n) for n in names)]
    columns.append(TableColumn("of its limit", "%", digits=3))
    dash = "The robot's file lacks inertias or limits."
    return table_html(columns, rows, "Ranges and peaks, in rad or m, s, N m or N", dash=dash)


def _margins(plan: Mapping[str, Any]) -> Html:
    rows: list[list[TableCell]] = [
        [name, None if x is None else 0.0 - 100.0 * x] for name, x in plan["margins"].items()
    ]
    margin = TableColumn("margin", "% (distances: cm)", places=2)
    return table_html(["limit", margin], rows, "Margins to the limits", dash="There is no such limit.")


_TRIAL_HEADS = ("robot", "parameters outside their intervals", "of a limit [%]", "of a torque limit [%]",
                "of the allowed error [%]")  # fmt: skip


def rehearsal(robot: str, motion: str, result: Mapping[str, Any] | None, run: str) -> Html:
    """Render the rehearsal of a motion and a button that starts it.

    Args:
        robot: Robot of the project.
        motion: Run folder of the motion.
        result: Result of the rehearsal; None before it.
        run: Run folder of the rehearsal.
    """
    command = command_line(shlex.join(["steelyard", "rehearse", robot, motion]))
    start = button("motion/rehearse", "Rehearse" if result is None else "Rehearse again", "" if result else "main",
                   run=motion)  # fmt: skip
    if result is None:
        words = paragraph(
            "Before you move hardware: five simulated robots with known parameters and realistic sensors perform the "
            "motion. The rehearsal checks whether identification recovers the parameters."
        )
        return Html(f'<section id="motion-rehearsal"><h2>Rehearsal</h2>{words}{start}{command}</section>')
    rows: list[list[TableCell]] = [
        [k + 1, t["outside"], *(None if t[key] is None else 100.0 * t[key] for key in _TRIAL_KEYS)]
        for k, t in enumerate(result["trials"])
    ]
    columns = [TableColumn(head, digits=3) for head in _TRIAL_HEADS]
    reasons = "".join(f"<li>{'✓' if r['passed'] else '✕'} {text(r['text'])}</li>" for r in result["reasons"])
    return Html(
        f'<section id="motion-rehearsal"><h2>Rehearsal <span class="hint">{text(run)}</span></h2>'
        f"{callout('good' if result['passed'] else 'bad', result['verdict'])}<ul>{reasons}</ul>"
        f"{table_html(columns, rows, 'Simulated robots', dash='There is no such limit.')}"
        f'<p><a href="{address(run, "report.html")}" target="_blank" rel="noopener">Report</a></p>{start}'
        f"{command}</section>"
    )


_TRIAL_KEYS = ("share_of_limit", "share_of_torque_limit", "error_over_allowed")


def downloads(run: str, files: Sequence[tuple[str, Sequence[str]]], targets: Sequence[Mapping[str, str]]) -> Html:
    """Render the files of a motion for the robot, and a form that writes more of them.

    Args:
        run: Run folder of the motion.
        files: Names of files by run folder.
        targets: Controllers, from `motion_facts`.
    """
    lists = []
    for folder, names in files:
        links = "".join(f'<li><a href="{address(folder, name)}" download>{text(name)}</a></li>' for name in names)
        lists.append(f'<h3>{text(folder)}</h3><ul class="files">{links}</ul>')
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="for" value="{attribute(t["name"])}"'
        f"{' disabled' if t['why'] else ''}><span>{text(t['title'])}"
        f"{' <span class=hint>(other joints)</span>' if t['why'] else ''}</span></label>"
        for t in targets
    )
    write = form(
        "motion/write",
        f'<input type="hidden" name="run" value="{attribute(run)}"><fieldset><legend>Controllers</legend>{ticks}'
        "</fieldset><button>Write the files</button>",
    )
    words = "Each motion is written at 25, 50 and 100 % speed. Run them in this order, as play.md explains."
    return Html(
        f'<section id="motion-downloads"><h2>For the robot</h2>{paragraph(words)}{write}{"".join(lists)}'
        f"{command_line(f'steelyard excite --motion {shlex.quote(run)} --for csv')}</section>"
    )
