"""What came out of a paper, for the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from steelyard.papers.paper import Reproduction
from steelyard.report.terminal import table

_RESULTS = {True: "holds", False: "does not hold", None: "–"}


def print_reproduction(done: Reproduction, out: Console, folder: Path) -> None:
    """Its statements, and where the page is."""
    rows = [[escape(s.claim), s.kind, _RESULTS[s.holds], escape(s.found)] for s in done.statements]
    out.print(table(escape(f"{done.paper.name}: {done.paper.title}"), ["statement", "kind", "result", "found"], rows))
    for failure in done.failures:
        out.print(f"[bold]Fails:[/bold] {escape(failure.claim)}")
    out.print(f"Written to {escape(str(folder))}: result.json, report.html")
