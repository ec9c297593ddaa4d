"""`Figure`: what plotly.js draws, as plain dictionaries; panels one above the other, a legend on top.

Plotly's own Python classes would check every word of this, and take half a second to be imported. Here the tests look
at the figures instead. The words are those of plotly.js: https://plotly.com/javascript/reference/.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from steelyard.ground.files import plain
from steelyard.report.plots.series import in_steps, rounded

# Colours that everybody can tell apart (Okabe & Ito 2008, "Color universal design"), on light and on dark.
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"
# In the order in which series take them; the yellow of the set, too pale for lines on white, is left out.
SERIES = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, GREY)
# The colour of text; pages in the dark turn it light, as they do with the blue.
INK = "#1B1F24"
# What the same thing looks like in every figure.
MEASURED, PREDICTED, RESIDUAL, BEFORE, AFTER = INK, VERMILLION, BLUE, GREY, BLUE
# From low to high, and on both sides of zero, where nothing shows: to be told apart on light and on dark, by everybody.
RISING = [[0.0, "#00224E"], [0.25, "#424E6C"], [0.5, "#7D7C78"], [0.75, "#BDB16C"], [1.0, "#FEE838"]]
AROUND_ZERO = [
    [0.0, "#0072B2"],
    [0.25, "#56B4E9"],
    [0.5, "rgba(140,140,140,0.12)"],
    [0.75, "#E69F00"],
    [1.0, "#D55E00"],
]

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_TOP, _BOTTOM = 64, 56  # pixels for the legend, and for the lowest axis
# Panels beside each other on a wide page, and pixels of one with what is around it.
_BESIDE, _SMALL = 3, 165

Words = dict[str, Any]


class Figure:
    """Traces, layout and frames of an animation. Rows count from the top; the first is 1. Panels have a `height` in
    pixels, axes a `title` that names the unit; `words` are plotly's own."""

    def __init__(self, height: int, *, flat: bool = True) -> None:
        """One panel of `height` pixels with legend and axes, or where it is not `flat` none, for a scene in space."""
        inside = max(height - _TOP - _BOTTOM, 1)
        self.data: list[Words] = []
        self.frames: list[Words] = []
        # Where there is a panel for each of them: a page shows all, small, or the one that the reader has chosen.
        self.joints: tuple[str, ...] = ()
        # What stands above their panels, where it is more than their names.
        self.titles: tuple[str, ...] = ()
        # The log whose time the panels are over, which a page links to the robot's posture.
        self.clock = ""
        self.layout: Words = {
            "height": height,
            "margin": {"l": 16, "r": 16, "t": _TOP, "b": _BOTTOM},
            "legend": {"orientation": "h", "x": 0.0, "xanchor": "left", "y": 1.0 + 24 / inside, "yanchor": "bottom"},
            "hovermode": "closest",
        }
        self._named: set[str] = set()
        if flat:
            self._panel(1, {}, {})

    @classmethod
    def stacked(cls, height: int, heights: Sequence[float], gap: float) -> Figure:
        """One panel per entry of `heights`, in these proportions, with `gap` of the whole between two of them."""
        made = cls(height)
        share = (1.0 - gap * (len(heights) - 1)) / sum(heights)
        top = 1.0
        for row, size in enumerate(heights, start=1):
            bottom = top - share * size
            place = {"domain": [max(bottom, 0.0), top], "anchor": _axis("x", row)}
            made._panel(row, {"domain": [0.0, 1.0], "anchor": _axis("y", row)}, place)
            top = bottom - gap
        return made

    @classmethod
    def panels(cls, titles: Sequence[str], *, shared: bool = True, height: int = 170) -> Figure:
        """A panel for each of `titles`; `shared` panels zoom together along x, and only the lowest says where."""
        rows = len(titles)
        inside = rows * height
        made = cls.stacked(inside + _TOP + _BOTTOM, [1.0] * rows, (34 if shared else 74) / inside if rows > 1 else 0.0)
        for row in range(1, rows) if shared else ():
            made.x_axis(row, matches=_axis("x", rows), showticklabels=False)
        made.layout["annotations"] = [
            # Titles stand left, where the eye looks for them.
            {"text": title, "font": {"size": 13}, "showarrow": False, "x": 0.0, "xanchor": "left", "xref": "paper",
             "y": made.axis("y", row)["domain"][1], "yanchor": "bottom", "yref": "paper"}
            for row, title in enumerate(titles, start=1)
            if title
        ]  # fmt: skip
        return made

    @classmethod
    def by_joint(cls, joints: Sequence[str], *, shared: bool = True, height: int = 170) -> Figure:
        """A panel for each of `joints`, of `height` pixels, `shared` or not as in `panels`; on a page they stand small
        and beside each other, or one alone."""
        made = cls.panels(joints, shared=shared, height=height)
        made.joints = tuple(joints)
        return made

    @property
    def height_on_page(self) -> int:
        """Pixels that a page leaves for it before it is drawn."""
        panels = len(self.joints)
        return int(self.layout["height"]) if panels < 2 else -(-panels // _BESIDE) * _SMALL + _TOP

    def _panel(self, row: int, x: Words, y: Words) -> None:
        title = {"title": {"standoff": 8}}
        self.layout[_key("x", row)] = {**x, **title, "automargin": True, "showgrid": True, "zeroline": False}
        self.layout[_key("y", row)] = {**y, "automargin": True, "showgrid": True, "zeroline": True}

    def axis(self, which: Literal["x", "y"], row: int = 1) -> Words:
        """What is said about the axis `which` ("x" or "y") of the panel in `row`."""
        found: Words = self.layout[_key(which, row)]
        return found

    def x_axis(self, row: int = 1, title: str | None = None, **words: Any) -> None:
        """Say more about the axis of the panel in `row`; of words that are None nothing is said."""
        self._say("x", row, title, words)

    def y_axis(self, row: int = 1, title: str | None = None, **words: Any) -> None:
        """As `x_axis`, for the panel in `row`."""
        self._say("y", row, title, words)

    def _say(self, which: Literal["x", "y"], row: int, title: str | None, words: Words) -> None:
        axis = self.axis(which, row)
        if title is not None:
            axis["title"] = {**axis.get("title", {}), "text": title}
        axis.update({key: value for key, value in words.items() if value is not None})

    def add(self, kind: str, row: int = 1, **words: Any) -> None:
        """A trace of a `kind` in `row`. Those of one name share a place in the legend, which the first one takes."""
        name = words.get("name")
        if name is not None:
            words = {"legendgroup": name, "showlegend": name not in self._named, **words}
            self._named.add(name)
        place = {"scene": "scene"} if kind == "scatter3d" else {"xaxis": _axis("x", row), "yaxis": _axis("y", row)}
        given = {key: value for key, value in words.items() if value is not None}
        self.data.append({"type": kind, **given, **place})

    def line(
        self, row: int, x: ArrayLike, y: ArrayLike, name: str | None, colour: str, width: float, **words: Any
    ) -> None:
        """A line of many points `x`, `y` in `row`, over linear axes: `name` (None: unnamed), `colour`, `width`."""
        line = {"color": colour, "width": width, **words.pop("line", {})}
        self.add("scatter", row, x=in_steps(x), y=in_steps(y), mode="lines", name=name, line=line, **words)

    def area(self, row: int, x: ArrayLike, y: ArrayLike, name: str, colour: str, opacity: float) -> None:
        """What lies inside the outline `x`, `y` in `row`, filled: `name`, `colour`, and an `opacity` from 0 to 1."""
        shade = f"rgba({', '.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))}, {opacity})"
        self.line(row, x, y, name, colour, 0, fill="toself", fillcolor=shade, hoverinfo="skip")

    def band(self, row: int, x: ArrayLike, low: ArrayLike, high: ArrayLike, name: str, colour: str) -> None:
        """The band between `low` and `high` over `x` in `row`, filled lightly: `name`, `colour`."""
        across, below, above = (np.asarray(values, dtype=float) for values in (x, low, high))
        outline = np.concatenate([across, across[::-1]]), np.concatenate([above, below[::-1]])
        self.area(row, *outline, name, colour, 0.25)

    def bound(self, row: int, y: float) -> None:
        """A dashed line at `y` across the panel in `row`, for a limit."""
        shape = {"type": "line", "x0": 0, "x1": 1, "xref": f"{_axis('x', row)} domain", "y0": y, "y1": y,
                 "yref": _axis("y", row), "line": {"color": ORANGE, "width": 1.2, "dash": "dash"}}  # fmt: skip
        self.layout.setdefault("shapes", []).append(shape)

    @property
    def in_space(self) -> bool:
        """Whether the part of plotly.js for three dimensions is needed."""
        return any(trace["type"] == "scatter3d" for trace in self.data)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from steelyard.report.notebook import figure_bundle  # which knows this class

        return figure_bundle(self)

    def __repr__(self) -> str:
        return f"<Figure of {len(self.data)} series; to_plotly() for plotly's own>"

    def to_plotly(self) -> Any:
        """As `plotly.graph_objects.Figure`, to be changed further; needs plotly."""
        from steelyard.report.notebook import plotly_figure

        return plotly_figure(self)

    def json(self) -> str:
        """What plotly.js takes."""
        said = _lists(
            {"data": self.data, "layout": self.layout, "frames": self.frames, "joints": self.titles or self.joints}
        )
        try:
            return _WRITER.encode(said)
        except ValueError:  # gaps, of which few figures have any, are null
            return _WRITER.encode(plain(said))


def _axis(which: str, row: int) -> str:
    return which if row == 1 else f"{which}{row}"


def _key(which: str, row: int) -> str:
    return f"{which}axis" if row == 1 else f"{which}axis{row}"


def literal(name: str) -> str:
    """A `name` inside a template of plotly's, which is to stand there as it is."""
    return escape(name, quote=False).replace("{", "&#123;")


def _lists(value: Any) -> Any:
    """NumPy's arrays as lists, those of numbers in few digits; text, which plotly would take for HTML, as it is. Only
    templates are plotly's own."""
    if isinstance(value, dict):
        return {key: x if key == "hovertemplate" else _lists(x) for key, x in value.items()}
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, np.ndarray):
        return rounded(value) if value.dtype.kind == "f" else _lists(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        # Series hold many numbers, which need nothing.
        return [x if type(x) is float else _lists(x) for x in value]
    return value
