"""The stage Motion in a browser: start, watch, reload, stop and continue a search."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

SLOW = {"optimiser": "ga", "population": "60", "generations": "400"}


@pytest.fixture
def motion(page: Any, studio: Any) -> Any:
    (studio.folder / "steelyard.toml").write_text('robot = "szabo3r"\nruns = "runs"\n')
    page.goto(studio.base + "/motion")
    page.wait_for_selector("#motion-command code")
    return page


def _points(page: Any) -> int:
    return len(page.get_attribute(".curve path.best", "d"))


def _until(what: Callable[[], bool]) -> None:
    """Wait by polling: the page's policy forbids eval, which wait_for_function needs."""
    end = time.monotonic() + 20.0
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_search_is_watched_stopped_and_continued(motion: Any, studio: Any) -> None:
    page = motion
    page.fill("[name=dq_0]", "2.5")
    page.fill("[name=duration]", "4")
    page.click("summary:has-text('More')")
    page.select_option("[name=optimiser]", SLOW["optimiser"])
    page.fill("[name=population]", SLOW["population"])
    page.fill("[name=generations]", SLOW["generations"])
    page.press("[name=generations]", "Tab")
    page.wait_for_selector("#motion-command code:has-text('--generations 400')")
    assert "dq = [2.5, 3.0, 3.0]" in (studio.folder / "steelyard.toml").read_text()
    page.click("text=Start the search")
    page.wait_for_selector("#motion-search .curve path.best")
    early = _points(page)
    _until(lambda: _points(page) > early)
    assert "evaluations · best" in page.inner_text("#motion-search .numbers")
    # After a reload the whole curve is there and continues.
    page.reload()
    page.wait_for_selector("#motion-search .curve path.best")
    assert _points(page) >= early
    page.click("text=Stop and use the best motion")
    page.wait_for_selector("#motion-found")
    result = json.loads((studio.folder / "runs/excite-1/result.json").read_text())
    assert result["criterion"]["stopped"]
    assert "stopped before its end" in page.inner_text("#motion-found")
    page.wait_for_selector("#motion-found figure.robot[data-drawn=yes]")
    page.click("#motion-found .player button")
    _until(lambda: float(page.inner_text(".player output").split()[0]) > 0.05)
    page.click("text=Continue the search")
    page.wait_for_selector("#motion-search .curve path.best")
    # The curve includes the first part of the search.
    first = page.evaluate("document.querySelector('.curve svg').getAttribute('aria-label')")
    assert "evaluations" in first
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#motion-search button.danger")
    page.wait_for_selector("#motion-found")
    assert "Cancelled" in page.inner_text("#stage")
    assert not (studio.folder / "runs/excite-2").exists()


def test_a_wrong_limit_is_reported_in_the_form(motion: Any) -> None:
    motion.fill("[name=high_1]", "-9")
    motion.press("[name=high_1]", "Tab")
    motion.wait_for_selector("#motion-command :text('q2: the lower limit')")
    motion.click("text=Start the search")
    motion.wait_for_selector(".trouble.refusal :text('q2: the lower limit')")
    box = motion.locator(".trouble.refusal").bounding_box()
    assert box["width"] > 400  # a line of text, not a column of letters
    assert box["height"] < 200


def test_the_page_fits_390_pixels(motion: Any) -> None:
    motion.set_viewport_size({"width": 390, "height": 800})
    motion.wait_for_timeout(200)
    assert motion.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_two_tabs_do_not_update_each_other_forever(motion: Any, studio: Any) -> None:
    other = motion.context.new_page()
    other.goto(studio.base + "/motion")
    other.wait_for_selector("#motion-command code")
    motion.fill("[name=duration]", "7")
    motion.press("[name=duration]", "Tab")
    other.wait_for_selector("#motion-command code:has-text('--duration 7')")  # the other page shows the change
    motion.wait_for_timeout(1000)  # rail and jobs are updated once
    requests: list[str] = []
    for tab in (motion, other):
        tab.on("request", lambda request: requests.append(request.url))
    motion.wait_for_timeout(1500)
    assert requests == []


@pytest.mark.proof
def test_the_page_is_accessible(chromium: Any, studio: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    (studio.folder / "steelyard.toml").write_text('robot = "szabo3r"\nruns = "runs"\n')
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, bypass_csp=True)
    page = context.new_page()
    page.goto(studio.address)

    def found() -> list[tuple[str, Any]]:
        violations = axe.Axe().run(page).response["violations"]
        return [(v["id"], v["nodes"][0]["target"]) for v in violations if v["impact"] in ("serious", "critical")]

    page.goto(studio.base + "/motion")
    page.wait_for_selector("#motion-command code")
    assert found() == []
    words = ["excite", "--duration", "4", "--rate", "50", "--harmonics", "3", "--search-time", "0", "-o", "runs/a"]
    subprocess.run([sys.executable, "-m", "steelyard", *words], cwd=studio.folder, check=True, capture_output=True)
    page.reload()
    page.wait_for_selector("#motion-found figure.robot[data-drawn=yes]")
    assert found() == []
    page.emulate_media(color_scheme="dark")
    assert found() == []
    context.close()
