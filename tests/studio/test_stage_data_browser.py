"""The stage Data in a browser: uploads, menus, plots, and the robot at the cursor."""

from __future__ import annotations

import http.client
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tomlkit", reason="the studio's packages are not installed")

from conftest_studio import Client, Served, all_files, own_process
from test_stage_data import long_log, motion, plotted, project, resident, write_log


@pytest.fixture
def data(page: Any, studio: Served) -> Any:
    (studio.folder / "steelyard.toml").write_text('robot = "rotradi"\n')
    page.goto(studio.base + "/data")
    return page


def drop(page: Any, *files: Path) -> None:
    page.set_input_files(".drop input[type=file]", [str(file) for file in files])


# Values of the table, and time of the robot's posture.
_POINTED_AT = """() => [document.querySelector("#values .table-title").textContent,
  document.querySelector(".plot-values tbody td").textContent, document.querySelector(".follower").dataset.t]"""


def test_from_a_file_to_a_posture(data: Any, studio: Served, tmp_path: Path) -> None:
    assert data.get_by_text("Contents of a log").is_visible(), "an empty stage explains itself"
    drop(data, write_log(tmp_path / "run.csv"))
    canvas = data.locator(".long-plot canvas")
    canvas.wait_for()
    data.locator(".plot-values td").first.wait_for()
    box = canvas.bounding_box()
    # Pan and zoom by wheel, drag and keys; the label for screen readers names the visible range.
    whole = canvas.get_attribute("aria-label")
    assert "from 0 to 5.998 s" in whole
    data.mouse.move(box["x"] + 300, box["y"] + 100)
    data.mouse.wheel(0, -300)
    data.locator(".long-plot canvas:not([aria-label*='from 0 to 5.998 s'])").wait_for()
    before = canvas.get_attribute("aria-label")
    data.mouse.down()
    data.mouse.move(box["x"] + 200, box["y"] + 100, steps=4)
    data.mouse.up()
    assert canvas.get_attribute("aria-label") != before
    canvas.focus()
    data.keyboard.press("Home")
    assert canvas.get_attribute("aria-label") == whole
    # At the cursor, the values and the robot's posture are those of the log.
    data.mouse.move(box["x"] + 64 + (box["width"] - 76) / 2, box["y"] + 100)
    end, before, seen = time.monotonic() + 20.0, None, []
    while not (seen and seen == before and seen[0].startswith(f"At {float(seen[2] or 0.0):.4f} s")):
        assert time.monotonic() < end, seen
        before = seen
        data.wait_for_timeout(200)
        seen = data.evaluate(_POINTED_AT)
    assert float(seen[2]) == pytest.approx(2.999, abs=0.02)  # a pixel is 10 ms
    row = round(float(seen[2]) / 0.002)
    assert float(seen[1].replace("−", "-")) == pytest.approx(motion()["q"][row, 0], rel=1e-3)  # four digits are shown
    # Hide a joint and show it again.
    legend = data.locator(".plot-legend button").first
    legend.click()
    assert legend.get_attribute("aria-pressed") == "false"
    # The menu of the role writes the project file.
    data.locator("select[name=role]").select_option("friction")
    data.locator("#rail .warning").wait_for()
    assert project(Client(studio)).logs.friction == ("logs/run.csv",)


def test_a_plot_is_saved_as_picture_and_as_samples(data: Any, tmp_path: Path) -> None:
    drop(data, write_log(tmp_path / "run.csv"))
    data.locator(".plot-values td").first.wait_for()
    with data.expect_download() as download:
        data.get_by_role("button", name="Save the picture as PNG").click()
    assert download.value.suggested_filename == "run.csv.png"
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    data.evaluate("Steelyard.plots()[0].go(1.0, 1.2)")
    with data.expect_download() as download:
        data.get_by_role("button", name="Save the visible samples as CSV").click()
    head, *rows = Path(download.value.path()).read_text().splitlines()
    assert head.startswith("t [s],q q1 [rad]")
    table = np.array([row.split(",") for row in rows], float)
    assert table[0, 0] == pytest.approx(1.0, abs=0.002)
    assert len(table) == pytest.approx(100, abs=1)  # 500 Hz
    known = motion()
    first = round(table[0, 0] / 0.002)
    assert np.allclose(table[:, 1], known["q"][first : first + len(table), 0], atol=1e-6)


