"""`identify_fleet`: a table of robots and their logs in, what they are and what differs between them out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.fleet.gathering import FleetFactors, gather_fleet
from steelyard.fleet.models import FoundModel, file_names, find_model, model_files
from steelyard.fleet.results import fleet_tables, table_files
from steelyard.fleet.store import FactorStore
from steelyard.fleet.table import Fleet, read_fleet
from steelyard.ground.outcome import Content, Presentation, Viewed, json_text
from steelyard.ground.progress import ProgressCallback, reports_progress, tell_progress
from steelyard.ground.reasons import explained
from steelyard.ground.remote import is_url, shown_address
from steelyard.parameters.terms import TermsLike

CHECKS = ("some", "all", "none")


@dataclass(frozen=True, eq=False)
class FleetOutcome(Viewed):
    """What a fleet's logs told.

    Attributes:
        factors: of every log, robot and model.
    """

    why_null: ClassVar = {
        "logs/*/date": "Nobody says when it was logged.",
        "logs/*/temperature": "Nobody says.",
        "logs/*/load": "Nobody says.",
        "models/*/terms/*/where": "On every joint.",
    }

    factors: FleetFactors

    @property
    def models(self) -> Mapping[str, FoundModel]:
        """What follows of each model's robots, by the model's name; worked out when it is first asked for."""
        return self._found[0]

    @property
    def silent(self) -> Mapping[str, str]:
        """Models of which nothing can be said, and why."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[dict[str, FoundModel], dict[str, str]]:
        own, begun = self.factors, time.monotonic()
        models: dict[str, FoundModel] = {}
        silent = {
            name: next(log.skipped for log in own.logs_of(name))
            for name in own.fleet.models
            if name not in own.settings
        }
        for name, study in own.studies.items():
            robots = [robot for robot, model in own.fleet.robots.items() if model == name]
            tell_progress(f"Comparing the robots of '{name}'")
            try:
                doubt = study.settings.structure_std
                models[name] = find_model(name, study.study.base, own.logs_of(name), robots, structure_std=doubt)
            except SteelyardError as why:
                silent[name] = str(why)
        own.tally.seconds["comparing"] = time.monotonic() - begun
        return models, silent

    @cached_property
    def tables(self) -> dict[str, Any]:
        """The tables of the run folder, as those of `pyarrow` (`steelyard.fleet.results`)."""
        robots = self.factors.fleet.robots
        made = (robot for model in self.models.values() for robot in model.estimates)
        files = {robot: f"models/{self._called[robot]}.urdf" for robot in made}
        return fleet_tables(robots, self.factors.logs, tuple(self.models.values()), files)

    @cached_property
    def _called(self) -> dict[str, str]:
        """What the files of every robot are called, and of every model, by its name after a slash."""
        fleet = self.factors.fleet
        stems = file_names([*fleet.robots, *fleet.models])
        return dict(zip((*fleet.robots, *(f"/{name}" for name in fleet.models)), stems, strict=True))

    @property
    def skipped(self) -> dict[str, str]:
        """The logs that could not be used, by where they lie, and why."""
        shown = {log.url: log.shown for log in self.factors.fleet.logs}
        return {shown[log.url]: log.skipped for log in self.factors.logs if log.factor is None}

    def to_json(self) -> dict[str, Any]:
        own = self.factors
        logs = [
            {
                "robot": log.robot, "log": shown_address(log.url), "date": log.date, "temperature": log.temperature,
                "load": log.load, "samples": log.samples, "duration_s": log.duration_s, "skipped": log.skipped,
                "residual_std": dict(zip((e.name for e in log.equations), log.residual_std.tolist(), strict=True)),
                "findings": len(log.findings),
            }
            for log in own.logs
        ]  # fmt: skip
        robots = [
            {"robot": robot, "model": own.fleet.robots[robot], "logs": factors.logs if factors.factor else 0,
             "samples": factors.samples, "duration_s": factors.duration_s}
            for robot, factors in own.robots.items()
        ]  # fmt: skip
        models = {
            name: {"key": made.key, "cutoff_hz": made.cutoff_hz, "scheme": made.scheme, "terms": made.terms,
                   "chosen_from": made.chosen_from}
            for name, made in own.settings.items()
        }  # fmt: skip
        judged = [model.judged for model in self.models.values()]
        drifts = [d.sentence for one in judged for d in one.drift.drifts]
        outliers = [o.sentence for one in judged for o in one.outliers]
        document = {"schema": 1, "fleet": own.fleet.source, "models": models, "robots": robots, "logs": logs}
        document |= {"outliers": outliers, "changes": drifts, "without_models": dict(self.silent)}
        return explained({**document, "run": asdict(own.tally)}, self.why_null)

    def files(self) -> dict[str, Content]:
        out: dict[str, Content] = {
            f"settings/{name}.json": json_text(explained(made.to_json(), _NULL_SETTINGS))
            for name, made in self.factors.settings.items()
        }
        out |= table_files(self.tables)
        for name, model in self.models.items():
            described = self.factors.fleet.models[name].description
            source = Path(described) if not is_url(described) and os.path.isfile(described) else None
            out |= model_files(model, {**self._called, "": self._called[f"/{name}"]}, source)
        return out

    def view(self) -> Presentation:
        from steelyard.fleet.page import fleet_report, print_fleet

        return fleet_report, print_fleet


_NULL_SETTINGS = {"terms/*/where": "On every joint.", "preparation/*": "By the rule."}


@reports_progress
def identify_fleet(
    fleet: Fleet | str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | FactorStore | None = None,
    workers: int | None = None,
    scheduler: str = "",
    insecure_scheduler: bool = False,
    choose_again: bool = False,
    check: str = "some",
    terms: TermsLike | None = None,
    plain: bool = False,
    progress: ProgressCallback | None = None,
) -> FleetOutcome:
    """Go through all logs of a fleet, each once, and merge what they tell by robot and by model.

    Args:
        fleet: robots, models and logs: a `Fleet`, or what `read_fleet` reads.
        store: the folder in which what logs left is kept, for this run and the next; None: in memory.
        workers: processes of this machine; 0: none but this one, without Dask; None: one for every core.
        scheduler: the address of a running scheduler of Dask, such as "tls://host:8786", instead of these. It can run
            code as you: name your own alone.
        insecure_scheduler: accept an address without TLS, where every computer of that network is to be trusted.
        choose_again: choose the terms, filters and cut-offs of the models anew; else those of the store stand.
        check: "all" looks at every log as `check_log` does, "some" at those that are unlike the others, "none" at none.
        terms: joint terms by name or as objects; default: a search on a few logs of each model adds to the usual ones.
        plain: take the usual terms as they are, without a search.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
    """
    if check not in CHECKS:
        raise UnknownNameError("extent of the check", check, CHECKS)
    listed = fleet if isinstance(fleet, Fleet) else read_fleet(fleet)
    kept = store if isinstance(store, FactorStore) else FactorStore(None if store is None else Path(store))
    options = {"terms": terms, "plain": plain}
    found = gather_fleet(
        listed, kept, workers, scheduler, choose_again=choose_again, check=check, options=options,
        insecure=insecure_scheduler,
    )  # fmt: skip
    return FleetOutcome(found)
