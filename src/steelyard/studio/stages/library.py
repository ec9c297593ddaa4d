"""The library: all runs of the folder, and two runs side by side with what differs. It is not on the rail."""

from __future__ import annotations

import asyncio
import io
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from steelyard.ground.numbers import number
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.studio.differences import differences_html
from steelyard.studio.library_pages import (
    headline_html,
    library_link,
    missing_run_page,
    run_page,
    runs_page,
    trash_page,
    when_html,
)
from steelyard.studio.page import button, trouble
from steelyard.studio.run_entries import RunEntry, run_entries, run_entry
from steelyard.studio.stage import STUDIO_STAGES, Action, FormData, Stage, StageContext, StageStatus
from steelyard.studio.studio_folder import StudioError, StudioFolder

_NOTHING = Html("")
# Largest run that is sent as an archive [bytes].
_LARGEST_ARCHIVE = 60_000_000


class LibraryStage(Stage):
    """Lists, compares and deletes runs."""

    name = "library"
    title = "Library of runs"

    async def status(self, context: StageContext) -> StageStatus:
        return StageStatus("done", "")

    async def body(self, context: StageContext, query: FormData) -> Html:
        return await asyncio.to_thread(_page, context.folder, query)

    def actions(self) -> Mapping[str, Action]:
        return {"delete": _delete, "back": _back}

    async def data(self, context: StageContext, what: str, query: FormData) -> bytes:
        """Return the `archive` of all files of the run in `query`."""
        if what != "archive":
            raise StudioError("There is nothing at this address.")
        run = run_entry(context.folder, context.folder.get_run(query["run"]))
        if sum(size for _, size in run.files()) > _LARGEST_ARCHIVE:
            raise StudioError(f"{run.name} is too large for an archive; download its files one by one.")
        return await asyncio.to_thread(_archive, run)


def _page(folder: StudioFolder, query: Mapping[str, str]) -> Html:
    if "both" in query:
        assert isinstance(query, FormData)
        return _comparison(folder, list(dict.fromkeys(query.all("both"))))
    if query.get("view") == "trash":
        return trash_page(folder.trash_entries(), folder)
    if query.get("run"):
        name = query["run"]
        if not (folder.path_inside(name) / "manifest.json").is_file():
            return missing_run_page(name, next((one for one in folder.trash_entries() if one.origin == name), None))
        run = run_entry(folder, folder.get_run(name))
        return run_page(run, run_entries(folder), used_for(folder, run))
    return _list(folder, query)


def _comparison(folder: StudioFolder, names: list[str]) -> Html:
    if len(names) != 2:
        return _list(folder, {}, trouble(f"{len(names)} runs are selected; select two to compare."))
    first, second = (run_entry(folder, folder.get_run(name)) for name in names)
    differences = ""
    if first.has_model and second.has_model:
        with suppress(StudioError):  # results of another version are compared number by number
            differences = differences_html([(run.name, run.result()) for run in (first, second)])
    return comparison_page(first, second, differences)


def used_for(folder: StudioFolder, run: RunEntry) -> str:
    """Return a sentence about the use of a run in the project; "" if it is not used.

    Args:
        folder: The studio's folder.
        run: The run.
    """
    project = folder.project()
    uses = [key for key in ("model", "motion") if getattr(project, key).rstrip("/") == run.name]
    return f"The project uses it as its {' and '.join(uses)}." if uses else ""


async def _delete(context: StageContext, fields: FormData) -> Html:
    folder, name = context.folder, fields["run"]
    path = folder.get_run(name)
    if name.rstrip("/") in context.jobs.outputs():
        raise StudioError(f"A job is writing {name}; cancel the job first.")
    target = folder.move_to_trash(path)
    notice = join(
        callout("good", f"{name} is in the trash.", "Done"),
        button("library/back", "Restore", name=target.parent.name, **{key: fields.get(key, "") for key in _FIELDS}),
    )
    if "page" in fields:
        return await _listed(folder, fields, notice)
    return missing_run_page(name, next((one for one in folder.trash_entries() if one.path == target), None))


async def _back(context: StageContext, fields: FormData) -> Html:
    folder = context.folder
    name = folder.relative(folder.restore(fields["name"]))
    notice = callout("good", f"{name} is restored.", "Done")
    if "page" in fields:
        return await _listed(folder, fields, notice)
    if fields.get("then") == "run":
        return await asyncio.to_thread(_page, folder, {"run": name})
    return trash_page(folder.trash_entries(), folder, notice)


_FIELDS = ("what", "find", "page")


