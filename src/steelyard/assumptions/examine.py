"""Estimates every assumption of a fit and classifies it as refuted, confirmed or not testable."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from steelyard.assumptions.changes_in_time import add_changes
from steelyard.assumptions.correct import (
    can_correct,
    combined,
    corrected,
    distance,
    error_after,
    leaves_torques,
    makes_sense,
    vanishes,
    without_scale,
)
from steelyard.assumptions.harm import (
    HARM_PERCENT,
    MOST_OF_THE_ERROR,
    SAFE_SIGMAS,
    Harm,
)
from steelyard.assumptions.ledger import CONTRADICTION, FALSE_REFUTATIONS, Answer, Entry, Ledger
from steelyard.assumptions.ledger_rows import LedgerRows, ledger_rows
from steelyard.assumptions.suspect import Suspect
from steelyard.assumptions.suspect_estimates import Estimates, Normals, doubt_of
from steelyard.assumptions.validation_logs import ValidationLogs
from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.student import each_two_sided, quantile, two_sided
from steelyard.regression.block_grams import Mask
from steelyard.signals.prepare import Motion
from steelyard.study import ROUNDING_SHARE, Study

# Coverage of the intervals.
_LEVEL = 0.95
# Maximum number of accepted suspects.
_MOST = 6
# Rows of the validation logs; enough for an RMS that is accurate to some per cent.
_JUDGING_ROWS = 600
# Maximum number of Gauss-Newton steps; they end when a step is below this share of the standard error.
_STEPS, _SHORT = 4, 0.1
# Smaller factors indicate nearly zero channels, not confused units.
_SMALLEST_FACTOR = 1e-3
# Relative difference below which gains count as equal, since columns are accurate to some per cent.
_SAME = 0.05
# Squared correlation of two velocities above which joints do not move independently.
_TOGETHER = 0.9
# Number of torque scales that are compared by a full correction.
_COMPARED = 4
# Share of a torque's power beyond which an opposite sign has not explained it.
_UNEXPLAINED = 0.5
# Torque scale of an opposite sign: factor −1 minus 1.
_OTHER_SIGN = -2.0


def examine_assumptions(
    study: Study, model: Model, judges: Study, rmse: Array, nrmse: Array, standard_errors: Array
) -> Ledger | None:
    """Estimate all suspects of a fit on its rows; None if there are too few rows.

    Args:
        study: Study of the fit, with the terms of the model.
        model: Fitted model.
        judges: Study of the validation logs; without logs the fitted ones are used.
        rmse: Torque error of every joint with a used torque on these logs [N m, N].
        nrmse: Torque error relative to the torque's standard deviation.
        standard_errors: Standard errors of the base parameters.
    """
    with one_blas_thread():
        rows = ledger_rows(study, model, reversals=not judges.logs)
        if rows is None or rows.blocks < 4:
            return None
        rows = add_changes(rows)
        judged = ledger_rows(judges, model, _JUDGING_ROWS, reversals=True) if judges.logs else None
        weights = 1.0 / np.maximum(rmse, 1e-12)
        logs = None if judged is None else ValidationLogs(add_changes(judged, rows.courses), weights)
        return _LedgerBuilder(study, model, rows, logs, rmse, nrmse, standard_errors).ledger()


@dataclass(eq=False)
class _LedgerBuilder:
    """State of the tests: accepted suspects, their gains and corrections."""

    study: Study
    model: Model
    rows: LedgerRows
    judged: ValidationLogs | None
    rmse: Array
    nrmse: Array
    standard_errors: Array
    accepted: list[int] = field(default_factory=list)
    rivals: dict[int, list[int]] = field(default_factory=dict)
    gains: dict[int, tuple[float, float, float | None]] = field(default_factory=dict)
    # Corrections of the motions, and accepted mistakes that the validation logs also have.
    shifts: dict[int, float] = field(default_factory=dict)
    shared: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.normals = Normals(self.rows)
        self.plain = self.now = self.normals.estimates()
        self.first_rms = self.normals.rms

    def ledger(self) -> Ledger:
        """Accept suspects until none is significant, and return the ledger."""
        while len(self.accepted) < _MOST and self._invert_one_sign():
            self.now = self.normals.estimates(self.accepted)
        while len(self.accepted) < _MOST and self._accept_one():
            self.now = self.normals.estimates(self.accepted)
        names = np.array(self.study.robot.joint_names)[np.flatnonzero(self.study.robot.torque_used)]
        excess = {str(n): float(x) for n, x in zip(names, self.normals.disagreement, strict=True) if x > CONTRADICTION}
        rows = int(max(e.count for e in self.rows.equations))
        return Ledger(tuple(self._entries()), self.rows.blocks, rows, excess)

    def _invert_one_sign(self) -> bool:
        """Invert the torque sign with the largest cross-validation gain, if no suspect explains as much.

        A linear approximation cannot represent a change of sign, so it is tried directly.
        """
        normals, before = self.normals, self.normals.left_out
        scales = {s.joint: k for k, s in enumerate(self.rows.suspects) if s.kind == "torque scale" and s.joint}
        used = np.flatnonzero(self.study.robot.torque_used)
        places = [scales[self.study.robot.joint_names[j]] for j in used]
        trials = [normals.with_other_sign(e) for e in range(len(used))]
        gains = np.array([(before - left).sum() for left, _ in trials]) / max(float(before.sum()), 1e-300)
        best = int(np.argmax(gains))
        left, fit = trials[best]
        doubt = float(doubt_of(before - left)) / max(float(before.sum()), 1e-300)
        sure = quantile(1.0 - FALSE_REFUTATIONS / len(used), self.rows.blocks - 1)
        if places[best] in self.accepted or gains[best] <= max(
            sure * doubt, float(np.max(self.now.total_gain, where=self._tested, initial=0.0))
        ):
            return False
        if normals.share_with_other_sign(best, fit) > _UNEXPLAINED:
            return False
        judged = self._validate_sign(best, fit)
        if judged is not None and judged[0] <= 0.0:
            return False
        k = places[best]
        rows = self._rows({**self.shifts, k: _OTHER_SIGN}, self._with_parameters(self.model, fit))
        if rows is None:
            return False
        self.shifts[k], self.model = _OTHER_SIGN, self._with_parameters(self.model, fit)
        self.normals = Normals(rows)
        self.accepted.append(k)
        self.gains[k] = float(gains[best]), doubt, None if judged is None else judged[0]
        self.shared += [k] if judged is None or judged[1] else []
        return True

    def _validate_sign(self, equation: int, fit: Array) -> tuple[float, bool] | None:
        """Return the gain on the validation logs, and whether their sign must also be inverted."""
        if self.judged is None:
            return None
        before = float(self.judged.errors(self.now.fit[: self.rows.rank]).sum())
        after = [float(self.judged.errors(fit, inverted).sum()) for inverted in (equation, -1)]
        return (before - min(after)) / max(before, 1e-300), after[0] < after[1]

    def _accept_one(self) -> bool:
        """Accept the suspect with the largest cross-validation gain, if it is significant and validated."""
        now, gains = self.now, self.now.total_gain
        candidates = [k for k in self._significant(now) if k not in self.accepted and gains[k] > now.gain_doubt[k]]
        candidates = [k for k in candidates if makes_sense(self.rows.suspects[k], float(now.value[k]))]
        candidates = [k for k in candidates if self._moves_alone(self.rows.suspects[k])]
        if not candidates:
            return False
        judged, agrees, too = self._agrees(now)
        candidates = [k for k in candidates if agrees[k]]
        if not candidates:
            return False
        first = max(candidates, key=lambda k: gains[k])
        behind = now.gain[:, [first]] - now.gain[:, candidates]
        same = np.maximum(doubt_of(behind), _SAME * gains[first])
        alike = [k for k, less, most in zip(candidates, behind.sum(axis=0), same, strict=True) if less <= most]
        # Among equally good suspects, prefer one that can be fully corrected; the others become rivals.
        alike.sort(key=lambda k: (not can_correct(self.rows.suspects[k]), -gains[k]))
        others = sorted((k for k in candidates if k not in alike), key=lambda k: -gains[k])
        for best in self._best_scale_first([*alike, *others]):
            if not self._confirm(best):
                continue
            self.rivals[best] = [k for k in alike if k != best] if best in alike else []
            own = None if judged is None else float(judged[best])
            self.gains[best] = float(gains[best]), float(now.gain_doubt[best]), own
            self.accepted.append(best)
            # Other logs do not repeat a change during the logs.
            self.shared += [best] if too[best] and not self.rows.suspects[best].of_time else []
            return True
        return False

    def _moves_alone(self, suspect: Suspect) -> bool:
        """Whether the joints of a coupling move independently; otherwise their friction is confounded."""
        if not suspect.other:
            return True
        a, b = (self.study.robot.joint_index(name) for name in (suspect.joint, suspect.other))
        return bool(self._velocity_correlations[a, b] <= _TOGETHER)

    @cached_property
    def _velocity_correlations(self) -> Array:
        """Squared correlations of the joint velocities."""
        numbers = range(len(self.study.beginnings))
        dq = np.concatenate([m.dq for k in numbers for m in self.study.first_motions(k) if m.long_enough])
        sizes = np.linalg.norm(dq, axis=0)
        sizes[sizes <= ROUNDING_SHARE * sizes.max()] = np.inf  # the velocity of a joint at rest is rounding
        shares = dq / sizes
        return np.asarray((shares.T @ shares) ** 2)

    def _best_scale_first(self, order: list[int]) -> list[int]:
        """If the first suspect is a torque scale, move the one with the smallest residual share to the front.

        A torque that is ten times too small looks like all others being ten times too large. Its equation has the
        smallest error and the largest weight, so that the gains of the other joints are larger.
        """
        scales = [k for k in order if self.rows.suspects[k].kind == "torque scale"][:_COMPARED]
        if len(scales) < 2 or order[0] not in scales:
            return order
        shares = {k: self._residual_share(k) for k in scales}
        best = min(scales, key=lambda k: shares[k])
        return [best, *(k for k in order if k != best)]

    def _residual_share(self, suspect: int) -> float:
        """Return the mean logarithm of the residual power share if a suspect is corrected."""
        state = self.normals, self.model, dict(self.shifts)
        confirmed = self._confirm(suspect)
        normals, (self.normals, self.model, self.shifts) = self.normals, state
        return normals.log_share if confirmed else np.inf

    @cached_property
    def _tries(self) -> Array:
        """Number of tests behind the p-value of each suspect: the courses over time that were tried."""
        courses = [course.tries for course in self.rows.courses]
        return np.array([1] * (len(self.rows.suspects) - len(courses)) + courses)

    @cached_property
    def _tested(self) -> Mask:
        return np.array([not s.only_harm for s in self.rows.suspects])

    def _significant(self, now: Estimates) -> list[int]:
        """Return the significant suspects at a family-wise false-alarm rate (Holm 1979)."""
        testable = np.flatnonzero((now.error > 0.0) & (now.share > 0.0) & self._tested)
        p = each_two_sided(now.value[testable] / now.error[testable], now.freedom[testable])
        p = p * self._tries[testable]
        out = []
        for rank, place in enumerate(np.argsort(p)):
            if p[place] > FALSE_REFUTATIONS / (len(testable) - rank):
                break
            out.append(int(testable[place]))
        return out

    def _agrees(self, now: Estimates) -> tuple[Array | None, Mask, Mask]:
        """Return whether the validation logs confirm each suspect; without such logs all are confirmed."""
        count = len(self.rows.suspects)
        if self.judged is None:
            return None, np.ones(count, dtype=bool), np.ones(count, dtype=bool)
        gains, doubt, too = self.judged.gains(now, self.shared)
        of_time = np.array([s.of_time for s in self.rows.suspects])
        agrees = np.where(of_time, gains > -doubt, (gains > doubt) & ~(too & self.judged.unrepeated(now, self.shared)))
        return gains, agrees, too

    def _confirm(self, suspect: int) -> bool:
        """Return whether cross-validation confirms the full correction of a suspect, and keep the correction."""
        one, now = self.rows.suspects[suspect], self.now
        if self._settles(suspect, can_correct(one)):
            return True
        # A torque that contains almost nothing of what the other joints imply has no scale to divide by.
        return vanishes(one, float(now.value[suspect]), float(now.error[suspect])) and self._settles(suspect, False)

    def _settles(self, suspect: int, moves: bool) -> bool:
        """Fit a suspect by Gauss-Newton steps; return whether they settle at a value that cross-validation confirms.

        Each step recomputes the columns with the updated parameters, since the parameters of a fit without the suspect
        have absorbed a part of it.

        Args:
            suspect: Index of the suspect.
            moves: Whether each step corrects the motions.
        """
        one = self.rows.suspects[suspect]
        value, now, normals, model = 0.0, self.now, self.normals, self.model
        for _ in range(_STEPS):
            step = float(now.value[suspect])
            value = combined(one, value, step) if moves else 0.0
            model = self._refitted(model, now, suspect)
            rows = self._rows({**self.shifts, suspect: value} if moves else self.shifts, model)
            if rows is None or abs(1.0 + value) < _SMALLEST_FACTOR:
                return False
            normals = Normals(rows, self.normals.weights)
            now = normals.estimates(self.accepted)
            rest = float(now.value[suspect]) - (0.0 if moves else step)
            if abs(rest) < _SHORT * float(now.error[suspect]):
                break
        if moves and abs(rest) > float(now.error[suspect]):
            return False  # The steps do not settle.
        if not self._remains(now, suspect, combined(one, value, float(now.value[suspect]))):
            return False
        if not moves:
            self.normals, self.model = Normals(normals.rows), model
            return True
        if leaves_torques(one):
            if len(normals.left_out) != len(self.normals.left_out):
                return False
            gains = self.normals.left_out - normals.left_out
            if gains.sum() <= doubt_of(gains):
                return False
        self.shifts[suspect] = value
        self.normals, self.model = Normals(normals.rows), model
        return True

    def _remains(self, now: Estimates, suspect: int, value: float) -> bool:
        """Return whether a value is possible and still significant after the last step."""
        one, rate = self.rows.suspects[suspect], FALSE_REFUTATIONS / len(self.rows.suspects) / self._tries[suspect]
        away = distance(one, value) / max(float(now.error[suspect]), 1e-300)
        sure = two_sided(np.array(away), int(now.freedom[suspect])) < rate
        return bool(sure) and makes_sense(one, value)

    def _refitted(self, model: Model, now: Estimates, suspect: int) -> Model:
        """Return the model with the parameters of an estimate."""
        beta = now.fit[: self.rows.rank] - now.moves[:, suspect] * now.value[suspect]
        return self._with_parameters(model, beta)

    def _with_parameters(self, model: Model, beta: Array) -> Model:
        theta, base = np.array(model.theta), self.study.base
        theta[list(base.independent)] += beta - base.values(theta)
        out = Model(model.robot, model.terms, theta)
        vars(out)["dynamics"] = model.dynamics
        return out

    def _rows(self, shifts: dict[int, float], model: Model) -> LedgerRows | None:
        def change(motion: Motion) -> Motion:
            for k, value in shifts.items():
                motion = corrected(self.study.robot, motion, self.rows.suspects[k], value)
            return motion

        rows = ledger_rows(self.study, model, change=change)
        return None if rows is None else add_changes(rows, self.rows.courses)

    def _entries(self) -> list[Entry]:
        final, plain = self.now, self.plain
        judged = self.rows if self.judged is None else self.judged.rows
        # Harm is relative to the torque error after correction of refuted assumptions.
        before = self.rmse if self.judged is None else self.first_rms
        less = np.minimum(self.normals.rms / np.maximum(before, 1e-300), 1.0)
        harm = Harm.of(judged, plain.moves, self.rmse * less, self.nrmse * less, self.standard_errors)
        of_judges = self._agrees(final)[0]
        out, harms = [], {s.name: k for k, s in enumerate(self.rows.suspects)}
        for k in np.flatnonzero(self._tested).tolist():
            suspect, effect = self.rows.suspects[k], harms[self.rows.suspects[k].name]
            # A rival of an accepted suspect is estimated as if it were the mistake itself.
            shown = plain if any(k in others for others in self.rivals.values()) else final
            shift, freedom = self.shifts.get(k, 0.0), int(self.plain.freedom[k])
            wide = quantile(_LEVEL, freedom)
            value = combined(suspect, shift, float(shown.value[k]))
            error = error_after(suspect, shift, float(shown.error[k]))
            if vanishes(suspect, value, error):
                suspect = replace(suspect, fix=without_scale(suspect.joint))
            described, has_estimate = suspect.owner == "description", bool(plain.share[k] > 0.0 and error > 0.0)
            ends = (value - wide * error, value + wide * error)
            far = max(map(abs, ends)) if has_estimate else np.inf
            near = min(map(abs, ends)) if ends[0] * ends[1] > 0.0 else 0.0
            percent = [harm.percent(effect, x, described) for x in (value, near, far)]
            elsewhere = percent[1]
            if self.judged is not None and k in self.shared:
                percent[1] = harm.percent(effect, near, True)
            sigmas = [harm.sigmas(effect, x) for x in (value, far)]
            harmless = percent[2] <= HARM_PERCENT and sigmas[1] <= SAFE_SIGMAS
            # Of two that were accepted one after the other, the later may explain what the first was accepted for.
            refuted = k in self.accepted and near > 0.0
            # What correct logs show as well refutes nothing until most of the error is due to it.
            refuted &= not suspect.ambiguous or percent[1] > MOST_OF_THE_ERROR
            answer: Answer = "refuted" if refuted else "confirmed" if harmless else "not testable"
            own = None if of_judges is None else float(of_judges[k])
            gain = self.gains.get(k, (float(final.total_gain[k]), float(final.gain_doubt[k]), own))
            out.append(
                Entry(
                    suspect=suspect,
                    answer=answer,
                    estimate=value if has_estimate else None,
                    standard_error=error if has_estimate else None,
                    interval=ends if has_estimate else None,
                    p=float(two_sided(np.array(value / error), freedom)) if has_estimate else 1.0,
                    share=float(plain.share[k]),
                    gain_percent=100.0 * gain[0],
                    gain_doubt_percent=100.0 * gain[1],
                    judged_gain_percent=None if gain[2] is None else 100.0 * gain[2],
                    harm_percent=percent[0],
                    least_harm_percent=percent[1],
                    most_harm_percent=percent[2],
                    elsewhere_percent=elsewhere,
                    sigmas=sigmas[0],
                    most_sigmas=sigmas[1],
                    rivals=tuple(self.rows.suspects[r].name for r in self.rivals.get(k, ())),
                )
            )
        return out
