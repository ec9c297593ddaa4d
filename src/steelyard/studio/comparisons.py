"""Two runs side by side: verdicts, the settings and the numbers in which they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.ground.numbers import number
from steelyard.report.elements import Html, callout, join, table_html, text
from steelyard.studio.library_pages import glance_html, library_link, when_html
from steelyard.studio.shelf import ShelvedRun

# What tells members of a list apart, so that like is compared with like.
_NAMES = ("name", "joint", "log", "scheme", "estimator", "region", "movement", "kind")
_NOT_COMPARED = ("command", "why_null", "fingerprint", "inputs", "notes")
_MOST_NUMBERS, _MOST_ROWS = 20_000, 150
_ABSENT = "–"
# Relative differences below this are rounding.
_SAME = 1e-12


def comparison_page(first: ShelvedRun, second: ShelvedRun, differences: str = "") -> Html:
    """Two runs, `first` and `second`, beside each other; `differences` are those that someone knows how to show
    better than as numbers."""
    cards = "".join(
        f'<div class="card"><h2>{sign}: {library_link(run.name, run=run.name)}</h2><p class="hint">{text(run.kind)}, '
        f"{when_html(run.when)}</p>{run.summary.picture}{glance_html(run.summary.glance)}</div>"
        for sign, run in (("A", first), ("B", second))
    )
    return join(
        library_link("← all runs"), Html(f'<h1>Two runs compared</h1><div class="two">{cards}</div>'),
        Html(differences or _settings(first, second) + _numbers(first, second)),
    )  # fmt: skip


def _settings(first: ShelvedRun, second: ShelvedRun) -> Html:
    ours, theirs = ({"given": " ".join(run.inputs), **dict(run.settings)} for run in (first, second))
    rows = [
        [name, ours.get(name, _ABSENT) or "yes", theirs.get(name, _ABSENT) or "yes"]
        for name in dict.fromkeys((*ours, *theirs))
        if ours.get(name) != theirs.get(name)
    ]
    if not rows:
        return callout("note", "Both were made by the same words.", "Settings")
    return table_html(["setting", "A", "B"], rows, "Settings that differ")


def _numbers(first: ShelvedRun, second: ShelvedRun) -> Html:
    if first.kind != second.kind:
        return callout("note", "These are runs of different commands; their numbers do not stand for the same.")
    ours, theirs = (dict(leaves(run.result())) for run in (first, second))
    rows: list[list[Any]] = []
    for name in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
        if not _alike(a, b):
            rows.append([name, _shown(a), _shown(b), _change(a, b)])
    if not rows:
        return callout("good", "Their results are the same, number by number.", "Same")
    title = f"Numbers that differ: {len(rows)} of {len(ours.keys() | theirs.keys())}"
    title += f"; the first {_MOST_ROWS}" if len(rows) > _MOST_ROWS else ""
    return table_html(["what", "A", "B", "B against A"], rows[:_MOST_ROWS], title, tall=True)


def leaves(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The numbers and words of a `result` by the way to each, `validation/b/joints/q1/rmse`; so many at most."""
    left = _MOST_NUMBERS
    stack: list[tuple[str, Any]] = [
        (str(key), value) for key, value in reversed(list(result.items())) if key not in _NOT_COMPARED
    ]
    while stack and left:
        way, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [(f"{way}/{key}", inner) for key, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            stack += [(f"{way}/{_called(inner, k)}", inner) for k, inner in reversed(list(enumerate(value)))]
        else:
            left -= 1
            yield way, value


def _called(member: Any, k: int) -> str:
    if isinstance(member, Mapping):
        for name in _NAMES:
            if isinstance(member.get(name), str):
                return str(member[name])
    return str(k + 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _alike(a: Any, b: Any) -> bool:
    if _is_number(a) and _is_number(b):
        return math.isclose(a, b, rel_tol=_SAME, abs_tol=0.0)
    return bool(a == b)


def _shown(value: Any) -> str:
    return number(float(value), 6) if _is_number(value) else str(value)[:200]


def _change(a: Any, b: Any) -> str:
    return f"{100.0 * (b - a) / abs(a):+.2g} %" if _is_number(a) and _is_number(b) and a else _ABSENT
