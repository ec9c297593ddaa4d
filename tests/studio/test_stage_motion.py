"""The stage Motion: the form and its command, limits of the project, and a search that is stopped and continued."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from conftest_studio import HOSTILE
from simulated_arms import run_apart

import steelyard as sy
from steelyard.ground.progress import ProgressReport
from steelyard.project import Project
from steelyard.studio.helper_process import HelperProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.motion_facts import motion_facts, search_curve
from steelyard.studio.motion_settings import limit_text, limits_of, search_command, write_limits
from steelyard.studio.stage import STUDIO_STAGES, FormData, StageContext
from steelyard.studio.studio_folder import StudioError, StudioFolder
from steelyard.studio.worker import _EventWriter

STAGE = STUDIO_STAGES["motion"]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[StageContext]:
    folder = StudioFolder(tmp_path)
    made = StageContext(folder, Jobs(folder), HelperProcess(folder))
    yield made
    for job in made.jobs.all():
        made.jobs.cancel(job.id)
    made.helper.end()


def _form(facts: dict[str, Any], **changes: str) -> FormData:
    """Return the fields of the form with `changes`."""
    pairs = {f"{key}_{k}": limit_text(value) for k, j in enumerate(facts["joints"]) for key, value in j["now"].items()}
    return FormData([*{**pairs, "duration": "4", "harmonics": "3", "rate": "50", **changes}.items()])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "excite"),
        ({"duration": "10", "criterion": "cond", "clearance": "0.02", "population": "7"}, "excite"),
        ({"duration": "12.5", "criterion": "d", "terms": "d"}, "excite --duration 12.5 --criterion d --terms d"),
        ({"optimiser": "ga", "population": "7"}, "excite --optimiser ga --population 7"),
        ({"collision": "no", "time": "60", "frame": "link2"}, "excite --no-collision --search-time 60"),
        (
            {"x0": "-1", "x1": "1", "y0": "-1", "y1": "1", "z0": "0", "z1": "2", "frame": "link2"},
            "excite --frame link2 --box -1,1,-1,1,0,2",
        ),
    ],
)  # fmt: skip
def test_the_form_gives_the_shortest_command(values: dict[str, str], words: str) -> None:
    assert " ".join(search_command(values)) == words


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"duration": "ten"}, "Length: 'ten' is not a number."),
        ({"seed": "nan"}, "Seed: 'nan' is not a number."),
        ({"x0": "1"}, "The box is incomplete"),
        ({"x0": "1", "x1": "0", "y0": "0", "y1": "1", "z0": "0", "z1": "1"}, "The box is empty along x"),
    ],
)
def test_invalid_numbers_are_refused(values: dict[str, str], message: str) -> None:
    with pytest.raises(StudioError, match=message):
        search_command(values)


def test_only_changed_limits_are_written_and_excite_respects_them(tmp_path: Path) -> None:
    folder = StudioFolder(tmp_path)
    folder.project_file.write_text('# mine\nrobot = "arm7"\nruns = "runs"\n')
    facts = motion_facts(str(folder.project_file))
    robot = sy.load_robot("arm7")
    assert [j["own"]["dq"] for j in facts["joints"]] == [j.velocity for j in robot.joints]
    same = limits_of(_form(facts), facts["joints"])
    write_limits(folder, same)
    assert "limits" not in tomllib.loads(folder.project_file.read_text())
    changed = _form(facts, low_0="-1.5", high_0="0.5", dq_2="0.7", tau_1="")
    write_limits(folder, limits_of(changed, facts["joints"]))
    assert folder.project_file.read_text().startswith("# mine\n")
    limits = Project.load(folder.project_file).limits
    assert limits.q[0] == (-1.5, 0.5)  # type: ignore[index]
    assert limits.dq[2] == 0.7  # type: ignore[index]
    assert limits.tau is None
    # The form shows the new limits, and a search respects them.
    again = motion_facts(str(folder.project_file))["joints"]
    assert (again[0]["now"]["low"], again[0]["now"]["high"], again[2]["now"]["dq"]) == (-1.5, 0.5, 0.7)
    plan = Project.load(folder.project_file).excite(duration=4.0, rate=50.0, progress=lambda progress: True)
    low, high = plan.trajectory.extents(0)
    assert -1.5 <= low[0] < high[0] <= 0.5
    write_limits(folder, same)
    assert "limits" not in tomllib.loads(folder.project_file.read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low_0": "3", "high_0": "1"}, "joint1: the lower limit 3 is not below the upper limit 1"),
        ({"dq_1": "0"}, "joint2: a limit of 0 is not positive"),
        ({"ddq_1": "fast"}, "joint2, acceleration: 'fast' is not a number"),
    ],
)
def test_invalid_limits_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    folder = StudioFolder(tmp_path)
    folder.project_file.write_text('robot = "arm7"\n')
    facts = motion_facts(str(folder.project_file))
    with pytest.raises(StudioError, match=message):
        limits_of(_form(facts, **change), facts["joints"])
    assert folder.project_file.read_text() == 'robot = "arm7"\n'


def test_without_a_robot_the_page_explains_the_stage(context: StageContext) -> None:
    async def look() -> None:
        assert "Choose a robot" in await STAGE.body(context, FormData([]))
        assert (await STAGE.status(context)).kind == "empty"

    run_apart(look())


def test_wrong_limits_of_the_project_are_shown_with_the_form(context: StageContext) -> None:
    context.folder.project_file.write_text('robot = "szabo3r"\n[limits]\ndq = [1.0, 2.0]\n')
    body = run_apart(STAGE.body(context, FormData([])))
    assert "give one number, or 3" in body
    assert 'name="dq_2"' in body


def test_hostile_names_of_a_robot_are_escaped(context: StageContext) -> None:
    (context.folder.root / "arm.urdf").write_text(HOSTILE.urdf)
    context.folder.project_file.write_text('robot = "arm.urdf"\n')
    body = run_apart(STAGE.body(context, FormData([])))
    assert "<img" not in body
    assert "onerror=alert" in body


def test_trials_are_thinned_but_improvements_are_not() -> None:
    out = io.StringIO()
    write = _EventWriter(out)
    for k in range(1000):
        best = {"of": "motion", "evaluations": k, "best": 1000.0 - k // 100}
        write(ProgressReport("Looking", k / 1000, "", {**best, "now": 5.0}))
        if k % 100 == 99:
            write(ProgressReport("Looking", k / 1000, "", best))
    lines = [json.loads(line)["seen"] for line in out.getvalue().splitlines()]
    assert [s["evaluations"] for s in lines if "now" not in s] == list(range(99, 1000, 100))
    assert sum("now" in s for s in lines) < 100


def test_the_curve_of_a_long_search_keeps_all_improvements(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    with events.open("w") as file:
        for k in range(20_000):
            seen = {"of": "motion", "evaluations": k, "best": 100.0 - k // 1000, "now": 1.0}
            file.write(json.dumps({"stage": "x", "seen": seen}) + "\n")
        file.write('{"stage": "half a li')
    curve = search_curve(str(events))
    assert len(curve) < 3000
    assert {s["best"] for s in curve} == {100.0 - k for k in range(20)}
    assert curve[-1]["evaluations"] == 19_999
    assert search_curve(str(tmp_path / "none")) == []


async def _until(context: StageContext, what: Callable[[], Any], seconds: float = 60.0) -> Any:
    for _ in range(int(seconds / 0.05)):
        context.jobs.step()
        if found := what():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError([(job.state, context.jobs.console_output(job.id)) for job in context.jobs.all()])


def _has_motion(context: StageContext, job: Any) -> bool:
    return any(event.get("seen", {}).get("best") for event in context.jobs.events(job.id)[0])


@pytest.mark.proof
def test_a_search_is_stopped_continued_rehearsed_and_written(context: StageContext) -> None:
    """Also if the server ignores Ctrl-C, as shells set it for background processes."""
    context.folder.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')
    actions = STAGE.actions()

    async def whole() -> None:
        facts = await context.helper.ask(motion_facts, str(context.folder.project_file))
        form = _form(facts, optimiser="ga", population="20", generations="60", dq_0="2.5")
        shown = await actions["set"](context, form)
        assert "steelyard excite --duration 4 --harmonics 3 --rate 50 --optimiser ga" in str(shown)
        await actions["start"](context, form)
        assert context.folder.project().limits.dq == (2.5, 3.0, 3.0)
        job = next(context.jobs.of_stage("motion"))
        with pytest.raises(StudioError, match="already running"):
            await actions["start"](context, form)
        await _until(context, lambda: _has_motion(context, job))
        assert "Stop and use the best motion" in await STAGE.body(context, FormData([]))
        assert (await STAGE.status(context)).kind == "working"
        for _ in range(2):  # pressing twice loses nothing
            await actions["stop"](context, FormData([("id", job.id)]))
        waiting = await STAGE.body(context, FormData([]))
        assert "Stopping: the best motion" in waiting or 'data-run="runs/excite-1"' in waiting
        assert "Stop and use the best motion" not in waiting
        await _until(context, lambda: not context.jobs.get(job.id).live)
        assert (context.jobs.get(job.id).state, context.jobs.get(job.id).code) == ("done", 130)
        early = json.loads((context.folder.root / "runs/excite-1/result.json").read_text())
        assert early["criterion"]["stopped"]
        body = await STAGE.body(context, FormData([]))
        assert "stopped before its end" in body
        assert "Continue the search" in body

        await actions["continue"](context, FormData([("id", job.id)]))
        later = next(context.jobs.of_stage("motion"))
        await _until(context, lambda: not context.jobs.get(later.id).live)
        result = json.loads((context.folder.root / "runs/excite-2/result.json").read_text())
        assert not result["criterion"]["stopped"]
        assert result["criterion"]["value"] <= early["criterion"]["value"]
        assert result["criterion"]["evaluations"] == 20 * 60
        curve = await STAGE.data(context, "curve", FormData([("job", later.id)]))  # type: ignore[attr-defined]
        assert curve[0]["earlier"][-1][1] == pytest.approx(early["criterion"]["history"][-1][1])
        assert "Continue the search" not in await STAGE.body(context, FormData([]))
        assert (await STAGE.status(context)).words.endswith("not rehearsed")

        await actions["rehearse"](context, FormData([("run", "runs/excite-2")]))
        await actions["write"](context, FormData([("run", "runs/excite-2"), ("for", "csv"), ("for", "ros2")]))
        await _until(context, lambda: not any(j.live for j in context.jobs.all()), 120.0)
        body = await STAGE.body(context, FormData([]))
        assert "/file/runs/play-1/ros2/1-at-25-percent.yaml" in body
        assert "Simulated robots" in body
        assert "rehears" in (await STAGE.status(context)).words
        arm = await STAGE.data(context, "shown", FormData([("run", "runs/excite-2")]))  # type: ignore[attr-defined]
        assert "scene-data" in arm
        other = await STAGE.body(context, FormData([("run", "runs/excite-1")]))
        assert 'data-run="runs/excite-1"' in other
        for path in ("../elsewhere", "/etc", "runs/none"):
            with pytest.raises(StudioError):
                await actions["rehearse"](context, FormData([("run", path)]))

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_apart(whole())
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_impossible_search_shows_the_message_of_the_command(context: StageContext) -> None:
    context.folder.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')

    async def fails() -> None:
        facts = await context.helper.ask(motion_facts, str(context.folder.project_file))
        box = dict(zip(("x0", "x1", "y0", "y1", "z0", "z1"), ("5", "6", "5", "6", "5", "6"), strict=True))
        await STAGE.actions()["start"](context, _form(facts, **box))
        await _until(context, lambda: not any(j.live for j in context.jobs.all()))
        body = await STAGE.body(context, FormData([]))
        assert "region cannot be kept" in body
        assert "Start the search" in body

    run_apart(fails())


def test_motions_of_other_robots_and_damaged_motions_are_not_shown(context: StageContext) -> None:
    context.folder.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')
    quick = ("--duration", "4", "--rate", "50", "--harmonics", "3", "--search-time", "0")
    for robot, run in (("rotradi", "runs/other"), ("szabo3r", "runs/mine")):
        words = [sys.executable, "-m", "steelyard", "--project", "none", "excite", robot, *quick, "-o", run]
        subprocess.run(words, cwd=context.folder.root, check=True, capture_output=True)

    async def look() -> None:
        body = await STAGE.body(context, FormData([]))
        assert 'data-run="runs/mine"' in body
        assert "runs/other" not in body
        result = context.folder.root / "runs/mine/result.json"
        whole = json.loads(result.read_text())
        for damage in ({**whole, "plans": []}, {**whole, "criterion": 7}):
            result.write_text(json.dumps(damage))
            assert "is damaged" in await STAGE.body(context, FormData([]))
            await STAGE.status(context)
        for damage in ({}, [], {**whole, "format": "else"}):
            result.write_text(json.dumps(damage))
            assert "Start the search" in await STAGE.body(context, FormData([]))
            assert (await STAGE.status(context)).kind == "empty"
        result.write_text(json.dumps({**whole, "fingerprint": "else"}))
        assert "has changed since" in await STAGE.body(context, FormData([]))

    run_apart(look())
