"""End-to-end tests in a browser: from logs with a mistake to a URDF, restarts, two tabs, and slow pages."""

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
from conftest_studio import Client, Served, job_folders, own_process
from simulated_arms import arm_folder, wrong_sign

from steelyard import load_robot
from steelyard.dynamics.model import Model
from steelyard.export import load_model, model_to_urdf


def wait_until(what: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def parent(process: Path) -> int:
    """Return the parent of a process from its folder in /proc; 0 if it has ended."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def go(page: Any, stage: str) -> None:
    page.click(f"#rail a[href='/{stage}']")
    page.wait_for_selector(f"body[data-stage={stage}]")


def serious(page: Any) -> list[str]:
    """List the serious accessibility problems of a page (axe-core)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{v['id']}: {v['nodes'][0]['html'][:150]}" for v in found if v["impact"] in ("serious", "critical")
    ]  # fmt: skip


def test_from_dropped_files_to_a_urdf(page: Any, studio: Served, tmp_path: Path) -> None:
    """Upload robot and logs, fix a wrong sign, identify and export; every stage must be accessible."""
    given = arm_folder(tmp_path / "given", wrong_sign, validated=True)
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
    # The model must reproduce the torques of the simulated arm on a new motion.
    run = studio.folder / "runs"
    found = load_model(next(run.glob("export-*/*.urdf")))
    assert Path(download.value.path()).read_bytes() == next(run.glob("export-*/*.urdf")).read_bytes()
    result = json.loads((run / "identify-1" / "result.json").read_text("utf-8"))
    assert result["verdict"]["grade"] in ("good", "usable")
    assert found.robot.joint_names == robot.joint_names
    truth, log = Model.nominal(robot), clean("rotradi", 7)  # a new motion
    still = np.zeros_like(log.q)
    gravity = truth.torque(log.q, still, still)
    # 5 % is 100 times the effect of noise, and far below that of a wrong sign.
    assert np.abs(found.torque(log.q, still, still) - gravity).max() < 0.05 * np.abs(gravity).max()


@own_process
@pytest.mark.proof
def test_pages_and_jobs_survive_a_restart_of_the_server(page: Any, studio: Served) -> None:
    """The server is killed during a search and restarted; the new server finds the job, and the page can cancel it."""
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
    helpers = [
        int(p.name) for p in Path("/proc").glob("[0-9]*") if parent(p) == studio.process.pid and int(p.name) != pid
    ]
    assert helpers or not Path("/proc").exists()
    studio.kill()
    wait_until(lambda: not any(map(is_alive, helpers)))  # only the job survives
    page.get_by_text("does not answer").wait_for()
    told = begun.parent / "events.jsonl"
    size = told.stat().st_size
    wait_until(lambda: told.stat().st_size > size)  # the job continues
    studio.start()
    page.get_by_text("Access denied").wait_for()  # the cookie is invalid after a restart
    page.goto(studio.address)
    page.wait_for_selector("#jobs [data-state=running] progress")
    page.locator("#jobs [data-state=running]").get_by_role("button", name="Cancel").click()
    page.wait_for_selector("#jobs [data-state=cancelled]")
    wait_until(lambda: not is_alive(pid))
    assert not list(studio.folder.glob("runs/*"))


def test_two_tabs_stay_consistent(page: Any, studio: Served) -> None:
    """One page shows the changes of the other, and concurrent changes leave a consistent project file."""
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


def test_clicks_before_the_scripts_are_loaded_are_handled(page: Any, studio: Served) -> None:
    """On a slow machine a button may be visible before the scripts are loaded."""
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
    wait_until(lambda: bool(held))
    assert page.url == studio.base + "/library"
    assert "gravity" not in (studio.folder / "steelyard.toml").read_text()
    held[0].continue_()
    wait_until(lambda: "gravity" in (studio.folder / "steelyard.toml").read_text())


@pytest.mark.parametrize("way", ["chosen", "dropped"])
def test_files_chosen_before_the_scripts_are_loaded_are_sent_once(
    page: Any, studio: Served, tmp_path: Path, way: str
) -> None:
    """A file may be chosen while the page still loads; it must be sent exactly once."""
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
    wait_until(lambda: bool(held))
    assert not sent
    held[0].continue_()
    page.wait_for_selector("figure.robot")
    assert len(sent) == 1
    assert "arm.urdf" in (studio.folder / "steelyard.toml").read_text()


def _held(page: Any, address: str, script: str) -> list[Any]:
    """Open an `address` and hold back its `script` until the returned route continues."""
    held: list[Any] = []
    page.route(f"**/assets/{script}", lambda route: held.append(route))
    page.goto(address, wait_until="commit")
    page.wait_for_selector("#jobs", state="attached")
    return held
