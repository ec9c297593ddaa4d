"""`build`: a frozen dataclass from plain data; its own annotations are the schema, so that nothing is said twice."""

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
    """An object of the dataclass `kind` from a table with its fields as keys.

    What the annotations ask for is checked entry by entry: a number is finite, null where a number is expected is NaN
    (files of ours hold null for what is not finite), lists become tuples where tuples are asked for.

    Args:
        kind: the dataclass.
        entry: the table.
        others: pass over keys that are no fields; else they are refused.
        known: fields that are known already, and no keys.
    """
    asked = [f for f in fields(kind) if f.init and f.name not in known]  # type: ignore[arg-type]
    names = [f.name for f in asked]
    entry.table((), names, others)
    whose: Any = kind
    hints, values = _hints(whose), dict(known)
    for field in asked:
        if field.name in entry.value:
            values[field.name] = convert(hints[field.name], entry.inside(entry.value[field.name], field.name))
        elif field.default is MISSING and field.default_factory is MISSING:
            entry.fail(f"'{field.name}' is missing; add it.")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def convert(hint: Any, entry: Field) -> Any:
    """The value of `entry` as the annotation `hint` says it is, or an error that names its place."""
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
        return _listed(origin, inner, entry)
    if origin in (dict, Mapping):
        return {name: convert(inner[1], item) for name, item in entry.entries().items()}
    if origin is np.ndarray:
        return _array(entry)
    if is_dataclass(hint):
        return build(hint, entry)  # type: ignore[arg-type]
    raise TypeError(f"No schema for {hint}.")  # the dataclass asks for what files cannot hold


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
    """The first of several annotations that the value may be."""
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


def _listed(origin: Any, inner: tuple[Any, ...], entry: Field) -> Any:
    items = entry.items("entry")
    if origin is tuple and inner[-1] is not Ellipsis:
        if len(items) != len(inner):
            entry.fail(f"has {len(items)} entries, not {len(inner)}.")
        return tuple(convert(hint, item) for hint, item in zip(inner, items, strict=True))
    made = [convert(inner[0], item) for item in items]
    return made if origin is list else tuple(made)


def _array(entry: Field) -> Array:
    depth, value = 0, entry.value
    while isinstance(value, list | tuple):
        depth, value = depth + 1, value[0] if value else None
    return entry.array(*[None] * depth, missing=math.nan)
