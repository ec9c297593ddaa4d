"""Parses options after a name, such as "ekf:start=prior" or "filtered-dynamic:cutoff_hz=1.5,order=2"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.errors import SteelyardError, UnknownNameError

_WORDS = {"yes": True, "true": True, "no": False, "false": False}


def parse_named_options(
    noun: str, text: str, kinds: Mapping[str, str], *, example: str, shown: Iterable[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """Parse a name and its options, converted to their types.

    Args:
        noun: Kind of the name, for messages: "scheme".
        text: Text to parse.
        kinds: Type annotations of all options, by name.
        example: Correct text for messages.
        shown: Options to list in messages; default: all.
    """
    name, _, tail = text.partition(":")
    options: dict[str, Any] = {}
    for pair in filter(None, tail.replace(":", ",").split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise SteelyardError(f"{noun.capitalize()} '{text}': write options as name=value, e.g. {example}.")
        if key not in kinds:
            raise UnknownNameError(f"option of {noun} '{name}'", key, kinds if shown is None else shown)
        options[key] = _value(f"{noun.capitalize()} '{text}'", kinds[key], value)
    return name, options


def _value(source: str, kind: str, value: str) -> Any:
    """Convert a text to the option's type; a choice of words is checked by its user."""
    if kind.startswith(("str", "Literal")):
        return value
    if "bool" in kind:
        if value.lower() not in _WORDS:
            raise SteelyardError(f"{source}: '{value}' must be yes or no.")
        return _WORDS[value.lower()]
    number = int if "int" in kind else float if "float" in kind else None
    if number is None:
        return value
    try:
        return number(value)
    except ValueError:
        expected = "a whole number" if number is int else "a number"
        raise SteelyardError(f"{source}: '{value}' is not {expected}.") from None
