"""Grades an identified model and gives the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from steelyard.assessment.score import MEANINGLESS, Score
from steelyard.assessment.torque_error import TorqueError
from steelyard.check.free_fits import HIGH_CONDITION
from steelyard.estimation.estimate import Result
from steelyard.ground.numbers import number
from steelyard.identification._assumption_check import (
    assumption_objections,
    conditions,
    harmless_refutations,
    parameter_conditions,
)
from steelyard.identification._plausibility import plausibility_objections

if TYPE_CHECKING:
    from steelyard.identification.identification import Identification
    from steelyard.signals.log import Finding

Grade = Literal["good", "usable", "poor"]

# Error on hold-out data, percent of the torque's standard deviation. Published identifications of industrial arms
# reach 3–10 % on main axes and 5–20 % on wrists. Above a third the model explains too little of the torque.
GOOD, POOR = 12.0, 33.0
# The verdict mentions a speed ratio, validation logs to fitted logs, outside of this range.
SLOW, FAST = 0.5, 1.5
GRADES: tuple[Grade, ...] = ("good", "usable", "poor")
SENTENCES = {
    "good": "The model can be trusted for motions like those of the validation logs.",
    "usable": "The model is usable with the reservations below.",
    "poor": "Do not use this model. Fix the following first:",
}
# Warnings of `check` that the fit compensates for, or that make error bars wide but not wrong.
HARMLESS = (
    "hidden", "condition", "rank", "standing", "motionless", "gap", "jitter", "duplicate", "reset", "disorder",
    "isolated", "remark", "position_limit", "velocity_limit", "torque_limit", "velocity_delay", "dead_velocity",
    "warming", "position_steps", "frozen", "collinear",
)  # fmt: skip
# Ratio of the model's error on a validation log to the cross-validation error of a fit to that log. Ten real arms show
# ratios of 1.1 to 2. Above that the parameters differ.
BEYOND_NOISE = 2.5
NEGLIGIBLE = 1.0  # percent of the torque's standard deviation
# Allowed rise [%] of the sum of squares due to the physical constraints. Our data sets with the usual terms show 0 to
# 26, and 254 for an arm whose description lacks its counterbalance.
FAR_FROM_POSSIBLE = 25.0
# Ratio of the error with known friction to the error with fitted friction, on the fitted logs. Fitted friction has more
# parameters and gains a few per cent from these alone. A ratio of two means that the friction is a different one.
KNOWN_WORSE, KNOWN_MISLEADS = 1.1, 2.0
# The verdict mentions a file if its error on a joint exceeds the full model's by this factor, which is more than the
# spread between logs of one robot, and by this many per cent of the torque's standard deviation.
FILE_WORSE, FILE_COST = 1.5, 3.0
LONG_LAG, COMMON_LAG = 0.035, 0.01  # Limits for a single joint and for most joints [s].
NO_VALIDATION_DATA = (
    "There are no validation data. The scores are for the fitted data and are therefore too optimistic. "
    "Give --validate or --holdout."
)
NO_INDEPENDENT_DATA = (
    "All validation logs are copies of fitted logs. The scores are for the fitted data and are therefore too "
    "optimistic."
)


@dataclass(frozen=True)
class Verdict:
    """A grade with its reasons.

    Attributes:
        grade: "good", "usable" or "poor".
        sentence: The grade in words.
        reasons: Why it is this grade, and what to do.
        remarks: What else is known about the model and its files. They do not change the grade.
    """

    grade: Grade
    sentence: str
    reasons: tuple[str, ...]
    remarks: tuple[str, ...] = ()


NOT_GRADED = Verdict("poor", "The model has not been graded yet.", ())


def grade_model(result: Identification) -> Verdict:
    """Grade a model: the scores set the best possible grade, and each objection limits it.

    Args:
        result: Identification with scores and checks.
    """
    error = result.torque_error
    unseen_scores = result.evaluation_scores if error.unseen else ()
    # At standstill the friction torque is undetermined, so only moving samples count.
    errors = np.array([j.moving_nrmse_percent for j in error.joints])
    names = [j.joint for j in error.joints]
    grade: Grade = "good" if np.median(errors) <= GOOD and errors.max() <= POOR else "usable"
    if np.median(errors) > POOR:
        grade = "poor"
    between = () if result.agreement is None else result.agreement.reasons
    of_logs = [*(("usable", copy.sentence) for copy in result.copies), *_check_complaints(result)]
    of_fit: list[Objection] = [
        *(("usable", text) for text in between),
        *_log_disagreements(result, unseen_scores),
        *_fit_objections(result),
        *plausibility_objections(result),
        *_friction_objections(result),
        *assumption_objections(result),
    ]
    if not unseen_scores:
        of_fit.append(("usable", NO_INDEPENDENT_DATA if result.copies else NO_VALIDATION_DATA))
    grade = max((grade, *(cap for cap, _ in (*of_logs, *of_fit))), key=GRADES.index)
    scope = [_about_data(error), *_about_speeds(result, unseen_scores)] if unseen_scores else []
    causes, effects = [text for _, text in of_logs], [text for _, text in of_fit]
    effects += _about_joints(names, errors)
    remarks = [*_about_files(result), *harmless_refutations(result), *_about_model(result)]
    remarks += parameter_conditions(result)
    if any(cap == "poor" for cap, _ in of_logs):
        # A log that cannot be identified from explains everything that is wrong with the fit.
        return Verdict(grade, SENTENCES[grade], tuple(causes), (*scope, *effects, *remarks))
    sentence = SENTENCES[grade]
    if (rests_on := conditions(result)) and grade == "poor":
        remarks.insert(0, rests_on)
    elif rests_on:
        sentence = f"{sentence} {rests_on}"
    return Verdict(grade, sentence, (*scope, *causes, *effects, *_about_fit(result)), tuple(remarks))


def _about_data(error: TorqueError) -> str:
    mean, whole = error.moving_percent, error.all_percent
    logs = "1 log" if len(error.logs) == 1 else f"{len(error.logs)} logs together"
    standing = f" in motion; {whole:.1f} % with standstill" if f"{mean:.1f}" != f"{whole:.1f}" else ""
    return (
        f"On hold-out data ({logs}) the torque error is {mean:.1f} % of the torque's standard deviation, averaged over "
        f"joints{standing}."
    )


def _about_speeds(result: Identification, unseen_scores: Sequence[Score]) -> Iterator[str]:
    """Name joints whose speed in the validation logs is far below or above that in the fitted logs."""
    both = (result.identification, unseen_scores)
    fitted, unseen = (np.max([np.quantile(np.abs(s.dq), 0.99, axis=0) for s in scores], axis=0) for scores in both)
    ratio = unseen / np.maximum(fitted, 1e-12)
    for is_far, text in ((ratio < SLOW, f"below {SLOW:g} times"), (ratio > FAST, f"above {FAST:g} times")):
        joints = ", ".join(f"'{n}'" for n, yes in zip(result.robot.joint_names, is_far, strict=True) if yes)
        if joints:
            yield (
                f"The speed in the validation logs is {text} the speed in the fitted logs on {joints}. The scores are "
                "valid for these speeds only."
            )


# The best grade that an objection permits, and its text.
Objection = tuple[Grade, str]


def _check_complaints(result: Identification) -> Iterator[Objection]:
    """List the complaints of `check`, each once for all logs that share it; fitted logs come first.

    A mistake in the mapping is in every log. What only a minority of the fitted logs shows is a doubt, no refutation.
    """
    alike: dict[str, tuple[Grade, Finding, list[str]]] = {}
    shown = Counter(entry.key for _, check in result.checks for entry in check.complaints)
    for checks, role, worst in ((result.checks, "", "poor"), (result.validation_checks, " (validation)", "usable")):
        for name, check in checks:
            for entry in check.complaints:
                if entry.severity == "problem" or entry.kind not in HARMLESS:
                    rare = bool(entry.fix) and 2 * shown[entry.key] < len(result.checks)
                    refutes = entry.severity == "problem" and worst == "poor" and not rare
                    grade: Grade = "poor" if refutes else "usable"
                    if rare and not role:
                        entry = replace(
                            entry, advice=f"The other fitted logs do not show this. {entry.advice}".rstrip()
                        )
                    key = f"{entry.severity} {entry.key} {entry.message}"
                    alike.setdefault(key, (grade, entry, []))[2].append(f"{name}{role}")
    for grade, entry, names in alike.values():
        yield grade, f"{', '.join(names)}: {entry.message} {entry.advice}".rstrip()


def _log_disagreements(result: Identification, unseen_scores: Sequence[Score]) -> Iterator[Objection]:
    """Name joints whose torque the model predicts much worse than a fit to the validation log itself."""
    floors = {name: c.excitation.floors for name, c in result.validation_checks if c.excitation is not None}
    ratios: dict[str, float] = {}
    for score in unseen_scores:
        for joint in score.joints:
            floor = floors.get(score.log, {}).get(joint.joint, 0.0)
            if floor > 0.0 and joint.nrmse_percent > NEGLIGIBLE:
                error = joint.moving.get("rmse", joint.rmse)
                ratios[joint.joint] = max(ratios.get(joint.joint, 0.0), error / floor)
    worse = {name: ratio for name, ratio in ratios.items() if ratio > BEYOND_NOISE}
    if worse:
        named = ", ".join(f"'{name}' {ratio:.1f}" for name, ratio in worse.items())
        yield (
            "usable",
            "The fitted and validation logs disagree by far more than the error bars. In cross-validation, a fit to "
            f"the validation log has an error several times smaller than the model's (ratio: {named}).",
        )


def _fit_objections(result: Identification) -> Iterator[Objection]:
    """Report a large cost of the physical constraints, and torques with a long delay."""
    rise = result.estimate.details.get("cost_rise_percent", 0.0)
    if rise > FAR_FROM_POSSIBLE:
        yield (
            "usable",
            f"No physically possible model fits these logs well: its cost is {rise:.0f} % above that of the free fit. "
            "Check signs, scales, zero positions and clocks, or use other friction terms.",
        )
    links = result.robot.inertial_count
    values = zip(result.model.dynamics.parameters[links:], result.model.theta[links:], strict=True)
    lags = {p.name: abs(float(v)) for p, v in values if p.unit == "s"}
    long = {name: lag for name, lag in lags.items() if lag > LONG_LAG}
    # Each drive has a delay. A similar delay of most drives comes from the time stamps.
    common = {name: lag for name, lag in lags.items() if lag > COMMON_LAG}
    if long or 2 * len(common) >= result.robot.dof:
        named = ", ".join(f"{name} {1e3 * value:.0f} ms" for name, value in (long or common).items())
        yield (
            "usable",
            f"The torque delay is longer than that of a drive ({named}). Log torque and position with time stamps from "
            "one clock, or give --delay.",
        )


def _friction_objections(result: Identification) -> Iterator[Objection]:
    """Compare known friction with friction that is fitted to the logs."""
    if result.without_known_friction is None:
        return
    error, other = np.mean([s.mean_moving_nrmse_percent for s in result.identification]), result.without_known_friction
    if error > KNOWN_WORSE * other:
        yield (
            "poor" if error > KNOWN_MISLEADS * other else "usable",
            f"On the fitted logs the error is {error:.1f} % of the torque's standard deviation with the known friction "
            f"and {other:.1f} % with fitted friction. The friction has changed, or was measured on another robot. "
            "Identify without --friction.",
        )


def _about_joints(names: list[str], errors: np.ndarray) -> list[str]:
    """Name the joints with a large torque error, the worst first."""
    worst = sorted(((e, n) for n, e in zip(names, errors, strict=True) if e > POOR), reverse=True)
    if not worst:
        return []
    named = [f"'{n}' " + (f"{e:.0f} %" if e < MEANINGLESS else "as large as the torque itself") for e, n in worst]
    return [f"The torque error is large: {', '.join(named)}. Check friction, torque channel and motion of "
            f"{'this joint' if len(worst) == 1 else 'these joints'}."]  # fmt: skip


def _about_files(result: Identification) -> Iterator[str]:
    """Name robot files that predict much worse than the full model, with joints and errors."""
    for file in result.files:
        worse = [
            f"'{j.joint}' {j.model_nrmse_percent:.1f} → {j.nrmse_percent:.1f} %"
            for j in sorted(file.joints, key=lambda j: -j.cost_percent)
            if j.nrmse_percent > FILE_WORSE * j.model_nrmse_percent and j.cost_percent > FILE_COST
        ]
        if worse:
            formats = "the sidecar, C code or FMU" if file.format == "urdf" else "C code or FMU"
            yield (
                f"{file.file} cannot store the full model and predicts worse ({', '.join(worse)}). Use {formats} if "
                "you need accurate torques."
            )


def _about_fit(result: Identification) -> Iterator[str]:
    """Say what the estimate must not be used for."""
    if not result.settings.physical and not result.possible:
        yield "The free fit is not physically possible. Use it for prediction only, never for simulation."
    if not result.estimate.result.settled:
        yield f"The estimator did not converge ({result.estimate.result.value}). Its error bars are not reliable."


def _about_model(result: Identification) -> list[str]:
    out = []
    if result.condition_number > HIGH_CONDITION:
        out.append(
            f"The condition number is {result.condition_number:.0f}: the motion excites some parameter combinations "
            "over a hundred times less than others. Use a better motion (steelyard excite)."
        )
    if result.band is not None and result.band.advice:
        out.append(result.band.advice)
    if result.settings.physical:
        out.append("All links are physically possible: positive masses and pseudo-inertias, positive friction.")
    if result.description is not None:
        out.append(result.description.sentence)
    if result.estimate.result is Result.BOUNDARY:
        shares = result.estimate.details.get("boundary", {})
        worst = f" ({', '.join(shares)}; at most {max(shares.values()) ** 0.5:.1f} σ beyond it)" if shares else ""
        rise = result.estimate.details.get("cost_rise_percent", 0.0)
        out.append(
            f"The free fit violates the physical constraints{worst}. The cost of the physically possible model is "
            f"{number(rise, 1)} % higher."
        )
    small = np.abs(result.estimate.beta) < 2.0 * result.estimate.standard_errors
    if small.any():
        out.append(
            f"{int(small.sum())} of {result.base.rank} base parameters are too small to measure with this motion "
            "(95 % interval includes 0)."
        )
    return out
