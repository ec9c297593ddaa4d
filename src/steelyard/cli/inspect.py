"""`steelyard inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.completions import some_of
from steelyard.cli.deliver import deliver

if TYPE_CHECKING:
    from steelyard.parameters.terms import Terms
    from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class InspectOptions:
    """Options of `steelyard inspect`."""

    robot: opt.RobotSource
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    floating: opt.Floating = False
    loops: opt.Loops = ""
    term_names: Annotated[
        str,
        typer.Option(
            "--terms",
            metavar="T,…",
            help="Joint terms, e.g. viscous,coulomb or rotor@drive; nominal: those of the description.",
            autocompletion=some_of("terms"),
        ),
        opt.FromProject("terms"),
    ] = ""
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="Method for base parameters: qr, rref, svd or kernel.")
    ] = "qr"
    as_json: opt.AsJson = False


@command("inspect", epilog="Example: steelyard inspect ns16 --terms rotor,viscous,coulomb")
@opt.with_options(InspectOptions)
def inspect(o: InspectOptions) -> None:
    """Show a robot's joints, links and drives, and its identifiable parameters."""
    from steelyard.regression.inspection import inspect_robot

    robot = o.robot_options.robot(o.robot, True, floating=o.floating, loops=o.loops or True)
    deliver(lambda: inspect_robot(robot, _terms(robot, o.term_names), cast(Any, o.method)), as_json=o.as_json)


def _terms(robot: Robot, text: str) -> Terms | None:
    from steelyard.parameters.term import make_term
    from steelyard.parameters.terms import nominal_terms, terms

    chosen: list[Any] = []
    for word in opt.words(text):
        if word == "nominal":
            chosen.extend(nominal_terms(robot)[0].terms)
        else:
            kind, _, side = word.partition("@")
            chosen.append(make_term(kind, on=cast(Any, side or "joint")))
    return terms(robot, *chosen) if chosen else None
