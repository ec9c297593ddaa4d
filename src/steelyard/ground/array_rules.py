"""`check_arrays`: validates the arrays of a saved state before use.

A new state has the expected names, types and shapes, so it is the schema. `ArrayRule` states allowed differences.
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
    """Allowed differences between a saved array and the array of a new state.

    Args:
        rows: Largest length of the first axis; 0: same length as in a new state.
        fewest: Smallest length of the first axis, if `rows` is given.
        unknown: Allow NaN and infinity for unknown numbers.
        optional: Allow a missing array, for files of earlier versions.
        any_shape: Check only the number of axes.
        any_text: Allow text of any length.
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
    """Return the saved arrays, with floats converted to the type of the new state.

    Args:
        new: Arrays of a new state, by name.
        saved: Arrays of the file, by name; additional ones are not checked.
        rules: Allowed differences, by name.
        source: Name of the file in errors.
        error: Error class for a missing array or a wrong shape, kind or number.
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


def _problem(expected: NDArray[Any], actual: NDArray[Any], rule: ArrayRule) -> str:
    text = expected.dtype.kind == "U"
    if (actual.dtype.kind == "U") != text or (not text and actual.dtype.kind not in "fiub"):
        return f"holds {_kind(actual)}, not {_kind(expected)}"
    if text and not rule.any_text and actual.dtype.itemsize > expected.dtype.itemsize:
        return f"holds text of {actual.dtype.itemsize // 4} characters, more than {expected.dtype.itemsize // 4}"
    if not _shape_fits(expected.shape, actual.shape, rule):
        return f"has the shape {actual.shape}, not {expected.shape}"
    if text:
        return ""
    numbers = actual.astype(float)
    known = np.isfinite(numbers)
    if not known.all() and not (rule.unknown or not np.isfinite(expected.astype(float)).all()):
        return "holds NaN or infinity"
    return "holds a number that is too large" if np.any(np.abs(numbers[known]) > _LARGEST) else ""


def _shape_fits(expected: tuple[int, ...], actual: tuple[int, ...], rule: ArrayRule) -> bool:
    if rule.any_shape:
        return len(actual) == len(expected)
    if rule.rows:
        # NumPy turns an empty list into shape (0,), whatever the shape of its entries.
        alike = actual[1:] == expected[1:] or (0,) in (actual, expected)
        return len(actual) >= 1 and rule.fewest <= actual[0] <= rule.rows and alike
    return actual == expected


def _kind(array: NDArray[Any]) -> str:
    kind = array.dtype.kind
    return "text" if kind == "U" else "numbers" if kind in "fiub" else "other data"
