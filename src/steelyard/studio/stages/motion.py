"""The stage *Motion*: limits, a search that can be watched, stopped and continued, and what to play on the robot."""

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
from steelyard.ground.untrusted import read_json
from steelyard.report.elements import Html, callout, join
from steelyard.studio import motion_page as page
from steelyard.studio.jobs import EVENTS, StudioJob
from steelyard.studio.motion_facts import motion_facts, motion_shown, search_curve
from steelyard.studio.motion_settings import (
    keep_settings,
    limits_of,
    read_settings,
    search_words,
    write_limits,
)
from steelyard.studio.page import button, command_line, trouble
from steelyard.studio.place import StudioError
from steelyard.studio.shelf import ShelvedRun, shelved_runs
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing
from steelyard.studio.use_words import as_path

# Files of a run that are no use on a robot.
_NOT_TAKEN = ("manifest.json", "result.json", "report.html", "trajectory.json", "program.json")


class MotionStage(Stage):
    """Design a motion, rehearse it, take it to the robot."""

    name = "motion"
    title = "Motion"
    scripts = ("later.js", "motion.js")

    # ------------------------------------------------------------ what is shown

    async def standing(self, desk: Desk) -> Standing:
        if _at_work(desk, "excite") is not None:
            return Standing("working", "a search is at work")
        if _at_work(desk, "rehearse") is not None:
            return Standing("working", "it is being rehearsed")
        runs = _runs(desk, "excite")
        if not runs:
            return Standing("empty", "no motion yet")
        name, (_, result) = next(iter(runs.items()))
        rehearsed, size = _about(desk, name), result.get("condition_number")
        words = f"condition number {size:.3g}" if isinstance(size, float) else "a motion"
        if rehearsed is None:
            return Standing("warning", f"{words}, not rehearsed")
        passed = rehearsed[1]["passed"]
        return Standing("done" if passed else "bad", f"{words}, {'rehearsed' if passed else 'rehearsal failed'}")

    async def body(self, desk: Desk, query: Sent) -> Html:
        project = desk.place.project()
        if not project.robot:
            return page.no_robot()
        search, play = _at_work(desk, "excite"), _at_work(desk, "rehearse")
        if search is not None:
            return join(Html("<h1>Motion</h1>"), page.search_panel(search))
        facts, runs = await _facts(desk), _runs(desk, "excite")
        first = {"terms": "" if project.terms else "default", "floor": facts["floor"]}
        given = read_settings(desk.place, first)
        terms = project.terms if isinstance(project.terms, str) else ", ".join(project.terms)
        parts = [Html("<h1>Motion</h1>"), *([trouble(facts["wrong"])] if facts["wrong"] else [])]
        if (ended := _ended_badly(desk)) is not None:
            said = ended.message or f"The search was {ended.state}."
            parts.append(callout("note", said) if ended.state == "cancelled" else trouble(said))
            if _can_go_on(desk, ended):
                parts.append(button("motion/continue", "Continue the search", "main", id=ended.id))
        if runs:
            chosen = query.get("run") if query.get("run") in runs else next(iter(runs))
            try:
                parts.append(self._found(desk, str(chosen), runs[chosen][1], list(runs), play, facts))
            except (KeyError, IndexError, TypeError, AttributeError, ValueError):
                parts.append(trouble(f"The result of {chosen} is damaged; delete the run, and make it anew."))
        parts.append(page.settings_form(facts, given, terms, not runs))
        return join(*parts)

    def _found(
        self, desk: Desk, run: str, found: Mapping[str, Any], others: list[str], play: StudioJob | None, facts: Any
    ) -> Html:
        made = next((job for job in desk.jobs.of_stage("motion") if job.output == run), None)
        stopped = found["criterion"].get("stopped") and made is not None and _can_go_on(desk, made)
        shown = page.result_panel(run, found, others, made.id if stopped and made is not None else "")
        if found["fingerprint"] != facts["fingerprint"]:
            shown = join(callout("warning", "The robot's file has changed since this motion was designed."), shown)
        if play is not None:
            rehearsal = page.rehearsal_panel(play)
        else:
            name, result = _about(desk, run) or ("", None)
            rehearsal = page.rehearsal(desk.place.project().robot, run, result, name)
        written = [name for name, (play_, _) in _runs(desk, "play").items() if ("--motion", run) in play_.settings]
        files = [(name, _files(desk.place.root / name)) for name in (run, *written)]
        return join(shown, rehearsal, page.downloads(run, files, facts["targets"]))

    # ------------------------------------------------------------ what is done

    def actions(self) -> Mapping[str, Action]:
        return {
            "set": self.set, "start": self.start, "stop": self.stop, "cancel": self.cancel, "continue": self.go_on,
            "rehearse": self.rehearse, "write": self.write, "pick": self.pick,
        }  # fmt: skip

    async def set(self, desk: Desk, form: Sent) -> Html:
        """Keep what the form says, and show the command that it makes."""
        return command_line(shlex.join(["steelyard", *await _asked(desk, form)]))

    async def start(self, desk: Desk, form: Sent) -> None:
        """Begin a search."""
        words = await _asked(desk, form)
        if _at_work(desk, "excite") is not None:
            raise StudioError("A search is at work already; stop or cancel it first.")
        kept = desk.place.data("motion", f"{secrets.token_hex(4)}.json")
        _begin(desk, [*words, "--checkpoint", desk.place.relative(kept)])

    async def stop(self, desk: Desk, form: Sent) -> None:
        """End a search, which delivers its best."""
        desk.jobs.stop(form["id"])

    async def cancel(self, desk: Desk, form: Sent) -> None:
        """End a search or a rehearsal; nothing is written."""
        desk.jobs.cancel(form["id"])

    async def go_on(self, desk: Desk, form: Sent) -> None:
        """Go on with a search that was ended, from its checkpoint."""
        job = desk.jobs.get(form["id"])
        if not _can_go_on(desk, job):
            raise StudioError("This search has no checkpoint to go on from; start a new one.")
        if _at_work(desk, "excite") is not None:
            raise StudioError("A search is at work already; stop or cancel it first.")
        _begin(desk, list(job.words[: job.words.index("-o")]))

    async def rehearse(self, desk: Desk, form: Sent) -> None:
        """Rehearse a motion."""
        run = desk.place.relative(desk.place.run(form["run"]))
        output = desk.place.new_run("rehearse", desk.jobs.outputs())
        words = ["rehearse", as_path(desk.place.project().robot), as_path(run), "-o", output]
        desk.jobs.add("motion", f"Rehearsal of {run}", words, output)

    async def write(self, desk: Desk, form: Sent) -> None:
        """Write a motion for controllers."""
        run, targets = desk.place.relative(desk.place.run(form["run"])), form.all("for")
        if not targets:
            raise StudioError("Choose at least one controller to write the motion for.")
        output = desk.place.new_run("play", desk.jobs.outputs())
        words = ["excite", "--motion", as_path(run), "--for", ",".join(targets), "-o", output]
        desk.jobs.add("motion", f"Files of {run}", words, output)

    async def pick(self, desk: Desk, form: Sent) -> Html:
        """Look at another motion."""
        return await self.body(desk, form)

    async def data(self, desk: Desk, what: str, query: Sent) -> Any:
        """The curve of a search so far; the arm in its motion."""
        if what == "curve":
            return await desk.aside.ask(search_curve, str(desk.jobs.folder(query["job"]) / EVENTS))
        if what == "shown":
            run = desk.place.relative(desk.place.run(query["run"]))
            return await desk.aside.ask(motion_shown, str(desk.place.project_file), run)
        raise StudioError("There is nothing of this name.")


