"""`DescriptionShare`: which parts of a model rest on the robot description instead of the logs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ground.numbers import number

if TYPE_CHECKING:
    from steelyard.identification.identification import Identification

# Relative error of a described inertia that the statement supposes, a convention: CAD lacks cables, screws and grease,
# and a density is often guessed. The effects scale with it.
ASSUMED_ERROR = 0.3
# A link's mass rests on the description if it follows more than half of the description's error.
_HALF = 0.5
# Limit, in standard errors and in percent of the torque, of changes that are irrelevant for any use of the model.
_NOTHING = 0.1
# Standard errors. Beyond them the number has no meaning.
_EVERYTHING = 1e3
# Number of instants for the comparison of torques.
_INSTANTS = 500


@dataclass(frozen=True)
class DescriptionShare:
    """Effect of independent relative errors of all described links on the model, to first order.

    Args:
        relative_std: Relative standard deviation of the mass and inertia of each described link.
        described: Whether the robot description states inertias; otherwise rods from joint to joint replace them.
        standard_errors: Largest change of a base parameter in stated standard errors.
        torque_percent: Change of the torque of each joint on the evaluation logs, percent of its standard deviation.
        mass_percent: Change of the mass of each link, percent of that mass.
    """

    relative_std: float
    described: bool
    standard_errors: float
    torque_percent: dict[str, float]
    mass_percent: dict[str, float]

    @property
    def links(self) -> tuple[str, ...]:
        """Links whose mass follows the description more than the logs."""
        return tuple(name for name, change in self.mass_percent.items() if change > 100.0 * _HALF * self.relative_std)

    @property
    def sentence(self) -> str:
        worst = max(self.torque_percent.values(), default=0.0)
        source = "the inertias of the description" if self.described else "the assumed inertias (rods; none described)"
        if self.standard_errors > _EVERYTHING:
            change = "base parameters change by far more than their standard errors: the logs show little of them"
        elif max(self.standard_errors, worst) > _NOTHING:
            change = (
                f"no base parameter changes by more than {number(self.standard_errors, 1)} standard errors, and the "
                f"torque on these logs by at most {number(worst, 1)} %"
            )
        else:
            change = (
                f"base parameters and torques on these logs stay the same (within {_NOTHING} standard errors and "
                f"{_NOTHING} %)"
            )
        text = f"If {source} are wrong by {100.0 * self.relative_std:.0f} %, {change}."
        if not self.links:
            return text
        if len(self.links) == len(self.mass_percent):
            return f"{text} The single link masses rest on them: the logs determine sums of links only."
        named = ", ".join(f"'{name}'" for name in self.links)
        return f"{text} The masses of these links rest on them, because the logs determine sums only: {named}."

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"links": list(self.links), "sentence": self.sentence}


def description_share(result: Identification) -> DescriptionShare | None:
    """Compute what a physically possible model takes from the description; None for other models.

    Args:
        result: Identification with its estimate and scores.
    """
    response = result.estimate.details.get("reference_response")
    scores = [s for s in result.evaluation_scores if len(s.ddq)]
    if response is None or not scores:
        return None
    base, robot = result.base, result.robot
    changes = ASSUMED_ERROR * response @ base.matrix.T
    errors = np.sqrt(np.sum(changes**2, axis=0)) / np.maximum(result.estimate.standard_errors, 1e-300)
    squares, power = np.zeros(int(np.sum(robot.torque_used))), 1e-300
    dynamics = base.structure.dynamics
    for s in scores:
        some = np.unique(np.linspace(0, len(s.q) - 1, _INSTANTS).astype(int))
        motion = (s.q[some], s.dq[some], s.ddq[some])
        past = None
        if dynamics.terms.history:
            past = dynamics.history(*motion, result.model.theta[: len(base.parameters)])
        rows = base.regressor_columns(dynamics.torque_regressor(*motion, history=past))
        rows = rows[:, np.flatnonzero(robot.torque_used)]
        squares = squares + np.mean(np.sum(np.einsum("ija,ka->kij", rows, changes) ** 2, axis=0), axis=0)
        power = power + np.var(s.measured, axis=0)
    masses = [10 * k for k in range(len(robot.links))]
    moved = ASSUMED_ERROR * np.sqrt(np.sum(response[:, masses] ** 2, axis=0))
    theta = result.estimate.theta[masses]
    torque = dict(zip((j.joint for j in scores[0].joints), (100.0 * np.sqrt(squares / power)).tolist(), strict=True))
    return DescriptionShare(
        relative_std=ASSUMED_ERROR,
        described=any(link.inertia is not None and link.inertia.any() for link in robot.links),
        standard_errors=float(errors.max(initial=0.0)),
        torque_percent=torque,
        mass_percent=dict(
            zip(robot.link_names, (100.0 * moved / np.maximum(np.abs(theta), 1e-300)).tolist(), strict=True)
        ),
    )
