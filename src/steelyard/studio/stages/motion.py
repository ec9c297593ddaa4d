"""The stage *Motion*: limits, the search for a motion, its rehearsal, and files for the robot."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from steelyard.ground.outcome import RESULT
from steelyard.ground.untrusted_files import read_json
from steelyard.report.elements import Html, callout, join
from steelyard.studio import motion_page as page
from steelyard.studio.jobs import EVENTS_FILE, StudioJob
from steelyard.studio.motion_facts import motion_facts, motion_view, search_curve
from steelyard.studio.motion_settings import (
    limits_of,
    read_settings,
    save_settings,
    search_command,
    write_limits,
)
from steelyard.studio.page import button, command_line, trouble
from steelyard.studio.run_entries import RunEntry, run_entries
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioError
from steelyard.studio.use_commands import path_argument

# Files of a run that a robot does not need.
_NOT_FOR_ROBOT = ("manifest.json", "result.json", "report.html", "trajectory.json", "program.json")


class MotionStage(Stage):
    """Designs a motion, rehearses it and writes it for the robot."""

    name = "motion"
    title = "Motion"
    scripts = ("lazy.js", "motion.js")

    # ------------------------------------------------------------ HTML

    async def status(self, context: StageContext) -> StageStatus:
        if _live_job(context, "excite") is not None:
            return StageStatus("working", "searching")
        if _live_job(context, "rehearse") is not None:
            return StageStatus("working", "rehearsing")
        runs = _runs(context, "excite")
        if not runs:
            return StageStatus("empty", "no motion yet")
        name, (_, result) = next(iter(runs.items()))
        rehearsal, value = _rehearsal(context, name), result.get("condition_number")
        words = f"condition number {value:.3g}" if isinstance(value, float) else "a motion"
        if rehearsal is None:
            return StageStatus("warning", f"{words}, not rehearsed")
        passed = rehearsal[1]["passed"]
        return StageStatus("done" if passed else "bad", f"{words}, {'rehearsed' if passed else 'rehearsal failed'}")

    async def body(self, context: StageContext, query: FormData) -> Html:
        project = context.folder.project()
        if not project.robot:
            return page.no_robot()
        search, rehearsal = _live_job(context, "excite"), _live_job(context, "rehearse")
        if search is not None:
            return join(Html("<h1>Motion</h1>"), page.search_panel(search))
        facts, runs = await _facts(context), _runs(context, "excite")
        first = {"terms": "" if project.terms else "default", "floor": facts["floor"]}
        settings = read_settings(context.folder, first)
        terms = project.terms if isinstance(project.terms, str) else ", ".join(project.terms)
        parts = [Html("<h1>Motion</h1>"), *([trouble(facts["wrong"])] if facts["wrong"] else [])]
        if (job := _failed_search(context)) is not None:
            words = job.message or f"The search was {job.state}."
            parts.append(callout("note", words) if job.state == "cancelled" else trouble(words))
            if _can_continue(context, job):
                parts.append(button("motion/continue", "Continue the search", "main", id=job.id))
        if runs:
            selected = query.get("run") if query.get("run") in runs else next(iter(runs))
            try:
                parts.append(self._motion(context, str(selected), runs[selected][1], list(runs), rehearsal, facts))
            except (KeyError, IndexError, TypeError, AttributeError, ValueError):
                parts.append(trouble(f"The result of {selected} is damaged; delete the run and create it again."))
        parts.append(page.settings_form(facts, settings, terms, not runs))
        return join(*parts)

    def _motion(
        self, context: StageContext, run: str, result: Mapping[str, Any], others: list[str],
        rehearsal: StudioJob | None, facts: Any,
    ) -> Html:  # fmt: skip
        """Render a motion with its rehearsal and its files."""
        job = next((job for job in context.jobs.of_stage("motion") if job.output == run), None)
        resumable = result["criterion"].get("stopped") and job is not None and _can_continue(context, job)
        panel = page.result_panel(run, result, others, job.id if resumable and job is not None else "")
        if result["fingerprint"] != facts["fingerprint"]:
            panel = join(callout("warning", "The robot's file has changed since this motion was designed."), panel)
        if rehearsal is not None:
            below = page.rehearsal_panel(rehearsal)
        else:
            name, rehearsed = _rehearsal(context, run) or ("", None)
            below = page.rehearsal(context.folder.project().robot, run, rehearsed, name)
        written = [name for name, (entry, _) in _runs(context, "play").items() if ("--motion", run) in entry.settings]
        files = [(name, _files(context.folder.root / name)) for name in (run, *written)]
        return join(panel, below, page.downloads(run, files, facts["targets"]))

    # ------------------------------------------------------------ actions

    def actions(self) -> Mapping[str, Action]:
        return {
            "set": self.set, "start": self.start, "stop": self.stop, "cancel": self.cancel, "continue": self.resume,
            "rehearse": self.rehearse, "write": self.write, "pick": self.pick,
        }  # fmt: skip

    async def set(self, context: StageContext, fields: FormData) -> Html:
        """Save the form and show its command."""
        return command_line(shlex.join(["steelyard", *await _command(context, fields)]))

    async def start(self, context: StageContext, fields: FormData) -> None:
        """Start a search."""
        words = await _command(context, fields)
        if _live_job(context, "excite") is not None:
            raise StudioError("A search is already running; stop or cancel it first.")
        checkpoint = context.folder.hidden_path("motion", f"{secrets.token_hex(4)}.json")
        _begin(context, [*words, "--checkpoint", context.folder.relative(checkpoint)])

    async def stop(self, context: StageContext, fields: FormData) -> None:
        """Stop a search, which then saves its best motion."""
        context.jobs.stop(fields["id"])

    async def cancel(self, context: StageContext, fields: FormData) -> None:
        """Cancel a search or a rehearsal; nothing is written."""
        context.jobs.cancel(fields["id"])

    async def resume(self, context: StageContext, fields: FormData) -> None:
        """Continue a search from its checkpoint."""
        job = context.jobs.get(fields["id"])
        if not _can_continue(context, job):
            raise StudioError("This search has no checkpoint; start a new one.")
        if _live_job(context, "excite") is not None:
            raise StudioError("A search is already running; stop or cancel it first.")
        _begin(context, list(job.words[: job.words.index("-o")]))

    async def rehearse(self, context: StageContext, fields: FormData) -> None:
        """Rehearse a motion."""
        run = context.folder.relative(context.folder.get_run(fields["run"]))
        output = context.folder.new_run("rehearse", context.jobs.outputs())
        words = ["rehearse", path_argument(context.folder.project().robot), path_argument(run), "-o", output]
        context.jobs.add("motion", f"Rehearsal of {run}", words, output)

    async def write(self, context: StageContext, fields: FormData) -> None:
        """Write a motion for controllers."""
        run, targets = context.folder.relative(context.folder.get_run(fields["run"])), fields.all("for")
        if not targets:
            raise StudioError("Choose at least one controller to write the motion for.")
        output = context.folder.new_run("play", context.jobs.outputs())
        words = ["excite", "--motion", path_argument(run), "--for", ",".join(targets), "-o", output]
        context.jobs.add("motion", f"Files of {run}", words, output)

    async def pick(self, context: StageContext, fields: FormData) -> Html:
        """Show another motion."""
        return await self.body(context, fields)

    async def data(self, context: StageContext, what: str, query: FormData) -> Any:
        """Return the `curve` of a search, or the arm in its motion (`shown`)."""
        if what == "curve":
            return await context.helper.ask(search_curve, str(context.jobs.job_folder(query["job"]) / EVENTS_FILE))
        if what == "shown":
            run = context.folder.relative(context.folder.get_run(query["run"]))
            return await context.helper.ask(motion_view, str(context.folder.project_file), run)
        raise StudioError("There is nothing of this name.")


# Data of robots by state of their files, with and without the project's limits.
_facts_cache: dict[tuple[Any, ...], dict[str, Any]] = {}


async def _facts(context: StageContext, with_limits: bool = True) -> dict[str, Any]:
    project = context.folder.project()
    file = context.folder.root / project.robot
    keys = (project.robot, project.joints, dict(project.lock), project.snap, project.gravity)
    robot = (str(context.folder.root), repr(keys), file.stat().st_mtime_ns if file.is_file() else 0)
    key = (*robot, repr(project.limits))
    cache_key = key if with_limits else robot
    if cache_key not in _facts_cache:
        if len(_facts_cache) > 50:
            _facts_cache.clear()
        facts = await context.helper.ask(motion_facts, str(context.folder.project_file))
        _facts_cache[key] = _facts_cache[robot] = facts
    return _facts_cache[cache_key]


async def _command(context: StageContext, fields: FormData) -> list[str]:
    """Save a fields, its limits in the project file, and return the words of its command."""
    words = search_command(save_settings(context.folder, fields))
    facts = await _facts(context, with_limits=False)
    write_limits(context.folder, limits_of(fields, facts["joints"]))
    return words


def _begin(context: StageContext, words: list[str]) -> None:
    output = context.folder.new_run("excite", context.jobs.outputs())
    context.jobs.add("motion", "Search for a motion", [*words, "-o", output], output)


# ------------------------------------------------------------ state


def _kind(words: tuple[str, ...] | list[str]) -> str:
    """Return the kind of a command: "excite" (search), "play" (files of a motion), "rehearse", or ""."""
    if "rehearse" in words[:3]:
        return "rehearse"
    if "excite" not in words[:3] or "--poses" in words:
        return ""
    return "play" if "--motion" in words else "excite"


def _live_job(context: StageContext, kind: str) -> StudioJob | None:
    return next((job for job in context.jobs.of_stage("motion") if job.live and _kind(job.words) == kind), None)


def _failed_search(context: StageContext) -> StudioJob | None:
    """Return the last search if it failed or was cancelled."""
    last = next((job for job in context.jobs.of_stage("motion") if _kind(job.words) == "excite"), None)
    return last if last is not None and last.state in ("failed", "lost", "cancelled") else None


def _can_continue(context: StageContext, job: StudioJob) -> bool:
    words = job.words
    if job.live or "--checkpoint" not in words or "-o" not in words:
        return False
    return (context.folder.root / words[words.index("--checkpoint") + 1]).is_file()


def _runs(context: StageContext, kind: str) -> dict[str, tuple[RunEntry, dict[str, Any]]]:
    """Return the runs of a kind by name, newest first, with their results; motions only for the project's robot."""
    runs, robot = {}, os.path.normpath(context.folder.project().robot)
    for run in run_entries(context.folder):
        if _kind((run.kind, *(name for name, _ in run.settings))) != kind:
            continue
        with suppress(StudioError, OSError, KeyError, TypeError):
            result = _result(run.path / RESULT, (run.path / RESULT).stat().st_mtime_ns)
            if kind != "excite" or os.path.normpath(str(result["settings"]["source"])) == robot:
                runs[run.name] = run, result
    return runs


