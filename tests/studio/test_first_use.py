"""First use: an example in an empty folder, only fields that apply, readable messages, narrow screens, the keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from conftest_studio import Served
from run_cases import Visitor
from simulated_arms import arm_folder

from steelyard import Model, load_robot, read_log
from steelyard.demo import example_truth
from steelyard.export import load_model
from steelyard.studio.roles import listed_logs

STAGES = ("robot", "data", "check", "motion", "identify", "use")
# Texts of selected options that are wider than their menus. An arrow and padding take about 40 px.
CUT_MENUS = """() => Array.from(document.querySelectorAll("select")).filter(s => s.offsetParent).filter(s => {
    const pen = document.createElement("canvas").getContext("2d"), style = getComputedStyle(s);
    pen.font = style.font;
    return pen.measureText(s.selectedOptions[0].text).width > s.clientWidth - 12;
}).map(s => s.name + ": " + s.selectedOptions[0].text)"""


def test_the_example_fills_an_empty_folder_once(tmp_path: Path) -> None:
    """The logs can be read, and the arm's masses differ from those of its description."""
    visitor = Visitor(tmp_path)
    assert "Try the example" in visitor.see("/robot")
    visitor.do("robot/example")
    assert "Try the example" not in visitor.see("/robot")
    project = visitor.folder.project()
    assert project.robot == "arm7"
    assert sorted(log.roles for log in listed_logs(visitor.folder).values()) == [("identify",), ("validate",)]
    log = read_log(tmp_path / "logs/example-1.csv", load_robot("arm7"))
    assert log.t[-1] > 15.0
    assert np.isfinite(log.tau).all()
    factors = example_truth(load_robot("arm7")).theta[:70:10] / Model.nominal(load_robot("arm7")).theta[:70:10]
    assert np.ptp(factors) > 0.1
    assert "already" in visitor.do("robot/example", status=422)


def test_identify_shows_only_fields_that_apply(page: Any, studio: Served) -> None:
    arm_folder(studio.folder, validated=True)
    page.goto(studio.base + "/identify")
    structure = page.locator("[name=structure]")
    structure.wait_for()
    assert page.locator("[name=term]:visible").count() == 0
    structure.select_option("given")
    assert page.locator("[name=term]:visible").count() > 10
    left = {round(box["x"]) for box in map(_box, page.locator("[name=term]:visible").all())}
    assert len(left) <= 6  # the boxes form columns
    page.select_option("[name=judge]", "blocks")
    assert page.locator("[name=blocks]").is_visible()
    assert not page.locator("[name=judge_by]").first.is_visible()


def _box(element: Any) -> dict[str, float]:
    box: dict[str, float] = element.bounding_box()
    return box


def test_a_phone_shows_the_stage_on_the_rail_and_whole_words(page: Any, studio: Served) -> None:
    arm_folder(studio.folder, validated=True)
    page.set_viewport_size({"width": 390, "height": 844})
    for stage in STAGES:
        page.goto(f"{studio.base}/{stage}")
        page.wait_for_selector("#stage h1")
        box = _box(page.locator("#rail a[aria-current]"))
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{studio.base}/data")
    page.wait_for_selector("[name=role]")
    assert page.evaluate(CUT_MENUS) == []


def test_menus_are_as_wide_as_their_texts(page: Any, studio: Served) -> None:
    arm_folder(studio.folder, validated=True)
    logs = studio.folder / "logs"
    (logs / "recording-of-monday-morning.csv").write_bytes((logs / "a.csv").read_bytes())
    for stage in ("data", "motion", "identify"):
        page.goto(f"{studio.base}/{stage}")
        page.wait_for_selector("#stage select")
        assert page.evaluate(CUT_MENUS) == []


def _tab_to(page: Any, name: str) -> None:
    """Press the tabulator until a link or button has the focus."""
    page.get_by_text(name, exact=True).first.wait_for()
    page.wait_for_selector("#stage [aria-busy]:visible", state="hidden")  # what comes later takes the focus back
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"The keyboard does not reach '{name}'.")


@pytest.mark.proof
def test_from_an_empty_folder_to_a_judged_urdf_by_keyboard_in_nine_actions(page: Any, studio: Served) -> None:
    actions = 0
    for name, then in (
        ("Try the example", "figure.robot[data-drawn=yes]"),
        ("Next: Data →", "body[data-stage=data] .long-plot canvas"),
        ("Next: Check →", "body[data-stage=check] #stage .verdict"),
        ("Next: Motion →", "#motion-command code"),
        ("Next: Identify →", "#identify-command code"),
        ("Start the identification", "#stage .verdict"),
        ("Next: Use →", "body[data-stage=use] #stage form"),
        ("Export", "#stage a[href$='.urdf']"),
    ):
        _tab_to(page, name)
        page.keyboard.press("Enter")
        page.wait_for_selector(then, timeout=120_000)
        actions += 1
    assert actions <= 9
    (exported,) = studio.folder.glob("runs/export-*/*.urdf")
    verdict = json.loads((studio.folder / "runs/identify-1/result.json").read_text("utf-8"))["verdict"]
    assert verdict["grade"] in ("good", "usable")
    # The file has the gravity of the simulated arm, not that of its description.
    arm = load_robot("arm7")
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (200, arm.dof))
    still = np.zeros_like(q)
    truth, described, found = (
        m.torque(q, still, still) for m in (example_truth(arm), Model.nominal(arm), load_model(exported))
    )
    assert np.abs(found - truth).max() < 0.1 * np.abs(described - truth).max()


def test_identify_shows_torques_and_robot_of_a_run(page: Any, studio: Served) -> None:
    """The first section of the report is on the stage, in the theme of the studio."""
    from typer.testing import CliRunner

    from steelyard.cli.app import app

    arm_folder(studio.folder, validated=True)
    logs = [str(studio.folder / "logs" / f"{name}.csv") for name in "ab"]
    words = [
        "identify",
        "rotradi",
        logs[0],
        "--validate",
        logs[1],
        "--plain",
        "-o",
        str(studio.folder / "runs/identify-1"),
    ]
    assert CliRunner().invoke(app, words).exit_code == 0
    page.goto(studio.base + "/identify")
    frame = page.frame_locator("iframe.pictures")
    frame.locator("figure.plot[data-drawn=yes]").first.wait_for()
    frame.locator("figure.robot[data-drawn]").wait_for()
    box, verdict = _box(page.locator("iframe.pictures")), _box(page.locator("#stage .verdict"))
    assert verdict["y"] < box["y"] < 450  # before tables, on the first screen
    assert frame.locator("nav").is_hidden()
    before = page.evaluate("document.documentElement.dataset.theme")
    page.click("#theme")
    other = "dark" if before == "light" else "light"
    frame.locator(f":root[data-theme={other}]").wait_for(state="attached")
