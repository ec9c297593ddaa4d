"""The application: addresses, and who answers them. It computes nothing."""

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
from steelyard.studio.found_jobs import forget_found, found_html, found_jobs, start_found
from steelyard.studio.guard import REPORT_POLICY
from steelyard.studio.news import News
from steelyard.studio.page import coming, jobs_html, rail_html, trouble, whole_page
from steelyard.studio.place import DOORWAY, StudioError
from steelyard.studio.stage import RAIL, STUDIO_STAGES, Desk, Sent, Stage
from steelyard.studio.uploads import receive

_OWN_ASSETS = Path(__file__).parent / "assets"
# Bytes of a form; files come another way.
_LARGEST_FORM = 1_000_000
# Seconds after which a page comes without what is still being worked out, and how many of these may wait for it.
_SOON, _MOST_GOING = 0.3, 40


class Studio:
    """What answers requests.

    Args:
        desk: folder, jobs, and the process aside.
        largest_upload: bytes.
    """

    def __init__(self, desk: Desk, largest_upload: int) -> None:
        self.desk, self.largest_upload = desk, largest_upload
        self.news = News(desk.jobs)
        # What pages that are open already are waiting for.
        self._going: dict[str, asyncio.Task[Html]] = {}

    def app(self) -> Starlette:
        """The application (ASGI), without its guard."""
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
            Route("/going/{name}", self.going),
            Route("/data/{stage}/{what}", self.data),
            Route("/file/{path:path}", self.file),
            Route("/{stage}", self.page),
        ]
        errors: Any = {
            StudioError: self.sentence, SteelyardError: self.sentence, HTTPException: self.refusal,
            OSError: self.disk_trouble,
        }  # fmt: skip
        return Starlette(routes=routes, lifespan=self._alive, exception_handlers=errors)

    @contextlib.asynccontextmanager
    async def _alive(self, _: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(self.news.go_on())
        try:
            yield
        finally:
            task.cancel()
            self.desk.aside.end()
            # Here, not after the server: a signal that ends it ends the process at once.
            self.desk.place.own(DOORWAY).unlink(missing_ok=True)

    # ------------------------------------------------------------ pages

    async def first(self, _: Request) -> Response:
        """The first stage that is not done."""
        for name in RAIL:
            if (await STUDIO_STAGES[name].standing(self.desk)).kind != "done":
                return RedirectResponse(f"/{name}", 303)
        return RedirectResponse("/use", 303)

    async def page(self, request: Request) -> Response:
        """A whole page."""
        stage = _stage(request)
        task = asyncio.create_task(self._body(stage, _query(request)))
        done, _ = await asyncio.wait({task}, timeout=_SOON)
        name = secrets.token_hex(8)
        if not done:  # the page comes at once, and asks for what is being worked out
            self._going[name] = task
            while len(self._going) > _MOST_GOING:  # nobody has come back for it
                self._going.pop(next(iter(self._going)))
        made = task.result() if done else coming(stage.title, name)
        jobs = self._jobs()
        return HTMLResponse(
            whole_page(self.desk.place, stage.name, made, await self._rail(stage.name), jobs, stage.scripts)
        )

    async def body(self, request: Request) -> Response:
        """What a stage shows, without what is around it."""
        return HTMLResponse(await self._body(_stage(request), _query(request)))

    async def going(self, request: Request) -> Response:
        """What a page that came before it is waiting for."""
        task = self._going.pop(request.path_params["name"], None)
        if task is None:
            raise HTTPException(404)
        return HTMLResponse(await task)

    async def rail(self, request: Request) -> Response:
        """The rail."""
        return HTMLResponse(await self._rail(_stage(request).name))

    async def jobs(self, _: Request) -> Response:
        """The list of jobs."""
        return HTMLResponse(self._jobs())

    async def _body(self, stage: Stage, query: Sent) -> Html:
        try:
            return await stage.body(self.desk, query)
        except SteelyardError as error:
            return Html(f"<h1>{stage.title}</h1>{trouble(str(error))}")
        except OSError as error:
            return Html(f"<h1>{stage.title}</h1>{trouble(disk_sentence(error))}")

    async def _rail(self, current: str) -> Html:
        return rail_html(current, {name: await STUDIO_STAGES[name].standing(self.desk) for name in RAIL})

    # ------------------------------------------------------------ what is done

    async def act(self, request: Request) -> Response:
        """An action of a stage; answered by HTML for the element that asked."""
        stage = _stage(request)
        action = stage.actions().get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        sent = await _form(request)
        self.desk.place.touch()
        made = await action(self.desk, sent)
        self.news.changed(stage.name, request.headers["x-steelyard"])
        return HTMLResponse(await self._body(stage, Sent([])) if made is None else made)

    async def act_on_job(self, request: Request) -> Response:
        """Cancel, stop or clear a job."""
        form, jobs = await _form(request), self.desk.jobs
        actions: dict[str, Callable[[str], Any]] = {
            "cancel": jobs.cancel, "stop": jobs.stop, "clear": jobs.clear,
            "start-found": partial(start_found, jobs), "forget-found": partial(forget_found, jobs),
        }  # fmt: skip
        action = actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        action(form["id"])
        self.news.changed("jobs", request.headers["x-steelyard"])
        return HTMLResponse(self._jobs())

    def _jobs(self) -> Html:
        return join(jobs_html(self.desk.jobs.all()), found_html(found_jobs(self.desk.jobs)))

    async def upload(self, request: Request) -> Response:
        """A file, streamed to the disk."""
        announced = request.headers.get("content-length", "")
        try:
            path = await receive(
                self.desk.place, request.path_params["folder"], request.path_params["name"], request.stream(),
                int(announced) if announced.isdigit() else -1, self.largest_upload,
            )  # fmt: skip
        except ClientDisconnect:
            return Response(status_code=400)
        return JSONResponse({"path": self.desk.place.relative(path)})

    # ------------------------------------------------------------ what is read

    async def events(self, request: Request) -> Response:
        """What happens, as it happens (server-sent events)."""
        return StreamingResponse(self.news.told(), media_type="text/event-stream")

    async def job_events(self, request: Request) -> Response:
        """All that a job has told so far."""
        return JSONResponse(self.desk.jobs.events(self.desk.jobs.get(request.path_params["name"]).id)[0])

    async def data(self, request: Request) -> Response:
        """What a script of a stage asks for: JSON, or bytes."""
        stage = _stage(request)
        give: Callable[[Desk, str, Sent], Awaitable[Any]] | None = getattr(stage, "data", None)
        if give is None:
            raise HTTPException(404)
        found = await give(self.desk, request.path_params["what"], _query(request))
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream")
        return Response(found if isinstance(found, str) else json.dumps(found), media_type="application/json")

    async def file(self, request: Request) -> Response:
        """A file of a run: its report to look at, everything else to save."""
        path = self.desk.place.inside(request.path_params["path"])
        run = path.parent
        while run != self.desk.place.root and not (run / "manifest.json").is_file():
            run = run.parent
        if run == self.desk.place.root or not path.is_file():
            raise HTTPException(404)
        if path.suffix == ".html":
            headers = {"content-security-policy": REPORT_POLICY}
            return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def asset(self, request: Request) -> Response:
        """Scripts, styles and the icon: ours alone."""
        name = request.path_params["name"]
        fresh = {"cache-control": "no-cache"}
        if name == "plotly.js":
            library = (ASSETS / "plotly-plane.js.gz").read_bytes()
            coded = "gzip" in request.headers.get("accept-encoding", "")
            headers = {**fresh, "content-encoding": "gzip"} if coded else fresh
            return Response(
                library if coded else gzip.decompress(library), media_type="text/javascript", headers=headers
            )
        for folder in (_OWN_ASSETS, ASSETS):
            if name in {path.name for path in folder.iterdir() if path.suffix in (".js", ".css", ".svg")}:
                kind = mimetypes.guess_type(name)[0] or "text/plain"
                return FileResponse(folder / name, media_type=kind, headers=fresh)
        raise HTTPException(404)

    # ------------------------------------------------------------ errors

    async def sentence(self, _: Request, error: Exception) -> Response:
        """An error of ours: a sentence, for the page that asked."""
        return HTMLResponse(trouble(str(error)), 422)

    async def disk_trouble(self, _: Request, error: Exception) -> Response:
        """Answer an error of the disk with a sentence."""
        return HTMLResponse(trouble(disk_sentence(error)), 422)

    async def refusal(self, _: Request, error: Exception) -> Response:
        """An address that there is not."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        return HTMLResponse(trouble("There is nothing at this address."), status)


def disk_sentence(error: Exception) -> str:
    """Say what the system has against a file, and what to do.

    Args:
        error: an OSError.
    """
    number = getattr(error, "errno", None)
    full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "make room on the disk, and try again" if full else "check the file and its permissions, and try again"
    name = os.path.basename(str(getattr(error, "filename", None) or "")) or "A file"
    return f"{shortened(name, 100)}: {getattr(error, 'strerror', None) or error}; {remedy}."


def _stage(request: Request) -> Stage:
    name = request.path_params["stage"]
    if name not in STUDIO_STAGES:
        raise HTTPException(404)
    return STUDIO_STAGES[name]


def _query(request: Request) -> Sent:
    return Sent([(key, str(value)) for key, value in request.query_params.multi_items()])


async def _form(request: Request) -> Sent:
    """A form as browsers send it (urlencoded), of bounded length."""
    from urllib.parse import parse_qsl

    held = bytearray()
    async for piece in request.stream():
        held += piece
        if len(held) > _LARGEST_FORM:
            raise StudioError("The form is too large.")
    try:
        return Sent(parse_qsl(held.decode("utf-8"), keep_blank_values=True, max_num_fields=10_000))
    except ValueError:
        raise StudioError("The form cannot be read; reload the page.") from None
