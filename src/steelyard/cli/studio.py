"""`steelyard studio`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class StudioOptions:
    """Options of `steelyard studio`."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Working folder; created if missing.")] = "."
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Address to listen on; any but the default gives the network access."),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="PORT", help="Port; 0: any free port.", min=0, max=65535)] = 8421
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True
    at_once: Annotated[int, typer.Option("--jobs", metavar="K", help="Largest number of simultaneous jobs.", min=1)] = 2
    memory: Annotated[float, typer.Option(metavar="GB", help="Memory limit of a job, GB.", min=0.1)] = 8.0
    hours: Annotated[float, typer.Option(metavar="H", help="Time limit of a job, h.", min=0.001)] = 24.0
    upload: Annotated[
        float, typer.Option("--upload-limit", metavar="GB", help="Largest uploaded file, GB.", min=0.001)
    ] = 16.0


@command("studio", epilog="Example: steelyard studio my-arm", uses_project=False)
@opt.with_options(StudioOptions)
def studio(o: StudioOptions) -> None:
    """Open the web interface: robot, data, check, motion, identification, use.

    It is reachable only from this machine.
    """
    from steelyard.studio.jobs import JobLimits
    from steelyard.studio.server import ServeOptions, serve

    limits = JobLimits(memory_gb=o.memory, hours=o.hours, at_once=o.at_once)
    options = ServeOptions(o.host, o.port, o.show, limits, o.upload)

    def say(address: str) -> None:
        typer.echo(f"The studio of {o.folder} is at\n  {address}\nCtrl-C ends it; running jobs continue.")

    serve(o.folder, options, say)
