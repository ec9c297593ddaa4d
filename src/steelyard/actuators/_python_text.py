"""Writes Python configuration text: calls with one argument per line and the interval of each number as a comment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# A value as Python source, and the comment on its line.
Argument = tuple[str, str]


def literal(value: float) -> str:
    """Return a `value` with nine digits; no interval needs more."""
    return repr(float(f"{float(value) + 0.0:.9g}"))


def commented(lines: Sequence[str]) -> list[str]:
    """Return the `lines` as comments."""
    return [f"# {line}" for line in lines]


def call(target: str, function: str, arguments: Mapping[str, Argument]) -> list[str]:
    """Return an assignment of a call.

    Args:
        target: Name on the left.
        function: Called name.
        arguments: Source and comment of each keyword.
    """
    lines = [f"{target} = {function}("]
    for name, (source, note) in arguments.items():
        lines.append(f"    {name}={source},{f'  # {note}' if note else ''}")
    return [*lines, ")"]


def variable(text: str) -> str:
    """Return a name of a Python constant for a `text`."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in text).strip("_").upper() or "DRIVE"
    return plain if plain[0].isalpha() else f"DRIVE_{plain}"


def quoted(text: str) -> str:
    """Return a `text` as Python source in double quotes, without characters that end a line."""
    escaped = text.encode("unicode_escape").decode("ascii").replace('"', '\\"')
    return f'"{escaped}"'


def regex_quoted(text: str) -> str:
    """Return a name as Python source of a regular expression that matches only this `text`."""
    import re

    return quoted(re.escape(text))
