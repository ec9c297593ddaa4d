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
    from steelyard.simulation.simulated_motion import SimulatedMotion


@dataclass(frozen=True)
class SimulateOptions:
    """Options of `steelyard simulate`."""

    model: opt.ModelSource
    motion: Annotated[
        str,
        typer.Option("--motion", metavar="RUN", help="Run of `steelyard excite`."),
        opt.FromProject("motion", unless=("torque", "duration")),
    ] = ""
    controller: Annotated[
        str,
        typer.Option(
            metavar="F", help="Controller for --motion (YAML, TOML); default: computed torque with the model."
        ),
    ] = ""
    torque: Annotated[
        str, typer.Option(metavar="FILE", help="Torques: waves (YAML, TOML, JSON), or those of a log.")
    ] = ""
    start: Annotated[str, typer.Option(metavar="Q,…", help="Initial position, at rest, rad (m).")] = ""
    duration: Annotated[
        float | None, typer.Option(metavar="S", help="Duration of the free fall or of the waves, s.")
    ] = None
    rate: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="Sampling rate of the log, Hz; default: 1000, or that of the played log."),
    ] = None
    noise: Annotated[
        str,
        typer.Option(
            metavar="X[,…]", help="Torque noise in the log, N m (N); positions get 19-bit resolution; default: none."
        ),
    ] = ""
    friction: Annotated[str, typer.Option(metavar="F", help="smooth, or stick: joints can stand still.")] = "smooth"
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed of noise and phases.")] = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("simulate", epilog="Example: steelyard simulate found --motion motion --noise 0.1 -o simulated")
@opt.with_options(SimulateOptions)
def simulate(o: SimulateOptions) -> None:
    """Simulate a model that follows a motion, receives torques or falls freely, and write the log."""
    if o.friction not in ("smooth", "stick"):
        raise SteelyardError(f"--friction is '{o.friction}'; choose smooth or stick.")
    if bool(o.motion) + bool(o.torque) + (o.duration is not None and not o.torque) != 1:
        raise SteelyardError(
            "Give one input for the model: --motion RUN, --torque FILE, or --duration S alone for a free fall."
        )
    if o.controller and not o.motion:
        raise SteelyardError("--controller needs a --motion to follow; add --motion RUN, or remove --controller.")

    def run() -> SimulatedMotion:
        from steelyard.signals.between import as_torque_between
        from steelyard.simulation.simulated_motion import simulate_model

        model = o.robot_options.model(o.model)
        return simulate_model(
            model,
            **_inputs(o, model),
            start=opt.numbers("--start", o.start, model.robot.dof) if o.start else None,
            rate=o.rate,
            noise=opt.per_joint("--noise", o.noise) if o.noise else None,
            friction=o.friction,  # type: ignore[arg-type]
            seed=o.seed or 0,
            torque_between=as_torque_between(o.torque_between),
            delay=o.delay,
        )

    o.out.deliver(run)


def _inputs(o: SimulateOptions, model: Model) -> dict[str, Any]:
    """Arguments of `simulate_model` that define the input of the model."""
    if o.motion:
        from steelyard.estimation.simulation_error.control_loop import read_control_loop

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
        raise SteelyardError("--duration is for waves and free fall; a log is played over its whole length. Remove it.")
    return {"torque": opt.logs_from([o.torque], model.robot, o.mapping)[0]}
