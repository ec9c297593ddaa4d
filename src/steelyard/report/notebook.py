"""Figures in notebooks: drawn by plotly where it is installed, else as a page inside a frame."""

from __future__ import annotations

import json
import sys
from html import escape
from importlib.util import find_spec
from typing import Any

from steelyard.errors import SteelyardError
from steelyard.report.elements import figure_html
from steelyard.report.html import figure_page
from steelyard.report.plots.figure import Figure

_PLOTLY = "application/vnd.plotly.v1+json"
_MARGIN = 130  # pixels for the joint selector and around a figure


def figure_bundle(figure: Figure) -> dict[str, Any]:
    """Return the representations of `figure` for a notebook, by MIME type.

    With plotly installed, JupyterLab, VS Code and others draw the figure from the MIME type of plotly. Colab does not;
    it gets a self-contained page of half a megabyte, and so do notebooks without plotly.
    """
    if find_spec("plotly") is not None and "google.colab" not in sys.modules:
        return {_PLOTLY: plotly_fields(figure), "text/plain": repr(figure)}
    return {"text/html": iframe(figure), "text/plain": repr(figure)}


def plotly_fields(figure: Figure) -> dict[str, Any]:
    """Convert `figure` to the arguments of `plotly.graph_objects.Figure`."""
    fields = json.loads(figure.json())
    return {name: fields[name] for name in ("data", "layout", "frames") if fields.get(name)}


def plotly_figure(figure: Figure) -> Any:
    """Convert `figure` to a `plotly.graph_objects.Figure`."""
    if find_spec("plotly") is None:
        raise SteelyardError("to_plotly needs plotly, which is not installed: pip install plotly.")
    import plotly.graph_objects as go

    return go.Figure(plotly_fields(figure))


def iframe(figure: Figure) -> str:
    """Embed `figure` as a separate page in a frame, isolated from the styles and scripts of the page around it."""
    page = escape(figure_page(figure_html(figure, "")), quote=True)
    height = figure.height_on_page + _MARGIN
    return f'<iframe srcdoc="{page}" style="width:100%;height:{height}px;border:0" title="figure"></iframe>'
