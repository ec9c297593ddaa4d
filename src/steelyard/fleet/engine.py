"""Where the work of a fleet is done: in this process, or by workers of Dask, here or on other machines.

Work is a function of plain values and many items. Items are handed out a few ahead of the workers, so that neither the
scheduler nor this process ever holds many; what a worker that dies had is done again by another; a scheduler that is
lost is sought again, and all that it owed is handed out anew. Results come as they are ready: whoever joins them puts
them in order.
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
    EngineError,
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

# Items are handed out several together, up to the first, as many as take about the second, in seconds: a task costs the
# scheduler some milliseconds, whatever is done in it.
_TOGETHER, _TASK_S = 16, 0.5
# Tasks per core that wait at a worker or for one: enough that none is idle, few enough to hold.
_AHEAD = 2
# Seconds to wait for a scheduler that answers, for its first worker, and for one that was lost.
_CONNECT_S, _WORKERS_S, _LOST_S = 10.0, 60.0, 60.0
# A worker of this machine that died is back within so many seconds, or its keeper is dead, too.
_SHORT_S = 10.0
# How often a lost scheduler is sought again before anything has come back from it.
_RETURNS = 5
# Who is interrupted ends in one line; what watches over the semaphores of its workers would add some of its own.
_QUIET = "ignore:resource_tracker:UserWarning"
_GUARD = "A script that starts workers does so below: if __name__ == '__main__'."


class GivenUpError(SteelyardError):
    """An item during which workers died again and again."""


class Engine(ABC):
    """Runs functions over items; used as a context, which ends what it started."""

    dashboard: str = ""

    @abstractmethod
    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | GivenUpError]]:
        """Each item with what the function makes of it, as they are ready.

        Args:
            function: of a module, of plain values; it may be called again for an item, elsewhere.
            items: asked for one by one, a few ahead of the work.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many items are worked on at once."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class HereEngine(Engine):
    """In this process, one after the other."""

    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | GivenUpError]]:
        for item in items:
            yield item, function(item)

    @property
    def cores(self) -> int:
        return 1


