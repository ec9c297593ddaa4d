"""Two runs side by side: verdicts, and the settings and numbers that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.ground.numbers import number
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.studio.library_pages import headline_html, library_link, when_html
from steelyard.studio.run_entries import RunEntry

# Keys that identify the members of a list, so that equal members are compared.
_NAMES = ("name", "joint", "log", "scheme", "estimator", "region", "movement", "kind")
_NOT_COMPARED = ("command", "why_null", "fingerprint", "inputs", "notes")
_MOST_NUMBERS, _MOST_ROWS = 20_000, 150
_ABSENT = "–"
# Relative differences below this are rounding.
_SAME = 1e-12


def comparison_page(first: RunEntry, second: RunEntry, differences: str = "") -> Html:
    """Render two runs side by side.

    Args:
        first: Run A.
        second: Run B.
        differences: HTML that replaces the generic lists of settings and numbers; "" for none.
    """
    cards = "".join(
        f'<div class="card"><h2>{sign}: {library_link(run.name, run=run.name)}</h2><p class="hint">{text(run.kind)}, '
        f"{when_html(run.when)}</p>{run.summary.picture}{headline_html(run.summary.headline)}</div>"
        for sign, run in (("A", first), ("B", second))
    )
    return join(
        library_link("← all runs"), Html(f'<h1>Two runs compared</h1><div class="two">{cards}</div>'),
        Html(differences or _settings(first, second) + _numbers(first, second)),
    )  # fmt: skip


def _settings(first: RunEntry, second: RunEntry) -> Html:
    a, b = ({"inputs": " ".join(run.inputs), **dict(run.settings)} for run in (first, second))
    rows = [
        [name, a.get(name, _ABSENT) or "yes", b.get(name, _ABSENT) or "yes"]
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    ]
    if not rows:
        return callout("note", "Both runs have the same inputs and settings.", "Settings")
    return table_html(["setting", "A", "B"], rows, "Settings that differ")


def _numbers(first: RunEntry, second: RunEntry) -> Html:
    if first.kind != second.kind:
        return callout("note", "The runs are of different commands, so their numbers cannot be compared.")
    first_values, second_values = (dict(leaves(run.result())) for run in (first, second))
    rows: list[list[Any]] = []
    for name in dict.fromkeys((*first_values, *second_values)):
        a, b = first_values.get(name, _ABSENT), second_values.get(name, _ABSENT)
        if not _is_equal(a, b):
            rows.append([name, _format(a), _format(b), _change(a, b)])
    if not rows:
        return callout("good", "All numbers of the results are equal.", "Same")
    title = f"Numbers that differ: {len(rows)} of {len(first_values.keys() | second_values.keys())}"
    title += f"; the first {_MOST_ROWS}" if len(rows) > _MOST_ROWS else ""
    return table_html(["value", "A", "B", "change from A to B"], rows[:_MOST_ROWS], title, tall=True)


def leaves(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path (`validation/b/joints/q1/rmse`) and value of the first 20,000 numbers and texts of a `result`."""
    left = _MOST_NUMBERS
    stack: list[tuple[str, Any]] = [
        (str(key), value) for key, value in reversed(list(result.items())) if key not in _NOT_COMPARED
    ]
    while stack and left:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(f"{path}/{key}", inner) for key, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            stack += [(f"{path}/{_member_name(inner, k)}", inner) for k, inner in reversed(list(enumerate(value)))]
        else:
            left -= 1
            yield path, value


def _member_name(member: Any, k: int) -> str:
    if isinstance(member, Mapping):
        for name in _NAMES:
            if isinstance(member.get(name), str):
                return str(member[name])
    return str(k + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(a: Any, b: Any) -> bool:
    if _is_number(a) and _is_number(b):
        return math.isclose(a, b, rel_tol=_SAME, abs_tol=0.0)
    return bool(a == b)


def _format(value: Any) -> str:
    return number(float(value), 6) if _is_number(value) else str(value)[:200]


def _change(a: Any, b: Any) -> str:
    return f"{100.0 * (b - a) / abs(a):+.2g} %" if _is_number(a) and _is_number(b) and a else _ABSENT
