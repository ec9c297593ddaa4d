"""What the studio does in a browser, measured: `python benchmarks/studio.py [SECTION …]`; all of them by default.

A studio of a folder of its own is opened in a headless Chromium on this machine. Each section is a function that prints
what it measured, and what was asked for.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steelyard import load_robot
from steelyard.demo import simulated_log
from steelyard.dynamics.model import Model

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
ROBOT, JOINTS = "ns16", 6
SMALL = "rotradi"
SECTIONS: dict[str, Callable[[], None]] = {}


def section(function: Callable[[], None]) -> Callable[[], None]:
    """Enters a section by its name."""
    SECTIONS[function.__name__] = function
    return function


@contextmanager
def studio(project: str) -> Iterator[tuple[Path, Any, Any]]:
    """A studio whose folder holds a `project` file, opened: its folder, its process, and the page."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as p:
        folder = Path(place)
        (folder / "steelyard.toml").write_text(project)
        command = [sys.executable, "-m", "steelyard", "studio", place, "--no-open", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
            browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            for _ in range(100):
                try:
                    page.goto(address)
                    break
                except Exception:
                    time.sleep(0.1)
            yield folder, process, page
            browser.close()
        finally:
            process.terminate()
            process.wait()


def long_log(path: Path, rows: int, chunk: int = 500_000) -> None:
    """A Parquet log of 1 kHz with slow and fast parts and noise."""
    rng = np.random.default_rng(0)
    file = None
    for start in range(0, rows, chunk):
        t = 1e-3 * (start + np.arange(min(chunk, rows - start)))[:, None]
        k = np.arange(JOINTS)
        q = (1.0 + 0.3 * k) * np.sin(0.3 * (k + 1) * t + k) * np.sin(1e-3 * t * (k + 1))
        dq = np.gradient(q, 1e-3, axis=0) + 0.01 * rng.normal(size=q.shape)
        tau = 20.0 * np.cos(q) + 5.0 * np.tanh(10.0 * dq) + rng.normal(size=q.shape)
        signals = {"q": q, "dq": dq, "tau": tau}
        columns = {f"{name}{j + 1}": x[:, j].astype("f4") for name, x in signals.items() for j in range(JOINTS)}
        table = pa.table({"t": t[:, 0], **columns})
        file = file or pq.ParquetWriter(path, table.schema, compression="none")
        file.write_table(table)
    assert file is not None
    file.close()


# Moves by 1 % of the window at every frame for some seconds; gives the milliseconds between frames.
PAN = """async share => {
  const plot = Steelyard.plots()[0], about = plot.about, span = (about.end - about.start) * share;
  const from = about.start + 0.3 * (about.end - about.start - span);
  plot.go(from, from + span);
  for (let k = 0; k < 500 && !plot.complete; k++) { await new Promise(r => setTimeout(r, 10)); }
  const steps = [], drawn = plot.frames, begin = performance.now();
  for (let last = begin; last - begin < 5000;) {
    plot.move(0.01);
    const now = await new Promise(requestAnimationFrame);
    steps.push(performance.now() - last);
    last = performance.now();
  }
  return { steps: steps, drawn: plot.frames - drawn };
}"""


@section
def pan() -> None:
    """Panning over 1e7 samples of six joints, three signals each: 30 frames a second were asked for."""
    rows = 10_000_000
    with studio(f'robot = "{ROBOT}"\n[logs]\nidentify = ["logs/long.parquet"]\n') as (folder, process, page):
        (folder / "logs").mkdir()
        long_log(folder / "logs/long.parquet", rows)
        begin = time.monotonic()
        page.goto(page.url.rstrip("/").rpartition("/")[0] + "/data")
        page.locator(".plot-values td").first.wait_for(timeout=180_000)
        print(f"pan: {rows:,} samples, {JOINTS} joints, 3 signals; plot made in {time.monotonic() - begin:.0f} s")
        for share in (1.0, 0.3, 0.1, 0.01, 1e-4):
            found = page.evaluate(PAN, share)
            steps = np.array(found["steps"])
            rate = 1000.0 * len(steps) / steps.sum()
            late = f"95 % within {np.quantile(steps, 0.95):.0f} ms, longest {steps.max():.0f} ms"
            drawn = f"{found['drawn']} of {len(steps)} drawn"
            print(
                f"  {share:8.2%} in the window: {rate:5.1f} frames/s, {drawn}; {np.median(steps):.0f} ms each, {late}"
            )
        print(f"  {_memory(process)}")


def _memory(process: Any) -> str:
    status = Path(f"/proc/{process.pid}/status").read_text()
    most = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1e3
    return f"most memory of the server: {most:.0f} MB (300 MB were asked for)"


@section
def upload() -> None:
    """A Parquet log of 2 GB: dropped, taken, drawn."""
    with studio(f'robot = "{ROBOT}"\n') as (_, process, page), tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "large.parquet"
        long_log(path, 20_000_000)
        page.goto(page.url.rstrip("/").rpartition("/")[0] + "/data")
        begin = time.monotonic()
        page.set_input_files(".drop input[type=file]", str(path))
        page.locator("a", has_text="logs/large.parquet").wait_for(timeout=300_000)
        taken = time.monotonic() - begin
        page.locator(".plot-values td").first.wait_for(timeout=300_000)
        print(
            f"upload: {path.stat().st_size / 1e9:.2f} GB taken in {taken:.0f} s, drawn {time.monotonic() - begin:.0f} s"
        )
        print(f"  {_memory(process)}")


# When the first text was painted, and when the biggest piece was, in ms after the address was asked for.
_PAINTED = """() => new Promise(done => new PerformanceObserver(list => {
  done([performance.getEntriesByName('first-contentful-paint')[0].startTime, list.getEntries().pop().startTime]);
}).observe({ type: 'largest-contentful-paint', buffered: true }))"""
_LONG = ("[name=optimiser]", "ga"), ("[name=generations]", "100000")


@section
def answers() -> None:
    """First paint of every stage (1.5 s were asked for), and answers to a hand while a job runs (150 ms for 95 %)."""
    project = f'robot = "{SMALL}"\nruns = "runs"\n[logs]\nidentify = ["logs/a.csv"]\n'
    with studio(project) as (folder, process, page):
        (folder / "logs").mkdir()
        simulated_log(Model.nominal(load_robot(SMALL)), seed=1).save(folder / "logs/a.csv")
        base = page.url.rpartition("/")[0]
        for stage in ("robot", "data", "check", "motion", "identify", "use", "library"):
            page.goto(f"{base}/{stage}")
            first, biggest = page.evaluate(_PAINTED)
            print(f"answers: {stage:9} first paint {first:4.0f} ms, biggest piece {biggest:5.0f} ms")
        page.goto(base + "/motion")
        page.click("summary:has-text('More')")
        page.select_option(*_LONG[0])
        page.fill(*_LONG[1])
        page.press(_LONG[1][0], "Tab")
        page.click("text=Start the search")
        page.wait_for_selector("#jobs [data-state=running] progress")
        page.goto(base + "/identify")
        times = []
        for k in range(60):  # a menu that is changed, and the command that follows it
            begin = time.perf_counter()
            page.get_by_label("Friction and drives").select_option(("plain", "")[k % 2])
            page.locator("code", has_text=re.compile((r"--plain", r"--holdout [\d.]+$")[k % 2])).first.wait_for()
            times.append(1000.0 * (time.perf_counter() - begin))
        print(f"  a menu changed until its command is shown, while a search runs: median {np.median(times):.0f} ms, "
              f"95 % within {np.quantile(times, 0.95):.0f} ms, longest {max(times):.0f} ms")  # fmt: skip
        times = []
        for k in range(40):
            there = ("library", "check", "identify", "use")[k % 4]
            begin = time.perf_counter()
            page.click(f"a[href='/{there}']")
            page.wait_for_selector(f"body[data-stage={there}] main h1")
            times.append(1000.0 * (time.perf_counter() - begin))
        print(f"  a click on the rail until the next stage stands there: median {np.median(times):.0f} ms, "
              f"95 % within {np.quantile(times, 0.95):.0f} ms")  # fmt: skip
        print(f"  {_memory(process)}")
        page.locator("#jobs [data-state=running]").get_by_role("button", name="Cancel").click()
        page.wait_for_selector("#jobs [data-state=cancelled]")


@section
def walk() -> None:
    """A UR10e from dropped files to a URDF, by hand: less than three minutes were asked for. Needs $STEELYARD_DATA."""
    data = Path(os.environ.get("STEELYARD_DATA", "")) / "ur10e"
    if not (data / "robot.urdf").is_file():
        print("walk: $STEELYARD_DATA has no ur10e; left out")
        return
    logs = [str(data / f"ident__20_02_{name}.parquet") for name in ("10-30sec_12harm", "12-50sec_12harm")]
    with studio("") as (_, _, page):
        begin, hands = time.perf_counter(), 0

        def did(what: str) -> None:
            nonlocal hands
            hands += 1
            print(f"  {time.perf_counter() - begin:5.1f} s  {hands:2}  {what}")

        def go(stage: str) -> None:
            page.click(f"#rail a[href='/{stage}']")
            page.wait_for_selector(f"body[data-stage={stage}]")
            did(f"to {stage}")

        print("walk: seconds, and what the hand does")
        page.set_default_timeout(120_000)
        page.set_input_files(".drop input[type=file]", str(data / "robot.urdf"))
        page.wait_for_selector("figure.robot")
        did("drop the URDF")
        go("data")
        page.set_input_files(".drop input[type=file]", logs)
        page.locator("label:has-text('torque_constants') input").first.fill(
            "11.976, 11.976, 9.839, 10.763, 10.763, 10.763"
        )
        did("drop two logs")
        did("type what an ampere is worth")
        page.click("text=Use this mapping")
        page.wait_for_selector("#rail li:has-text('mapped')")
        did("use this mapping")
        go("check")
        page.wait_for_selector(".verdict")
        go("identify")
        page.get_by_role("button", name="Start the identification").click()
        did("start the identification")
        page.wait_for_selector(".verdict")
        go("use")
        page.get_by_role("button", name="Export").click()
        did("export")
        with page.expect_download() as download:
            page.get_by_role("link", name=".urdf").first.click()
            did("take the URDF")
        print(f"  {download.value.suggested_filename}: {time.perf_counter() - begin:.0f} s, {hands} actions")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    for name in words.parse_args().sections or SECTIONS:
        SECTIONS[name]()
