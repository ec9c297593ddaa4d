"""The whole way in a real browser: from dropped files with a planted mistake to a URDF; and what happens on the way."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from check.checked_logs import clean
from conftest_studio import Client, Served, apart, job_folders
from simulated_arms import arm_folder, wrong_sign

from steelyard import load_robot
from steelyard.dynamics.model import Model
from steelyard.export import load_model, model_to_urdf


def until(what: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def parent(process: Path) -> int:
    """Of a process by its folder in /proc; 0 where it has gone."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def go(page: Any, stage: str) -> None:
    page.click(f"#rail a[href='/{stage}']")
    page.wait_for_selector(f"body[data-stage={stage}]")


def serious(page: Any) -> list[str]:
    """What axe-core finds on a page that keeps somebody from using it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:150]}" for v in found if v["impact"] in ("serious", "critical")
    ]  # fmt: skip


def test_from_dropped_files_to_a_urdf(page: Any, studio: Served, tmp_path: Path) -> None:
    """Robot and logs are dropped, the planted wrong sign is found and mended by its button, the model is found and
    exported; on every stage there is nothing that a screen reader or a keyboard fails at."""
    given = arm_folder(tmp_path / "given", wrong_sign, judged=True)
    robot = load_robot("rotradi")
    model_to_urdf(Model.nominal(robot), given / "arm.urdf")
    page.set_input_files(".drop input[type=file]", str(given / "arm.urdf"))
    page.wait_for_selector("figure.robot[data-drawn=yes]")
    assert not serious(page)
    go(page, "data")
    page.set_input_files(".drop input[type=file]", [str(given / "logs" / name) for name in ("a.csv", "b.csv")])
    page.wait_for_selector(".long-plot canvas")
    assert not serious(page)
    go(page, "check")
    page.get_by_text("The torque of 'q2' has the wrong sign").first.wait_for()
    assert not serious(page)
    page.get_by_role("button", name="Apply this fix").first.click()
    page.wait_for_selector(".verdict.good")
    go(page, "motion")
    page.wait_for_selector("#motion-command code")
    assert not serious(page)
    go(page, "identify")
    page.get_by_role("button", name="Start the identification").click()
    page.wait_for_selector(".verdict:not(.bad)", timeout=60_000)
    assert not serious(page)
    go(page, "use")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=".urdf").first.click()
    assert not serious(page)
    page.goto(studio.base + "/library")
    page.wait_for_selector("text=runs/identify-1")
    assert not serious(page)
    # What came out is the arm that made the logs, but for what its motion does not show: by the torque along it.
    run = studio.folder / "runs"
    found = load_model(next(run.glob("export-*/*.urdf")))
    assert Path(download.value.path()).read_bytes() == next(run.glob("export-*/*.urdf")).read_bytes()
    result = json.loads((run / "identify-1" / "result.json").read_text("utf-8"))
    assert result["verdict"]["grade"] in ("good", "usable")
    assert found.robot.joint_names == robot.joint_names
    truth, log = Model.nominal(robot), clean("rotradi", 7)  # a motion that nobody has seen
    still = np.zeros_like(log.q)
    gravity = truth.torque(log.q, still, still)
    # 5 %: a hundred times what noise leaves after a thousand samples, and far below what a wrong sign does.
    assert np.abs(found.torque(log.q, still, still) - gravity).max() < 0.05 * np.abs(gravity).max()


@apart
@pytest.mark.proof
def test_a_page_outlives_its_server_and_so_does_a_job(page: Any, studio: Served) -> None:
    """A search runs while the server is killed (−9); started again at the same place, it finds the job at work. The
    open page asks for the new address, which shows the job; it is cancelled for certain."""
    (studio.folder / "steelyard.toml").write_text('robot = "szabo3r"\nruns = "runs"\n')
    page.goto(studio.base + "/motion")
    page.click("summary:has-text('More')")
    page.select_option("[name=optimiser]", "ga")
    page.fill("[name=generations]", "100000")
    page.press("[name=generations]", "Tab")
    page.wait_for_selector("#motion-command code:has-text('100000')")
    page.click("text=Start the search")
    page.wait_for_selector("#motion-search .curve path.best")
    (begun,) = job_folders(studio.folder).glob("*/begun.json")
    pid = json.loads(begun.read_text())["pid"]
    aside = [
        int(p.name) for p in Path("/proc").glob("[0-9]*") if parent(p) == studio.process.pid and int(p.name) != pid
    ]
    assert aside or not Path("/proc").exists()
    studio.kill()
    until(lambda: not any(map(lives, aside)))  # it leaves no process but the job
    page.get_by_text("does not answer").wait_for()
    told = begun.parent / "events.jsonl"
    size = told.stat().st_size
    until(lambda: told.stat().st_size > size)  # it goes on alone
    studio.start()
    page.get_by_text("This door is shut").wait_for()  # a cookie holds for one start of the server
    page.goto(studio.address)
    page.wait_for_selector("#jobs [data-state=running] progress")
    page.locator("#jobs [data-state=running]").get_by_role("button", name="Cancel").click()
    page.wait_for_selector("#jobs [data-state=cancelled]")
    until(lambda: not lives(pid))
    assert not list(studio.folder.glob("runs/*"))


def test_two_tabs_see_the_same_and_corrupt_nothing(page: Any, studio: Served) -> None:
    """What one page does, the other shows; and many changes at once leave a project file that says the last of each."""
    other = page.context.new_page()
    other.goto(studio.base + "/robot")
    page.goto(studio.base + "/robot")
    page.get_by_role("button", name="szabo3r").click()
    other.wait_for_selector("#rail li.done:has-text('szabo3r')")
    other.wait_for_selector("figure.robot")
    clients = [Client(studio) for _ in range(4)]
    failed: list[Any] = []

    def hammer(client: Client, z: float) -> None:
        for k in range(8):
            status, body = client.do("robot/gravity", x="0", y="0", z=str(z + 0.01 * k))
            if status != 200:
                failed.append(body)

    threads = [threading.Thread(target=hammer, args=(c, -9.0 - n)) for n, c in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    text = (studio.folder / "steelyard.toml").read_text()
    assert text.count("gravity") == 1
    assert 'robot = "szabo3r"' in text
    other.close()


def test_who_is_quicker_than_the_scripts_is_answered_all_the_same(page: Any, studio: Served) -> None:
    """On a slow machine a button stands there before the scripts do: what it asks for waits for them."""
    (studio.folder / "steelyard.toml").write_text('robot = "szabo3r"\n')
    held = _held(page, studio.base + "/library", "studio.js")
    page.evaluate(
        """() => {
            const form = document.createElement("form");
            form.method = "post";
            form.dataset.action = "robot/gravity";
            form.innerHTML = "<input name=x value=0><input name=y value=0><input name=z value=-9.5>";
            document.getElementById("stage").append(form);
            form.requestSubmit();
        }"""
    )
    until(lambda: bool(held))
    assert page.url == studio.base + "/library"
    assert "gravity" not in (studio.folder / "steelyard.toml").read_text()
    held[0].continue_()
    until(lambda: "gravity" in (studio.folder / "steelyard.toml").read_text())


@pytest.mark.parametrize("way", ["chosen", "dropped"])
def test_a_file_that_comes_before_the_scripts_is_taken_once_they_are_here(
    page: Any, studio: Served, tmp_path: Path, way: str
) -> None:
    """A hand, or a script, may give a file while the page still loads; it is sent, and sent once."""
    given = tmp_path / "arm.urdf"
    model_to_urdf(Model.nominal(load_robot("szabo3r")), given)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    held = _held(page, studio.base + "/robot", "upload.js")
    if way == "chosen":
        page.set_input_files(".drop input[type=file]", str(given))
    else:
        page.evaluate(
            """(text) => {
                const given = new DataTransfer();
                given.items.add(new File([text], "arm.urdf"));
                const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: given });
                document.querySelector(".drop").dispatchEvent(drop);
            }""",
            given.read_text(),
        )
    until(lambda: bool(held))
    assert not sent
    held[0].continue_()
    page.wait_for_selector("figure.robot")
    assert len(sent) == 1
    assert "arm.urdf" in (studio.folder / "steelyard.toml").read_text()


def _held(page: Any, address: str, script: str) -> list[Any]:
    """The page of an `address` whose `script` does not come until the route that is kept here is let go."""
    held: list[Any] = []
    page.route(f"**/assets/{script}", lambda route: held.append(route))
    page.goto(address, wait_until="commit")
    page.wait_for_selector("#jobs", state="attached")
    return held
