"""Scripts of a page in Chromium: selecting a joint, opening a tab, pointing at a torque, which moves the robot."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.report.elements import commands, figure_html, join, paragraph, tabs
from steelyard.report.html import Section, render_report
from steelyard.report.plots import residual_map, torque_measured_predicted
from steelyard.report.scene import scene_html
from steelyard.robot.library import builtin
from steelyard.robot.shapes import scene_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
# Actions of a reader, one after the other; the observations are posted at the end.
READER = """<script>
var seen = {};
function panels() { return document.querySelectorAll("figure.plot[data-clock] .subplot").length; }
function until(what, then) {
  return new Promise(done => {
    (function look() { if (what()) { then(); done(); } else { setTimeout(look, 30); } })();
  });
}
until(() => panels() === 6 && document.querySelector("figure.robot").dataset.drawn, () => {
  seen.robot = document.querySelector("figure.robot").dataset.drawn;
  seen.hidden = document.querySelectorAll(".tab.away").length;
  document.querySelectorAll(".joints input")[2].click();
}).then(() => until(() => panels() === 1, () => {
  seen.title = document.querySelector("figure.plot[data-clock] .annotation-text").textContent;
  var area = document.querySelector("figure.plot[data-clock] .area"), box = area.getBoundingClientRect();
  var place = { clientX: box.left + 300, clientY: box.top + 150, bubbles: true };
  area.dispatchEvent(new PointerEvent("pointermove", place));
  seen.t = Steelyard.now.t;
  seen.clock = document.querySelector(".player output") && document.querySelector(".player output").textContent;
  seen.lines = area.querySelectorAll(".time-line").length;
  document.querySelectorAll("[role=tab]")[1].click();
})).then(() => until(() => document.querySelectorAll(".hm image").length, () => {
  seen.heat = document.querySelectorAll(".hm image").length;
  seen.run = document.querySelector(".command code").textContent;
  fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
}));
</script>"""


def read_by(page: str, profile: Path) -> dict[str, Any]:
    """Open the page in a browser and return the observations of READER."""
    answers: queue.Queue[bytes] = queue.Queue()

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode("utf-8"))

        def do_POST(self) -> None:
            answers.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             "--disable-background-networking", f"--user-data-dir={profile}", "--window-size=1400,3000",
             "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            seen: dict[str, Any] = json.loads(answers.get(timeout=60))
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    return seen


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_the_page_reacts_to_its_reader(tmp_path: Path) -> None:
    robot, t = builtin("ns16"), np.linspace(0.0, 10.0, 500)
    q = np.sin(t[:, None] * np.arange(1, 7))
    torque = figure_html(
        torque_measured_predicted(t, q, q, robot.joint_names, band=0.1 + 0 * q, clock="run 1"), "Torque"
    )
    pieces = tabs(("time", torque), ("both", figure_html(residual_map(q, q, q, robot.joint_names), "Map")))
    scene = scene_html(scene_of(robot, [("run 1", t, q)]), "The robot")
    after = commands(("Then:", "steelyard predict RUN log.csv"))
    page = render_report("A page", [Section("Robot", scene), Section("Torque", join(pieces, paragraph("x"), after))])
    seen = read_by(page.replace("</body>", f"{READER}</body>"), tmp_path / "profile")
    assert seen["title"] == robot.joint_names[1]
    assert seen["hidden"] == 1
    assert seen["heat"] == 1
    # Pointing at the plot selects a time and draws a line there.
    assert 0.0 < seen["t"] < 10.0
    assert seen["lines"] == 1
    assert seen["run"] == "steelyard predict RUN log.csv"
    assert seen["robot"] in ("yes", "no")  # without WebGL the page shows a message
    if seen["robot"] == "yes":
        assert seen["clock"] == f"{seen['t']:.2f} s"
