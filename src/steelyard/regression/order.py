"""In which order columns are preferred: of a group of dependent columns, the first keeps its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from steelyard.errors import StructureError, UnknownNameError
from steelyard.parameters.inertial import INERTIAL_NAMES
from steelyard.parameters.terms import Parameter

Order = Sequence[str] | Callable[[Parameter], Any] | None


def preferred(parameters: Sequence[Parameter], links: int, order: Order = None) -> list[int]:
    """The indices of the parameters, those to keep first.

    Args:
        parameters: ten per link, then those of the terms.
        links: how many links there are.
        order: None for link by link in Pinocchio's order, then the terms; the ten names m … Izz in another order
            to use within each link; names of parameters to put in front of all others; or a key to sort by.
    """
    natural = list(range(len(parameters)))
    if order is None:
        return natural
    if callable(order):
        return sorted(natural, key=lambda k: order(parameters[k]))
    names = tuple(order)
    for name in names:
        if names.count(name) > 1:
            raise StructureError(f"order names '{name}' twice; name each parameter once.")
    if set(names) == set(INERTIAL_NAMES):
        within = [INERTIAL_NAMES.index(name) for name in names]
        return [10 * link + k for link in range(links) for k in within] + natural[10 * links :]
    known = [p.name for p in parameters]
    for name in names:
        if name not in known:
            raise UnknownNameError("parameter", name, known)
    first = [known.index(name) for name in names]
    return first + [k for k in natural if k not in set(first)]
