"""The names that people type for schemes. To add one, write a class with `data` and list it here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.regression.schemes.dynamic import Dynamic
from steelyard.regression.schemes.energy import Energy
from steelyard.regression.schemes.filtered_dynamic import FilteredDynamic
from steelyard.regression.schemes.filtered_power import FilteredPower
from steelyard.regression.schemes.momentum import Momentum
from steelyard.regression.schemes.power import Power
from steelyard.regression.schemes.scheme import Scheme

_CLASSES: dict[str, Any] = {cls.name: cls for cls in (Dynamic, FilteredDynamic, Energy, Power, FilteredPower, Momentum)}
SCHEMES: tuple[str, ...] = tuple(_CLASSES)

_WORDS = {"yes": True, "true": True, "no": False, "false": False}


def make_scheme(text: str | Scheme) -> Scheme:
    """A scheme by name, with options if any: "filtered-dynamic:cutoff=9.11,order=2", "energy:growing=yes".

    >>> make_scheme("filtered-dynamic:cutoff=9.11,order=2").order
    2
    """
    if not isinstance(text, str):
        return text
    name, _, tail = text.partition(":")
    if name not in _CLASSES:
        raise UnknownNameError("scheme", name, SCHEMES)
    known = {f.name: str(f.type) for f in fields(_CLASSES[name])}
    options: dict[str, Any] = {}
    for pair in filter(None, tail.replace(":", ",").split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SteelyardError(f"Scheme '{text}': write options as name=value, e.g. filtered-dynamic:cutoff=9.11.")
        if key not in known:
            raise UnknownNameError(f"option of scheme '{name}'", key, known)
        options[key] = _value(text, known[key], value)
    made: Scheme = _CLASSES[name](**options)
    return made


def scheme_text(scheme: Scheme) -> str:
    """What `make_scheme` would be given to make it; options at their defaults are left out."""
    settings: Any = scheme
    given = {f.name: getattr(scheme, f.name) for f in fields(settings) if getattr(scheme, f.name) != f.default}
    shown = {k: {True: "yes", False: "no"}[v] if isinstance(v, bool) else v for k, v in given.items()}
    return ":".join(filter(None, [scheme.name, ",".join(f"{k}={v}" for k, v in shown.items())]))


def _value(text: str, kind: str, value: str) -> Any:
    """What was typed, as the option's type."""
    if "bool" in kind:
        if value.lower() not in _WORDS:
            raise SteelyardError(f"Scheme '{text}': '{value}' is neither yes nor no.")
        return _WORDS[value.lower()]
    number = int if "int" in kind else float if "float" in kind else None
    if number is None:
        return value
    try:
        return number(value)
    except ValueError:
        what = "a whole number" if number is int else "a number"
        raise SteelyardError(f"Scheme '{text}': '{value}' is not {what}.") from None
