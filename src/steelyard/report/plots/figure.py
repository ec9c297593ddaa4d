"""What all figures of a report share: one panel per joint, one above the other, a legend on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import ShapeError
from steelyard.ground.arrays import Array

_TOP, _BOTTOM = 64, 56  # pixels for the legend, and for the lowest axis


def panels(titles: Sequence[str], *, shared: bool = True, height: int = 170) -> Any:
    """An empty figure with one panel per title; `shared` panels zoom together along x."""
    from plotly.subplots import make_subplots

    rows = len(titles)
    total = rows * height + _TOP + _BOTTOM
    gap = (34 if shared else 74) / (total - _TOP - _BOTTOM)
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=shared,
        vertical_spacing=gap if rows > 1 else 0.0,
        subplot_titles=list(titles),
    )
    for note in figure.layout.annotations:  # titles stand left, where the eye looks for them
        note.update(x=0.0, xanchor="left", font={"size": 13})
    arrange(figure, total)
    return figure


def arrange(figure: Any, height: int) -> None:
    """Size, margins and legend."""
    inside = max(height - _TOP - _BOTTOM, 1)
    figure.update_layout(
        height=height,
        margin={"l": 16, "r": 16, "t": _TOP, "b": _BOTTOM},
        legend={"orientation": "h", "x": 0.0, "xanchor": "left", "y": 1.0 + 24 / inside, "yanchor": "bottom"},
        template=None,
        hovermode="closest",
    )
    figure.update_xaxes(automargin=True, showgrid=True, zeroline=False, title_standoff=8)
    figure.update_yaxes(automargin=True, showgrid=True, zeroline=True)


def by_joint(name: str, values: ArrayLike, joints: int) -> Array:
    """`(samples, joints)`, checked."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 1 and joints == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != joints:
        raise ShapeError(f"{name} has shape {array.shape}; expected (samples, {joints}), one column per joint.")
    return array


def units(given: Sequence[str] | str, joints: int) -> list[str]:
    """One unit per joint."""
    return [given] * joints if isinstance(given, str) else list(given)