# What is known of a robot, as long as its files are what they were; with its limits, and whatever they are.
_known: dict[tuple[Any, ...], dict[str, Any]] = {}


async def _facts(desk: Desk, with_limits: bool = True) -> dict[str, Any]:
    project = desk.place.project()
    file = desk.place.root / project.robot
    said = (project.robot, project.joints, dict(project.lock), project.snap, project.gravity)
    robot = (str(desk.place.root), repr(said), file.stat().st_mtime_ns if file.is_file() else 0)
    key = (*robot, repr(project.limits))
    wanted = key if with_limits else robot
    if wanted not in _known:
        if len(_known) > 50:
            _known.clear()
        _known[key] = _known[robot] = await desk.aside.ask(motion_facts, str(desk.place.project_file))
    return _known[wanted]


async def _asked(desk: Desk, form: Sent) -> list[str]:
    """The words that a form makes; what it says is kept, limits in the project file."""
    words = search_words(keep_settings(desk.place, form))
    facts = await _facts(desk, with_limits=False)
    write_limits(desk.place, limits_of(form, facts["joints"]))
    return words


def _begin(desk: Desk, words: list[str]) -> None:
    output = desk.place.new_run("excite", desk.jobs.outputs())
    desk.jobs.add("motion", "Search for a motion", [*words, "-o", output], output)


