"""`render_report`: writes a self-contained HTML page, which loads nothing from the network."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from steelyard.errors import SteelyardError
from steelyard.ground.files import write_whole
from steelyard.ground.grades import Tone
from steelyard.ground.repeat import repeat_command
from steelyard.ground.short_repr import short_repr
from steelyard.report.elements import (
    COMMAND,
    IN_SPACE,
    PLOT_DATA,
    SCENE_DATA,
    TABS,
    Html,
    anchor,
    text,
)
from steelyard.report.plotly_js import ASSETS, SCRIPTS, installed_script, trim_and_compress
from steelyard.report.scene import ROBOT_SCRIPTS

# Scripts in the order of their dependencies, each with the marks of the pages that need it.
_ANY = (PLOT_DATA, SCENE_DATA, TABS, COMMAND)
_OWN_SCRIPTS = {
    "base.js": _ANY,
    "paper.js": (PLOT_DATA, SCENE_DATA),
    "report.js": _ANY,
    "joints.js": (PLOT_DATA,),
    "clock.js": (PLOT_DATA, SCENE_DATA),
    **dict.fromkeys(ROBOT_SCRIPTS, (SCENE_DATA,)),
    "tabs.js": _ANY,
}


@short_repr
@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        title: Heading, also listed in the table of contents.
        body: Content below the heading.
    """

    title: str
    body: Html


@dataclass(frozen=True)
class Verdict:
    """The main result, at the top of the page.

    Attributes:
        kind: Grade: good, note, warning or bad.
        headline: One sentence.
        points: Reasons, listed below the headline.
    """

    kind: Tone
    headline: str
    points: tuple[str, ...] = ()


def render_report(
    title: str, sections: Sequence[Section], *, verdict: Verdict | None = None, subtitle: str = "", footer: str = ""
) -> str:
    """Render a page with its styles, scripts and data inside, so that it also opens offline.

    A page with figures contains one compressed copy of plotly.js (0.5 MB; 0.8 MB with three-dimensional figures).
    Equal arguments give equal bytes.

    Args:
        title: Title of the page.
        sections: Sections, in their order.
        verdict: Main result at the top; None omits it.
        subtitle: Line below the title.
        footer: Last line; default: the version of steelyard.
    """
    taken: set[str] = set()
    names = [anchor(section.title, taken) for section in sections]
    toc = "".join(f'<li><a href="#{n}">{text(s.title)}</a></li>' for n, s in zip(names, sections, strict=True))
    bodies = "\n".join(
        f'<section id="{n}"><h2>{text(s.title)}</h2>\n{text(s.body)}\n</section>'
        for n, s in zip(names, sections, strict=True)
    )
    below = f'<p class="subtitle">{text(subtitle)}</p>' if subtitle else ""
    end = f"<footer>{text(footer or 'Made by steelyard ' + version('steelyard') + '.')}{_repeated()}</footer>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>
{_own("report.css")}</style>
</head>
<body>
<header>
<h1>{text(title)}</h1>
{below}
{"" if verdict is None else verdict_html(verdict)}
</header>
<div class="page">
<nav aria-label="Contents"><details open><summary>Contents</summary><ol>{toc}</ol></details></nav>
<main>
{bodies}
{end}
</main>
</div>
{_scripts(bodies)}
</body>
</html>
"""


def figure_page(body: Html) -> str:
    """Render a self-contained page that has only the figures in `body`, for a frame in a notebook."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<style>\n{_own('report.css')}</style></head><body><main>{body}</main>{_scripts(body)}</body></html>"
    )


def _repeated() -> str:
    command = repeat_command()
    return f'<p class="repeat">To repeat it: <code>{text(command)}</code></p>' if command else ""


def verdict_html(verdict: Verdict) -> Html:
    """Render a `verdict` for the top of a page."""
    points = "".join(f"<li>{text(point)}</li>" for point in verdict.points)
    inside = f"<ul>{points}</ul>" if points else ""
    first, dot, rest = verdict.headline.partition(". ")  # only the first sentence is bold
    more = f'<p class="rest">{text(rest)}</p>' if rest else ""
    headline = f"{first}{dot.strip()}"
    return Html(f'<div class="verdict {verdict.kind}" role="status"><p>{text(headline)}</p>{more}{inside}</div>')


def _scripts(bodies: str) -> str:
    """Return the scripts that a page needs for its figures, robots, tabs and commands."""
    wanted = [name for name, marks in _OWN_SCRIPTS.items() if any(mark in bodies for mark in marks)]
    if not wanted:
        return ""
    plotly = ""
    if PLOT_DATA in bodies:
        flat, space = SCRIPTS
        library = base64.b64encode(_library(space if IN_SPACE in bodies else flat)).decode("ascii")
        plotly = f'<script type="text/plain" id="plotly-js">{library}</script>\n'
    return (
        "<noscript><p>The figures need JavaScript; the tables do not.</p></noscript>\n"
        f"{plotly}<script>\n{''.join(_script(name) for name in wanted)}</script>"
    )


@cache
def _library(name: str) -> bytes:
    """Read a trimmed, compressed plotly.js; write it first if the build of the package did not."""
    path = ASSETS / name
    if not path.is_file():
        try:
            write_whole(path, trim_and_compress(installed_script(), SCRIPTS[name]))
        except OSError as error:
            raise SteelyardError(
                f"Reports need {path}, which the build of the package writes. To write it now, run 'pip install "
                f"plotly' and then 'python -m steelyard.report.plotly_js'. ({error})"
            ) from None
    return path.read_bytes()


@cache
def _script(name: str) -> str:
    """Read a script of this package without comments and indentation, which are a fifth of it."""
    return re.sub(r"^[ ]+|^[ ]*//.*\n", "", _own(name), flags=re.MULTILINE)


def _own(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
