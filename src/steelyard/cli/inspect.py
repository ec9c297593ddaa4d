"""`steelyard inspect`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import app
from steelyard.errors import SteelyardError
from steelyard.parameters.term import Side, Term, make_term
from steelyard.parameters.terms import Terms, nominal_terms, terms
from steelyard.robot.robot import Robot


@app.command(epilog="Example: steelyard inspect ns16 --terms rotor,viscous,coulomb")
def inspect(
    robot: opt.RobotSource,
    joints: opt.Joints = "",
    lock: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT=VALUE", help="Lock a joint at a value in rad or m. May be repeated."),
    ] = None,
    gravity: opt.Gravity = "",
    term_names: Annotated[
        str,
        typer.Option(
            "--terms",
            metavar="T,…",
            help="Joint terms, e.g. viscous,coulomb or rotor@drive; 'nominal' for those of the description.",
        ),
    ] = "",
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="How the base parameters are found: qr, rref, svd or kernel.")
    ] = "qr",
    snap: opt.Snap = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show a robot's joints, links and drives, and which parameters its motion can show."""
    from steelyard.regression.base_parameters import Method
    from steelyard.regression.inspection import inspect_robot

    loaded = opt.robot_from(robot, joints, gravity, snap, locked=dict(_lock(text) for text in lock or ()))
    seen = inspect_robot(loaded, _terms(loaded, term_names), cast(Method, method))
    if as_json:
        opt.print_json(seen.to_json())
        return
    from steelyard.report.inspection import print_inspection
    from steelyard.report.terminal import console

    print_inspection(seen, console())


def _lock(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SteelyardError(f"--lock is '{text}'; give joint=value, e.g. --lock elbow=0.5.") from None


def _terms(robot: Robot, text: str) -> Terms | None:
    made: list[Term] = []
    for word in opt.words(text):
        if word == "nominal":
            made.extend(nominal_terms(robot)[0].terms)
        else:
            kind, _, side = word.partition("@")
            made.append(make_term(kind, on=cast(Side, side or "joint")))
    return terms(robot, *made) if made else None
