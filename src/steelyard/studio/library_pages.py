"""The pages of the library: all runs, one of them, two side by side, and the trash."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from steelyard.ground.displayed import Glance
from steelyard.ground.outcome import REPORT
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.studio.page import attribute, button, choice, command_line, entry
from steelyard.studio.place import StudioFolder, Trashed
from steelyard.studio.shelf import PYTHON_MADE, ShelvedRun

PER_PAGE = 24
# Which stage makes runs of a command, with other settings.
_MADE_BY = {
    "check": "check", "excite": "motion", "rehearse": "motion", "identify": "identify", "export": "use",
    "payload": "use", "friction": "use", "validate": "use", "predict": "use",
}  # fmt: skip
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_SHOWN_POINTS = 12
_NOTHING = Html("")


def library_link(words: str, **query: str) -> Html:
    """A link that says `words` to the library with this `query`."""
    return Html(f'<a href="/library?{attribute(urlencode(query))}">{text(words)}</a>')


def file_link(run: ShelvedRun, name: str, words: str = "") -> Html:
    """A link to the file `name` of a `run`: it says `words`, or the name."""
    address = quote(f"/file/{run.name}/{name}")
    return Html(f'<a href="{attribute(address)}" download>{text(words or name)}</a>')


def size_words(size: int) -> str:
    """A `size` in bytes for people."""
    for unit, many in _SIZES:
        if size >= many:
            return f"{size / many:.3g} {unit}"
    return f"{size} bytes"


def when_words(when: float) -> str:
    """A moment, `when` in seconds since 1970, on this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(when))


def when_html(when: float) -> Html:
    """The same moment, `when`, as an element."""
    return Html(
        f'<time datetime="{time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(when))}">{when_words(when)}</time>'
    )


def glance_html(glance: Glance) -> Html:
    """A verdict with its reasons: `glance`."""
    points = "".join(f"<li>{text(point)}</li>" for point in glance.points[:_SHOWN_POINTS])
    more = len(glance.points) - _SHOWN_POINTS
    points += f"<li>and {more} more, in the report</li>" if more > 0 else ""
    return callout(glance.kind, Html(f"{text(glance.sentence)}{f'<ul>{points}</ul>' if points else ''}"))


# ------------------------------------------------------------ all


def all_page(
    runs: Sequence[ShelvedRun], kept: int, query: Mapping[str, str], notice: Html = _NOTHING, model: str = ""
) -> Html:
    """The library: all `runs`, as far as the `query` asks for them, below a `notice`; `kept` are in the trash, and one
    of them may be the `model` of the project."""
    kind, find, page = query.get("what", ""), query.get("find", "")[:200], _whole(query.get("page", "1"))
    kinds = sorted({run.kind for run in runs})
    found = [run for run in runs if (not kind or run.kind == kind) and _speaks_of(run, find)]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(max(page, 1), pages)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    fields = {"what": kind, "find": find, "page": str(page)}
    top = join(Html("<h1>Library of runs</h1>"), notice, _trash_link(kept))
    if not runs:
        return join(top, callout("note", "There is no run in this folder yet. Every check, motion, identification, "
                                 "load or export that a stage or a command makes is kept here, with what it was made "
                                 "from, its verdict and its report.", "Empty"))  # fmt: skip
    options = [("", "all"), *((name, _kind_words(name)) for name in kinds)]
    filters = (
        f'<form method="get" action="/library" role="search" class="row">{choice("what", "What", options, kind)}'
        f"{entry('find', 'Name or setting', find, kind='search')}<button>Show</button></form>"
    )
    count = f"{len(found)} of {len(runs)} runs" if len(found) != len(runs) else f"{len(runs)} runs"
    compare = (
        '<form method="get" action="/library" id="compare" class="inline"><button>Compare the two that are ticked'
        "</button></form>"
    )
    items = "".join(_item(run, fields, run.name == model) for run in shown)
    none = "" if found else callout("note", "No run is like that; show all, or look for another word.", "None")
    return join(
        top, Html(filters), Html(f'<div class="row"><span class="hint" role="status">{count}</span>{compare}</div>'),
        Html(none), Html(f'<ul class="shelf">{items}</ul>'), _pages(page, pages, fields),
    )  # fmt: skip


def _item(run: ShelvedRun, fields: Mapping[str, str], used: bool) -> str:
    glance, picture = run.summary
    settings = ", ".join(f"{name} {value}".strip() for name, value in run.settings)
    tick = (
        f'<label class="tick"><input type="checkbox" form="compare" name="both" value="{attribute(run.name)}">'
        f'<span>compare<span class="unseen"> {text(run.name)}</span></span></label>'
    )
    label = Html(f'Delete<span class="unseen"> {text(run.name)}</span>')
    delete = delete_button(run, label, "The project uses it as its model." if used else "", **fields)
    use = ", the model in use" if used else ""
    return (
        f'<li class="{glance.kind}">{picture}<div class="what"><strong>{library_link(run.name, run=run.name)}</strong>'
        f' <span class="hint">{text(_kind_words(run.kind))}, {when_html(run.when)}{use}</span>'
        f'<p><span class="grade">{_GRADES[glance.kind]}</span> {text(glance.sentence)}</p>'
        f'<p class="hint">{text(" ".join(run.inputs))}{" · " if settings and run.inputs else ""}{text(settings)}</p>'
        f'</div><div class="do">{tick}{delete}</div></li>'
    )


