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
    """What may be typed."""

    fleet: Annotated[
        str,
        typer.Argument(
            metavar="FLEET", help="Robots, models and logs: a TOML file, a table (.csv, .parquet) or a folder, here or "
            "elsewhere (URL); with --robot the folder of a run.",
        ),
    ]  # fmt: skip
    output: opt.Output = ""
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=1024, help="Processes of this machine; 0: this one alone. Default: one a core."
        ),
    ] = None
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="A running scheduler of Dask instead, such as tls://host:8786. It can run code as you: name your own "
            "alone. Certificates: those of Dask's configuration (distributed.comm.tls).",
        ),
    ] = ""
    insecure_scheduler: Annotated[
        bool,
        typer.Option(
            "--insecure-scheduler",
            help="Accept a scheduler without TLS (tcp://), in a network whose computers you all trust.",
        ),
    ] = False
    store: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="The folder in which what logs left is kept; default: fleet-store beside RUN."
        ),
    ] = ""
    choose_again: Annotated[
        bool, typer.Option("--choose-again", help="Choose terms, filters and cut-offs of the models anew.")
    ] = False
    check: Annotated[
        str,
        typer.Option(
            metavar="WHICH", help="Logs to look at in full, as check does: some (those unlike the others), all or none."
        ),
    ] = "some"
    term_names: opt.TermNames = ""
    plain: Annotated[bool, typer.Option("--plain", help="Take the default terms as they are, without a search.")] = (
        False
    )
    robot_id: Annotated[
        str,
        typer.Option(
            "--robot", metavar="ID", help="One robot of a run that is there, on a page of its own; no log is read."
        ),
    ] = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command("fleet", epilog="Example: steelyard fleet fleet.toml -o runs/tonight", asks_project=False)
@opt.taking(FleetOptions)
def fleet(o: FleetOptions) -> None:
    """Identify a fleet: many logs of many robots, on all cores or several machines; tomorrow only what is new."""
    if o.robot_id:
        deliver(lambda: _one_robot(o), o.output, o.overwrite, o.as_json)
    else:
        deliver(lambda: _found(o), o.output, o.overwrite, o.as_json)


def _one_robot(o: FleetOptions) -> FleetRobot:
    from steelyard.fleet.robot_page import read_run_robot

    return read_run_robot(o.fleet, o.robot_id)


def _found(o: FleetOptions) -> FleetOutcome:
    from steelyard.fleet.fleet import identify_fleet
    from steelyard.ground.arrays import one_heap

    one_heap()
    beside = Path(o.output).absolute().parent / "fleet-store" if o.output else None
    return identify_fleet(
        o.fleet,
        store=o.store or beside,
        workers=o.workers,
        scheduler=o.scheduler,
        insecure_scheduler=o.insecure_scheduler,
        choose_again=o.choose_again,
        check=o.check,
        terms=opt.words(o.term_names) or None,
        plain=o.plain,
    )
