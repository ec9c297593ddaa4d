"""Addresses of files that lie elsewhere: what may be named, who speaks it, and what went wrong, in one sentence."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from steelyard.errors import LogError, SteelyardError, UnreachableError
from steelyard.ground.extras import how_to_install, import_extra

# What may be named, and the package that speaks it. fsspec knows more, among them what unpacks programs: none of those.
PROTOCOLS = {
    **dict.fromkeys(("file", "memory", "zip", "tar"), "fsspec"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a drive of Windows has one letter
_QUERY = re.compile(r"(https?://[^?]*)\?(?:(?!::).)*")
# Seconds that a server may say nothing. Back-ends ask two or three times, and some would wait a quarter of an hour.
SILENT_S = 30.0
_CONNECT_S = 10.0
# Seconds for one request of http, however steadily its server drips.
_REQUEST_S = 600.0
# Bytes a second: a transfer that is slower than this is given up, too.
_SLOWEST = 1e5
# Seconds for which a server that said nothing is not asked again: a thousand logs there cost no more than one.
_REST_S = 60.0
_TIMEOUTS = ("ReadTimeoutError", "ConnectTimeoutError", "EndpointConnectionTimeout", "RetryError")
_last_silence: dict[str, float] = {}
_FORBIDDEN = ("NoCredentialsError", "PartialCredentialsError", "ClientAuthenticationError")


def is_url(text: str) -> bool:
    """Whether `text` is a URL, such as s3://bucket/run.parquet, rather than a path."""
    return bool(_URL.match(text))


def shown_address(url: str) -> str:
    """A `url` for people: without what follows a question mark in one of http, a signature that opens the door."""
    return _QUERY.sub(r"\1", url)


def file_system(url: str, error: type[SteelyardError] = LogError) -> tuple[Any, str]:
    """fsspec's file system behind a `url`, and the path in it; `error` tells what is not known or lacks a package."""
    shown = shown_address(url)
    # What is behind the last :: may be a path of this machine.
    parts = [part.partition("://")[0].lower() if is_url(part) else "file" for part in url.split("::")]
    for name in parts:
        if name not in PROTOCOLS:
            raise error(f"{shown}: '{name}' is not known as a place of files; known are {', '.join(PROTOCOLS)}.")
    if any(urlsplit(part).password for part in url.split("::")):
        where = re.sub(r"//[^/@]*@", "//…@", shown)
        raise error(f"{where}: holds a password; leave it out, and give it by the environment or fsspec's settings.")
    fsspec = import_extra("fsspec", "fleet", f"{shown}: reading from elsewhere", error)
    for name in parts:
        _check_package(name, shown, error)
    with told(shown, error):
        settings = {name: _settings(name) for name in parts if name not in fsspec.config.conf}
        system, path = fsspec.core.url_to_fs(url, **{name: some for name, some in settings.items() if some})
    if PROTOCOLS[parts[0]] == "s3fs":
        system.retries = 1  # each of which has the attempts below
    return system, path


def _check_package(name: str, shown: str, error: type[SteelyardError]) -> None:
    package = PROTOCOLS[name]
    if package in ("gcsfs", "adlfs"):  # none of our extras brings them
        if find_spec(package) is None:
            raise error(f"{shown}: reading {name}:// needs the package {package}: pip install {package}.")
    else:
        import_extra(package, "s3" if package == "s3fs" else "fleet", f"{shown}: reading {name}://", error)


def _settings(protocol: str) -> dict[str, Any]:
    if PROTOCOLS[protocol] == "s3fs":
        # Three attempts, which take the time together.
        third = SILENT_S / 3.0
        return {"config_kwargs": {"connect_timeout": third, "read_timeout": third, "retries": {"max_attempts": 2}}}
    if PROTOCOLS[protocol] == "aiohttp":
        import aiohttp

        # A file is asked for twice, by HEAD and by GET, before it is given up.
        wait_s = {"sock_connect": min(_CONNECT_S, SILENT_S), "sock_read": SILENT_S / 2.0, "total": _REQUEST_S}
        waits = aiohttp.ClientTimeout(**wait_s)
        return {"client_kwargs": {"timeout": waits}}
    return {}


