"""Pieces of a report as HTML: tables, figures, callouts. Text is escaped; what is `Html` already goes in as it is."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from steelyard.ground.numbers import DASH, Known, number
from steelyard.report.plots.figure import Figure

CalloutKind = Literal["good", "note", "warning", "bad"]
_SIGNS: dict[CalloutKind, tuple[str, str]] = {
    "good": ("✓", "Good"),
    "note": ("i", "Note"),
    "warning": ("!", "Warning"),
    "bad": ("✕", "Problem"),
}
# How the page finds the data of figures, and whether one of them is in space.
PLOT_DATA, IN_SPACE = 'class="plot-data"', "data-space"
# The same of a robot in space, and of what else a script makes better.
SCENE_DATA, TABS, COMMAND = 'class="scene-data"', 'class="tabs"', 'class="command"'
# Cells of text up to this length are never broken: units, names of joints.
_SHORT = 26


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Heat:
    """A number, or words with one, in a cell that is coloured by a `level` from 0 (nothing) to 1."""

    why_null: ClassVar = {"value": "There is none; below the table it says why."}
    value: float | str | None
    level: float


TableCell = str | float | int | bool | Known | Heat | None


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its name, its unit, and how many digits (or, if given, decimal places) its numbers show."""

    why_null: ClassVar = {"places": "There is no fixed number of them: see digits."}
    name: str
    unit: str = ""
    digits: int = 4
    places: int | None = None


def text(value: str) -> Html:
    """`value`, plain text, as HTML."""
    return value if isinstance(value, Html) else Html(html.escape(value))


def join(*pieces: str) -> Html:
    """The `pieces` one after the other."""
    return Html("\n".join(text(piece) for piece in pieces))


def paragraph(value: str) -> Html:
    """`value` as a paragraph."""
    return Html(f"<p>{text(value)}</p>")


def callout(kind: CalloutKind, message: str, word: str = "") -> Html:
    """A box of a `kind` with a `message` that a reader must not miss, after a `word` (default: that of the kind)."""
    sign, usual = _SIGNS[kind]
    return Html(
        f'<div class="callout {kind}" role="note"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<div><strong class="word">{text(word or usual)}.</strong> {text(message)}</div></div>'
    )


def table_html(
    columns: Sequence[TableColumn | str], rows: Iterable[Sequence[TableCell]], caption: str = "", dash: str = "",
    above: Sequence[tuple[str, int]] = (), tall: bool = False,
) -> Html:  # fmt: skip
    """A table of `columns` and `rows` below a `caption`; numbers stand right, few digits, and show all on hover. `dash`
    says why a cell may be empty, below a table in which one is. `above` are heads over so many columns each. A
    `tall` table scrolls by itself."""
    heads = [column if isinstance(column, TableColumn) else TableColumn(column) for column in columns]
    filled = [[_plain(value) for value in row] for row in rows]
    numeric = [any(_is_number(row[k]) for row in filled) for k in range(len(heads))]
    # The title stands above the part that scrolls sideways: inside it would be cut off on a phone.
    lines = [f'<p class="table-title">{text(caption)}</p>'] if caption else []
    label = f' aria-label="{html.escape(caption, quote=True)}"' if caption else ""
    lines += [
        f'<div class="scroll{" tall" if tall else ""}{" grouped" if above else ""}" tabindex="0"><table{label}>',
        "<thead>",
    ]
    if above:
        spans = "".join(f'<th scope="colgroup" colspan="{count}">{text(name)}</th>' for name, count in above)
        lines.append(f'<tr class="above">{spans}</tr>')
    lines.append("<tr>")
    for column, right in zip(heads, numeric, strict=True):
        unit = f' <span class="unit">[{html.escape(column.unit)}]</span>' if column.unit else ""
        lines.append(f'<th scope="col"{_right(right)}>{text(column.name)}{unit}</th>')
    lines.append("</tr></thead><tbody>")
    for row in filled:
        cells = zip(heads, row, numeric, strict=True)
        lines.append("<tr>" + "".join(_cell(column, value, right) for column, value, right in cells) + "</tr>")
    lines.append("</tbody></table></div>")
    if dash and any(_shown(heads[k], value) == DASH for row in filled for k, value in enumerate(row)):
        lines.append(f'<p class="dash">{DASH} {text(dash)}</p>')
    return Html("\n".join(lines))


def figure_html(figure: Figure, title: str, caption: str = "") -> Html:
    """A `figure` with `title` and `caption`, drawn by the page when it comes into view, in the colours of the page."""
    # At the next level compression takes 1.7 times as long for 1.5 percent; without the time: the same is the same.
    data = base64.b64encode(gzip.compress(figure.json().encode("utf-8"), 5, mtime=0)).decode("ascii")
    space = f" {IN_SPACE}" if figure.in_space else ""
    if len(figure.joints) > 1:
        space += f' data-joints="{_attribute(list(figure.joints))}"'
    if figure.clock:
        space += f' data-clock="{_attribute(figure.clock)}"'
    below = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return Html(
        f'<figure class="plot"><h3>{text(title)}</h3>'
        f'<div class="area" style="height:{figure.height_on_page}px" role="group" '
        f'aria-label="{html.escape(title, quote=True)}"></div>'
        f'<script type="text/plain" {PLOT_DATA}{space}>{data}</script>{below}</figure>'
    )


