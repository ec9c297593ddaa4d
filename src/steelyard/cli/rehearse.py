"""`steelyard rehearse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.rehearsal import RehearseOptions


@dataclass(frozen=True, kw_only=True)
class RehearseCommand:
    """Options of `steelyard rehearse`."""

    robot: opt.RobotSource
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run of `steelyard excite`."), opt.FromProject("motion")]
    rehearsal: opt.Typed[RehearseOptions]
    term_names: opt.TermNames = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("rehearse", epilog="Example: steelyard rehearse arm.urdf motion -o rehearsal")
@opt.with_options(RehearseCommand)
def rehearse(o: RehearseCommand) -> None:
    """Test a designed motion in simulation: does identification recover the known parameters?

    Exits with 0 if it does, else with 1.
    """
    from steelyard.excitation.motion_design import read_design
    from steelyard.rehearsal import Rehearsal
    from steelyard.rehearsal import rehearse as play

    def run() -> Rehearsal:
        robot = o.robot_options.robot(o.robot)
        design = read_design(o.run, robot)
        terms = opt.words(o.term_names) or [t for t in design.terms if t != "default"] or None
        workers = o.rehearsal["workers"] or None
        options = o.rehearsal.options(terms=terms, limits=design.limits, workers=workers)
        return play(robot, design.trajectories, options)

    raise typer.Exit(0 if o.out.deliver(run).passed else 1)