_GRADES = {"good": "✓ good.", "note": "", "warning": "! with reservations.", "bad": "✕ problem."}


def delete_button(run: ShelvedRun, label: str = "Delete", used: str = "", **fields: str) -> Html:
    """A button that moves a `run` to the trash once that is confirmed; it says `label`, and the question what the run
    is `used` for. `fields` are sent along."""
    ask = f"Move {run.name} to the trash? {used + ' ' if used else ''}It can be put back from there."
    return button("library/delete", label, "danger", ask=ask, run=run.name, **fields)


def _speaks_of(run: ShelvedRun, find: str) -> bool:
    held = f"{run.name} {run.command}".lower()
    return all(word in held for word in find.lower().split())


def _kind_words(kind: str) -> str:
    return "made by Python" if kind == PYTHON_MADE else kind


def _whole(words: str) -> int:
    return int(words) if words.isdigit() and len(words) < 7 else 1


def _pages(page: int, pages: int, fields: Mapping[str, str]) -> Html:
    if pages == 1:
        return _NOTHING
    made = [f"Page {page} of {pages}"]
    if page > 1:
        made.insert(0, library_link("newer", **{**fields, "page": str(page - 1)}))
    if page < pages:
        made.append(library_link("older", **{**fields, "page": str(page + 1)}))
    return Html(f'<nav class="row pages" aria-label="Pages">{" ".join(made)}</nav>')


def _trash_link(kept: int) -> Html:
    return Html(f"<p>{library_link(f'Trash ({kept})', view='trash')}</p>") if kept else _NOTHING


# ------------------------------------------------------------ one


def one_page(run: ShelvedRun, others: Sequence[ShelvedRun], used: str) -> Html:
    """One `run`, which can be compared with `others`; `used` says what the project uses it for."""
    glance, picture = run.summary
    facts = [("What", _kind_words(run.kind)), ("Written", when_words(run.when))]
    facts += [("From", " ".join(run.inputs))] if run.inputs else []
    facts += [(name, value or "yes") for name, value in run.settings]
    again = _MADE_BY.get(run.kind.partition(" ")[0], "")
    stage = Html(f'<a class="button" href="/{again}">Again with other settings</a>') if again else _NOTHING
    like = [one for one in others if one.name != run.name]
    like.sort(key=lambda one: one.kind != run.kind)  # of the same kind first, and the newest of them
    options = [(one.name, f"{one.name} ({_kind_words(one.kind)}, {when_words(one.when)})") for one in like[:200]]
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
        Html(f'<h1>{text(run.name)}</h1><div class="verdict-row">{picture}<div>{glance_html(glance)}'),
        Html(f"{f'<p>{text(used)}</p>' if used else ''}</div></div>"),
        Html("<h2>What it was made from</h2>"),
        table_html(["setting", "value"], facts),
        command_line(run.command) if run.command else callout("note", "Python made this run: no command repeats it."),
        Html(f'<div class="row">{stage}{delete_button(run, "Delete", used)}</div>'),
        Html(beside if options else ""),
        files_html(run),
        Html(report),
    )


def files_html(run: ShelvedRun, title: str = "Files") -> Html:
    """What a `run` holds, below a `title`, to be saved one by one or together."""
    files = run.files()
    rows = [[file_link(run, name), size_words(size)] for name, size in files]
    together = attribute(f"/data/library/archive?{urlencode({'run': run.name})}")
    called = attribute(f"{run.path.name}.zip")
    return Html(
        f'<details id="files-of-{attribute(run.path.name)}"{" open" if len(files) < 12 else ""}><summary>{text(title)} '
        f"({len(files)}, {size_words(sum(size for _, size in files))})</summary>"
        f'{table_html(["file", "size"], rows, tall=len(rows) > 15)}<p><a href="{together}" download="{called}">'
        "All as one .zip</a></p></details>"
    )


def gone_page(name: str, kept: Trashed | None, notice: Html = _NOTHING) -> Html:
    """In place of the run `name`, which is not there; it may be `kept` in the trash. `notice` stands above."""
    back = button("library/back", "Put it back", "main", name=kept.name, then="run") if kept else _NOTHING
    words = f"{name} is in the trash." if kept else f"There is no run {name}: it was moved, or never was there."
    return join(library_link("← all runs"), Html(f"<h1>{text(name)}</h1>"), notice, callout("note", words), back)


def trash_page(kept: Sequence[Trashed], place: StudioFolder, notice: Html = _NOTHING) -> Html:
    """The trash of a `place`: what is `kept`, below a `notice`."""
    rows = [
        [one.came, when_words(one.when), button("library/back", "Put back", name=one.name)] for one in kept
    ]  # fmt: skip
    body = (
        table_html(["what", "thrown away", ""], rows)
        if kept
        else callout("note", "The trash is empty. What you delete comes here first.", "Empty")
    )
    where = f"It lies in {place.relative(place.data('trash'))}; the studio takes nothing out of there for good."
    hint = Html(f'<p class="hint">{where}</p>')
    return join(
        library_link("← all runs"),
        Html("<h1>Trash</h1>"),
        notice,
        body,
        hint,
    )
