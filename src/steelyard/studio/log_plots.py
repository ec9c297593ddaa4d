"""Plots of logs on the stage Data: windows, samples and CSV of a pyramid, and the job that prepares a long one."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

from steelyard.studio.jobs import StudioJob
from steelyard.studio.mapping_editor import draw_short
from steelyard.studio.pyramid import Pyramid
from steelyard.studio.roles import ListedLog, forget_pyramids, log_named, pyramid_file
from steelyard.studio.stage import FormData, StageContext
from steelyard.studio.studio_folder import StudioError

# Most samples that are saved as CSV from a page.
_MOST_SAVED = 500_000


def drawing_job(context: StageContext, log: ListedLog) -> StudioJob | None:
    """Return the newest job for the current plot of a log.

    Args:
        context: Folder and jobs.
        log: The log.
    """
    words = _words(context, log)
    return next((job for job in context.jobs.of_stage("data") if job.words == words), None)


def plot_source(context: StageContext, log: ListedLog) -> str:
    """Return the address of the plot of a log as it is now.

    Args:
        context: Folder and jobs.
        log: The log.
    """
    return f"/data/data/plot?{urlencode({'log': log.text, 'of': pyramid_file(context.folder, log).name})}"


async def plot_data(context: StageContext, log: ListedLog, query: FormData) -> Any:
    """Return a window (bytes), a sample, CSV, or the header of a log's pyramid; build it if it does not exist.

    Args:
        context: Folder, jobs and helper process.
        log: The log.
        query: Query of the address.
    """
    target = pyramid_file(context.folder, log)
    if query.get("of", target.name) != target.name:
        raise StudioError("The log, its mapping or the robot has changed; reload the page.")
    try:
        if "csv" in query:
            span = float(query["t0"]), float(query["t1"])
            return (await asyncio.to_thread(Pyramid.open(target).csv_text, *span, _MOST_SAVED)).encode()
        if "t0" in query:
            part = float(query["t0"]), float(query["t1"]), int(query["pixels"])
            return await asyncio.to_thread(lambda: Pyramid.open(target).window(*part).to_bytes())
        if "at" in query:
            t, values = await asyncio.to_thread(Pyramid.open(target).at, float(query["at"]))
            return json.dumps({"t": t, "values": values.tolist()})
    except (ValueError, OSError):
        raise StudioError("The plot does not exist any more; reload the page.") from None
    if not target.exists():
        job = drawing_job(context, log)
        if job is not None and job.live:
            return {"wait": f"The log is long; its plot is being prepared (see Jobs, {job.title})."}
        if job is not None and job.state != "done":
            raise StudioError(job.message)
        if not await context.helper.ask(draw_short, log.text, str(target), seconds=120.0):
            await draw_long(context, FormData([("log", log.text)]))
            return {"wait": "The log is long; its plot is being prepared (see Jobs)."}
    forget_pyramids(context.folder, log, but=target)
    return Pyramid.open(target).about()


async def draw_long(context: StageContext, fields: FormData) -> None:
    """Start the job that prepares the plot of a long log.

    Args:
        context: Folder and jobs.
        fields: Form with the path of the log.
    """
    log = log_named(context.folder, fields["log"])
    old = drawing_job(context, log)
    if old is not None and not old.live:
        context.jobs.clear(old.id)
    if old is None or not old.live:
        context.jobs.add("data", f"Plot of {log.path.name}", _words(context, log))


def _words(context: StageContext, log: ListedLog) -> tuple[str, ...]:
    return ("-m", "pyramid", log.text, str(pyramid_file(context.folder, log)))
