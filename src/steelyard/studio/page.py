"""The page around a stage: rail, jobs, and what every stage shows the same way."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from steelyard.report.elements import Html, callout, commands, join, text
from steelyard.report.scene import ROBOT_SCRIPTS
from steelyard.studio.jobs import StudioJob
from steelyard.studio.place import StudioFolder
from steelyard.studio.stage import RAIL, STUDIO_STAGES, Standing

_SIGNS = {"empty": "○", "done": "✓", "working": "…", "warning": "!", "bad": "✕"}
_WORDS = {"empty": "to do", "done": "done", "working": "at work", "warning": "look at it", "bad": "problem"}
# In the order in which they need each other; stages add theirs.
_SCRIPTS = (
    "theme.js", "base.js", "report.js", "joints.js", "clock.js", *ROBOT_SCRIPTS, "arrow.js", "tabs.js", "studio.js",
    "jobs.js", "typed.js", "upload.js",
)  # fmt: skip


def whole_page(place: StudioFolder, stage: str, body: Html, rail: Html, jobs: Html, scripts: Sequence[str] = ()) -> str:
    """The page of a `stage`: its `body` within the studio of a `place`, between `rail` and `jobs`; with its own
    `scripts`, names in `assets`."""
    named = STUDIO_STAGES[stage].title
    tags = "".join(f'<script defer src="/assets/{name}"></script>' for name in (*_SCRIPTS, *scripts))
    library = ' aria-current="page"' if stage == "library" else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(named)} · {text(place.root.name)} · Steelyard</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/report.css">
<link rel="stylesheet" href="/assets/studio.css">
<link rel="stylesheet" href="/assets/plot.css">
<script src="/assets/early.js"></script>
{tags}
</head>
<body data-stage="{stage}">
<a class="skip" href="#stage">Skip to the stage</a>
<header class="top"><span class="brand">Steelyard</span><span class="folder" title="{_quoted(str(place.root))}">{
        text(place.root.name)
    }</span><span class="away-right"><a href="/library"{library}>Library of runs</a>
<button type="button" id="theme" aria-label="Light or dark">◐</button></span></header>
<div class="frame">
<nav id="rail" aria-label="Stages">{rail}</nav>
<main id="stage" tabindex="-1" aria-label="{_quoted(named)}">{body}</main>
<aside id="jobs" aria-label="Jobs">{jobs}</aside>
</div>
<div id="said" role="status" aria-live="polite"></div>
</body>
</html>
"""


def rail_html(current: str, standings: Mapping[str, Standing]) -> Html:
    """The rail: every stage with where it stands (`standings`), `current` marked."""
    rows = []
    for k, name in enumerate(RAIL):
        at = standings[name]
        here = ' aria-current="page"' if name == current else ""
        rows.append(
            f'<li class="{at.kind}"><a href="/{name}"{here}><span class="sign" aria-hidden="true">{_SIGNS[at.kind]}'
            f'</span><span class="named">{k + 1} {text(STUDIO_STAGES[name].title)}</span><span class="words">'
            f'<span class="unseen">{_WORDS[at.kind]}: </span>{text(at.words)}</span></a></li>'
        )
    return Html(f"<ol>{''.join(rows)}</ol>")


def job_html(job: StudioJob, buttons: bool = True) -> Html:
    """A `job`: what, how far, and with `buttons` what can be done with it; the page's script keeps it true."""
    state = {"done": "good", "failed": "bad", "lost": "bad", "cancelled": "note"}.get(job.state, "note")
    words = {"waiting": "waits for its turn", "running": "begins", "done": "done"}.get(job.state, job.state)
    if job.code == 130:
        words = "stopped; the best so far is delivered"
    bar = (
        f'<progress max="1" value="0" aria-label="{_quoted(job.title)}"></progress>' if job.state == "running" else ""
    )  # fmt: skip
    made = []
    if buttons and job.live:
        made.append(button("job/cancel", "Cancel", id=job.id))
    if buttons and not job.live:
        made.append(button("job/clear", "Clear", id=job.id))
    why = f'<p class="why">{text(job.message)}</p>' if job.message and job.state in ("failed", "lost") else ""
    link = (
        f'<a href="/library?run={_quoted(job.output)}">{text(job.output)}</a>'
        if job.output and job.state == "done"
        else ""
    )
    return Html(
        f'<div class="job {state}" data-job="{job.id}" data-state="{job.state}"><strong>{text(job.title)}</strong> '
        f'{link}<span class="how">{text(words)}</span>{bar}{why}<div class="row">{"".join(made)}</div></div>'
    )


