"""Bar charts that compare methods, joints or laws: errors, stacked counts, and z-scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.plots.figure import BLUE, GREEN, GREY, INK, SERIES, Figure
from steelyard.report.plots.series import rounded

_ROW, _AROUND = 24, 128  # pixels of a bar, and around all bars
# Above this ratio of the largest to the smallest value the axis is logarithmic.
_WIDE = 30.0


def error_ranking(names: Sequence[str], values: Sequence[float], axis: str, best: str = "", other: str = "") -> Figure:
    """Draw one horizontal bar per name, from top to bottom.

    Args:
        names: Names of the bars.
        values: Values of the bars.
        axis: Title of the axis, with its unit.
        best: Name of the bar to highlight; "" for none.
        other: Legend entry of the other bars.
    """
    figure = Figure(_AROUND + _ROW * len(names))
    groups = (("best", GREEN, [n == best for n in names]), (other or "others", BLUE, [n != best for n in names]))
    for name, colour, own in groups:
        bars = [(n, v) for n, v, mine in zip(names, values, own, strict=True) if mine]
        if bars:
            figure.add(
                "bar", x=rounded([v for _, v in bars]), y=[n for n, _ in bars], orientation="h", name=name,
                marker={"color": colour}, hovertemplate="%{y}: %{x:.4g}<extra></extra>",
            )  # fmt: skip
    positive = [v for v in values if v > 0.0]
    wide = len(positive) == len(values) and max(positive) > _WIDE * min(positive)
    figure.x_axis(title=axis, type="log" if wide else None, rangemode=None if wide else "tozero")
    figure.y_axis(categoryorder="array", categoryarray=list(names), autorange="reversed", dtick=1, ticklabelstandoff=6)
    figure.layout |= {"bargap": 0.35}
    return figure


def counts(rows: Sequence[str], parts: Mapping[str, Sequence[int]], axis: str) -> Figure:
    """Draw one stacked horizontal bar of counts per row.

    Args:
        rows: Names of the bars.
        parts: Counts of each part, by its name; at most three parts.
        axis: Title of the axis.
    """
    figure = Figure(_AROUND + _ROW * len(rows))
    for (name, numbers), colour in zip(parts.items(), (BLUE, GREY, "#D55E00"), strict=False):
        figure.add(
            "bar", x=[int(n) for n in numbers], y=list(rows), orientation="h", name=name, marker={"color": colour},
            hovertemplate=f"%{{y}}: %{{x}} {name}<extra></extra>",
        )  # fmt: skip
    figure.layout |= {"barmode": "stack", "bargap": 0.35}
    figure.layout["legend"]["traceorder"] = "normal"
    figure.x_axis(
        title=axis, dtick=max(1, int(np.ceil(max(map(sum, zip(*parts.values(), strict=True)), default=1) / 12)))
    )
    figure.y_axis(autorange="reversed", dtick=1, ticklabelstandoff=6)
    return figure


def z_scores(scores: Mapping[str, ArrayLike]) -> Figure:
    """Draw the distribution of `scores`, errors over their standard errors by run, and the standard normal one.

    Error bars are calibrated if both agree.
    """
    every = np.concatenate([np.ravel(np.asarray(x, dtype=float)) for x in scores.values()])
    end = float(np.clip(np.ceil(np.max(np.abs(every), initial=3.0)), 3.0, 12.0))
    edges = np.arange(-end, end + 0.25, 0.5)
    middle = 0.5 * (edges[1:] + edges[:-1])
    figure = Figure(300)
    for k, (name, values) in enumerate(scores.items()):
        share = np.histogram(np.clip(values, -end, end), edges)[0] / max(every.size, 1)
        colour = {"color": SERIES[k % len(SERIES)]}
        figure.add("bar", x=middle, y=np.round(100.0 * share, 3), name=name, marker=colour, width=0.46)
    normal = 100.0 * 0.5 * np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    line = {"color": INK, "width": 1.6, "dash": "dash"}
    figure.add("scatter", x=middle, y=np.round(normal, 4), mode="lines", name="honest error bars", line=line)
    figure.layout |= {"barmode": "stack", "bargap": 0.05}
    figure.x_axis(title="z: error over its standard error [1]")
    figure.y_axis(title="share of all [%]")
    return figure