class DaskEngine(Engine):
    """By workers of Dask distributed.

    Args:
        address: of a scheduler that runs, such as "tls://host:8786"; "": a cluster of this machine's cores, which goes
            away with the context.
        workers: of that cluster; None: one for every core that this process may use.
        insecure: accept an address without TLS, as `check_address` says.
    """

    def __init__(self, address: str = "", workers: int | None = None, insecure: bool = False) -> None:
        self.address = address
        self.workers = workers or _own_cores()
        if address:
            check_address(address, insecure)
        self._distributed = import_distributed()
        self._client: Any = None
        self._cluster: Any = None
        self._seen, self._cores = 0.0, self.workers
        self._lost = 0
        self._short: float | None = None  # since when workers are lacking
        # What dies and comes back is told by the run itself, once, at its end.
        # Factors to be merged travel with their task: some megabytes, which is meant.
        warnings.filterwarnings("ignore", message="Sending large graph")
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def __enter__(self) -> DaskEngine:
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _connect(self) -> None:
        import dask

        # A worker holds no results, so that one which rests, or spills, because it is large would rest for ever.
        memory = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")}
        # Threads of a worker run before its first task could say this.
        heap = {f"distributed.nanny.pre-spawn-environ.MALLOC_{what}": str(x) for what, x in WORKER_HEAP.items()}
        dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, **memory, **heap})
        if not self.address and getattr(multiprocessing.current_process(), "_inheriting", False):
            raise EngineError(_GUARD)  # a worker that runs the script which started it
        if _QUIET not in sys.warnoptions:
            sys.warnoptions.append(_QUIET)
        if self.address:
            self._client = connect_client(self.address, scheduler_security(self.address), _CONNECT_S)
        else:
            try:
                self._cluster = make_local_cluster(self.workers)
                self._client = connect_local(self._cluster, _CONNECT_S)
            except (OSError, ValueError, TypeError, TimeoutError, RuntimeError) as error:
                self._leave()
                raise EngineError(
                    f"No workers could be started on this machine ({error}); use --workers 0 (workers=0). {_GUARD}"
                ) from None
        self.dashboard = dashboard_page(self._client)
        self._wait_for_workers()

    def _wait_for_workers(self) -> None:
        until = time.monotonic() + _WORKERS_S
        try:
            while not worker_cores(self._client, _CONNECT_S):
                if time.monotonic() > until:
                    raise EngineError(
                        f"{self.address}: the scheduler has no workers; start some (dask worker ADDRESS)."
                    )
                time.sleep(0.1)
        except EngineError:
            self._leave()
            raise
        except Exception as error:  # the connection is gone, or what came over it cannot be unpacked
            self._leave()
            raise EngineError(
                f"{self.address or 'this machine'}: the scheduler does not say which workers it has "
                f"({type(error).__name__}); check its address and its version."
            ) from None

    def _leave(self) -> None:
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        with contextlib.suppress(Exception):  # it may be gone already, in any way
            if client is not None:
                client.close(timeout=5.0)
        with contextlib.suppress(Exception):
            if cluster is not None:
                cluster.close(timeout=10.0)

    @property
    def cores(self) -> int:
        if self._client is not None and time.monotonic() - self._seen > 5.0:  # workers come and go
            with contextlib.suppress(Exception):
                self._cores = sum(worker_cores(self._client, _CONNECT_S).values()) or self._cores
            self._seen = time.monotonic()
        return self._cores

    # ---------------------------------------------------------------- handing out

    def results(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item]
    ) -> Iterator[tuple[_Item, _Result | GivenUpError]]:
        coming, more, alone = iter(items), True, False
        waiting: dict[Any, list[_Item]] = {}
        suspects: list[_Item] = []  # died with their workers, or with those of an item beside them
        ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        together, pace = 1, 0.0

        def hand_out(several: list[_Item]) -> None:
            future = self._client.submit(_one_after_the_other, function, several, pure=False)
            waiting[future] = several
            future.add_done_callback(ready.put)

        try:
            while True:
                while more and len(waiting) < _AHEAD * self.cores + 2:
                    several = list(islice(coming, together))
                    more = bool(several)
                    if several:
                        hand_out(several)
                if not waiting and suspects:
                    alone = True
                    hand_out([suspects.pop(0)])
                if not waiting:
                    return
                try:
                    future = ready.get(timeout=1.0)
                except queue.Empty:
                    future = None
                known = future is not None and future in waiting  # others are of a scheduler that is gone
                outcome: Any = self._outcome(future) if known else _LOST if self._is_gone() else None
                if isinstance(outcome, _Lost):
                    owed, waiting = list(waiting.values()), {}
                    self._return()
                    for several in owed:
                        hand_out(several)
                if not known or isinstance(outcome, _Lost):
                    continue
                several = waiting.pop(future)
                future.release()
                if isinstance(outcome, GivenUpError):
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
        """What a future holds, or in what way it failed."""
        try:
            return future.result(timeout=_LOST_S)
        except self._distributed.scheduler.KilledWorker:
            return GivenUpError("The processes that worked on it died, one after the other; it may be too large.")
        except (OSError, TimeoutError, self._distributed.client.FutureCancelledError):
            return _LOST
        except Exception as error:
            if type(error).__name__ in ("CancelledError", "CommClosedError"):
                return _LOST
            raise EngineError(
                f"The workers cannot do the work ({type(error).__name__}: {error}); install the same version of "
                "Steelyard there as here."
            ) from None

    def _is_gone(self) -> bool:
        """Whether the scheduler is lost, or lacks workers for longer than they take to come back."""
        with contextlib.suppress(Exception):
            present = len(worker_cores(self._client, _CONNECT_S)) if self._client.status == "running" else 0
            if present >= (1 if self.address else self.workers):
                self._short = None
                return False
        now = time.monotonic()
        self._short = now if self._short is None else self._short
        return bool(self._client.status != "running" or now - self._short > (_WORKERS_S if self.address else _SHORT_S))

    def _return(self) -> None:
        """Find the scheduler again, or start the local one anew."""
        self._lost, self._short = self._lost + 1, None
        self._leave()
        until = time.monotonic() + _LOST_S
        while self._lost <= _RETURNS:
            try:
                self._connect()
                return
            except EngineError:
                if time.monotonic() > until:
                    break
                time.sleep(1.0)
        where = self.address or "this machine"
        raise EngineError(f"The scheduler at {where} was lost and does not come back; run it again when it is there.")


def _one_after_the_other(function: Callable[[_Item], _Result], items: list[_Item]) -> tuple[float, list[_Result]]:
    """What the function makes of some items, and the seconds that it took."""
    begun = time.monotonic()
    made = [function(item) for item in items]
    return time.monotonic() - begun, made


def check_outcome(outcome: Any, count: int, where: str) -> tuple[float, list[Any]]:
    """Seconds and results of a task, if its `outcome` has them: a scheduler may hand over anything.

    Args:
        outcome: what came back.
        count: number of items of the task.
        where: the scheduler, for the message.
    """
    if isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[0], float):
        seconds, made = outcome
        if isinstance(made, list) and len(made) == count and 0.0 <= seconds < float("inf"):
            return seconds, made
    raise EngineError(
        f"{where}: the workers do not answer what was asked; install the same version of Steelyard there as here."
    )


class _Lost:
    """Nothing came back, since the connection is gone."""


_LOST = _Lost()


def _own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_engine(workers: int | None = None, scheduler: str = "", insecure: bool = False) -> Engine:
    """The engine that was asked for.

    Args:
        workers: processes of this machine; 0: none but this one; None: one for every core.
        scheduler: the address of a scheduler that runs, instead.
        insecure: accept a scheduler without TLS.
    """
    if scheduler and workers is not None:
        raise SteelyardError("--scheduler brings its own workers; leave --workers out.")
    if insecure and not scheduler:
        raise SteelyardError("--insecure-scheduler is about --scheduler; name one, or leave it out.")
    return DaskEngine(scheduler, workers, insecure) if scheduler or workers != 0 else HereEngine()
