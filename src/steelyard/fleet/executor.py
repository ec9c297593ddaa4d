"""Executors run the work of a fleet: in this process, or on workers of Dask on this or other machines.

Work is a function of plain values and many items. Only a few items per worker are submitted ahead, so that memory stays
small. Items of a dead worker are run again on another one. After a lost scheduler the executor reconnects and submits
unfinished items again. Results arrive in the order of completion.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import queue
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from steelyard.errors import SteelyardError
from steelyard.fleet.connection import (
    DEATHS,
    ExecutorError,
    check_address,
    connect_client,
    connect_local,
    dashboard_page,
    import_distributed,
    make_local_cluster,
    scheduler_security,
    worker_cores,
)
from steelyard.ground.arrays import WORKER_HEAP

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Largest number of items of a task, and its intended duration [s]; a task costs the scheduler some milliseconds.
_TOGETHER, _TASK_S = 16, 0.5
# Number of tasks per core that are submitted ahead.
_AHEAD = 2
# Longest wait for a scheduler, for its first worker, and for a lost scheduler [s].
_CONNECT_S, _WORKERS_S, _LOST_S = 10.0, 60.0, 60.0
# Longest time that a dead local worker needs to restart [s].
_RESTART_S = 10.0
# Largest number of reconnections without any result in between.
_MAX_RECONNECTS = 5
# An interrupted command ends in one line; without this filter multiprocessing adds warnings about semaphores.
_QUIET = "ignore:resource_tracker:UserWarning"
_GUARD = "A script that starts workers must do so under: if __name__ == '__main__'."


class AbandonedItemError(SteelyardError):
    """Workers died repeatedly while they worked on this item."""


class Executor(ABC):
    """Runs functions over items; a context manager that ends what it started."""

    dashboard: str = ""

    @abstractmethod
    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | AbandonedItemError]]:
        """Yield each item with its result, in the order of completion.

        Args:
            function: Module-level function of plain values; it may be called again for an item on another machine.
            items: Items, requested one by one shortly before they are needed.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """Number of items that are processed at once."""

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class InProcessExecutor(Executor):
    """Runs everything in this process, one item after the other."""

    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | AbandonedItemError]]:
        for item in items:
            yield item, function(item)

    @property
    def cores(self) -> int:
        return 1


