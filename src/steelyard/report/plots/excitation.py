"""How well a motion excites the parameters: the singular values of its regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.palette import BLUE
from steelyard.report.plots.figure import arrange


def singular_values(values: ArrayLike, unit: str = "N m per unit") -> Any:
    """Bars on a logarithmic axis, the largest first; the ratio of the ends is the condition number of those columns."""
    from plotly.graph_objects import Figure

    sigma = np.sort(np.asarray(values, dtype=float))[::-1]
    figure = Figure()
    figure.add_bar(
        x=np.arange(1, len(sigma) + 1),
        y=sigma,
        marker={"color": BLUE},
        name="singular values",
        showlegend=True,
        hovertemplate="number %{x}: %{y:.4g}",
    )
    arrange(figure, 360)
    positive = sigma[sigma > 0.0]
    decades = np.log10(positive[0] / positive[-1]) if len(positive) else 0.0
    figure.update_yaxes(type="log", title_text=f"singular value [{unit}]", exponentformat="power", dtick=1)
    if len(positive) and decades <= 3.0:  # whole decades alone would leave the axis bare
        low, high = np.floor(np.log10(positive[-1])), np.ceil(np.log10(positive[0]))
        ticks = [float(k * 10.0**e) for e in np.arange(low, high + 1.0) for k in (1.0, 2.0, 5.0)]
        figure.update_yaxes(tickmode="array", tickvals=ticks, ticktext=[f"{v:g}" for v in ticks])
    figure.update_xaxes(title_text=f"number of the singular value (condition {_condition(sigma)})")
    return figure


def _condition(sigma: ArrayLike) -> str:
    s = np.asarray(sigma, dtype=float)
    return f"{s[0] / s[-1]:.4g}" if len(s) and s[-1] > 0.0 else "infinite"
