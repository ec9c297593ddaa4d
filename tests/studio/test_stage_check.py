"""The stage Check: problems are shown with figures, and a button fixes exactly one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from simulated_arms import Visitor, arm_folder, wrong_sign, wrong_unit

from steelyard.ground.documents import read_document
from steelyard.studio.stage import StageStatus
from steelyard.studio.studio_folder import StudioError


def _fields(html: str, label: str) -> dict[str, str]:
    """Return the fields of the button with this label."""
    (form,) = (form for form in re.findall(r"<form.*?</form>", html, re.DOTALL) if f">{label}<" in form)
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))


@pytest.fixture
def two_mistakes(tmp_path: Path) -> Iterator[Visitor]:
    visitor = Visitor(arm_folder(tmp_path, wrong_sign, wrong_unit, validated=True), "check")
    yield visitor
    visitor.leave()


def test_without_robot_or_log_it_names_the_missing_step(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path, "check")
    assert 'href="/robot"' in visitor.body()
    assert visitor.status().kind == "empty"
    (tmp_path / "steelyard.toml").write_text('robot = "rotradi"\n')
    assert 'href="/data"' in visitor.body()
    assert not visitor.context.jobs.all()


def test_findings_fixes_and_undo(two_mistakes: Visitor) -> None:
    """Two mistakes in two logs: each fix alone, undo, and all fixes at once."""
    visitor, folder = two_mistakes, two_mistakes.context.folder
    # The check starts automatically, once.
    visitor.body()
    visitor.body()
    assert [job.words for job in visitor.context.jobs.all()] == [("check", "-o", "runs/check-1")]
    assert visitor.status().kind == "working"
    visitor.wait()
    assert visitor.status() == StageStatus("bad", "4 problems")
    body = visitor.body()
    # The most severe first, each with a figure, for both logs.
    found = [body.index(key) for key in ('value="velocity_degrees:q1"', 'value="sign:q2"')]
    assert found == sorted(found)
    assert body.count('class="plot-data"') == 4
    # One fix changes nothing else.
    fields = {"run": "runs/check-1", "log": "0", "key": "sign:q2"}
    visitor.press("fix", **fields)
    assert folder.project().mapping == "mapping.toml"
    assert read_document(folder.root / "mapping.toml") == {"sign": {"torque": [1, -1, 1]}}
    with pytest.raises(StudioError, match="changed since"):
        visitor.press("fix", **fields)  # pressing twice does not flip the sign back
    visitor.wait()
    assert visitor.status() == StageStatus("bad", "2 problems")
    body = visitor.body()
    assert "Fixed in mapping.toml" in body
    assert "'q2' has the wrong sign" in body  # the fixed finding
    # The second fix is added; then there are no problems.
    (fix,) = {m for m in re.findall(r'value="(\w+:\w+)"', body)}
    visitor.press("fix", run="runs/check-2", log="1", key=fix)
    fixed = {"sign": {"torque": [1, -1, 1]}, "units": {"velocity": ["deg/s", "rad/s", "rad/s"]}}
    assert read_document(folder.root / folder.project().mapping) == fixed
    visitor.wait()
    assert visitor.status() == StageStatus("done", "no problems")
    # Undo restores the previous mapping and moves the other one to the trash.
    after = folder.project().mapping
    visitor.press("undo")
    assert folder.project().mapping == "mapping.toml"
    assert not (folder.root / after).exists()
    assert list(folder.hidden_path("trash", "x").parent.glob(f"*/{after}"))
    visitor.press("undo")
    assert folder.project().mapping == ""
    assert not any(job.live for job in visitor.context.jobs.all())  # these inputs were checked before
    with pytest.raises(StudioError, match="nothing to undo"):
        visitor.press("undo")
    # With the first mapping the first check is current again.
    fields = _fields(visitor.body(), "Apply all 2 fixes")
    visitor.press("fix", **fields)
    assert read_document(folder.root / folder.project().mapping) == fixed  # each fix once
    assert (folder.root / "steelyard.toml").read_text().startswith("# of a test")


def test_paths_from_a_browser_are_checked(two_mistakes: Visitor) -> None:
    for run in ("../elsewhere", "/etc", "runs/none", ".steelyard"):
        with pytest.raises(StudioError):
            two_mistakes.press("fix", run=run, log="0", key="sign:q2")


def test_an_unreadable_log_is_reported_and_not_checked_again(tmp_path: Path) -> None:
    folder = arm_folder(tmp_path)
    (folder / "logs" / "a.csv").write_text("t,q1\n0,what\n")
    visitor = Visitor(folder, "check")
    visitor.body()
    visitor.wait()
    body = visitor.body()
    assert "a.csv" in body
    assert "Check the logs" in body
    assert len(visitor.context.jobs.all()) == 1
    assert visitor.status().kind == "empty"


def test_the_check_of_an_unusable_log_is_shown(tmp_path: Path) -> None:
    """The command exits with 2 for an unusable log, but writes its run."""
    folder = arm_folder(tmp_path)
    rows = (folder / "logs" / "a.csv").read_text().splitlines()
    (folder / "logs" / "a.csv").write_text("\n".join(rows[:60]) + "\n")
    visitor = Visitor(folder, "check")
    visitor.body()
    visitor.wait()
    (job,) = visitor.context.jobs.all()
    assert (job.state, job.code) == ("done", 2)
    assert visitor.status().kind == "bad"
    assert json.loads((folder / "runs" / "check-1" / "result.json").read_text())["grade"] == "unusable"
    assert "cannot be identified from" in visitor.body()
    visitor.leave()


@pytest.mark.proof  # test_studio_whole_way.py covers this in short
def test_the_fix_button_in_a_browser(page: Any, studio: Any) -> None:
    arm_folder(studio.folder, wrong_sign)
    page.goto(studio.base + "/check")
    page.get_by_role("button", name="Check the logs").click()
    page.get_by_text("The torque of 'q2' has the wrong sign").first.wait_for()
    page.wait_for_selector("figure.plot .main-svg")  # drawn
    page.get_by_role("button", name="Apply this fix").click()
    page.wait_for_selector(".verdict.good")
    assert "Fixed in mapping.toml" in page.inner_text("#stage")
    page.wait_for_selector("#rail li.done:has-text('no problems')")


def test_the_worst_log_comes_first_by_its_name(tmp_path: Path) -> None:
    folder = arm_folder(tmp_path, validated=True)
    spoiled = arm_folder(tmp_path / "other", wrong_sign, validated=True)
    (folder / "logs/b.csv").write_bytes((spoiled / "logs/b.csv").read_bytes())
    visitor = Visitor(folder, "check")
    visitor.body()
    visitor.wait()
    body = visitor.body()
    assert 0 < body.index("<h2>logs/b.csv</h2>") < body.index("<h2>logs/a.csv</h2>")
    # The button of the second log's finding fixes that log, although it is shown first.
    assert _fields(body, "Apply this fix")["log"] == "1"
    visitor.leave()
