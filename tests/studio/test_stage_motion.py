"""The stage Motion: the form makes a command and the project file; a search is stopped and continued."""

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
from steelyard.ground.progress import HowFar
from steelyard.project import Project
from steelyard.studio.aside import AsideProcess
from steelyard.studio.jobs import Jobs
from steelyard.studio.motion_facts import motion_facts, search_curve
from steelyard.studio.motion_settings import limit_text, limits_of, search_words, write_limits
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.stage import STUDIO_STAGES, Desk, Sent
from steelyard.studio.worker import _Teller

STAGE = STUDIO_STAGES["motion"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    place = StudioFolder(tmp_path)
    made = Desk(place, Jobs(place), AsideProcess(place))
    yield made
    for job in made.jobs.all():
        made.jobs.cancel(job.id)
    made.aside.end()


def _form(facts: dict[str, Any], **changes: str) -> Sent:
    """What a browser sends of the form as it stands, but for `changes`."""
    pairs = {f"{key}_{k}": limit_text(value) for k, j in enumerate(facts["joints"]) for key, value in j["now"].items()}
    return Sent([*{**pairs, "duration": "4", "harmonics": "3", "rate": "50", **changes}.items()])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "excite"),
        ({"duration": "10", "criterion": "cond", "clearance": "0.02", "population": "7"}, "excite"),
        ({"duration": "12.5", "criterion": "d", "terms": "d"}, "excite --duration 12.5 --criterion d --terms d"),
        ({"optimiser": "ga", "population": "7"}, "excite --optimiser ga --population 7"),
        ({"collision": "no", "time": "60", "frame": "link2"}, "excite --no-collision --time 60"),
        (
            {"x0": "-1", "x1": "1", "y0": "-1", "y1": "1", "z0": "0", "z1": "2", "frame": "link2"},
            "excite --frame link2 --box -1,1,-1,1,0,2",
        ),
    ],
)  # fmt: skip
def test_the_form_makes_the_command_that_a_person_would_type(given: dict[str, str], words: str) -> None:
    assert " ".join(search_words(given)) == words


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"duration": "ten"}, "Length: 'ten' is no number."),
        ({"seed": "nan"}, "Seed: 'nan' is no number."),
        ({"x0": "1"}, "The box lacks a side"),
        ({"x0": "1", "x1": "0", "y0": "0", "y1": "1", "z0": "0", "z1": "1"}, "The box is empty along x"),
    ],
)
def test_what_is_no_number_is_told_at_once(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(StudioError, match=sentence):
        search_words(given)


def test_limits_of_the_form_are_those_that_excite_keeps_and_the_robots_own_are_not_written(tmp_path: Path) -> None:
    place = StudioFolder(tmp_path)
    place.project_file.write_text('# mine\nrobot = "arm7"\nruns = "runs"\n')
    facts = motion_facts(str(place.project_file))
    robot = sy.load_robot("arm7")
    assert [j["own"]["dq"] for j in facts["joints"]] == [j.velocity for j in robot.joints]
    same = limits_of(_form(facts), facts["joints"])
    write_limits(place, same)
    assert "limits" not in tomllib.loads(place.project_file.read_text())
    changed = _form(facts, low_0="-1.5", high_0="0.5", dq_2="0.7", tau_1="")
    write_limits(place, limits_of(changed, facts["joints"]))
    assert place.project_file.read_text().startswith("# mine\n")
    limits = Project.load(place.project_file).limits
    assert limits.q[0] == (-1.5, 0.5)  # type: ignore[index]
    assert limits.dq[2] == 0.7  # type: ignore[index]
    assert limits.tau is None
    # What the form shows next, and what a search keeps to, is what was typed.
    again = motion_facts(str(place.project_file))["joints"]
    assert (again[0]["now"]["low"], again[0]["now"]["high"], again[2]["now"]["dq"]) == (-1.5, 0.5, 0.7)
    plan = Project.load(place.project_file).excite(duration=4.0, rate=50.0, progress=lambda said: True)
    low, high = plan.trajectory.extents(0)
    assert -1.5 <= low[0] < high[0] <= 0.5
    write_limits(place, same)
    assert "limits" not in tomllib.loads(place.project_file.read_text())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"low_0": "3", "high_0": "1"}, "joint1 has no room to move: 3 is not below 1"),
        ({"dq_1": "0"}, "joint2: a limit of 0 leaves nothing"),
        ({"ddq_1": "fast"}, "joint2, acceleration: 'fast' is no number"),
    ],
)
def test_limits_that_make_no_sense_are_refused_and_nothing_is_written(
    tmp_path: Path, change: dict[str, str], sentence: str
) -> None:
    place = StudioFolder(tmp_path)
    place.project_file.write_text('robot = "arm7"\n')
    facts = motion_facts(str(place.project_file))
    with pytest.raises(StudioError, match=sentence):
        limits_of(_form(facts, **change), facts["joints"])
    assert place.project_file.read_text() == 'robot = "arm7"\n'


