"""`Guard`: rejects requests without a token, with a foreign Host header, or from another origin."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote

# Scripts come from files of ours alone. Styles may stand inside: plotly.js makes them.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
# A report is a page of its own, with its scripts inside; a sandbox without an origin keeps it from all of the studio.
REPORT_POLICY = (
    "sandbox allow-scripts allow-popups allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_SAFE = {"GET", "HEAD"}
# What only a script of the same origin can send without being asked for leave first.
OWN_HEADER = b"x-steelyard"
_SHUT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title></head><body><main>
<h1>This door is shut</h1><p>Open the whole address that <code>steelyard studio</code> printed, with its token. Each
start of the studio has a new address.</p></main></body></html>"""
# Sent to a browser that comes from a file: a cookie that is strict is not sent along a redirection from there.
_OPENED = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title>
<meta http-equiv="refresh" content="0;url=/"></head><body><p><a href="/">Open the studio</a></p></body></html>"""
# Seconds between two pieces of a request's body.
BODY_SECONDS = 60.0


class Keys:
    """The secrets of one start of the server: the token of its address and the cookie of its browsers.

    They are made anew at each start, are kept in memory alone, and hold for one port: browsers send a cookie to every
    port of a machine, so the name of the cookie names the port and the start.

    Args:
        port: of the server.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self.cookie_name = f"steelyard-{port}-{secrets.token_hex(4)}"


class Guard:
    """Stands before an application.

    Args:
        app: the application (ASGI).
        keys: what opens the door.
        hosts: the names, with port, under which the studio may be asked for.
    """

    def __init__(self, app: Any, keys: Keys, hosts: Iterable[str]) -> None:
        self.app, self.keys, self.hosts = app, keys, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request; the arguments are those of ASGI: `scope`, `receive`, `send`."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _Headers(scope["headers"])
        why = self._refused(scope["method"], headers)
        if why:
            await _answer(send, 403, why.encode(), "text/plain")
            return
        if not self._known(headers):
            await self._opened(scope, headers, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [pair for pair in _ALWAYS if pair[0] not in given]
                if b"content-security-policy" not in given:
                    more.append((b"content-security-policy", POLICY.encode()))
                if b"cache-control" not in given:
                    more.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, _impatient(receive), guarded)

    def _refused(self, method: str, headers: _Headers) -> str:
        host = headers.only(b"host")
        if host is None or host.lower() not in self.hosts:
            return "Steelyard does not answer to this name."
        origin = headers.only(b"origin", "")
        if origin is None or (origin and origin.lower() not in {f"http://{name}" for name in self.hosts}):
            return "Steelyard does not answer to other pages."
        if headers.only(b"sec-fetch-site", "") not in ("", "same-origin", "none") and not (
            method in _SAFE and headers.only(b"sec-fetch-mode", "") == "navigate"
        ):
            return "Steelyard does not answer to other pages."
        if method not in _SAFE and headers.only(OWN_HEADER) is None:
            return "This did not come from a page of the studio."
        return ""

    def _known(self, headers: _Headers) -> bool:
        try:
            found = SimpleCookie(headers.only(b"cookie", "") or "").get(self.keys.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.keys.cookie.encode())

    async def _opened(self, scope: Any, headers: _Headers, send: Any) -> None:
        """Answer the opening address with a cookie, and every other address with a refusal."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] not in _SAFE or not hmac.compare_digest(given.encode(), self.keys.token.encode()):
            await _answer(send, 401, _SHUT.encode(), "text/html; charset=utf-8")
            return
        # Without an age: the browser forgets it when it ends.
        cookie = f"{self.keys.cookie_name}={self.keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        more = [(b"set-cookie", cookie.encode())]
        if headers.only(b"sec-fetch-site", "") == "cross-site":
            await _answer(send, 200, _OPENED.encode(), "text/html; charset=utf-8", more)
            return
        await _answer(send, 303, b"", "text/plain", [*more, (b"location", _local(scope["path"]))])


def _local(path: str) -> bytes:
    """The path of a redirection, as an address on this server; "//name" would be another server."""
    return ("/" + quote(path.lstrip("/\\"), safe="/")).encode()


def _impatient(receive: Any) -> Any:
    """Wrap `receive` of ASGI: a body whose next piece does not come in time counts as a lost connection."""
    whole = False

    async def received() -> Any:
        nonlocal whole
        if whole:  # from here on only the end of the connection can come
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return received


class _Headers:
    """Those of a request; none may come twice where one is expected."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = list(pairs)

    def only(self, name: bytes, default: str | None = None) -> str | None:
        found = [value for key, value in self._pairs if key == name]
        if len(found) > 1:
            return None
        return found[0].decode("latin-1") if found else default


async def _answer(
    send: Any, status: int, body: bytes, kind: str, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:  # fmt: skip
    length = str(len(body)).encode()
    headers = [(b"content-type", kind.encode()), (b"content-length", length), (b"cache-control", b"no-store"), *more]
    policy = (b"content-security-policy", b"default-src 'none'")
    await send({"type": "http.response.start", "status": status, "headers": [*headers, policy, *_ALWAYS]})
    await send({"type": "http.response.body", "body": body})
