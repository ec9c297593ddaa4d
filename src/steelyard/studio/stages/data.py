"""The stage *Data*: what was recorded, what it is for, and what its columns mean."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode

from steelyard.errors import SteelyardError
from steelyard.project import ROLES
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.signals.table import READERS
from steelyard.studio.mapping_page import answers_of, away_html, editor_html, lines_of, proposal_html, write_mapping
from steelyard.studio.meanings import draw_short, edited, facts, meaning, proposed, readable, scene
from steelyard.studio.page import attribute, button, choice, command_line, drop_zone, form, trouble
from steelyard.studio.place import StudioError
from steelyard.studio.pyramid import Pyramid
from steelyard.studio.roles import (
    LOGS,
    ListedLog,
    first_needed,
    forget_pyramids,
    listed_logs,
    log_named,
    pyramid_file,
    role_of_name,
    set_role,
)
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing

_MEANING = {
    "": "not used",
    "identify": "identify: the model is fitted to it",
    "validate": "validate: judges the model",
    "friction": "friction: constant speeds",
    "payload": "payload: carries a load",
    "bare": "bare: the same without the load",
    "healthy": "healthy: later logs are compared with it",
}
_TEACH = """<div class="callout note" role="note"><span class="sign" aria-hidden="true">i</span><div>
<strong class="word">What a log needs.</strong> A clock, the position of every joint, and its torque or motor current, a
row for each sample (100 Hz or more); velocities help. Half a minute to a few minutes of a motion in which every joint
speeds up, slows down and turns back: the stage Motion designs one. A second log of another motion lets the model be
judged by what it has not seen.</div></div>"""


class DataStage(Stage):
    """What was recorded."""

    name = "data"
    title = "Data"
    scripts = ("later.js", "tiles.js", "strips.js", "plot_parts.js", "plot.js", "data.js")

    async def standing(self, desk: Desk) -> Standing:
        try:
            logs = [log for log in listed_logs(desk.place).values() if log.roles]
        except SteelyardError:
            return Standing("bad", "the project file cannot be used")
        if not logs:
            return Standing("empty", "drop a log")
        if any(log.size < 0 for log in logs):
            return Standing("bad", "a log is gone")
        if not any("identify" in log.roles for log in logs):
            return Standing("warning", "no log to identify from")
        mapped = ", mapped" if desk.place.project().mapping else ", no mapping"
        return Standing("done", f"{len(logs)} log{'s' if len(logs) > 1 else ''}{mapped}")

    async def body(self, desk: Desk, query: Sent) -> Html:
        logs = listed_logs(desk.place)
        suffixes = sorted({ending for kind in READERS.values() for ending in kind.suffixes})
        drop = drop_zone(
            LOGS, "data/add", "Logs of the robot's motion", ",".join([*suffixes, ".gz", ".bz2", ".xz", ".zst"])
        )
        formats = Html(f'<p class="hint">{text(", ".join(suffixes))}; of any size.</p>')
        head = Html("<h1>Data</h1>")
        if not logs:
            return join(head, Html(_TEACH), drop, formats)
        chosen = logs.get(query.get("log", ""), next(iter(logs.values())))
        rows = [_row(log, log is chosen) for log in logs.values()]
        table = table_html(
            ["log", "what it is for", "what it holds", Html('<span class="unseen">remove</span>')],
            rows,
            "Logs of this project",
        )
        return join(head, table, drop, formats, *_chosen(desk, chosen, bool(query.get("propose", ""))))

    def actions(self) -> Mapping[str, Action]:
        return {
            "add": _add,
            "role": _role,
            "use": _use,
            "edit": _edit,
            "unmap": _unmap,
            "remove": _remove,
            "draw": _draw,
        }

    async def data(self, desk: Desk, what: str, query: Sent) -> Any:
        """What scripts of the page ask for: `facts` and `meaning` of a log (HTML), its `plot`, the robot's `scene`."""
        log = log_named(desk.place, query["log"])
        if what == "scene":
            return await desk.aside.ask(scene, str(pyramid_file(desk.place, log)))
        if what == "facts":
            return _facts_html(await desk.aside.ask(facts, log.text))
        if what == "meaning":
            return await _meaning_html(desk, log, bool(query.get("propose", "")))
        if what == "plot":
            return await _plot(desk, log, query)
        raise StudioError("There is nothing at this address.")


# ---------------------------------------------------------------- what is shown


