"""Every refusal can be read: a box of text inside the window, not covered, at the width of a desk and of a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from conftest_studio import Served
from run_cases import identified_result, made_run
from simulated_arms import arm_folder

BROKEN = "t,q1\n0\n1,2,3\n"
# Stage, what the user does, and words of the message.
Case = tuple[str, Callable[[Any, Path], None], str]


def _press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def _gravity(page: Any, _: Path) -> None:
    page.locator("form.gravity-form [name=z]").fill("-99999")
    page.locator("form.gravity-form [name=z]").press("Enter")


def _no_joint(page: Any, _: Path) -> None:
    page.locator("#which").evaluate("box => { box.open = true; }")
    for box in page.locator("#which [name=joint]").all():
        box.uncheck()
    _press(page, "Use only these joints")


def _drop(zone: str, name: str) -> Callable[[Any, Path], None]:
    def drop(page: Any, files: Path) -> None:
        page.locator(f".drop[data-folder={zone}] input[type=file]").first.set_input_files(str(files / name))

    return drop


def _calibrate(page: Any, _: Path) -> None:
    page.locator("[name=holdout]").fill("2")
    _press(page, "Calibrate")


def _same_column(page: Any, _: Path) -> None:
    page.locator("#by-column").evaluate("box => { box.open = true; }")
    page.select_option("select[name='joint.2']", index=1)
    page.select_option("select[name='signal.2']", "position")
    page.select_option("select[name='joint.1']", index=1)
    _press(page, "Write the mapping")


def _share(page: Any, _: Path) -> None:
    page.locator("#identify-again").evaluate("box => { box.open = true; }")
    page.select_option("[name=judge]", "share")
    page.fill("[name=share]", "5")
    _press(page, "Start the identification")


def _limit(page: Any, _: Path) -> None:
    page.locator("[name=dq_0]").fill("-1")
    _press(page, "Start the search")


def _export(page: Any, _: Path) -> None:
    page.locator("[name=to]").first.wait_for()
    for box in page.locator("[name=to]").all():
        box.uncheck()
    _press(page, "Export")


def _payload(page: Any, _: Path) -> None:
    page.get_by_role("button", name="Identify the payload").wait_for()
    _press(page, "Identify the payload")


def _one_run(page: Any, _: Path) -> None:
    page.locator("[name=both]").first.check()
    _press(page, "Compare the two selected runs")


def _drive(page: Any, _: Path) -> None:
    page.fill("[name=volts]", "much")
    _press(page, "Identify the drive")


CASES: dict[str, Case] = {
    "gravity": ("robot", _gravity, "Gravity must be three numbers"),
    "joints": ("robot", _no_joint, "No joint is selected"),
    "robot file": ("robot", _drop("robot", "broken.urdf"), "broken.urdf"),
    "table of poses": ("robot", _drop("poses", "broken.csv"), "cannot be read as a table"),
    "hold-out of poses": ("robot", _calibrate, "Hold-out share"),
    "log": ("data", _drop("logs", "broken.csv"), "cannot be read as a table"),
    "columns": ("data?log=logs/a.csv", _same_column, "are both the position"),
    "limits": ("motion", _limit, "not positive"),
    "hold-out": ("identify", _share, "not between 0 and 1"),
    "export": ("use", _export, "No format is selected"),
    "payload": ("use", _payload, "No log with the payload"),
    "comparison": ("library", _one_run, "select two to compare"),
    "drive": ("drives", _drive, "Supply voltage"),
}


@pytest.fixture(scope="module")
def files(shared_studio: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that cannot be read; the studio has a project with logs, poses, a run and command logs."""
    folder, files = shared_studio.folder, tmp_path_factory.mktemp("files")
    (files / "broken.csv").write_text(BROKEN)
    (files / "broken.urdf").write_text("<robot name='x'><link")
    arm_folder(folder, validated=True)
    made_run(folder, "runs/identify-1", "steelyard identify rotradi logs/a.csv", identified_result())
    made_run(folder, "runs/identify-2", "steelyard identify rotradi logs/b.csv", identified_result())
    for name in ("poses", "drives"):
        (folder / name).mkdir()
    rows = "".join(f"0.{k},0,0,1,2,3\n" for k in range(9))
    (folder / "poses/poses.csv").write_text(f"q1,q2,q3,p1x_m,p1y_m,p1z_m\n{rows}")
    (folder / "drives/servo.csv").write_text("t,goal,position\n0,0,0\n0.01,0,0\n")
    return files


# Cases that load plots or read files take seconds.
SLOW = ("columns", "log", "joints", "table of poses", "hold-out of poses")


@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.proof] * (c in SLOW)) for c in CASES])
def test_a_refusal_can_be_read(shared_page: Any, shared_studio: Served, files: Path, case: str) -> None:
    address, act, words = CASES[case]
    page = shared_page
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{shared_studio.base}/{address}")
        page.wait_for_selector("#stage h1")
        act(page, files)
        message = page.locator(".trouble", has_text=words).first
        message.wait_for()
        page.wait_for_timeout(100)  # it scrolls into view
        box = message.bounding_box()
        assert box["width"] > 0.4 * min(width, 900), width
        assert 20 < box["height"] < 300, width
        assert 0 <= box["x"] <= width - box["width"], width
        assert -1 <= box["y"] <= 901 - box["height"], width
        seen = "([x, y]) => !!document.elementFromPoint(x, y).closest('.trouble')"
        assert page.evaluate(seen, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]), width
        contrast = "e => getComputedStyle(e).color !== getComputedStyle(e).backgroundColor"
        assert message.evaluate(contrast), width
