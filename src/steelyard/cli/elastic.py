"""`steelyard elastic`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command


@dataclass(frozen=True)
class ElasticOptions:
    """Options of `steelyard elastic`."""

    robot: opt.RobotSource
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", help="Logs with motor and link encoders, or with one encoder (--resonance)."),
    ]
    validate: Annotated[list[str] | None, typer.Option(metavar="LOG", help="Log for validation. May be repeated.")] = (
        None
    )
    only: Annotated[str, typer.Option(metavar="A,B,…", help="Joints to report; default: all with two encoders.")] = ""
    resonance: Annotated[
        bool, typer.Option("--resonance", help="One encoder: find antiresonance and resonance of an excited joint.")
    ] = False
    links: Annotated[
        str,
        typer.Option(metavar="MODEL", help="Known model: calibrate springs by its link torque, without motor torques."),
    ] = ""
    more_terms: Annotated[
        str, typer.Option("--terms", metavar="T,…", help="Additional terms of the rigid robot, such as counterbalance.")
    ] = ""
    cutoff: opt.Cutoff = None
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("elastic", epilog="Example: steelyard elastic arm.urdf a.csv b.csv --validate c.csv -o elastic")
@opt.with_options(ElasticOptions)
def elastic(o: ElasticOptions) -> None:
    """Identify elastic joints: stiffness and clock skew from two encoders, or resonances from one."""
    from steelyard.elasticity import Elasticity, identify_elasticity

    def run() -> Elasticity:
        return identify_elasticity(
            o.robot_options.robot(o.robot), o.logs, o.validate or (), mapping=o.mapping or None,
            joints=opt.words(o.only), terms=opt.words(o.more_terms) or None, cutoff_hz=o.cutoff,
            links=o.robot_options.model(o.links) if o.links else None, resonance=o.resonance,
            source=opt.description(o.robot),
        )  # fmt: skip

    o.out.deliver(run)
