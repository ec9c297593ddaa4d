"""Methods, joints or laws side by side: bars of one number each, and stacked counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.report.plots.figure import BLUE, GREEN, GREY, Figure
from steelyard.report.plots.series import rounded

_ROW, _AROUND = 24, 128  # pixels of a bar, and around all of them
# Beyond this ratio of the largest to the smallest the axis is logarithmic.
_WIDE = 30.0


def error_ranking(names: Sequence[str], values: Sequence[float], axis: str, best: str = "", other: str = "") -> Figure:
    """A bar for each of `names`, from top to bottom, of `values` along an `axis` that names the unit; that of the
    `best` ("": none) stands out. `other` says in the legend what the others are."""
    figure = Figure(_AROUND + _ROW * len(names))
    groups = (("best", GREEN, [n == best for n in names]), (other or "others", BLUE, [n != best for n in names]))
    for name, colour, own in groups:
        kept = [(n, v) for n, v, mine in zip(names, values, own, strict=True) if mine]
        if kept:
            figure.add(
                "bar", x=rounded([v for _, v in kept]), y=[n for n, _ in kept], orientation="h", name=name,
                marker={"color": colour}, hovertemplate="%{y}: %{x:.4g}<extra></extra>",
            )  # fmt: skip
    positive = [v for v in values if v > 0.0]
    wide = len(positive) == len(values) and max(positive) > _WIDE * min(positive)
    figure.x_axis(title=axis, type="log" if wide else None, rangemode=None if wide else "tozero")
    figure.y_axis(categoryorder="array", categoryarray=list(names), autorange="reversed", dtick=1, ticklabelstandoff=6)
    figure.layout |= {"bargap": 0.35}
    return figure


def counts(rows: Sequence[str], parts: Mapping[str, Sequence[int]], axis: str) -> Figure:
    """A stacked bar for each of `rows`, of so many of each of three `parts`, along an `axis` that says of what."""
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
