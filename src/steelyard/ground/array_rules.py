"""`check_arrays`: the arrays of a saved state against those of a new one, before anything uses them.

A program that goes on from a file trusts every number in it. A state that is new has the names, types and shapes that
the program expects, so it is the schema. `ArrayRule` says where a saved array may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import SteelyardError, shortened

# Squares of numbers up to this are finite.
_LARGEST = 1e150


@dataclass(frozen=True)
class ArrayRule:
    """Where a saved array may differ from the array of a new state.

    Args:
        rows: how long its first axis may become; 0 for the length that it has.
        fewest: how short its first axis may be, where `rows` is given.
        unknown: NaN or infinity may stand for an unknown number, also where a new array has none.
        optional: files of earlier versions do not have it.
        any_shape: only the number of axes is checked.
        any_text: text may be of any length.
    """

    rows: int = 0
    fewest: int = 0
    unknown: bool = False
    optional: bool = False
    any_shape: bool = False
    any_text: bool = False


_STRICT = ArrayRule()


def check_arrays(
    new: Mapping[str, NDArray[Any]],
    saved: Mapping[str, NDArray[Any]],
    rules: Mapping[str, ArrayRule],
    source: str,
    error: type[SteelyardError],
) -> dict[str, NDArray[Any]]:
    """The saved arrays, numbers of the type that a new state has; refused where name, shape or kind differ.

    Args:
        new: the arrays of a new state, by name.
        saved: the arrays of the file, by name; further ones are ignored.
        rules: where an array may differ, by name.
        source: what the file is called in errors.
        error: what is raised.
    """
    checked = dict(saved)
    for name, expected in new.items():
        rule = rules.get(name, _STRICT)
        found = saved.get(name)
        if found is None:
            if rule.optional:
                continue
            raise error(f"{source}: '{name}' is missing.")
        problem = _problem(expected, found, rule)
        if problem:
            raise error(f"{source}: '{shortened(name, 60)}' {problem}.")
        if expected.dtype.kind == "f":
            checked[name] = found.astype(expected.dtype)
    return checked


def _problem(expected: NDArray[Any], found: NDArray[Any], rule: ArrayRule) -> str:
    text = expected.dtype.kind == "U"
    if (found.dtype.kind == "U") != text or (not text and found.dtype.kind not in "fiub"):
        return f"holds {_kind(found)}, not {_kind(expected)}"
    if text and not rule.any_text and found.dtype.itemsize > expected.dtype.itemsize:
        return f"holds text of {found.dtype.itemsize // 4} characters, more than {expected.dtype.itemsize // 4}"
    if not _shape_fits(expected.shape, found.shape, rule):
        return f"has the shape {found.shape}, not {expected.shape}"
    if text:
        return ""
    numbers = found.astype(float)
    known = np.isfinite(numbers)
    if not known.all() and not (rule.unknown or not np.isfinite(expected.astype(float)).all()):
        return "holds NaN or infinity"
    return "holds a number that is too large" if np.any(np.abs(numbers[known]) > _LARGEST) else ""


def _shape_fits(expected: tuple[int, ...], found: tuple[int, ...], rule: ArrayRule) -> bool:
    if rule.any_shape:
        return len(found) == len(expected)
    if rule.rows:
        # An empty list becomes an array of one axis, whatever its entries would have been.
        alike = found[1:] == expected[1:] or (0,) in (found, expected)
        return len(found) >= 1 and rule.fewest <= found[0] <= rule.rows and alike
    return found == expected


def _kind(array: NDArray[Any]) -> str:
    kind = array.dtype.kind
    return "text" if kind == "U" else "numbers" if kind in "fiub" else "other data"
