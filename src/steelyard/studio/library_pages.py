"""Pages of the library: the list of runs, one run, and the trash."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from steelyard.ground.display import Headline
from steelyard.ground.outcome import REPORT
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.studio.page import attribute, button, choice, command_line, entry
from steelyard.studio.run_entries import PYTHON_MADE, RunEntry
from steelyard.studio.studio_folder import StudioFolder, TrashEntry

PER_PAGE = 24
# Stage that repeats a command with other settings.
_STAGE_OF = {
    "check": "check", "excite": "motion", "rehearse": "motion", "identify": "identify", "export": "use",
    "payload": "use", "friction": "use", "validate": "use", "predict": "use", "calibrate": "robot",
    "actuator": "drives",
}  # fmt: skip
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_SHOWN_POINTS = 12
_NOTHING = Html("")


def library_link(words: str, **query: str) -> Html:
    """Render a link to the library.

    Args:
        words: Text of the link.
        query: Query of the address.
    """
    return Html(f'<a href="/library?{attribute(urlencode(query))}">{text(words)}</a>')


def file_link(run: RunEntry, name: str, words: str = "") -> Html:
    """Render a download link.

    Args:
        run: The run.
        name: Name of its file.
        words: Text of the link; default: the name.
    """
    address = quote(f"/file/{run.name}/{name}")
    return Html(f'<a href="{attribute(address)}" download>{text(words or name)}</a>')


def size_words(size: int) -> str:
    """Format a `size` in bytes."""
    for unit, factor in _SIZES:
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def when_words(when: float) -> str:
    """Format the time `when` [s since 1970] as local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(when))


def when_html(when: float) -> Html:
    """Render the time `when` [s since 1970]."""
    return Html(
        f'<time datetime="{time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(when))}">{when_words(when)}</time>'
    )


def headline_html(headline: Headline) -> Html:
    """Render the verdict `headline` with its reasons."""
    points = "".join(f"<li>{text(point)}</li>" for point in headline.points[:_SHOWN_POINTS])
    more = len(headline.points) - _SHOWN_POINTS
    points += f"<li>{more} more in the report</li>" if more > 0 else ""
    return callout(headline.kind, Html(f"{text(headline.sentence)}{f'<ul>{points}</ul>' if points else ''}"))


# ------------------------------------------------------------ all


