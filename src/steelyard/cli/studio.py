"""`steelyard studio`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class StudioOptions:
    """What may be typed."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder to work in; made if need be.")] = "."
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where to listen; any other than this machine's own lets the network in."),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="PORT", help="0: any that is free.", min=0, max=65535)] = 8421
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True
    at_once: Annotated[int, typer.Option("--jobs", metavar="K", help="Jobs at a time.", min=1)] = 2
    memory: Annotated[float, typer.Option(metavar="GB", help="Memory that a job may take.", min=0.1)] = 8.0
    hours: Annotated[float, typer.Option(metavar="H", help="Time that a job may take.", min=0.001)] = 24.0
    upload: Annotated[float, typer.Option("--upload-limit", metavar="GB", help="The largest file.", min=0.001)] = 16.0


@command("studio", epilog="Example: steelyard studio my-arm", asks_project=False)
@opt.taking(StudioOptions)
def studio(o: StudioOptions) -> None:
    """Open the whole way in a browser: robot, data, check, motion, identification, use; on this machine alone."""
    from steelyard.studio.jobs import JobLimits
    from steelyard.studio.server import ServeOptions, serve

    limits = JobLimits(memory_gb=o.memory, hours=o.hours, at_once=o.at_once)
    options = ServeOptions(o.host, o.port, o.show, limits, o.upload)

    def say(address: str) -> None:
        typer.echo(f"The studio of {o.folder} is at\n  {address}\nCtrl-C ends it; jobs go on.")

    serve(o.folder, options, say)