def jobs_html(jobs: Sequence[StudioJob]) -> Html:
    """All `jobs` beside the stage."""
    if not jobs:
        return Html('<h2>Jobs</h2><p class="hint">What takes long runs here, beside the page: it goes on when you '
                    "close the browser.</p>")  # fmt: skip
    return Html("<h2>Jobs</h2>" + "".join(job_html(job) for job in jobs[:12]))


# ------------------------------------------------------------ what stages are made of


def button(action: str, label: str, kind: str = "", ask: str = "", target: str = "", **fields: str) -> Html:
    """A button that does an `action`, "STAGE/NAME", with `fields`.

    Args:
        action: what it does.
        label: what it says.
        kind: a class, "main" or "danger".
        ask: a question that must be answered with yes before.
        target: id of the element whose inside the answer replaces; default the stage.
        fields: sent along.
    """
    hidden = "".join(
        f'<input type="hidden" name="{_quoted(name)}" value="{_quoted(value)}">' for name, value in fields.items()
    )
    return form(action, f'{hidden}<button class="{kind}">{text(label)}</button>', ask=ask, target=target, kind="inline")


def form(action: str, inside: str, ask: str = "", target: str = "", kind: str = "", live: bool = False) -> Html:
    """A form that does an `action` when it is sent, or, if `live`, whenever it is changed; `inside` is HTML. `ask`,
    `target` and `kind` are as in `button`."""
    more = f' data-ask="{_quoted(ask)}"' if ask else ""
    more += f' data-target="{_quoted(target)}"' if target else ""
    more += " data-live" if live else ""
    return Html(f'<form class="{kind}" method="post" data-action="{_quoted(action)}"{more}>{inside}</form>')


def choice(
    name: str, label: str, options: Sequence[tuple[str, str]], chosen: str = "", hide_label: bool = False
) -> Html:
    """A menu called `name` with a `label`, of `options` (value, words), one of them `chosen`; `hide_label`: for
    screen readers alone."""
    made = "".join(
        f'<option value="{_quoted(value)}"{" selected" if value == chosen else ""}>{text(words)}</option>'
        for value, words in options
    )
    hidden = ' class="unseen"' if hide_label else ""
    return Html(f'<label><span{hidden}>{text(label)}</span><select name="{_quoted(name)}">{made}</select></label>')


def entry(name: str, label: str, value: str = "", unit: str = "", kind: str = "text", **more: str) -> Html:
    """A field called `name` with a `label` and a `unit`, that holds `value`; `kind` and `more` are attributes of HTML's
    input."""
    rest = "".join(f' {key}="{_quoted(word)}"' for key, word in more.items())
    units = f' <span class="unit">{text(unit)}</span>' if unit else ""
    return Html(
        f'<label><span>{text(label)}{units}</span><input type="{kind}" name="{_quoted(name)}" '
        f'value="{_quoted(value)}"{rest}></label>'
    )


def drop_zone(folder: str, action: str, words: str, accept: str = "") -> Html:
    """Where files are dropped or chosen: they go to `folder` (see uploads), then `action` is done with their paths as
    `file`. `words` say what is wanted, `accept` which endings."""
    limits = f' accept="{_quoted(accept)}"' if accept else ""
    return Html(
        f'<div class="drop" data-folder="{_quoted(folder)}" data-done="{_quoted(action)}"><label><strong>{text(words)}'
        f'</strong><span class="hint">Drop files, or choose them</span><input type="file" multiple{limits}></label>'
        '<div class="going" role="status" aria-live="polite"></div></div>'
    )


def command_line(command: str) -> Html:
    """The `command` that does the same as the stage."""
    return join(Html('<h3 class="same">The same as a command</h3>'), commands(("", command)))


def coming(title: str, name: str) -> Html:
    """What stands where a stage called `title` will be, which is still being worked out: the page's script asks for it
    by its `name`."""
    return Html(
        f'<h1>{text(title)}</h1><p class="coming hint" role="status" data-going="{_quoted(name)}">Looking at what is '
        "here …</p>"
    )


def trouble(message: str) -> Html:
    """An error, by its `message`, as a page shows it."""
    return Html(f'<div class="trouble" role="alert">{callout("bad", message)}</div>')


def _quoted(value: str) -> str:
    return html.escape(value, quote=True)


attribute = _quoted