class DaskExecutor(Executor):
    """Runs everything on workers of Dask.

    Args:
        address: Address of a running scheduler such as "tls://host:8786"; "": a local cluster that ends with the
            context.
        workers: Number of workers of the local cluster; None: one per core that this process may use.
        insecure: Accept an address without TLS, as in `check_address`.
    """

    def __init__(self, address: str = "", workers: int | None = None, insecure: bool = False) -> None:
        self.address = address
        self.workers = workers or _own_cores()
        if address:
            check_address(address, insecure)
        self._distributed = import_distributed()
        self._client: Any = None
        self._cluster: Any = None
        self._counted_at, self._cores = 0.0, self.workers
        self._lost = 0
        self._short_since: float | None = None  # when workers began to be missing
        # The run reports failures itself, once, at its end. Large tasks are intended: factors travel with their task.
        warnings.filterwarnings("ignore", message="Sending large graph")
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def __enter__(self) -> DaskExecutor:
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._disconnect()

    def _connect(self) -> None:
        import dask

        # Workers hold no results, so a large worker that pauses or spills would never continue.
        memory = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")}
        # The environment must be set before the worker starts threads.
        heap = {f"distributed.nanny.pre-spawn-environ.MALLOC_{what}": str(x) for what, x in WORKER_HEAP.items()}
        dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, **memory, **heap})
        if not self.address and getattr(multiprocessing.current_process(), "_inheriting", False):
            raise ExecutorError(_GUARD)  # a worker runs the script that started it
        if _QUIET not in sys.warnoptions:
            sys.warnoptions.append(_QUIET)
        if self.address:
            self._client = connect_client(self.address, scheduler_security(self.address), _CONNECT_S)
        else:
            try:
                self._cluster = make_local_cluster(self.workers)
                self._client = connect_local(self._cluster, _CONNECT_S)
            except (OSError, ValueError, TypeError, TimeoutError, RuntimeError) as error:
                self._disconnect()
                raise ExecutorError(
                    f"No workers could be started on this machine ({error}); use --workers 0 (workers=0). {_GUARD}"
                ) from None
        self.dashboard = dashboard_page(self._client)
        self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        until = time.monotonic() + _WORKERS_S
        try:
            while not worker_cores(self._client, _CONNECT_S):
                if time.monotonic() > until:
                    raise ExecutorError(
                        f"{self.address}: the scheduler has no workers; start some (dask worker ADDRESS)."
                    )
                time.sleep(0.1)
        except ExecutorError:
            self._disconnect()
            raise
        except Exception as error:  # the connection is lost, or an answer cannot be unpacked
            self._disconnect()
            raise ExecutorError(
                f"{self.address or 'this machine'}: the scheduler does not list its workers "
                f"({type(error).__name__}); check its address and its version."
            ) from None

    def _disconnect(self) -> None:
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        with contextlib.suppress(Exception):  # the connection may be lost already
            if client is not None:
                client.close(timeout=5.0)
        with contextlib.suppress(Exception):
            if cluster is not None:
                cluster.close(timeout=10.0)

    @property
    def cores(self) -> int:
        if self._client is not None and time.monotonic() - self._counted_at > 5.0:  # workers come and go
            with contextlib.suppress(Exception):
                self._cores = sum(worker_cores(self._client, _CONNECT_S).values()) or self._cores
            self._counted_at = time.monotonic()
        return self._cores

    # ---------------------------------------------------------------- submitting

    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | AbandonedItemError]]:
        remaining, more, alone = iter(items), True, False
        waiting: dict[Any, list[_Item]] = {}
        suspects: list[_Item] = []  # their worker died; the cause may be another item of the same task
        ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        together, pace = 1, 0.0

        def submit(several: list[_Item]) -> None:
            future = self._client.submit(_run_all, function, several, pure=False)
            waiting[future] = several
            future.add_done_callback(ready.put)

        try:
            while True:
                while more and len(waiting) < _AHEAD * self.cores + 2:
                    several = list(islice(remaining, together))
                    more = bool(several)
                    if several:
                        submit(several)
                if not waiting and suspects:
                    alone = True
                    submit([suspects.pop(0)])
                if not waiting:
                    return
                try:
                    future = ready.get(timeout=1.0)
                except queue.Empty:
                    future = None
                known = future is not None and future in waiting  # others belong to a lost scheduler
                outcome: Any = self._outcome(future) if known else _LOST if self._is_lost() else None
                if isinstance(outcome, _LostConnection):
                    unfinished, waiting = list(waiting.values()), {}
                    self._reconnect()
                    for several in unfinished:
                        submit(several)
                if not known or isinstance(outcome, _LostConnection):
                    continue
                several = waiting.pop(future)
                future.release()
                if isinstance(outcome, AbandonedItemError):
                    if alone:
                        yield several[0], outcome
                    else:
                        suspects += several
                    continue
                self._lost = 0
                seconds, made = check_outcome(outcome, len(several), self.address or "this machine")
                pace = seconds / len(several) if pace == 0.0 else 0.8 * pace + 0.2 * seconds / len(several)
                together = max(1, min(_TOGETHER, int(_TASK_S / max(pace, 1e-6))))
                yield from zip(several, made, strict=True)
        finally:
            for future in waiting:
                with contextlib.suppress(Exception):
                    future.cancel()

    def _outcome(self, future: Any) -> Any:
        """Return the result of a future, or the way it failed."""
        try:
            return future.result(timeout=_LOST_S)
        except self._distributed.scheduler.KilledWorker:
            return AbandonedItemError("The processes that worked on it died repeatedly; it may be too large.")
        except (OSError, TimeoutError, self._distributed.client.FutureCancelledError):
            return _LOST
        except Exception as error:
            if type(error).__name__ in ("CancelledError", "CommClosedError"):
                return _LOST
            raise ExecutorError(
                f"The workers cannot do the work ({type(error).__name__}: {error}); install the version of Steelyard "
                "on them that runs here."
            ) from None

    def _is_lost(self) -> bool:
        """Whether the scheduler is lost, or lacks workers for longer than their restart takes."""
        with contextlib.suppress(Exception):
            present = len(worker_cores(self._client, _CONNECT_S)) if self._client.status == "running" else 0
            if present >= (1 if self.address else self.workers):
                self._short_since = None
                return False
        now = time.monotonic()
        self._short_since = now if self._short_since is None else self._short_since
        patience_s = _WORKERS_S if self.address else _RESTART_S
        return bool(self._client.status != "running" or now - self._short_since > patience_s)

    def _reconnect(self) -> None:
        """Connect to the scheduler again, or restart the local one."""
        self._lost, self._short_since = self._lost + 1, None
        self._disconnect()
        self._disconnect()
        until = time.monotonic() + _LOST_S
        while self._lost <= _MAX_RECONNECTS:
            try:
                self._connect()
                return
            except ExecutorError:
                if time.monotonic() > until:
                    break
                time.sleep(1.0)
        where = self.address or "this machine"
        raise ExecutorError(f"The scheduler at {where} was lost and did not come back; run again when it is available.")


def _run_all(function: Callable[[_Item], _Result], items: list[_Item]) -> tuple[float, list[_Result]]:
    """Apply the function to all items; return also the time that it took [s]."""
    begun = time.monotonic()
    made = [function(item) for item in items]
    return time.monotonic() - begun, made


def check_outcome(outcome: Any, count: int, where: str) -> tuple[float, list[Any]]:
    """Return time and results of a task if its outcome is well-formed; a scheduler may send anything.

    Args:
        outcome: The outcome.
        count: Number of items of the task.
        where: The scheduler, for the message.
    """
    if isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[0], float):
        seconds, made = outcome
        if isinstance(made, list) and len(made) == count and 0.0 <= seconds < float("inf"):
            return seconds, made
    raise ExecutorError(
        f"{where}: the workers sent an invalid result; install the version of Steelyard on them that runs here."
    )


class _LostConnection:
    """The connection was lost before a result arrived."""


_LOST = _LostConnection()


def _own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_executor(workers: int | None = None, scheduler: str = "", insecure: bool = False) -> Executor:
    """Make the executor of the options.

    Args:
        workers: Number of processes on this machine; 0: this process only; None: one per core.
        scheduler: Address of a running scheduler to use instead.
        insecure: Accept a scheduler without TLS.
    """
    if scheduler and workers is not None:
        raise SteelyardError("--scheduler uses its own workers; remove --workers.")
    if insecure and not scheduler:
        raise SteelyardError("--insecure-scheduler needs --scheduler; name one, or remove the option.")
    return DaskExecutor(scheduler, workers, insecure) if scheduler or workers != 0 else InProcessExecutor()
