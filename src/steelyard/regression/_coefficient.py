"""Recognise a number as a formula of lengths: l2², 2·a·b, d4² - a3², 1/l2, 3/4."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from steelyard.ground.arrays import Array
from steelyard.regression._lengths import Length

# Dimensions of units, which determine the kind of formula of a coefficient.


# Exponents of kilogram, metre, second.
Dimension = tuple[int, int, int]

_BASE: dict[str, Dimension] = {
    "kg": (1, 0, 0),
    "m": (0, 1, 0),
    "s": (0, 0, 1),
    "rad": (0, 0, 0),
    "N": (1, 1, -2),
    "J": (1, 2, -2),
    "W": (1, 2, -3),
    "1": (0, 0, 0),
}
_POWERS = {"²": 2, "³": 3}
_SYMBOL = re.compile(r"^([A-Za-z1]+)([²³]?)$")


@cache
def dimension(unit: str) -> Dimension | None:
    """Return the dimension of a `unit` such as "kg m²" or "N m s/rad"; None if it is not understood."""
    total = [0, 0, 0]
    for part, sign in zip(unit.split("/"), [1] + [-1] * unit.count("/"), strict=True):
        for symbol in part.split():
            match = _SYMBOL.match(symbol)
            if match is None or match[1] not in _BASE:
                return None
            power = sign * _POWERS.get(match[2], 1)
            total = [t + power * b for t, b in zip(total, _BASE[match[1]], strict=True)]
    return total[0], total[1], total[2]


def quotient(of: str, by: str) -> Dimension | None:
    """Return the dimension of a coefficient between two parameters.

    Args:
        of: Unit of the result.
        by: Unit of the parameter that is multiplied.
    """
    if of == by:
        return 0, 0, 0
    a, b = dimension(of), dimension(by)
    return None if a is None or b is None else (a[0] - b[0], a[1] - b[1], a[2] - b[2])


# The elimination computes coefficients with errors of about 1e-12 (rounding times its condition).
MATCH = 1e-9
# Maximum number of lengths for sums of three products and products with sums of three lengths: beyond, there are
# millions of them, and they would be unreadable.
_FEW = 8
# Maximum number of lengths for sums of two or three lengths: an arm has fewer from base to hand.
_SEVERAL = 16
_LARGEST_DENOMINATOR = 12
_LARGEST_NUMERATOR = 60
_FACTORS = ((1.0, ""), (2.0, "2·"), (0.5, "0.5·"))

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Expression:
    """A numerator and a denominator as texts ("" for 1), and the value."""

    numerator: str
    denominator: str
    value: float

    def times(self, what: str) -> str:
        """Write the expression times a parameter, or times a sum of parameters in brackets, `what`."""
        top = f"{self.numerator}·{what}" if self.numerator else what
        return f"{top}/{self.denominator}" if self.denominator else top


class Recogniser:
    """Finds formulas of some lengths.

    Values are pairs: with the original and with the changed lengths. Both must match.
    """

    def __init__(self, lengths: Sequence[Length]) -> None:
        self.texts = [x.text for x in lengths]
        self.lengths = np.array([[x.value, x.changed] for x in lengths]).reshape(-1, 2)

    def recognise(self, target: Array, degree: int) -> Expression | None:
        """Find the simplest formula of a dimension; None if there is none.

        Args:
            target: Pair of positive values.
            degree: Exponent of the metre.
        """
        if degree == 0:
            return _rational(target) or self._ratio(target)
        if degree not in (-2, -1, 1, 2) or not self.texts:
            return None
        sought = target if degree > 0 else 1.0 / target
        if abs(degree) == 1:
            found = self._linear(sought)
        else:
            found = self._product(sought) or self._sum_of_two(sought) or self._sum_of_three(sought)
        return found if found is None or degree > 0 else _reciprocal(found) if found.value else None

    # ---------------------------------------------------------------- linear forms: a, a ± b, a ± b ± c

    @cached_property
    def _forms(self) -> tuple[Array, Array, Index]:
        """Return coefficients, values (the first positive) and number of lengths of each form, simplest first."""
        n = len(self.texts)
        rows = [np.eye(n)]
        if n <= _SEVERAL:
            for size, signs in ((2, ((1, 1), (1, -1))), (3, ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)))):
                chosen = np.array(list(combinations(range(n), size)), dtype=int).reshape(-1, size)
                for sign in signs:
                    row = np.zeros((len(chosen), n))
                    np.put_along_axis(row, chosen, np.array(sign, dtype=float), axis=1)
                    rows.append(row)
        forms = np.vstack(rows)
        values = forms @ self.lengths
        flip = np.where(values[:, :1] < 0.0, -1.0, 1.0)
        return forms * flip, values * flip, np.count_nonzero(forms, axis=1)

    def _form_text(self, k: int) -> str:
        coefficients = self._forms[0][k]
        plus = [self.texts[i] for i in np.flatnonzero(coefficients > 0)]
        minus = [self.texts[i] for i in np.flatnonzero(coefficients < 0)]
        text = " + ".join(plus) + "".join(f" - {x}" for x in minus)
        return f"({text})" if len(plus) + len(minus) > 1 else text

    # ---------------------------------------------------------------- products of two forms

    @cached_property
    def _pairs(self) -> tuple[Index, Array]:
        """Return pairs of forms (n × 2) and their products: a·b, (a ± b)², a·(b ± c), (a ± b ± c)²."""
        _, values, sizes = self._forms
        one, two, three = (np.flatnonzero(sizes == k) for k in (1, 2, 3))
        squares = np.column_stack([one, one])
        mixed = np.array(list(combinations(one, 2)), dtype=int).reshape(-1, 2)
        sums = np.array([(i, j) for i in one for j in two], dtype=int).reshape(-1, 2)
        parts = [squares, mixed, np.column_stack([two, two]), sums, np.column_stack([three, three])]
        if len(one) <= _FEW:
            parts.append(np.array([(i, j) for i in one for j in three], dtype=int).reshape(-1, 2))
        pairs = np.vstack(parts)
        return pairs, values[pairs[:, 0]] * values[pairs[:, 1]]

    @cached_property
    def _addends(self) -> int:
        """Return the number of pairs allowed in sums: products of two lengths, and squares of sums of two."""
        n = len(self.texts)
        return n * (n + 1) // 2 + int(np.sum(self._forms[2] == 2))

    def _pair_text(self, k: int) -> str:
        i, j = (int(x) for x in self._pairs[0][k])
        return f"{self._form_text(i)}²" if i == j else f"{self._form_text(i)}·{self._form_text(j)}"

    # ---------------------------------------------------------------- searches

    def _ratio(self, target: Array) -> Expression | None:
        values = self.lengths[:, None] / self.lengths[None]
        k = _first(values.reshape(-1, 2), target)
        if k is None:
            return None
        top, bottom = divmod(k, len(self.texts))
        return Expression(self.texts[top], self.texts[bottom], float(values[top, bottom, 0]))

    def _linear(self, target: Array) -> Expression | None:
        return _multiple(self._forms[1], self._form_text, target)

    def _product(self, target: Array) -> Expression | None:
        return _multiple(self._pairs[1], self._pair_text, target)

    @cached_property
    def _sums_of_two(self) -> tuple[Array, Index]:
        """Return sorted values of p and 2·p, and their original positions."""
        values = self._pairs[1][: self._addends]
        both = np.vstack([values, 2.0 * values])
        order = np.argsort(both[:, 0], kind="stable")
        return both[order], order

    def _sum_of_two(self, target: Array) -> Expression | None:
        """Find p ± q, where p and q may be doubled."""
        table, order = self._sums_of_two
        for sign in (1.0, -1.0):
            hit = _partner(table, target - sign * table, MATCH * target)
            if hit is not None:
                return self._sum([(1.0, int(order[hit[1]])), (sign, int(order[hit[0]]))])
        return None

    @cached_property
    def _sums_of_three(self) -> tuple[Array, Index]:
        """Return sorted values of p ± q, with p, q and whether q is subtracted."""
        values = self._pairs[1][: self._addends]
        first, second = np.triu_indices(len(values), 1)
        sums = np.vstack([values[first] + values[second], values[first] - values[second]])
        keys = np.column_stack([np.tile(first, 2), np.tile(second, 2), np.repeat([0, 1], len(first))])
        order = np.argsort(sums[:, 0], kind="stable")
        return sums[order], keys[order]

    def _sum_of_three(self, target: Array) -> Expression | None:
        """Find p ± q ± r."""
        if len(self.texts) > _FEW or self._addends < 3:
            return None
        table, keys = self._sums_of_three
        singles = self._pairs[1][: self._addends]
        for sign in (1.0, -1.0):
            hit = _partner(table, target - sign * singles, MATCH * target)
            if hit is not None:
                i, j, subtracted = (int(x) for x in keys[hit[1]])
                return self._sum([(1.0, i), (-1.0 if subtracted else 1.0, j), (sign, hit[0])])
        return None

    def _sum(self, addends: list[tuple[float, int]]) -> Expression:
        """Write a sum in brackets: first added, then subtracted terms, each from base to tip."""
        text, value = "", 0.0
        for sign, k in sorted(addends, key=lambda pair: (-pair[0], pair[1] % self._addends)):
            factor = 1.0 + k // self._addends
            index = k % self._addends
            between = (" + " if sign > 0 else " - ") if text else ""
            text += between + ("2·" if factor > 1 else "") + self._pair_text(index)
            value += sign * factor * float(self._pairs[1][index, 0])
        return Expression(f"({text})", "", value)


def _multiple(values: Array, text_of: Callable[[int], str], target: Array) -> Expression | None:
    """Find the first value that equals the target up to a simple factor."""
    for factor, text in _FACTORS:
        k = _first(factor * values, target)
        if k is not None:
            return Expression(text + text_of(k), "", factor * float(values[k, 0]))
    return None


def _first(values: Array, target: Array) -> int | None:
    """Return the first row of values that equals the target."""
    hits = np.flatnonzero((np.abs(values - target) <= MATCH * target).all(axis=1))
    return int(hits[0]) if hits.size else None


def _partner(table: Array, targets: Array, allowed: Array) -> tuple[int, int] | None:
    """Return the first target that equals a row of the table (sorted by its first column), and that row."""
    places = np.searchsorted(table[:, 0], targets[:, 0])
    for shift in (-1, 0):
        near = np.clip(places + shift, 0, len(table) - 1)
        hits = np.flatnonzero((np.abs(table[near] - targets) <= allowed).all(axis=1))
        if hits.size:
            return int(hits[0]), int(near[hits[0]])
    return None


def _reciprocal(e: Expression) -> Expression:
    if e.numerator.startswith("0.5·"):
        return Expression("2", e.numerator.removeprefix("0.5·"), 1.0 / e.value)
    return Expression("", f"({e.numerator})" if "·" in e.numerator else e.numerator, 1.0 / e.value)


def _rational(target: Array) -> Expression | None:
    """Find a small fraction that does not depend on the lengths."""
    value = float(target[0])
    if abs(target[1] - value) > MATCH * value:
        return None
    near = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if near.numerator > _LARGEST_NUMERATOR or abs(float(near) - value) > MATCH * value:
        return None
    top = "" if near.numerator == 1 else str(near.numerator)
    return Expression(top, "" if near.denominator == 1 else str(near.denominator), float(near))


def decimal(value: float) -> Expression:
    """Write a number `value` that is no formula, with as few digits as give it exactly, at most eight."""
    text = next((t for t in (f"{value:.{n}g}" for n in range(1, 8)) if abs(float(t) - value) <= MATCH * value), None)
    return Expression(text or f"{value:.8g}", "", value)
