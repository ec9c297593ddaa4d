"""`identify_fleet`: identifies all robots of a fleet from a table of robots and logs, and finds their differences."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.fleet.results import fleet_tables, table_files
from steelyard.fleet.robot_table import Fleet, read_fleet
from steelyard.fleet.robot_types import FittedRobotType, file_names, fit_robot_type, robot_type_files
from steelyard.fleet.run_fleet import FleetFactors, run_fleet
from steelyard.fleet.store import FactorStore
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, json_text
from steelyard.ground.progress import ProgressCallback, report_progress, reports_progress
from steelyard.ground.reasons import explained
from steelyard.ground.remote import is_url, shown_address
from steelyard.ground.short_repr import short_repr
from steelyard.parameters.terms import TermsLike

CHECKS = ("some", "all", "none")


@short_repr
@dataclass(frozen=True, eq=False)
class FleetOutcome(OutcomeWithPage):
    """Results of a fleet.

    Attributes:
        factors: Factors of every log, robot and robot type.
    """

    why_null: ClassVar = {
        "logs/*/date": "The fleet's table does not state it.",
        "logs/*/temperature": "The fleet's table does not state it.",
        "logs/*/load": "The fleet's table does not state it.",
        "models/*/terms/*/where": "On every joint.",
    }

    factors: FleetFactors

    @property
    def robot_types(self) -> Mapping[str, FittedRobotType]:
        """Results of each robot type, by its name; computed on first use."""
        return self._results[0]

    @property
    def failures(self) -> Mapping[str, str]:
        """Reasons why robot types have no results, by their names."""
        return self._results[1]

    @cached_property
    def _results(self) -> tuple[dict[str, FittedRobotType], dict[str, str]]:
        own, begun = self.factors, time.monotonic()
        types: dict[str, FittedRobotType] = {}
        failures = {
            name: next(log.skipped for log in own.logs_of(name))
            for name in own.fleet.robot_types
            if name not in own.settings
        }
        for name, study in own.studies.items():
            robots = [robot for robot, robot_type in own.fleet.robots.items() if robot_type == name]
            report_progress(f"Comparing the robots of '{name}'")
            try:
                doubt = study.settings.structure_std
                types[name] = fit_robot_type(name, study.study.base, own.logs_of(name), robots, structure_std=doubt)
            except SteelyardError as why:
                failures[name] = str(why)
        own.tally.seconds["comparing"] = time.monotonic() - begun
        return types, failures

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Tables of the run folder as `pyarrow` tables (`steelyard.fleet.results`)."""
        robots = self.factors.fleet.robots
        fitted = (robot for one in self.robot_types.values() for robot in one.estimates)
        files = {robot: f"models/{self._stems[robot]}.urdf" for robot in fitted}
        return fleet_tables(robots, self.factors.logs, tuple(self.robot_types.values()), files)

    @cached_property
    def _stems(self) -> dict[str, str]:
        """Names of the files of every robot, and of every robot type by its name after a slash."""
        fleet = self.factors.fleet
        stems = file_names([*fleet.robots, *fleet.robot_types])
        return dict(zip((*fleet.robots, *(f"/{name}" for name in fleet.robot_types)), stems, strict=True))

    @property
    def skipped(self) -> dict[str, str]:
        """Reasons why logs could not be used, by their locations."""
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
            name: {"key": chosen.key, "cutoff_hz": chosen.cutoff_hz, "scheme": chosen.scheme, "terms": chosen.terms,
                   "chosen_from": chosen.chosen_from}
            for name, chosen in own.settings.items()
        }  # fmt: skip
        judged = [one.judged for one in self.robot_types.values()]
        drifts = [d.sentence for one in judged for d in one.drift.drifts]
        outliers = [o.sentence for one in judged for o in one.outliers]
        document = {"schema": 1, "fleet": own.fleet.source, "models": models, "robots": robots, "logs": logs}
        document |= {"outliers": outliers, "changes": drifts, "without_models": dict(self.failures)}
        return explained({**document, "run": asdict(own.tally)}, self.why_null)

    def files(self) -> dict[str, Content]:
        out: dict[str, Content] = {
            f"settings/{name}.json": json_text(explained(chosen.to_json(), _NULL_SETTINGS))
            for name, chosen in self.factors.settings.items()
        }
        out |= table_files(self.tables)
        for name, fitted in self.robot_types.items():
            description = self.factors.fleet.robot_types[name].description
            source = Path(description) if not is_url(description) and os.path.isfile(description) else None
            out |= robot_type_files(fitted, {**self._stems, "": self._stems[f"/{name}"]}, source)
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
    """Process each log of a fleet once, merge the results by robot and robot type, and compare the robots.

    Args:
        fleet: Robots, robot types and logs: a `Fleet`, or a source for `read_fleet`.
        store: Folder that keeps the factors of logs for later runs; None: in memory only.
        workers: Number of processes on this machine; 0: this process only, without Dask; None: one per core.
        scheduler: Address of a running Dask scheduler to use instead, such as "tls://host:8786". It can run code as
            you, so name only your own.
        insecure_scheduler: Accept an address without TLS; only for a network whose computers you all trust.
        choose_again: Choose terms, filters and cut-offs of the robot types again instead of using those of the store.
        check: Logs to check in full, as `check_log` does: "all", "some" (those unlike the others) or "none".
        terms: Joint terms by name or as objects; default: the usual ones and those that a search on a few logs adds.
        plain: Use the usual terms without a search.
        progress: Callback for progress (`steelyard.ground.progress`).
    """
    if check not in CHECKS:
        raise UnknownNameError("extent of the check", check, CHECKS)
    listed = fleet if isinstance(fleet, Fleet) else read_fleet(fleet)
    factor_store = store if isinstance(store, FactorStore) else FactorStore(None if store is None else Path(store))
    factors = run_fleet(
        listed, factor_store, workers, scheduler, choose_again=choose_again, check=check,
        options={"terms": terms, "plain": plain}, insecure=insecure_scheduler,
    )  # fmt: skip
    return FleetOutcome(factors)
