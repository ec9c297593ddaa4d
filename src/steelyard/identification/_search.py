"""The terms of every joint, found from the identification logs alone by left-out blocks.

One pass leaves, for every block of time, the Gram matrix of the rows over the usual columns and all candidates of a
joint; every structure is then a small system of equations. Candidates stand on their terms (`Term.candidates`); nearly
all of them saturate and have a sign, so that they cannot run away on a motion that is faster, larger or heavier than
the logs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.progress import steps, tell_progress
from steelyard.identification._load_range import largest_loads
from steelyard.identification._search_doubt import doubt_of
from steelyard.identification._search_offers import ROUNDINGS, Offer, term_text
from steelyard.identification._search_told import STAGE, tell_chosen, tell_step, tried, why
from steelyard.identification.structure import FoundStructure, StructureStep
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

# A term must lower its joint's error on left-out blocks by more than this part, and by more than so many of its own
# doubts (standard errors over the blocks).
LEAST_GAIN = 0.02
DOUBTS = 1.0
# A shape over the position must gain more: it goes on where the logs have not been, blocks of one motion come back to
# the same positions, and what is described wrongly or drifts looks like one.
FIRM_GAIN = 0.2
# Terms that a joint may be given beside the usual ones; later ones gain next to nothing.
MOST_TERMS = 4
# Left-out errors that differ by less than this part are the same.
_ROUNDING = 1e-6


def search(study: Study, reference: Model) -> FoundStructure:
    """Choose the terms of every joint by left-out blocks of the beginnings of the study's logs.

    Round by round, every joint takes the candidate that lowers its left-out error most, if that gains more than its
    doubt; at last what has become idle is taken away again. This is done from the usual rounding of dry friction on,
    and from the best one, down to a jump; what predicts better is kept. Where there are three logs or more, whole logs
    are left out.

    Args:
        study: with the usual terms.
        reference: a model with them, whose links and rotors say what the joints carry.
    """
    with one_blas_thread():
        return Search(study, reference).found()


class Search:
    """The state of a search: what is offered, the sums over the rows, and the structure so far."""

    def __init__(self, study: Study, reference: Model) -> None:
        self.study, self.robot, self.base, self.reference = study, study.robot, study.base, reference
        self.used = [int(j) for j in np.flatnonzero(self.robot.torque_used)]
        self.names = [self.robot.joint_names[j] for j in self.used]
        beginnings = ((k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k))
        long = [(k, m) for k, m in beginnings if m.long_enough]
        known = study.take_tables([m for _, m in long])
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
                made = next(known, None) or tables(study.dynamics, self.base, rows, part)
                self._take_in(made, part, None if out is None else ~out[at][part.keep], next(label))
        self.deviations = self.grams.deviations
        self.structure = np.arange(size) < self.base.rank
        self.tried = 1
        self.steps: list[StructureStep] = []
        # Where the search is, for whoever watches it.
        self.way, self.round, self.share = "usual rounding", 0, 0.0

    def _take_in(self, made: Sequence[Array], motion: Motion, moving: Mask | None, labels: Index) -> None:
        """The rows `made` of a motion, those in which each joint is `moving`."""
        fewer = thin(motion)
        rigid = self.reference.rigid_torque(fewer.q, fewer.dq, fewer.ddq)
        for e, table in enumerate(made):
            stays = slice(None) if moving is None else moving[:, self.used[e]]
            self.grams.add(e, table[stays], self._candidates(fewer, rigid, e)[stays], labels[stays])

    # ---------------------------------------------------------------- candidates

    def _usual_dry(self) -> dict[int, tuple[Term, int]]:
        """By joint: the usual term of dry friction that may be rounded otherwise, and its place among the columns."""
        place = {c: k for k, c in enumerate(self.base.independent)}
        out: dict[int, tuple[Term, int]] = {}
        column = self.robot.inertial_count
        for term, c in self.study.terms.placed:
            if isinstance(term, DryTerm) and c.side == "joint" and len(term.columns) == 1 and column in place:
                out.setdefault(c.index, (term, place[column]))
            column += len(term.columns)
        return out

    def _offers(self, joint: int, motions: Sequence[Motion], first: int) -> list[Offer]:
        """What may be tried on a joint: other roundings of its dry friction, and what the terms offer."""
        name, kind = self.robot.joint_names[joint], self.robot.joints[joint].kind
        speed = float(np.quantile(np.abs(np.concatenate([m.dq[:, joint] for m in motions])), 0.95))
        low, high = (f([f(m.q[:, joint]) for m in motions]) for f in (np.min, np.max))
        excited = JointExcitation(
            kind, speed, float(high - low), self.study.cutoff_hz, self._longest_way(joint) / (high - low)
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

    def _longest_way(self, joint: int) -> float:
        """What a joint goes, forth and back, in the log in which it goes furthest, rad or m."""
        logs = (self.study.first_motions(k) for k in range(len(self.study.beginnings)))
        return max(sum(float(np.abs(np.diff(m.q[:, joint])).sum()) for m in log) for log in logs)

    def _candidates(self, motion: Motion, rigid: Array, equation: int) -> Array:
        """The columns of an equation's candidates at the motion's rows, through its filter."""
        terms = self.candidates[equation]
        history = terms.along(motion.q, motion.dq, motion.filter.period, rigid)
        entries = terms.torque(*(list(x.T) for x in (motion.q, motion.dq, motion.ddq, history)))
        count = sum(len(t.columns) for t in terms.terms)
        raw = np.zeros((len(motion.t), count))
        for k in range(count):
            raw[:, k] = entries.get((self.used[equation], k), 0.0)
        return motion.filter(raw, motion.keep)

    # ---------------------------------------------------------------- the search

    def found(self) -> FoundStructure:
        """Search from the usual rounding of dry friction on, and from the best; keep what predicts better."""
        usual = self.structure
        start = self.grams.weighted(usual)
        fits = start.fit(usual)
        before = self._percent(self.grams.left_out(fits))
        ways = []
        for rounded in steps((False, True), STAGE, lambda _: "", 0.1, 0.6):
            self.structure, self.steps = usual, []
            self.way, self.round, self.share = ("best" if rounded else "usual") + " rounding", 0, 0.0
            if rounded and not self._round_off(start, fits):
                continue
            growing, sums = list(range(len(self.used))), start
            for round_ in range(MOST_TERMS):
                self.round, self.share = round_ + 1, round_ / MOST_TERMS
                tell_progress(STAGE, self.share, f"{self.tried} structures tried")
                sums = self.grams.weighted(self.structure, sums)
                if not (growing := self._take_one_each(growing, sums)):
                    break
            sums, self.share = self.grams.weighted(self.structure, sums), 1.0
            kept = self._drop_idle(sums)
            ways.append((self._percent(self.grams.left_out(kept)), self.structure, self.steps, sums, kept, self.way))
        after, self.structure, self.steps, sums, kept, self.way = min(ways, key=lambda way: float(np.mean(way[0])))
        self._widen_lags(kept.x[0])
        self._limit_loads()
        terms = self._terms()
        doubt = doubt_of(self, terms, sums, kept)
        found = FoundStructure(
            terms, doubt, tuple(self.steps), tuple(before), tuple(after), self.tried, self.grams.blocks
        )
        self.share = 0.6  # of the whole: no way is at hand any more
        tell_chosen(self, found)
        return found

    def _percent(self, errors: Array) -> list[float]:
        rms = np.sqrt(errors.sum(axis=0) / self.grams.rows.sum(axis=0))
        return [float(x) for x in 100.0 * rms / self.deviations]

    def compare(self, equation: int, before: Array, after: Array) -> tuple[float, float, float]:
        """Of an equation's squared errors on each block: per cent before and after, and the difference's doubt."""
        # A joint may stand throughout a block, which then has no error.
        rows, scale = np.maximum(self.grams.rows[:, equation], 1.0), 100.0 / self.deviations[equation]
        a, b = (float(scale * np.sqrt(x.sum() / rows.sum())) for x in (before, after))
        differences = scale * (np.sqrt(before / rows) - np.sqrt(after / rows))
        doubt = float(np.std(differences, ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else np.inf
        return a, b, doubt

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

    def open(self, equation: int) -> list[Offer]:
        """What can still be added to a joint; of what may be the sensor's, one of each kind."""
        offers = [o for o in self.offers[equation] if not o.instead]
        taken = {o.term.kind for o in offers if o.term.bias and self.structure[o.columns].all()}
        return [o for o in offers if not self.structure[o.columns].any() and o.term.kind not in taken]

    def _take_one_each(self, growing: Sequence[int], sums: Weighted) -> list[int]:
        """A round: each of some joints takes its best candidate if it is worth it; which did.

        A joint that found nothing is done: what others take changes little of what it is offered.
        """
        fits = sums.fit(self.structure)
        errors = self.grams.left_out(fits)
        taken: dict[int, Index] = {}
        for e in growing:
            offers = self.open(e)
            columns = [o.columns for o in offers]
            found, trials = sums.extended(fits, e, columns)
            self.tried += len(offers)
            for k, x in enumerate(found[0].T):
                # What takes energy must do so in the fit to everything, and no spring pushes.
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
                tell_step(self, best, why(best, least, DOUBTS), tried(self, e, offers, errors[:, e], trials))
        self.structure = self._with(*taken.values())
        return list(taken)

    def _step(self, equation: int, offer: Offer, before: Array, after: Array) -> StructureStep:
        """What an equation gains by an offer, and whether that is worth it."""
        a, b, doubt = self.compare(equation, before, after)
        worth = a - b > max(DOUBTS * doubt, self._least(offer) * a)
        return StructureStep(self.names[equation], f"+ {term_text(offer.term)}", a, b, doubt, worth)

    @staticmethod
    def _least(offer: Offer) -> float:
        """The share of its joint's error that an offer must take away."""
        return FIRM_GAIN if offer.term.of_position else LEAST_GAIN

    def _round_off(self, sums: Weighted, fits: Fits) -> bool:
        """Give the usual dry friction of each joint the rounding that predicts best; whether any is not the usual one.

        No parameter is added, so that no least gain is asked for, only that it is more than its doubt.
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
            a, b, doubt = self.compare(e, errors[:, e], after)
            worth = a - b > DOUBTS * doubt
            self.steps.append(StructureStep(self.names[e], f"= {term_text(offer.term)}", a, b, doubt, worth))
            said = why(self.steps[-1], 0.0, DOUBTS)
            tell_step(self, self.steps[-1], said, tried(self, e, offers, errors[:, e], trials))
            changes += [(self.usual_dry[joint][1], offer.columns)] if worth else []
        if changes:
            self.structure = self._with(*(new for _, new in changes))
            self.structure[[old for old, _ in changes]] = False
        return bool(changes)

    def _drop_idle(self, sums: Weighted) -> Fits:
        """Take away, joint by joint, what the terms that came later have made idle; the fits of what is left."""
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
                a, b, doubt = self.compare(e, before, after)
                # What stands at its bound changes nothing but rounding.
                if b - a <= max(min(doubt, 0.5 * LEAST_GAIN * a), _ROUNDING * a):
                    self.steps.append(StructureStep(self.names[e], f"- {term_text(term)}", a, b, doubt, True))
                    tell_step(self, self.steps[-1], "has become idle: the error without it is no larger")
                    self.structure, fits, before = self._without(columns), smaller, after
                    errors = self.grams.left_out(fits)
        return fits

    def _widen_lags(self, x: Array) -> None:
        """Let lags hold as far as the longest of them is a mere shift in time."""
        chosen = (o for offers in self.offers for o in offers if isinstance(o.term, Lag))
        late = max((abs(float(x[o.columns[0]])) for o in chosen), default=0.0)
        for offers in self.offers:
            offers[:] = [
                replace(o, term=o.term.widened_to_shift(late)) if isinstance(o.term, Lag) else o for o in offers
            ]

    def _limit_loads(self) -> None:
        """Let friction under load grow up to the largest load of the logs: beyond it nobody has seen it."""
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
        """The usual terms without what was replaced, and what was chosen, joints with the same term together."""
        gone = {(t, self.robot.joint_names[j]) for j, (t, c) in self.usual_dry.items() if not self.structure[c]}
        kept: list[Term] = []
        for term in self.study.terms.terms:
            names = self.robot.joint_names if term.where is None else term.where
            left = tuple(n for n in names if (term, n) not in gone)
            if left:
                kept.append(term if len(left) == len(names) else replace(term, where=left))
        chosen: dict[Term, list[str]] = {}
        for e, offers in enumerate(self.offers):
            for offer in offers:
                if self.structure[offer.columns].all():
                    chosen.setdefault(replace(offer.term, where=None), []).append(self.names[e])
        return Terms(self.robot, (*kept, *(replace(t, where=tuple(n)) for t, n in chosen.items())))
