"""Selects the terms of every joint by cross-validation on blocks of the identification logs.

One pass computes for every block of time the Gram matrix over the default columns and all candidates of a joint. Each
structure is then a small linear system. Terms define their own candidates (`Term.candidates`). Nearly all candidates
saturate and have a sign, so that they stay bounded on motions beyond those of the logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.progress import report_progress, steps
from steelyard.identification._extra_variance import parameter_variance
from steelyard.identification._load_range import largest_loads
from steelyard.identification.structure import (
    ROUNDINGS,
    STAGE,
    Offer,
    StructureChoice,
    StructureStep,
    candidate_rows,
    reason,
    report_choice,
    report_step,
    term_text,
)
from steelyard.parameters.friction import DryTerm
from steelyard.parameters.hysteresis import Lag, LoadedTerm
from steelyard.parameters.term import TERMS, JointExcitation, Term
from steelyard.parameters.terms import Terms
from steelyard.regression.block_grams import BlockGrams, Fits, Index, Mask, Weighted
from steelyard.regression.block_rows import align_rows, labels, nonnegative, stretches, tables, thin
from steelyard.regression.observe import standstill_rows
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# A term must lower the cross-validation error of its joint by more than this share and by more than this number of
# standard errors over the blocks.
LEAST_GAIN = 0.02
MIN_ERRORS = 1.0
# A function of position must gain more: it extrapolates beyond the logs, blocks of one motion repeat the same
# positions, and a wrong description or drift looks like one.
FIRM_GAIN = 0.2
# Maximum number of terms added to a joint; later ones gain very little.
MOST_TERMS = 4
# Relative difference below which cross-validation errors count as equal.
_ROUNDING = 1e-6


def search(study: Study, reference: Model) -> StructureChoice:
    """Select the terms of every joint by cross-validation on the beginnings of the study's logs.

    In each round, every joint adds the candidate that lowers its cross-validation error most, if the gain exceeds its
    standard error. Terms that no longer have an effect are removed at the end. The search runs twice, from the default
    rounding of dry friction and from the best one; the better result is returned. With three logs or more, whole logs
    are left out.

    Args:
        study: Study with the default terms.
        reference: Model with these terms; its links and rotors determine the joint loads.
    """
    with one_blas_thread():
        return Search(study, reference).run()


class Search:
    """State of a search: candidates, sums over the rows and the current structure."""

    def __init__(self, study: Study, reference: Model) -> None:
        self.study, self.robot, self.base, self.reference = study, study.robot, study.base, reference
        self.used = [int(j) for j in np.flatnonzero(self.robot.torque_used)]
        self.names = [self.robot.joint_names[j] for j in self.used]
        beginnings = ((k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k))
        long = [(k, m) for k, m in beginnings if m.long_enough]
        stored = study.take_tables([m for _, m in long])
        numbered = [(k, align_rows(m)) for k, m in long]
        motions = [m for _, m in numbered]
        rows = Rows.cached(study.dynamics, self.base.independent)
        parts = stretches(motions)
        numbers = labels([(k, part.rows) for (k, _), some in zip(numbered, parts, strict=True) for _, part in some])
        self.usual_dry = self._usual_dry()
        self.offers: list[list[Offer]] = []
        size, bounded = self.base.rank, [nonnegative(self.base)]
        for j in self.used:
            self.offers.append(self._offers(j, motions, size))
            size += sum(len(o.columns) for o in self.offers[-1])
            bounded += [o.bounded for o in self.offers[-1]]
        self.candidates = [Terms(self.robot, tuple(o.term for o in offers)) for offers in self.offers]
        own = [sum(len(o.columns) for o in offers) for offers in self.offers]
        blocks = 1 + max(int(one.max()) for one in numbers)
        self.grams = BlockGrams(rows.equations, self.base.independent, own, blocks, np.concatenate(bounded))
        label = iter(numbers)
        for motion, some in zip(motions, parts, strict=True):
            out = standstill_rows(study.dynamics, motion)
            for at, part in some:
                row_tables = next(stored, None) or tables(study.dynamics, self.base, rows, part)
                self._add_rows(row_tables, part, None if out is None else ~out[at][part.keep], next(label))
        self.deviations = self.grams.deviations
        self.structure = np.arange(size) < self.base.rank
        self.tried = 1
        self.steps: list[StructureStep] = []
        # Progress.
        self.way, self.round, self.share = "usual rounding", 0, 0.0

    def _add_rows(self, row_tables: Sequence[Array], motion: Motion, moving: Mask | None, labels: Index) -> None:
        """Add, for each joint, the rows of a motion where it moves."""
        fewer = thin(motion)
        rigid = self.reference.rigid_torque(fewer.q, fewer.dq, fewer.ddq)
        for e, table in enumerate(row_tables):
            used_rows = slice(None) if moving is None else moving[:, self.used[e]]
            self.grams.add(e, table[used_rows], self._candidates(fewer, rigid, e)[used_rows], labels[used_rows])

    # ---------------------------------------------------------------- candidates

    def _usual_dry(self) -> dict[int, tuple[Term, int]]:
        """Return by joint the default dry friction term whose rounding may change, and its column index."""
        position = {c: k for k, c in enumerate(self.base.independent)}
        out: dict[int, tuple[Term, int]] = {}
        column = self.robot.inertial_count
        for term, c in self.study.terms.with_coordinates:
            if isinstance(term, DryTerm) and c.side == "joint" and len(term.columns) == 1 and column in position:
                out.setdefault(c.index, (term, position[column]))
            column += len(term.columns)
        return out

    def _offers(self, joint: int, motions: Sequence[Motion], first: int) -> list[Offer]:
        """List the candidates of a joint: other roundings of its dry friction, and those of all terms."""
        name, kind = self.robot.joint_names[joint], self.robot.joints[joint].kind
        speed = float(np.quantile(np.abs(np.concatenate([m.dq[:, joint] for m in motions])), 0.95))
        low, high = (f([f(m.q[:, joint]) for m in motions]) for f in (np.min, np.max))
        excited = JointExcitation(
            kind, speed, float(high - low), self.study.cutoff_hz, self._longest_path(joint) / (high - low)
        )
        terms: list[tuple[Term, bool]] = []
        if joint in self.usual_dry:
            usual = self.usual_dry[joint][0]
            terms += [(other, True) for times in ROUNDINGS if (other := usual.with_rounding(kind, times)) != usual]
        terms += [(term, False) for _, cls in TERMS.items() for term in cls.candidates(excited)]
        out = []
        for term, instead in terms:
            out.append(Offer(replace(term, where=(name,)), first + np.arange(len(term.columns)), instead))
            first += len(term.columns)
        return out

    def _longest_path(self, joint: int) -> float:
        """Return the longest path of a joint in any log, both directions counted [rad or m]."""
        logs = (self.study.first_motions(k) for k in range(len(self.study.beginnings)))
        return max(sum(float(np.abs(np.diff(m.q[:, joint])).sum()) for m in log) for log in logs)

    def _candidates(self, motion: Motion, rigid: Array, equation: int) -> Array:
        """Compute the filtered columns of an equation's candidates at the motion's rows."""
        terms = self.candidates[equation]
        history = terms.along(motion.q, motion.dq, motion.filter.period, rigid)
        entries = terms.torque(*(list(x.T) for x in (motion.q, motion.dq, motion.ddq, history)))
        count = sum(len(t.columns) for t in terms.terms)
        raw = np.zeros((len(motion.t), count))
        for k in range(count):
            raw[:, k] = entries.get((self.used[equation], k), 0.0)
        return motion.filter(raw, motion.keep)

    # ---------------------------------------------------------------- the search

    def run(self) -> StructureChoice:
        """Search from the default and from the best rounding of dry friction; return the better result."""
        usual = self.structure
        start = self.grams.weighted(usual)
        fits = start.fit(usual)
        before = self._percent(self.grams.left_out(fits))
        results = []
        for rounded in steps((False, True), STAGE, lambda _: "", 0.1, 0.6):
            self.structure, self.steps = usual, []
            self.way, self.round, self.share = ("best" if rounded else "usual") + " rounding", 0, 0.0
            if rounded and not self._round_off(start, fits):
                continue
            growing, sums = list(range(len(self.used))), start
            for round_ in range(MOST_TERMS):
                self.round, self.share = round_ + 1, round_ / MOST_TERMS
                report_progress(STAGE, self.share, f"{self.tried} structures tried")
                sums = self.grams.weighted(self.structure, sums)
                if not (growing := self._add_one_each(growing, sums)):
                    break
            sums, self.share = self.grams.weighted(self.structure, sums), 1.0
            final = self._drop_idle(sums)
            results.append(
                (self._percent(self.grams.left_out(final)), self.structure, self.steps, sums, final, self.way)
            )
        after, self.structure, self.steps, sums, final, self.way = min(
            results, key=lambda result: float(np.mean(result[0]))
        )
        self._widen_lags(final.x[0])
        self._limit_loads()
        terms = self._terms()
        variance = parameter_variance(self, terms, sums, final)
        choice = StructureChoice(
            terms, variance, tuple(self.steps), tuple(before), tuple(after), self.tried, self.grams.blocks
        )
        self.share = 0.6  # Of the whole search.
        report_choice(self, choice)
        return choice

    def _percent(self, errors: Array) -> list[float]:
        rms = np.sqrt(errors.sum(axis=0) / self.grams.rows.sum(axis=0))
        return [float(x) for x in 100.0 * rms / self.deviations]

    def compare(self, equation: int, before: Array, after: Array) -> tuple[float, float, float]:
        """Return the error before and after a change, and the standard error of the difference, all in percent.

        Args:
            equation: Index of the equation.
            before: Squared errors on each block before the change.
            after: Squared errors on each block after it.
        """
        # A block with the joint at rest contributes zero error.
        rows, scale = np.maximum(self.grams.rows[:, equation], 1.0), 100.0 / self.deviations[equation]
        a, b = (float(scale * np.sqrt(x.sum() / rows.sum())) for x in (before, after))
        differences = scale * (np.sqrt(before / rows) - np.sqrt(after / rows))
        standard_error = float(np.std(differences, ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else np.inf
        return a, b, standard_error

    def _with(self, *columns: Index) -> Mask:
        out = self.structure.copy()
        for c in columns:
            out[c] = True
        return out

    def _without(self, *columns: Index | int) -> Mask:
        out = self.structure.copy()
        for c in columns:
            out[c] = False
        return out

    def open_offers(self, equation: int) -> list[Offer]:
        """Return the candidates that can still be added to an `equation`; of sensor errors only one of each kind."""
        offers = [o for o in self.offers[equation] if not o.instead]
        taken = {o.term.kind for o in offers if o.term.bias and self.structure[o.columns].all()}
        return [o for o in offers if not self.structure[o.columns].any() and o.term.kind not in taken]

    def _add_one_each(self, growing: Sequence[int], sums: Weighted) -> list[int]:
        """Run one round and return the joints that added a term.

        A joint without a useful candidate is finished: changes of other joints hardly affect its candidates.
        """
        fits = sums.fit(self.structure)
        errors = self.grams.left_out(fits)
        taken: dict[int, Index] = {}
        for e in growing:
            offers = self.open_offers(e)
            columns = [o.columns for o in offers]
            estimates, trials = sums.extended(fits, e, columns)
            self.tried += len(offers)
            for k, x in enumerate(estimates[0].T):
                # In the fit to all blocks, friction must dissipate and springs must pull back.
                term, own = offers[k].term, x[columns[k]]
                if np.any(self.grams.bounded[columns[k]] & ~(own > 0.0)):
                    trials[k] = np.nan
                if isinstance(term, Lag) and not term.is_shift(float(own[0])):
                    trials[k] = np.nan
            totals = trials.sum(axis=1)
            best, least = None, LEAST_GAIN
            for k in np.argsort(totals)[: np.count_nonzero(totals < np.inf)]:
                step = self._step(e, offers[k], errors[:, e], trials[k])
                if best is None or step.taken:
                    best, least = step, self._least(offers[k])
                if step.taken:
                    taken[e] = offers[k].columns
                if step.taken or step.before_percent - step.after_percent <= LEAST_GAIN * step.before_percent:
                    break
            if best is not None:
                self.steps.append(best)
                rows = candidate_rows(self, e, offers, errors[:, e], trials)
                report_step(self, best, reason(best, least, MIN_ERRORS), rows)
        self.structure = self._with(*taken.values())
        return list(taken)

    def _step(self, equation: int, offer: Offer, before: Array, after: Array) -> StructureStep:
        """Return the gain of a candidate, and whether it is large enough."""
        a, b, standard_error = self.compare(equation, before, after)
        worth = a - b > max(MIN_ERRORS * standard_error, self._least(offer) * a)
        return StructureStep(self.names[equation], f"+ {term_text(offer.term)}", a, b, standard_error, worth)

    @staticmethod
    def _least(offer: Offer) -> float:
        """Return the minimum gain of a candidate as a share of its joint's error."""
        return FIRM_GAIN if offer.term.of_position else LEAST_GAIN

    def _round_off(self, sums: Weighted, fits: Fits) -> bool:
        """Give each joint's dry friction the rounding that predicts best; return whether any changed.

        No parameter is added, so the gain need only exceed its standard error.
        """
        errors = self.grams.left_out(fits)
        changes: list[tuple[int, Index]] = []
        for e, joint in enumerate(self.used):
            offers = [o for o in self.offers[e] if o.instead]
            if not offers:
                continue
            self.tried += len(offers)
            without = fits.less(np.array([self.usual_dry[joint][1]]), self.grams.bounded)
            trials = sums.extended(without, e, [o.columns for o in offers])[1]
            totals = trials.sum(axis=1)
            if np.all(np.isnan(totals)):
                continue
            best = int(np.nanargmin(totals))
            after, offer = trials[best], offers[best]
            a, b, standard_error = self.compare(e, errors[:, e], after)
            worth = a - b > MIN_ERRORS * standard_error
            self.steps.append(StructureStep(self.names[e], f"= {term_text(offer.term)}", a, b, standard_error, worth))
            text = reason(self.steps[-1], 0.0, MIN_ERRORS)
            report_step(self, self.steps[-1], text, candidate_rows(self, e, offers, errors[:, e], trials))
            changes += [(self.usual_dry[joint][1], offer.columns)] if worth else []
        if changes:
            self.structure = self._with(*(new for _, new in changes))
            self.structure[[old for old, _ in changes]] = False
        return bool(changes)

    def _drop_idle(self, sums: Weighted) -> Fits:
        """Remove terms that later terms made redundant; return the fits of the remaining structure."""
        fits = sums.fit(self.structure)
        errors = self.grams.left_out(fits)
        for e, joint in enumerate(self.used):
            chosen = [(o.term, o.columns) for o in self.offers[e] if self.structure[o.columns].all()]
            if not chosen:
                continue
            if joint in self.usual_dry and self.structure[self.usual_dry[joint][1]]:
                chosen.append((self.usual_dry[joint][0], np.array([self.usual_dry[joint][1]])))
            before = errors[:, e]
            for term, columns in chosen if len(chosen) > 1 else ():
                self.tried += 1
                smaller = fits.less(columns, self.grams.bounded)
                after = self.grams.left_out_of(e, smaller.x[:, :, None])[:, 0]
                a, b, standard_error = self.compare(e, before, after)
                # A parameter at its bound changes the error only by rounding.
                if b - a <= max(min(standard_error, 0.5 * LEAST_GAIN * a), _ROUNDING * a):
                    self.steps.append(StructureStep(self.names[e], f"- {term_text(term)}", a, b, standard_error, True))
                    report_step(self, self.steps[-1], "is redundant: the error without it is no larger")
                    self.structure, fits, before = self._without(columns), smaller, after
                    errors = self.grams.left_out(fits)
        return fits

    def _widen_lags(self, x: Array) -> None:
        """Widen all lags so that the longest of them is still a pure time shift."""
        chosen = (o for offers in self.offers for o in offers if isinstance(o.term, Lag))
        late = max((abs(float(x[o.columns[0]])) for o in chosen), default=0.0)
        for offers in self.offers:
            offers[:] = [
                replace(o, term=o.term.widened_to_shift(late)) if isinstance(o.term, Lag) else o for o in offers
            ]

    def _limit_loads(self) -> None:
        """Limit load-dependent friction at the largest load in the logs, where the data end."""
        chosen = [o for offers in self.offers for o in offers if self.structure[o.columns].all()]
        if not any(isinstance(o.term, LoadedTerm) for o in chosen):
            return
        largest = largest_loads(self.study, self.reference)
        for joint, offers in zip(self.used, self.offers, strict=True):
            limit = float(largest[joint])
            offers[:] = [
                replace(o, term=replace(o.term, load_limit=limit)) if isinstance(o.term, LoadedTerm) else o
                for o in offers
            ]

    def _terms(self) -> Terms:
        """Return the default terms that were not replaced and the selected ones, grouped by term."""
        replaced = {(t, self.robot.joint_names[j]) for j, (t, c) in self.usual_dry.items() if not self.structure[c]}
        defaults: list[Term] = []
        for term in self.study.terms.terms:
            names = self.robot.joint_names if term.where is None else term.where
            left = tuple(n for n in names if (term, n) not in replaced)
            if left:
                defaults.append(term if len(left) == len(names) else replace(term, where=left))
        chosen: dict[Term, list[str]] = {}
        for e, offers in enumerate(self.offers):
            for offer in offers:
                if self.structure[offer.columns].all():
                    chosen.setdefault(replace(offer.term, where=None), []).append(self.names[e])
        return Terms(self.robot, (*defaults, *(replace(t, where=tuple(n)) for t, n in chosen.items())))
