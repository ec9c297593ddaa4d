"""Arrays of a saved state are checked against a new one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steelyard.errors import SteelyardError
from steelyard.ground.array_rules import ArrayRule, check_arrays

NEW = {"x": np.zeros((2, 3)), "t": np.array(np.nan), "word": np.array(["", ""], dtype="U5"), "rows": np.zeros((0, 3))}
RULES = {"rows": ArrayRule(rows=4, unknown=True)}


def check(**changes: Any) -> dict[str, Any]:
    return check_arrays(NEW, {**NEW, **changes}, RULES, "file", SteelyardError)


def test_valid_arrays_pass() -> None:
    check()
    check(x=np.ones((2, 3), dtype="f4"), t=np.array(3), word=np.array(["load", "q1"]))
    assert check(x=np.ones((2, 3), dtype="u1"))["x"].dtype == float
    check(rows=np.full((4, 3), np.inf))
    check(more=np.array("anything"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("x", np.zeros((3, 2)), "shape"),
        ("x", np.zeros(6), "shape"),
        ("x", np.full((2, 3), np.nan), "NaN"),
        ("x", np.full((2, 3), 1e200), "too large"),
        ("x", np.full((2, 3), "1"), "text, not numbers"),
        ("x", np.zeros((2, 3), dtype="c16"), "other data, not numbers"),
        ("x", np.zeros((2, 3), dtype="m8[s]"), "other data"),
        ("t", np.array("now"), "text, not numbers"),
        ("word", np.array(["toolong", ""]), "7 characters"),
        ("word", np.array([1.0, 2.0]), "numbers, not text"),
        ("rows", np.zeros((5, 3)), "shape"),
        ("rows", np.zeros((2, 4)), "shape"),
        ("rows", np.zeros(()), "shape"),
    ],
)
def test_an_invalid_array_is_named(name: str, value: Any, problem: str) -> None:
    with pytest.raises(SteelyardError, match=f"file: '{name}' .*{problem}"):
        check(**{name: value})


def test_a_missing_array_is_named_unless_it_is_optional() -> None:
    with pytest.raises(SteelyardError, match="'x' is missing"):
        check_arrays(NEW, {}, {}, "file", SteelyardError)
    check_arrays({"x": NEW["x"]}, {}, {"x": ArrayRule(optional=True)}, "file", SteelyardError)
