"""The stage *Check*: checks the logs, shows problems, and applies fixes to the mapping."""

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
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import Html, callout, commands, join, text
from steelyard.studio.check_facts import CHECK_GRADES, check_html, repaired_mapping
from steelyard.studio.jobs import StudioJob
from steelyard.studio.page import attribute, button, command_line, job_html
from steelyard.studio.provenance import is_current, log_texts, provenance_of, runs_of, save_provenance, saved_provenance
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus, status_kind
from steelyard.studio.studio_folder import StudioError, StudioFolder

_INTRODUCTION = (
    "Most identifications fail because of the data: a wrong sign, two exchanged columns, degrees instead of radians, "
    "a joint that never moved. This stage checks every log, lists problems by severity, and can fix many of them in "
    "the mapping."
)


class CheckStage(Stage):
    """Checks the logs."""

    name = "check"
    title = "Check"

    async def status(self, context: StageContext) -> StageStatus:
        try:
            if _missing_step(context.folder):
                return StageStatus("empty", "needs a robot and a log")
            if _live_job(context) is not None:
                return StageStatus("working", "checking the logs")
            run = _current_check(context.folder)
        except SteelyardError:
            return StageStatus("empty", "not yet")
        if run is None:
            return StageStatus("empty", "not checked yet")
        return _status_of(str(run), (run / RESULT).stat().st_mtime_ns)

    async def body(self, context: StageContext, query: FormData) -> Html:
        folder = context.folder
        head = Html("<h1>Check</h1>")
        if step := _missing_step(folder):
            return join(head, callout("note", Html(f"{_INTRODUCTION} {step}")))
        run, job = _current_check(folder), _live_job(context)
        untried = run is None and job is None and not _was_tried(context)
        if untried and folder.was_used:
            job = _start(context)
        pieces: list[str] = [head]
        if job is not None:
            pieces += [Html('<p class="hint">Checking all logs; problems will appear here.</p>'), job_html(job)]
        elif untried:  # the folder may have come from a stranger: do not start a job automatically
            pieces += [callout("note", Html(_INTRODUCTION)), button("check/start", "Check the logs", "main")]
        elif run is None:
            pieces += _failed_check(context)
        if run is not None and job is None:
            return join(*pieces, *await _check(context, run))
        pieces.append(_last_fix(folder))
        before = next(iter(runs_of(folder, "check")), None)
        if before is not None:
            pieces.append(await _previous_check(context, before))
        return join(*pieces, command_line("steelyard check"))

    def actions(self) -> Mapping[str, Action]:
        return {"start": _start_action, "fix": _fix, "undo": _undo}


# ---------------------------------------------------------------- state


def _missing_step(folder: StudioFolder) -> str:
    """Return the step that must come first, as HTML; "" if none."""
    project = folder.project()
    if not project.robot:
        return 'Choose the <a href="/robot">robot</a> first.'
    return "" if log_texts(folder) else 'Add a <a href="/data">log</a> first.'


def _live_job(context: StageContext) -> StudioJob | None:
    return next((job for job in context.jobs.of_stage("check") if job.live), None)


def _current_check(folder: StudioFolder) -> Path | None:
    """Return the newest check with the current inputs."""
    now = provenance_of(folder)
    return next((run for run in runs_of(folder, "check") if is_current(folder, run, now)), None)


def _was_tried(context: StageContext) -> bool:
    """Whether a check with the current inputs was already started."""
    now = provenance_of(context.folder)
    return any(saved_provenance(context.folder, job.output) == now for job in context.jobs.of_stage("check"))


@lru_cache(64)
def _status_of(run: str, _changed: int) -> StageStatus:
    """Return the status for the result of a check."""
    try:
        result = read_json(Path(run) / RESULT, StudioError, "check the logs again").value
        logs = result.get("logs", [result])
        kind = status_kind(max((log["grade"] for log in logs), key=CHECK_GRADES.index))
        counts = [sum(e["severity"] == s for log in logs for e in log["entries"]) for s in ("problem", "warning")]
    except (StudioError, ValueError, LookupError, TypeError, AttributeError):
        return StageStatus("bad", "its result cannot be read")
    for count, word in zip(counts, ("problem", "warning"), strict=True):
        if count:
            return StageStatus(kind, f"{count} {word}{'s' if count > 1 else ''}")
    return StageStatus(kind, "no problems")


# ---------------------------------------------------------------- HTML


def _failed_check(context: StageContext) -> list[str]:
    """Render the reason of a missing check, and a button that starts one."""
    job = next(context.jobs.of_stage("check"), None)
    again = button("check/start", "Check the logs", "main")
    if job is None or job.state == "done":
        return [callout("note", "The project has changed since the last check."), again]
    return [callout("bad" if job.state == "failed" else "warning", job.message or job.state, "Not checked"), again]


