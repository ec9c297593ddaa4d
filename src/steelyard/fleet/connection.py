"""Connections to Dask: a cluster of this machine that others cannot enter, and schedulers that a user names.

A scheduler and its workers run whatever code they are sent, and their answers are unpacked with pickle. So the local
cluster speaks TLS with a certificate that is made for one run and never leaves its processes, and a scheduler elsewhere
must speak TLS, too, unless the user says in so many words that its network is to be trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steelyard.errors import SteelyardError, shortened
from steelyard.ground.extras import import_extra

# Memory of a worker of the local cluster. Dask ends a worker that takes more, and another one repeats its work.
MEMORY_LIMIT = "1GiB"
# Attempts of workers on one item before Dask gives it up.
DEATHS = 3
# The dashboard of the local cluster: pages to read, and no route that forwards requests to other servers.
_ROUTES = ("prometheus", "info", "json")
_NEEDS = "Working on several cores or machines (steelyard[fleet]; --workers 0 does without)"
_TLS_DOCS = "distributed.comm.tls.ca-file, .client.cert and .client.key"
_PAGE = re.compile(r"https?://[!-~]{1,200}")


class EngineError(SteelyardError):
    """The scheduler or its workers are gone, or cannot do the work; the items are not to blame."""


def import_distributed() -> Any:
    """The module `distributed`, or an error that says which extra brings it."""
    return import_extra("distributed", "fleet", _NEEDS)


def make_local_cluster(workers: int) -> Any:
    """A cluster of this machine: TLS on loopback, with a certificate of its own.

    Args:
        workers: number of processes, one thread each.
    """
    import dask

    distributed = import_distributed()
    import_extra("cryptography", "fleet", _NEEDS)
    routes = [f"distributed.http.scheduler.{name}" for name in _ROUTES]
    routes += ["distributed.http.health", "distributed.http.statics"]
    with dask.config.set({
        "distributed.scheduler.http.routes": routes,
        # No origin but the dashboard itself may open its web socket; Dask's default is every page of the browser.
        "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin": [],
    }):  # fmt: skip
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=MEMORY_LIMIT, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL, protocol="tls://",
            security=distributed.Security.temporary(),
        )  # fmt: skip


def check_address(address: str, insecure: bool) -> None:
    """Refuse a scheduler without TLS that the user did not call trustworthy.

    Args:
        address: of the scheduler.
        insecure: the user accepts a connection that is neither encrypted nor authenticated.
    """
    if not address.startswith("tls://") and not insecure:
        raise EngineError(
            f"--scheduler {shortened(address, 200)}: this connection is neither encrypted nor authenticated, and a "
            "scheduler can run code as you; use tls://HOST:PORT, or add --insecure-scheduler if you trust every "
            "computer of that network."
        )


def scheduler_security(address: str) -> Any:
    """The certificates for a scheduler at `address`, from Dask's own configuration; None without TLS."""
    if not address.startswith("tls://"):
        return None
    try:
        security = import_distributed().Security()
        if security.get_connection_args("client")["ssl_context"] is not None:
            return security
        missing = "are not configured"
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        missing = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise EngineError(
        f"{shortened(address, 200)}: the certificates for TLS {missing}; set {_TLS_DOCS} in Dask's configuration "
        "(~/.config/dask, or DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on)."
    )


def connect_client(address: str, security: Any, timeout_s: float) -> Any:
    """A client of the scheduler at `address`; `EngineError` where there is none that answers as one.

    Args:
        address: of the scheduler.
        security: certificates, or None.
        timeout_s: longest wait for an answer, s.
    """
    distributed = import_distributed()
    shown = shortened(address, 200)
    try:
        # A client that fails half-way leaves threads and messages behind: so a plain connection tries first.
        _run_elsewhere(lambda: _ask_identity(address, security, timeout_s))
        return _client_class(distributed)(address, security=security, timeout=timeout_s, set_as_default=False)
    except (NonsenseError, AssertionError, AttributeError, LookupError, MemoryError, TypeError) as error:
        raise EngineError(f"{shown}: {_nonsense(error)}") from None
    except distributed.comm.core.CommClosedError:
        raise EngineError(
            f"{shown}: the connection was closed before a scheduler answered; check the address, whether it is tls:// "
            "or tcp://, and the certificates."
        ) from None
    except (OSError, TimeoutError) as error:
        if "IOStream" in str(error):
            raise EngineError(f"{shown}: {_nonsense(error)}") from None
        raise EngineError(
            f"{shown}: no scheduler answers there; start one (dask scheduler), or leave --scheduler out."
        ) from None
    except Exception as error:  # whatever bytes of a stranger lead to, in any of the libraries below
        if isinstance(error, ValueError) and "address" in str(error):
            raise EngineError(f"{shown}: is not the address of a scheduler; write tls://HOST:PORT.") from None
        raise EngineError(f"{shown}: {_nonsense(error)}") from None


def connect_local(cluster: Any, timeout_s: float) -> Any:
    """A client of a local `cluster`, which must answer within `timeout_s` seconds."""
    return _client_class(import_distributed())(cluster, timeout=timeout_s, set_as_default=False)


def worker_cores(client: Any, timeout_s: float) -> dict[str, int]:
    """The number of threads of each worker, by its address.

    Args:
        client: a client of Dask.
        timeout_s: longest wait for the scheduler's answer, s.
    """
    answer = client.ncores(callback_timeout=timeout_s)
    sound = isinstance(answer, dict) and all(isinstance(n, int) and 0 <= n <= 1 << 20 for n in answer.values())
    if not sound:
        raise EngineError(f"{shortened(str(client.scheduler.address), 200)}: {_nonsense(TypeError('workers'))}")
    return dict(answer)


def dashboard_page(client: Any) -> str:
    """The address of the dashboard that a `client`'s scheduler states; "" where that is none."""
    link = ""
    with contextlib.suppress(Exception):  # made of what the scheduler says of itself
        link = str(client.dashboard_link or "")
    # The local dashboard accepts its own origin under this name alone.
    link = link.replace("://127.0.0.1:", "://localhost:", 1)
    return link if _PAGE.fullmatch(link) else ""


class NonsenseError(SteelyardError):
    """An answer that no scheduler gives."""


def check_identity(answer: Any) -> None:
    """Refuse (`NonsenseError`) an `answer` to the question for its identity that no scheduler gives."""
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise NonsenseError("it does not say that it is one")


def _nonsense(error: BaseException) -> str:
    reason = str(error) if isinstance(error, NonsenseError) else f"its answer cannot be read: {type(error).__name__}"
    return f"what answers there is not a scheduler of Dask, or one of another version ({reason}); check the address."


async def _ask_identity(address: str, security: Any, timeout_s: float) -> None:
    """Ask the scheduler at `address` for its identity, as `connect_client` has its arguments."""
    connect = import_distributed().comm.core.connect
    given = security.get_connection_args("client") if security is not None else {}
    async with asyncio.timeout(2.0 * timeout_s):
        comm = await connect(address, timeout=timeout_s, **given)
        try:
            await comm.write({"op": "identity", "n_workers": 0, "reply": True, "close": True})
            answer = await comm.read()
        finally:
            comm.abort()
    check_identity(answer)


def _run_elsewhere(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the coroutine that `make` makes in a thread: this one may have an event loop already, as in notebooks."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(make())).result()


def _client_class(distributed: Any) -> Any:
    """Dask's client, which says nothing on its way out where it never came in."""

    class QuietClient(distributed.Client):  # type: ignore[misc]
        def __del__(self) -> None:
            with contextlib.suppress(Exception):
                super().__del__()

    return QuietClient
