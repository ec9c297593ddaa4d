"""`gather_fleet`: the factors of all logs of a fleet, by model, robot and log: what is kept is taken, what is new is
made, and one bad log is listed and stops nobody."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.fleet.connection import EngineError
from steelyard.fleet.engine import Engine, GivenUpError, HereEngine, make_engine
from steelyard.fleet.mapped import FAN_IN, LogFactors, merge_factors, skipped_log
from steelyard.fleet.settings import ModelSettings, ModelStudy, content_key, drawn, robot_key
from steelyard.fleet.storage import FleetError, content_identity, how_it_lies
from steelyard.fleet.store import FactorStore
from steelyard.fleet.table import Fleet, FleetLog
from steelyard.fleet.work import (
    ChoiceTask,
    LogDone,
    LogTask,
    MergeTask,
    choose_model,
    map_log,
    merge_entries,
    packed_model,
    peak_bytes,
    worker_name,
)
from steelyard.ground.progress import part, tell_progress
from steelyard.signals.mapping import LogMapping

# Settings are chosen from logs that are tried in the order of their draw, so many at most.
_CANDIDATES = 32
# Logs of a robot that are merged by one task; a whole level of the tree, so that its shape is the same.
_BLOCK = FAN_IN**2
# Less than this, in logs and in bytes, is done here sooner than workers are started.
_FEW_LOGS, _FEW_BYTES = 64, 250_000_000
# Of merges, by the logs in them: some 3,000 a second.
_FEW_MERGED = 10_000


@dataclass
class FleetTally:
    """What a run did, for people and for tests.

    Attributes:
        mapped: logs that were gone through.
        kept: logs whose factors were in the store.
        mended: entries of the store that were torn or foreign.
        unkept: entries that could not be written.
        merged: merges of logs that were made; the others were in the store.
        samples: of the logs that were gone through.
        cpu_seconds: of processor that going through the logs took, all workers together.
        seconds: by what was done; the workers' start is not in them.
        peak_bytes: by process, the largest size that it had.
        cores: how many worked.
        engine: "dask" or "here".
        dashboard: of Dask.
        trouble: what is wrong with the store; "" where nothing is.
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
    """All that is known of a fleet's logs.

    Attributes:
        fleet: the table.
        settings: by model; of models that none could be chosen for there are none.
        logs: in the table's order, with what the table says of them; those that could not be used say why.
        robots: the factors of each robot's logs together.
        models: the same of each model.
        tally: what the run did.
    """

    fleet: Fleet
    settings: Mapping[str, ModelSettings]
    logs: tuple[LogFactors, ...]
    robots: Mapping[str, LogFactors]
    models: Mapping[str, LogFactors]
    tally: FleetTally

    @cached_property
    def studies(self) -> dict[str, ModelStudy]:
        """The physics of each model, with its base parameters."""
        return {name: ModelStudy(self.fleet.models[name].robot, own) for name, own in self.settings.items()}

    def logs_of(self, model: str) -> list[LogFactors]:
        """Those of one `model`, in order."""
        return [log for log in self.logs if self.fleet.robots[log.robot] == model]