async def _check(context: StageContext, run: Path) -> list[str]:
    """Render the current check with buttons for its fixes."""
    folder, name = context.folder, context.folder.relative(run)
    html = await context.helper.ask(check_html, name, log_texts(folder), True)
    row, fixes = [button("check/start", "Check again"), _report(name)], html["fixes"]
    if len(fixes) > 1:
        row.insert(0, button("check/fix", f"Apply all {len(fixes)} fixes", "main", key="", log="0", run=name))
    words = [shlex.join(["steelyard", "check", log, "--fix", "mended.toml", "--only", key]) for key, log in fixes[:1]]
    return [
        Html(html["verdict"]), Html(f'<div class="row">{"".join(row)}</div>'), _last_fix(folder),
        Html(html["findings"]), command_line("steelyard check"), *(commands(("One fix:", line)) for line in words),
    ]  # fmt: skip


async def _previous_check(context: StageContext, run: Path) -> Html:
    """Render a check with earlier inputs."""
    name = context.folder.relative(run)
    html = await context.helper.ask(check_html, name, [], False)
    inside = f"{html['verdict']}{_report(name)}{html['findings']}"
    return Html(f'<details id="before"><summary>Previous check: {text(name)}</summary>{inside}</details>')


def _report(name: str) -> Html:
    return Html(
        f'<a href="/file/{attribute(quote(name))}/report.html" target="_blank" rel="noopener">Report of this check</a>'
    )


def _last_fix(folder: StudioFolder) -> Html:
    """Render the last fix and a button that undoes it."""
    last = next(iter(_fixes(folder)), None)
    if last is None:
        return Html("")
    before = f"the previous mapping {last['before']} is unchanged" if last["before"] else "the project had no mapping"
    fixed = "".join(f"<li>{text(words)}</li>" for words in last["what"])
    left = "".join(f"<li>To do by hand: {text(words)}</li>" for words in last["by_hand"])
    words = f"Fixed in {last['after']}, which is now the project's mapping; {before}."
    return callout("note", Html(f"{text(words)}<ul>{fixed}{left}</ul>{button('check/undo', 'Undo')}"), "Changed")


# ---------------------------------------------------------------- actions


def _start(context: StageContext) -> StudioJob:
    folder = context.folder
    output = folder.new_run("check", context.jobs.outputs())
    save_provenance(folder, output, provenance_of(folder))
    count = len(log_texts(folder))
    return context.jobs.add("check", f"Check of {count} log{'s' if count > 1 else ''}", ["check", "-o", output], output)


def _check_again(context: StageContext) -> None:
    """Cancel a running check of earlier inputs, and start one unless the current inputs were checked before."""
    for job in context.jobs.of_stage("check"):
        if job.live:
            context.jobs.cancel(job.id)
    if _current_check(context.folder) is None:
        _start(context)


async def _start_action(context: StageContext, fields: FormData) -> None:
    if _live_job(context) is None:
        _start(context)


async def _fix(context: StageContext, fields: FormData) -> None:
    """Apply one fix, or all, to the mapping and check again."""
    folder, run = context.folder, context.folder.get_run(fields["run"])
    if run != _current_check(folder):
        raise StudioError("The project has changed since this check; check the logs again.")
    log = int(fields["log"]) if fields["log"].isdecimal() else 0
    fix = await context.helper.ask(repaired_mapping, folder.relative(run), log_texts(folder), fields["key"], log)
    before = folder.project().mapping
    if run != _current_check(folder):  # changed in another tab meanwhile
        raise StudioError("The project has changed since this check; check the logs again.")
    target = folder.free_path("", _next_name(before))
    write_whole(target, fix["toml"], new=True)
    after = folder.relative(target)
    folder.set_keys(mapping=after)
    entry = {"before": before, "after": after, "what": fix["what"], "by_hand": fix["by_hand"], "time": time.time()}
    write_whole(_fixes_file(folder), json.dumps([entry, *_all_fixes(folder)]))
    _check_again(context)


def _next_name(before: str) -> str:
    """Return the name of a mapping that replaces another: `columns-2.toml` gives `columns.toml`, made unique later."""
    stem, dash, number = Path(before).stem.rpartition("-")
    name = stem if dash and number.isdecimal() else Path(before).stem
    return f"{name}.toml" if Path(before).suffix == ".toml" and name else "mapping.toml"


async def _undo(context: StageContext, fields: FormData) -> None:
    """Undo the last fix of the mapping and check again."""
    folder = context.folder
    last = next(iter(_fixes(folder)), None)
    if last is None:
        raise StudioError("There is nothing to undo: the project's mapping was not written by a fix.")
    folder.set_keys(mapping=last["before"] or None)
    with suppress(OSError, SteelyardError):
        folder.move_to_trash(folder.path_inside(last["after"]))
    write_whole(_fixes_file(folder), json.dumps(_all_fixes(folder)[1:]))
    _check_again(context)


def _fixes_file(folder: StudioFolder) -> Path:
    return folder.state_path("fixes.json")


def _all_fixes(folder: StudioFolder) -> list[dict[str, Any]]:
    """List all fixes, newest first."""
    with suppress(OSError, ValueError):
        fixes = json.loads(_fixes_file(folder).read_text("utf-8"))
        return fixes if isinstance(fixes, list) else []
    return []


def _fixes(folder: StudioFolder) -> list[dict[str, Any]]:
    """List the fixes that can be undone; none if the mapping is not that of the last fix."""
    fixes = _all_fixes(folder)
    return fixes if fixes and fixes[0]["after"] == folder.project().mapping else []


STUDIO_STAGES.register("check")(CheckStage())