def _row(log: ListedLog, here: bool) -> list[str]:
    roles = [(role, _MEANING[role]) for role in ("", *ROLES)]
    hidden = f'<input type="hidden" name="log" value="{attribute(log.text)}">'
    menu = choice("role", f"What {log.text} is for", roles, log.role, hide_label=True)
    mark = ' aria-current="true"' if here else ""
    link = f'<a href="/data?{urlencode({"log": log.text})}"{mark}>{text(log.text)}</a>'
    others = f' <span class="hint">and {text(", ".join(log.roles[1:]))}</span>' if log.roles[1:] else ""
    ask = f"Remove {log.text} from the project? The file goes to the trash folder, .steelyard/trash."
    gone = callout("bad", "There is no such file any more; drop it again, or remove it.")
    told = _later("facts", "Reading its head …", log=log.text)
    role = Html(form("data/role", hidden + menu, live=True, kind="inline") + others)
    held = join(_bytes(log.size), told) if log.size >= 0 else gone
    return [Html(link), role, held, button("data/remove", "Remove", "danger", ask, log=log.text)]


def _chosen(desk: Desk, log: ListedLog, anew: bool) -> list[str]:
    """Of the log that is looked at: what its columns mean, its plot beside the robot, the command."""
    project = desk.place.project()
    title = Html(f"<h2>{text(log.text)}</h2>")
    if log.size < 0:
        return [title, trouble(f"{log.text}: there is no such file.")]
    columns = _later("meaning", "Looking at the columns …", log=log.text, propose="1" if anew else "")
    robot = [project.robot] if project.robot else []
    same = command_line(shlex.join(["steelyard", "map", log.text, *robot, "-o", project.mapping or "columns.toml"]))
    if not project.robot:
        why = "Choose the robot first: with it joints get their names, units are checked, and the log is drawn."
        return [title, callout("note", why), columns, same]
    of = pyramid_file(desk.place, log).name
    source = f"/data/data/plot?{urlencode({'log': log.text, 'of': of})}"
    drawn = Html(
        f'<div class="plot-and-robot"><div data-plot="{attribute(source)}" data-log="{attribute(log.text)}" '
        f'data-title="What was recorded"></div><figure class="follower" data-follows="{attribute(log.text)}">'
        '<div class="space"><canvas tabindex="0" role="img" aria-label="The robot in the posture at the cursor of the '
        'plot; arrow keys turn it"></canvas></div><figcaption>The robot follows the cursor in the plot.</figcaption>'
        '</figure></div><div id="values"></div>'
    )  # fmt: skip
    if not project.mapping:
        as_it_is = Html('<p class="hint">Drawn as the commands read it now, without a mapping.</p>')
        return [title, columns, same, as_it_is, drawn, _again(desk, log)]
    return [title, drawn, _again(desk, log), Html("<h3>What the columns mean</h3>"), columns, same]


def _again(desk: Desk, log: ListedLog) -> Html:
    """A button, where the plot of a long log did not come to be."""
    job = _job_of(desk, log)
    if job is None or job.live or job.state == "done":
        return Html("")
    return button("data/draw", "Draw it again", log=log.text)


async def _meaning_html(desk: Desk, log: ListedLog, anew: bool) -> Html:
    mapping = desk.place.project().mapping
    made: list[str] = []
    if mapping and not anew:
        link = f"/data?{urlencode({'log': log.text, 'propose': '1'})}"
        made.append(
            Html(f'<p>As <strong>{text(mapping)}</strong> says. <a href="{attribute(link)}">Propose anew</a></p>')
        )
    else:
        try:
            found = await desk.aside.ask(proposed, log.text, {}, {})
            made.append(proposal_html(log.text, found))
        except StudioError as error:
            made.append(callout("warning", str(error)))
    found = await desk.aside.ask(meaning, log.text)
    editor = editor_html(log.text, found)
    if mapping:
        made += [editor, away_html(mapping)]
    else:
        made.append(Html(f'<details id="by-column"><summary>Change it column by column</summary>{editor}</details>'))
    return join(*made)


def _facts_html(found: Mapping[str, Any]) -> Html:
    if found["error"]:
        return callout("bad", str(found["error"]))
    about = "" if found["exact"] else "about "
    words = [f"{about}{found['rows']:,} samples".replace(",", " "), f"{found['columns']} columns"]
    if "rate" in found:
        words.insert(1, f"{found['rate']:.4g} Hz")
        words.append({"torque": "torques", "current": "currents, no constants"}.get(found["torque"], "no torques"))
    said = [
        Html(f'<p class="finding {"warning" if kind == "warning" else "bad"}">{text(message)}</p>')
        for kind, message in found.get("findings", [])[:3]
    ]
    return join(" · ".join(words), *said)


def _later(what: str, words: str, **query: str) -> Html:
    """What takes a moment: `words` until it is there."""
    address = attribute(f"/data/data/{what}?{urlencode(query)}")
    return Html(f'<div class="{what}" data-later="{address}" aria-busy="true">{text(words)}</div>')


