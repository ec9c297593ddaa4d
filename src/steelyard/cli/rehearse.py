"""`steelyard rehearse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class RehearseOptions:
    """Options of `steelyard rehearse`."""

    robot: opt.RobotSource
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run of `steelyard excite`."), opt.FromProject("motion")]
    truth: Annotated[str, typer.Option(metavar="T", help="True parameters: nominal or perturbed.")] = "perturbed"
    spread: Annotated[float, typer.Option(metavar="SHARE", help="Relative standard deviation of the perturbation.")] = (
        0.2
    )
    noise: Annotated[
        str, typer.Option(metavar="X[,…]", help="Torque noise, N m (N); default: 0.5 % of the limits.")
    ] = ""
    rate: Annotated[float, typer.Option(metavar="HZ", help="Sampling rate of the simulated log, Hz.")] = 1000.0
    passes: Annotated[int, typer.Option(metavar="N", help="Number of times the motion is played.")] = 1
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the first simulated robot and its noise.")] = 0
    seeds: Annotated[int, typer.Option(metavar="N", help="Number of simulated robots; all of them are evaluated.")] = 5
    workers: Annotated[int, typer.Option(metavar="N", help="Processes for many robots; default: one per core.")] = 0
    gpu: Annotated[bool, typer.Option("--gpu", help="Simulate all robots at once on an NVIDIA GPU.")] = False
    term_names: opt.TermNames = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("rehearse", epilog="Example: steelyard rehearse arm.urdf motion -o rehearsal")
@opt.with_options(RehearseOptions)
def rehearse(o: RehearseOptions) -> None:
    """Test a designed motion in simulation: does identification recover the known parameters?

    Exits with 0 if it does, else with 1.
    """
    from steelyard.excitation.motion_design import read_design
    from steelyard.rehearsal.rehearse import Rehearsal
    from steelyard.rehearsal.rehearse import rehearse as play

    def run() -> Rehearsal:
        robot = o.robot_options.robot(o.robot)
        design = read_design(o.run, robot)
        names = opt.words(o.term_names) or [t for t in design.terms if t != "default"]
        return play(
            robot,
            design.trajectories,
            terms=names or None,
            truth=o.truth,
            relative_std=o.spread,
            limits=design.limits,
            noise=opt.per_joint("--noise", o.noise) if o.noise else None,
            rate=o.rate,
            passes=o.passes,
            seed=o.seed,
            seeds=o.seeds,
            workers=o.workers or None,
            gpu=o.gpu,
        )

    raise typer.Exit(0 if o.out.deliver(run).passed else 1)
