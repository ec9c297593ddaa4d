"""The terms of every joint, found from the identification logs alone by left-out blocks.

One pass leaves, for every block of time, the Gram matrix of the rows over the usual columns and all candidates of a
joint; every structure is then a small system of equations. Candidates stand on their terms (`Term.candidates`); nearly
all of them saturate and have a sign, so that they cannot run away on a motion that is faster or larger than the logs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.dynamics.model import Model
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.identification._blocks import BlockGrams, Structure
from steelyard.parameters.friction import DryTerm
from steelyard.parameters.term import TERMS, Excited, Term
from steelyard.parameters.terms import Terms
from steelyard.regression.observe import observe, standstill_rows
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion
from steelyard.study import Study

# Blocks of time that are left out in turn; few enough that the others still excite everything.
BLOCKS = 5
# From this many logs on, whole logs are left out: what changes between logs is what a model meets next.
ENOUGH_LOGS = 3
# A term must lower its joint's error on left-out blocks by more than this part, and by more than its own doubt (one
# standard error over the blocks).
LEAST_GAIN = 0.02
# Terms that a joint may be given beside the usual ones; later ones gain next to nothing.
MOST_TERMS = 4
# The usual dry friction is also tried as a jump, and rounded off at this part of its usual speed. What looks rounder
# than usual is friction that remembers, and is offered as such.
ROUNDINGS = (0.0, 0.3)


@dataclass(frozen=True)
class Step:
    """One joint's best offer of a round.

    Its error on left-out blocks (% of the torque's standard deviation) before and after, the standard error of the
    difference, and whether it was taken.
    """

    joint: str
    change: str
    before_percent: float
    after_percent: float
    doubt_percent: float
    taken: bool


@dataclass(frozen=True, eq=False)
class FoundStructure:
    """What the search tried and chose.

    Attributes:
        terms: the chosen terms, bound to the robot.
        steps: what was offered, joint by joint and round by round.
        before_percent: of each joint, the error on left-out blocks with the usual terms, % of the torque's deviation.
        after_percent: the same with the chosen ones.
        tried: how many structures were compared.
        blocks: how many blocks were left out in turn.
    """

    terms: Terms
    steps: tuple[Step, ...]
    before_percent: tuple[float, ...]
    after_percent: tuple[float, ...]
    tried: int
    blocks: int

    @property
    def sentence(self) -> str:
        """The search in one sentence."""
        head = f"{self.tried} structures of friction and drive tried, {self.blocks} blocks left out in turn"
        if not any(s.taken for s in self.steps):
            return f"{head}: the usual terms stand."
        return (
            f"{head}: on what was left out {np.mean(self.after_percent):.2f} % of the torques' standard deviations "
            f"instead of {np.mean(self.before_percent):.2f} % with the usual terms."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "blocks": self.blocks,
            "left_out_error_percent": {"usual": list(self.before_percent), "chosen": list(self.after_percent)},
            "steps": [asdict(s) for s in self.steps],
        }


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


@dataclass(frozen=True)
class _Offer:
    """A candidate of one joint: its term there, and its columns among the joint's candidates.

    `signed`: it takes energy, so that its parameters are positive; `instead`: it takes the usual dry friction's place.
    """

    term: Term
    columns: tuple[int, ...]
    signed: bool
    instead: bool


class _Search:
    def __init__(self, study: Study, reference: Model) -> None:
        self.study, self.robot, self.base, self.reference = study, study.robot, study.base, reference
        self.used = [int(j) for j in np.flatnonzero(self.robot.torque_used)]
        self.names = [self.robot.joint_names[j] for j in self.used]
        numbered = [(k, m) for k in range(len(study.beginnings)) for m in study.first_motions(k) if m.long_enough]
        motions = [m for _, m in numbered]
        rows = Rows(study.dynamics, self.base.independent)
        tables = [_tables(study, rows, m) for m in motions]
        labels = _labels([(k, m.rows) for k, m in numbered])
        self.blocks = 1 + max(int(one.max()) for one in labels)
        shared = np.ones(self.base.rank, dtype=bool)
        self.usual_dry = self._usual_dry()
        self.offers = [self._offers(j, motions) for j in self.used]
        own = [[o.signed for o in offers for _ in o.columns] for offers in self.offers]
        self.grams = BlockGrams(rows.equations, self.base.independent, own, self.blocks, self._bounded())
        for m, table, label in zip(motions, tables, labels, strict=True):
            rigid = self.reference.rigid_torque(m.q, m.dq, m.ddq)
            out = standstill_rows(study.dynamics, m)
            for e, part in enumerate(table):
                stays = slice(None) if out is None else ~out[m.keep, self.used[e]]
                self.grams.add(e, part[stays], self._candidates(m, rigid, e)[stays], label[stays])
        self.deviations = self.grams.deviations
        self.structure = Structure(shared, ((),) * len(self.used))
        self.tried = 1
        self.steps: list[Step] = []

    def _bounded(self) -> NDArray[np.bool_]:
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

    def _offers(self, joint: int, motions: Sequence[Motion]) -> list[_Offer]:
        """What may be tried on a joint: other roundings of its dry friction first, then what the terms offer."""
        name, kind = self.robot.joint_names[joint], self.robot.joints[joint].kind
        speed = float(np.quantile(np.abs(np.concatenate([m.dq[:, joint] for m in motions])), 0.95))
        low, high = (f([f(m.q[:, joint]) for m in motions]) for f in (np.min, np.max))
        excited = Excited(kind, speed, float(high - low), self.study.cutoff_hz)
        terms: list[tuple[Term, bool]] = []
        if joint in self.usual_dry:
            usual = self.usual_dry[joint][0]
            terms += [(other, True) for times in ROUNDINGS if (other := usual.rounded(kind, times)) != usual]
        terms += [(term, False) for _, cls in TERMS.items() for term in cls.candidates(excited)]
        out, first = [], 0
        for term, instead in terms:
            columns = tuple(range(first, first + len(term.columns)))
            out.append(_Offer(replace(term, where=(name,)), columns, term.dissipative, instead))
            first += len(columns)
        return out

    def _candidates(self, motion: Motion, rigid: Array, equation: int) -> Array:
        """The columns of an equation's candidates at the motion's rows, through its filter."""
        terms = Terms(self.robot, tuple(o.term for o in self.offers[equation]))
        history = terms.along(motion.q, motion.dq, motion.filter.period, rigid)
        signals = (list(x.T) for x in (motion.q, motion.dq, motion.ddq, history))
        entries = terms.torque(*signals)
        count = sum(len(t.columns) for t in terms.terms)
        raw = np.zeros((len(motion.t), count))
        for k in range(count):
            raw[:, k] = entries.get((self.used[equation], k), 0.0)
        return motion.filter(raw, motion.keep)

    # ---------------------------------------------------------------- the search

    def found(self) -> FoundStructure:
        """Search from the usual rounding of dry friction on, and from the best; keep what predicts better."""
        usual = self.structure
        before = self._percent(self._errors(usual))
        ways = []
        for rounded in (False, True):
            self.structure, self.steps = usual, []
            if rounded and not self._round_off():
                continue
            for _ in range(MOST_TERMS):
                if not self._take_one_each():
                    break
            self._drop_idle()
            ways.append((self._percent(self._errors(self.structure)), self.structure, self.steps))
        after, self.structure, self.steps = min(ways, key=lambda way: float(np.mean(way[0])))
        return FoundStructure(
            self._terms(), tuple(self.steps), tuple(before), tuple(after), self.tried, self.blocks
        )  # fmt: skip

    def _errors(self, structure: Structure) -> Array:
        """Squared errors on left-out blocks, `(blocks, equations)`."""
        _, weights = self.grams.weighted(structure)
        self.tried += 1
        return self.grams.left_out(structure, weights)[1]

    def _percent(self, errors: Array) -> list[float]:
        rms = np.sqrt(errors.sum(axis=0) / self.grams.rows.sum(axis=0))
        return [float(x) for x in 100.0 * rms / self.deviations]

    def _compare(self, equation: int, before: Array, after: Array) -> tuple[float, float, float, float]:
        """Of an equation's squared errors: per cent before and after, the gain as a part, and the doubt in per cent."""
        # A joint may stand throughout a block, which then has no error.
        rows, scale = np.maximum(self.grams.rows[:, equation], 1), 100.0 / self.deviations[equation]
        a, b = (float(scale * np.sqrt(x.sum() / rows.sum())) for x in (before, after))
        differences = scale * (np.sqrt(before / rows) - np.sqrt(after / rows))
        doubt = float(np.std(differences, ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else np.inf
        return a, b, 1.0 - b / max(a, 1e-300), doubt

    def _worth(self, a: float, b: float, gain: float, doubt: float) -> bool:
        return gain > LEAST_GAIN and a - b > doubt

    def _take_one_each(self) -> bool:
        """A round: every joint takes its best candidate if it is worth it; whether any did."""
        fit, weights = self.grams.weighted(self.structure)
        fits, errors = self.grams.left_out(self.structure, weights)
        taken = False
        structure = self.structure
        for e, offers in enumerate(self.offers):
            own = self.structure.own[e]
            best: tuple[_Offer, Array] | None = None
            for offer in offers:
                if offer.instead or set(offer.columns) & set(own) or self._excluded(offer, e):
                    continue
                given = self.grams.coefficients(fit, e, offer.columns, weights[e])
                self.tried += 1
                if given is None or (offer.signed and np.any(given <= 0.0)):
                    continue
                trial = self.grams.extended(fits, e, offer.columns, weights[e])
                if np.all(np.isfinite(trial)) and (best is None or trial.sum() < best[1].sum()):
                    best = offer, trial
            if best is None:
                continue
            a, b, gain, doubt = self._compare(e, errors[:, e], best[1])
            worth = self._worth(a, b, gain, doubt)
            self.steps.append(Step(self.names[e], f"+ {_text(best[0].term)}", a, b, doubt, worth))
            if worth:
                structure = structure.with_own(e, (*own, *best[0].columns))
                taken = True
        self.structure = structure
        return taken

    def _excluded(self, offer: _Offer, equation: int) -> bool:
        """One of a kind that is not a sum of its members: a lag is of one order."""
        if not offer.term.bias:
            return False
        chosen = set(self.structure.own[equation])
        return any(set(o.columns) & chosen for o in self.offers[equation] if o.term.kind == offer.term.kind)

    def _round_off(self) -> bool:
        """Give the usual dry friction of each joint the rounding that predicts best; whether any is not the usual one.

        No parameter is added, so that no least gain is asked for, only that it is more than its doubt.
        """
        _, weights = self.grams.weighted(self.structure)
        errors = self.grams.left_out(self.structure, weights)[1]
        structure = self.structure
        for e, joint in enumerate(self.used):
            if joint not in self.usual_dry:
                continue
            column = self.usual_dry[joint][1]
            trials = []
            for offer in (o for o in self.offers[e] if o.instead):
                self.tried += 1
                trial = self.structure.without(column).with_own(e, offer.columns)
                trials.append((self.grams.left_out(trial, weights)[1][:, e], offer))
            if not trials:
                continue
            after, offer = min(trials, key=lambda t: float(t[0].sum()))
            a, b, _, doubt = self._compare(e, errors[:, e], after)
            self.steps.append(Step(self.names[e], f"= {_text(offer.term)}", a, b, doubt, a - b > doubt))
            if a - b > doubt:
                structure = structure.without(column).with_own(e, offer.columns)
        changed, self.structure = structure is not self.structure, structure
        return changed

    def _drop_idle(self) -> None:
        """Take away, joint by joint, what the terms that came later have made idle."""
        _, weights = self.grams.weighted(self.structure)
        for e, joint in enumerate(self.used):
            for offer in [o for o in self.offers[e] if set(o.columns) <= set(self.structure.own[e])]:
                rest = tuple(c for c in self.structure.own[e] if c not in offer.columns)
                if rest:
                    self._drop(e, self.structure.with_own(e, rest), _text(offer.term), weights)
            if joint in self.usual_dry and self.structure.own[e]:
                term, column = self.usual_dry[joint]
                if self.structure.shared[column]:
                    self._drop(e, self.structure.without(column), _text(term), weights)

    def _drop(self, equation: int, smaller: Structure, what: str, weights: Array) -> None:
        self.tried += 1
        before, after = (self.grams.left_out(s, weights)[1][:, equation] for s in (self.structure, smaller))
        a, b, _, doubt = self._compare(equation, before, after)
        if b - a <= min(doubt, 0.5 * LEAST_GAIN * a):
            self.steps.append(Step(self.names[equation], f"- {what}", a, b, doubt, True))
            self.structure = smaller

    def _terms(self) -> Terms:
        """The usual terms without what was replaced, and what was chosen, joints with the same term together."""
        gone = {
            (term, self.robot.joint_names[joint])
            for joint, (term, column) in self.usual_dry.items()
            if not self.structure.shared[column]
        }
        kept: list[Term] = []
        for term in self.study.terms.terms:
            names = self.robot.joint_names if term.where is None else term.where
            left = tuple(n for n in names if (term, n) not in gone)
            if len(left) == len(names):
                kept.append(term)
            elif left:
                kept.append(replace(term, where=left))
        chosen: dict[Term, list[str]] = {}
        for e, own in enumerate(self.structure.own):
            for offer in self.offers[e]:
                if set(offer.columns) <= set(own):
                    chosen.setdefault(replace(offer.term, where=None), []).append(self.names[e])
        return Terms(self.robot, (*kept, *(replace(t, where=tuple(n)) for t, n in chosen.items())))


def _tables(study: Study, rows: Rows, motion: Motion) -> list[Array]:
    """[A y] of every equation at the motion's rows, through its filter."""
    parts: list[list[Array]] = [[] for _ in rows.equations]
    whole = replace(motion, fit_standing=True)  # rows of standstill are left out later, with their candidates
    for block in observe(study.dynamics, study.base, lambda: (whole,), rows=rows).source():
        parts[block.equation].append(np.column_stack([block.A, block.y]))
    return [np.concatenate(p) for p in parts]


def _labels(motions: Sequence[tuple[int, int]]) -> list[NDArray[np.int64]]:
    """To which block each row belongs, motion by motion, for motions given as (log, rows)."""
    logs = sorted({log for log, _ in motions})
    if len(logs) >= ENOUGH_LOGS:
        groups = min(len(logs), 2 * BLOCKS)
        return [np.full(rows, logs.index(log) * groups // len(logs), dtype=np.int64) for log, rows in motions]
    total = sum(rows for _, rows in motions)
    numbers = np.arange(total, dtype=np.int64) * BLOCKS // total
    return np.split(numbers, np.cumsum([rows for _, rows in motions])[:-1])


def _text(term: Term) -> str:
    options = ", ".join(f"{k} {v:.3g}" for k, v in term.options.items() if isinstance(v, float))
    return f"{term.kind} ({options})" if options else term.kind
