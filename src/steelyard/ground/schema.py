"""`build`: creates a dataclass from plain data, with its type annotations as the schema."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from steelyard.ground.arrays import Array
from steelyard.ground.field import Field, shown_value

_T = TypeVar("_T")


def build(kind: type[_T], entry: Field, others: bool = False, **known: Any) -> _T:
    """Create an object of a dataclass from a table with its fields as keys.

    Each entry is checked against its annotation: numbers must be finite, null for a number becomes NaN (our files
    store NaN as null), and lists become tuples where the annotation is a tuple.

    Args:
        kind: The dataclass.
        entry: The table.
        others: Ignore unknown keys instead of refusing them.
        known: Values of fields that are not in the table.
    """
    wanted = [f for f in fields(kind) if f.init and f.name not in known]  # type: ignore[arg-type]
    names = [f.name for f in wanted]
    entry.table((), names, others)
    dataclass: Any = kind
    hints, values = _hints(dataclass), dict(known)
    for field in wanted:
        if field.name in entry.value:
            values[field.name] = convert(hints[field.name], entry.inside(entry.value[field.name], field.name))
        elif field.default is MISSING and field.default_factory is MISSING:
            entry.fail(f"'{field.name}' is missing; add it.")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def convert(hint: Any, entry: Field) -> Any:
    """Convert a value to the type of an annotation.

    Args:
        hint: Type annotation.
        entry: Value with its place.
    """
    value, origin, inner = entry.value, get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return value
    if hint in _PLAIN:
        return _PLAIN[hint](entry)
    if origin is Literal:
        return entry.choice(inner)
    if origin in (Union, types.UnionType):
        return _one_of(inner, entry)
    if origin in (tuple, list, Sequence):
        return _sequence(origin, inner, entry)
    if origin in (dict, Mapping):
        return {name: convert(inner[1], item) for name, item in entry.entries().items()}
    if origin is np.ndarray:
        return _array(entry)
    if is_dataclass(hint):
        return build(hint, entry)  # type: ignore[arg-type]
    raise TypeError(f"No schema for {hint}.")  # an annotation of ours that files cannot hold


def _real(entry: Field) -> float:
    return math.nan if entry.value is None else entry.number()


def _text(entry: Field) -> str:
    if not isinstance(entry.value, str):
        entry.fail(f"{shown_value(entry.value)} is not text; write it in quotes.")
    return entry.value


_PLAIN: dict[Any, Callable[[Field], Any]] = {
    float: _real,
    int: lambda entry: entry.whole(-(10**15), 10**15),
    bool: Field.flag,
    str: _text,
    Array: lambda entry: _array(entry),
}


def _one_of(hints: tuple[Any, ...], entry: Field) -> Any:
    """Convert to the first matching type of a union."""
    if type(None) in hints and entry.value is None:
        return None
    left = [hint for hint in hints if hint is not type(None)]
    return convert(next((hint for hint in left if _may_be(hint, entry.value)), left[0]), entry)


def _may_be(hint: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return hint is bool
    if isinstance(value, list | tuple):
        return get_origin(hint) in (tuple, list, Sequence, np.ndarray)
    if isinstance(value, Mapping):
        return is_dataclass(hint) or get_origin(hint) in (dict, Mapping)
    if isinstance(value, str):
        return hint is str or get_origin(hint) is Literal
    return hint in (int, float) if isinstance(value, int) else hint is float


def _sequence(origin: Any, inner: tuple[Any, ...], entry: Field) -> Any:
    items = entry.items("entry")
    if origin is tuple and inner[-1] is not Ellipsis:
        if len(items) != len(inner):
            entry.fail(f"has {len(items)} entries, not {len(inner)}.")
        return tuple(convert(hint, item) for hint, item in zip(inner, items, strict=True))
    values = [convert(inner[0], item) for item in items]
    return values if origin is list else tuple(values)


def _array(entry: Field) -> Array:
    depth, value = 0, entry.value
    while isinstance(value, list | tuple):
        depth, value = depth + 1, value[0] if value else None
    return entry.array(*[None] * depth, missing=math.nan)
