"""The stage Identify: the form and its command, the live search, and runs side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from simulated_arms import Visitor, arm_folder, run_apart, wrong_sign

from steelyard.studio.identify_facts import identification_html, identify_facts
from steelyard.studio.identify_settings import identify_command, save_identify_settings, saved_settings
from steelyard.studio.stage import StageStatus
from steelyard.studio.studio_folder import StudioError, StudioFolder

FIXED_MAPPING = "[sign]\ntorque = [1, -1, 1]\n"
# Fast settings: no search, no cone constraints.
QUICK = {"structure": "plain", "form": "free", "judge": "share", "share": "0.3"}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return {**identify_facts(False), "friction": ["runs/friction-1"]}


def _words(folder: Path, facts: dict[str, Any], *pairs: tuple[str, str]) -> list[str]:
    studio = StudioFolder(folder)
    return identify_command(studio, save_identify_settings(studio, pairs), facts)[1:]


def test_the_default_form_gives_the_command_without_options(tmp_path: Path, facts: dict[str, Any]) -> None:
    folder = StudioFolder(arm_folder(tmp_path, validated=True))
    assert identify_command(folder, saved_settings(folder), facts) == ["identify"]
    # Without a validation log, a share of the log is the hold-out.
    alone = StudioFolder(arm_folder(tmp_path / "alone"))
    assert identify_command(alone, saved_settings(alone), facts) == ["identify", "--holdout", "0.3"]


def test_the_form_gives_the_command(tmp_path: Path, facts: dict[str, Any]) -> None:
    folder = arm_folder(tmp_path, validated=True)
    cases: list[tuple[list[tuple[str, str]], list[str]]] = [
        ([("judge", "share"), ("share", "0.2")], ["--holdout", "0.2"]),
        ([("judge", "blocks"), ("blocks", "0.5:3")], ["--holdout-blocks", "0.5:3"]),
        ([("judge_by", "logs/b.csv"), ("form", "free")], ["--free"]),
        ([("judge_by", "logs/a.csv")], ["--validate", "logs/a.csv"]),
        ([("structure", "given"), ("term", "viscous"), ("term", "stribeck"), ("judge", "none")],
         ["--terms", "viscous,stribeck"]),
        ([("judge", "none"), ("structure", "plain"), ("estimator", "huber")], ["--plain", "--estimator", "huber"]),
        ([("judge", "none"), ("cutoff", " 5 "), ("significant", "yes")], ["--cutoff", "5", "--significant"]),
        ([("judge", "none"), ("friction", "runs/friction-1")], ["--friction", "runs/friction-1"]),
        # An estimator without a physically possible form runs with --free.
        ([("judge", "none"), ("estimator", "adaline")], ["--estimator", "adaline", "--free"]),
    ]  # fmt: skip
    for pairs, expected in cases:
        assert _words(folder, facts, *pairs) == expected
    # The values of the form are saved.
    assert saved_settings(StudioFolder(folder)).get("estimator") == "adaline"


def test_default_values_follow_the_project(tmp_path: Path, facts: dict[str, Any]) -> None:
    """A validation log is added after the form was sent."""
    folder = StudioFolder(arm_folder(tmp_path))
    saved = saved_settings(folder)
    save_identify_settings(folder, [*saved.one.items(), ("form", "free")])
    arm_folder(tmp_path, validated=True)
    assert identify_command(folder, saved_settings(folder), facts) == ["identify", "--free"]


@pytest.mark.parametrize(
    "pairs",
    [
        [("judge", "share"), ("share", "much")],
        [("judge", "share"), ("share", "1.5")],
        [("judge", "blocks"), ("blocks", "3")],
        [("judge_by", "../../etc/passwd")],
        [("judge_by", "logs/none.csv")],
        [("judge", "none"), ("estimator", "--overwrite")],
        [("judge", "none"), ("friction", "/etc")],
        [("judge", "none"), ("structure", "given"), ("term", "x -o y")],
        [("judge", "none"), ("structure", "given")],
        [("judge", "none"), ("cutoff", "-o")],
        [("judge", "none"), ("cutoff", "nan")],
    ],
)
def test_invalid_values_are_refused(tmp_path: Path, facts: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    folder = arm_folder(tmp_path, validated=True)
    with pytest.raises(StudioError):
        _words(folder, facts, *pairs)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    made = Visitor(arm_folder(tmp_path), "identify")
    yield made
    made.leave()


def test_two_runs_and_their_differences(visitor: Visitor) -> None:
    folder = visitor.context.folder
    assert visitor.status() == StageStatus("empty", "not yet")
    visitor.press("start", **QUICK)
    visitor.press("start", **{**QUICK, "share": "0.5"})
    assert visitor.status().kind == "working"
    visitor.wait()
    assert visitor.status().words.startswith("torque error")
    body = visitor.body()
    assert "/data/identify/found?run=runs%2Fidentify-2" in body or "/data/identify/found?run=runs%2Fidentify-1" in body
    both = visitor.body(("both", "runs/identify-1"), ("both", "runs/identify-2"))
    assert "base parameters differ by more than their 95 % intervals" in both
    # Only the hold-out share differs between the runs.
    assert "Settings that differ" not in both or "cutoff_hz" in both
    for wrong in (("both", "../x"), ("both", "logs")):
        with pytest.raises(StudioError):
            visitor.body(("both", "runs/identify-1"), wrong)
    with pytest.raises(StudioError, match="at least two"):
        visitor.body(("both", "runs/identify-1"))
    # The page has all numbers of the result.
    result = json.loads((folder.root / "runs" / "identify-1" / "result.json").read_text())
    found = unescape(run_apart(visitor.context.helper.ask(identification_html, "runs/identify-1")))  # type: ignore[arg-type]
    assert result["verdict"]["sentence"].replace(". ", '.</p><p class="rest">', 1) in found
    assert all(row["formula"] in found for row in result["base_parameters"]["list"])
    assert found.count('class="whisker"') == sum(not r["impossible_sign"] for r in result["base_parameters"]["list"])
    # After a change of the log, the result is marked as out of date.
    (folder.root / "logs" / "a.csv").touch()
    assert visitor.status() == StageStatus("warning", "the project has changed since")
    assert "has changed since this run" in visitor.body()


def test_without_a_log_it_names_the_missing_step(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text('robot = "rotradi"\n')
    empty = Visitor(tmp_path, "identify")
    assert 'href="/data"' in empty.body()
    with pytest.raises(StudioError):
        empty.press("start", **QUICK)
    assert not empty.context.jobs.all()


@pytest.mark.proof  # test_studio_whole_way.py covers this in short
def test_in_a_browser_from_the_wrong_sign_to_a_model(page: Any, studio: Any) -> None:
    """A log with a wrong sign and a mapping that fixes it: a live search, and a second one that is cancelled."""
    folder = arm_folder(studio.folder, wrong_sign)
    (folder / "mapping.toml").write_text(FIXED_MAPPING)
    project = (folder / "steelyard.toml").read_text()
    (folder / "steelyard.toml").write_text('mapping = "mapping.toml"\n' + project)
    page.goto(studio.base + "/identify")
    page.get_by_text("steelyard identify --holdout 0.3").wait_for()
    page.get_by_label("Friction and drives").select_option("plain")
    page.get_by_text("steelyard identify --holdout 0.3 --plain").wait_for()
    page.get_by_label("Friction and drives").select_option("")
    page.get_by_role("button", name="Start the identification").click()
    page.locator(".search tbody tr").first.wait_for(state="attached")  # a fast search has ended and is folded
    page.reload()  # the table is restored after a reload
    page.locator(".search tbody tr").nth(2).wait_for(state="attached")
    page.wait_for_selector(".verdict:not(.bad)")
    assert page.locator("#found-parameters svg.whisker").count() > 10
    page.locator("#identify-again > summary").click()
    page.get_by_role("button", name="Start the identification").click()
    page.locator("#stage .job").get_by_role("button", name="Cancel").click()
    page.get_by_text("nothing was written").first.wait_for()
    assert not (folder / "runs" / "identify-2").exists()
