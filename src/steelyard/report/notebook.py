"""Figures of reports in notebooks: what plotly draws where it is installed, else a page of their own in a frame."""

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
_ROOM = 130  # pixels for the choice of a joint, and around a figure


def figure_bundle(figure: Figure) -> dict[str, Any]:
    """What a notebook is told about a `figure`, by kinds of content.

    Where plotly is installed, its kind, which JupyterLab, VS Code and others draw; Colab, which does not, and everybody
    else get a page with all that it needs, half a megabyte.
    """
    if find_spec("plotly") is not None and "google.colab" not in sys.modules:
        return {_PLOTLY: plotly_words(figure), "text/plain": repr(figure)}
    return {"text/html": framed(figure), "text/plain": repr(figure)}


def plotly_words(figure: Figure) -> dict[str, Any]:
    """A `figure` as plotly's own classes take it: `plotly.graph_objects.Figure(**words)`."""
    words = json.loads(figure.json())
    return {name: words[name] for name in ("data", "layout", "frames") if words.get(name)}


def plotly_figure(figure: Figure) -> Any:
    """A `figure` as `plotly.graph_objects.Figure`."""
    if find_spec("plotly") is None:
        raise SteelyardError("to_plotly needs plotly, which is not installed: pip install plotly.")
    import plotly.graph_objects as go

    return go.Figure(plotly_words(figure))


def framed(figure: Figure) -> str:
    """A `figure` as a page of its own inside another page, whose styles and scripts it neither sees nor changes."""
    page = escape(figure_page(figure_html(figure, "")), quote=True)
    height = figure.height_on_page + _ROOM
    return f'<iframe srcdoc="{page}" style="width:100%;height:{height}px;border:0" title="figure"></iframe>'
