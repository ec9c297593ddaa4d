"""`steelyard fleet`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver

if TYPE_CHECKING:
    from steelyard.fleet.fleet import FleetOutcome
    from steelyard.fleet.robot_page import FleetRobot


@dataclass(frozen=True)
class FleetOptions:
    """Options of `steelyard fleet`."""

    fleet: Annotated[
        str,
        typer.Argument(
            metavar="FLEET", help="Robots, models and logs: TOML file, table (.csv, .parquet) or folder, local or "
            "remote (URL); with --robot the folder of a run.",
        ),
    ]  # fmt: skip
    output: opt.Output = ""
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=1024, help="Worker processes on this machine; 0: none; default: one per core."
        ),
    ] = None
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Use a running Dask scheduler, such as tls://host:8786. It can run code with your permissions, so "
            "give only a scheduler of your own. Certificates: Dask's configuration (distributed.comm.tls).",
        ),
    ] = ""
    insecure_scheduler: Annotated[
        bool,
        typer.Option(
            "--insecure-scheduler",
            help="Accept a scheduler without TLS (tcp://), for a network of trusted computers.",
        ),
    ] = False
    store: Annotated[
        str,
        typer.Option(metavar="PLACE", help="Folder for the processed data of logs; default: fleet-store next to RUN."),
    ] = ""
    choose_again: Annotated[
        bool, typer.Option("--choose-again", help="Repeat the choice of the models' terms, filters and cut-offs.")
    ] = False
    check: Annotated[
        str,
        typer.Option(
            metavar="WHICH", help="Logs to check completely, as check does: some (the outliers), all or none."
        ),
    ] = "some"
    term_names: opt.TermNames = ""
    plain: Annotated[bool, typer.Option("--plain", help="Use the default terms without a search.")] = False
    robot_id: Annotated[
        str,
        typer.Option("--robot", metavar="ID", help="Show one robot of an existing run on its own page; reads no log."),
    ] = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command("fleet", epilog="Example: steelyard fleet fleet.toml -o runs/tonight", uses_project=False)
@opt.with_options(FleetOptions)
def fleet(o: FleetOptions) -> None:
    """Identify many robots from many logs, on all cores or several machines; a later run reads only new logs."""
    if o.robot_id:
        deliver(lambda: _one_robot(o), o.output, o.overwrite, o.as_json)
    else:
        deliver(lambda: _identify(o), o.output, o.overwrite, o.as_json)


def _one_robot(o: FleetOptions) -> FleetRobot:
    from steelyard.fleet.robot_page import read_run_robot

    return read_run_robot(o.fleet, o.robot_id)


def _identify(o: FleetOptions) -> FleetOutcome:
    from steelyard.fleet.fleet import identify_fleet
    from steelyard.ground.arrays import one_heap

    one_heap()
    default_store = Path(o.output).absolute().parent / "fleet-store" if o.output else None
    return identify_fleet(
        o.fleet,
        store=o.store or default_store,
        workers=o.workers,
        scheduler=o.scheduler,
        insecure_scheduler=o.insecure_scheduler,
        choose_again=o.choose_again,
        check=o.check,
        terms=opt.words(o.term_names) or None,
        plain=o.plain,
    )
