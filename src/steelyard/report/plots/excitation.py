"""How well a motion excites the parameters: the singular values of its regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.report.palette import BLUE
from steelyard.report.plots.figure import arrange


def singular_values(values: ArrayLike, of: str = "base columns, unscaled") -> Any:
    """Bars on a logarithmic axis, the largest first; the ratio of the ends is the condition number of those columns."""
    from plotly.graph_objects import Figure

    sigma = np.sort(np.asarray(values, dtype=float))[::-1]
    figure = Figure()
    figure.add_bar(
        x=np.arange(1, len(sigma) + 1),
        y=sigma,
        marker={"color": BLUE},
        name=f"singular values of the {of}",
        showlegend=True,
        hovertemplate="number %{x}: %{y:.4g}",
    )
    arrange(figure, 360)
    figure.update_yaxes(type="log", title_text="singular value [N m per unit]", exponentformat="power", dtick=1)
    figure.update_xaxes(title_text=f"number of the singular value (condition {_condition(sigma)})")
    return figure


def _condition(sigma: ArrayLike) -> str:
    s = np.asarray(sigma, dtype=float)
    return f"{s[0] / s[-1]:.4g}" if len(s) and s[-1] > 0.0 else "infinite"
