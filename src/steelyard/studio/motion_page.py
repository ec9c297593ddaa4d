"""The pieces of the page of a motion: the form, the search at work, what came of it, and what to take to the robot."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from steelyard.ground.numbers import number
from steelyard.report.elements import (
    CalloutKind,
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
from steelyard.studio.motion_settings import ASKED, BOX_SIDES, LIMIT_COLUMNS, limit_text, search_words
from steelyard.studio.page import attribute, button, choice, command_line, entry, form, trouble
from steelyard.studio.place import StudioError

_LABELS = {a.name: a for a in ASKED}
_WORDS = {
    "cond": "condition number", "information": "its square", "frobenius": "its smooth sister",
    "d": "all error bars (D)", "a": "mean variance (A)", "e": "worst direction (E)", "sigma": "worst direction (σ)",
}  # fmt: skip


def address(run: str, name: str) -> str:
    """Where the file `name` of a `run` is had, for an attribute."""
    return attribute(quote(f"/file/{run}/{name}"))


def no_robot() -> Html:
    """What the stage says before there is a robot."""
    return join(
        Html("<h1>Motion</h1>"),
        paragraph(
            "A log shows only the parameters that its motion excites. Here a motion is designed that shows them all, "
            "within limits that hold at every instant: joints, torques, a box, a floor, the arm itself."
        ),
        callout("note", Html('It needs a robot: <a href="/robot">choose one</a> first.')),
    )


# ------------------------------------------------------------ the form


def settings_form(facts: Mapping[str, Any], given: Mapping[str, str], terms: str, first: bool) -> Html:
    """All that can be asked for.

    Args:
        facts: as `motion_facts` tells them.
        given: what the fields hold.
        terms: what the project names, "" if nothing.
        first: whether there is no motion yet; later it is shown when it is asked for.
    """

    def field(name: str, hint: str = "none", **more: str) -> Html:
        asked = _LABELS[name]
        return entry(name, asked.label, given.get(name, ""), asked.unit, inputmode="decimal", placeholder=hint, **more)

    show = [("default", "links, rotors and friction, as identify fits them"), ("", "the links alone")]
    if terms:
        show = [("", f"as the project has them: {terms}"), show[0]]
    bodies = "where the file has bodies" if facts["collision"] else "no: the robot's file has no bodies"
    apart = [("", bodies), ("yes", "yes"), ("no", "no")]
    links = [("", f"{facts['links'][-1]} (the last)"), *((name, name) for name in facts["links"][:-1])]
    by = [("gradient", "gradients (quick)"), ("ga", "a genetic algorithm"), ("cma", "CMA-ES")]
    criteria = [(name, f"{_WORDS.get(name, name)}, {of}") for name, of in facts["criteria"]]
    box = "".join(
        entry(name, f"{name[0]} {'from' if name[1] == '0' else 'to'}", given.get(name, ""), "m", inputmode="decimal",
              placeholder="none")
        for name in BOX_SIDES
    )  # fmt: skip

    def menu(name: str, options: Sequence[tuple[str, str]]) -> Html:
        return choice(name, _LABELS[name].label, options, given.get(name, ""))

    inside = (
        f"<fieldset><legend>Limits of each joint</legend>{_limits_table(facts['joints'])}"
        '<p class="hint">Empty: the robot&#39;s own. They are kept in the project file, under [limits].</p></fieldset>'
        f"<fieldset><legend>Space</legend>{field('floor')}{menu('collision', apart)}{field('clearance')}"
        f'<details id="motion-box"{" open" if any(given.get(s) for s in BOX_SIDES) else ""}><summary>A box that a link '
        f"stays in</summary>{box}{menu('frame', links)}</details></fieldset>"
        f"<fieldset><legend>Search</legend>{field('duration')}{menu('criterion', criteria)}{menu('terms', show)}"
        f"{field('time', 'until it is done')}{field('seed')}"
        f'<details id="motion-more"><summary>More</summary>{menu("optimiser", by)}'
        f'<span class="bred">{field("population")}{field("generations")}</span>{field("harmonics")}{field("rate")}'
        f"{field('torque_margin')}</details></fieldset>"
        f'<div id="motion-command" role="status">{_command(given)}</div>'
        '<button class="main">Start the search</button>'
    )
    asked = form("motion/start", inside, kind="motion-form")
    if first:
        return asked
    return Html(f'<details id="motion-again"><summary>Limits, and another search</summary>{asked}</details>')


def _command(given: Mapping[str, str]) -> Html:
    try:
        return command_line(shlex.join(["steelyard", *search_words(given)]))
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
            own, whose = joint["own"][key], f"{joint['name']}, {name}, {unit(joint, per)}"
            behind = "" if same[key] else f'<span class="unit">{text(unit(joint, per))}</span>'
            cells.append(
                f'<td><span class="cell"><input name="{key}_{k}" value="{attribute(limit_text(joint["now"][key]))}" '
                f'inputmode="decimal" placeholder="{attribute("none" if own is None else limit_text(own))}" '
                f'aria-label="{attribute(whose)}">{behind}</span></td>'
            )
        rows.append(f'<tr><th scope="row">{text(joint["name"])}</th>{"".join(cells)}</tr>')
    return Html(
        '<div class="scroll" tabindex="0"><table class="limits" aria-label="Limits of each joint"><thead><tr>'
        f'<th scope="col">joint</th>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


# ------------------------------------------------------------ at work


def search_panel(job: StudioJob) -> Html:
    """A search at work, which is a `job`: its curve, and how it is ended."""
    wait = "" if job.state == "running" else paragraph("It waits: two jobs run at a time.")
    stop = button("motion/stop", "Stop and take the best", "main", id=job.id)
    if job.message == BEING_STOPPED:
        stop = callout("note", "It is being stopped: the best motion so far is brought within all limits and written.")
    cancel = button("motion/cancel", "Cancel", "danger", ask="End the search and write nothing?", id=job.id)
    return Html(
        f'<section id="motion-search" class="job" data-job="{job.id}" data-state="{job.state}">'
        f"<h2>The search</h2>{wait}"
        f'<progress max="1" value="0" aria-label="How far the search is"></progress>'
        f'<p class="how" aria-live="off">begins: the first motion takes a few seconds</p>{curve(job.id)}'
        '<p class="hint">Line: the best so far. Dots: what is being tried. Diamond: brought within all limits.</p>'
        f'<div class="row">{stop}{cancel}</div>{command_line(job.command)}</section>'
    )


def curve(job: str = "", history: Sequence[Sequence[float]] = (), of: str = "") -> Html:
    """A curve of the best value over the evaluations: of a `job` as it tells them, or its `history`; `of` says what the
    values are of."""
    kept = f' data-history="{attribute(json.dumps(list(history)))}" data-of="{attribute(of)}"' if history else ""
    whose = f' data-curve="{attribute(job)}"' if job else " data-curve"
    return Html(f'<div class="curve"{whose}{kept}><p class="hint">No motion has been tried yet.</p></div>')


def rehearsal_panel(job: StudioJob) -> Html:
    """A rehearsal at work, which is a `job`: robot after robot, as they are judged."""
    heads = "".join(f'<th scope="col">{h}</th>' for h in _TRIAL_HEADS)
    return Html(
        f'<section class="job" data-job="{job.id}" data-state="{job.state}"><h2>Rehearsal</h2>'
        '<progress max="1" value="0" aria-label="How far the rehearsal is"></progress>'
        '<p class="how">simulated robots are being planted</p>'
        f'<div class="scroll" tabindex="0"><table data-trials="{job.id}" aria-label="Robots so far"><thead><tr>{heads}'
        f"</tr></thead><tbody></tbody></table></div>{button('motion/cancel', 'Cancel', 'danger', id=job.id)}</section>"
    )


# ------------------------------------------------------------ what came of it


def result_panel(run: str, result: Mapping[str, Any], others: Sequence[str], goes_on: str) -> Html:
    """A motion that was found.

    Args:
        run: its folder.
        result: its result.json.
        others: other motions in the folder, to be chosen instead.
        goes_on: the job whose search can go on from here, "" if none.
    """
    verdict, criterion, plan = result["verdict"], result["criterion"], result["plans"][-1]
    kind: CalloutKind = "good" if verdict["grade"] == "good" else "warning"
    notes = [callout("note", note) for note in result["notes"] if note not in verdict["reasons"]]
    said = " ".join([verdict["sentence"], *verdict["reasons"]])
    random = result["random_motion"]["condition_number"]
    facts = (
        f"Condition number {number(result['condition_number'])} (a random motion: {number(random)}) of "
        f"{result['base_parameters']['count']} base parameters; {number(plan['duration'])} s; "
        f"{criterion['evaluations']} evaluations."
    )
    more = button("motion/continue", "Continue the search", id=goes_on) if goes_on else ""
    menu = choice("run", "Motion", [(name, name) for name in others], run) if len(others) > 1 else ""
    pick = form("motion/pick", menu, live=True, kind="inline") if menu else ""
    report = address(run, "report.html")
    return Html(
        f'<section id="motion-found" data-run="{attribute(run)}"><h2>The motion '
        f'<span class="hint">{text(run)}</span></h2>'
        f"{pick}{callout(kind, said)}{join(*notes)}{paragraph(facts)}{more}"
        f'<div data-later="/data/motion/shown?run={attribute(quote(run))}" aria-busy="true">'
        '<p class="hint">The arm is being drawn …</p></div>'
        f"{_joints(result)}{_margins(plan)}<h3>The search</h3>{curve('', criterion['history'], criterion['of'])}"
        f'<details id="motion-report"><summary>The whole report</summary><p><a href="{report}" target="_blank" '
        f'rel="noopener">Open it in a page of its own</a></p><iframe class="report" loading="lazy" '
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
    said = "The description gives no inertias, or no limit."
    return table_html(columns, rows, "Ranges and peaks, in rad or m, s, N m or N", dash=said)


def _margins(plan: Mapping[str, Any]) -> Html:
    rows: list[list[TableCell]] = [
        [name, None if x is None else 0.0 - 100.0 * x] for name, x in plan["margins"].items()
    ]
    room = TableColumn("room left", "% (distances: cm)", places=2)
    return table_html(["limit", room], rows, "How near the limits come", dash="There is no such limit.")


_TRIAL_HEADS = (
    "robot",
    "outside its error bars",
    "of a limit [%]",
    "of a torque limit [%]",
    "of the allowed error [%]",
)


def rehearsal(robot: str, run: str, result: Mapping[str, Any] | None, rehearsed: str) -> Html:
    """What a rehearsal by `robot` of the motion in `run` said: the `result` in folder `rehearsed`, or None; and the
    button."""
    again = command_line(shlex.join(["steelyard", "rehearse", robot, run]))
    ask = button("motion/rehearse", "Rehearse it" if result is None else "Rehearse it again", "" if result else "main",
                 run=run)  # fmt: skip
    if result is None:
        said = paragraph(
            "Before anyone moves hardware: five simulated robots with planted parameters play the motion, with "
            "real-life sensors; are the parameters found again?"
        )
        return Html(f'<section id="motion-rehearsal"><h2>Rehearsal</h2>{said}{ask}{again}</section>')
    rows: list[list[TableCell]] = [
        [k + 1, t["outside"], *(None if t[key] is None else 100.0 * t[key] for key in _TRIAL_KEYS)]
        for k, t in enumerate(result["trials"])
    ]
    columns = [TableColumn(head, digits=3) for head in _TRIAL_HEADS]
    reasons = "".join(f"<li>{'✓' if r['passed'] else '✕'} {text(r['text'])}</li>" for r in result["reasons"])
    return Html(
        f'<section id="motion-rehearsal"><h2>Rehearsal <span class="hint">{text(rehearsed)}</span></h2>'
        f"{callout('good' if result['passed'] else 'bad', result['verdict'])}<ul>{reasons}</ul>"
        f"{table_html(columns, rows, 'Robots that were planted', dash='There is no such limit.')}"
        f'<p><a href="{address(rehearsed, "report.html")}" target="_blank" rel="noopener">Its report</a></p>{ask}'
        f"{again}</section>"
    )


_TRIAL_KEYS = ("share_of_limit", "share_of_torque_limit", "error_over_allowed")


def downloads(run: str, files: Sequence[tuple[str, Sequence[str]]], targets: Sequence[Mapping[str, str]]) -> Html:
    """What to take to the robot of the motion in `run`: `files` by the run that holds them, a form that writes more
    for `targets`."""
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
    asked = form(
        "motion/write",
        f'<input type="hidden" name="run" value="{attribute(run)}"><fieldset><legend>Write it for</legend>{ticks}'
        "</fieldset><button>Write the files</button>",
    )
    said = "Each is written at 25, 50 and 100 % of the speed, to be played in this order; play.md says how."
    return Html(
        f'<section id="motion-downloads"><h2>For the robot</h2>{paragraph(said)}{asked}{"".join(lists)}'
        f"{command_line(f'steelyard excite --motion {shlex.quote(run)} --for csv')}</section>"
    )
