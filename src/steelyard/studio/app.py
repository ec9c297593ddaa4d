"""`Studio`: the web application. It routes requests to stages and jobs and computes nothing itself."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import json
import mimetypes
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from steelyard.errors import SteelyardError, shortened
from steelyard.report.elements import Html, join
from steelyard.report.plotly_js import ASSETS
from steelyard.studio.event_stream import EventStream
from steelyard.studio.foreign_jobs import foreign_jobs, foreign_jobs_html, remove_foreign, start_foreign
from steelyard.studio.guard import REPORT_POLICY
from steelyard.studio.page import jobs_html, placeholder, rail_html, trouble, whole_page
from steelyard.studio.stage import RAIL, STUDIO_STAGES, FormData, Stage, StageContext
from steelyard.studio.studio_folder import START_PAGE, StudioError
from steelyard.studio.uploads import receive

_OWN_ASSETS = Path(__file__).parent / "assets"
# Largest form [bytes]; files are uploaded separately.
_LARGEST_FORM = 1_000_000
# Time to render a stage before its page is sent with a placeholder [s], and most stages that are still rendered.
_RENDER_SECONDS, _MOST_PENDING = 0.3, 40


class Studio:
    """The request handlers of a studio.

    Args:
        context: Folder, jobs and helper process.
        largest_upload: Largest upload [bytes].
    """

    def __init__(self, context: StageContext, largest_upload: int) -> None:
        self.context, self.largest_upload = context, largest_upload
        self.stream = EventStream(context.jobs)
        # Stages that are still rendered for a page with a placeholder.
        self._pending: dict[str, asyncio.Task[Html]] = {}

    def app(self) -> Starlette:
        """Return the application (ASGI) without its guard."""
        routes = [
            Route("/", self.first),
            Route("/assets/{name}", self.asset),
            Route("/events", self.events),
            Route("/rail/{stage}", self.rail),
            Route("/jobs", self.jobs),
            Route("/jobs/{name}/events", self.job_events),
            Route("/upload/{folder}/{name}", self.upload, methods=["PUT"]),
            Route("/do/job/{action}", self.act_on_job, methods=["POST"]),
            Route("/do/{stage}/{action}", self.act, methods=["POST"]),
            Route("/body/{stage}", self.body),
            Route("/pending/{name}", self.pending),
            Route("/data/{stage}/{what}", self.data),
            Route("/file/{path:path}", self.file),
            Route("/{stage}", self.page),
        ]
        errors: Any = {
            StudioError: self.known_error, SteelyardError: self.known_error, HTTPException: self.http_error,
            OSError: self.disk_error,
        }  # fmt: skip
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=errors)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(self.stream.run())
        try:
            yield
        finally:
            task.cancel()
            self.context.helper.end()
            # Not after the server returns: a signal that ends the server ends the process at once.
            self.context.folder.state_path(START_PAGE).unlink(missing_ok=True)

    # ------------------------------------------------------------ pages

    async def first(self, _: Request) -> Response:
        """Redirect to the first stage that is not done."""
        for name in RAIL:
            if (await STUDIO_STAGES[name].status(self.context)).kind != "done":
                return RedirectResponse(f"/{name}", 303)
        return RedirectResponse("/use", 303)

    async def page(self, request: Request) -> Response:
        """Send the page of a stage, with a placeholder if the stage takes long to render."""
        stage = _stage(request)
        task = asyncio.create_task(self._body(stage, _query(request)))
        done, _ = await asyncio.wait({task}, timeout=_RENDER_SECONDS)
        name = secrets.token_hex(8)
        if not done:  # the page's script fetches the stage later
            self._pending[name] = task
            while len(self._pending) > _MOST_PENDING:  # pages that were closed before
                self._pending.pop(next(iter(self._pending)))
        html = task.result() if done else placeholder(stage.title, name)
        jobs = self._jobs()
        return HTMLResponse(
            whole_page(self.context.folder, stage.name, html, await self._rail(stage.name), jobs, stage.scripts)
        )

    async def body(self, request: Request) -> Response:
        """Send a stage without the page around it."""
        return HTMLResponse(await self._body(_stage(request), _query(request)))

    async def pending(self, request: Request) -> Response:
        """Send the stage that replaces a placeholder."""
        task = self._pending.pop(request.path_params["name"], None)
        if task is None:
            raise HTTPException(404)
        return HTMLResponse(await task)

    async def rail(self, request: Request) -> Response:
        """Send the rail."""
        return HTMLResponse(await self._rail(_stage(request).name))

    async def jobs(self, _: Request) -> Response:
        """Send the list of jobs."""
        return HTMLResponse(self._jobs())

    async def _body(self, stage: Stage, query: FormData) -> Html:
        try:
            return await stage.body(self.context, query)
        except SteelyardError as error:
            return Html(f"<h1>{stage.title}</h1>{trouble(str(error))}")
        except OSError as error:
            return Html(f"<h1>{stage.title}</h1>{trouble(disk_message(error))}")

    async def _rail(self, current: str) -> Html:
        return rail_html(current, {name: await STUDIO_STAGES[name].status(self.context) for name in RAIL})

    # ------------------------------------------------------------ actions

    async def act(self, request: Request) -> Response:
        """Run an action of a stage and send the HTML for its target element."""
        stage = _stage(request)
        action = stage.actions().get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        fields = await _form(request)
        self.context.folder.mark_used()
        html = await action(self.context, fields)
        self.stream.notify_change(stage.name, request.headers["x-steelyard"])
        return HTMLResponse(await self._body(stage, FormData([])) if html is None else html)

    async def act_on_job(self, request: Request) -> Response:
        """Cancel, stop or clear a job, or start or remove a job file of the folder."""
        form, jobs = await _form(request), self.context.jobs
        actions: dict[str, Callable[[str], Any]] = {
            "cancel": jobs.cancel, "stop": jobs.stop, "clear": jobs.clear,
            "start-foreign": partial(start_foreign, jobs), "remove-foreign": partial(remove_foreign, jobs),
        }  # fmt: skip
        action = actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        action(form["id"])
        self.stream.notify_change("jobs", request.headers["x-steelyard"])
        return HTMLResponse(self._jobs())

    def _jobs(self) -> Html:
        return join(jobs_html(self.context.jobs.all()), foreign_jobs_html(foreign_jobs(self.context.jobs)))

    async def upload(self, request: Request) -> Response:
        """Receive a file, or with the query `key` a file of a folder."""
        key = request.query_params.get("key", "")
        name = request.query_params.get("path", "") if key else request.path_params["name"]
        announced = request.headers.get("content-length", "")
        try:
            path = await receive(
                self.context.folder, request.path_params["folder"], name, request.stream(),
                int(announced) if announced.isdigit() else -1, self.largest_upload, key,
            )  # fmt: skip
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse({"path": self.context.folder.relative(path)})

    # ------------------------------------------------------------ data

    async def events(self, request: Request) -> Response:
        """Send events to a page as they happen (server-sent events)."""
        return StreamingResponse(self.stream.subscribe(), media_type="text/event-stream")

    async def job_events(self, request: Request) -> Response:
        """Send all events of a job so far."""
        return JSONResponse(self.context.jobs.events(self.context.jobs.get(request.path_params["name"]).id)[0])

    async def data(self, request: Request) -> Response:
        """Send data for a script of a stage: JSON, or bytes."""
        stage = _stage(request)
        read: Callable[[StageContext, str, FormData], Awaitable[Any]] | None = getattr(stage, "data", None)
        if read is None:
            raise HTTPException(404)
        data = await read(self.context, request.path_params["what"], _query(request))
        if isinstance(data, bytes):
            return Response(data, media_type="application/octet-stream")
        return Response(data if isinstance(data, str) else json.dumps(data), media_type="application/json")

    async def file(self, request: Request) -> Response:
        """Send a file of a run: a report as a page, any other file as a download."""
        path = self.context.folder.path_inside(request.path_params["path"])
        run = path.parent
        while run != self.context.folder.root and not (run / "manifest.json").is_file():
            run = run.parent
        if run == self.context.folder.root or not path.is_file():
            raise HTTPException(404)
        if path.suffix == ".html":
            headers = {"content-security-policy": REPORT_POLICY}
            return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def asset(self, request: Request) -> Response:
        """Send a script, a style sheet or the icon of this package."""
        name = request.path_params["name"]
        no_cache = {"cache-control": "no-cache"}
        if name == "plotly.js":
            library = (ASSETS / "plotly-plane.js.gz").read_bytes()
            gzipped = "gzip" in request.headers.get("accept-encoding", "")
            headers = {**no_cache, "content-encoding": "gzip"} if gzipped else no_cache
            return Response(
                library if gzipped else gzip.decompress(library), media_type="text/javascript", headers=headers
            )
        for folder in (_OWN_ASSETS, ASSETS):
            if name in {path.name for path in folder.iterdir() if path.suffix in (".js", ".css", ".svg")}:
                kind = mimetypes.guess_type(name)[0] or "text/plain"
                return FileResponse(folder / name, media_type=kind, headers=no_cache)
        raise HTTPException(404)

    # ------------------------------------------------------------ errors

    async def known_error(self, _: Request, error: Exception) -> Response:
        """Send the message of a SteelyardError."""
        return HTMLResponse(trouble(str(error)), 422)

    async def disk_error(self, _: Request, error: Exception) -> Response:
        """Send a message for an error of the file system."""
        return HTMLResponse(trouble(disk_message(error)), 422)

    async def http_error(self, _: Request, error: Exception) -> Response:
        """Answer an unknown address."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        return HTMLResponse(trouble("There is nothing at this address."), status)


def disk_message(error: Exception) -> str:
    """Return the file, the system's message and a remedy for the OSError `error`."""
    number = getattr(error, "errno", None)
    full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "free some disk space and try again" if full else "check the file and its permissions, then try again"
    name = os.path.basename(str(getattr(error, "filename", None) or "")) or "A file"
    return f"{shortened(name, 100)}: {getattr(error, 'strerror', None) or error}; {remedy}."


def _stage(request: Request) -> Stage:
    name = request.path_params["stage"]
    if name not in STUDIO_STAGES:
        raise HTTPException(404)
    return STUDIO_STAGES[name]


def _query(request: Request) -> FormData:
    return FormData([(key, str(value)) for key, value in request.query_params.multi_items()])


async def _form(request: Request) -> FormData:
    """Read a urlencoded form of limited size."""
    from urllib.parse import parse_qsl

    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > _LARGEST_FORM:
            raise StudioError(f"The form has more than {_LARGEST_FORM / 1e6:g} MB.")
    try:
        return FormData(parse_qsl(content.decode("utf-8"), keep_blank_values=True, max_num_fields=10_000))
    except ValueError:
        raise StudioError("The form cannot be read; reload the page.") from None
