"""The page around a stage (rail and jobs) and the HTML elements that all stages share."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from steelyard.report.elements import Html, callout, commands, join, text
from steelyard.report.scene import ROBOT_SCRIPTS
from steelyard.studio.jobs import StudioJob
from steelyard.studio.stage import RAIL, STUDIO_STAGES, StageStatus
from steelyard.studio.studio_folder import StudioFolder

_SIGNS = {"empty": "○", "done": "✓", "working": "…", "warning": "!", "bad": "✕"}
_WORDS = {"empty": "to do", "done": "done", "working": "running", "warning": "warning", "bad": "problem"}
# In order of their dependencies; stages add their own.
_SCRIPTS = (
    "theme.js", "base.js", "paper.js", "report.js", "joints.js", "clock.js", *ROBOT_SCRIPTS, "arrow.js", "tabs.js",
    "studio.js", "jobs.js", "typed.js", "upload.js",
)  # fmt: skip


def whole_page(
    folder: StudioFolder, stage: str, body: Html, rail: Html, jobs: Html, scripts: Sequence[str] = ()
) -> str:
    """Render a whole page.

    Args:
        folder: The studio's folder.
        stage: Name of the stage.
        body: Its content.
        rail: The list of stages, left of it.
        jobs: The list of jobs, right of it.
        scripts: Further scripts of the stage in `assets/`.
    """
    title = STUDIO_STAGES[stage].title
    tags = "".join(f'<script defer src="/assets/{name}"></script>' for name in (*_SCRIPTS, *scripts))
    links = " ".join(
        f'<a href="/{name}"{" aria-current=page" if name == stage else ""}>{text(STUDIO_STAGES[name].title)}</a>'
        for name in ("drives", "library")
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)} · {text(folder.root.name)} · Steelyard</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/report.css">
<link rel="stylesheet" href="/assets/studio.css">
<link rel="stylesheet" href="/assets/plot.css">
<script src="/assets/early.js"></script>
{tags}
</head>
<body data-stage="{stage}">
<a class="skip" href="#stage">Skip to the stage</a>
<header class="top"><span class="brand">Steelyard</span><span class="folder" title="{_quoted(str(folder.root))}">{
        text(folder.root.name)
    }</span><span class="away-right">{links}
<button type="button" id="theme" aria-label="Light or dark">◐</button></span></header>
<div class="frame">
<nav id="rail" aria-label="Stages">{rail}</nav>
<div class="middle"><main id="stage" tabindex="-1" aria-label="{_quoted(title)}">{body}</main>{_next_link(stage)}</div>
<aside id="jobs" aria-label="Jobs">{jobs}</aside>
</div>
<div id="said" role="status" aria-live="polite"></div>
</body>
</html>
"""


def _next_link(stage: str) -> Html:
    """Render the link to the stage after `stage`; nothing after the last one."""
    if stage not in RAIL[:-1]:
        return Html("")
    name = RAIL[RAIL.index(stage) + 1]
    return Html(f'<p class="next"><a href="/{name}">Next: {text(STUDIO_STAGES[name].title)} →</a></p>')


def rail_html(current: str, statuses: Mapping[str, StageStatus]) -> Html:
    """Render the list of stages.

    Args:
        current: Name of the stage to mark.
        statuses: Status of each stage.
    """
    rows = []
    for k, name in enumerate(RAIL):
        at = statuses[name]
        here = ' aria-current="page"' if name == current else ""
        rows.append(
            f'<li class="{at.kind}"><a href="/{name}"{here}><span class="sign" aria-hidden="true">{_SIGNS[at.kind]}'
            f'</span><span class="named">{k + 1} {text(STUDIO_STAGES[name].title)}</span><span class="words">'
            f'<span class="unseen">{_WORDS[at.kind]}: </span>{text(at.words)}</span></a></li>'
        )
    return Html(f"<ol>{''.join(rows)}</ol>")


def job_html(job: StudioJob, buttons: bool = True) -> Html:
    """Render a job; the page's script updates its progress.

    Args:
        job: The job.
        buttons: Whether to show "Cancel" or "Clear".
    """
    state = {"done": "good", "failed": "bad", "lost": "bad", "cancelled": "note"}.get(job.state, "note")
    words = {"waiting": "waiting for other jobs", "running": "starting", "done": "done"}.get(job.state, job.state)
    if job.code == 130:
        words = "stopped; the best result so far was saved"
    bar = (
        f'<progress max="1" value="0" aria-label="{_quoted(job.title)}"></progress>' if job.state == "running" else ""
    )  # fmt: skip
    buttons_html = []
    if buttons and job.live:
        buttons_html.append(button("job/cancel", "Cancel", id=job.id))
    if buttons and not job.live:
        buttons_html.append(button("job/clear", "Clear", id=job.id))
    why = f'<p class="why">{text(job.message)}</p>' if job.message and job.state in ("failed", "lost") else ""
    link = (
        f'<a href="/library?run={_quoted(job.output)}">{text(job.output)}</a>'
        if job.output and job.state == "done"
        else ""
    )
    return Html(
        f'<div class="job {state}" data-job="{job.id}" data-state="{job.state}"><strong>{text(job.title)}</strong> '
        f'{link}<span class="how">{text(words)}</span>{bar}{why}<div class="row">{"".join(buttons_html)}</div></div>'
    )


