"""`steelyard sequential`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command

if TYPE_CHECKING:
    from steelyard.use.stepwise import Stepwise


@dataclass(frozen=True)
class SequentialOptions:
    """What may be typed."""

    robot: opt.RobotSource
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="The movements, their logs and what each finds (YAML, TOML, JSON).")
    ]
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("sequential", epilog="Example: steelyard sequential arm.urdf plan.yaml -o steps")
@opt.taking(SequentialOptions)
def sequential(o: SequentialOptions) -> None:
    """Identify movement by movement: each finds a few parameters, and rests on what the ones before it found."""

    def identified() -> Stepwise:
        from steelyard.estimation.sequential.plan import read_plan
        from steelyard.use.stepwise import Stepwise

        return Stepwise.of(read_plan(o.plan, o.described.robot(o.robot)))

    o.end.deliver(identified)
