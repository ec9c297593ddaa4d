"""Why a document for machines has a null: a sentence for each, said by who left the value out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

# The key, at the top of a document, of the sentences by path; on a dataclass, the attribute that has them by field.
WHY_NULL = "why_null"
_Path = tuple[str, ...]
_ANY = "*"


def explained(value: Any, why: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`value` as plain data for JSON, null where something is missing or not finite, and why.

    At the top the document has `why_null`: a sentence by the path of each null, such as "links/*/mass", where * is
    every member of a list that is null there. (A "/" in a key is written ~1 and a "~" ~0, as in RFC 6901.)

    Args:
        value: a dictionary or a dataclass, of dictionaries, lists, numbers and dataclasses; a dataclass has sentences
            by field in a class variable `why_null`. Parts may be explained already: what they say moves to the top.
        why: more sentences by path, here and below; * is any key or number.
    """
    said: list[tuple[_Path, _Path, str]] = []
    given = [(tuple(path.split("/")), sentence) for path, sentence in (why or {}).items()]
    made: dict[str, Any] = _plain(value, (), said, given)
    return made | {WHY_NULL: _brief(said)} if said else made


def missing(document: Any) -> Iterator[str]:
    """The paths of what is null in a `document` without a sentence that says why."""
    said = document.get(WHY_NULL, {}) if isinstance(document, dict) else {}
    patterns = [tuple(path.split("/")) for path in said]
    for path in _nulls(document, ()):
        if not any(_fits(pattern, path) for pattern in patterns):
            yield "/".join(path)


def _plain(value: Any, path: _Path, said: list[tuple[_Path, _Path, str]], given: list[tuple[_Path, str]]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = getattr(value, WHY_NULL, {})
        value = {f.name: getattr(value, f.name) for f in fields(value)}
        given = [*given, *(((*path, *below.split("/")), sentence) for below, sentence in own.items())]
    if isinstance(value, dict):
        for below, sentence in value.get(WHY_NULL, {}).items():
            said.append((path, tuple(below.split("/")), sentence))
        items = [(key, x) for key, x in value.items() if key != WHY_NULL]
        return {key: _plain(x, (*path, _key(key)), said, given) for key, x in items}
    if isinstance(value, (list, tuple)):
        return [_plain(x, (*path, str(k)), said, given) for k, x in enumerate(value)]
    odd = "" if value is None else _odd(value)
    if value is None or odd:
        sentence = next((s for pattern, s in given if _fits(pattern, path)), odd)
        if sentence:
            said.append((path[:-1], path[-1:], sentence))
        return None
    return value


def _odd(value: Any) -> str:
    """Why a number is none."""
    if not isinstance(value, float) or math.isfinite(value):
        return ""
    return "It is not defined (0/0)." if math.isnan(value) else "It is infinite."


def _brief(said: list[tuple[_Path, _Path, str]]) -> dict[str, str]:
    """Sentences by path, with * for the numbers of lists where they agree."""
    alike: dict[_Path, set[str]] = {}
    for path, below, sentence in said:
        alike.setdefault(_starred(path, below), set()).add(sentence)
    out: dict[str, str] = {}
    for path, below, sentence in said:
        starred = _starred(path, below)
        out["/".join(starred if len(alike[starred]) == 1 else (*path, *below))] = sentence
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
