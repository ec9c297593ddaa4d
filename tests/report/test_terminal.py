"""Tables on a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.text import Text

from steelyard.report.terminal import table


def test_markup_takes_no_width() -> None:
    out = StringIO()
    rows = [[Text("warning", "bold yellow"), "a sentence of many words " * 6]]
    Console(file=out, width=80).print(table("", ["", "what"], rows))
    first = next(line for line in out.getvalue().splitlines() if "warning" in line)
    # The text begins after the seven letters, the leading space and the gap between columns.
    assert first.index("a sentence") < 14