class SilentError(UnreachableError):
    """A server accepts a connection and does not answer, or answers too slowly."""


def ask_server(system: Any, method: str, *words: Any, size: int = 0, **options: Any) -> Any:
    """What a file system answers, within the time that a server may be silent.

    Args:
        system: fsspec's.
        method: its name, such as "info".
        words: what the method is given.
        size: number of bytes that are expected.
        options: of the method.
    """
    if not getattr(system, "async_impl", False):
        return getattr(system, method)(*words, **options)
    from fsspec.asyn import sync

    limit_s = SILENT_S + size / _SLOWEST
    return sync(system.loop, getattr(system, f"_{method}"), *words, timeout=limit_s, **options)


def forget_silence() -> None:
    """Ask servers again that did not answer a moment ago."""
    _last_silence.clear()


def _server_of(place: str) -> str:
    """The server of an address, or its bucket; "" where nothing is asked of a network."""
    last = place.rpartition("::")[2]
    protocol, _, rest = last.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}" if PROTOCOLS.get(protocol, "fsspec") != "fsspec" else ""


@contextmanager
def told(place: object, error: type[SteelyardError]) -> Iterator[None]:
    """What goes wrong inside with a file that lies elsewhere is one sentence.

    Args:
        place: of the file.
        error: what is raised where there is no such file, or it may not be read; UnreachableError for all else,
            SilentError where the server does not answer, or did not answer a moment ago.
    """
    server = _server_of(str(place))
    if server and time.monotonic() - _last_silence.get(server, -math.inf) < _REST_S:
        raise SilentError(f"{place}: {server} does not answer; try again when it does.")
    try:
        yield
    except SteelyardError:
        raise
    except Exception as why:  # every back-end, and every library below it, has errors of its own
        sentence = _sentence(why, place, error)
        if server and isinstance(sentence, SilentError):
            _last_silence[server] = time.monotonic()
        raise sentence from None


def _sentence(why: BaseException, place: object, error: type[SteelyardError]) -> SteelyardError:
    chain: list[BaseException] = [why]
    while (cause := chain[-1].__cause__) is not None and len(chain) < 10:
        chain.append(cause)
    if any(isinstance(one, TimeoutError) or type(one).__name__ in _TIMEOUTS for one in chain):
        server = _server_of(str(place)) or "its server"
        return SilentError(f"{place}: {server} does not answer within {SILENT_S:.0f} s; try again when it does.")
    codes = {getattr(one, "status", None) for one in chain}
    denied = any(isinstance(one, PermissionError) or type(one).__name__ in _FORBIDDEN for one in chain)
    if denied or codes & {401, 403}:
        return error(f"{place}: there is no permission to read it; check the credentials and what they allow.")
    # A back-end may call it missing where nobody answered; then that is the cause.
    silent = any(isinstance(one, OSError) and not isinstance(one, FileNotFoundError) for one in chain)
    broken = any(isinstance(code, int) and code >= 500 for code in codes)
    if codes & {404, 410} or (isinstance(why, FileNotFoundError | KeyError) and not silent and not broken):
        return error(f"{place}: there is no such file; check the address.")
    if isinstance(why, ValueError) and "range" in str(why):
        return error(
            f"{place}: its server hands out no parts of files (range requests); serve it otherwise, or copy it."
        )
    if type(why).__name__ == "FileExpired":
        return error(f"{place}: was changed while it was read; read it again.")
    if type(why).__name__ in ("BadZipFile", "ReadError"):
        return error(f"{place}: is not a readable archive, or is cut short; write or copy it again.")
    if isinstance(why, ImportError):
        return error(f"{place}: reading it needs a package that is missing ({why}); {how_to_install('fleet')}.")
    last = chain[-1]
    reason = (str(last).splitlines() or [""])[0] or type(last).__name__
    return UnreachableError(f"{place}: cannot be reached ({reason}); check the address and the network.")
