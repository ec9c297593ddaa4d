"""`steelyard reproduce`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli.app import app
from steelyard.cli.options import AsJson, Overwrite, print_json
from steelyard.papers import PAPERS


@app.command(epilog="Example: steelyard reproduce rotradi --fast -o papers")
def reproduce(
    paper: Annotated[
        list[str], typer.Argument(metavar="PAPER…", help=f"Papers to reproduce: {', '.join(PAPERS)}, or all.")
    ],
    fast: Annotated[bool, typer.Option("--fast", help="Fewer repetitions: seconds instead of minutes.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="A folder for all papers.")] = "papers",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Regenerate the tables and figures of a source paper beside the printed ones, and test what it claims."""
    from pathlib import Path

    from steelyard.papers.run import print_reproduction, reproduction_to_json
    from steelyard.papers.run import reproduce as run
    from steelyard.report.terminal import console

    out = console()
    names = [name for given in paper for name in (PAPERS if given == "all" else (given,))]
    done = run(names, Path(output), fast=fast, overwrite=overwrite, out=out if out.is_terminal else None)
    if as_json:
        print_json([reproduction_to_json(one) for one in done])
    else:
        for one in done:
            print_reproduction(one, out, Path(output) / one.paper.name)
    if any(one.failures for one in done):
        raise typer.Exit(1)
