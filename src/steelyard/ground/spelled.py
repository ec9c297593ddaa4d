"""Settings that people type behind a name, "ekf:start=prior", "filtered-dynamic:cutoff_hz=1.5,order=2"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.errors import SteelyardError, UnknownNameError

_WORDS = {"yes": True, "true": True, "no": False, "false": False}


def spelled_options(
    noun: str, text: str, kinds: Mapping[str, str], *, example: str, shown: Iterable[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """The name that `text` begins with, and the options behind it, each as its type.

    Args:
        noun: what is named, for messages: "scheme".
        text: what was typed.
        kinds: the types of all options, as annotations write them.
        example: how it is done right.
        shown: the options that people are told of, where those are not all.
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


def _value(whose: str, kind: str, value: str) -> Any:
    """What was typed, as the option's type; whoever takes a word says which words there are."""
    if kind.startswith(("str", "Literal")):
        return value
    if "bool" in kind:
        if value.lower() not in _WORDS:
            raise SteelyardError(f"{whose}: '{value}' is neither yes nor no.")
        return _WORDS[value.lower()]
    number = int if "int" in kind else float if "float" in kind else None
    if number is None:
        return value
    try:
        return number(value)
    except ValueError:
        what = "a whole number" if number is int else "a number"
        raise SteelyardError(f"{whose}: '{value}' is not {what}.") from None
