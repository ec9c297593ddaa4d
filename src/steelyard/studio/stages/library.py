"""The library: all runs of the folder. It is not on the rail."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Mapping
from contextlib import suppress

from steelyard.report.elements import Html, callout, join
from steelyard.studio.comparisons import comparison_page
from steelyard.studio.differences import differences_html
from steelyard.studio.library_pages import missing_run_page, run_page, runs_page, trash_page
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
