"""Presentation of results: HTML pages and terminal output."""

from .declared_tables import Cells, declared_html, declared_terminal
from .elements import (
    Heat,
    Html,
    TableCell,
    TableColumn,
    callout,
    commands,
    figure_html,
    join,
    paragraph,
    table_html,
    tabs,
    text,
    whisker,
)
from .html import Section, Verdict, render_report, verdict_html
from .plotly_js import ASSETS
from .plots.figure import AROUND_ZERO, BLUE, GREY, VERMILLION, Figure
from .plots.lines import Boxes, Line, Panel, joint_panels, line_panels
from .plots.series import rounded
from .scene import ROBOT_SCRIPTS, Body, Scene, scene_html
from .terminal import bar, bold, console, number, say, say_headline, table

__all__ = [
    "AROUND_ZERO", "ASSETS", "BLUE", "GREY", "ROBOT_SCRIPTS", "VERMILLION", "Body", "Boxes", "Cells", "Figure",
    "Heat", "Html", "Line", "Panel", "Scene", "Section", "TableCell", "TableColumn", "Verdict", "bar", "bold",
    "callout", "commands", "console", "declared_html", "declared_terminal", "figure_html", "join", "joint_panels",
    "line_panels", "number", "paragraph", "render_report", "rounded", "say", "say_headline", "scene_html", "table",
    "table_html", "tabs", "text", "verdict_html", "whisker",
]  # fmt: skip
