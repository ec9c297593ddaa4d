"""`fit_shapes`: Stribeck speeds and smoothing speeds, joint by joint, outside a least-squares fit of all the rest.

A model is linear in most of its parameters once the few shapes are fixed. For every shape a bank of trial values stands
in the rows as columns of their own; one pass over the logs makes the small triangle of all of them, and from then on
each trial is a least-squares problem on a few columns of that triangle (variable projection, Golub & Pereyra 1973).
From the best trials Gauss–Newton goes on, one pass over the logs per step, over all shapes at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard.dynamics.engine import Dynamics
from steelyard.errors import SteelyardError
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.parameters.loads import Custom
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.factor import Factor
from steelyard.regression.observe import observe
from steelyard.regression.rows import Rows
from steelyard.signals.prepare import Motion

_COARSE = 7
_SWEEPS = 4
# Gauss–Newton over logarithms: differences over a hundredth, steps of at most a factor of two, so many passes.
_STEP, _LONGEST, _PASSES = 0.01, 0.7, 8
# A shape is left as it was unless it lowers the sum of squares, in units of σ², by more than this.
_WORTH = 10.0


@dataclass(frozen=True)
class Shape:
    """One shape that was found: `value` in rad/s (m/s), `relative_error` as for white noise, and what it was before."""

    joint: str
    term: str
    option: str
    value: float
    relative_error: float
    before: float
    gain: float


@dataclass(frozen=True, eq=False)
class Shapes:
    """The terms with their shapes fitted, and how much of the weighted sum of squares that took away."""

    terms: Terms
    found: tuple[Shape, ...]
    lowered_percent: float


@dataclass(frozen=True, eq=False)
class _Slot:
    """A place for a shape: the term of one joint, and the trial values that stand in the bank, the first as given."""

    term: Term
    joint: str
    option: str
    trials: tuple[float, ...]

    def at(self, value: float) -> Term:
        changes: dict[str, Any] = {"where": (self.joint,), self.option: value}
        return replace(self.term, **changes)

    def trial(self, k: int) -> Term:
        """Trial k under names of its own, since a joint may have each parameter once only."""
        term = self.at(self.trials[k])
        own = tuple(replace(c, symbol=f"{c.symbol}_trial{k}_") for c in term.columns)
        return Custom(name="trial", where=(self.joint,), parameters=own, torque=term.force)


def fit_shapes(
    bound: Terms, motions: Callable[[], Iterable[Motion]], mask: float = 0.0
) -> Shapes:  # fmt: skip
    """The terms `bound` to a robot with the shapes that motions ask for; what these do not show stays as it was.

    `motions` starts a pass over them; rows slower than `mask` (rad/s, m/s) do not count.
    """
    slots, plain = _slots(bound, _top_speeds(bound, motions))
    if not slots:
        raise SteelyardError("None of the terms has a shape to fit; use stribeck or coulomb.")
    with one_blas_thread():
        bank = _Bank.of(bound, plain, slots, motions, mask)
        start = bank.cost([0] * len(slots))
        values = [s.trials[k] for s, k in zip(slots, bank.descend(), strict=True)]

        def near(at: Sequence[float]) -> _Bank:
            trials = [(v, v * np.exp(_STEP), v * np.exp(-_STEP), s.trials[0]) for s, v in zip(slots, at, strict=True)]
            around = [replace(s, trials=t) for s, t in zip(slots, trials, strict=True)]
            return _Bank.of(bound, plain, around, motions, mask, bank.weights)

        values, errors, here = _refined(near, values)
        chosen = [3 if here.gain(k) < _WORTH else 0 for k in range(len(slots))]
    found = tuple(
        Shape(
            s.joint, s.term.kind, s.option, s.trials[0] if c else v, float("nan") if c else e, s.trials[0], here.gain(k)
        )
        for k, (s, c, v, e) in enumerate(zip(slots, chosen, values, errors, strict=True))
    )
    made = [s.at(shape.value) for s, shape in zip(slots, found, strict=True)]
    return Shapes(terms(bound.robot, *plain, *made), found, 100.0 * (1.0 - here.cost(chosen) / start))


def _refined(
    near: Callable[[Sequence[float]], _Bank], start: Sequence[float]
) -> tuple[list[float], list[float], _Bank]:
    """Gauss–Newton over the logarithms of all shapes at once, one pass over the logs per step."""
    values, here = list(start), near(start)
    for _ in range(_PASSES):
        step, _ = here.newton()
        trial = [v * float(np.exp(np.clip(d, -_LONGEST, _LONGEST))) for v, d in zip(values, step, strict=True)]
        there = near(trial)
        if there.cost() >= here.cost() * (1.0 - 1e-6):
            break
        values, here = trial, there
    return values, here.newton()[1].tolist(), here


def _top_speeds(bound: Terms, motions: Callable[[], Iterable[Motion]]) -> dict[str, float]:
    speeds = np.concatenate([np.abs(m.dq[m.keep]) for m in motions()])
    return dict(zip(bound.robot.joint_names, np.quantile(speeds, 0.995, axis=0).tolist(), strict=True))


def _slots(bound: Terms, tops: dict[str, float]) -> tuple[list[_Slot], list[Term]]:
    """The shapes of terms on joints, and the terms that have none."""
    slots: list[_Slot] = []
    plain: list[Term] = []
    for term in bound.terms:
        shape = next((s for s in term.shape_parameters if s.searched), None)
        if shape is None or shape.searched is None or term.on != "joint":
            plain.append(term)
            continue
        for name in term.where or bound.robot.joint_names:
            given = float(getattr(term, shape.option))
            grid = np.geomspace(*shape.searched, _COARSE) * max(tops[name], 1e-6)
            slots.append(_Slot(term, name, shape.option, (given, *grid.tolist())))
    return slots, plain


@dataclass(frozen=True, eq=False)
class _Bank:
    """The triangle of all columns, plain and trial ones; `groups[s][k]` are the columns of trial k of slot s."""

    slots: Sequence[_Slot]
    R: Array
    plain: list[int]
    groups: list[list[list[int]]]
    weights: Array

    @classmethod
    def of(
        cls,
        bound: Terms,
        plain: Sequence[Term],
        slots: Sequence[_Slot],
        motions: Callable[[], Iterable[Motion]],
        mask: float,
        weights: Array | None = None,
    ) -> _Bank:
        robot = bound.robot
        trials = [slot.trial(k) for slot in slots for k in range(len(slot.trials))]
        base = base_parameters(robot, terms(robot, *plain))
        whole = terms(robot, *plain, *trials)
        first = robot.inertial_count + len(base.terms)
        columns = [*base.independent, *range(first, robot.inertial_count + len(whole))]
        dynamics = Dynamics(robot, whole)
        factor = observe(dynamics, base, motions, mask, Rows(dynamics, columns)).factor()
        groups: list[list[list[int]]] = []
        at = base.rank
        for slot in slots:
            width = len(slot.term.columns)
            groups.append([list(range(at + k * width, at + (k + 1) * width)) for k in range(len(slot.trials))])
            at += width * len(slot.trials)
        own = list(range(base.rank))
        given = [*own, *(c for g in groups for c in g[0])]
        used = _weights(factor, columns, given) if weights is None else weights
        return cls(slots, factor.joined(used, columns), own, groups, used)

    def _solved(self, choice: Sequence[int]) -> tuple[Array, Array, list[int]]:
        columns = [*self.plain, *(c for g, k in zip(self.groups, choice, strict=True) for c in g[k])]
        A, y = self.R[:, columns], self.R[:, -1]
        lengths = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        x = np.linalg.lstsq(A / lengths, y, rcond=1e-12)[0] / lengths
        return x, A @ x - y, columns

    def cost(self, choice: Sequence[int] | None = None) -> float:
        """The weighted sum of squares with the trial `choice[s]` (default: the first) of every slot s."""
        return float(np.sum(self._solved(choice or [0] * len(self.slots))[1] ** 2))

    def gain(self, s: int) -> float:
        """What the first trial of slot s has over the last one, which is what was given."""
        given = [3 if k == s else 0 for k in range(len(self.slots))]
        return self.cost(given) - self.cost()

    def descend(self) -> list[int]:
        """One joint after the other to the best trials of all its shapes, until none changes."""
        choice = [0] * len(self.slots)
        value = self.cost(choice)
        joints = {slot.joint: [k for k, s in enumerate(self.slots) if s.joint == slot.joint] for slot in self.slots}
        for _ in range(_SWEEPS):
            before = list(choice)
            for own in joints.values():
                # Values that were given may lie outside the grid, or be none at all (a sign that is not smoothed).
                for trial in itertools.product(*(range(1, len(self.slots[k].trials)) for k in own)):
                    other = list(choice)
                    for k, t in zip(own, trial, strict=True):
                        other[k] = t
                    cost = self.cost(other)
                    if cost < value or 0 in choice:
                        choice, value = other, cost
            if choice == before:
                break
        return choice

    def newton(self) -> tuple[Array, Array]:
        """The step of all shapes' logarithms that the linearised rows ask for, and their standard errors."""
        x, rest, columns = self._solved([0] * len(self.slots))
        place = {c: k for k, c in enumerate(columns)}
        bends = []
        for now, up, down, _ in self.groups:
            slope = (self.R[:, up] - self.R[:, down]) / (2.0 * _STEP)
            bends.append(slope @ x[[place[c] for c in now]])
        J = np.column_stack([self.R[:, columns], *bends])
        lengths = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
        step = np.linalg.lstsq(J / lengths, -rest, rcond=1e-10)[0] / lengths
        standard_errors = np.sqrt(np.diag(np.linalg.pinv((J / lengths).T @ (J / lengths), rcond=1e-12))) / lengths
        return step[len(columns) :], standard_errors[len(columns) :]


def _weights(factor: Factor, columns: Sequence[int], given: Sequence[int]) -> Array:
    """1/σ of every equation, from the fit with the shapes as they were given (two rounds of weighted least squares)."""
    used = [columns[k] for k in given]
    weights = np.ones(len(factor.equations))
    for _ in range(2):
        r = factor.joined(weights, used)
        beta = np.linalg.lstsq(r[:, :-1], r[:, -1], rcond=1e-12)[0]
        rows = np.maximum(np.array(factor.rows) - len(used) / len(factor.equations), 1.0)
        weights = 1.0 / np.maximum(np.sqrt(factor.residual_sums(beta, used) / rows), 1e-12)
    return weights
