"""Tasks of workers: functions of plain values, which may run on any machine and repeatedly with the same result.

They write no files. Results return as bytes, so that workers need no shared disk.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.errors import SteelyardError, UnreachableError
from steelyard.fleet.log_factors import LogFactors, log_factors, merge_factors, skipped_log
from steelyard.fleet.settings import (
    MAX_CANDIDATES,
    RobotTypeSettings,
    RobotTypeStudy,
    beginning_of,
    choose_settings,
    select_similar_logs,
)
from steelyard.fleet.storage import content_identity, file_state
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.arrays import give_back_memory, worker_heap
from steelyard.ground.processes import one_thread
from steelyard.ground.remote import any_path
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping
from steelyard.signals.source import open_log

# Largest number of robot types kept ready; one takes some tens of megabytes.
_MAX_READY = 8
_ready: dict[str, RobotTypeStudy] = {}
# Largest unusable file that is hashed to recognise it later, in bytes.
_MAX_HASHED_BYTES = 1 << 30
# Number of samples between garbage collections: some hundred megabytes of garbage, and 0.1 % of the time.
_SWEEP_SAMPLES, _since_sweep = 500_000, 0


@dataclass(frozen=True)
class LogTask:
    """A log to be processed.

    Attributes:
        url: Location of the log.
        mapping: Meaning of its columns.
        settings_key: Key of the settings of its robot type.
        packed: Robot and settings, packed; a worker unpacks them once.
        identity: Hash of its content (`storage.content_identity`), if known.
        check: Logs to check in full: "all", "some" (those unlike the others) or "none".
    """

    url: str
    mapping: LogMapping
    settings_key: str
    packed: bytes
    identity: str = ""
    check: str = "some"


@dataclass(frozen=True)
class ProcessedLog:
    """Result of a log.

    Attributes:
        data: Factors as bytes.
        identity: Hash of its content; "" if it could not be read.
        state: State of the file, which changes with its content.
        reproducible: Whether the result would be the same later; not so if a server did not answer.
        skipped: Reason why it could not be used; "" if it was used.
        samples: Number of samples.
        cpu_seconds: CPU time [s].
        peak_bytes: Largest memory of the worker's process so far.
        worker: Name of the process, for tables.
    """

    data: bytes
    identity: str
    state: dict[str, Any]
    reproducible: bool
    skipped: str
    samples: int
    cpu_seconds: float
    peak_bytes: int
    worker: str


def pack_robot_type(robot: Robot, settings: RobotTypeSettings) -> bytes:
    """Pack a robot and the settings of its type for tasks.

    Args:
        robot: Robot as described.
        settings: Settings of its type.
    """
    return pickle.dumps((robot, settings))


def process_log(task: LogTask) -> ProcessedLog:
    """Compute the factors of the log of a `task`, or the reason why it cannot be used."""
    begun, name, state, reproducible = time.process_time(), task.identity, {}, True
    shown = shown_address(task.url)
    with one_thread():
        try:
            state = file_state(task.url)
            made = _factors(task)
            name = name or content_identity(task.url, state)
            if file_state(task.url) != state:
                raise UnreachableError(f"{shown}: was written to while it was read; run again when it is complete.")
        except UnreachableError as error:
            made, reproducible = skipped_log(str(error)), False
        except SteelyardError as error:
            # A remote file may be readable later; a local file that did not change stays unusable.
            made = skipped_log(_with_name(shown, error))
            reproducible = not is_url(task.url) and state == _current_state(task.url)
            # Hashing a huge file only to recognise it later takes longer than trying it again.
            if not name and reproducible and state.get("size", 1) <= _MAX_HASHED_BYTES:
                with suppress(SteelyardError, OSError):
                    name = content_identity(task.url, state)
        except OSError as error:
            made, reproducible = skipped_log(f"{shown}: cannot be read ({error.strerror or error})."), False
        except MemoryError:
            made, reproducible = skipped_log(f"{shown}: there is not enough memory for it."), False
        except Exception as error:  # a bug in this package or a library must not stop the other logs
            reason = f"{shown}: could not be processed ({type(error).__name__}: {error})."
            made, reproducible = skipped_log(reason), False
    spent = time.process_time() - begun
    _sweep(made.samples)
    return ProcessedLog(
        made.to_bytes(), name, state, reproducible, made.skipped, made.samples, spent, peak_bytes(), worker_name()
    )  # fmt: skip


def _sweep(samples: int) -> None:
    """Collect reference cycles of past logs after every `_SWEEP_SAMPLES` samples."""
    global _since_sweep
    _since_sweep += samples
    if _since_sweep > _SWEEP_SAMPLES:
        _since_sweep = 0
        give_back_memory()


def _factors(task: LogTask) -> LogFactors:
    ready = _ready_study(task)
    study = ready.study_of(open_log(any_path(task.url), ready.study.robot, task.mapping))
    needs_check = {"all": lambda _: True, "some": ready.is_unlike}.get(task.check)
    return log_factors(study, ready.beta, np.array(ready.settings.residual_std), task.check != "none", needs_check)


def _ready_study(task: LogTask) -> RobotTypeStudy:
    if task.settings_key not in _ready:
        if not _ready:
            worker_heap()
        while len(_ready) >= _MAX_READY:
            del _ready[next(iter(_ready))]
        _ready[task.settings_key] = RobotTypeStudy(*pickle.loads(task.packed))
    return _ready[task.settings_key]


@dataclass(frozen=True)
class SettingsTask:
    """Candidate logs for the choice of the settings of a robot type.

    Attributes:
        robot_type: Name of the type.
        robot: Robot as described.
        logs: Location and mapping of each log, in the order in which they are tried.
        options: Options of `identify`.
    """

    robot_type: str
    robot: Robot
    logs: tuple[tuple[str, LogMapping], ...]
    options: Mapping[str, Any]


def choose_type_settings(task: SettingsTask) -> RobotTypeSettings | str:
    """Choose settings from the first usable logs of a `task`; return the last reason if no log is usable."""
    usable: list[tuple[str, Log]] = []
    last = f"Robot type '{task.robot_type}' has no log."
    with one_thread():
        for url, mapping in task.logs:
            try:
                source = open_log(any_path(url), task.robot, mapping)
                usable.append((shown_address(url), beginning_of(source)))
            except SteelyardError as error:
                last = _with_name(shown_address(url), error)
            except Exception as error:
                last = f"{shown_address(url)}: cannot be read ({type(error).__name__}: {error})."
            if len(usable) == MAX_CANDIDATES:
                break
        try:
            similar = select_similar_logs(task.robot, usable)
            return choose_settings(task.robot_type, task.robot, similar, **task.options) if similar else last
        except SteelyardError as error:
            return f"Robot type '{task.robot_type}': {error}"
        finally:
            give_back_memory()


@dataclass(frozen=True)
class MergeTask:
    """Factors to be merged, as bytes in their order, and the key of the result."""

    key: str
    parts: tuple[bytes, ...]


def run_merge(task: MergeTask) -> bytes:
    """Merge the factors of several logs, or of earlier merges, of a `task`."""
    with one_thread():
        return merge_factors([LogFactors.from_bytes(part) for part in task.parts]).to_bytes()


def _with_name(shown: str, error: SteelyardError) -> str:
    """Put the name of a log before a message that lacks it."""
    return str(error) if shown in str(error) else f"{shown}: {error}"


def _current_state(url: str) -> dict[str, Any]:
    try:
        return file_state(url)
    except SteelyardError:
        return {}


def peak_bytes() -> int:
    """Return the largest memory of this process so far [bytes]; 0 if the system does not report it."""
    # On Linux, getrusage includes the process before it executed this program.
    with suppress(OSError, ValueError, IndexError, StopIteration), open("/proc/self/status", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmHWM:")).split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if os.uname().sysname == "Darwin" else 1024 * peak)


def worker_name() -> str:
    """Name this process by its machine and process number."""
    return f"{socket.gethostname()}:{os.getpid()}"
