"""The studio's pages load the report's style sheet too, so a class means the same thing in both."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

# Classes that the studio refines on purpose: elements of reports that its pages also show.
SHARED = {"bad", "callout", "good", "gravity", "mark", "old", "scroll", "sign", "space", "warning", "away"}


def _classes(package: str, file: str) -> set[str]:
    css = resources.files(package).joinpath("assets", file).read_text(encoding="utf-8")
    selectors = re.sub(r"\{[^}]*\}|/\*.*?\*/", " ", css, flags=re.DOTALL)
    return set(re.findall(r"\.([a-z][a-z-]*)", selectors))


def test_no_class_has_two_meanings() -> None:
    both = _classes("steelyard.report", "report.css") & _classes("steelyard.studio", "studio.css")
    assert both <= SHARED


def test_no_lone_class_of_a_report_takes_an_element_out_of_the_page() -> None:
    """Such a rule makes an element of the studio with the same class unreadable."""
    css = resources.files("steelyard.report").joinpath("assets", "report.css").read_text(encoding="utf-8")
    lone = {name for name, rules in re.findall(r"^\.([a-z-]+) \{([^}]*)\}", css, re.MULTILINE) if "absolute" in rules}
    used = set()
    for file in resources.files("steelyard.studio").joinpath("assets").iterdir():
        if file.name.endswith(".js"):
            used |= set(re.findall(r'className = "([^"]+)"', file.read_text(encoding="utf-8")))
    assert not lone & {word for names in used for word in names.split()}


def test_docs_have_the_colours_of_reports() -> None:
    """One palette for reports, studio and site, light and dark."""
    report = resources.files("steelyard.report").joinpath("assets", "report.css").read_text(encoding="utf-8")
    docs = (Path(__file__).parents[2] / "docs/stylesheets/palette.css").read_text("utf-8")
    for theme, scheme in (("light", "default"), ("dark", "slate")):
        ours, theirs = (
            dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", re.search(re.escape(start) + r" \{([^}]*)\}", css)[1]))  # type: ignore[index]
            for css, start in ((report, f':root[data-theme="{theme}"]'), (docs, f'[data-md-color-scheme="{scheme}"]'))
        )
        same = {name: colour for name, colour in theirs.items() if name in ours}
        assert len(same) > 8
        assert {name: ours[name] for name in same} == same
