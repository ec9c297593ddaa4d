"""`steelyard demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.app import command
from steelyard.cli.deliver import progress_bar, show
from steelyard.cli.options import AsJson


@command("demo", epilog="Example: steelyard demo -o demo-run")
def demo(
    output: Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="Folder to write.")] = "demo-run",
    as_json: AsJson = False,
) -> None:
    """Run all steps on a simulated 6-axis arm: motion, log, check, identification, report."""
    from steelyard.demo import run_demo

    with progress_bar(as_json):
        result = run_demo(Path(output))
    show(result, as_json=as_json)
