"""Addresses of files that lie elsewhere: what may be named, who speaks it, and what went wrong, in one sentence."""

from __future__ import annotations

import re
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
# A server that does not answer is told within a minute, and not after the quarter of an hour that back-ends may take.
_CONNECT_S, _READ_S = 10.0, 60.0
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
        return fsspec.core.url_to_fs(url, **{name: some for name, some in settings.items() if some})  # type: ignore[no-any-return]


def _check_package(name: str, shown: str, error: type[SteelyardError]) -> None:
    package = PROTOCOLS[name]
    if package in ("gcsfs", "adlfs"):  # none of our extras brings them
        if find_spec(package) is None:
            raise error(f"{shown}: reading {name}:// needs the package {package}: pip install {package}.")
    else:
        import_extra(package, "s3" if package == "s3fs" else "fleet", f"{shown}: reading {name}://", error)


def _settings(protocol: str) -> dict[str, Any]:
    if PROTOCOLS[protocol] == "s3fs":
        waits = {"connect_timeout": _CONNECT_S, "read_timeout": _READ_S, "retries": {"max_attempts": 2}}
        return {"config_kwargs": waits}
    if PROTOCOLS[protocol] == "aiohttp":
        import aiohttp

        return {"client_kwargs": {"timeout": aiohttp.ClientTimeout(sock_connect=_CONNECT_S, sock_read=_READ_S)}}
    return {}


@contextmanager
def told(place: object, error: type[SteelyardError]) -> Iterator[None]:
    """What goes wrong inside with a file that lies elsewhere is one sentence.

    Args:
        place: of the file.
        error: what is raised where there is no such file, or it may not be read; UnreachableError for all else.
    """
    try:
        yield
    except SteelyardError:
        raise
    except Exception as why:  # every back-end, and every library below it, has errors of its own
        raise _sentence(why, place, error) from None


def _sentence(why: BaseException, place: object, error: type[SteelyardError]) -> SteelyardError:
    chain: list[BaseException] = [why]
    while (cause := chain[-1].__cause__) is not None and len(chain) < 10:
        chain.append(cause)
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
