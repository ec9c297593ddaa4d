"""`Guard`: rejects requests without a token, with a foreign Host header, or from another origin."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote

# Scripts only from the studio's own files. Inline styles are allowed because plotly.js creates them.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
# A report has inline scripts; a sandbox without an origin separates it from the studio.
REPORT_POLICY = (
    "sandbox allow-scripts allow-popups allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_SAFE = {"GET", "HEAD"}
# Only scripts of the same origin can send this header without a CORS preflight.
OWN_HEADER = b"x-steelyard"
_TOKEN_MISSING = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title></head><body>
<main><h1>Access denied</h1><p>Open the complete address that <code>steelyard studio</code> printed, with its token.
Each start of the studio has a new address.</p></main></body></html>"""
# Sent to a browser that comes from a file: after an HTTP redirect from there it would not send the strict cookie.
_CONTINUE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Steelyard</title>
<meta http-equiv="refresh" content="0;url=/"></head><body><p><a href="/">Open the studio</a></p></body></html>"""
# Time limit between two pieces of a request's body [s].
BODY_SECONDS = 60.0


class Keys:
    """The secrets of one start of the server: the token in its address and the cookie of its browsers.

    They are random at each start and kept in memory only. Browsers send a cookie to every port of a machine, so the
    cookie's name contains the port and a random part.

    Args:
        port: Port of the server.
    """

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)
        self.cookie_name = f"steelyard-{port}-{secrets.token_hex(4)}"


class Guard:
    """Middleware that protects an application and adds security headers to its answers.

    Args:
        app: The application (ASGI).
        keys: Token and cookie.
        hosts: Allowed values of the Host header, with port.
    """

    def __init__(self, app: Any, keys: Keys, hosts: Iterable[str]) -> None:
        self.app, self.keys, self.hosts = app, keys, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request.

        Args:
            scope: Scope of ASGI.
            receive: Receive function of ASGI.
            send: Send function of ASGI.
        """
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets are refused
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _Headers(scope["headers"])
        refusal = self._refusal(scope["method"], headers)
        if refusal:
            await _answer(send, 403, refusal.encode(), "text/plain")
            return
        if not self._has_cookie(headers):
            await self._check_token(scope, headers, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                more = [pair for pair in _SECURITY_HEADERS if pair[0] not in names]
                if b"content-security-policy" not in names:
                    more.append((b"content-security-policy", POLICY.encode()))
                if b"cache-control" not in names:
                    more.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, _with_time_limit(receive), guarded)

    def _refusal(self, method: str, headers: _Headers) -> str:
        host = headers.only(b"host")
        if host is None or host.lower() not in self.hosts:
            return "Refused: this host name is not the studio's. Open the address that steelyard studio printed."
        origin = headers.only(b"origin", "")
        if origin is None or (origin and origin.lower() not in {f"http://{name}" for name in self.hosts}):
            return "Refused: the request came from another site."
        if headers.only(b"sec-fetch-site", "") not in ("", "same-origin", "none") and not (
            method in _SAFE and headers.only(b"sec-fetch-mode", "") == "navigate"
        ):
            return "Refused: the request came from another site."
        if method not in _SAFE and headers.only(OWN_HEADER) is None:
            return "Refused: the request did not come from a page of the studio."
        return ""

    def _has_cookie(self, headers: _Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.only(b"cookie", "") or "").get(self.keys.cookie_name)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self.keys.cookie.encode())

    async def _check_token(self, scope: Any, headers: _Headers, send: Any) -> None:
        """Answer an address with the right token with a cookie, and any other address with an error."""
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] not in _SAFE or not hmac.compare_digest(token.encode(), self.keys.token.encode()):
            await _answer(send, 401, _TOKEN_MISSING.encode(), "text/html; charset=utf-8")
            return
        # Without Max-Age: the browser drops the cookie when it is closed.
        cookie = f"{self.keys.cookie_name}={self.keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        more = [(b"set-cookie", cookie.encode())]
        if headers.only(b"sec-fetch-site", "") == "cross-site":
            await _answer(send, 200, _CONTINUE.encode(), "text/html; charset=utf-8", more)
            return
        await _answer(send, 303, b"", "text/plain", [*more, (b"location", _local(scope["path"]))])


def _local(path: str) -> bytes:
    """Return a redirect target on this server; a path "//name" would lead to another server."""
    return ("/" + quote(path.lstrip("/\\"), safe="/")).encode()


def _with_time_limit(receive: Any) -> Any:
    """Wrap `receive` of ASGI: if the next piece of a body is late, report a lost connection."""
    complete = False

    async def receive_in_time() -> Any:
        nonlocal complete
        if complete:  # only the end of the connection can follow
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError:
            return {"type": "http.disconnect"}
        complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return receive_in_time


class _Headers:
    """The headers of a request; `only` rejects duplicates."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = list(pairs)

    def only(self, name: bytes, default: str | None = None) -> str | None:
        values = [value for key, value in self._pairs if key == name]
        if len(values) > 1:
            return None
        return values[0].decode("latin-1") if values else default


async def _answer(
    send: Any, status: int, body: bytes, kind: str, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:  # fmt: skip
    length = str(len(body)).encode()
    headers = [(b"content-type", kind.encode()), (b"content-length", length), (b"cache-control", b"no-store"), *more]
    policy = (b"content-security-policy", b"default-src 'none'")
    await send({"type": "http.response.start", "status": status, "headers": [*headers, policy, *_SECURITY_HEADERS]})
    await send({"type": "http.response.body", "body": body})
