"""`steelyard reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.app import command
from steelyard.cli.completions import one_of
from steelyard.cli.deliver import print_json, shown_as_bar
from steelyard.cli.options import AsJson, Overwrite


@command("reproduce", epilog="Example: steelyard reproduce rotradi --fast -o papers")
def reproduce(
    paper: Annotated[
        list[str],
        typer.Argument(
            metavar="PAPER…", help="Papers to reproduce: {papers}, or all.", autocompletion=one_of("papers")
        ),
    ],
    fast: Annotated[bool, typer.Option("--fast", help="Fewer repetitions: seconds instead of minutes.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="A folder for all papers.")] = "papers",
    most_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.0, help="Fail if a paper takes more processor seconds. Default: no bound."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Regenerate the tables and figures of a source paper beside the printed ones, and test what it claims."""
    from steelyard.papers import PAPERS
    from steelyard.papers.run import reproduce as run
    from steelyard.report.terminal import console

    out = console()
    names = [name for given in paper for name in (PAPERS if given == "all" else (given,))]
    with shown_as_bar(as_json):
        done = run(names, Path(output), fast=fast, overwrite=overwrite)
    if as_json:
        print_json([one.to_json() for one in done])
    else:
        for one in done:
            one.tell(out, str(Path(output) / one.paper.name))
    took = {one.paper.name: one.processor_seconds or 0.0 for one in done}
    slow = {name: seconds for name, seconds in took.items() if most_seconds is not None and seconds > most_seconds}
    for name, seconds in slow.items():
        typer.echo(f"steelyard: {name} took {seconds:.1f} processor seconds, more than {most_seconds:g}.", err=True)
    if slow or any(one.failures for one in done):
        raise typer.Exit(1)
