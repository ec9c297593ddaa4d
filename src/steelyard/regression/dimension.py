"""Dimensions of units, to know what kind of number a coefficient must be."""

from __future__ import annotations

import re
from functools import cache

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
    """Dimension of a unit such as "kg m²" or "N m s/rad"; None if it is not understood."""
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
    """Dimension of a coefficient that turns a parameter of unit `by` into one of unit `of`."""
    if of == by:
        return 0, 0, 0
    a, b = dimension(of), dimension(by)
    return None if a is None or b is None else (a[0] - b[0], a[1] - b[1], a[2] - b[2])