def gather_fleet(
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
    """Map every log that is new, and merge what belongs together.

    Args:
        fleet: robots, models, logs.
        store: where factors are kept.
        workers: processes of this machine; 0: none but this one; None: one for every core, where it pays.
        scheduler: the address of a scheduler of Dask, instead.
        choose_again: choose the settings of the models anew, although there are some.
        check: "all" looks at every log as `check` does, "some" at those unlike the others, "none" at none.
        options: of `identify`, by which settings are chosen.
        insecure: accept a scheduler without TLS.
    """
    with ExitStack() as stack:
        crew = _Crew(stack, workers, scheduler, insecure)
        gathering = _Gathering(fleet, store, crew, check, dict(options or {}))
        stack.callback(store.save_identities)
        with part(0.0, 0.2):
            settings = gathering.choose(choose_again)
        with part(0.2, 0.95):
            logs = gathering.map(settings)
        with part(0.95, 1.0):
            robots, models = gathering.merge(logs)
    tally = gathering.tally
    tally.mended, tally.unkept, tally.trouble = store.tally.mended, store.tally.unkept, store.trouble
    tally.peak_bytes[f"{worker_name()} (coordinator)"] = peak_bytes()
    return FleetFactors(fleet, settings, tuple(logs), robots, models, tally)


class _Crew:
    """The engine, which is started when there is work that is worth it."""

    def __init__(self, stack: ExitStack, workers: int | None, scheduler: str, insecure: bool) -> None:
        self._stack, self._workers, self._scheduler, self._insecure = stack, workers, scheduler, insecure
        self._made: Engine | None = None
        if scheduler or insecure:  # whoever names one wants to know at once that it does not answer
            self.engine()

    def engine(self, few: bool = False) -> Engine:
        """Whoever does the work; of `few` items this process, unless others were asked for."""
        if self._made is None:
            if few and self._workers is None and not self._scheduler:
                return HereEngine()
            tell_progress("Starting the workers")
            self._made = self._stack.enter_context(make_engine(self._workers, self._scheduler, self._insecure))
        return self._made


class _Gathering:
    def __init__(self, fleet: Fleet, store: FactorStore, crew: _Crew, check: str, options: dict[str, Any]) -> None:
        self.fleet, self.store, self.crew, self.check, self.options = fleet, store, crew, check, options
        self.tally = FleetTally()
        self.keys: list[str] = [""] * len(fleet.logs)
        self._mappings: dict[int, str] = {}
        self._why: dict[str, str] = {}  # of models without settings

    # ---------------------------------------------------------------- settings

    def choose(self, again: bool) -> dict[str, ModelSettings]:
        """The settings of every model: those that are kept, or new ones."""
        begun = time.monotonic()
        found: dict[str, ModelSettings] = {}
        tasks, names = [], {}
        for name, model in self.fleet.models.items():
            # Those of the same description and options, whatever the model is called and wherever its logs lie.
            names[name] = f"settings/{content_key('choice', robot_key(model.robot), name, self.options)[:40]}.json"
            kept = None if again else self._kept(names[name])
            if kept is not None:
                found[name] = kept
                continue
            logs = [log for log in self.fleet.logs if self.fleet.robots[log.robot] == name]
            first = drawn(logs, lambda log: log.robot, _short_name, _CANDIDATES)
            tasks.append(ChoiceTask(name, model.robot, tuple((log.url, log.mapping) for log in first), self.options))
        if tasks:
            tell_progress("Choosing what logs are mapped with")
            few = len(self.fleet.logs) <= _FEW_LOGS
            for task, made in self.crew.engine(few).results(choose_model, tasks):
                if isinstance(made, ModelSettings):
                    found[task.model] = made
                    self.store.put_document(names[task.model], made.to_json())
                else:
                    self._why[task.model] = str(made)
        if not found:
            raise FleetError(f"None of the models has logs that can be used: {next(iter(self._why.values()))}")
        self.tally.seconds["settings"] = time.monotonic() - begun
        return {name: found[name] for name in self.fleet.models if name in found}

    def _kept(self, name: str) -> ModelSettings | None:
        document = self.store.document(name)
        try:
            return None if document is None else ModelSettings.from_json(document, name)
        except SteelyardError:  # torn, or of another version
            self.store.tally.mended += 1
            return None

    # ---------------------------------------------------------------- logs

    def map(self, settings: Mapping[str, ModelSettings]) -> list[LogFactors]:
        """The factors of every log, those that were skipped among them."""
        begun = time.monotonic()
        self._settings = settings
        self._packed = {name: packed_model(self.fleet.models[name].robot, own) for name, own in settings.items()}
        self._logs: list[LogFactors | None] = [None] * len(self.fleet.logs)
        todo = self._not_kept()
        self.tally.seconds["looking"] = time.monotonic() - begun
        few = len(todo) <= _FEW_LOGS and sum(size for _, _, size in todo) <= _FEW_BYTES
        if todo:
            engine = self.crew.engine(few)
            self.tally.engine = "here" if isinstance(engine, HereEngine) else "dask"
            self.tally.dashboard = engine.dashboard
            begun = time.monotonic()
            self._map(engine, [(k, task) for k, task, _ in todo])
            self.tally.cores = engine.cores
            self.tally.seconds["mapping"] = time.monotonic() - begun
        stated = [
            (factors or skipped_log("")).stated(log.robot, log.url, log.date, log.temperature, log.load)
            for factors, log in zip(self._logs, self.fleet.logs, strict=True)
        ]
        return self._without_copies(stated)

    def _not_kept(self) -> list[tuple[int, LogTask, int]]:
        """What is to be mapped: number, task and size of every log that the store does not know."""
        out = []
        for k, log in enumerate(self.fleet.logs):
            if k % 256 == 0:
                tell_progress("Looking for what is kept", 0.1 * k / len(self.fleet.logs))
            model = self.fleet.robots[log.robot]
            if model not in self._settings:
                self._logs[k] = skipped_log(self._why[model])
                continue
            try:
                lies = how_it_lies(log.url)
                size = int(lies.get("size", 0))
                name = self.store.identity(log.url, lies) or ""
                if not name and ("tag" in lies or self.store.knows_size(size)):
                    # An object is told by its keeper without being read; a file that is as long may be a known one.
                    name = content_identity(log.url, lies)
                    self.store.remember(log.url, lies, name)
            except SteelyardError as error:
                self._logs[k] = skipped_log(str(error))
                continue
            if name:
                self.keys[k] = self._key(log, name)
                self._logs[k] = self.store.get(self.keys[k])
            if self._logs[k] is None:
                own = self._settings[model]
                out.append((k, LogTask(log.url, log.mapping, own.key, self._packed[model], name, self.check), size))
            else:
                self.tally.kept += 1
        return out

    def _key(self, log: FleetLog, name: str) -> str:
        own = self._settings[self.fleet.robots[log.robot]]
        mapping: LogMapping = log.mapping
        if id(mapping) not in self._mappings:  # many logs share one, which the table holds
            said = {field: value for field, value in vars(mapping).items() if field != "source"}
            self._mappings[id(mapping)] = content_key("mapping", said)
        by_file = _short_name(log) if isinstance(mapping.window, Mapping) else ""
        return content_key("log", name, self._mappings[id(mapping)], by_file, own.key, self.check)

    def _map(self, engine: Engine, todo: Sequence[tuple[int, LogTask]]) -> None:
        begun, total = time.monotonic(), len(todo)
        numbers = {task.url: k for k, task in todo}
        done = 0
        try:
            for task, made in engine.results(map_log, (task for _, task in todo)):
                k, done = numbers[task.url], done + 1
                if isinstance(made, GivenUpError):
                    self._logs[k] = skipped_log(f"{self.fleet.logs[k].shown}: {made}")
                else:
                    self._take(k, made)
                pace = self.tally.samples / max(time.monotonic() - begun, 1e-9)
                said = f"{done:,} of {total:,} logs, {pace:,.0f} samples/s {engine.dashboard}".rstrip()
                tell_progress("Mapping the logs", 0.1 + 0.9 * done / total, said)
        except EngineError as error:
            kept = f"; {done} of {total} logs are done and kept" if self.store.root is not None else ""
            raise FleetError(f"{str(error).rstrip('.')}{kept}.") from None

    def _take(self, k: int, made: LogDone) -> None:
        log = self.fleet.logs[k]
        if made.identity:
            self.keys[k] = self._key(log, made.identity)
            if made.lasting:
                self.store.put(self.keys[k], made.data)
                self.store.remember(log.url, made.place, made.identity)
        self._logs[k] = LogFactors.from_bytes(made.data)
        self.tally.mapped += 1
        self.tally.samples += made.samples
        self.tally.cpu_seconds += made.cpu_seconds
        self.tally.peak_bytes[made.worker] = max(made.peak_bytes, self.tally.peak_bytes.get(made.worker, 0))

    def _without_copies(self, logs: list[LogFactors]) -> list[LogFactors]:
        """A robot's log that is listed by two names counts once."""
        first: dict[tuple[str, str], str] = {}
        for k, log in enumerate(self.fleet.logs):
            if not self.keys[k] or logs[k].factor is None:
                continue
            known = first.setdefault((log.robot, self.keys[k]), log.shown)
            if known != log.shown:
                reason = f"{log.shown}: is the same log as {known}, which counts."
                logs[k] = skipped_log(reason).stated(log.robot, log.url, log.date, log.temperature, log.load)
        return logs

    # ---------------------------------------------------------------- together

    def merge(self, logs: Sequence[LogFactors]) -> tuple[dict[str, LogFactors], dict[str, LogFactors]]:
        """The factors of every robot and of every model."""
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
            known |= self._merged([block for own in blocks.values() for block in own if len(block) > 1], known)
            level = {robot: [_merge_key(block) for block in own] for robot, own in blocks.items()}
        none = skipped_log("None of its logs could be used.")
        robots = {robot: (known[keys[0]] if keys else none).stated(robot) for robot, keys in level.items()}
        models = {
            name: merge_factors([robots[r] for r, model in self.fleet.robots.items() if model == name])
            for name in self.fleet.models
        }
        self.tally.seconds["merging"] = time.monotonic() - begun
        return robots, models

    def _merged(self, blocks: Sequence[Sequence[str]], known: Mapping[str, LogFactors]) -> dict[str, LogFactors]:
        out: dict[str, LogFactors] = {}
        todo: list[Sequence[str]] = []
        for block in blocks:
            kept = self.store.get(_merge_key(block))
            if kept is None:
                todo.append(block)
            else:
                out[_merge_key(block)] = kept

        def parts() -> Iterator[MergeTask]:
            for block in todo:
                yield MergeTask(
                    _merge_key(block), tuple(self.store.read(key) or known[key].to_bytes() for key in block)
                )

        engine = self.crew.engine(few=sum(map(len, todo)) <= _FEW_MERGED) if todo else HereEngine()
        for done, (task, data) in enumerate(engine.results(merge_entries, parts())):
            tell_progress("Merging by robot", done / len(todo))
            if isinstance(data, GivenUpError):  # not the logs' fault: they have been mapped
                data = merge_entries(task)
            self.store.put(task.key, data)
            self.tally.merged += 1
            out[task.key] = LogFactors.from_bytes(data)
        return out


def _short_name(log: FleetLog) -> str:
    """A log by its robot and its own name: the same wherever the fleet's files are moved to."""
    return f"{log.robot}/{log.shown.rstrip('/').rpartition('/')[2]}"


def _merge_key(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else content_key("merged", FAN_IN, list(keys))
