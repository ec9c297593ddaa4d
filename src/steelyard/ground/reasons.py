"""Explains each `null` in result.json. The code that omits a value gives the reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

# Key of the reasons at the top of a document; class variable of the reasons in a dataclass.
WHY_NULL = "why_null"
_Path = tuple[str, ...]
_ANY = "*"
# Path of the enclosing value, path of the null inside it, sentence.
_Reason = tuple[_Path, _Path, str]


def explained(value: Any, why: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Convert a value to plain data for JSON, with null for missing or infinite values and the reason for each null.

    The top-level entry `why_null` holds one sentence by path of each null, such as "links/*/mass". There * means every
    null member of the list. In keys "/" is written ~1 and "~" is written ~0, as in RFC 6901.

    Args:
        value: Dictionary or dataclass of dictionaries, lists, numbers and dataclasses. A dataclass holds reasons by
            field in a class variable `why_null`. The reasons of parts that are already explained move to the top.
        why: Additional reasons by path; * matches any key or number.
    """
    reasons: list[_Reason] = []
    patterns = [(tuple(path.split("/")), sentence) for path, sentence in (why or {}).items()]
    data: dict[str, Any] = _plain(value, (), reasons, patterns)
    return data | {WHY_NULL: _brief(reasons)} if reasons else data


def missing(document: Any) -> Iterator[str]:
    """Yield the paths of nulls in a `document` that have no reason."""
    reasons = document.get(WHY_NULL, {}) if isinstance(document, dict) else {}
    patterns = [tuple(path.split("/")) for path in reasons]
    for path in _nulls(document, ()):
        if not any(_fits(pattern, path) for pattern in patterns):
            yield "/".join(path)


def _plain(value: Any, path: _Path, reasons: list[_Reason], patterns: list[tuple[_Path, str]]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = getattr(value, WHY_NULL, {})
        value = {f.name: getattr(value, f.name) for f in fields(value)}
        patterns = [*patterns, *(((*path, *below.split("/")), sentence) for below, sentence in own.items())]
    if isinstance(value, dict):
        for below, sentence in value.get(WHY_NULL, {}).items():
            reasons.append((path, tuple(below.split("/")), sentence))
        items = [(key, x) for key, x in value.items() if key != WHY_NULL]
        return {key: _plain(x, (*path, _key(key)), reasons, patterns) for key, x in items}
    if isinstance(value, (list, tuple)):
        return [_plain(x, (*path, str(k)), reasons, patterns) for k, x in enumerate(value)]
    not_finite = "" if value is None else _not_finite(value)
    if value is None or not_finite:
        sentence = next((s for pattern, s in patterns if _fits(pattern, path)), not_finite)
        if sentence:
            reasons.append((path[:-1], path[-1:], sentence))
        return None
    return value


def _not_finite(value: Any) -> str:
    """The reason for a number that is not finite, else ""."""
    if not isinstance(value, float) or math.isfinite(value):
        return ""
    return "It is not defined (0/0)." if math.isnan(value) else "It is infinite."


def _brief(reasons: list[_Reason]) -> dict[str, str]:
    """Sentences by path, with * instead of list indices if all members have the same sentence."""
    sentences: dict[_Path, set[str]] = {}
    for path, below, sentence in reasons:
        sentences.setdefault(_starred(path, below), set()).add(sentence)
    out: dict[str, str] = {}
    for path, below, sentence in reasons:
        starred = _starred(path, below)
        out["/".join(starred if len(sentences[starred]) == 1 else (*path, *below))] = sentence
    return out


def _starred(path: _Path, below: _Path) -> _Path:
    return tuple(_ANY if part.isdecimal() else part for part in (*path, *below))


def _fits(pattern: _Path, path: _Path) -> bool:
    return len(pattern) == len(path) and all(p in (_ANY, x) for p, x in zip(pattern, path, strict=True))


def _nulls(value: Any, path: _Path) -> Iterator[_Path]:
    if isinstance(value, dict):
        for key, x in value.items():
            yield from _nulls(x, (*path, _key(key)))
    elif isinstance(value, (list, tuple)):
        for k, x in enumerate(value):
            yield from _nulls(x, (*path, str(k)))
    elif value is None:
        yield path


def _key(key: Any) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
