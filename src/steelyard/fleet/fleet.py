"""`identify_fleet`: a table of robots and their logs in, what they are and what differs between them out."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from steelyard.errors import UnknownNameError
from steelyard.fleet.gathering import FleetFactors, gather_fleet
from steelyard.fleet.store import FactorStore
from steelyard.fleet.table import Fleet, read_fleet
from steelyard.ground.outcome import Content, Outcome, json_text
from steelyard.ground.progress import Watch, watched
from steelyard.ground.reasons import explained
from steelyard.parameters.terms import TermsLike

if TYPE_CHECKING:
    from rich.console import Console

CHECKS = ("some", "all", "none")


@dataclass(frozen=True, eq=False)
class FleetOutcome(Outcome):
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
    def skipped(self) -> dict[str, str]:
        """The logs that could not be used, by where they lie, and why."""
        shown = {log.url: log.shown for log in self.factors.fleet.logs}
        return {shown[log.url]: log.skipped for log in self.factors.logs if log.factor is None}

    def to_json(self) -> dict[str, Any]:
        own = self.factors
        logs = [
            {
                "robot": log.robot, "log": log.url, "date": log.date, "temperature": log.temperature, "load": log.load,
                "samples": log.samples, "duration_s": log.duration_s, "skipped": log.skipped,
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
        document = {"schema": 1, "fleet": own.fleet.source, "models": models, "robots": robots, "logs": logs}
        return explained({**document, "run": asdict(own.tally)}, self.why_null)

    def files(self) -> dict[str, Content]:
        return {
            f"settings/{name}.json": json_text(explained(made.to_json(), _NULL_SETTINGS))
            for name, made in self.factors.settings.items()
        }

    def tell(self, out: Console, folder: str = "") -> None:
        from steelyard.fleet.page import print_fleet

        print_fleet(self, out, folder)


_NULL_SETTINGS = {"terms/*/where": "On every joint.", "preparation/*": "By the rule."}


@watched
def identify_fleet(
    fleet: Fleet | str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | FactorStore | None = None,
    workers: int | None = None,
    scheduler: str = "",
    choose_again: bool = False,
    check: str = "some",
    terms: TermsLike | None = None,
    plain: bool = False,
    progress: Watch | None = None,
) -> FleetOutcome:
    """Go through all logs of a fleet, each once, and merge what they tell by robot and by model.

    Args:
        fleet: robots, models and logs: a `Fleet`, or what `read_fleet` reads.
        store: the folder in which what logs left is kept, for this run and the next; None: in memory.
        workers: processes of this machine; 0: none but this one, without Dask; None: one for every core.
        scheduler: the address of a running scheduler of Dask, such as "tcp://host:8786", instead of these.
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
        listed, kept, workers, scheduler, choose_again=choose_again, check=check, options=options
    )  # fmt: skip
    return FleetOutcome(found)
