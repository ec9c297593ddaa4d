"""Numbers of servo registers become signed SI numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.actuators.command_columns import command_unit_size, decode, guess_code, unwrapped_ticks
from steelyard.errors import LogError, UnknownNameError


def encoded(values: np.ndarray, code: str) -> np.ndarray:
    """What a register holds, by the manuals of Dynamixel (two's complement) and Feetech (sign bits)."""
    if code == "int16":
        return np.asarray(values.astype(np.int16).view(np.uint16), dtype=float)
    bit = {"bit10": 1 << 10, "bit15": 1 << 15}.get(code, 0)
    return np.where(values < 0, bit - values, values).astype(float) if bit else values.astype(float)


@given(
    st.lists(st.integers(-885, 885), min_size=1, max_size=50), st.sampled_from(["signed", "int16", "bit10", "bit15"])
)
def test_a_register_gives_back_the_number_that_it_stored(values: list[int], code: str) -> None:
    numbers = np.array(values)
    assert np.array_equal(decode(encoded(numbers, code), code), numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["signed", "int16", "bit10", "bit15"])
def test_the_code_of_an_oscillating_register_is_recognised(code: str) -> None:
    duty = np.round(800.0 * np.sin(np.linspace(0.0, 20.0, 400))).astype(int)
    assert guess_code(encoded(duty, code)) == code


def test_small_negative_numbers_alone_are_recognised() -> None:
    drift = np.array([-1, -2, -3, -1, 0, -1])
    assert guess_code(encoded(drift, "int16")) == "int16"
    assert guess_code(encoded(drift, "bit15")) == "bit15"


def test_interpolation_across_the_wrap_is_no_code() -> None:
    raw = encoded(np.round(200.0 * np.sin(np.linspace(0.0, 20.0, 400))).astype(int), "int16")
    between = np.interp(np.linspace(0.0, 399.0, 1000), np.arange(400.0), raw)
    assert guess_code(between) is None


def test_a_register_without_sign_that_passes_1024_stays_as_it_is() -> None:
    assert guess_code(np.round(np.linspace(900.0, 1200.0, 300))) == "signed"


@pytest.mark.parametrize(
    ("signal", "unit", "size"),
    [
        ("position", "ticks", 2.0 * math.pi / 4096.0),
        ("position", "ticks/1024", 2.0 * math.pi / 1024.0),
        ("position", "deg", math.pi / 180.0),
        ("velocity", "ticks/s", 2.0 * math.pi / 4096.0),
        ("velocity", "rpm", math.pi / 30.0),
        ("duty", "percent", 0.01),
        ("duty", "per mille", 0.001),
        ("duty", "counts/885", 1.0 / 885.0),
        ("voltage", "0.1 V", 0.1),
        ("time", "ms", 1e-3),
        ("current", "mA", 1e-3),
    ],
)
def test_units_of_servos(signal: str, unit: str, size: float) -> None:
    assert command_unit_size(signal, unit) == pytest.approx(size, rel=1e-15)


def test_units_that_have_no_size_are_refused_with_the_remedy() -> None:
    with pytest.raises(LogError, match="use_degrees"):
        command_unit_size("position", "percent")
    with pytest.raises(UnknownNameError, match="ticks"):
        command_unit_size("position", "ticks/s")
    with pytest.raises(UnknownNameError, match="counts/885"):
        command_unit_size("duty", "counts/0")


@given(st.floats(-30.0, 30.0), st.integers(2, 60))
def test_a_single_turn_encoder_unwraps(speed: float, rows: int) -> None:
    # Below half a turn from sample to sample the way is unique.
    true = 100.0 + speed * 60.0 * np.arange(rows)
    seen = np.mod(true, 4096.0)
    assert np.allclose(np.diff(unwrapped_ticks(seen)), np.diff(true), atol=1e-9)
