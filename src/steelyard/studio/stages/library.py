"""The library: every run in the folder. It stands apart from the rail."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Mapping
from contextlib import suppress

from steelyard.report.elements import Html, callout, join
from steelyard.studio.comparisons import comparison_page
from steelyard.studio.differences import differences_html
from steelyard.studio.library_pages import all_page, gone_page, one_page, trash_page
from steelyard.studio.page import button, trouble
from steelyard.studio.place import StudioError, StudioFolder
from steelyard.studio.shelf import ShelvedRun, shelved, shelved_runs
from steelyard.studio.stage import STUDIO_STAGES, Action, Desk, Sent, Stage, Standing

_NOTHING = Html("")
# Bytes of a run that are packed into one file for a browser.
_LARGEST_ARCHIVE = 60_000_000


class LibraryStage(Stage):
    """Every run in the folder."""

    name = "library"
    title = "Library of runs"

    async def standing(self, desk: Desk) -> Standing:
        return Standing("done", "")

    async def body(self, desk: Desk, query: Sent) -> Html:
        return await asyncio.to_thread(_page, desk.place, query)

    def actions(self) -> Mapping[str, Action]:
        return {"delete": _delete, "back": _back}

    async def data(self, desk: Desk, what: str, query: Sent) -> bytes:
        """All files of a run as one: what is `archive`, and `query` names the run."""
        if what != "archive":
            raise StudioError("There is nothing at this address.")
        run = shelved(desk.place, desk.place.run(query["run"]))
        if sum(size for _, size in run.files()) > _LARGEST_ARCHIVE:
            raise StudioError(f"{run.name} is too large for one file; save what you need of it one by one.")
        return await asyncio.to_thread(_packed, run)


def _page(place: StudioFolder, query: Mapping[str, str]) -> Html:
    if "both" in query:
        assert isinstance(query, Sent)
        return _two(place, list(dict.fromkeys(query.all("both"))))
    if query.get("view") == "trash":
        return trash_page(place.trashed(), place)
    if query.get("run"):
        name = query["run"]
        if not (place.inside(name) / "manifest.json").is_file():
            return gone_page(name, next((one for one in place.trashed() if one.came == name), None))
        run = shelved(place, place.run(name))
        return one_page(run, shelved_runs(place), used_for(place, run))
    return _list(place, query)


def _two(place: StudioFolder, names: list[str]) -> Html:
    if len(names) != 2:
        return _list(place, {}, trouble(f"{len(names)} runs are ticked; tick two of them to compare."))
    first, second = (shelved(place, place.run(name)) for name in names)
    better = ""
    if first.has_model and second.has_model:
        with suppress(StudioError):  # of another version: number by number
            better = differences_html([(run.name, run.result()) for run in (first, second)])
    return comparison_page(first, second, better)


def used_for(place: StudioFolder, run: ShelvedRun) -> str:
    """What the project of a `place` uses a `run` for, as a sentence; "" if nothing."""
    project = place.project()
    what = [word for word in ("model", "motion") if getattr(project, word).rstrip("/") == run.name]
    return f"The project uses it as its {' and '.join(what)}." if what else ""


async def _delete(desk: Desk, sent: Sent) -> Html:
    place, name = desk.place, sent["run"]
    path = place.run(name)
    if name.rstrip("/") in desk.jobs.outputs():
        raise StudioError(f"{name} is being written by a job; cancel that first.")
    kept = place.trash(path)
    notice = join(
        callout("good", f"{name} is in the trash.", "Done"),
        button("library/back", "Put it back", name=kept.parent.name, **{key: sent.get(key, "") for key in _FIELDS}),
    )
    if "page" in sent:
        return await _listed(place, sent, notice)
    return gone_page(name, next((one for one in place.trashed() if one.path == kept), None))


async def _back(desk: Desk, sent: Sent) -> Html:
    place = desk.place
    name = place.relative(place.put_back(sent["name"]))
    notice = callout("good", f"{name} is back.", "Done")
    if "page" in sent:
        return await _listed(place, sent, notice)
    if sent.get("then") == "run":
        return await asyncio.to_thread(_page, place, {"run": name})
    return trash_page(place.trashed(), place, notice)


_FIELDS = ("what", "find", "page")


async def _listed(place: StudioFolder, sent: Sent, notice: Html) -> Html:
    return await asyncio.to_thread(_list, place, sent, notice)


def _list(place: StudioFolder, query: Mapping[str, str], notice: Html = _NOTHING) -> Html:
    model = place.project().model.rstrip("/")
    return all_page(shelved_runs(place), len(place.trashed()), query, notice, model)


def _packed(run: ShelvedRun) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, _ in run.files():
            packed.write(run.path / name, f"{run.path.name}/{name}")
    return out.getvalue()


STUDIO_STAGES.register("library")(LibraryStage())
