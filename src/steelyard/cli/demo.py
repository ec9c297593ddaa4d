"""`steelyard demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.app import command
from steelyard.cli.deliver import show, shown_as_bar
from steelyard.cli.options import AsJson


@command("demo", epilog="Example: steelyard demo -o demo-run")
def demo(
    output: Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write.")] = "demo-run",
    as_json: AsJson = False,
) -> None:
    """The whole story on a simulated 6-axis arm: motion, log, check, identification, report."""
    from steelyard.demo import run_demo

    with shown_as_bar(as_json):
        found = run_demo(Path(output))
    show(found, as_json=as_json)