# ------------------------------------------------------------ what is on the disk


def _kind(words: tuple[str, ...] | list[str]) -> str:
    """What a command does for this stage: "excite" (a search), "play" (files of a motion), "rehearse", or ""."""
    if "rehearse" in words[:3]:
        return "rehearse"
    if "excite" not in words[:3] or "--poses" in words:
        return ""
    return "play" if "--motion" in words else "excite"


def _at_work(desk: Desk, kind: str) -> StudioJob | None:
    return next((job for job in desk.jobs.of_stage("motion") if job.live and _kind(job.words) == kind), None)


def _ended_badly(desk: Desk) -> StudioJob | None:
    """The last search, where nothing came of it."""
    last = next((job for job in desk.jobs.of_stage("motion") if _kind(job.words) == "excite"), None)
    return last if last is not None and last.state in ("failed", "lost", "cancelled") else None


def _can_go_on(desk: Desk, job: StudioJob) -> bool:
    words = job.words
    if job.live or "--checkpoint" not in words or "-o" not in words:
        return False
    return (desk.place.root / words[words.index("--checkpoint") + 1]).is_file()


def _runs(desk: Desk, kind: str) -> dict[str, tuple[ShelvedRun, dict[str, Any]]]:
    """The runs of a kind, by folder, the newest first, with their results; of motions those of the project's robot."""
    found, robot = {}, os.path.normpath(desk.place.project().robot)
    for run in shelved_runs(desk.place):
        if _kind((run.kind, *(name for name, _ in run.settings))) != kind:
            continue
        with suppress(StudioError, OSError, KeyError, TypeError):
            result = _result(run.path / RESULT, (run.path / RESULT).stat().st_mtime_ns)
            if kind != "excite" or os.path.normpath(str(result["settings"]["source"])) == robot:
                found[run.name] = run, result
    return found


# Of each kind of run, what its result must hold to be shown.
_NEEDED = {
    "steelyard-excitation-1": ("settings", "verdict", "criterion", "plans", "notes", "random_motion", "fingerprint"),
    None: (),
}


@lru_cache(maxsize=100)
def _result(path: Path, written: int) -> dict[str, Any]:
    """What a result says; read anew when it was `written` anew (ns)."""
    found = read_json(path, StudioError, "delete the run, and make it anew").value
    needed = _NEEDED.get(found.get("format"), ("?",)) if isinstance(found, dict) else ("?",)
    if any(key not in found for key in needed):
        raise StudioError(f"{path}: it is damaged, or of another version; delete the run, and make it anew.")
    return found  # type: ignore[no-any-return]


def _about(desk: Desk, run: str) -> tuple[str, dict[str, Any]] | None:
    """The newest rehearsal of a motion."""
    for name, (made, result) in _runs(desk, "rehearse").items():
        if run in made.inputs and "passed" in result:
            return name, result
    return None


def _files(run: Path) -> list[str]:
    """What of a run is taken to a robot, instructions first."""
    names = sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())
    return sorted((n for n in names if n not in _NOT_TAKEN), key=lambda n: (n != "play.md", "/" in n, n))


STUDIO_STAGES.register("motion")(MotionStage())