def _attribute(value: Any) -> str:
    """A `value` as JSON in an attribute of an element."""
    return html.escape(json.dumps(value, ensure_ascii=False), quote=True)


def tabs(*pieces: tuple[str, str]) -> Html:
    """`pieces`, each a short title and what it shows, of which a page shows one at a time, and paper all."""
    if len(pieces) == 1:
        return text(pieces[0][1])
    made = [
        f'<div class="tab" data-title="{html.escape(title, quote=True)}">{text(body)}</div>' for title, body in pieces
    ]
    return Html(f"<div {TABS}>" + "\n".join(made) + "</div>")


def parameter_table(
    names: Sequence[str], units: Sequence[str], columns: Sequence[tuple[str, Sequence[TableCell]]], caption: str
) -> Html:
    """Base parameters (`names`, `units`) down, whatever gives them values across: `columns` are heads with values.
    `caption` stands above."""
    rows = [
        [name, unit, *(values[k] for _, values in columns)]
        for k, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    return table_html(["base parameter", "unit", *(head for head, _ in columns)], rows, caption)


def commands(*pairs: tuple[str, str]) -> Html:
    """What to do next: `pairs` of a sentence and the command for it, which can be copied. RUN in a command is the
    folder that the page lies in, which it fills in when it is opened."""
    made = []
    for why, command in pairs:
        filled = re.sub(r"\bRUN\b", '<span class="run">RUN</span>', str(text(command)))
        made.append(f"<p>{text(why)}</p><div {COMMAND}><code>{filled}</code></div>")
    return Html("\n".join(made))


_WIDE, _HIGH, _EDGE = 170, 18, 6  # pixels of a whisker, and what it keeps free on both sides


def whisker(value: float, half: float, before: float | None = None) -> Html:
    """A `value` with `half` of its interval on a scale of its own, as a small picture: a dot on a line, a tick at zero
    and an open diamond at the value `before` (None: there is none)."""
    error = half if math.isfinite(half) else 0.0
    shown = [0.0, value - error, value + error, *([before] if before is not None and math.isfinite(before) else [])]
    low, high = min(shown), max(shown)
    if high == low:
        return Html("")
    at = [_EDGE + (_WIDE - 2 * _EDGE) * (x - low) / (high - low) for x in (0.0, value - error, value, value + error)]
    zero, left, middle, right = (f"{x:.1f}" for x in at)
    y = _HIGH // 2
    parts = [
        f'<path class="zero" d="M{zero} 1V{_HIGH - 1}"/>',
        f'<path class="bar" d="M{left} {y}H{right}M{left} {y - 3}v6M{right} {y - 3}v6"/>',
        f'<circle cx="{middle}" cy="{y}" r="3.2"/>',
    ]
    if len(shown) == 4:
        x = _EDGE + (_WIDE - 2 * _EDGE) * (shown[3] - low) / (high - low)
        parts.append(f'<path class="old" d="M{x - 4:.1f} {y}l4 -4l4 4l-4 4z"/>')
    return Html(f'<svg class="whisker" width="{_WIDE}" height="{_HIGH}" aria-hidden="true">{"".join(parts)}</svg>')


def side_by_side(*figures: str) -> Html:
    """The `figures` beside each other where the page is wide enough, else one below the other."""
    return Html('<div class="pair">' + "\n".join(text(figure) for figure in figures) + "</div>")


def anchor(title: str, taken: set[str]) -> str:
    """A name for links to the section `title`, unlike all in `taken`, which it joins."""
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    name, k = base, 2
    while name in taken:
        name, k = f"{base}-{k}", k + 1
    taken.add(name)
    return name


def _plain(value: TableCell) -> TableCell:
    """NumPy's numbers as Python's."""
    plain: TableCell = value.item() if isinstance(value, np.generic) else value
    return plain


def _is_number(value: TableCell) -> bool:
    return isinstance(value, int | float | Known | Heat) and not isinstance(value, bool)


def _right(right: bool) -> str:
    return ' class="number"' if right else ""


def _cell(column: TableColumn, value: TableCell, right: bool) -> str:
    shown = text(_shown(column, value))
    if isinstance(value, bool):
        return f"<td>{shown}</td>"
    if isinstance(value, str):
        whole = ' class="short"' if len(value) <= _SHORT and not right else _right(right)
        return f"<td{whole}>{shown}</td>"
    whole_number = value.value if isinstance(value, Known | Heat) else value
    known = isinstance(whole_number, int | float) and math.isfinite(whole_number)
    full = f' title="{whole_number!r}"' if known else ""
    heat = f' style="--level:{100.0 * value.level:.0f}%"' if isinstance(value, Heat) and value.level else ""
    return f"<td{_right(right)}{full}{heat}>{shown}</td>"


def _shown(column: TableColumn, value: TableCell) -> str:
    """What a cell says."""
    if isinstance(value, Heat):
        value = value.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Html):
        return value
    if isinstance(value, int | str | Known):
        return str(value)
    if column.places is not None and value is not None and math.isfinite(value):
        return f"{value:.{column.places}f}"
    return number(value, column.digits)
