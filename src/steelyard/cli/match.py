"""`steelyard match`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command

if TYPE_CHECKING:
    from steelyard.ground.outcome import Outcome


@dataclass(frozen=True)
class MatchOptions:
    """Options of `steelyard match`."""

    robot: opt.RobotSource
    logs: Annotated[list[str], typer.Argument(metavar="LOG…", help="Logs with goals and positions.")]
    kp: Annotated[
        str, typer.Option(metavar="X[,…]", help="Stiffness of the drives, N m/rad; one or one per joint.")
    ] = ""
    kd: Annotated[
        str, typer.Option(metavar="X[,…]", help="Damping of the drives, N m s/rad; one or one per joint.")
    ] = ""
    limit: Annotated[str, typer.Option(metavar="X[,…]", help="Largest torque of the drives, N m; default: none.")] = ""
    fit: Annotated[
        str, typer.Option(metavar="N,…", help="Numbers to estimate along with the links: {match_numbers:,}.")
    ] = "armature,viscous,dry,bias,delay"
    goal: Annotated[
        str, typer.Option("--goal", metavar="COLS", help="Columns of the goals, as goal{{}} or names: a,b,….")
    ] = ""
    delay: Annotated[float, typer.Option(metavar="S", help="Delay of the drives, or its first guess, s.")] = 0.0
    delayed: Annotated[
        str,
        typer.Option(metavar="W", help="Delayed signal: torque (the whole law) or goal; default: the one that fits."),
    ] = ""
    window: Annotated[float, typer.Option(metavar="S", help="Duration of the simulated windows, s.")] = 1.0
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Last share of each log to leave out and to judge by.")
    ] = 0.3
    validate: opt.Validate = None
    cutoff: opt.Cutoff = None
    draws: Annotated[int, typer.Option(metavar="N", help="Number of draws for domain randomisation.")] = 100
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same draws.")] = 0
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("match", epilog="Example: steelyard match arm.xml run1.csv run2.csv --kp 80 --kd 2 -o matched")
@opt.with_options(MatchOptions)
def match(o: MatchOptions) -> None:
    """Match a simulated robot to its commands: links, rotors, friction, zeros and delay, without a torque sensor."""
    o.out.deliver(lambda: _run(o))


def _run(o: MatchOptions) -> Outcome:
    from steelyard.matching import match_robot

    def numbers(option: str, text: str) -> list[float] | None:
        return opt.per_joint(option, text) if text else None

    return match_robot(
        o.robot_options.robot(o.robot, free=True), o.logs, kp=numbers("--kp", o.kp), kd=numbers("--kd", o.kd),
        limit=numbers("--limit", o.limit), fit=opt.words(o.fit), goal=o.goal, mapping=o.mapping or None, delay=o.delay,
        delayed=o.delayed, validate=o.validate or (), holdout=o.holdout, window=o.window, cutoff_hz=o.cutoff,
        draws=o.draws, seed=o.seed,
    )  # fmt: skip