async def _listed(folder: StudioFolder, fields: FormData, notice: Html) -> Html:
    return await asyncio.to_thread(_list, folder, fields, notice)


def _list(folder: StudioFolder, query: Mapping[str, str], notice: Html = _NOTHING) -> Html:
    model = folder.project().model.rstrip("/")
    return runs_page(run_entries(folder), len(folder.trash_entries()), query, notice, model)


def _archive(run: RunEntry) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, _ in run.files():
            archive.write(run.path / name, f"{run.path.name}/{name}")
    return content.getvalue()


STUDIO_STAGES.register("library")(LibraryStage())


# Keys that identify the members of a list, so that equal members are compared.
_NAMES = ("name", "joint", "log", "scheme", "estimator", "region", "movement", "kind")
_NOT_COMPARED = ("command", "why_null", "fingerprint", "inputs", "notes")
_MOST_NUMBERS, _MOST_ROWS = 20_000, 150
_ABSENT = "–"
# Relative differences below this are rounding.
_SAME = 1e-12


def comparison_page(first: RunEntry, second: RunEntry, differences: str = "") -> Html:
    """Render two runs side by side.

    Args:
        first: Run A.
        second: Run B.
        differences: HTML that replaces the generic lists of settings and numbers; "" for none.
    """
    cards = "".join(
        f'<div class="card"><h2>{sign}: {library_link(run.name, run=run.name)}</h2><p class="hint">{text(run.kind)}, '
        f"{when_html(run.when)}</p>{run.summary.picture}{headline_html(run.summary.headline)}</div>"
        for sign, run in (("A", first), ("B", second))
    )
    return join(
        library_link("← all runs"), Html(f'<h1>Two runs compared</h1><div class="two">{cards}</div>'),
        Html(differences or _settings(first, second) + _numbers(first, second)),
    )  # fmt: skip


def _settings(first: RunEntry, second: RunEntry) -> Html:
    a, b = ({"inputs": " ".join(run.inputs), **dict(run.settings)} for run in (first, second))
    rows = [
        [name, a.get(name, _ABSENT) or "yes", b.get(name, _ABSENT) or "yes"]
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    ]
    if not rows:
        return callout("note", "Both runs have the same inputs and settings.", "Settings")
    return table_html(["setting", "A", "B"], rows, "Settings that differ")


def _numbers(first: RunEntry, second: RunEntry) -> Html:
    if first.kind != second.kind:
        return callout("note", "The runs are of different commands, so their numbers cannot be compared.")
    first_values, second_values = (dict(leaves(run.result())) for run in (first, second))
    rows: list[list[Any]] = []
    for name in dict.fromkeys((*first_values, *second_values)):
        a, b = first_values.get(name, _ABSENT), second_values.get(name, _ABSENT)
        if not _is_equal(a, b):
            rows.append([name, _format(a), _format(b), _change(a, b)])
    if not rows:
        return callout("good", "All numbers of the results are equal.", "Same")
    title = f"Numbers that differ: {len(rows)} of {len(first_values.keys() | second_values.keys())}"
    title += f"; the first {_MOST_ROWS}" if len(rows) > _MOST_ROWS else ""
    return table_html(["value", "A", "B", "change from A to B"], rows[:_MOST_ROWS], title, tall=True)


def leaves(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path (`validation/b/joints/q1/rmse`) and value of the first 20,000 numbers and texts of a `result`."""
    left = _MOST_NUMBERS
    stack: list[tuple[str, Any]] = [
        (str(key), value) for key, value in reversed(list(result.items())) if key not in _NOT_COMPARED
    ]
    while stack and left:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(f"{path}/{key}", inner) for key, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            stack += [(f"{path}/{_member_name(inner, k)}", inner) for k, inner in reversed(list(enumerate(value)))]
        else:
            left -= 1
            yield path, value


def _member_name(member: Any, k: int) -> str:
    if isinstance(member, Mapping):
        for name in _NAMES:
            if isinstance(member.get(name), str):
                return str(member[name])
    return str(k + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(a: Any, b: Any) -> bool:
    if _is_number(a) and _is_number(b):
        return math.isclose(a, b, rel_tol=_SAME, abs_tol=0.0)
    return bool(a == b)


def _format(value: Any) -> str:
    return number(float(value), 6) if _is_number(value) else str(value)[:200]


def _change(a: Any, b: Any) -> str:
    return f"{100.0 * (b - a) / abs(a):+.2g} %" if _is_number(a) and _is_number(b) and a else _ABSENT