def test_before_there_is_a_robot_the_page_says_what_it_is_for(desk: Desk) -> None:
    async def look() -> None:
        assert "choose one" in await STAGE.body(desk, Sent([]))
        assert (await STAGE.standing(desk)).kind == "empty"

    run_apart(look())


def test_limits_of_the_file_that_are_wrong_are_told_beside_a_form_that_mends_them(desk: Desk) -> None:
    desk.place.project_file.write_text('robot = "szabo3r"\n[limits]\ndq = [1.0, 2.0]\n')
    body = run_apart(STAGE.body(desk, Sent([])))
    assert "give one number, or 3" in body
    assert 'name="dq_2"' in body


def test_hostile_names_of_a_robot_stay_words(desk: Desk) -> None:
    (desk.place.root / "arm.urdf").write_text(HOSTILE.urdf)
    desk.place.project_file.write_text('robot = "arm.urdf"\n')
    body = run_apart(STAGE.body(desk, Sent([])))
    assert "<img" not in body
    assert "onerror=alert" in body


def test_what_a_search_tries_is_thinned_and_what_it_finds_is_not() -> None:
    out = io.StringIO()
    tell = _Teller(out)
    for k in range(1000):
        best = {"of": "motion", "evaluations": k, "best": 1000.0 - k // 100}
        tell(HowFar("Looking", k / 1000, "", {**best, "now": 5.0}))
        if k % 100 == 99:
            tell(HowFar("Looking", k / 1000, "", best))
    lines = [json.loads(line)["seen"] for line in out.getvalue().splitlines()]
    assert [s["evaluations"] for s in lines if "now" not in s] == list(range(99, 1000, 100))
    assert sum("now" in s for s in lines) < 100


def test_a_curve_keeps_every_better_value_however_long_the_search_was(tmp_path: Path) -> None:
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


async def _until(desk: Desk, what: Callable[[], Any], seconds: float = 60.0) -> Any:
    for _ in range(int(seconds / 0.05)):
        desk.jobs.step()
        if found := what():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError([(job.state, desk.jobs.said(job.id)) for job in desk.jobs.all()])


def _found_some(desk: Desk, job: Any) -> bool:
    return any(event.get("seen", {}).get("best") for event in desk.jobs.events(job.id)[0])


@pytest.mark.proof
def test_a_search_is_stopped_continued_rehearsed_and_written(desk: Desk) -> None:
    """Even where the server itself was told to ignore Ctrl-C, as shells tell what they put in the background."""
    desk.place.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')
    actions = STAGE.actions()

    async def whole() -> None:
        facts = await desk.aside.ask(motion_facts, str(desk.place.project_file))
        form = _form(facts, optimiser="ga", population="20", generations="60", dq_0="2.5")
        shown = await actions["set"](desk, form)
        assert "steelyard excite --duration 4 --harmonics 3 --rate 50 --optimiser ga" in str(shown)
        await actions["start"](desk, form)
        assert desk.place.project().limits.dq == (2.5, 3.0, 3.0)
        job = next(desk.jobs.of_stage("motion"))
        with pytest.raises(StudioError, match="at work already"):
            await actions["start"](desk, form)
        await _until(desk, lambda: _found_some(desk, job))
        assert "Stop and take the best" in await STAGE.body(desk, Sent([]))
        assert (await STAGE.standing(desk)).kind == "working"
        for _ in range(2):  # who is impatient loses nothing
            await actions["stop"](desk, Sent([("id", job.id)]))
        waiting = await STAGE.body(desk, Sent([]))
        assert "It is being stopped" in waiting or 'data-run="runs/excite-1"' in waiting
        assert "Stop and take the best" not in waiting
        await _until(desk, lambda: not desk.jobs.get(job.id).live)
        assert (desk.jobs.get(job.id).state, desk.jobs.get(job.id).code) == ("done", 130)
        early = json.loads((desk.place.root / "runs/excite-1/result.json").read_text())
        assert early["criterion"]["stopped"]
        body = await STAGE.body(desk, Sent([]))
        assert "stopped before its end" in body
        assert "Continue the search" in body

        await actions["continue"](desk, Sent([("id", job.id)]))
        later = next(desk.jobs.of_stage("motion"))
        await _until(desk, lambda: not desk.jobs.get(later.id).live)
        result = json.loads((desk.place.root / "runs/excite-2/result.json").read_text())
        assert not result["criterion"]["stopped"]
        assert result["criterion"]["value"] <= early["criterion"]["value"]
        assert result["criterion"]["evaluations"] == 20 * 60
        curve = await STAGE.data(desk, "curve", Sent([("job", later.id)]))  # type: ignore[attr-defined]
        assert curve[0]["earlier"][-1][1] == pytest.approx(early["criterion"]["history"][-1][1])
        assert "Continue the search" not in await STAGE.body(desk, Sent([]))
        assert (await STAGE.standing(desk)).words.endswith("not rehearsed")

        await actions["rehearse"](desk, Sent([("run", "runs/excite-2")]))
        await actions["write"](desk, Sent([("run", "runs/excite-2"), ("for", "csv"), ("for", "ros2")]))
        await _until(desk, lambda: not any(j.live for j in desk.jobs.all()), 120.0)
        body = await STAGE.body(desk, Sent([]))
        assert "/file/runs/play-1/ros2/1-at-25-percent.yaml" in body
        assert "Robots that were planted" in body
        assert "rehears" in (await STAGE.standing(desk)).words
        arm = await STAGE.data(desk, "shown", Sent([("run", "runs/excite-2")]))  # type: ignore[attr-defined]
        assert "scene-data" in arm
        other = await STAGE.body(desk, Sent([("run", "runs/excite-1")]))
        assert 'data-run="runs/excite-1"' in other
        for path in ("../elsewhere", "/etc", "runs/none"):
            with pytest.raises(StudioError):
                await actions["rehearse"](desk, Sent([("run", path)]))

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run_apart(whole())
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_search_that_cannot_be_says_the_sentence_of_the_command(desk: Desk) -> None:
    desk.place.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')

    async def fails() -> None:
        facts = await desk.aside.ask(motion_facts, str(desk.place.project_file))
        box = dict(zip(("x0", "x1", "y0", "y1", "z0", "z1"), ("5", "6", "5", "6", "5", "6"), strict=True))
        await STAGE.actions()["start"](desk, _form(facts, **box))
        await _until(desk, lambda: not any(j.live for j in desk.jobs.all()))
        body = await STAGE.body(desk, Sent([]))
        assert "region cannot be kept" in body
        assert "Start the search" in body

    run_apart(fails())


def test_a_motion_of_another_robot_and_a_damaged_one_are_not_taken_for_the_motion(desk: Desk) -> None:
    desk.place.project_file.write_text('robot = "szabo3r"\nruns = "runs"\n')
    quick = ("--duration", "4", "--rate", "50", "--harmonics", "3", "--time", "0")
    for robot, run in (("rotradi", "runs/other"), ("szabo3r", "runs/mine")):
        words = [sys.executable, "-m", "steelyard", "--project", "none", "excite", robot, *quick, "-o", run]
        subprocess.run(words, cwd=desk.place.root, check=True, capture_output=True)

    async def look() -> None:
        body = await STAGE.body(desk, Sent([]))
        assert 'data-run="runs/mine"' in body
        assert "runs/other" not in body
        result = desk.place.root / "runs/mine/result.json"
        whole = json.loads(result.read_text())
        for damage in ({**whole, "plans": []}, {**whole, "criterion": 7}):
            result.write_text(json.dumps(damage))
            assert "is damaged" in await STAGE.body(desk, Sent([]))
            await STAGE.standing(desk)
        for damage in ({}, [], {**whole, "format": "else"}):
            result.write_text(json.dumps(damage))
            assert "Start the search" in await STAGE.body(desk, Sent([]))
            assert (await STAGE.standing(desk)).kind == "empty"
        result.write_text(json.dumps({**whole, "fingerprint": "else"}))
        assert "has changed since" in await STAGE.body(desk, Sent([]))

    run_apart(look())
