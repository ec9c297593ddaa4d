"""`steelyard sequential`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command

if TYPE_CHECKING:
    from steelyard.estimation.sequential.sequential_result import SequentialResult


@dataclass(frozen=True)
class SequentialOptions:
    """Options of `steelyard sequential`."""

    robot: opt.RobotSource
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="Movements with their logs and parameters (YAML, TOML, JSON).")
    ]
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("sequential", epilog="Example: steelyard sequential arm.urdf plan.yaml -o steps")
@opt.with_options(SequentialOptions)
def sequential(o: SequentialOptions) -> None:
    """Identify in steps: each movement gives a few parameters and uses those of the steps before."""

    def run() -> SequentialResult:
        from steelyard.estimation.sequential.read_plan import read_plan
        from steelyard.estimation.sequential.sequential_result import SequentialResult

        return SequentialResult.of(read_plan(o.plan, o.robot_options.robot(o.robot)))

    o.out.deliver(run)
