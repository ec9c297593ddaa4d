"""`steelyard simulate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.dynamics.model import Model
    from steelyard.use.simulated import Simulated


@dataclass(frozen=True)
class SimulateOptions:
    """What may be typed."""

    model: opt.ModelSource
    motion: Annotated[
        str,
        typer.Option("--motion", metavar="RUN", help="A run of `steelyard excite`."),
        opt.FromProject("motion", unless=("torque", "duration")),
    ] = ""
    controller: Annotated[
        str,
        typer.Option(metavar="F", help="What follows the motion (YAML, TOML); default: computed torque by the model."),
    ] = ""
    torque: Annotated[
        str, typer.Option(metavar="FILE", help="Torques to play: waves (YAML, TOML, JSON), or those of a log.")
    ] = ""
    start: Annotated[str, typer.Option(metavar="Q,…", help="Where it starts from, at rest, rad (m).")] = ""
    duration: Annotated[
        float | None, typer.Option(metavar="S", help="Let it fall for so long; or play waves for so long.")
    ] = None
    rate: Annotated[float | None, typer.Option(metavar="HZ", help="Of the log; default 1000, or as played.")] = None
    noise: Annotated[
        str,
        typer.Option(metavar="X[,…]", help="Torque noise in the log, N m (N), with encoders; default: none."),
    ] = ""
    friction: Annotated[str, typer.Option(metavar="F", help="smooth, or stick: joints truly stand still.")] = "smooth"
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of the noise, and of phases that are drawn.")] = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("simulate", epilog="Example: steelyard simulate found --motion motion --noise 0.1 -o simulated")
@opt.taking(SimulateOptions)
def simulate(o: SimulateOptions) -> None:
    """Let a model follow a motion, play torques to it, or let it fall, and write the log of that."""
    if o.friction not in ("smooth", "stick"):
        raise SteelyardError(f"--friction is '{o.friction}'; choose smooth or stick.")
    if bool(o.motion) + bool(o.torque) + (o.duration is not None and not o.torque) != 1:
        raise SteelyardError(
            "Say what drives the model: --motion RUN, --torque FILE, or --duration S to let it fall; one of them."
        )
    if o.controller and not o.motion:
        raise SteelyardError("--controller is what follows a --motion; give one, or leave it out.")

    def simulated() -> Simulated:
        from steelyard.signals.between import as_torque_between
        from steelyard.use.simulated import let_move

        model = o.described.model(o.model)
        return let_move(
            model,
            **_driven(o, model),
            start=opt.numbers("--start", o.start, model.robot.dof) if o.start else None,
            rate=o.rate,
            noise=opt.per_joint("--noise", o.noise) if o.noise else None,
            friction=o.friction,  # type: ignore[arg-type]
            seed=o.seed or 0,
            torque_between=as_torque_between(o.torque_between),
            delay=o.delay,
        )

    o.end.deliver(simulated)


def _driven(o: SimulateOptions, model: Model) -> dict[str, Any]:
    """What of `let_move`'s arguments says what drives the model."""
    if o.motion:
        from steelyard.estimation.simulated.control_loop import read_control_loop

        motions = opt.motions_from(o.motion, model.robot)
        if not o.controller:
            return {"motions": motions}
        loop = read_control_loop(o.controller, model.robot, with_reference=False)
        return {"motions": motions, "controller": loop.controller, "control_period": loop.control_period}
    if not o.torque:
        return {"duration": o.duration}
    if o.torque.lower().endswith((".yaml", ".yml", ".toml", ".json")):
        from steelyard.simulation.torque_signal import read_torque_signal

        signal, seconds = read_torque_signal(o.torque, model.robot, o.seed)
        return {"torque": signal, "duration": seconds if o.duration is None else o.duration}
    if o.duration is not None:
        raise SteelyardError("--duration is for waves and for falling; a log is played as long as it is.")
    return {"torque": opt.logs_from([o.torque], model.robot, o.mapping)[0]}
