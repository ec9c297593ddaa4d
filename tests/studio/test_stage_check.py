"""The stage Check: what is wrong is shown with its evidence, and a button mends exactly that."""

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
from steelyard.studio.place import StudioError
from steelyard.studio.stage import Standing


def _fields(html: str, label: str) -> dict[str, str]:
    """What the button with this label would send."""
    (form,) = (form for form in re.findall(r"<form.*?</form>", html, re.DOTALL) if f">{label}<" in form)
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))


@pytest.fixture
def two_wrong(tmp_path: Path) -> Iterator[Visitor]:
    visitor = Visitor(arm_folder(tmp_path, wrong_sign, wrong_unit, judged=True), "check")
    yield visitor
    visitor.leave()


def test_without_robot_or_log_it_says_what_comes_first(tmp_path: Path) -> None:
    visitor = Visitor(tmp_path, "check")
    assert 'href="/robot"' in visitor.body()
    assert visitor.standing().kind == "empty"
    (tmp_path / "steelyard.toml").write_text('robot = "rotradi"\n')
    assert 'href="/data"' in visitor.body()
    assert not visitor.desk.jobs.all()


def test_findings_fixes_and_undo(two_wrong: Visitor) -> None:
    """The whole way of two mistakes in two logs: all fixes at once, one taken back, and each by itself."""
    visitor, place = two_wrong, two_wrong.desk.place
    # It begins by itself, once.
    visitor.body()
    visitor.body()
    assert [job.words for job in visitor.desk.jobs.all()] == [("check", "-o", "runs/check-1")]
    assert visitor.standing().kind == "working"
    visitor.wait()
    assert visitor.standing() == Standing("bad", "4 problems")
    body = visitor.body()
    # The gravest first, each with a figure; the same in both logs.
    found = [body.index(key) for key in ('value="velocity_degrees:q1"', 'value="sign:q2"')]
    assert found == sorted(found)
    assert body.count('class="plot-data"') == 4
    # One finding: exactly its fix, and nothing else.
    fields = {"run": "runs/check-1", "log": "0", "key": "sign:q2"}
    visitor.press("fix", **fields)
    assert place.project().mapping == "mapping.toml"
    assert read_document(place.root / "mapping.toml") == {"sign": {"torque": [1, -1, 1]}}
    with pytest.raises(StudioError, match="changed since"):
        visitor.press("fix", **fields)  # pressed twice: signs are not turned back
    visitor.wait()
    assert visitor.standing() == Standing("bad", "2 problems")
    body = visitor.body()
    assert "Mended in mapping.toml" in body
    assert "'q2' has the wrong sign" in body  # what was mended
    # The other one, on top of it; then nothing is wrong.
    (fix,) = {m for m in re.findall(r'value="(\w+:\w+)"', body)}
    visitor.press("fix", run="runs/check-2", log="1", key=fix)
    mended = {"sign": {"torque": [1, -1, 1]}, "units": {"velocity": ["deg/s", "rad/s", "rad/s"]}}
    assert read_document(place.root / place.project().mapping) == mended
    visitor.wait()
    assert visitor.standing() == Standing("done", "fit for identification")
    # Undone: the mapping before is the project's again, the other one lies in the trash.
    after = place.project().mapping
    visitor.press("undo")
    assert place.project().mapping == "mapping.toml"
    assert not (place.root / after).exists()
    assert list(place.data("trash", "x").parent.glob(f"*/{after}"))
    visitor.press("undo")
    assert place.project().mapping == ""
    assert not any(job.live for job in visitor.desk.jobs.all())  # that was checked before
    with pytest.raises(StudioError, match="nothing to undo"):
        visitor.press("undo")
    # As it was at first: the first check is that of the project again.
    fields = _fields(visitor.body(), "Apply all 2 fixes")
    visitor.press("fix", **fields)
    assert read_document(place.root / place.project().mapping) == mended  # once each, though both logs show both
    assert (place.root / "steelyard.toml").read_text().startswith("# of a test")


def test_names_from_a_browser_lead_nowhere(two_wrong: Visitor) -> None:
    for run in ("../elsewhere", "/etc", "runs/none", ".steelyard"):
        with pytest.raises(StudioError):
            two_wrong.press("fix", run=run, log="0", key="sign:q2")


def test_a_log_that_cannot_be_read_is_told_and_not_tried_again(tmp_path: Path) -> None:
    folder = arm_folder(tmp_path)
    (folder / "logs" / "a.csv").write_text("t,q1\n0,what\n")
    visitor = Visitor(folder, "check")
    visitor.body()
    visitor.wait()
    body = visitor.body()
    assert "a.csv" in body
    assert "Check the logs" in body
    assert len(visitor.desk.jobs.all()) == 1
    assert visitor.standing().kind == "empty"


def test_a_check_of_no_use_is_delivered(tmp_path: Path) -> None:
    """The command exits with 2 for a log of no use; its run is there all the same."""
    folder = arm_folder(tmp_path)
    rows = (folder / "logs" / "a.csv").read_text().splitlines()
    (folder / "logs" / "a.csv").write_text("\n".join(rows[:60]) + "\n")
    visitor = Visitor(folder, "check")
    visitor.body()
    visitor.wait()
    (job,) = visitor.desk.jobs.all()
    assert (job.state, job.code) == ("done", 2)
    assert visitor.standing().kind == "bad"
    assert json.loads((folder / "runs" / "check-1" / "result.json").read_text())["grade"] == "unusable"
    assert "cannot be identified from" in visitor.body()
    visitor.leave()


@pytest.mark.proof  # the whole way, in test_studio_whole_way.py, goes along here
def test_in_a_browser_the_button_mends(page: Any, studio: Any) -> None:
    arm_folder(studio.folder, wrong_sign)
    page.goto(studio.base + "/check")
    page.get_by_text("The torque of 'q2' has the wrong sign").first.wait_for()
    page.wait_for_selector("figure.plot .main-svg")  # drawn
    page.get_by_role("button", name="Apply this fix").click()
    page.wait_for_selector(".verdict.good")
    assert "Mended in mapping.toml" in page.inner_text("#stage")
    page.wait_for_selector("#rail li.done:has-text('fit for identification')")
