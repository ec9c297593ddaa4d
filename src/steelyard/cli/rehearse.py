"""`steelyard rehearse`."""

from __future__ import annotations

from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver


@command("rehearse", epilog="Example: steelyard rehearse arm.urdf motion -o rehearsal")
def rehearse(
    robot: opt.RobotSource,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of `steelyard excite`.")],
    truth: Annotated[
        str, typer.Option(metavar="T", help="nominal, or perturbed: a possible robot around it.")
    ] = "perturbed",
    spread: Annotated[float, typer.Option(metavar="SHARE", help="How far a perturbed robot is off.")] = 0.2,
    noise: Annotated[
        str, typer.Option(metavar="X[,…]", help="Torque noise, N m (N); default half a percent of the limits.")
    ] = "",
    rate: Annotated[float, typer.Option(metavar="HZ", help="Of the simulated log.")] = 1000.0,
    passes: Annotated[int, typer.Option(metavar="N", help="How often the motion is played.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the planted robot and of the noise.")] = 0,
    term_names: opt.TermNames = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Play a designed motion on a simulated robot: are its planted parameters found? (Exit code 0, or 1.)"""
    from steelyard.excitation.designed import read_designed
    from steelyard.rehearse.rehearse import Rehearsal
    from steelyard.rehearse.rehearse import rehearse as play

    def rehearsed() -> Rehearsal:
        loaded = opt.robot_from(robot, joints, gravity, snap)
        made = read_designed(run, loaded)
        given = opt.words(term_names) or [t for t in made.settings.get("terms", []) if t != "default"]
        return play(
            loaded,
            made.trajectories,
            terms=given or None,
            truth=truth,
            spread=spread,
            limits=made.limits,
            noise=opt.per_joint("--noise", noise) if noise else None,
            rate=rate,
            passes=passes,
            seed=seed,
        )

    raise typer.Exit(0 if deliver(rehearsed, output, overwrite, as_json).passed else 1)
