"""Hook of the site: guides come first in the search, then the manual; reference and decisions come last."""

from __future__ import annotations

from typing import Any

# Factors of the search's score by the beginning of a page's path; the first that fits.
BOOSTS = (
    # "gui" also begins "guide", and pages about payload are many.
    ("guides/studio", 14.0),
    ("guides/payload", 8.0),
    ("guides/", 4.0),
    ("using-the-model", 4.0),
    ("examples", 0.7),
    ("tutorial", 1.0),
    ("theory/", 0.6),
    ("course/", 0.6),
    ("api/", 0.25),
    ("decisions/", 0.2),
    ("errata", 0.3),
    ("peers", 0.4),
    ("benchmarks", 0.4),
    ("architecture", 0.3),
    ("", 2.0),
)


def boost(path: str) -> float:
    """Return the factor of the page at `path` below docs/."""
    return next(factor for start, factor in BOOSTS if path.startswith(start))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Set the factor of a page, unless its head does."""
    page.meta.setdefault("search", {"boost": boost(page.file.src_uri)})
    return markdown
