"""Connections to Dask: a protected local cluster, and schedulers that the user names.

A scheduler and its workers execute any code that they receive, and unpickle answers. The local cluster therefore uses
TLS with a certificate that is made for one run and never leaves its processes. Another scheduler must use TLS as well,
unless the user explicitly trusts its network.
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

# Memory limit of a local worker. Dask ends a worker that exceeds it, and another one repeats the work.
MEMORY_LIMIT = "1GiB"
# Number of workers that may die on one item before Dask abandons it.
DEATHS = 3
# Routes of the local dashboard: pages only, no route that forwards requests to other servers.
_ROUTES = ("prometheus", "info", "json")
_NEEDS = "Working on several cores or machines (steelyard[fleet]; --workers 0 uses this process alone)"
_TLS_DOCS = "distributed.comm.tls.ca-file, .client.cert and .client.key"
_PAGE = re.compile(r"https?://[!-~]{1,200}")


class ExecutorError(SteelyardError):
    """The scheduler or its workers are lost, or cannot do the work; the items are not the cause."""


def import_distributed() -> Any:
    """Import `distributed`, or raise an error that names the extra to install."""
    return import_extra("distributed", "fleet", _NEEDS)


def make_local_cluster(workers: int) -> Any:
    """Start a local cluster that uses TLS on loopback with its own certificate.

    Args:
        workers: Number of processes, with one thread each.
    """
    import dask

    distributed = import_distributed()
    import_extra("cryptography", "fleet", _NEEDS)
    routes = [f"distributed.http.scheduler.{name}" for name in _ROUTES]
    routes += ["distributed.http.health", "distributed.http.statics"]
    with dask.config.set({
        "distributed.scheduler.http.routes": routes,
        # Only the dashboard itself may open its web socket; by default any page in the browser may.
        "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin": [],
    }):  # fmt: skip
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=MEMORY_LIMIT, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL, protocol="tls://",
            security=distributed.Security.temporary(),
        )  # fmt: skip


def check_address(address: str, insecure: bool) -> None:
    """Refuse a scheduler without TLS unless the user accepts it.

    Args:
        address: Address of the scheduler.
        insecure: Accept a connection that is neither encrypted nor authenticated.
    """
    if not address.startswith("tls://") and not insecure:
        raise ExecutorError(
            f"--scheduler {shortened(address, 200)}: this connection is neither encrypted nor authenticated, and a "
            "scheduler can run code as you; use tls://HOST:PORT, or add --insecure-scheduler if you trust every "
            "computer of that network."
        )


def scheduler_security(address: str) -> Any:
    """Return the certificates for the scheduler at `address` from Dask's configuration; None without TLS."""
    if not address.startswith("tls://"):
        return None
    try:
        security = import_distributed().Security()
        if security.get_connection_args("client")["ssl_context"] is not None:
            return security
        missing = "are not configured"
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        missing = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise ExecutorError(
        f"{shortened(address, 200)}: the certificates for TLS {missing}; set {_TLS_DOCS} in Dask's configuration "
        "(~/.config/dask, or DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on)."
    )


def connect_client(address: str, security: Any, timeout_s: float) -> Any:
    """Connect to a scheduler; `ExecutorError` if none answers at this address.

    Args:
        address: Address of the scheduler.
        security: Certificates, or None.
        timeout_s: Longest wait for an answer [s].
    """
    distributed = import_distributed()
    shown = shortened(address, 200)
    try:
        # Try a plain connection first: a client that fails half-way leaves threads and messages behind.
        _run_in_thread(lambda: _ask_identity(address, security, timeout_s))
        return _client_class(distributed)(address, security=security, timeout=timeout_s, set_as_default=False)
    except (InvalidAnswerError, AssertionError, AttributeError, LookupError, MemoryError, TypeError) as error:
        raise ExecutorError(f"{shown}: {_not_a_scheduler(error)}") from None
    except distributed.comm.core.CommClosedError:
        raise ExecutorError(
            f"{shown}: the connection was closed before a scheduler answered; check the address, whether it is tls:// "
            "or tcp://, and the certificates."
        ) from None
    except (OSError, TimeoutError) as error:
        if "IOStream" in str(error):
            raise ExecutorError(f"{shown}: {_not_a_scheduler(error)}") from None
        raise ExecutorError(
            f"{shown}: no scheduler answers there; start one (dask scheduler), or leave --scheduler out."
        ) from None
    except Exception as error:  # foreign bytes can cause any error in the libraries below
        if isinstance(error, ValueError) and "address" in str(error):
            raise ExecutorError(f"{shown}: is not the address of a scheduler; write tls://HOST:PORT.") from None
        raise ExecutorError(f"{shown}: {_not_a_scheduler(error)}") from None


def connect_local(cluster: Any, timeout_s: float) -> Any:
    """Connect to a local cluster.

    Args:
        cluster: The cluster.
        timeout_s: Longest wait for an answer [s].
    """
    return _client_class(import_distributed())(cluster, timeout=timeout_s, set_as_default=False)


def worker_cores(client: Any, timeout_s: float) -> dict[str, int]:
    """Return the number of threads of each worker, by its address.

    Args:
        client: Client of Dask.
        timeout_s: Longest wait for the scheduler's answer [s].
    """
    answer = client.ncores(callback_timeout=timeout_s)
    valid = isinstance(answer, dict) and all(isinstance(n, int) and 0 <= n <= 1 << 20 for n in answer.values())
    if not valid:
        raise ExecutorError(
            f"{shortened(str(client.scheduler.address), 200)}: {_not_a_scheduler(TypeError('workers'))}"
        )
    return dict(answer)


def dashboard_page(client: Any) -> str:
    """Return the address of the dashboard of a `client`'s scheduler; "" if it states no valid one."""
    link = ""
    with contextlib.suppress(Exception):  # an invalid answer of the scheduler raises various errors
        link = str(client.dashboard_link or "")
    # The local dashboard accepts its own origin only under this name.
    link = link.replace("://127.0.0.1:", "://localhost:", 1)
    return link if _PAGE.fullmatch(link) else ""


class InvalidAnswerError(SteelyardError):
    """The answer does not come from a scheduler."""


def check_identity(answer: Any) -> None:
    """Raise `InvalidAnswerError` unless `answer` is the identity of a scheduler."""
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise InvalidAnswerError("it does not identify itself as one")


def _not_a_scheduler(error: BaseException) -> str:
    reason = (
        str(error) if isinstance(error, InvalidAnswerError) else f"its answer cannot be read: {type(error).__name__}"
    )
    return f"the server there is not a scheduler of Dask, or has another version ({reason}); check the address."


async def _ask_identity(address: str, security: Any, timeout_s: float) -> None:
    """Ask a scheduler for its identity; arguments as of `connect_client`."""
    connect = import_distributed().comm.core.connect
    options = security.get_connection_args("client") if security is not None else {}
    async with asyncio.timeout(2.0 * timeout_s):
        comm = await connect(address, timeout=timeout_s, **options)
        try:
            await comm.write({"op": "identity", "n_workers": 0, "reply": True, "close": True})
            answer = await comm.read()
        finally:
            comm.abort()
    check_identity(answer)


def _run_in_thread(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine in another thread, because this one may have an event loop, as in notebooks."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(make())).result()


def _client_class(distributed: Any) -> Any:
    """Return a client class that reports nothing when it is deleted without having connected."""

    class QuietClient(distributed.Client):  # type: ignore[misc]
        def __del__(self) -> None:
            with contextlib.suppress(Exception):
                super().__del__()

    return QuietClient
