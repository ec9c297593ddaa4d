"""The stage *Check*: are the logs sound, what is wrong, and a button that mends it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from steelyard.errors import SteelyardError
from steelyard.ground.files import write_whole
from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted import read_json
from steelyard.report.elements import Html, callout, commands, join, text
from steelyard.studio.basis import basis_of, fits_now, kept_basis, log_texts, remember_basis, runs_of
from steelyard.studio.check_facts import checked_html, mended_mapping
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, button, command_line, job_html
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing, StandingKind

_TEACH = (
    "Most identifications that fail, fail before the first equation: a sign, two exchanged columns, degrees, a joint "
    "that never moved. Here every log is looked at, what is wrong is shown in order of its harm, and what a mapping "
    "can mend is mended by a button."
)
_GRADES: dict[str, tuple[StandingKind, int]] = {
    "good": ("done", 0), "usable": ("warning", 1), "mend": ("bad", 2), "unusable": ("bad", 3),
}  # fmt: skip


class CheckStage(Stage):
    """Are the logs sound?"""

    name = "check"
    title = "Check"

    async def standing(self, desk: Desk) -> Standing:
        try:
            if _lacking(desk.place):
                return Standing("empty", "needs a robot and a log")
            if _at_work(desk) is not None:
                return Standing("working", "looks at the logs")
            run = _fitting(desk.place)
        except SteelyardError:
            return Standing("empty", "not yet")
        if run is None:
            return Standing("empty", "to be checked")
        found = (run / RESULT).stat()
        return _judged(str(run), found.st_mtime_ns)

    async def body(self, desk: Desk, query: Sent) -> Html:
        place = desk.place
        head = Html("<h1>Check</h1>")
        if lacking := _lacking(place):
            return join(head, callout("note", Html(f"{_TEACH} {lacking}")))
        run, job = _fitting(place), _at_work(desk)
        untried = run is None and job is None and not _tried(desk)
        if untried and place.touched:
            job = _start(desk)
        pieces: list[str] = [head]
        if job is not None:
            pieces += [
                Html('<p class="hint">Every log is looked at; what is wrong will stand here.</p>'),
                job_html(job),
            ]
        elif untried:  # the folder may have come from a stranger: nothing in it starts a job
            pieces += [callout("note", Html(_TEACH)), button("check/start", "Check the logs", "main")]
        elif run is None:
            pieces += _failed(desk)
        if run is not None and job is None:
            return join(*pieces, *await _shown(desk, run))
        pieces.append(_changed(place))
        before = next(iter(runs_of(place, "check")), None)
        if before is not None:
            pieces.append(await _shown_before(desk, before))
        return join(*pieces, command_line("steelyard check"))

    def actions(self) -> Mapping[str, Action]:
        return {"start": _begin, "fix": _fix, "undo": _undo}


# ---------------------------------------------------------------- where it stands


def _lacking(place: StudioFolder) -> str:
    """What must come first, as HTML; "" if nothing."""
    project = place.project()
    if not project.robot:
        return 'Choose the <a href="/robot">robot</a> first.'
    return "" if log_texts(place) else 'Add a <a href="/data">log</a> first.'


def _at_work(desk: Desk) -> StudioJob | None:
    return next((job for job in desk.jobs.of_stage("check") if job.live), None)


def _fitting(place: StudioFolder) -> Path | None:
    """The newest check of the project as it is now."""
    now = basis_of(place)
    return next((run for run in runs_of(place, "check") if fits_now(place, run, now)), None)


def _tried(desk: Desk) -> bool:
    """Whether a check of the project as it is now was begun already, and came to nothing."""
    now = basis_of(desk.place)
    return any(kept_basis(desk.place, job.output) == now for job in desk.jobs.of_stage("check"))


@lru_cache(64)
def _judged(run: str, _changed: int) -> Standing:
    """What the verdict of a check is on the rail."""
    try:
        found = read_json(Path(run) / RESULT, StudioError, "check the logs again").value
        logs = found.get("logs", [found])
        kind, _ = max((_GRADES[log["grade"]] for log in logs), key=lambda one: one[1])
        counts = [sum(e["severity"] == s for log in logs for e in log["entries"]) for s in ("problem", "warning")]
    except (StudioError, ValueError, LookupError, TypeError, AttributeError):
        return Standing("bad", "its result cannot be read")
    for count, word in zip(counts, ("problem", "reservation"), strict=True):
        if count:
            return Standing(kind, f"{count} {word}{'s' if count > 1 else ''}")
    return Standing(kind, "fit for identification")


# ---------------------------------------------------------------- what is shown


def _failed(desk: Desk) -> list[str]:
    """Why there is no check, and a button for another one."""
    job = next(desk.jobs.of_stage("check"), None)
    again = button("check/start", "Check the logs", "main")
    if job is None or job.state == "done":
        return [callout("note", "The project has changed since it was checked."), again]
    return [callout("bad" if job.state == "failed" else "warning", job.message or job.state, "Not checked"), again]


async def _shown(desk: Desk, run: Path) -> list[str]:
    """The check of the project as it is now, with buttons that mend."""
    place, name = desk.place, desk.place.relative(run)
    found = await desk.aside.ask(checked_html, name, log_texts(place), True)
    row, fixes = [button("check/start", "Check again"), _report(name)], found["fixes"]
    if len(fixes) > 1:
        row.insert(0, button("check/fix", f"Apply all {len(fixes)} fixes", "main", key="", log="0", run=name))
    words = [shlex.join(["steelyard", "check", log, "--fix", "mended.toml", "--only", key]) for key, log in fixes[:1]]
    return [
        Html(found["verdict"]), Html(f'<div class="row">{"".join(row)}</div>'), _changed(place),
        Html(found["findings"]), command_line("steelyard check"), *(commands(("One fix:", line)) for line in words),
    ]  # fmt: skip


async def _shown_before(desk: Desk, run: Path) -> Html:
    """A check of what the project was."""
    name = desk.place.relative(run)
    found = await desk.aside.ask(checked_html, name, [], False)
    inside = f"{found['verdict']}{_report(name)}{found['findings']}"
    return Html(f'<details id="before"><summary>What {text(name)} found before</summary>{inside}</details>')


def _report(name: str) -> Html:
    return Html(
        f'<a href="/file/{attribute(quote(name))}/report.html" target="_blank" rel="noopener">Report of this check</a>'
    )


def _changed(place: StudioFolder) -> Html:
    """What was mended last, and how to take it back."""
    last = next(iter(_fixes(place)), None)
    if last is None:
        return Html("")
    before = f"before it was {last['before']}, which is kept" if last["before"] else "before there was none"
    listed = "".join(f"<li>{text(words)}</li>" for words in last["what"])
    left = "".join(f"<li>By hand: {text(words)}</li>" for words in last["by_hand"])
    words = f"Mended in {last['after']}, which is the project's mapping now; {before}."
    return callout("note", Html(f"{text(words)}<ul>{listed}{left}</ul>{button('check/undo', 'Undo')}"), "Changed")


# ---------------------------------------------------------------- what is done


def _start(desk: Desk) -> StudioJob:
    place = desk.place
    output = place.new_run("check", desk.jobs.outputs())
    remember_basis(place, output, basis_of(place))
    count = len(log_texts(place))
    return desk.jobs.add("check", f"Check of {count} log{'s' if count > 1 else ''}", ["check", "-o", output], output)


def _check_again(desk: Desk) -> None:
    """Unless the project as it is now was checked before; a check of what it was is of no use any more."""
    for job in desk.jobs.of_stage("check"):
        if job.live:
            desk.jobs.cancel(job.id)
    if _fitting(desk.place) is None:
        _start(desk)


async def _begin(desk: Desk, sent: Sent) -> None:
    if _at_work(desk) is None:
        _start(desk)


async def _fix(desk: Desk, sent: Sent) -> None:
    """Mend the mapping by one finding, or by all, and check again."""
    place, run = desk.place, desk.place.run(sent["run"])
    if run != _fitting(place):
        raise StudioError("The project has changed since that check; check the logs again.")
    log = int(sent["log"]) if sent["log"].isdecimal() else 0
    made = await desk.aside.ask(mended_mapping, place.relative(run), log_texts(place), sent["key"], log)
    before = place.project().mapping
    if run != _fitting(place):  # in another tab, meanwhile
        raise StudioError("The project has changed since that check; check the logs again.")
    target = place.free_name("", _next_name(before))
    write_whole(target, made["toml"], new=True)
    after = place.relative(target)
    place.set(mapping=after)
    kept = {"before": before, "after": after, "what": made["what"], "by_hand": made["by_hand"], "time": time.time()}
    write_whole(_record(place), json.dumps([kept, *_all_fixes(place)]))
    _check_again(desk)


def _next_name(before: str) -> str:
    """The name of a mapping that takes the place of another: `columns.toml`, then `columns-2.toml`."""
    stem, dash, number = Path(before).stem.rpartition("-")
    named = stem if dash and number.isdecimal() else Path(before).stem
    return f"{named}.toml" if Path(before).suffix == ".toml" and named else "mapping.toml"


async def _undo(desk: Desk, sent: Sent) -> None:
    """Take the last change of the mapping back, and check again."""
    place = desk.place
    last = next(iter(_fixes(place)), None)
    if last is None:
        raise StudioError("There is nothing to undo: the mapping is not the one that a fix has made.")
    place.set(mapping=last["before"] or None)
    with suppress(OSError, SteelyardError):
        place.trash(place.inside(last["after"]))
    write_whole(_record(place), json.dumps(_all_fixes(place)[1:]))
    _check_again(desk)


def _record(place: StudioFolder) -> Path:
    return place.own("fixes.json")


def _all_fixes(place: StudioFolder) -> list[dict[str, Any]]:
    """What fixes have changed, the last first."""
    with suppress(OSError, ValueError):
        found = json.loads(_record(place).read_text("utf-8"))
        return found if isinstance(found, list) else []
    return []


def _fixes(place: StudioFolder) -> list[dict[str, Any]]:
    """Those that can be taken back: the last, as long as the mapping is the one that it made."""
    found = _all_fixes(place)
    return found if found and found[0]["after"] == place.project().mapping else []


STUDIO_STAGES.register("check")(CheckStage())
