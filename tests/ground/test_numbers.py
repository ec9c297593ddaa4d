"""Formatted numbers have significant digits only, and no exponent if possible."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.ground.numbers import number, percent, rounded_to, with_error, with_interval
from steelyard.ground.outcome import json_text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (10_123.0, 1, "10000"),
        (123_456.0, 4, "123500"),
        (-99_999.0, 2, "-100000"),
        (0.000012345, 3, "1.23e-05"),
        (1.5e9, 3, "1.5e+09"),
        (-0.0, 4, "0"),
        (12.0, 4, "12"),
        (math.nan, 4, "–"),
        (math.inf, 4, "–"),
        (None, 4, "–"),
    ],
)
def test_a_number_has_few_digits(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


def test_percent_has_no_exponent() -> None:
    assert percent(12_345.0) == "12000 %"
    assert percent(0.42) == "0.42 %"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (12.34567, 0.449, "12.35 ± 0.45"),
        (12.34567, 4.49, "12.3 ± 4.5"),
        (1234.567, 449.0, "1230 ± 450"),
        (0.0012345, 0.00001, "0.001234 ± 1e-05"),
        (5.0, math.nan, "5 ± –"),
        (5.0, 0.0, "5 ± 0"),
    ],
)
def test_the_error_limits_the_digits(value: float, error: float, text: str) -> None:
    assert with_error(value, error) == text


def test_an_interval_is_the_95_percent_interval_of_a_normal_distribution() -> None:
    assert with_interval(10.0, 1.0) == "10.0 ± 2"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_rounding_costs_less_than_a_tenth_of_the_error(value: float, error: float) -> None:
    """The error keeps two digits, so half a unit of the last digit is at most a twentieth of it."""
    assert abs(rounded_to(value, error) - value) <= 0.0501 * error


def test_numbers_that_are_not_finite_become_null_in_files() -> None:
    assert json.loads(json_text({"a": [math.nan, 1.0, {"b": math.inf}]})) == {"a": [None, 1.0, {"b": None}]}