def jobs_html(jobs: Sequence[StudioJob]) -> Html:
    """Render the list of the newest `jobs`."""
    if not jobs:
        return Html('<h2>Jobs</h2><p class="hint">Long computations run here. They continue when you close the '
                    "browser.</p>")  # fmt: skip
    return Html("<h2>Jobs</h2>" + "".join(job_html(job) for job in jobs[:12]))


# ------------------------------------------------------------ elements of stages


def button(action: str, label: str, kind: str = "", ask: str = "", target: str = "", **fields: str) -> Html:
    """Render a button that calls an action.

    Args:
        action: "STAGE/NAME" of the action.
        label: Text of the button.
        kind: CSS class, "main" or "danger".
        ask: Question to confirm first; "" for none.
        target: Id of the element whose content the answer replaces; default: the stage.
        fields: Hidden fields of the form.
    """
    hidden = "".join(
        f'<input type="hidden" name="{_quoted(name)}" value="{_quoted(value)}">' for name, value in fields.items()
    )
    return form(action, f'{hidden}<button class="{kind}">{text(label)}</button>', ask=ask, target=target, kind="inline")


def form(action: str, inside: str, ask: str = "", target: str = "", kind: str = "", live: bool = False) -> Html:
    """Render a form that calls an action.

    Args:
        action: "STAGE/NAME" of the action.
        inside: HTML of its fields.
        ask: Question to confirm first; "" for none.
        target: Id of the element whose content the answer replaces; default: the stage.
        kind: CSS class.
        live: Whether every change submits the form.
    """
    more = f' data-ask="{_quoted(ask)}"' if ask else ""
    more += f' data-target="{_quoted(target)}"' if target else ""
    more += " data-live" if live else ""
    return Html(f'<form class="{kind}" method="post" data-action="{_quoted(action)}"{more}>{inside}</form>')


def choice(
    name: str, label: str, options: Sequence[tuple[str, str]], selected: str = "", hide_label: bool = False
) -> Html:
    """Render a menu.

    Args:
        name: Name of the field.
        label: Its label.
        options: Value and text of each option.
        selected: Value of the selected option.
        hide_label: Whether only screen readers get the label.
    """
    tags = "".join(
        f'<option value="{_quoted(value)}"{" selected" if value == selected else ""}>{text(words)}</option>'
        for value, words in options
    )
    hidden = ' class="unseen"' if hide_label else ""
    return Html(f'<label><span{hidden}>{text(label)}</span><select name="{_quoted(name)}">{tags}</select></label>')


def entry(name: str, label: str, value: str = "", unit: str = "", kind: str = "text", **more: str) -> Html:
    """Render an input field.

    Args:
        name: Name of the field.
        label: Its label.
        value: Its value.
        unit: Unit after the label; "" for none.
        kind: Type of the HTML input.
        more: Further attributes of the HTML input.
    """
    rest = "".join(f' {key}="{_quoted(word)}"' for key, word in more.items())
    units = f' <span class="unit">{text(unit)}</span>' if unit else ""
    return Html(
        f'<label><span>{text(label)}{units}</span><input type="{kind}" name="{_quoted(name)}" '
        f'value="{_quoted(value)}"{rest}></label>'
    )


def drop_zone(folder: str, action: str, words: str, accept: str = "", folders: str = "") -> Html:
    """Render a drop zone for files.

    Args:
        folder: Upload folder (`uploads.UPLOAD_FOLDERS`).
        action: Action that gets the paths of the uploaded files as `file`.
        words: Text that names the wanted files.
        accept: Allowed file name endings, separated by commas.
        folders: Kinds of folders that may be dropped as one log, for the label of their input; "" for none.
    """
    limits = f' accept="{_quoted(accept)}"' if accept else ""
    more = (
        f'<label class="folder"><span class="hint">Or a folder: {text(folders)}</span>'
        '<input type="file" webkitdirectory></label>'
        if folders
        else ""
    )
    whole = " data-folders" if folders else ""
    return Html(
        f'<div class="drop" data-folder="{_quoted(folder)}" data-done="{_quoted(action)}"{whole}><label>'
        f'<strong>{text(words)}</strong><span class="hint">Drop files here, or choose them</span>'
        f'<input type="file" multiple{limits}></label>{more}'
        '<div class="going" role="status" aria-live="polite"></div></div>'
    )


def command_line(command: str) -> Html:
    """Show the `command` that does the same as the stage."""
    return join(Html('<h3 class="same">The same as a command</h3>'), commands(("", command)))


def placeholder(title: str, name: str) -> Html:
    """Render the placeholder of a stage that is still being rendered; the page's script fetches the stage later.

    Args:
        title: Title of the stage.
        name: Key of the stage in `Studio.pending`.
    """
    return Html(
        f'<h1>{text(title)}</h1><p class="placeholder hint" role="status" data-pending="{_quoted(name)}">Loading …</p>'
    )


def trouble(message: str) -> Html:
    """Show an error `message`."""
    return Html(f'<div class="trouble" role="alert">{callout("bad", message)}</div>')


def _quoted(value: str) -> str:
    return html.escape(value, quote=True)


attribute = _quoted
