"""`short_repr`: prints a dataclass in one or a few lines, with arrays and collections by their size."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

_T = TypeVar("_T")
# Lengths in characters: three lines of a terminal for an object, half a line for a value.
_MOST, _MOST_OF_VALUE = 240, 40


def short_repr(cls: type[_T]) -> type[_T]:
    """Decorate the dataclass `cls` so that its `repr` abbreviates long values; the values themselves are its fields.

    Settings whose `repr` identifies them, such as joint terms, keep the full one.
    """
    cls.__repr__ = _repr  # type: ignore[method-assign, assignment]
    return cls


def _repr(self: Any) -> str:
    name, length = type(self).__name__, 0
    parts: list[str] = []
    fields = [field.name for field in dataclasses.fields(self) if field.repr and not field.name.startswith("_")]
    for field in fields:
        part = f"{field}={_brief(getattr(self, field, None))}"
        length += len(part)
        if length > _MOST:
            parts.append(f"… {len(fields) - len(parts)} more")
            break
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def _brief(value: Any) -> str:
    """Return a value in few characters: a number, a short text or collection, or what it is and its size."""
    if isinstance(value, np.ndarray):
        return f"<array {'×'.join(map(str, value.shape))}>" if value.ndim else repr(value.item())
    if isinstance(value, str | bytes | PurePath):
        text = repr(str(value)) if isinstance(value, PurePath) else repr(value)
        return text if len(text) <= _MOST_OF_VALUE else f"{text[: _MOST_OF_VALUE - 2]}…{text[0]}"
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        return f"{float(value):.6g}" if isinstance(value, float | np.floating) else str(value)
    if isinstance(value, Collection) and not dataclasses.is_dataclass(value):
        return _brief_collection(value)
    name = getattr(value, "name", None)
    return f"<{type(value).__name__}{f' {name}' if isinstance(name, str) and len(name) <= _MOST_OF_VALUE else ''}>"


def _brief_collection(values: Collection[Any]) -> str:
    simple = all(isinstance(x, str | int | float | bool | None) for x in values) and not isinstance(values, Mapping)
    if simple and len(text := repr(values)) <= _MOST_OF_VALUE:
        return text
    kind = "by name" if isinstance(values, Mapping) else "values"
    return f"<{len(values)} {kind}>" if len(values) else "{}" if isinstance(values, Mapping) else "()"