def runs_page(
    runs: Sequence[RunEntry], trash_count: int, query: Mapping[str, str], notice: Html = _NOTHING, model: str = ""
) -> Html:
    """Render the list of runs.

    Args:
        runs: All runs.
        trash_count: Number of entries in the trash.
        query: Filters ("what", "find") and "page".
        notice: HTML above the list.
        model: Name of the run that is the project's model.
    """
    kind, find, page = query.get("what", ""), query.get("find", "")[:200], _page_number(query.get("page", "1"))
    kinds = sorted({run.kind for run in runs})
    matches = [run for run in runs if (not kind or run.kind == kind) and _matches(run, find)]
    pages = max(1, -(-len(matches) // PER_PAGE))
    page = min(max(page, 1), pages)
    page_runs = matches[(page - 1) * PER_PAGE : page * PER_PAGE]
    fields = {"what": kind, "find": find, "page": str(page)}
    top = join(Html("<h1>Library of runs</h1>"), notice, _trash_link(trash_count))
    if not runs:
        return join(top, callout("note", "This folder has no runs yet. Each check, motion, identification, payload or "
                                 "export appears here with its inputs, verdict and report.", "Empty"))  # fmt: skip
    options = [("", "all"), *((name, _kind_words(name)) for name in kinds)]
    filters = (
        f'<form method="get" action="/library" role="search" class="row">{choice("what", "What", options, kind)}'
        f"{entry('find', 'Name or setting', find, kind='search')}<button>Show</button></form>"
    )
    count = f"{len(matches)} of {len(runs)} runs" if len(matches) != len(runs) else f"{len(runs)} runs"
    compare = (
        '<form method="get" action="/library" id="compare" class="inline"><button>Compare the two selected runs'
        "</button></form>"
    )
    items = "".join(_item(run, fields, run.name == model) for run in page_runs)
    none = "" if matches else callout("note", "No run matches; show all runs, or search for another word.", "None")
    return join(
        top, Html(filters), Html(f'<div class="row"><span class="hint" role="status">{count}</span>{compare}</div>'),
        Html(none), Html(f'<ul class="shelf">{items}</ul>'), _pages(page, pages, fields),
    )  # fmt: skip


def _item(run: RunEntry, fields: Mapping[str, str], used: bool) -> str:
    headline, picture = run.summary
    settings = ", ".join(f"{name} {value}".strip() for name, value in run.settings)
    tick = (
        f'<label class="tick"><input type="checkbox" form="compare" name="both" value="{attribute(run.name)}">'
        f'<span>compare<span class="unseen"> {text(run.name)}</span></span></label>'
    )
    label = Html(f'Delete<span class="unseen"> {text(run.name)}</span>')
    delete = delete_button(run, label, "The project uses it as its model." if used else "", **fields)
    use = ", the project's model" if used else ""
    return (
        f'<li class="{headline.kind}">{picture}<div class="what">'
        f"<strong>{library_link(run.name, run=run.name)}</strong>"
        f' <span class="hint">{text(_kind_words(run.kind))}, {when_html(run.when)}{use}</span>'
        f'<p><span class="grade">{_GRADES[headline.kind]}</span> {text(headline.sentence)}</p>'
        f'<p class="hint">{text(" ".join(run.inputs))}{" · " if settings and run.inputs else ""}{text(settings)}</p>'
        f'</div><div class="do">{tick}{delete}</div></li>'
    )


_GRADES = {"good": "✓ good.", "note": "", "warning": "! warning.", "bad": "✕ problem."}


def delete_button(run: RunEntry, label: str = "Delete", used: str = "", **fields: str) -> Html:
    """Render a button that moves a run to the trash after a confirmation.

    Args:
        run: The run.
        label: Text of the button.
        used: Sentence about the use of the run, shown in the confirmation; "" for none.
        fields: Hidden fields of the form.
    """
    ask = f"Move {run.name} to the trash? {used + ' ' if used else ''}You can restore it from there."
    return button("library/delete", label, "danger", ask=ask, run=run.name, **fields)


def _matches(run: RunEntry, find: str) -> bool:
    words = f"{run.name} {run.command}".lower()
    return all(word in words for word in find.lower().split())


def _kind_words(kind: str) -> str:
    return "from Python" if kind == PYTHON_MADE else kind


def _page_number(words: str) -> int:
    return int(words) if words.isdigit() and len(words) < 7 else 1


def _pages(page: int, pages: int, fields: Mapping[str, str]) -> Html:
    if pages == 1:
        return _NOTHING
    links = [f"Page {page} of {pages}"]
    if page > 1:
        links.insert(0, library_link("newer", **{**fields, "page": str(page - 1)}))
    if page < pages:
        links.append(library_link("older", **{**fields, "page": str(page + 1)}))
    return Html(f'<nav class="row pages" aria-label="Pages">{" ".join(links)}</nav>')


def _trash_link(count: int) -> Html:
    return Html(f"<p>{library_link(f'Trash ({count})', view='trash')}</p>") if count else _NOTHING


# ------------------------------------------------------------ one


def run_page(run: RunEntry, others: Sequence[RunEntry], used: str) -> Html:
    """Render the page of a run.

    Args:
        run: The run.
        others: Other runs, for a comparison.
        used: Sentence about the use of the run; "" for none.
    """
    headline, picture = run.summary
    facts = [("What", _kind_words(run.kind)), ("Written", when_words(run.when))]
    facts += [("From", " ".join(run.inputs))] if run.inputs else []
    facts += [(name, value or "yes") for name, value in run.settings]
    stage = _STAGE_OF.get(run.kind.partition(" ")[0], "")
    again = Html(f'<a class="button" href="/{stage}">Again with other settings</a>') if stage else _NOTHING
    others = [one for one in others if one.name != run.name]
    others.sort(key=lambda one: one.kind != run.kind)  # the same command first; keeps newest first within each
    options = [(one.name, f"{one.name} ({_kind_words(one.kind)}, {when_words(one.when)})") for one in others[:200]]
    beside = (
        f'<form method="get" action="/library" class="row"><input type="hidden" name="both" '
        f'value="{attribute(run.name)}">{choice("both", "Compare with", options)}<button>Compare</button></form>'
    )
    report = (
        f'<h2>Report</h2><iframe class="report" sandbox="allow-scripts allow-popups allow-downloads" '
        f'src="{attribute(quote(f"/file/{run.name}/{REPORT}"))}" title="Report of {attribute(run.name)}"></iframe>'
        if run.has_report
        else ""
    )
    return join(
        library_link("← all runs"),
        Html(f'<h1>{text(run.name)}</h1><div class="verdict-row">{picture}<div>{headline_html(headline)}'),
        Html(f"{f'<p>{text(used)}</p>' if used else ''}</div></div>"),
        Html("<h2>Inputs and settings</h2>"),
        table_html(["setting", "value"], facts),
        command_line(run.command)
        if run.command
        else callout("note", "This run was written from Python; no command repeats it."),
        Html(f'<div class="row">{again}{delete_button(run, "Delete", used)}</div>'),
        Html(beside if options else ""),
        files_html(run),
        Html(report),
    )


def files_html(run: RunEntry, title: str = "Files") -> Html:
    """Render download links for the files of a run.

    Args:
        run: The run.
        title: Title above the list.
    """
    files = run.files()
    rows = [[file_link(run, name), size_words(size)] for name, size in files]
    archive = attribute(f"/data/library/archive?{urlencode({'run': run.name})}")
    archive_name = attribute(f"{run.path.name}.zip")
    return Html(
        f'<details id="files-of-{attribute(run.path.name)}"{" open" if len(files) < 12 else ""}><summary>{text(title)} '
        f"({len(files)}, {size_words(sum(size for _, size in files))})</summary>"
        f'{table_html(["file", "size"], rows, tall=len(rows) > 15)}<p><a href="{archive}" '
        f'download="{archive_name}">All files as .zip</a></p></details>'
    )


def missing_run_page(name: str, entry: TrashEntry | None, notice: Html = _NOTHING) -> Html:
    """Render the page of a run that does not exist.

    Args:
        name: Name of the run.
        entry: Its trash entry, if it was deleted.
        notice: HTML above the message.
    """
    restore = button("library/back", "Restore", "main", name=entry.name, then="run") if entry else _NOTHING
    words = f"{name} is in the trash." if entry else f"The run {name} does not exist; it may have been moved."
    return join(library_link("← all runs"), Html(f"<h1>{text(name)}</h1>"), notice, callout("note", words), restore)


def trash_page(entries: Sequence[TrashEntry], folder: StudioFolder, notice: Html = _NOTHING) -> Html:
    """Render the trash.

    Args:
        entries: Entries of the trash.
        folder: The studio's folder.
        notice: HTML above the list.
    """
    rows = [[e.origin, when_words(e.when), button("library/back", "Restore", name=e.name)] for e in entries]
    body = (
        table_html(["what", "deleted", ""], rows)
        if entries
        else callout("note", "The trash is empty. Deleted runs and files appear here.", "Empty")
    )
    path = folder.relative(folder.hidden_path("trash"))
    hint = Html(f'<p class="hint">The trash is in {path}. The studio never empties it.</p>')
    return join(library_link("← all runs"), Html("<h1>Trash</h1>"), notice, body, hint)
