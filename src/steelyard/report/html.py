"""`render_report`: one HTML page that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from steelyard.errors import SteelyardError
from steelyard.ground.files import write_whole
from steelyard.ground.repeat import repeat_command
from steelyard.report.elements import (
    COMMAND,
    IN_SPACE,
    PLOT_DATA,
    SCENE_DATA,
    TABS,
    CalloutKind,
    Html,
    anchor,
    text,
)
from steelyard.report.plotly_js import ASSETS, SCRIPTS, compressed, installed_script
from steelyard.report.scene import ROBOT_SCRIPTS

# In the order in which they need each other; each goes into pages that hold one of its marks.
_ANY = (PLOT_DATA, SCENE_DATA, TABS, COMMAND)
_OWN_SCRIPTS = {
    "base.js": _ANY,
    "report.js": _ANY,
    "joints.js": (PLOT_DATA,),
    "clock.js": (PLOT_DATA, SCENE_DATA),
    **dict.fromkeys(ROBOT_SCRIPTS, (SCENE_DATA,)),
    "tabs.js": _ANY,
}


@dataclass(frozen=True)
class Section:
    """A part of a report: a title for the table of contents, and what stands below it."""

    title: str
    body: Html


@dataclass(frozen=True)
class Verdict:
    """What the reader came for, on top: good, warning or bad, one headline, and the reasons."""

    kind: CalloutKind
    headline: str
    points: tuple[str, ...] = ()


def render_report(
    title: str, sections: Sequence[Section], *, verdict: Verdict | None = None, subtitle: str = "", footer: str = ""
) -> str:
    """The page. It is self-contained: styles, scripts and data are inside, so that it opens offline and for years.

    `title`, `subtitle` and `verdict` (None: there is none) stand above the `sections`. Of plotly.js there is what the
    figures need, compressed (0.5 MB, or 0.8 MB for figures in space), once, and only where there is a figure. The same
    sections give the same bytes. `footer` says by default what made the page.
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
    """A page that holds `body`, figures, and nothing else: self-contained, for a frame in a notebook."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<style>\n{_own('report.css')}</style></head><body><main>{body}</main>{_scripts(body)}</body></html>"
    )


def _repeated() -> str:
    command = repeat_command()
    return f'<p class="repeat">To repeat it: <code>{text(command)}</code></p>' if command else ""


def verdict_html(verdict: Verdict) -> Html:
    """A `verdict` as it stands on top of a page."""
    points = "".join(f"<li>{text(point)}</li>" for point in verdict.points)
    inside = f"<ul>{points}</ul>" if points else ""
    return Html(f'<div class="verdict {verdict.kind}" role="status"><p>{text(verdict.headline)}</p>{inside}</div>')


def _scripts(bodies: str) -> str:
    """What of the scripts the page needs: plotly.js for figures, our own for figures, a robot, tabs and commands."""
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
    """The part of plotly.js that goes by this name, compressed; made now if the build of the package left it out."""
    path = ASSETS / name
    if not path.is_file():
        try:
            write_whole(path, compressed(installed_script(), SCRIPTS[name]))
        except OSError as error:
            raise SteelyardError(
                f"Reports need {path}, which building the package makes; 'pip install plotly' and then "
                f"'python -m steelyard.report.plotly_js' make it too. ({error})"
            ) from None
    return path.read_bytes()


@cache
def _script(name: str) -> str:
    """A script of ours without what only its reader needs: a fifth of it."""
    return re.sub(r"^[ ]+|^[ ]*//.*\n", "", _own(name), flags=re.MULTILINE)


def _own(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