# Required keys of a result, by format.
_REQUIRED_KEYS = {
    "steelyard-excitation-1": ("settings", "verdict", "criterion", "plans", "notes", "random_motion", "fingerprint"),
    None: (),
}


@lru_cache(maxsize=100)
def _result(path: Path, written: int) -> dict[str, Any]:
    """Read a result; cached until it is `written` again [ns]."""
    result = read_json(path, StudioError, "delete the run and create it again").value
    keys = _REQUIRED_KEYS.get(result.get("format"), ("?",)) if isinstance(result, dict) else ("?",)
    if any(key not in result for key in keys):
        raise StudioError(f"{path}: is damaged or from another version; delete the run and create it again.")
    return result  # type: ignore[no-any-return]


def _rehearsal(context: StageContext, run: str) -> tuple[str, dict[str, Any]] | None:
    """Return the newest rehearsal of a motion."""
    for name, (entry, result) in _runs(context, "rehearse").items():
        if run in entry.inputs and "passed" in result:
            return name, result
    return None


def _files(run: Path) -> list[str]:
    """List the files of a run for the robot, instructions first."""
    names = sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())
    return sorted((n for n in names if n not in _NOT_FOR_ROBOT), key=lambda n: (n != "play.md", "/" in n, n))


STUDIO_STAGES.register("motion")(MotionStage())
