"""A page with hostile names in Chromium: their scripts do not run, nothing is requested, and each name is shown
unchanged in text, tables, titles and figures."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hostile_names import FIT

from steelyard.report.elements import callout, figure_html, join, paragraph, table_html
from steelyard.report.html import Section, Verdict, render_report
from steelyard.report.plots.figure import SERIES, Figure
from steelyard.report.plots.lines import Line, Panel, line_panels

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
# Before the page: record an alert. After the page: record network requests.
WATCH = "<script>window.alert = () => document.documentElement.setAttribute('data-owned', 'yes')</script>"
ASKED = (
    "<script>setTimeout(() => document.documentElement.setAttribute('data-asked', "
    "performance.getEntriesByType('resource').map(e => e.name).join(' ')), 2000)</script>"
)


class PageText(HTMLParser):
    """Collects the text of some elements, by tag or class."""

    def __init__(self) -> None:
        super().__init__()
        self.page: dict[str, str | None] = {}
        self.tags: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[tuple[str, str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.page = attributes if tag == "html" else self.page
        self.tags.append(tag)
        kind = {"td": "td", "h2": "h2", "title": "title", "li": "li", "p": "p"}.get(tag, "")
        if tag == "text":
            kind = next((c for c in ("legendtext", "annotation-text") if c in (attributes.get("class") or "")), "")
        if kind:
            self._open.append((tag, kind, []))

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1][0] == tag:
            _, kind, pieces = self._open.pop()
            self.texts.setdefault(kind, []).append("".join(pieces))

    def handle_data(self, data: str) -> None:
        for _, _, pieces in self._open:
            pieces.append(data)


@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
def test_hostile_names_are_shown_unchanged_and_do_not_run(tmp_path: Path) -> None:
    names = list(FIT.values())
    drawn = [name for name in names if set(name) & set("<>&%{\\\u202e")]  # a subset: many panels take seconds
    x = np.arange(3.0)
    stacked = Figure.panels(drawn)
    for row, name in enumerate(drawn, start=1):
        stacked.line(row, x, x, name, SERIES[0], 1.0)
    figures = (figure_html(stacked, names[0], names[1]),
               figure_html(line_panels([Panel("", tuple(Line.of(n, x, x) for n in drawn))]), names[2]))  # fmt: skip
    texts = [piece for name in names for piece in (paragraph(name), callout("note", name))]
    rows = [[name, 1.0] for name in names]
    sections = [Section(name, join(*texts) if k == 0 else join()) for k, name in enumerate(names)]
    sections += [Section("Rows", table_html(["name", names[0]], rows, names[0])), Section("Drawn", join(*figures))]
    page = render_report(names[0], sections, verdict=Verdict("bad", names[0], tuple(names)), subtitle=names[1])
    path = tmp_path / "page.html"
    path.write_text(page.replace("<head>", f"<head>{WATCH}").replace("</body>", f"{ASKED}</body>"), "utf-8")
    # The window is as high as the page, so that all figures are drawn.
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
               f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1400,12000", "--virtual-time-budget=3000",
               "--dump-dom", path.as_uri()]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    read = PageText()
    read.feed(re.sub(r"<script\b.*?</script>", "", shown, flags=re.DOTALL))
    assert "data-owned" not in read.page
    assert read.page["data-asked"] == ""
    assert not {"img", "iframe", "object", "embed", "form"} & set(read.tags)
    assert read.texts["title"][0] == names[0]
    for kind in ("h2", "td", "li"):
        assert set(names) <= set(read.texts[kind]), kind
    for kind in ("annotation-text", "legendtext"):
        assert set(drawn) <= {text.replace("\u00a0", " ") for text in read.texts[kind]}, kind