def _bytes(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{max(size, 0)} B"


# ---------------------------------------------------------------- what is done


def _looking_at(log: str) -> Sent:
    return Sent([("log", log)])


async def _body(desk: Desk, log: str, *above: str) -> Html:
    return join(*above, await STUDIO_STAGES["data"].body(desk, _looking_at(log)))


async def _add(desk: Desk, sent: Sent) -> Html:
    """Take files that have come; what cannot be read is told in the reader's words, and gone."""
    place, refused, taken = desk.place, list[str](), ""
    judged = any(role_of_name(PurePosixPath(name).stem) == "validate" for name in sent.all("file"))
    for name in sent.all("file"):
        path = place.inside(name)
        known = listed_logs(place).get(name)
        if path.parent != place.root / LOGS or not path.is_file() or (known is not None and known.roles):
            raise StudioError(f"{name} did not come to {LOGS} just now; drop it again.")
        try:
            await desk.aside.ask(readable, name)
        except StudioError as error:
            path.unlink(missing_ok=True)
            refused.append(str(error))
            continue
        taken = taken or name
        # Of several that are called "ident…" one judges all the same, unless another is called so.
        told = role_of_name(path.stem)
        plain = told in ("", "identify")
        set_role(place, name, told if not plain else "identify" if judged else first_needed(place))
        if not place.project().mapping and place.project().robot:
            refused += await _mapped(desk, name)
    return await _body(desk, taken, *(trouble(message) for message in refused))


async def _mapped(desk: Desk, log: str) -> list[str]:
    """Write the mapping of a log where all is certain; what it cannot be read for, where it cannot."""
    try:
        found = await desk.aside.ask(proposed, log, {}, {})
    except StudioError as error:
        return [str(error)]
    if found["certain"]:
        write_mapping(desk.place, found["toml"])
    return []


async def _role(desk: Desk, sent: Sent) -> Html:
    log = log_named(desk.place, sent["log"])
    set_role(desk.place, log.text, sent["role"])
    return await _body(desk, log.text)


async def _use(desk: Desk, sent: Sent) -> Html:
    log = log_named(desk.place, sent["log"])
    found = await desk.aside.ask(proposed, log.text, *answers_of(sent))
    write_mapping(desk.place, found["toml"])
    return await _body(desk, log.text)


async def _edit(desk: Desk, sent: Sent) -> Html:
    log = log_named(desk.place, sent["log"])
    _, numbers = answers_of(sent)
    made = await desk.aside.ask(edited, log.text, lines_of(sent), sent.get("rate", ""), numbers)
    write_mapping(desk.place, made)
    return await _body(desk, log.text)


async def _unmap(desk: Desk, sent: Sent) -> None:
    desk.place.set(mapping=None)


async def _remove(desk: Desk, sent: Sent) -> Html:
    log = log_named(desk.place, sent["log"])
    set_role(desk.place, log.text, "")
    forget_pyramids(desk.place, log)
    if log.size >= 0 and log.path.resolve().is_relative_to(desk.place.root):  # a file elsewhere is not the studio's
        desk.place.trash(log.path)
    return await _body(desk, "")


# ---------------------------------------------------------------- plots


def _job_of(desk: Desk, log: ListedLog) -> Any:
    """The job that makes, or made, the plot of a log as it is now."""
    words = _words(desk, log)
    return next((job for job in desk.jobs.of_stage("data") if job.words == words), None)


def _words(desk: Desk, log: ListedLog) -> tuple[str, ...]:
    return ("-m", "pyramid", log.text, str(pyramid_file(desk.place, log)))


async def _plot(desk: Desk, log: ListedLog, query: Sent) -> Any:
    """Of the pyramid of a log: a window as bytes, a sample, or what it is about; it is made if there is none."""
    target = pyramid_file(desk.place, log)
    if query.get("of", target.name) != target.name:
        raise StudioError("The log, its mapping or the robot is another than it was; reload the page.")
    try:
        if "t0" in query:
            part = float(query["t0"]), float(query["t1"]), int(query["pixels"])
            return await asyncio.to_thread(lambda: Pyramid.open(target).window(*part).to_bytes())
        if "at" in query:
            t, values = await asyncio.to_thread(Pyramid.open(target).at, float(query["at"]))
            return json.dumps({"t": t, "values": values.tolist()})
    except (ValueError, OSError):
        raise StudioError("The plot is not there any more; reload the page.") from None
    if not target.exists():
        job = _job_of(desk, log)
        if job is not None and job.live:
            return {"wait": f"The log is long: its plot is being made (see Jobs, {job.title})."}
        if job is not None and job.state != "done":
            raise StudioError(job.message)
        if not await desk.aside.ask(draw_short, log.text, str(target), seconds=120.0):
            await _draw(desk, _looking_at(log.text))
            return {"wait": "The log is long: its plot is being made (see Jobs)."}
    forget_pyramids(desk.place, log, but=target)
    return Pyramid.open(target).about()


async def _draw(desk: Desk, sent: Sent) -> None:
    log = log_named(desk.place, sent["log"])
    old = _job_of(desk, log)
    if old is not None and not old.live:
        desk.jobs.clear(old.id)
    if old is None or not old.live:
        desk.jobs.add("data", f"Plot of {log.path.name}", _words(desk, log))


STUDIO_STAGES.register("data")(DataStage())
