"""Print-outs show the robot and stay small: figures have fewer points on paper, and all of them on the screen again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steelyard.report.elements import figure_html, join
from steelyard.report.html import Section, render_report
from steelyard.report.plots import residuals, torque_measured_predicted
from steelyard.report.scene import scene_html
from steelyard.robot.library import builtin
from steelyard.robot.shapes import scene_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
# Longest path that a browser draws, and number of marks, over all figures.
POINTS = """() => [
    Math.max(...Array.from(document.querySelectorAll(".js-line"), p => p.getAttribute("d").length)),
    document.querySelectorAll(".points path").length]"""
# Share of pixels of the robot's picture that are neither white nor transparent.
PAINTED = """() => {
    const picture = document.querySelector("img.on-paper"), canvas = document.createElement("canvas");
    canvas.width = picture.naturalWidth; canvas.height = picture.naturalHeight;
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0);
    const all = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    let seen = 0;
    for (let k = 3; k < all.length; k += 4) { if (all[k] > 100) { seen += 1; } }
    return 4 * seen / all.length;
}"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a six-axis arm with as many samples and figures as an identification has."""
    robot, rng = builtin("ns16"), np.random.default_rng(0)
    t = np.linspace(0.0, 60.0, 20000)
    q = np.sin(t[:, None] * np.arange(1, 7))
    tau, error = q + 0.1 * rng.normal(size=q.shape), rng.normal(size=q.shape)
    names = robot.joint_names
    torque = torque_measured_predicted(t, tau, q, names, band=0.2 + 0.0 * q, clock="run")
    clouds = [residuals(x, error, names, of) for of in ("velocity", "position") for x in (q,)]
    figures = [figure_html(torque, "Torque"), *(figure_html(figure, "Residuals") for figure in clouds)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    scene = scene_html(scene_of(robot, [("run", t, q)]), "The robot")
    path.write_text(render_report("A page", [Section("All", join(*figures, scene))]), "utf-8")
    return path


@pytest.mark.proof  # A browser draws 20,000 samples on paper.
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_a_print_out_is_small_and_shows_the_robot(page_file: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as p:
        flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = p.chromium.launch(executable_path=CHROMIUM, args=flags)
        page: Any = browser.new_page(viewport={"width": 1300, "height": 4000})
        page.goto(page_file.as_uri())
        page.wait_for_function("() => document.querySelectorAll('figure.plot[data-drawn=yes]').length === 3")
        page.wait_for_selector("figure.robot[data-drawn]")
        length, marks = page.evaluate(POINTS)
        assert len(page.pdf(format="A4")) < 3e6
        # The same as the browser does while it prints, held for a look.
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function(
            "() => { const p = document.querySelector('img.on-paper'); return p && p.naturalWidth; }"
        )
        shorter, fewer = page.evaluate(POINTS)
        assert shorter < 0.6 * length
        assert fewer < 0.6 * marks
        if page.get_attribute("figure.robot", "data-drawn") == "yes":  # where the browser has WebGL
            assert page.evaluate(PAINTED) > 0.02
            assert page.locator("img.on-paper").is_visible()
            assert not page.locator(".space canvas").is_visible()
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.wait_for_function(f"() => ({POINTS})()[0] > {0.9 * length}")
        assert page.locator("img.on-paper").count() == 0
        browser.close()
