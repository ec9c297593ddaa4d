"""`Figure`: input of plotly.js as plain dictionaries; panels one above the other, a legend on top.

Plotly's Python classes would validate every key but take half a second to import; tests check the figures instead.
The keys are those of plotly.js: https://plotly.com/javascript/reference/.
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

# Colours for all kinds of colour vision (Okabe & Ito 2008, "Color universal design"), on light and on dark.
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"
# Colours of series, in order; without the yellow of the set, which is too pale for lines on white.
SERIES = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, GREY)
# Colour of text; dark pages replace it, and the blue, by light colours.
INK = "#1B1F24"
# The same quantity has the same colour in every figure.
MEASURED, PREDICTED, RESIDUAL, BEFORE, AFTER = INK, VERMILLION, BLUE, GREY, BLUE
# Colour scales from low to high, and diverging from a transparent zero; for light and dark pages and all colour vision.
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
# Panels per row on a wide page, and the height of a row in pixels.
_PER_ROW, _SMALL = 3, 165

Words = dict[str, Any]


class Figure:
    """A figure for plotly.js: traces, layout and frames of an animation. Rows count from the top; the first is 1.

    Attributes:
        data: Traces.
        frames: Frames of an animation.
        joints: Joints of a figure with one panel per joint. A page shows all of them small, or the selected one.
        titles: Titles of these panels, where they differ from the names of the joints.
        clock: Log whose time is the x axis; the page links it to the posture of the robot.
        layout: Layout.
    """

    def __init__(self, height: int, *, flat: bool = True) -> None:
        """Create a figure with one panel.

        Args:
            height: Height in pixels.
            flat: Add axes to the panel; False for a three-dimensional scene.
        """
        inside = max(height - _TOP - _BOTTOM, 1)
        self.data: list[Words] = []
        self.frames: list[Words] = []
        self.joints: tuple[str, ...] = ()
        self.titles: tuple[str, ...] = ()
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
        """Create a figure of panels one above the other.

        Args:
            height: Height of the figure in pixels.
            heights: Relative heights of the panels.
            gap: Space between two panels, relative to the height of the figure.
        """
        figure = cls(height)
        share = (1.0 - gap * (len(heights) - 1)) / sum(heights)
        top = 1.0
        for row, size in enumerate(heights, start=1):
            bottom = top - share * size
            place = {"domain": [max(bottom, 0.0), top], "anchor": _axis("x", row)}
            figure._panel(row, {"domain": [0.0, 1.0], "anchor": _axis("y", row)}, place)
            top = bottom - gap
        return figure

    @classmethod
    def panels(cls, titles: Sequence[str], *, shared: bool = True, height: int = 170) -> Figure:
        """Create a figure of equal panels one above the other.

        Args:
            titles: Title of each panel.
            shared: Zoom all panels together along x and label only the lowest axis.
            height: Height of a panel in pixels.
        """
        rows = len(titles)
        inside = rows * height
        gap = (34 if shared else 74) / inside if rows > 1 else 0.0
        figure = cls.stacked(inside + _TOP + _BOTTOM, [1.0] * rows, gap)
        for row in range(1, rows) if shared else ():
            figure.x_axis(row, matches=_axis("x", rows), showticklabels=False)
        figure.layout["annotations"] = [
            {"text": title, "font": {"size": 13}, "showarrow": False, "x": 0.0, "xanchor": "left", "xref": "paper",
             "y": figure.axis("y", row)["domain"][1], "yanchor": "bottom", "yref": "paper"}
            for row, title in enumerate(titles, start=1)
            if title
        ]  # fmt: skip
        return figure

    @classmethod
    def by_joint(cls, joints: Sequence[str], *, shared: bool = True, height: int = 170) -> Figure:
        """Create a figure with one panel per joint. A page shows all of them small, or one of them large.

        Args:
            joints: Names of the joints.
            shared: Zoom all panels together along x and label only the lowest axis.
            height: Height of a panel in pixels.
        """
        figure = cls.panels(joints, shared=shared, height=height)
        figure.joints = tuple(joints)
        return figure

    @property
    def height_on_page(self) -> int:
        """Height that a page reserves before the figure is drawn, in pixels."""
        panels = len(self.joints)
        return int(self.layout["height"]) if panels < 2 else -(-panels // _PER_ROW) * _SMALL + _TOP

    def _panel(self, row: int, x: Words, y: Words) -> None:
        title = {"title": {"standoff": 8}}
        self.layout[_key("x", row)] = {**x, **title, "automargin": True, "showgrid": True, "zeroline": False}
        self.layout[_key("y", row)] = {**y, "automargin": True, "showgrid": True, "zeroline": True}

    def axis(self, which: Literal["x", "y"], row: int = 1) -> Words:
        """Return the settings of an axis, which can be changed.

        Args:
            which: "x" or "y".
            row: Row of the panel.
        """
        settings: Words = self.layout[_key(which, row)]
        return settings

    def x_axis(self, row: int = 1, title: str | None = None, **words: Any) -> None:
        """Change settings of an x axis.

        Args:
            row: Row of the panel.
            title: Title, with the unit; None keeps it.
            **words: Settings of plotly.js; None keeps a setting.
        """
        self._set("x", row, title, words)

    def y_axis(self, row: int = 1, title: str | None = None, **words: Any) -> None:
        """Change settings of a y axis.

        Args:
            row: Row of the panel.
            title: Title, with the unit; None keeps it.
            **words: Settings of plotly.js; None keeps a setting.
        """
        self._set("y", row, title, words)

    def _set(self, which: Literal["x", "y"], row: int, title: str | None, words: Words) -> None:
        axis = self.axis(which, row)
        if title is not None:
            axis["title"] = {**axis.get("title", {}), "text": title}
        axis.update({key: value for key, value in words.items() if value is not None})

    def add(self, kind: str, row: int = 1, **words: Any) -> None:
        """Add a trace. Traces of one name share one legend entry.

        Args:
            kind: Type of the trace in plotly.js.
            row: Row of the panel.
            **words: Fields of the trace in plotly.js; fields that are None are omitted.
        """
        name = words.get("name")
        if name is not None:
            words = {"legendgroup": name, "showlegend": name not in self._named, **words}
            self._named.add(name)
        place = {"scene": "scene"} if kind == "scatter3d" else {"xaxis": _axis("x", row), "yaxis": _axis("y", row)}
        fields = {key: value for key, value in words.items() if value is not None}
        self.data.append({"type": kind, **fields, **place})

    def line(
        self, row: int, x: ArrayLike, y: ArrayLike, name: str | None, colour: str, width: float, **words: Any
    ) -> None:
        """Add a line of many points over linear axes.

        Args:
            row: Row of the panel.
            x: x coordinates.
            y: y coordinates.
            name: Legend entry; None for none.
            colour: Colour.
            width: Width in pixels.
            **words: More fields of the trace in plotly.js.
        """
        line = {"color": colour, "width": width, **words.pop("line", {})}
        self.add("scatter", row, x=in_steps(x), y=in_steps(y), mode="lines", name=name, line=line, **words)

    def area(self, row: int, x: ArrayLike, y: ArrayLike, name: str, colour: str, opacity: float) -> None:
        """Add a filled area.

        Args:
            row: Row of the panel.
            x: x coordinates of its outline.
            y: y coordinates of its outline.
            name: Legend entry.
            colour: Colour.
            opacity: Opacity, from 0 to 1.
        """
        shade = f"rgba({', '.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))}, {opacity})"
        self.line(row, x, y, name, colour, 0, fill="toself", fillcolor=shade, hoverinfo="skip")

    def band(self, row: int, x: ArrayLike, low: ArrayLike, high: ArrayLike, name: str, colour: str) -> None:
        """Add a lightly filled band.

        Args:
            row: Row of the panel.
            x: x coordinates.
            low: Lower edge.
            high: Upper edge.
            name: Legend entry.
            colour: Colour.
        """
        across, below, above = (np.asarray(values, dtype=float) for values in (x, low, high))
        outline = np.concatenate([across, across[::-1]]), np.concatenate([above, below[::-1]])
        self.area(row, *outline, name, colour, 0.25)

    def bound(self, row: int, y: float) -> None:
        """Add a dashed horizontal line for a limit.

        Args:
            row: Row of the panel.
            y: Limit.
        """
        shape = {"type": "line", "x0": 0, "x1": 1, "xref": f"{_axis('x', row)} domain", "y0": y, "y1": y,
                 "yref": _axis("y", row), "line": {"color": ORANGE, "width": 1.2, "dash": "dash"}}  # fmt: skip
        self.layout.setdefault("shapes", []).append(shape)

    @property
    def in_space(self) -> bool:
        """Whether the figure needs the three-dimensional part of plotly.js."""
        return any(trace["type"] == "scatter3d" for trace in self.data)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from steelyard.report.notebook import figure_bundle  # imports this module

        return figure_bundle(self)

    def __repr__(self) -> str:
        return f"<Figure of {len(self.data)} series; to_plotly() converts it>"

    def to_plotly(self) -> Any:
        """Convert to a `plotly.graph_objects.Figure`, which can be edited; needs plotly."""
        from steelyard.report.notebook import plotly_figure

        return plotly_figure(self)

    def json(self) -> str:
        """Encode the figure for plotly.js."""
        document = _lists(
            {"data": self.data, "layout": self.layout, "frames": self.frames, "joints": self.titles or self.joints}
        )
        try:
            return _WRITER.encode(document)
        except ValueError:  # NaN becomes null; few figures have any, so the others skip the conversion
            return _WRITER.encode(plain(document))


def _axis(which: str, row: int) -> str:
    return which if row == 1 else f"{which}{row}"


def _key(which: str, row: int) -> str:
    return f"{which}axis" if row == 1 else f"{which}axis{row}"


def literal(name: str) -> str:
    """Escape `name` for use inside a template of plotly."""
    return escape(name, quote=False).replace("{", "&#123;")


def _lists(value: Any) -> Any:
    """Convert arrays to lists of rounded numbers and escape text, which plotly would read as HTML, except templates."""
    if isinstance(value, dict):
        return {key: x if key == "hovertemplate" else _lists(x) for key, x in value.items()}
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, np.ndarray):
        return rounded(value) if value.dtype.kind == "f" else _lists(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        # Series hold many floats, which need no conversion.
        return [x if type(x) is float else _lists(x) for x in value]
    return value
