"""`AsideProcess`: small computations for pages, in a process of their own, so that the server answers at once whatever
a file does to the code that reads it."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from steelyard.project import ProjectError
from steelyard.studio.place import StudioError, StudioFolder

# A process that has done so much is replaced, so that its memory does not grow for ever.
_TASKS = 200


class AsideProcess:
    """One process at a time, replaced when it breaks or takes too long.

    Args:
        place: the folder that it works in.
    """

    def __init__(self, place: StudioFolder) -> None:
        self.place = place
        self._pool: ProcessPoolExecutor | None = None

    async def ask(self, function: Callable[..., Any], *args: Any, seconds: float = 60.0) -> Any:
        """What `function`, of the top level of a module, returns for `args`, all plain data; its SteelyardError is
        raised here as a StudioError with the same sentence.

        Args:
            function: computes.
            args: its arguments.
            seconds: how long it may take.
        """
        self.check_project()
        pool = self._made()
        try:
            kind, found = await asyncio.wait_for(
                asyncio.get_running_loop().run_in_executor(pool, _called, str(self.place.root), function, args),
                seconds,
            )
        except BrokenProcessPool:
            self.close()
            raise StudioError("The process that read this broke down; the file may be damaged or too large.") from None
        except TimeoutError:
            self.close()
            raise StudioError(f"That took longer than {seconds:g} s and was given up.") from None
        if kind == "error":
            raise StudioError(found)
        return found

    def check_project(self) -> None:
        """Raise a StudioError if a path of the project leads out of the folder; a damaged file is the function's own
        concern."""
        with suppress(ProjectError):
            self.place.project()

    def close(self) -> None:
        """End the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        """End the process for good, and leave nothing of it in the system: its locks go when they are collected."""
        self.close()
        gc.collect()

    def _made(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, multiprocessing.get_context("spawn"), _leave_with, (os.getpid(),), max_tasks_per_child=_TASKS
            )
        return self._pool


def _leave_with(server: int) -> None:
    """See to it that this process ends when the `server` is gone, which may have been killed."""

    def watch() -> None:
        while os.getppid() == server:
            time.sleep(1.0)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _called(root: str, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    """Called in the folder `root`. Errors as sentences: exceptions of others may not travel."""
    from steelyard.errors import SteelyardError, shortened

    os.chdir(root)
    try:
        return "ok", function(*args)
    except SteelyardError as error:
        return "error", str(error)
    except OSError as error:
        return "error", f"{error.filename or 'A file'}: {error.strerror or error}."
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        # The file may be a stranger's: whatever it does to its reader, the page says so.
        words = shortened(f"{type(error).__name__}: {error}", 120)
        return "error", f"A file that this page shows is damaged, or of another version ({words}); make it anew."
    except MemoryError:
        return "error", "There is not enough memory for this."
