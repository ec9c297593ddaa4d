"""`steelyard validate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.assessment.model_validation import ModelValidation


@dataclass(frozen=True)
class JudgeOptions:
    """Options of `steelyard validate`."""

    model: opt.ModelSource
    against: Annotated[
        str, typer.Option(metavar="PLANT", help="Plant that represents the robot; given like MODEL.")
    ] = ""
    motion: opt.DesignedMotion = ""
    log: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Log to compare with instead of a plant. May be repeated."),
        opt.FromProject("logs.validate", "logs.identify", unless=("motion", "against", "sweep")),
    ] = None
    horizon: opt.Horizon = 0.5
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Bandwidth of the controllers.")] = 20.0
    sweep: Annotated[
        float, typer.Option(metavar="SHARE", help="Rank the base parameters: change each by this share.")
    ] = 0.0
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "validate", epilog="Example: steelyard validate found --against arm.urdf --motion motion --sweep 0.1 -o judged"
)
@opt.with_options(JudgeOptions)
def validate(o: JudgeOptions) -> None:
    """Validate the motion of a model: four tests against a plant, or two against logs; a sweep ranks the parameters by
    their influence."""
    if bool(o.motion) == bool(o.log):
        raise SteelyardError("Give either a --motion for a plant (--against) or a --log.")
    if o.log and (o.against or o.sweep):
        raise SteelyardError("--against and --sweep need a --motion, not a log; remove them.")
    if o.motion and (o.delay or o.torque_between != "auto"):
        raise SteelyardError("--delay and --torque-between are for the torques of a --log; remove them.")
    if o.motion and not (o.against or o.sweep):
        raise SteelyardError("Give a plant to compare --against, or a --sweep of the model's own parameters.")

    def run() -> ModelValidation:
        from steelyard.assessment.model_validation import validate_on_logs, validate_on_plant
        from steelyard.signals.between import as_torque_between

        model = o.robot_options.model(o.model)
        if o.log:
            logs = opt.logs_from(o.log, model.robot, o.mapping)
            between = as_torque_between(o.torque_between)
            return validate_on_logs(model, logs, o.horizon, torque_between=between, delay=o.delay)
        plant = o.robot_options.model_like(o.against, model) if o.against else None
        return validate_on_plant(
            model,
            plant,
            opt.motions_from(o.motion, model.robot),
            horizon=o.horizon,
            bandwidth_rad_s=o.bandwidth,
            sweep_share=o.sweep,
        )

    o.out.deliver(run)
