"""`HelperProcess`: runs small computations for pages in a child process.

The server stays responsive and survives even if a damaged file hangs or crashes its reader.
"""

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
from steelyard.studio.studio_folder import StudioError, StudioFolder

# Calls after which the process is replaced, so that its memory cannot grow without bound. `max_tasks_per_child` is not
# used: up to Python 3.15 a pool whose process has reached it may never start the next one (python/cpython#115634).
_MOST_CALLS = 200


class HelperProcess:
    """One child process, replaced when it crashes or takes too long.

    Args:
        folder: Its working folder.
    """

    def __init__(self, folder: StudioFolder) -> None:
        self.folder = folder
        self._pool: ProcessPoolExecutor | None = None
        self._calls = 0  # of the present process

    async def ask(self, function: Callable[..., Any], *args: Any, seconds: float = 60.0) -> Any:
        """Call a function in the helper process and return its result.

        Args:
            function: A module-level function.
            args: Its arguments, plain data.
            seconds: Time limit [s].

        Raises:
            StudioError: With the message of the function's SteelyardError, or if the process crashed or timed out.
        """
        self.check_project()
        pool = self._executor()
        try:
            kind, result = await asyncio.wait_for(
                asyncio.get_running_loop().run_in_executor(pool, _call, str(self.folder.root), function, args),
                seconds,
            )
        except BrokenProcessPool:
            self.close()
            raise StudioError("The process that read this crashed; the file may be damaged or too large.") from None
        except TimeoutError:
            self.close()
            raise StudioError(f"This took longer than {seconds:g} s and was stopped. Reload the page.") from None
        if kind == "error":
            raise StudioError(result)
        return result

    def check_project(self) -> None:
        """Raise a StudioError if a path of the project leads out of the folder.

        A damaged project file passes; the called function reports it.
        """
        with suppress(ProjectError):
            self.folder.project()

    def close(self) -> None:
        """End the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        """End the process for good and release its semaphores, which takes a garbage collection."""
        self.close()
        gc.collect()

    def _executor(self) -> ProcessPoolExecutor:
        if self._pool is not None and self._calls >= _MOST_CALLS:
            self._pool.shutdown(wait=False)  # calls that still wait for this process are answered first
            self._pool = None
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _exit_with, (os.getpid(),))
            self._calls = 0
        self._calls += 1
        return self._pool


def _exit_with(server: int) -> None:
    """Exit this process when the `server` process is gone, even if it was killed."""

    def watch() -> None:
        while os.getppid() == server:
            time.sleep(1.0)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _call(root: str, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    """Call a function in the folder `root`; errors return as text, since foreign exceptions may not pickle."""
    from steelyard.errors import SteelyardError, shortened

    os.chdir(root)
    try:
        return "ok", function(*args)
    except SteelyardError as error:
        return "error", str(error)
    except OSError as error:
        return "error", f"{error.filename or 'A file'}: {error.strerror or error}."
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        # Files may come from strangers, so any error of a reader becomes a message on the page.
        words = shortened(f"{type(error).__name__}: {error}", 120)
        return "error", f"A file of this page is damaged or from another version ({words}); create it again."
    except MemoryError:
        return "error", "Not enough memory. Close other programs or use a smaller file."
