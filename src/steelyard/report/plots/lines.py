"""Figures of lines, points and boxes in panels one above the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.ground.short_repr import short_repr
from steelyard.report.plots.figure import SERIES, Figure, literal
from steelyard.report.plots.series import by_joint, decimate, rounded

# Enough for a screen; a figure of twenty lines stays below a megabyte.
_POINTS = 800
_ALONE, _AMONG_OTHERS, _DRAWN_TO_SCALE = 320, 170, 480  # pixels of a panel


@short_repr
@dataclass(frozen=True)
class Line:
    """A line or a set of points. Lines of one name share their colour and legend entry in all panels of a figure.

    Attributes:
        name: Legend entry.
        x: x coordinates.
        y: y coordinates.
        dashed: Draw a dashed line.
        points: Draw points instead of a line.
        interval: Half the width of the interval of each point; empty for none.
        band: Half the width of a filled band along the line; empty for none.
    """

    why_null: ClassVar = dict.fromkeys(("x/*", "y/*"), "There is no value here: a gap.")
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    points: bool = False
    interval: tuple[float, ...] = ()
    band: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, x: ArrayLike, y: ArrayLike, *, dashed: bool = False, band: ArrayLike | None = None) -> Line:
        """Create a line, thinned out so that its extreme values remain.

        Args:
            name: Legend entry.
            x: x coordinates.
            y: y coordinates.
            dashed: Draw a dashed line.
            band: Half the width of a filled band along the line; None for none.
        """
        across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if across.shape != up.shape or across.ndim != 1:
            raise ShapeError(f"The line '{name}' has {across.shape} values along x and {up.shape} along y.")
        keep = decimate(up, _POINTS)
        widths = () if band is None else tuple(rounded(np.broadcast_to(np.asarray(band, dtype=float), up.shape)[keep]))
        return cls(name, tuple(rounded(across[keep])), tuple(rounded(up[keep])), dashed, band=widths)

    @classmethod
    def of_points(cls, name: str, x: ArrayLike, y: ArrayLike, interval: ArrayLike = ()) -> Line:
        """Create points.

        Args:
            name: Legend entry.
            x: x coordinates.
            y: y coordinates.
            interval: Half the width of the interval of each point; empty for none.
        """
        across, up, bars = (tuple(rounded(np.asarray(v, dtype=float))) for v in (x, y, interval))
        if len(across) != len(up) or len(bars) not in (0, len(up)):
            raise ShapeError(f"The points '{name}' have {len(across)}, {len(up)} and {len(bars)} values.")
        return cls(name, across, up, points=True, interval=bars)


@short_repr
@dataclass(frozen=True)
class Boxes:
    """Box plots, side by side.

    Attributes:
        name: Legend entry.
        groups: Names of the boxes.
        values: Values of each box.
    """

    name: str
    groups: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, name: str, values: Mapping[str, ArrayLike]) -> Boxes:
        """Create box plots.

        Args:
            name: Legend entry.
            values: Values by group.
        """
        return cls(name, tuple(values), tuple(tuple(rounded(np.ravel(v))) for v in values.values()))


@short_repr
@dataclass(frozen=True)
class Panel:
    """A pair of axes with lines or boxes.

    Attributes:
        title: Title.
        lines: Lines.
        x: Title of the x axis.
        y: Title of the y axis.
        logarithmic: Use a logarithmic y axis.
        range: Initial range of the y axis; None shows everything.
        equal: Use the same scale for x and y.
        boxes: Box plots.
    """

    why_null: ClassVar = {"range": "The axis shows all values."}
    title: str
    lines: tuple[Line, ...]
    x: str = "time [s]"
    y: str = ""
    logarithmic: bool = False
    range: tuple[float, float] | None = None
    equal: bool = False
    boxes: tuple[Boxes, ...] = ()


def line_panels(panels: Sequence[Panel]) -> Figure:
    """Draw the `panels`, which zoom together along x. Only the lowest has a title of the x axis."""
    height = _ALONE if len(panels) == 1 or any(panel.boxes for panel in panels) else _AMONG_OTHERS
    height = _DRAWN_TO_SCALE if any(panel.equal for panel in panels) else height
    figure = Figure.panels([panel.title for panel in panels], height=height)
    colours: dict[str, str] = {}
    for row, panel in enumerate(panels, start=1):
        for boxes in panel.boxes:
            colour = colours.setdefault(boxes.name, SERIES[len(colours) % len(SERIES)])
            pairs = [(g, v) for g, values in zip(boxes.groups, boxes.values, strict=True) for v in values]
            figure.add(
                "box", row, x=[g for g, _ in pairs], y=[v for _, v in pairs], name=boxes.name, offsetgroup=boxes.name,
                marker={"color": colour, "size": 4}, line={"width": 1.3}, boxpoints="outliers",
            )  # fmt: skip
            figure.layout["boxmode"] = "group"
        for line in panel.lines:
            colour = colours.setdefault(line.name, SERIES[len(colours) % len(SERIES)])
            if line.band:
                edge = {"mode": "lines", "hoverinfo": "skip", "legendgroup": line.name, "showlegend": False}
                low, high = (np.add(line.y, np.multiply(sign, line.band)).tolist() for sign in (-1.0, 1.0))
                none = {"width": 0, "color": colour}
                figure.add("scatter", row, x=line.x, y=rounded(low), line=none, **edge)
                shade = f"rgba({', '.join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))}, 0.3)"
                figure.add(
                    "scatter", row, x=line.x, y=rounded(high), line=none, fill="tonexty", fillcolor=shade, **edge
                )
            figure.add(
                "scatter",
                row,
                x=line.x,
                y=line.y,
                mode="markers" if line.points else "lines",
                name=line.name,
                line=None
                if line.points
                else {"color": colour, "width": 1.3, "dash": "dash" if line.dashed else "solid"},
                marker={"color": colour, "size": 6} if line.points else None,
                error_y={"type": "data", "array": line.interval, "thickness": 1} if line.interval else None,
                hovertemplate=f"{literal(line.name)}: %{{y:.4g}} at %{{x:.4g}}<extra></extra>",
            )
        figure.y_axis(
            row, panel.y, range=panel.range, scaleanchor=f"x{row if row > 1 else ''}" if panel.equal else None
        )
        if panel.logarithmic:
            figure.y_axis(row, type="log", exponentformat="power", dtick=_log_step(panel))
    figure.x_axis(len(panels), panels[-1].x)
    return figure


def _log_step(panel: Panel) -> int | str:
    """Return the distance of ticks on a logarithmic axis: decades, or 1, 2, 5 where there are few decades."""
    every = [*(line.y for line in panel.lines), *(v for boxes in panel.boxes for v in boxes.values)]
    values = np.array([v for part in every for v in part if v is not None and v > 0.0])
    decades = float(np.log10(values.max() / values.min())) if len(values) else 0.0
    return "D2" if decades < 2.0 else 1 if decades < 6.0 else 2


def joint_panels(
    joints: Sequence[str], t: ArrayLike, signals: Mapping[str, ArrayLike], unit: str, dashed: Collection[str] = ()
) -> tuple[Panel, ...]:
    """Create one panel per joint.

    Args:
        joints: Names of the joints.
        t: Times [s].
        signals: Signals by name, shape (samples, joints).
        unit: Unit of the signals.
        dashed: Names of the signals to draw as dashed lines.
    """
    arrays = {name: by_joint(name, values, len(joints)) for name, values in signals.items()}
    return tuple(
        Panel(joint, tuple(Line.of(n, t, x[:, k], dashed=n in dashed) for n, x in arrays.items()), y=f"[{unit}]")
        for k, joint in enumerate(joints)
    )
