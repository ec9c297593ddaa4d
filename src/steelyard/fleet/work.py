"""What a worker does: functions of plain values alone, which may run anywhere and again, and always give the same.

Nothing is written here. Whoever asked gets bytes back and keeps them, so that workers need no disk in common.
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
from steelyard.fleet.mapped import LogFactors, log_factors, merge_factors, skipped_log
from steelyard.fleet.settings import TRIED, ModelSettings, ModelStudy, alike_logs, beginning_of, choose_settings
from steelyard.fleet.storage import content_identity, how_it_lies
from steelyard.ground.addresses import is_url, shown_address
from steelyard.ground.arrays import give_back_memory, worker_heap
from steelyard.ground.processes import one_thread
from steelyard.ground.remote import any_path
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.signals.mapping import LogMapping
from steelyard.signals.source import open_log

# The physics of so many models is kept ready; one takes some tens of megabytes.
_MODELS = 8
_ready: dict[str, ModelStudy] = {}
# Bytes: a file that cannot be used is hashed up to this size, and remembered.
_HASHED_UNREAD = 1 << 30
# Samples between two sweeps: some hundred megabytes of leavings, and a thousandth of the time.
_BETWEEN_SWEEPS, _since_swept = 500_000, 0


@dataclass(frozen=True)
class LogTask:
    """One log to be mapped.

    Attributes:
        url: where it lies.
        mapping: what its columns mean.
        settings_key: of its model's settings.
        model: these and the robot, packed: unpacked where a worker does not have them yet.
        identity: what stands for its content (`storage.identity`), where that is known.
        check: "all" looks at the log as `check` does, "some" where it is unlike the others, "none" not at all.
    """

    url: str
    mapping: LogMapping
    settings_key: str
    model: bytes
    identity: str = ""
    check: str = "some"


@dataclass(frozen=True)
class LogDone:
    """What became of a log.

    Attributes:
        data: its factors, as bytes.
        identity: what stands for its content; "" where it could not be read.
        place: how the file lies, by which a change is told.
        lasting: whether it would come out the same tomorrow; not so where a place did not answer.
        skipped: why it could not be used; "" where it was.
        samples: of the log.
        cpu_seconds: of processor that it took.
        peak_bytes: the largest size that the worker's process had so far.
        worker: the process, for tables.
    """

    data: bytes
    identity: str
    place: dict[str, Any]
    lasting: bool
    skipped: str
    samples: int
    cpu_seconds: float
    peak_bytes: int
    worker: str


def packed_model(robot: Robot, settings: ModelSettings) -> bytes:
    """A `robot`, as described, and its `settings`, for tasks."""
    return pickle.dumps((robot, settings))


def map_log(task: LogTask) -> LogDone:
    """The factors of a log, by the settings of its model; of one that cannot be used, the reason.

    Args:
        task: which log.
    """
    begun, name, place, lasting = time.process_time(), task.identity, {}, True
    shown = shown_address(task.url)
    with one_thread():
        try:
            place = how_it_lies(task.url)
            made = _mapped(task)
            name = name or content_identity(task.url, place)
            if how_it_lies(task.url) != place:
                raise UnreachableError(f"{shown}: was written to while it was read; run again when it is whole.")
        except UnreachableError as error:
            made, lasting = skipped_log(str(error)), False
        except SteelyardError as error:
            # What lies elsewhere may be read tomorrow; a file of this machine that did not change stays what it is.
            made, lasting = skipped_log(_named(shown, error)), not is_url(task.url) and place == _place_now(task.url)
            # To read all of a huge file, only to know next time that it is no log, takes longer than to look again.
            if not name and lasting and place.get("size", 1) <= _HASHED_UNREAD:
                with suppress(SteelyardError, OSError):
                    name = content_identity(task.url, place)
        except OSError as error:
            made, lasting = skipped_log(f"{shown}: cannot be read ({error.strerror or error})."), False
        except MemoryError:
            made, lasting = skipped_log(f"{shown}: there is not enough memory for it."), False
        except Exception as error:  # a fault of ours, or of a library, on this log: the others are not to suffer
            made, lasting = skipped_log(f"{shown}: could not be mapped ({type(error).__name__}: {error})."), False
    spent = time.process_time() - begun
    _swept(made.samples)
    return LogDone(
        made.to_bytes(), name, place, lasting, made.skipped, made.samples, spent, peak_bytes(), worker_name()
    )  # fmt: skip


def _swept(samples: int) -> None:
    """After so many `samples` more: what logs leave behind, in circles that nobody has broken yet, is handed back."""
    global _since_swept
    _since_swept += samples
    if _since_swept > _BETWEEN_SWEEPS:
        _since_swept = 0
        give_back_memory()


def _mapped(task: LogTask) -> LogFactors:
    ready = _ready_model(task)
    study = ready.study_of(open_log(any_path(task.url), ready.study.robot, task.mapping))
    wanted = {"all": lambda _: True, "some": ready.is_unlike}.get(task.check)
    return log_factors(study, ready.beta, np.array(ready.settings.residual_std), task.check != "none", wanted)


def _ready_model(task: LogTask) -> ModelStudy:
    if task.settings_key not in _ready:
        if not _ready:
            worker_heap()
        while len(_ready) >= _MODELS:
            del _ready[next(iter(_ready))]
        _ready[task.settings_key] = ModelStudy(*pickle.loads(task.model))
    return _ready[task.settings_key]


@dataclass(frozen=True)
class ChoiceTask:
    """Logs from which the settings of a model are chosen.

    Attributes:
        model: its name.
        robot: as described.
        logs: location, mapping of each, in the order in which they are tried.
        options: of `identify`.
    """

    model: str
    robot: Robot
    logs: tuple[tuple[str, LogMapping], ...]
    options: Mapping[str, Any]


def choose_model(task: ChoiceTask) -> ModelSettings | str:
    """The settings that the first logs of a `task` that can be used lead to; where none can, the reason of the last."""
    usable: list[tuple[str, Log]] = []
    last = f"Model '{task.model}' has no log."
    with one_thread():
        for url, mapping in task.logs:
            try:
                source = open_log(any_path(url), task.robot, mapping)
                usable.append((shown_address(url), beginning_of(source)))
            except SteelyardError as error:
                last = _named(shown_address(url), error)
            except Exception as error:
                last = f"{shown_address(url)}: cannot be read ({type(error).__name__}: {error})."
            if len(usable) == TRIED:
                break
        try:
            fit = alike_logs(task.robot, usable)
            return choose_settings(task.model, task.robot, fit, **task.options) if fit else last
        except SteelyardError as error:
            return f"Model '{task.model}': {error}"
        finally:
            give_back_memory()


@dataclass(frozen=True)
class MergeTask:
    """Factors to be merged, as bytes, in their order; and the `key` of what comes of it."""

    key: str
    parts: tuple[bytes, ...]


def merge_entries(task: MergeTask) -> bytes:
    """The factors of several logs, or of several merged before (the parts of `task`), as one."""
    with one_thread():
        return merge_factors([LogFactors.from_bytes(part) for part in task.parts]).to_bytes()


def _named(shown: str, error: SteelyardError) -> str:
    """What is wrong with a log, with its name."""
    return str(error) if shown in str(error) else f"{shown}: {error}"


def _place_now(url: str) -> dict[str, Any]:
    try:
        return how_it_lies(url)
    except SteelyardError:
        return {}


def peak_bytes() -> int:
    """The largest size that this process had in memory so far; 0 where the system does not tell."""
    # Linux counts what a process was before it became this program, in getrusage, but not here.
    with suppress(OSError, ValueError, IndexError, StopIteration), open("/proc/self/status", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith("VmHWM:")).split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if os.uname().sysname == "Darwin" else 1024 * peak)


def worker_name() -> str:
    """This process, by its machine and number."""
    return f"{socket.gethostname()}:{os.getpid()}"
