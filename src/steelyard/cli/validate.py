"""`steelyard validate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.use.validated import Validated


@dataclass(frozen=True)
class JudgeOptions:
    """What may be typed."""

    model: opt.ModelSource
    against: Annotated[str, typer.Option(metavar="PLANT", help="What stands for the robot; like MODEL.")] = ""
    motion: opt.DesignedMotion = ""
    log: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Instead of a plant: a log. May be repeated."),
        opt.FromProject("logs.validate", "logs.identify", unless=("motion", "against", "sweep")),
    ] = None
    horizon: opt.Horizon = 0.5
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Of the controllers.")] = 20.0
    sweep: Annotated[
        float, typer.Option(metavar="SHARE", help="Change each base parameter by this share, and rank them.")
    ] = 0.0
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command(
    "validate", epilog="Example: steelyard validate found --against arm.urdf --motion motion --sweep 0.1 -o judged"
)
@opt.taking(JudgeOptions)
def validate(o: JudgeOptions) -> None:
    """Judge a model by how it moves: four ways against a plant along a motion, or two on logs; and by a sweep which
    parameters matter."""
    if bool(o.motion) == bool(o.log):
        raise SteelyardError("Give a --motion to play on a plant (--against), or a --log; one of them.")
    if o.log and (o.against or o.sweep):
        raise SteelyardError("--against and --sweep go with a --motion, not with a log; leave them out.")
    if o.motion and (o.delay or o.torque_between != "auto"):
        raise SteelyardError("--delay and --torque-between are about the torques of a --log; leave them out.")
    if o.motion and not (o.against or o.sweep):
        raise SteelyardError("Say what the model is judged --against; or ask for a --sweep of its own parameters.")

    def judged() -> Validated:
        from steelyard.signals.between import as_torque_between
        from steelyard.use.validated import validate_on_logs, validate_on_plant

        model = o.described.model(o.model)
        if o.log:
            logs = opt.logs_from(o.log, model.robot, o.mapping)
            between = as_torque_between(o.torque_between)
            return validate_on_logs(model, logs, o.horizon, torque_between=between, delay=o.delay)
        plant = o.described.model_like(o.against, model) if o.against else None
        return validate_on_plant(
            model,
            plant,
            opt.motions_from(o.motion, model.robot),
            horizon=o.horizon,
            bandwidth_rad_s=o.bandwidth,
            sweep_share=o.sweep,
        )

    o.end.deliver(judged)