# Largest number of empty pixel columns, of 400, in the top panel while panning.
_BLANK = """async () => {
  const plot = Steelyard.plots()[0], canvas = document.querySelector(".long-plot canvas");
  const ink = canvas.getContext("2d");
  const ratio = canvas.width / canvas.clientWidth;
  plot.go(1.0, 1.2);
  let worst = 0;
  for (let k = 0; k < 48; k++) {
    if (k < 40) { plot.move(0.4); } else if (k % 2) { plot.all(); } else { plot.go(1.0, 1.1); }
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    const seen = ink.getImageData(70 * ratio, 10 * ratio, 400 * ratio, 140 * ratio);
    let blank = 0;
    for (let x = 0; x < seen.width; x++) {
      let found = false;
      for (let y = 0; y < seen.height && !found; y++) {
        const p = 4 * (y * seen.width + x), c = seen.data;
        found = c[p + 3] > 100 && Math.max(c[p], c[p + 1], c[p + 2]) - Math.min(c[p], c[p + 1], c[p + 2]) > 40;
      }
      blank += found ? 0 : 1;
    }
    worst = Math.max(worst, blank);
  }
  return worst;
}"""


@pytest.mark.proof
def test_a_plot_is_never_blank_on_a_slow_server(data: Any, tmp_path: Path) -> None:
    drop(data, write_log(tmp_path / "run.csv"))
    data.locator(".plot-values td").first.wait_for()
    asked = []

    def slow(route: Any) -> None:
        asked.append(route.request.url)
        time.sleep(0.2)
        route.continue_()

    data.route(re.compile("t0="), slow)
    assert data.evaluate(_BLANK) == 0
    assert asked, "finer tiles were requested meanwhile"


def test_a_cancelled_upload_leaves_no_file(data: Any, studio: Served, tmp_path: Path) -> None:
    large = tmp_path / "large.parquet"
    with large.open("wb") as file:
        file.truncate(3_000_000_000)  # sparse: needs no disk space, and takes long to send
    before = all_files(studio.folder)
    drop(data, large)
    data.locator(".going button").click()
    data.get_by_text("was not saved").wait_for()
    end = time.monotonic() + 10.0
    while all_files(studio.folder) != before and time.monotonic() < end:
        time.sleep(0.05)
    assert all_files(studio.folder) == before


def test_unsaved_choices_survive_updates(data: Any, studio: Served, tmp_path: Path) -> None:
    """Another page changes the project while this page has unsaved menus."""
    drop(data, write_log(tmp_path / "run.csv"))
    menu = data.locator("select[name='sign.1']")
    menu.select_option("-1")
    data.locator("h1").click()
    Client(studio).do("data/role", log="logs/run.csv", role="bare")
    data.locator("#rail .warning").wait_for()
    assert menu.input_value() == "-1"
    data.get_by_text("Write the mapping").click()
    data.locator("option[value=bare][selected]").wait_for(state="attached")  # the page after the update
    assert menu.input_value() == "-1"
    assert "-1" in (studio.folder / "columns.toml").read_text()


def test_readable_files_of_several_are_added(data: Any, studio: Served, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("t,q1\n0\n1,2,3\n")
    drop(data, write_log(tmp_path / "a.csv"), tmp_path / "broken.csv", write_log(tmp_path / "b.csv"))
    data.locator(".trouble", has_text="broken.csv").wait_for()
    assert {p.name for p in (studio.folder / "logs").iterdir()} == {"a.csv", "b.csv"}


def test_a_broken_file_is_reported_on_the_page(data: Any, studio: Served, tmp_path: Path) -> None:
    (tmp_path / "broken.csv").write_text("t,q1\n0\n1,2,3\n")
    drop(data, tmp_path / "broken.csv")
    data.locator(".trouble", has_text="cannot be read as a table").wait_for()
    assert not list((studio.folder / "logs").iterdir())


@own_process
@pytest.mark.proof
def test_two_gigabytes_are_received_in_little_memory(data: Any, studio: Served, tmp_path: Path) -> None:
    """A Parquet file of 2 GB is sent, read and drawn completely while the server stays below 300 MB."""
    path = tmp_path / "large.parquet"
    long_log(path, 26_500_000)
    size = path.stat().st_size
    assert size > 2_000_000_000
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], resident(studio.process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        drop(data, path)
        data.locator(".going progress").wait_for()
        data.locator("a", has_text="logs/large.parquet").wait_for(timeout=300_000)
        client = Client(studio)
        about = plotted(client, "logs/large.parquet", 300.0)
        assert about["samples"] == 26_500_000
        span = about["end"] - about["start"]
        for k in range(200):
            part = f"t0={about['start'] + span * k / 200}&t1={about['start'] + span * (k + 1) / 200}&pixels=1000"
            assert client.ask("GET", f"/data/data/plot?log=logs/large.parquet&{part}")[0] == 200
    except http.client.HTTPException as error:
        pytest.fail(str(error))
    finally:
        done.set()
        watcher.join()
    assert (studio.folder / "logs/large.parquet").stat().st_size == size
    assert most[0] < 300.0, f"{most[0]:.0f} MB"
