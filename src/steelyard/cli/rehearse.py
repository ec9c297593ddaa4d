"""`steelyard rehearse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class RehearseOptions:
    """What may be typed."""

    robot: opt.RobotSource
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run of `steelyard excite`."), opt.FromProject("motion")]
    truth: Annotated[str, typer.Option(metavar="T", help="nominal, or perturbed: a possible robot around it.")] = (
        "perturbed"
    )
    spread: Annotated[float, typer.Option(metavar="SHARE", help="How far a perturbed robot is off.")] = 0.2
    noise: Annotated[
        str, typer.Option(metavar="X[,…]", help="Torque noise, N m (N); default half a percent of the limits.")
    ] = ""
    rate: Annotated[float, typer.Option(metavar="HZ", help="Of the simulated log.")] = 1000.0
    passes: Annotated[int, typer.Option(metavar="N", help="How often the motion is played.")] = 1
    seed: Annotated[int, typer.Option(metavar="N", help="Of the first planted robot and of its noise.")] = 0
    seeds: Annotated[int, typer.Option(metavar="N", help="Robots to plant; all of them are judged by.")] = 5
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes that share many robots; default: one per core.")
    ] = 0
    gpu: Annotated[bool, typer.Option("--gpu", help="Move all robots at once on an NVIDIA GPU.")] = False
    term_names: opt.TermNames = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("rehearse", epilog="Example: steelyard rehearse arm.urdf motion -o rehearsal")
@opt.taking(RehearseOptions)
def rehearse(o: RehearseOptions) -> None:
    """Play a designed motion on a simulated robot: are its planted parameters found? (Exit code 0, or 1.)"""
    from steelyard.excitation.motion_design import read_design
    from steelyard.rehearse.rehearse import Rehearsal
    from steelyard.rehearse.rehearse import rehearse as play

    def rehearsed() -> Rehearsal:
        loaded = o.described.robot(o.robot)
        made = read_design(o.run, loaded)
        given = opt.words(o.term_names) or [t for t in made.terms if t != "default"]
        return play(
            loaded,
            made.trajectories,
            terms=given or None,
            truth=o.truth,
            relative_std=o.spread,
            limits=made.limits,
            noise=opt.per_joint("--noise", o.noise) if o.noise else None,
            rate=o.rate,
            passes=o.passes,
            seed=o.seed,
            seeds=o.seeds,
            workers=o.workers or None,
            gpu=o.gpu,
        )

    raise typer.Exit(0 if o.end.deliver(rehearsed).passed else 1)
