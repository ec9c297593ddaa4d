"""A verdict in words, with reasons, from what an identification measured about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from steelyard.check.explained import HIGH_CONDITION
from steelyard.estimation.estimate import Result

if TYPE_CHECKING:
    from steelyard.identification.identification import Identification

Grade = Literal["good", "usable", "poor"]

# Percent of the torque's standard deviation on data that was not used. Public identifications of industrial arms
# reach 3–10 % on main axes and 5–20 % on wrists; beyond a third, most of the torque is not the model's.
GOOD, POOR = 12.0, 33.0


@dataclass(frozen=True)
class Verdict:
    """A grade, one sentence, and the reasons."""

    grade: Grade
    sentence: str
    reasons: tuple[str, ...]


NOT_JUDGED = Verdict("poor", "Nothing has been judged yet.", ())


def judge(found: Identification) -> Verdict:
    scores = found.validation or found.identification
    errors = np.array([[j.nrmse_percent for j in s.joints] for s in scores])
    names = [j.joint for j in scores[0].joints]
    worst = errors.max(axis=0)
    reasons = [_about_data(found), *_about_joints(names, worst), *_about_model(found)]
    grade: Grade = "good" if np.median(worst) <= GOOD and worst.max() <= POOR else "usable"
    if np.median(worst) > POOR:
        grade = "poor"
    if not found.validation:
        grade = "usable" if grade == "good" else grade
    sentence = {
        "good": "The model can be trusted for the motions it was judged on.",
        "usable": "The model is usable, with the reservations below.",
        "poor": "Do not use this model before the points below are mended.",
    }[grade]
    return Verdict(grade, sentence, tuple(reasons))


def _about_data(found: Identification) -> str:
    if found.validation:
        mean = np.mean([s.mean_nrmse_percent for s in found.validation])
        logs = "1 log" if len(found.validation) == 1 else f"{len(found.validation)} logs"
        return (
            f"On data that was not used ({logs}) the torque error is {mean:.1f} % of the "
            "torque's standard deviation, averaged over joints."
        )
    return "No data was kept for validation: the scores are of the data the model was fitted to, and flatter it."


def _about_joints(names: list[str], worst: np.ndarray) -> list[str]:
    return [
        f"Joint '{name}' is predicted to {error:.0f} % only: look at its friction, its torque channel and its motion."
        for name, error in zip(names, worst, strict=True)
        if error > POOR
    ]


def _about_model(found: Identification) -> list[str]:
    out = []
    if found.condition_number > HIGH_CONDITION:
        out.append(
            f"The condition number is {found.condition_number:.0f}: the motion shows some combinations a hundred times "
            "less than others. A better motion would help."
        )
    if found.settings.physical:
        out.append("All links are physically possible: positive masses and pseudo-inertias, positive friction.")
    elif not found.possible:
        out.append("The free fit is not physically possible; use it for prediction only, never for simulation.")
    if found.estimate.result is Result.BOUNDARY:
        shares = found.estimate.details.get("boundary", {})
        worst = f" ({', '.join(shares)}; at most {max(shares.values()) ** 0.5:.1f} σ beyond it)" if shares else ""
        rise = found.estimate.details.get("cost_rise_percent", 0.0)
        out.append(
            f"The free fit lies outside of what is physically possible{worst}; the model that is possible fits "
            f"{rise:.1g} % worse."
        )
    if found.estimate.result is Result.NOT_CONVERGED:
        out.append("The estimator stopped before it converged.")
    small = np.abs(found.estimate.beta) < 2.0 * found.estimate.standard_errors
    if small.any():
        out.append(f"{int(small.sum())} of {found.base.rank} base parameters cannot be told from zero by this motion.")
    return out
