"""A verdict in words, with reasons, from what an identification measured about itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from steelyard.assessment.pooled import TorqueError
from steelyard.assessment.score import MEANINGLESS, Score
from steelyard.check.explained import HIGH_CONDITION
from steelyard.estimation.estimate import Result
from steelyard.ground.numbers import number
from steelyard.identification._assumed import against_assumptions, conditions, refuted_lines
from steelyard.identification._sense import against_sense

if TYPE_CHECKING:
    from steelyard.identification.identification import Identification
    from steelyard.signals.log import Finding

Grade = Literal["good", "usable", "poor"]

# Percent of the torque's standard deviation on data that was not used. Public identifications of industrial arms
# reach 3–10 % on main axes and 5–20 % on wrists; beyond a third, most of the torque is not the model's.
GOOD, POOR = 12.0, 33.0
# Speeds of the motion that judges, over those of the fitted one, that are worth a word.
SLOW, FAST = 0.5, 1.5
GRADES: tuple[Grade, ...] = ("good", "usable", "poor")
# Warnings of `check` about what the fit copes with, or what makes error bars wide rather than wrong.
HARMLESS = (
    "hidden", "condition", "rank", "standing", "motionless", "gap", "jitter", "duplicate", "reset", "disorder",
    "isolated", "remark", "position_limit", "velocity_limit", "torque_limit", "velocity_delay", "dead_velocity",
    "warming", "position_steps", "frozen", "collinear",
)  # fmt: skip
# The model's error on a log that it did not see, over that of a fit to that log on blocks that the fit leaves out.
# Fitted anew, logs of ten real arms lose 10–50 % of their error, hence ratios of 1.1 to 2; beyond, parameters differ.
BEYOND_NOISE = 2.5
NEGLIGIBLE = 1.0  # percent of the torque's standard deviation
# Percent by which the sum of squares may rise for the sake of a robot that can exist. On our sets, with the usual
# terms: 0 to 26, and 254 on an arm with a counterbalance that was not described.
FAR_FROM_POSSIBLE = 25.0
# Known friction that leaves so much more of the fitted logs than friction that is found in them: a search has a few
# parameters more, which alone gain a few per cent; twice as much is another robot's, or another day's.
KNOWN_WORSE, KNOWN_MISLEADS = 1.1, 2.0
# A file's error on a joint beyond the full model's that is worth a word: half as much again, which is more than a
# model's errors differ between logs of one robot, and at least this many per cent of the torque's standard deviation.
FILE_WORSE, FILE_COST = 1.5, 3.0
LONG_LAG, COMMON_LAG = 0.035, 0.01  # s, of one joint and of most
NOT_JUDGED_BY_OTHERS = (
    "No data was kept for validation: the scores are of the data the model was fitted to, and flatter it."
)
NOTHING_INDEPENDENT = (
    "Nothing independent judges the model: the scores are of the data it was fitted to, and flatter it."
)


@dataclass(frozen=True)
class Verdict:
    """A grade, one sentence, and the reasons."""

    grade: Grade
    sentence: str
    reasons: tuple[str, ...]


NOT_JUDGED = Verdict("poor", "Nothing has been judged yet.", ())


def judge(found: Identification) -> Verdict:
    """The grade of what was `found`: what its scores allow, less whatever else is known against it."""
    error = found.torque_error
    judged = found.judging_scores if error.unseen else ()
    # Where a joint stands, friction is whatever holds it, which no model can know.
    errors = np.array([j.moving_nrmse_percent for j in error.joints])
    names = [j.joint for j in error.joints]
    grade: Grade = "good" if np.median(errors) <= GOOD and errors.max() <= POOR else "usable"
    if np.median(errors) > POOR:
        grade = "poor"
    between = () if found.agreement is None else found.agreement.reasons
    against: list[Against] = [
        *(("usable", copy.sentence) for copy in found.copies),
        *_logs(found),
        *(("usable", text) for text in between),
    ]
    against += [*_beside_its_own_fit(found, judged), *_bodies(found), *against_sense(found), *_known(found)]
    against += against_assumptions(found)
    if not judged:
        against.append(("usable", NOTHING_INDEPENDENT if found.copies else NOT_JUDGED_BY_OTHERS))
    grade = max((grade, *(cap for cap, _ in against)), key=GRADES.index)
    said = [] if not judged else [_about_data(error), *_about_extent(found, judged)]
    reasons = [*said, *(text for _, text in against), *_about_joints(names, errors), *_about_files(found)]
    reasons += [*refuted_lines(found), *_about_model(found)]
    sentence = {
        "good": "The model can be trusted for the motions it was judged on.",
        "usable": "The model is usable, with the reservations below.",
        "poor": "Do not use this model before the points below are mended.",
    }[grade]
    if rests := conditions(found):
        sentence += f" It rests on what these logs cannot show: {rests}."
    return Verdict(grade, sentence, tuple(reasons))


def _about_data(error: TorqueError) -> str:
    mean, whole = error.moving_percent, error.all_percent
    logs = "1 log" if len(error.logs) == 1 else f"{len(error.logs)} logs together"
    standing = f" while they move; {whole:.1f} % with standstill" if f"{mean:.1f}" != f"{whole:.1f}" else ""
    return (
        f"On data that was not used ({logs}) the torque error is {mean:.1f} % of the "
        f"torque's standard deviation, averaged over joints{standing}."
    )


def _about_extent(found: Identification, judged: Sequence[Score]) -> Iterator[str]:
    """Joints on which the motion that judges is far slower or faster than the one that was fitted to."""
    both = (found.identification, judged)
    fitted, judging = (np.max([np.quantile(np.abs(s.dq), 0.99, axis=0) for s in scores], axis=0) for scores in both)
    ratio = judging / np.maximum(fitted, 1e-12)
    for told, words in ((ratio < SLOW, "slower than half"), (ratio > FAST, "faster than one and a half times")):
        joints = ", ".join(f"'{n}'" for n, yes in zip(found.robot.joint_names, told, strict=True) if yes)
        if joints:
            yield f"The motion that judges is {words} the fitted one on {joints}: what it says holds for such speeds."


# What speaks against a model: the best grade that it leaves, and why.
Against = tuple[Grade, str]


def _logs(found: Identification) -> Iterator[Against]:
    """What `check` found wrong with the logs, once for all logs that share it: first those that were fitted to."""
    for checks, role, worst in ((found.checks, "", "poor"), (found.judged_checks, ", to judge by", "usable")):
        alike: dict[str, tuple[Finding, list[str]]] = {}
        for name, check in checks:
            for entry in check.complaints:
                if entry.severity == "problem" or entry.kind not in HARMLESS:
                    alike.setdefault(f"{entry.severity} {entry.key}", (entry, []))[1].append(name)
        for entry, names in alike.values():
            grade: Grade = "poor" if entry.severity == "problem" and worst == "poor" else "usable"
            yield grade, f"{', '.join(names)}{role}: {entry.message} {entry.advice}".rstrip()


def _beside_its_own_fit(found: Identification, judged: Sequence[Score]) -> Iterator[Against]:
    """Joints whose torque the model predicts much worse than a fit to the judging log itself."""
    floors = {name: c.excitation.floors for name, c in found.judged_checks if c.excitation is not None}
    ratios: dict[str, float] = {}
    for score in judged:
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
            f"A fit to the judging log predicts parts of it that the fit leaves out several times better ({named}): it "
            "and the fitted log disagree by far more than the error bars say.",
        )


def _bodies(found: Identification) -> Iterator[Against]:
    """What making the fit possible cost it, and torques that lag."""
    rise = found.estimate.details.get("cost_rise_percent", 0.0)
    if rise > FAR_FROM_POSSIBLE:
        yield (
            "usable",
            f"No robot that can exist fits these logs well: the free fit leaves {rise:.0f} % less. Look for a wrong "
            "sign, scale, zero or clock, or friction of another kind.",
        )
    links = found.robot.inertial_count
    values = zip(found.model.dynamics.parameters[links:], found.model.theta[links:], strict=True)
    lags = {p.name: abs(float(v)) for p, v in values if p.unit == "s"}
    late = {name: lag for name, lag in lags.items() if lag > LONG_LAG}
    # A drive lags by itself; that most lag alike comes from their stamps.
    together = {name: lag for name, lag in lags.items() if lag > COMMON_LAG}
    if late or 2 * len(together) >= found.robot.dof:
        named = ", ".join(f"{name} {1e3 * value:.0f} ms" for name, value in (late or together).items())
        yield (
            "usable",
            f"The torque lags by more than drives do ({named}): log torque and position with the stamps of one clock, "
            "or give the --delay.",
        )


def _known(found: Identification) -> Iterator[Against]:
    """Friction that was measured before, beside what is found in the logs themselves."""
    if found.without_known_friction is None:
        return
    error, other = np.mean([s.mean_moving_nrmse_percent for s in found.identification]), found.without_known_friction
    if error > KNOWN_WORSE * other:
        yield (
            "poor" if error > KNOWN_MISLEADS * other else "usable",
            f"With the friction that was measured before, the fitted logs are explained to {error:.1f} % of the "
            f"torque's standard deviation, with friction found in them to {other:.1f} %: it has changed, or was "
            "measured elsewhere. Leave it out (--friction).",
        )


def _about_joints(names: list[str], errors: np.ndarray) -> list[str]:
    return [
        f"Joint '{name}' is {f'predicted to {error:.0f} % only' if error < MEANINGLESS else 'not predicted at all'}: "
        "look at its friction, its torque channel and its motion."
        for name, error in zip(names, errors, strict=True)
        if error > POOR
    ]


def _about_files(found: Identification) -> Iterator[str]:
    """Robot files that predict much worse than the model which the verdict is about, with the joints and the cost."""
    for file in found.files:
        worse = [
            f"'{j.joint}' {j.model_nrmse_percent:.1f} → {j.nrmse_percent:.1f} %"
            for j in sorted(file.joints, key=lambda j: -j.cost_percent)
            if j.nrmse_percent > FILE_WORSE * j.model_nrmse_percent and j.cost_percent > FILE_COST
        ]
        if worse:
            held = "the sidecar, C code or FMU" if file.format == "urdf" else "C code or FMU"
            yield (
                f"{file.file} cannot hold all of the model and predicts worse ({', '.join(worse)}): take {held} where "
                "torques matter."
            )


def _about_model(found: Identification) -> list[str]:
    out = []
    if found.condition_number > HIGH_CONDITION:
        out.append(
            f"The condition number is {found.condition_number:.0f}: the motion shows some combinations a hundred times "
            "less than others. A better motion would help."
        )
    if found.band is not None and found.band.advice:
        out.append(found.band.advice)
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
            f"{number(rise, 1)} % worse."
        )
    if not found.estimate.result.settled:
        out.append(f"The estimator did not settle ({found.estimate.result.value}): do not believe its error bars.")
    small = np.abs(found.estimate.beta) < 2.0 * found.estimate.standard_errors
    if small.any():
        out.append(f"{int(small.sum())} of {found.base.rank} base parameters cannot be told from zero by this motion.")
    return out
