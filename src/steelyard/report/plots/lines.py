"""Any lines over any axis, in panels one above the other: what the figures of papers are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.report.plots.figure import SERIES, Figure
from steelyard.report.plots.series import by_joint, decimate, rounded

# Enough for a screen; a figure of twenty lines stays below a megabyte.
_POINTS = 800
_ALONE, _AMONG_OTHERS = 320, 170  # pixels of a panel


@dataclass(frozen=True)
class Line:
    """One line. Lines of one name share their colour and their entry in the legend, in all panels of a figure."""

    why_null: ClassVar = dict.fromkeys(("x/*", "y/*"), "A gap: nothing was found there.")
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False

    @classmethod
    def of(cls, name: str, x: ArrayLike, y: ArrayLike, *, dashed: bool = False) -> Line:
        """Line `name` of `y` over `x`, `dashed` or not, thinned out without losing what stands out."""
        across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if across.shape != up.shape or across.ndim != 1:
            raise ShapeError(f"The line '{name}' has {across.shape} values along x and {up.shape} along y.")
        keep = decimate(up, _POINTS)
        return cls(name, tuple(rounded(across[keep])), tuple(rounded(up[keep])), dashed)


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes; `range` is what of the y axis is shown at first (default: everything)."""

    why_null: ClassVar = {"range": "All of it is shown."}
    title: str
    lines: tuple[Line, ...]
    x: str = "time [s]"
    y: str = ""
    logarithmic: bool = False
    range: tuple[float, float] | None = None


def line_panels(panels: Sequence[Panel]) -> Figure:
    """A figure of the `panels`, which zoom together along x; the lowest names that axis."""
    figure = Figure.panels([panel.title for panel in panels], height=_ALONE if len(panels) == 1 else _AMONG_OTHERS)
    colours: dict[str, str] = {}
    for row, panel in enumerate(panels, start=1):
        for line in panel.lines:
            colour = colours.setdefault(line.name, SERIES[len(colours) % len(SERIES)])
            figure.add(
                "scatter",
                row,
                x=line.x,
                y=line.y,
                mode="lines",
                name=line.name,
                line={"color": colour, "width": 1.3, "dash": "dash" if line.dashed else "solid"},
                hovertemplate=f"{line.name}: %{{y:.4g}} at %{{x:.4g}}<extra></extra>",
            )
        figure.y_axis(row, panel.y, range=panel.range)
        if panel.logarithmic:
            figure.y_axis(row, type="log", exponentformat="power", dtick=2)
    figure.x_axis(len(panels), panels[-1].x)
    return figure


def joint_panels(
    joints: Sequence[str], t: ArrayLike, signals: Mapping[str, ArrayLike], unit: str, dashed: Collection[str] = ()
) -> tuple[Panel, ...]:
    """A panel for each of `joints`: `signals` by name `(samples, joints)`, in `unit` over `t` (s), some `dashed`."""
    arrays = {name: by_joint(name, values, len(joints)) for name, values in signals.items()}
    return tuple(
        Panel(joint, tuple(Line.of(n, t, x[:, k], dashed=n in dashed) for n, x in arrays.items()), y=f"[{unit}]")
        for k, joint in enumerate(joints)
    )
