"""The terms of every joint, found from the identification logs alone by left-out blocks.

One pass leaves, for every block of time, the Gram matrix of the rows over the usual columns and all candidates of a
joint; every structure is then a small system of equations. Candidates stand on their terms (`Term.candidates`); nearly
all of them saturate and have a sign, so that they cannot run away on a motion that is faster or larger than the logs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.identification._blocks import BlockGrams, Fit, Index, Mask, Weighted
from steelyard.identification._doubt import Doubt, jackknife
from steelyard.identification._search_rows import ROUNDINGS, Offer, in_step, labels, tables, term_text, thinned
from steelyard.identification.structure import FoundStructure, StructureStep
from steelyard.parameters.friction import DryTerm, Viscous
from steelyard.parameters.history import Lag
from steelyard.parameters.loads import Rotor
from steelyard.parameters.term import TERMS, Excited, Term
from steelyard.parameters.terms import Terms
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
# Of the squared error that is left, the part that is taken to be friction of a shape that was not offered, not noise.
# Chosen by coverage on simulated arms (docs/theory/structure.md).
_MISFIT = 0.05
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
        return _Search(study, reference).found()


class _Search:
    def __init__(self, study: Study, reference: Model) -> None:
        self.study, self.robot, self.base = study, study.robot, study.base
        self.used = [int(j) for j in np.flatnonzero(self.robot.torque_used)]
        self.names = [self.robot.joint_names[j] for j in self.used]
        beginnings = ((k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k))
        numbered = [(k, in_step(m)) for k, m in beginnings if m.long_enough]
        motions = [m for _, m in numbered]
        rows = Rows(study.dynamics, self.base.independent)
        numbers = labels([(k, m.rows) for k, m in numbered])
        self.usual_dry = self._usual_dry()
        self.offers: list[list[Offer]] = []
        size, bounded = self.base.rank, [self._bounded()]
        for j in self.used:
            self.offers.append(self._offers(j, motions, size))
            size += sum(len(o.columns) for o in self.offers[-1])
            bounded += [o.bounded for o in self.offers[-1]]
        own = [sum(len(o.columns) for o in offers) for offers in self.offers]
        blocks = 1 + max(int(one.max()) for one in numbers)
        self.grams = BlockGrams(rows.equations, self.base.independent, own, blocks, np.concatenate(bounded))
        for m, label in zip(motions, numbers, strict=True):
            out, fewer = standstill_rows(study.dynamics, m), thinned(m)
            rigid = reference.rigid_torque(fewer.q, fewer.dq, fewer.ddq)
            for e, table in enumerate(tables(study, rows, m)):
                stays = slice(None) if out is None else ~out[m.keep, self.used[e]]
                self.grams.add(e, table[stays], self._candidates(fewer, rigid, e)[stays], label[stays])
        self.deviations = self.grams.deviations
        self.structure = np.arange(size) < self.base.rank
        self.tried = 1
        self.steps: list[StructureStep] = []

    def _bounded(self) -> Mask:
        """Which base parameters cannot be negative: those that are a single parameter of a term with such a bound."""
        lower = np.concatenate([np.full(self.robot.inertial_count, -np.inf), self.study.terms.lower])
        alone = np.count_nonzero(self.base.matrix, axis=1) == 1
        return np.asarray(alone & (lower[list(self.base.independent)] == 0.0))

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
        excited = Excited(kind, speed, float(high - low), self.study.cutoff_hz, self._longest_way(joint) / (high - low))
        terms: list[tuple[Term, bool]] = []
        if joint in self.usual_dry:
            usual = self.usual_dry[joint][0]
            terms += [(other, True) for times in ROUNDINGS if (other := usual.rounded(kind, times)) != usual]
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
        terms = Terms(self.robot, tuple(o.term for o in self.offers[equation]))
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
        before = self._percent(start.left_out(usual)[1])
        ways = []
        for rounded in (False, True):
            self.structure, self.steps = usual, []
            if rounded and not self._round_off(start):
                continue
            for _ in range(MOST_TERMS):
                if not self._take_one_each():
                    break
            sums = self.grams.weighted(self.structure)
            self._drop_idle(sums)
            after = self._percent(sums.left_out(self.structure)[1])
            ways.append((after, self.structure, self.steps, sums))
        after, self.structure, self.steps, sums = min(ways, key=lambda way: float(np.mean(way[0])))
        self._widen_lags(sums.fit(self.structure))
        terms = self._terms()
        doubt = self._doubt(terms, sums)
        return FoundStructure(
            terms, doubt, tuple(self.steps), tuple(before), tuple(after), self.tried, self.grams.blocks
        )  # fmt: skip

    def _percent(self, errors: Array) -> list[float]:
        rms = np.sqrt(errors.sum(axis=0) / self.grams.rows.sum(axis=0))
        return [float(x) for x in 100.0 * rms / self.deviations]

    def _compare(self, equation: int, before: Array, after: Array) -> tuple[float, float, float]:
        """Of an equation's squared errors on each block: per cent before and after, and the difference's doubt."""
        # A joint may stand throughout a block, which then has no error.
        rows, scale = np.maximum(self.grams.rows[:, equation], 1.0), 100.0 / self.deviations[equation]
        a, b = (float(scale * np.sqrt(x.sum() / rows.sum())) for x in (before, after))
        differences = scale * (np.sqrt(before / rows) - np.sqrt(after / rows))
        doubt = float(np.std(differences, ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else np.inf
        return a, b, doubt

    def _with(self, *columns: Index) -> Mask:
        out = self.structure.copy()
        out[np.concatenate(columns)] = True
        return out

    def _without(self, *columns: Index | int) -> Mask:
        out = self.structure.copy()
        for c in columns:
            out[c] = False
        return out

    def _open(self, equation: int) -> list[Offer]:
        """What can still be added to a joint; of what may be the sensor's, one of each kind."""
        offers = [o for o in self.offers[equation] if not o.instead]
        taken = {o.term.kind for o in offers if o.term.bias and self.structure[o.columns].all()}
        return [o for o in offers if not self.structure[o.columns].any() and o.term.kind not in taken]

    def _take_one_each(self) -> bool:
        """A round: every joint takes its best candidate if it is worth it; whether any did."""
        sums = self.grams.weighted(self.structure)
        whole = sums.fit(self.structure)
        fits, errors = sums.left_out(self.structure)
        taken = []
        for e in range(len(self.used)):
            offers = self._open(e)
            columns = [o.columns for o in offers]
            trials = sums.extended(fits, e, columns)
            self.tried += len(offers)
            for k, x in enumerate(sums.with_more(whole, columns).T):
                # What takes energy must do so in the fit to everything, and no spring pushes.
                if np.any(self.grams.bounded[columns[k]] & ~(x[columns[k]] > 0.0)):
                    trials[k] = np.nan
            totals = trials.sum(axis=1)
            steps = [
                self._step(e, offers[k], errors[:, e], trials[k]) for k in np.argsort(totals) if totals[k] < np.inf
            ]
            best = next((k for k, (_, step) in enumerate(steps) if step.taken), 0)
            self.steps += [step for _, step in steps[best : best + 1]]
            taken += [o.columns for o, step in steps[best : best + 1] if step.taken]
        if taken:
            self.structure = self._with(*taken)
        return bool(taken)

    def _step(self, equation: int, offer: Offer, before: Array, after: Array) -> tuple[Offer, StructureStep]:
        """What an equation gains by an offer, and whether that is worth it."""
        a, b, doubt = self._compare(equation, before, after)
        least = FIRM_GAIN if offer.term.of_position else LEAST_GAIN
        worth = a - b > max(DOUBTS * doubt, least * a)
        return offer, StructureStep(self.names[equation], f"+ {term_text(offer.term)}", a, b, doubt, worth)

    def _round_off(self, sums: Weighted) -> bool:
        """Give the usual dry friction of each joint the rounding that predicts best; whether any is not the usual one.

        No parameter is added, so that no least gain is asked for, only that it is more than its doubt.
        """
        errors = sums.left_out(self.structure)[1]
        changes: list[tuple[int, Index]] = []
        for e, joint in enumerate(self.used):
            trials = []
            for offer in (o for o in self.offers[e] if o.instead):
                self.tried += 1
                trial = self._with(offer.columns)
                trial[self.usual_dry[joint][1]] = False
                trials.append((sums.left_out(trial)[1][:, e], offer))
            if not trials:
                continue
            after, offer = min(trials, key=lambda t: float(t[0].sum()))
            a, b, doubt = self._compare(e, errors[:, e], after)
            worth = a - b > DOUBTS * doubt
            self.steps.append(StructureStep(self.names[e], f"= {term_text(offer.term)}", a, b, doubt, worth))
            changes += [(self.usual_dry[joint][1], offer.columns)] if worth else []
        if changes:
            self.structure = self._with(*(new for _, new in changes))
            self.structure[[old for old, _ in changes]] = False
        return bool(changes)

    def _drop_idle(self, sums: Weighted) -> None:
        """Take away, joint by joint, what the terms that came later have made idle."""
        for e, joint in enumerate(self.used):
            chosen = [(o.term, o.columns) for o in self.offers[e] if self.structure[o.columns].all()]
            if not chosen:
                continue
            if joint in self.usual_dry and self.structure[self.usual_dry[joint][1]]:
                chosen.append((self.usual_dry[joint][0], np.array([self.usual_dry[joint][1]])))
            before = sums.left_out(self.structure)[1][:, e]
            for term, columns in chosen if len(chosen) > 1 else ():
                self.tried += 1
                smaller = self._without(columns)
                after = sums.left_out(smaller)[1][:, e]
                a, b, doubt = self._compare(e, before, after)
                # What stands at its bound changes nothing but rounding.
                if b - a <= max(min(doubt, 0.5 * LEAST_GAIN * a), _ROUNDING * a):
                    self.steps.append(StructureStep(self.names[e], f"- {term_text(term)}", a, b, doubt, True))
                    self.structure, before = smaller, after

    def _widen_lags(self, whole: Fit) -> None:
        """Let lags hold as far as the longest of them is a mere shift in time."""
        chosen = (o for offers in self.offers for o in offers if isinstance(o.term, Lag))
        late = max((abs(float(whole.x[o.columns[0]])) for o in chosen), default=0.0)
        for offers in self.offers:
            offers[:] = [
                replace(o, term=o.term.as_far_as_a_shift(late)) if isinstance(o.term, Lag) else o for o in offers
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

    # ---------------------------------------------------------------- how far to believe it

    def _doubt(self, terms: Terms, sums: Weighted) -> Doubt:
        """How far parameters wander without a block each, and between structures that are about as good."""
        whole = sums.fit(self.structure)
        fits, errors = sums.left_out(self.structure)
        between = np.zeros(self.grams.size)
        for e, late in enumerate(self._lags(whole)):
            between += self._by_others(e, sums, whole, fits, errors[:, e]) + self._by_late_friction(e, late, whole)
            for offer in (o for o in self.offers[e] if self.structure[o.columns].all() and not o.instead):
                less = self._without(offer.columns)
                a, b, _ = self._compare(e, errors[:, e], sums.left_out(less)[1][:, e])
                # What is still not explained, but for noise, leans on the parameters as what the term explains would.
                left = min(_MISFIT * a**2 / max(b**2 - a**2, 1e-300), 1.0)
                between += left * (sums.fit(less).x - whole.x) ** 2
        wander = jackknife([fit.x for fit in fits])
        names = self._names(terms)
        by_name = [{names[c]: float(v[c]) for c in np.flatnonzero(self.structure)} for v in (wander, between)]
        return Doubt(by_name[0], by_name[1], self.grams.blocks)

    def _by_others(self, equation: int, sums: Weighted, whole: Fit, fits: Sequence[Fit], errors: Array) -> Array:
        """How far parameters move, squared, if a joint had one term more that predicts about as well as none.

        The mean over all of them; in full by the best one, where it predicts better by more than its doubt and was not
        taken only because it gains little: what it explains leans on the parameters.
        """
        # Of shapes over the position there are many that do next to nothing; they would thin the mean out.
        more = [o.columns for o in self._open(equation) if not o.term.of_position]
        near, best, least = [], np.zeros(self.grams.size), np.inf
        trials = zip(more, sums.with_more(whole, more).T, sums.extended(fits, equation, more), strict=True)
        for columns, x, after in trials:
            # A candidate that stands at its bound is no other structure.
            if not np.all(np.isfinite(after)) or np.all(x[columns] == 0.0):
                continue
            a, b, doubt = self._compare(equation, errors, after)
            moved = (x - whole.x) ** 2
            if b - a <= doubt:
                near.append(moved)
            if a - b > doubt and b < least:
                best, least = moved, b
        return np.maximum(np.mean(near, axis=0), best) if near else best

    def _lags(self, whole: Fit) -> list[float]:
        """How late each joint's torque is, s; where none was found, as late as the others, since drives are alike."""
        own = [[whole.x[o.columns[0]] for o in offers if isinstance(o.term, Lag)] for offers in self.offers]
        found = [float(sum(x)) for x in own]
        common = float(np.median([x for x in found if x])) if any(found) else 0.0
        return [x or common for x in found]

    def _by_late_friction(self, equation: int, late: float, whole: Fit) -> Array:
        """How far parameters lean, squared, because friction is late as well: Td·Fv looks like a rotor."""
        joint, out = self.used[equation], np.zeros(self.grams.size)
        here = self.study.terms.per_parameter(lambda t, c: type(t) if (c.side, c.index) == ("joint", joint) else None)
        if late and Rotor in here and Viscous in here:
            rotor, drag = (self.base.matrix[:, self.robot.inertial_count + here.index(k)] for k in (Rotor, Viscous))
            damping = float(whole.x[: self.base.rank] @ drag) / max(float(drag @ drag), 1e-300)
            out[: self.base.rank] = (late * damping * rotor) ** 2
        return out

    def _names(self, terms: Terms) -> list[str]:
        """What `terms` call the parameters of all columns; those that the structure has not have none."""
        after = iter(terms.parameters)
        placed: dict[tuple[Term, str, int], list[str]] = {}
        for term, c in terms.placed:
            placed[replace(term, where=None), c.side, c.index] = [next(after).name for _ in term.columns]
        usual = [p.name for p in self.base.parameters[: self.robot.inertial_count]]
        for term, c in self.study.terms.placed:
            usual += placed.get((replace(term, where=None), c.side, c.index), [""] * len(term.columns))
        names = [usual[c] for c in self.base.independent]
        for joint, offers in zip(self.used, self.offers, strict=True):
            for o in offers:
                names += placed.get((replace(o.term, where=None), "joint", joint), [""] * len(o.columns))
        return names
