"""`steelyard reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.app import command
from steelyard.cli.completions import one_of
from steelyard.cli.deliver import print_json, progress_bar
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
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Folder for all papers.")] = "papers",
    most_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.0, help="Fail if a paper takes more processor time, s; default: no limit."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the tables and figures of a paper next to the printed ones, and test its claims."""
    from steelyard.papers import PAPERS
    from steelyard.papers.reproduce import reproduce as run
    from steelyard.report.terminal import console

    out = console()
    names = [name for word in paper for name in (PAPERS if word == "all" else (word,))]
    with progress_bar(as_json):
        results = run(names, Path(output), fast=fast, overwrite=overwrite)
    if as_json:
        print_json([result.to_json() for result in results])
    else:
        for result in results:
            result.print_to(out, str(Path(output) / result.paper.name))
    times = {result.paper.name: result.processor_seconds or 0.0 for result in results}
    slow = {name: seconds for name, seconds in times.items() if most_seconds is not None and seconds > most_seconds}
    for name, seconds in slow.items():
        typer.echo(f"steelyard: {name} took {seconds:.1f} processor seconds, more than {most_seconds:g}.", err=True)
    if slow or any(result.failures for result in results):
        raise typer.Exit(1)
