"""`run_fleet`: computes the factors of all logs, robots and robot types of a fleet; known factors come from the store.

A log that cannot be used is listed with a reason, and the run continues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.fleet.connection import ExecutorError
from steelyard.fleet.executor import AbandonedItemError, Executor, InProcessExecutor, make_executor
from steelyard.fleet.log_factors import FAN_IN, LogFactors, merge_factors, skipped_log
from steelyard.fleet.robot_table import Fleet, FleetLog
from steelyard.fleet.settings import RobotTypeSettings, RobotTypeStudy, content_key, draw_logs, robot_key
from steelyard.fleet.storage import FleetError, content_identity, file_state
from steelyard.fleet.store import FactorStore
from steelyard.fleet.worker_tasks import (
    LogTask,
    MergeTask,
    ProcessedLog,
    SettingsTask,
    choose_type_settings,
    pack_robot_type,
    peak_bytes,
    process_log,
    run_merge,
    worker_name,
)
from steelyard.ground.progress import part, report_progress
from steelyard.signals.mapping import LogMapping

# Largest number of logs that settings are chosen from, tried in the order of their draw.
_CANDIDATES = 32
# Number of logs of a robot that one task merges: a whole level of the tree, so that its shape stays the same.
_BLOCK = FAN_IN**2
# Up to this number of logs and bytes this process is faster than starting workers.
_FEW_LOGS, _FEW_BYTES = 64, 250_000_000
# The same for merges, by the number of their logs; some 3,000 are merged per second.
_FEW_MERGED = 10_000


@dataclass
class FleetTally:
    """Statistics of a run.

    Attributes:
        mapped: Number of logs that were processed.
        kept: Number of logs whose factors were in the store.
        mended: Number of entries of the store that were damaged or foreign.
        unkept: Number of entries that could not be written.
        merged: Number of merges that were computed; the others were in the store.
        samples: Number of samples in the processed logs.
        cpu_seconds: CPU time of processing logs, all workers together [s].
        seconds: Duration of each step [s], without the start of the workers.
        peak_bytes: Largest memory of each process.
        cores: Number of cores that worked.
        engine: "dask" or "here" (this process).
        dashboard: Address of Dask's dashboard.
        trouble: Problem with the store; "" without one.
    """

    mapped: int = 0
    kept: int = 0
    mended: int = 0
    unkept: int = 0
    merged: int = 0
    samples: int = 0
    cpu_seconds: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    cores: int = 1
    engine: str = "here"
    dashboard: str = ""
    trouble: str = ""


@dataclass(frozen=True, eq=False)
class FleetFactors:
    """Factors of a fleet.

    Attributes:
        fleet: The fleet's table.
        settings: Settings by robot type; only types with usable logs have them.
        logs: Factors of each log in the table's order, with the table's values; of unusable ones the reason.
        robots: Factors of all logs of each robot together.
        robot_types: Factors of all logs of each robot type together.
        tally: Statistics of the run.
    """

    fleet: Fleet
    settings: Mapping[str, RobotTypeSettings]
    logs: tuple[LogFactors, ...]
    robots: Mapping[str, LogFactors]
    robot_types: Mapping[str, LogFactors]
    tally: FleetTally

    @cached_property
    def studies(self) -> dict[str, RobotTypeStudy]:
        """The physics of each robot type with its base parameters."""
        return {name: RobotTypeStudy(self.fleet.robot_types[name].robot, own) for name, own in self.settings.items()}

    def logs_of(self, robot_type: str) -> list[LogFactors]:
        """Return the logs of one `robot_type`, in order."""
        return [log for log in self.logs if self.fleet.robots[log.robot] == robot_type]


def run_fleet(
    fleet: Fleet,
    store: FactorStore,
    workers: int | None = None,
    scheduler: str = "",
    *,
    choose_again: bool = False,
    check: str = "some",
    options: Mapping[str, Any] | None = None,
    insecure: bool = False,
) -> FleetFactors:
    """Process every new log, and merge the factors by robot and robot type.

    Args:
        fleet: Robots, robot types and logs.
        store: Store of factors.
        workers: Number of processes on this machine; 0: this process only; None: one per core, if it is worth it.
        scheduler: Address of a Dask scheduler to use instead.
        choose_again: Choose the settings of the robot types even if the store has them.
        check: Logs to check in full: "all", "some" (those unlike the others) or "none".
        options: Options of `identify` for the choice of settings.
        insecure: Accept a scheduler without TLS.
    """
    with ExitStack() as stack:
        run = _FleetRun(fleet, store, _Workers(stack, workers, scheduler, insecure), check, dict(options or {}))
        stack.callback(store.save_identities)
        with part(0.0, 0.2):
            settings = run.choose_settings(choose_again)
        with part(0.2, 0.95):
            logs = run.process_logs(settings)
        with part(0.95, 1.0):
            robots, robot_types = run.merge(logs)
    tally = run.tally
    tally.mended, tally.unkept, tally.trouble = store.tally.mended, store.tally.unkept, store.trouble
    tally.peak_bytes[f"{worker_name()} (coordinator)"] = peak_bytes()
    return FleetFactors(fleet, settings, tuple(logs), robots, robot_types, tally)


class _Workers:
    """Starts the executor when there is enough work for it."""

    def __init__(self, stack: ExitStack, workers: int | None, scheduler: str, insecure: bool) -> None:
        self._stack, self._workers, self._scheduler, self._insecure = stack, workers, scheduler, insecure
        self._executor: Executor | None = None
        if scheduler or insecure:  # report at once that a scheduler does not answer
            self.executor()

    def executor(self, few: bool = False) -> Executor:
        """Return the executor; for `few` items this process, unless workers were requested."""
        if self._executor is None:
            if few and self._workers is None and not self._scheduler:
                return InProcessExecutor()
            report_progress("Starting the workers")
            self._executor = self._stack.enter_context(make_executor(self._workers, self._scheduler, self._insecure))
        return self._executor


class _FleetRun:
    def __init__(
        self, fleet: Fleet, store: FactorStore, workers: _Workers, check: str, options: dict[str, Any]
    ) -> None:
        self.fleet, self.store, self.workers, self.check, self.options = fleet, store, workers, check, options
        self.tally = FleetTally()
        self.keys: list[str] = [""] * len(fleet.logs)
        self._mappings: dict[int, str] = {}
        self._reasons: dict[str, str] = {}  # why robot types have no settings

    # ---------------------------------------------------------------- settings

    def choose_settings(self, again: bool) -> dict[str, RobotTypeSettings]:
        """Return the settings of every robot type, from the store or chosen now."""
        begun = time.monotonic()
        found: dict[str, RobotTypeSettings] = {}
        tasks, names = [], {}
        for name, robot_type in self.fleet.robot_types.items():
            # The key depends on the description's content, not on where it or the logs are.
            key = content_key("choice", robot_key(robot_type.robot), name, self.options)
            names[name] = f"settings/{key[:40]}.json"
            stored = None if again else self._stored_settings(names[name])
            if stored is not None:
                found[name] = stored
                continue
            logs = [log for log in self.fleet.logs if self.fleet.robots[log.robot] == name]
            chosen = draw_logs(logs, lambda log: log.robot, _short_name, _CANDIDATES)
            candidates = tuple((log.url, log.mapping) for log in chosen)
            tasks.append(SettingsTask(name, robot_type.robot, candidates, self.options))
        if tasks:
            report_progress("Choosing settings for the logs")
            few = len(self.fleet.logs) <= _FEW_LOGS
            for task, made in self.workers.executor(few).results(choose_type_settings, tasks):
                if isinstance(made, RobotTypeSettings):
                    found[task.robot_type] = made
                    self.store.put_document(names[task.robot_type], made.to_json())
                else:
                    self._reasons[task.robot_type] = str(made)
        if not found:
            raise FleetError(f"No robot type has logs that can be used: {next(iter(self._reasons.values()))}")
        self.tally.seconds["settings"] = time.monotonic() - begun
        return {name: found[name] for name in self.fleet.robot_types if name in found}

    def _stored_settings(self, name: str) -> RobotTypeSettings | None:
        document = self.store.document(name)
        try:
            return None if document is None else RobotTypeSettings.from_json(document, name)
        except SteelyardError:  # the document is incomplete, or from another version
            self.store.tally.mended += 1
            return None

    # ---------------------------------------------------------------- logs

    def process_logs(self, settings: Mapping[str, RobotTypeSettings]) -> list[LogFactors]:
        """Return the factors of every log, including skipped ones."""
        begun = time.monotonic()
        self._settings = settings
        self._packed = {
            name: pack_robot_type(self.fleet.robot_types[name].robot, own) for name, own in settings.items()
        }
        self._logs: list[LogFactors | None] = [None] * len(self.fleet.logs)
        todo = self._missing_logs()
        self.tally.seconds["looking"] = time.monotonic() - begun
        few = len(todo) <= _FEW_LOGS and sum(size for _, _, size in todo) <= _FEW_BYTES
        if todo:
            executor = self.workers.executor(few)
            self.tally.engine = "here" if isinstance(executor, InProcessExecutor) else "dask"
            self.tally.dashboard = executor.dashboard
            begun = time.monotonic()
            self._run_tasks(executor, [(k, task) for k, task, _ in todo])
            self.tally.cores = executor.cores
            self.tally.seconds["mapping"] = time.monotonic() - begun
        logs = [
            (factors or skipped_log("")).with_table_values(log.robot, log.url, log.date, log.temperature, log.load)
            for factors, log in zip(self._logs, self.fleet.logs, strict=True)
        ]
        return self._without_copies(logs)

    def _missing_logs(self) -> list[tuple[int, LogTask, int]]:
        """List number, task and size of every log whose factors the store does not have."""
        out = []
        for k, log in enumerate(self.fleet.logs):
            if k % 256 == 0:
                report_progress("Looking up known logs", 0.1 * k / len(self.fleet.logs))
            robot_type = self.fleet.robots[log.robot]
            if robot_type not in self._settings:
                self._logs[k] = skipped_log(self._reasons[robot_type])
                continue
            try:
                state = file_state(log.url)
                size = int(state.get("size", 0))
                name = self.store.identity(log.url, state) or ""
                if not name and ("tag" in state or self.store.knows_size(size)):
                    # Tagged objects are identified without reading; a file of a known size may be a known file.
                    name = content_identity(log.url, state)
                    self.store.remember(log.url, state, name)
            except SteelyardError as error:
                self._logs[k] = skipped_log(str(error))
                continue
            if name:
                self.keys[k] = self._key(log, name)
                self._logs[k] = self.store.get(self.keys[k])
            if self._logs[k] is None:
                own = self._settings[robot_type]
                out.append(
                    (k, LogTask(log.url, log.mapping, own.key, self._packed[robot_type], name, self.check), size)
                )
            else:
                self.tally.kept += 1
        return out

    def _key(self, log: FleetLog, name: str) -> str:
        own = self._settings[self.fleet.robots[log.robot]]
        mapping: LogMapping = log.mapping
        if id(mapping) not in self._mappings:  # many logs share one mapping, which the table keeps alive
            stated = {field: value for field, value in vars(mapping).items() if field != "source"}
            self._mappings[id(mapping)] = content_key("mapping", stated)
        by_file = _short_name(log) if isinstance(mapping.window, Mapping) else ""
        return content_key("log", name, self._mappings[id(mapping)], by_file, own.key, self.check)

    def _run_tasks(self, executor: Executor, todo: Sequence[tuple[int, LogTask]]) -> None:
        begun, total = time.monotonic(), len(todo)
        numbers = {task.url: k for k, task in todo}
        done = 0
        try:
            for task, made in executor.results(process_log, (task for _, task in todo)):
                k, done = numbers[task.url], done + 1
                if isinstance(made, AbandonedItemError):
                    self._logs[k] = skipped_log(f"{self.fleet.logs[k].shown}: {made}")
                else:
                    self._store_result(k, made)
                pace = self.tally.samples / max(time.monotonic() - begun, 1e-9)
                message = f"{done:,} of {total:,} logs, {pace:,.0f} samples/s {executor.dashboard}".rstrip()
                report_progress("Processing the logs", 0.1 + 0.9 * done / total, message)
        except ExecutorError as error:
            stored = f"; {done} of {total} logs are done and stored" if self.store.root is not None else ""
            raise FleetError(f"{str(error).rstrip('.')}{stored}.") from None

    def _store_result(self, k: int, result: ProcessedLog) -> None:
        log = self.fleet.logs[k]
        if result.identity:
            self.keys[k] = self._key(log, result.identity)
            if result.reproducible:
                self.store.put(self.keys[k], result.data)
                self.store.remember(log.url, result.state, result.identity)
        self._logs[k] = LogFactors.from_bytes(result.data)
        self.tally.mapped += 1
        self.tally.samples += result.samples
        self.tally.cpu_seconds += result.cpu_seconds
        self.tally.peak_bytes[result.worker] = max(result.peak_bytes, self.tally.peak_bytes.get(result.worker, 0))

    def _without_copies(self, logs: list[LogFactors]) -> list[LogFactors]:
        """Count a robot's log that is listed under two names once."""
        first: dict[tuple[str, str], str] = {}
        for k, log in enumerate(self.fleet.logs):
            if not self.keys[k] or logs[k].factor is None:
                continue
            known = first.setdefault((log.robot, self.keys[k]), log.shown)
            if known != log.shown:
                reason = f"{log.shown}: is the same log as {known}, which is used instead."
                logs[k] = skipped_log(reason).with_table_values(log.robot, log.url, log.date, log.temperature, log.load)
        return logs

    # ---------------------------------------------------------------- together

    def merge(self, logs: Sequence[LogFactors]) -> tuple[dict[str, LogFactors], dict[str, LogFactors]]:
        """Return the factors of every robot and of every robot type."""
        begun = time.monotonic()
        level: dict[str, list[str]] = {robot: [] for robot in self.fleet.robots}
        known: dict[str, LogFactors] = {}
        for k, log in enumerate(logs):
            if log.factor is not None:
                level[log.robot].append(self.keys[k])
                known[self.keys[k]] = log
        while any(len(keys) > 1 for keys in level.values()):
            blocks = {
                robot: [keys[k : k + _BLOCK] for k in range(0, len(keys), _BLOCK)] for robot, keys in level.items()
            }
            known |= self._merge_blocks([block for own in blocks.values() for block in own if len(block) > 1], known)
            level = {robot: [_merge_key(block) for block in own] for robot, own in blocks.items()}
        none = skipped_log("None of its logs could be used.")
        robots = {robot: (known[keys[0]] if keys else none).with_table_values(robot) for robot, keys in level.items()}
        robot_types = {
            name: merge_factors([robots[r] for r, robot_type in self.fleet.robots.items() if robot_type == name])
            for name in self.fleet.robot_types
        }
        self.tally.seconds["merging"] = time.monotonic() - begun
        return robots, robot_types

    def _merge_blocks(self, blocks: Sequence[Sequence[str]], known: Mapping[str, LogFactors]) -> dict[str, LogFactors]:
        out: dict[str, LogFactors] = {}
        todo: list[Sequence[str]] = []
        for block in blocks:
            stored = self.store.get(_merge_key(block))
            if stored is None:
                todo.append(block)
            else:
                out[_merge_key(block)] = stored

        def parts() -> Iterator[MergeTask]:
            for block in todo:
                yield MergeTask(
                    _merge_key(block), tuple(self.store.read(key) or known[key].to_bytes() for key in block)
                )

        executor = self.workers.executor(few=sum(map(len, todo)) <= _FEW_MERGED) if todo else InProcessExecutor()
        for done, (task, data) in enumerate(executor.results(run_merge, parts())):
            report_progress("Merging by robot", done / len(todo))
            if isinstance(data, AbandonedItemError):  # the logs are fine, since they were processed before
                data = run_merge(task)
            self.store.put(task.key, data)
            self.tally.merged += 1
            out[task.key] = LogFactors.from_bytes(data)
        return out


def _short_name(log: FleetLog) -> str:
    """Name a log by its robot and its file name, which stay the same if the fleet's files are moved."""
    return f"{log.robot}/{log.shown.rstrip('/').rpartition('/')[2]}"


def _merge_key(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else content_key("merged", FAN_IN, list(keys))
