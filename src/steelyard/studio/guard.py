"""`Guard`: the door. Who has no token, comes by another name or from another page, gets nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from steelyard.ground.files import write_whole
from steelyard.studio.place import StudioFolder

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
<h1>This door is shut</h1><p>Open the whole address that <code>steelyard studio</code> printed, with its token.</p>
</main></body></html>"""


class Keys:
    """The token of the opening address and the cookie that follows it: kept with the folder, for its owner's eyes
    alone, so that pages outlive a restart.

    Args:
        place: the folder.
    """

    def __init__(self, place: StudioFolder) -> None:
        path = place.own("key.json")
        try:
            self.token = str(json.loads(path.read_text("utf-8"))["token"])
        except (OSError, ValueError, KeyError, TypeError):
            self.token = secrets.token_urlsafe(32)
            write_whole(path, json.dumps({"token": self.token}), private=True)

    @property
    def cookie(self) -> str:
        """What the cookie holds: nobody finds the token from it."""
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()


class Guard:
    """Stands before an application.

    Args:
        app: the application (ASGI).
        keys: what opens the door.
        hosts: the names, with port, under which the studio may be asked for.
    """

    def __init__(self, app: Any, keys: Keys, hosts: Iterable[str]) -> None:
        self.app, self.keys, self.hosts = app, keys, frozenset(host.lower() for host in hosts)
        self.cookie_name = "steelyard-" + hashlib.sha256(keys.cookie.encode()).hexdigest()[:8]

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
            await self._opened(scope, send)
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

        await self.app(scope, receive, guarded)

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
            found = SimpleCookie(headers.only(b"cookie", "") or "").get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.keys.cookie.encode())

    async def _opened(self, scope: Any, send: Any) -> None:
        """The opening address becomes a cookie; anything else stays outside."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] in _SAFE and hmac.compare_digest(given.encode(), self.keys.token.encode()):
            cookie = f"{self.cookie_name}={self.keys.cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
            more = [(b"set-cookie", cookie.encode()), (b"location", scope["path"].encode() or b"/")]
            await _answer(send, 303, b"", "text/plain", more)
            return
        await _answer(send, 401, _SHUT.encode(), "text/html; charset=utf-8")


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
