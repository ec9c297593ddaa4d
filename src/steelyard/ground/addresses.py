"""URLs of remote files: allowed protocols, the packages for them, and error messages of one sentence."""

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

# Allowed protocols and the package for each. fsspec knows more; some of those could run foreign code.
PROTOCOLS = {
    **dict.fromkeys(("file", "memory", "zip", "tar"), "fsspec"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a drive of Windows has one letter
_QUERY = re.compile(r"(https?://[^?]*)\?(?:(?!::).)*")
# Time limit for an answer [s]. Back-ends retry two or three times; some would wait a quarter of an hour.
SILENT_S = 30.0
_CONNECT_S = 10.0
# Time limit for one HTTP request [s], even if data keeps arriving.
_REQUEST_S = 600.0
# Slowest accepted transfer [bytes/s].
_SLOWEST = 1e5
# A silent server is not contacted again for this time [s], so that a thousand logs there cost one time-out.
_REST_S = 60.0
_TIMEOUTS = ("ReadTimeoutError", "ConnectTimeoutError", "EndpointConnectionTimeout", "RetryError")
_last_silence: dict[str, float] = {}
_FORBIDDEN = ("NoCredentialsError", "PartialCredentialsError", "ClientAuthenticationError")


def is_url(text: str) -> bool:
    """Whether `text` is a URL, such as s3://bucket/run.parquet, rather than a path."""
    return bool(_URL.match(text))


def shown_address(url: str) -> str:
    """Return a `url` for messages: the query of an HTTP address is removed, because it may hold an access signature."""
    return _QUERY.sub(r"\1", url)


def file_system(url: str, error: type[SteelyardError] = LogError) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path inside it.

    Args:
        url: Address, such as "s3://bucket/run.parquet".
        error: Error class for an unknown protocol or a missing package.
    """
    shown = shown_address(url)
    # The part after the last :: may be a local path.
    parts = [part.partition("://")[0].lower() if is_url(part) else "file" for part in url.split("::")]
    for name in parts:
        if name not in PROTOCOLS:
            raise error(f"{shown}: unknown protocol '{name}'; known protocols: {', '.join(PROTOCOLS)}.")
    if any(urlsplit(part).password for part in url.split("::")):
        where = re.sub(r"//[^/@]*@", "//…@", shown)
        raise error(f"{where}: contains a password; remove it and set it in the environment or in fsspec's settings.")
    fsspec = import_extra("fsspec", "fleet", f"{shown}: reading a remote file", error)
    for name in parts:
        _check_package(name, shown, error)
    with translate_errors(shown, error):
        settings = {name: _settings(name) for name in parts if name not in fsspec.config.conf}
        system, path = fsspec.core.url_to_fs(url, **{name: some for name, some in settings.items() if some})
    if PROTOCOLS[parts[0]] == "s3fs":
        system.retries = 1  # each retry makes the attempts set in `_settings`
    return system, path


def _check_package(name: str, shown: str, error: type[SteelyardError]) -> None:
    package = PROTOCOLS[name]
    if package in ("gcsfs", "adlfs"):  # not part of any extra
        if find_spec(package) is None:
            raise error(f"{shown}: reading {name}:// needs the package {package}: pip install {package}.")
    else:
        import_extra(package, "s3" if package == "s3fs" else "fleet", f"{shown}: reading {name}://", error)


def _settings(protocol: str) -> dict[str, Any]:
    if PROTOCOLS[protocol] == "s3fs":
        # Three attempts share the time limit.
        third = SILENT_S / 3.0
        return {"config_kwargs": {"connect_timeout": third, "read_timeout": third, "retries": {"max_attempts": 2}}}
    if PROTOCOLS[protocol] == "aiohttp":
        import aiohttp

        # Two requests, HEAD and GET, share the time limit.
        wait_s = {"sock_connect": min(_CONNECT_S, SILENT_S), "sock_read": SILENT_S / 2.0, "total": _REQUEST_S}
        waits = aiohttp.ClientTimeout(**wait_s)
        return {"client_kwargs": {"timeout": waits}}
    return {}


class SilentError(UnreachableError):
    """A server accepts a connection and does not answer, or answers too slowly."""


def ask_server(system: Any, method: str, *words: Any, size: int = 0, **options: Any) -> Any:
    """Call a method of a file system within a time limit.

    Args:
        system: fsspec file system.
        method: Name of the method, such as "info".
        words: Positional arguments of the method.
        size: Expected size of the answer [bytes]; a larger answer may take longer.
        options: Keyword arguments of the method.
    """
    if not getattr(system, "async_impl", False):
        return getattr(system, method)(*words, **options)
    from fsspec.asyn import sync

    limit_s = SILENT_S + size / _SLOWEST
    return sync(system.loop, getattr(system, f"_{method}"), *words, timeout=limit_s, **options)


def forget_silence() -> None:
    """Contact silent servers again at once."""
    _last_silence.clear()


def _server_of(place: str) -> str:
    """The server or bucket of an address; "" for an address without network access."""
    last = place.rpartition("::")[2]
    protocol, _, rest = last.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}" if PROTOCOLS.get(protocol, "fsspec") != "fsspec" else ""


@contextmanager
def translate_errors(place: object, error: type[SteelyardError]) -> Iterator[None]:
    """Translate errors of remote access into one sentence that names the file.

    Args:
        place: Address of the file.
        error: Error class for a missing or forbidden file.

    Raises:
        SilentError: If the server does not answer, or did not answer recently.
        UnreachableError: For any other failure.
    """
    server = _server_of(str(place))
    if server and time.monotonic() - _last_silence.get(server, -math.inf) < _REST_S:
        raise SilentError(f"{place}: {server} does not answer; try again later.")
    try:
        yield
    except SteelyardError:
        raise
    except Exception as why:  # each back-end and each library below it has its own error classes
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
        return SilentError(f"{place}: {server} does not answer within {SILENT_S:.0f} s; try again later.")
    codes = {getattr(one, "status", None) for one in chain}
    denied = any(isinstance(one, PermissionError) or type(one).__name__ in _FORBIDDEN for one in chain)
    if denied or codes & {401, 403}:
        return error(f"{place}: access denied; check the credentials and their permissions.")
    # A back-end may report a missing file because the network failed; the network error is then the cause.
    silent = any(isinstance(one, OSError) and not isinstance(one, FileNotFoundError) for one in chain)
    broken = any(isinstance(code, int) and code >= 500 for code in codes)
    if codes & {404, 410} or (isinstance(why, FileNotFoundError | KeyError) and not silent and not broken):
        return error(f"{place}: there is no such file; check the address.")
    if isinstance(why, ValueError) and "range" in str(why):
        return error(f"{place}: its server does not support range requests; use another server, or copy the file here.")
    if type(why).__name__ == "FileExpired":
        return error(f"{place}: the file changed while it was read; read it again.")
    if type(why).__name__ in ("BadZipFile", "ReadError"):
        return error(f"{place}: is not a readable archive, or is truncated; write or copy it again.")
    if isinstance(why, ImportError):
        return error(f"{place}: a package for reading it is missing ({why}); {how_to_install('fleet')}.")
    last = chain[-1]
    reason = (str(last).splitlines() or [""])[0] or type(last).__name__
    return UnreachableError(f"{place}: cannot be reached ({reason}); check the address and the network.")
