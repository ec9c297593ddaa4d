"""`steelyard inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.parameters.terms import Terms
    from steelyard.robot.robot import Robot


@command("inspect", epilog="Example: steelyard inspect ns16 --terms rotor,viscous,coulomb")
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
    from steelyard.regression.inspection import inspect_robot

    loaded = opt.robot_from(robot, joints, gravity, snap, locked=dict(_lock(text) for text in lock or ()))
    deliver(lambda: inspect_robot(loaded, _terms(loaded, term_names), cast(Any, method)), as_json=as_json)


def _lock(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SteelyardError(f"--lock is '{text}'; give joint=value, e.g. --lock elbow=0.5.") from None


def _terms(robot: Robot, text: str) -> Terms | None:
    from steelyard.parameters.term import make_term
    from steelyard.parameters.terms import nominal_terms, terms

    made: list[Any] = []
    for word in opt.words(text):
        if word == "nominal":
            made.extend(nominal_terms(robot)[0].terms)
        else:
            kind, _, side = word.partition("@")
            made.append(make_term(kind, on=cast(Any, side or "joint")))
    return terms(robot, *made) if made else None
