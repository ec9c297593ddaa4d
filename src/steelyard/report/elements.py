"""HTML elements of reports: tables, figures, callouts. Plain text is escaped; `Html` is inserted unchanged."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from steelyard.ground.grades import SIGNS, Tone
from steelyard.ground.numbers import DASH, Known, number
from steelyard.report.plots.figure import Figure

# Marks by which the page's scripts find figures, and three-dimensional figures.
PLOT_DATA, IN_SPACE = 'class="plot-data"', "data-space"
# Marks of robot scenes, tabs and commands.
SCENE_DATA, TABS, COMMAND = 'class="scene-data"', 'class="tabs"', 'class="command"'
# Text cells up to this many characters are not wrapped: units, joint names.
_SHORT = 26


class Html(str):
    """Text that is already HTML."""

    __slots__ = ()


@dataclass(frozen=True)
class Heat:
    """A table cell with a background colour.

    Attributes:
        value: Number or text; None for an empty cell.
        level: Strength of the colour, from 0 (none) to 1.
    """

    why_null: ClassVar = {"value": "The cell is empty; a note below the table gives the reason."}
    value: float | str | None
    level: float


TableCell = str | float | int | bool | Known | Heat | None


@dataclass(frozen=True)
class TableColumn:
    """A table column.

    Attributes:
        name: Heading.
        unit: Unit, shown in brackets after the name.
        digits: Significant digits of its numbers.
        places: Decimal places of its numbers; replaces `digits`.
    """

    why_null: ClassVar = {"places": "The number of decimal places is not fixed: see digits."}
    name: str
    unit: str = ""
    digits: int = 4
    places: int | None = None


def text(value: str) -> Html:
    """Escape `value` unless it is already HTML."""
    return value if isinstance(value, Html) else Html(html.escape(value))


def join(*pieces: str) -> Html:
    """Join the `pieces`, one after the other."""
    return Html("\n".join(text(piece) for piece in pieces))


def paragraph(value: str) -> Html:
    """Wrap `value` in a paragraph."""
    return Html(f"<p>{text(value)}</p>")


def callout(kind: Tone, message: str, word: str = "") -> Html:
    """Draw a coloured box around a message.

    Args:
        kind: Selects colour and sign.
        message: Text of the box.
        word: Bold first word; default: the word of the kind.
    """
    sign, usual = SIGNS[kind]
    return Html(
        f'<div class="callout {kind}" role="note"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<div><strong class="word">{text(word or usual)}.</strong> {text(message)}</div></div>'
    )


def table_html(
    columns: Sequence[TableColumn | str], rows: Iterable[Sequence[TableCell]], caption: str = "", dash: str = "",
    above: Sequence[tuple[str, int]] = (), tall: bool = False,
) -> Html:  # fmt: skip
    """Build a table. Numbers are right-aligned and rounded; all digits are shown on hover.

    Args:
        columns: Columns, or their names.
        rows: Cells, row by row.
        caption: Title above the table.
        dash: Reason for empty cells, printed below a table that has one.
        above: Headings of column groups, each with its number of columns.
        tall: Limit the height of the table and let it scroll.
    """
    heads = [column if isinstance(column, TableColumn) else TableColumn(column) for column in columns]
    filled = [[_plain(value) for value in row] for row in rows]
    numeric = [any(_is_number(row[k]) for row in filled) for k in range(len(heads))]
    # The title is outside the scrolling part, which would cut it off on a phone.
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
    """Embed a figure, which the page draws when it scrolls into view.

    Args:
        figure: Figure.
        title: Heading above it.
        caption: Text below it.
    """
    # Level 6 takes 1.7 times as long for 1.5 percent. Without the time stamp, equal figures give equal bytes.
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
    """Encode a value as JSON inside an HTML attribute."""
    return html.escape(json.dumps(value, ensure_ascii=False), quote=True)


def tabs(*pieces: tuple[str, str]) -> Html:
    """Build tabs from `pieces`, pairs of a short title and a body. The screen shows one at a time, a print-out all."""
    if len(pieces) == 1:
        return text(pieces[0][1])
    made = [
        f'<div class="tab" data-title="{html.escape(title, quote=True)}">{text(body)}</div>' for title, body in pieces
    ]
    return Html(f"<div {TABS}>" + "\n".join(made) + "</div>")


def parameter_table(
    names: Sequence[str], units: Sequence[str], columns: Sequence[tuple[str, Sequence[TableCell]]], caption: str
) -> Html:
    """Build a table with one row per base parameter and one column per source of values.

    Args:
        names: Names of the base parameters.
        units: Units of the base parameters.
        columns: Heading and values of each column.
        caption: Title above the table.
    """
    rows = [
        [name, unit, *(values[k] for _, values in columns)]
        for k, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    return table_html(["base parameter", "unit", *(head for head, _ in columns)], rows, caption)


def commands(*pairs: tuple[str, str]) -> Html:
    """List next steps: `pairs` of a sentence and a command that can be copied.

    A script in the page replaces RUN in a command by the folder of the page.
    """
    made = []
    for why, command in pairs:
        filled = re.sub(r"\bRUN\b", '<span class="run">RUN</span>', str(text(command)))
        made.append(f"<p>{text(why)}</p><div {COMMAND}><code>{filled}</code></div>")
    return Html("\n".join(made))


_WIDE, _HIGH, _EDGE = 170, 18, 6  # width, height and side margin of a whisker [pixels]


def whisker(value: float, half: float, before: float | None = None) -> Html:
    """Draw a value and its interval as a small picture: a dot on a line, with a tick at zero.

    Args:
        value: Value, at the dot.
        half: Half the width of its interval.
        before: Earlier value, drawn as an open diamond; None omits it.
    """
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
    """Put `figures` next to each other where the page is wide enough, else one below the other."""
    return Html('<div class="pair">' + "\n".join(text(figure) for figure in figures) + "</div>")


def anchor(title: str, taken: set[str]) -> str:
    """Return a unique link target for a section.

    Args:
        title: Title of the section.
        taken: Link targets in use; the new one is added.
    """
    base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    name, k = base, 2
    while name in taken:
        name, k = f"{base}-{k}", k + 1
    taken.add(name)
    return name


def _plain(value: TableCell) -> TableCell:
    """Convert NumPy scalars to Python's."""
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
    """Return the text of a cell."""
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
