"""`ActuatorIdentification`: the result of `identify_actuator`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.actuators.command_log import CommandLog
from steelyard.actuators.drive_model import DriveModel
from steelyard.ground.arrays import Array
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation, json_text
from steelyard.ground.short_repr import short_repr

if TYPE_CHECKING:
    from steelyard.actuators.deliver_drive import DeliveredDrive


@short_repr
@dataclass(frozen=True)
class Inseparable:
    """Parameters that the experiment cannot separate, determined before the fit, or from two structures that fit alike.

    Args:
        parameters: Names of the parameters.
        reason: Reason, in one sentence.
        experiment: The cheapest experiment that would separate them.
        convention: Convention by which the fit resolves the ambiguity.
    """

    parameters: tuple[str, ...]
    reason: str
    experiment: str
    convention: str


@dataclass(frozen=True)
class Structure:
    """A candidate structure.

    Args:
        label: Its name, such as "M3" or "M4 + delay".
        parameters: Number of estimated parameters.
        left_out_error: Mean absolute position error [rad] on the left-out runs, mean over folds.
        standard_error: Standard error of that mean over the runs [rad].
        chosen: True for the structure of the result.
    """

    label: str
    parameters: int
    left_out_error: float
    standard_error: float
    chosen: bool = False


@dataclass(frozen=True)
class RunError:
    """The rollout of one run.

    Args:
        name: Name of the run.
        role: "fit" or "hold-out".
        error: Mean absolute position error [rad] of the rollout with the final model, from the first sample on.
        left_out_error: The same by a model that did not see the run's group; NaN where no group was left out.
        goal_error: Mean absolute difference of goal and position [rad], where the drive was on.
        predictable: False if the other runs cannot predict this one.
        reason: Reason if it is not predictable, in one sentence; else "".
    """

    name: str
    role: str
    error: float
    left_out_error: float = math.nan
    goal_error: float = math.nan
    predictable: bool = True
    reason: str = ""


@short_repr
@dataclass(frozen=True)
class ActuatorIdentification(OutcomeWithPage):
    """A drive identified from its command logs.

    Args:
        logs: Runs of the fit.
        model: The drive.
        runs: Errors of all rollouts.
        structures: Candidate structures, with their errors on left-out runs.
        inseparable: Parameters that the experiment cannot separate.
        rollouts: Simulated positions [rad] of each run, by its name, at the times of its log.
        holdout: Runs that the fit did not use.
        grouped_by: Property of the runs that defines the left-out groups for the choice of the structure.
        notes: Remarks, one sentence each.
        cpu_seconds: Processor time of the fit, choice of structure included.
        delivered: Files of the drive for simulators, from `for_simulators`; None: not written.
    """

    logs: tuple[CommandLog, ...]
    model: DriveModel
    runs: tuple[RunError, ...]
    structures: tuple[Structure, ...] = ()
    inseparable: tuple[Inseparable, ...] = ()
    rollouts: Mapping[str, Array] = field(default_factory=dict)
    holdout: tuple[CommandLog, ...] = ()
    grouped_by: str = ""
    notes: tuple[str, ...] = ()
    cpu_seconds: float = math.nan
    delivered: DeliveredDrive | None = None

    def for_simulators(self, **options: Any) -> ActuatorIdentification:
        """Return the result with the drive's files for simulators, with `options` of `deliver_drive`."""
        from steelyard.actuators.deliver_drive import deliver_drive

        full = (self.error("fit"), self.error("hold-out"))
        return replace(self, delivered=deliver_drive(self.model, self.logs, holdout=self.holdout, full=full, **options))

    def error(self, role: str = "fit") -> float:
        """Return the mean absolute position error [rad] over the runs of a `role`, "fit" or "hold-out"."""
        own = [(r.error, len(log)) for r in self.runs if r.role == role for log in self.all_logs if log.name == r.name]
        return float(np.average([e for e, _ in own], weights=[n for _, n in own])) if own else math.nan

    @property
    def all_logs(self) -> tuple[CommandLog, ...]:
        """All runs, those of the fit first."""
        return (*self.logs, *self.holdout)

    def to_json(self) -> dict[str, Any]:
        from steelyard.actuators.card import drive_verdict

        verdict = drive_verdict(self)
        return {
            "drive": self.model.to_json(),
            "verdict": {"grade": verdict.kind, "sentence": verdict.headline, "reasons": list(verdict.points)},
            "parameters": self.model.rows(),
            "errors_rad": {"fit": self.error("fit"), "hold-out": self.error("hold-out")},
            "runs": [vars(r) for r in self.runs],
            "structures": [vars(s) for s in self.structures],
            "inseparable": [vars(i) for i in self.inseparable],
            "grouped_by": self.grouped_by,
            "notes": list(self.notes),
            "cpu_seconds": self.cpu_seconds,
        }

    def files(self) -> Mapping[str, Content]:
        files = {} if self.delivered is None else self.delivered.files()
        return {"drive.json": json_text(self.model.to_json()), **files}

    def view(self) -> Presentation:
        from steelyard.actuators.page import actuator_report, print_actuator

        return actuator_report, print_actuator
