"""The annotations of a dataclass are the schema of its files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import LogError, SteelyardError
from steelyard.ground.arrays import Array
from steelyard.ground.field import Field
from steelyard.ground.schema import build, convert


@dataclass(frozen=True)
class Inner:
    name: str
    size: float = 1.0


@dataclass(frozen=True)
class Whole:
    count: int
    kind: Literal["a", "b"]
    parts: tuple[Inner, ...]
    pair: tuple[float, float] | None = None
    cells: tuple[tuple[str | float | int | bool | None, ...], ...] = ()
    by_name: Mapping[str, float] = field(default_factory=dict)
    on: bool = False
    anything: Any = None


GOOD = {
    "count": 3,
    "kind": "a",
    "parts": [{"name": "x", "size": 2.5}, {"name": ""}],
    "pair": [1, 2],
    "cells": [["a", 1.5, 2, True, None]],
    "by_name": {"m": 4.0},
    "on": True,
    "anything": [1],
}


def read(change: dict[str, Any]) -> Whole:
    return build(Whole, Field({**GOOD, **change}, "file", error=LogError))


def test_a_dataclass_is_read_back() -> None:
    result = read({})
    assert result.parts == (Inner("x", 2.5), Inner("", 1.0))
    assert result.pair == (1.0, 2.0)
    assert result.cells == (("a", 1.5, 2, True, None),)
    assert build(Whole, Field(asdict(result), "file")) == result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 1.5}, "file: count: 1.5 is not allowed"),
        ({"count": "many"}, "file: count: "),
        ({"count": True}, "file: count: True is not a number"),
        ({"kind": "c"}, "file: kind: 'c' is unknown; write one of a, b."),
        ({"kind": ["a"]}, "file: kind: a list of 1 is unknown"),
        ({"parts": [{"size": 1.0}]}, "file: parts: entry 1: 'name' is missing"),
        ({"parts": [{"name": 5}]}, "file: parts: entry 1: name: 5 is not text; write it in quotes"),
        ({"parts": {"name": "x"}}, "file: parts: a table is not a list"),
        ({"pair": [1.0]}, "file: pair: has 1 entries, not 2"),
        ({"pair": "1, 2"}, "file: pair: "),
        ({"cells": [[{}]]}, "file: cells: entry 1: entry 1: "),
        ({"by_name": {"m": []}}, "file: by_name: m: a list of 0 is not a number"),
        ({"on": 1}, "file: on: 1 must be true or false"),
        ({"colour": "red"}, "file: unknown key 'colour'; did you mean 'count'?"),
        ({"by_name": {"m": 1e300}}, "file: by_name: m: 1e+300 is beyond 1e+15"),
    ],
)
def test_an_error_names_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError) as caught:
        read(change)
    assert str(caught.value).startswith(message)


def test_unknown_keys_may_be_ignored_and_fields_may_be_passed() -> None:
    assert build(Inner, Field({"name": "x", "old": 1}, "file"), others=True).name == "x"
    assert build(Inner, Field({"size": 2}, "file"), name="y") == Inner("y", 2.0)


@pytest.mark.parametrize("value", [[1.0, 2.0], [[1.0], [2.0]], [[[1.0, 2.0]]], []])
def test_arrays_have_the_shape_of_their_lists(value: Any) -> None:
    assert convert(Array, Field(value, "x")).shape == np.shape(value)


def test_null_becomes_nan() -> None:
    assert np.isnan(convert(float, Field(None, "x")))
    assert np.isnan(convert(Array, Field([1.0, None], "x"))[1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "size", "x"]), inner),
)


@given(st.dictionaries(st.sampled_from(list(GOOD)), JSON))
def test_any_data_is_read_or_refused_with_its_place(change: dict[str, Any]) -> None:
    try:
        result = read(change)
    except SteelyardError as error:
        assert str(error).startswith("file: ")  # noqa: PT017 (either may happen)
    else:
        assert isinstance(result, Whole)
