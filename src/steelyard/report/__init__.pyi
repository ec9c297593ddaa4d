"""Presentation of results: HTML pages and terminal output."""

from .elements import Html, TableCell, TableColumn, callout, figure_html, join, paragraph, table_html, text
from .html import Section, Verdict, render_report
from .plots.lines import Boxes, Line, Panel, joint_panels, line_panels
from .terminal import bar, bold, console, number, say, table

__all__ = [
    "Boxes", "Html", "Line", "Panel", "Section", "TableCell", "TableColumn", "Verdict", "bar",
    "bold",
    "callout", "console", "figure_html", "join", "joint_panels", "line_panels", "number", "paragraph",
    "render_report", "say", "table", "table_html", "text",
]  # fmt: skip
