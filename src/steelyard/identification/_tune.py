"""Settings that the identification logs choose themselves, by cross-validation; no other log is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard.assessment.cross_validate import CrossValidation, ScoringFilter, left_out, stretches_of, torque_std
from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.estimation.estimate import EstimationError
from steelyard.ground.arrays import Array
from steelyard.parameters.friction import SMOOTHING_SPEED
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, identification_terms, smoothable
from steelyard.regression.base_parameters import base_parameters
from steelyard.study import Study

# Stretches of time, one of which is left out in turn: few enough that the others still excite everything.
STRETCHES = 5
# Of the default: a cut-off from five to forty times the motion's band, dry friction from a jump to 0.1 rad/s.
CUTOFFS = (1.0, 0.5, 0.25, 2.0)
SMOOTHINGS = (1.0, 0.3, 3.0, 0.0, 10.0)
# A piece must be longer than this many periods of the slowest cut-off, two of which are cut away again as run-up.
RUN_UPS = 6.0


@dataclass(frozen=True)
class Choice:
    """The low-pass of the fit (Hz), the speed below which dry friction is rounded off (part of the default: 0.01
    rad/s, 0.001 m/s), and where the velocity comes from."""

    cutoff_hz: float
    smoothing: float
    velocity: Literal["auto", "measured", "differentiated"]


@dataclass(frozen=True)
class Trial:
    """One choice and its error on stretches it was not fitted to, in percent of the torques' standard deviations
    (mean of the joints), stretch by stretch."""

    choice: Choice
    errors: tuple[float, ...]

    @property
    def error(self) -> float:
        return float(np.mean(self.errors))


@dataclass(frozen=True)
class Tuning:
    """What was tried, the plain defaults first, and what was chosen."""

    trials: tuple[Trial, ...]
    chosen: Choice
    score_cutoff_hz: float

    def trial(self, choice: Choice) -> Trial:
        return next(t for t in self.trials if t.choice == choice)

    @property
    def sentence(self) -> str:
        before, after = self.trials[0], self.trial(self.chosen)
        head = (
            f"Tuned on the identification logs alone ({len(self.trials)} choices, {len(before.errors)} stretches left "
            f"out in turn): "
        )
        changes = _changes(before.choice, after.choice)
        if not changes:
            return f"{head}the defaults stand."
        return (
            f"{head}{', '.join(changes)}; on what was left out {after.error:.2f} % of the torques' standard deviations "
            f"instead of {before.error:.2f} %."
        )

    def to_json(self) -> dict[str, Any]:
        trials = [
            {**asdict(t.choice), "error_percent": t.error, "stretches_percent": list(t.errors)} for t in self.trials
        ]
        return {"score_cutoff_hz": self.score_cutoff_hz, "chosen": asdict(self.chosen), "trials": trials}


def _changes(a: Choice, b: Choice) -> list[str]:
    """In words, what b does otherwise than a."""
    out = []
    if a.velocity != b.velocity:
        out.append(f"velocity {b.velocity}")
    if a.cutoff_hz != b.cutoff_hz:
        out.append(f"low-pass {b.cutoff_hz:.3g} Hz instead of {a.cutoff_hz:.3g} Hz")
    if a.smoothing != b.smoothing:
        speed = SMOOTHING_SPEED["revolute"] * b.smoothing
        prismatic = SMOOTHING_SPEED["prismatic"] * b.smoothing
        out.append(f"dry friction rounded off at {speed:.3g} rad/s ({prismatic:.3g} m/s)")
    return out


def tuned(
    study: Study, terms: Sequence[str | Term] | Terms | None = None, score_cutoff_hz: float | None = None
) -> Tuning:  # fmt: skip
    """Choose cut-off, smoothing of dry friction and source of the velocity by blocked cross-validation.

    Every log is cut into five stretches of time; all but one are fitted (weighted least squares), the one is judged
    as `score` judges, at one cut-off for all choices: the score's, or the rule's. Filters never cross a cut. From
    the defaults on, one setting is varied after the other: velocity, cut-off, smoothing. Of the values whose error is
    within one standard error of the best (of the differences stretch by stretch), the one nearest to the default is
    taken: the smallest of several noisy figures flatters itself, and what five stretches cannot tell apart is left
    alone. What the caller has fixed stays fixed. A delay of the torque is not tuned: much of what looks like one is
    friction that follows a reversal late, and a model that is exported has no delay to take along.

    Args:
        study: the logs (of long ones, their beginning), how they are prepared, and the scheme of the fit.
        terms: joint terms as they were asked for; smoothing is tuned only where they leave it open.
        score_cutoff_hz: of the score's low-pass, Hz; default: the study's.
    """
    search = _Search(study, terms, score_cutoff_hz)
    present = search.start
    search.trial(present)
    for name, values in search.axes.items():
        present = search.along(name, values, present)
    return Tuning(tuple(search.trials.values()), present, search.judge.cutoff_hz)


class _Search:
    """Choices tried so far, and all that they share."""

    def __init__(
        self, study: Study, terms: Sequence[str | Term] | Terms | None, score_cutoff_hz: float | None
    ) -> None:  # fmt: skip
        self.study, self.terms = study, terms
        usual = study.cutoff_hz
        self.start = Choice(usual, 1.0, study.preparation.velocity)
        at = score_cutoff_hz or usual
        self.axes = _axes(study, terms)
        self.judge = ScoringFilter(at, 1.0 / min([at, usual, *self.axes.get("cutoff_hz", ())]))
        self.stretches = stretches_of(study.beginnings, STRETCHES, RUN_UPS * self.judge.trim)
        self.torque_std = torque_std(self.stretches, self.judge, study.robot.torque_used)
        self.base = base_parameters(study.robot, identification_terms(study.robot, terms))
        self.trials: dict[Choice, Trial] = {}
        self._benches: dict[float, CrossValidation] = {}

    def along(self, name: str, values: Sequence[Any], present: Choice) -> Choice:
        """Vary one setting; of the values as good as the best, the first, which is nearest to the default."""
        choices = [replace(present, **{name: value}) for value in values]
        errors = np.array([self.trial(c).errors for c in choices])
        best = errors[int(np.argmin(errors.mean(axis=1)))]
        worse = errors - best
        doubt = np.std(worse, axis=1, ddof=1) / np.sqrt(errors.shape[1])
        return choices[int(np.argmax(worse.mean(axis=1) <= doubt))]

    def trial(self, choice: Choice) -> Trial:
        if choice not in self.trials:
            self.trials[choice] = Trial(choice, tuple(self._errors(choice).tolist()))
        return self.trials[choice]

    def _errors(self, choice: Choice) -> Array:
        bench = self._bench(choice.smoothing)
        how = replace(self.study.preparation, velocity=choice.velocity)
        rows = [bench.stretch(logs, how, choice.cutoff_hz, self.judge) for logs in self.stretches]
        try:
            errors = left_out(rows, self.base)
        except EstimationError as error:
            raise SteelyardError(f"Without one of {STRETCHES} stretches: {error} Or identify without tuning.") from None
        return np.asarray(100.0 * np.mean(errors / self.torque_std, axis=1))

    def _bench(self, smoothing: float) -> CrossValidation:
        if smoothing not in self._benches:
            robot, mask = self.study.robot, self.study.preparation.mask
            dynamics = Dynamics(robot, identification_terms(robot, self.terms, smoothing))
            self._benches[smoothing] = CrossValidation(self.study.scheme, dynamics, self.base, mask)
        return self._benches[smoothing]


def _axes(study: Study, terms: Sequence[str | Term] | Terms | None) -> dict[str, list[Any]]:
    """What may be varied, and the values to try, the default first and the others by their distance from it."""
    axes: dict[str, list[Any]] = {}
    logs = study.beginnings
    if study.preparation.velocity == "auto" and all(log.dq is not None for log in logs):
        kind = study.velocity.partition(" and ")[0] or "measured"
        axes["velocity"] = ["auto", "differentiated" if kind == "measured" else "measured"]
    if study.preparation.cutoff_hz is None:
        highest = 0.4 / max(float(np.median(np.diff(log.t))) for log in logs)
        axes["cutoff_hz"] = list(dict.fromkeys(min(f * study.cutoff_hz, highest) for f in CUTOFFS))
    if smoothable(terms):
        axes["smoothing"] = list(SMOOTHINGS)
    return axes
