"""`SequentialResult`: the result of a sequential identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.estimation.sequential.identify import SequentialIdentification
from steelyard.estimation.sequential.movement import Combination, Movement
from steelyard.estimation.sequential.read_plan import SequentialPlan
from steelyard.ground.files import csv_text
from steelyard.ground.outcome import Content, OutcomeWithPage, Presentation
from steelyard.ground.reasons import explained
from steelyard.ground.short_repr import short_repr
from steelyard.regression.base_parameters import BaseParameters

_COLUMNS = ("movement", "name", "unit", "value", "own_error", "standard_error")


@short_repr
@dataclass(frozen=True, eq=False)
class SequentialResult(OutcomeWithPage):
    """A plan of movements and its identification.

    Attributes:
        plan: The plan.
        found: The identification.
    """

    plan: SequentialPlan
    found: SequentialIdentification

    @classmethod
    def of(cls, plan: SequentialPlan) -> SequentialResult:
        """Identify according to a `plan`."""
        return cls(plan, plan.identify())

    def found_by(self, k: int) -> list[dict[str, Any]]:
        """Return the results of movement `k`: values, errors from its own noise, and total standard errors."""
        step, movement = self.found.steps[k], self.plan.movements[k]
        return [
            dict(zip(_COLUMNS, (step.movement, name, _unit(self.found.base, movement, name), *numbers), strict=True))
            for name, *numbers in zip(
                step.names, *(x.tolist() for x in (step.values, step.own_errors, step.standard_errors)), strict=True
            )
        ]

    def has_possible_sign(self, row: Mapping[str, Any]) -> bool:
        """Whether the value of a `row` is possible; a friction with the wrong sign is not."""
        base = self.found.base
        least = dict(zip(base.names, base.least_values.tolist(), strict=True))
        return bool(row["value"] is None or row["value"] >= least.get(row["name"], -np.inf))

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Results of all movements in order."""
        return [row for k in range(len(self.found.steps)) for row in self.found_by(k)]

    @cached_property
    def base_rows(self) -> list[dict[str, Any]]:
        """Base parameters from all movements together; None if not identifiable."""
        found = self.found
        return [
            {
                "name": name,
                "unit": unit,
                "value": float(value) if np.isfinite(value) else None,
                "standard_error": float(error) if np.isfinite(value) else None,
                "neglected": name in found.neglected,
                "impossible_sign": bool(impossible),
            }
            for name, unit, value, error, impossible in zip(
                found.base.names,
                found.base.units,
                found.beta,
                found.standard_errors,
                found.base.impossible_signs(found.beta),
                strict=True,
            )
        ]

    def to_json(self) -> dict[str, Any]:
        found, plan = self.found, self.plan
        return explained(
            {
                "robot": plan.base.robot.name,
                "scheme": plan.scheme,
                "estimator": plan.estimator,
                "movements": [
                    {
                        "name": step.movement,
                        "moves": list(movement.moves),
                        "rows": step.rows,
                        "residual_std": step.residual_std.tolist(),
                        "known": list(step.known),
                        "found": [{key: row[key] for key in _COLUMNS[1:]} for row in self.found_by(k)],
                    }
                    for k, (step, movement) in enumerate(zip(found.steps, plan.movements, strict=True))
                ],
                "base_parameters": {"count": found.base.rank, "list": self.base_rows},
                "undetermined": list(found.undetermined),
                "neglected": list(found.neglected),
            },
            dict.fromkeys(
                (f"base_parameters/list/*/{key}" for key in ("value", "standard_error")),
                "It is not identifiable from the movements.",
            ),
        )

    def files(self) -> dict[str, Content]:
        return {"found.csv": csv_text([_COLUMNS, *(row.values() for row in self.rows)])}

    def view(self) -> Presentation:
        from steelyard.estimation.sequential._sequential_page import print_sequential, sequential_report

        return sequential_report, print_sequential


def _unit(base: BaseParameters, movement: Movement, name: str) -> str:
    """The unit of a movement's parameter: that of the parameters with coefficient ±1 in its sum."""
    units = {p.name: p.unit for p in base.parameters} | dict(zip(base.names, base.units, strict=True))
    combination: Combination = movement.combinations[name]
    if isinstance(combination, str):
        return units.get(combination, "")
    candidates = {units[p] for p, coefficient in combination.items() if abs(coefficient) == 1.0 and p in units}
    return candidates.pop() if len(candidates) == 1 else ""
