"""`render_report`: one HTML page that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from steelyard.report.elements import Html, Kind, anchor, text


@dataclass(frozen=True)
class Section:
    """A part of a report: a title for the table of contents, and what stands below it."""

    title: str
    body: Html


@dataclass(frozen=True)
class Verdict:
    """What the reader came for, on top: good, warning or bad, one headline, and the reasons."""

    kind: Kind
    headline: str
    points: tuple[str, ...] = ()


def render_report(
    title: str, sections: Sequence[Section], *, verdict: Verdict | None = None, subtitle: str = "", footer: str = ""
) -> str:
    """The page. It is self-contained: styles, scripts and data are inside, so that it opens offline and for years.

    Plotly's script (about 5 MB) is put in once, and only where there is a figure. The same sections give the same
    bytes.
    """
    taken: set[str] = set()
    names = [anchor(section.title, taken) for section in sections]
    toc = "".join(f'<li><a href="#{n}">{text(s.title)}</a></li>' for n, s in zip(names, sections, strict=True))
    bodies = "\n".join(
        f'<section id="{n}"><h2>{text(s.title)}</h2>\n{text(s.body)}\n</section>'
        for n, s in zip(names, sections, strict=True)
    )
    below = f'<p class="subtitle">{text(subtitle)}</p>' if subtitle else ""
    end = f"<footer>{text(footer)}</footer>" if footer else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>
{_asset("report.css")}</style>
</head>
<body>
<header>
<h1>{text(title)}</h1>
{below}
{_verdict(verdict)}
</header>
<div class="page">
<nav aria-label="Contents"><details open><summary>Contents</summary><ol>{toc}</ol></details></nav>
<main>
{bodies}
{end}
</main>
</div>
{_scripts() if 'class="plot-data"' in bodies else ""}
</body>
</html>
"""


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    points = "".join(f"<li>{text(point)}</li>" for point in verdict.points)
    inside = f"<ul>{points}</ul>" if points else ""
    return f'<div class="verdict {verdict.kind}" role="status"><p>{text(verdict.headline)}</p>{inside}</div>'


def _scripts() -> str:
    from plotly.offline import get_plotlyjs

    library = get_plotlyjs().replace("</script", "<\\/script")
    return (
        "<noscript><p>The figures need JavaScript; the tables do not.</p></noscript>\n"
        f"<script>{library}</script>\n<script>\n{_asset('report.js')}</script>"
    )


def _asset(name: str) -> str:
    return files("steelyard.report").joinpath("assets", name).read_text(encoding="utf-8")
