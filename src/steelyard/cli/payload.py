"""`steelyard payload`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.ground.outcome import Outcome
    from steelyard.robot.robot import Robot


@dataclass(frozen=True)
class PayloadOptions:
    """What may be typed."""

    robot: opt.RobotSource
    with_load: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="LOG", help="A log with the load; NAME=LOG for several. May be repeated."),
        opt.FromProject("logs.payload", unless=("design",)),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="A log without the load. May be repeated."),
        opt.FromProject("logs.bare", unless=("design", "arm", "sensor")),
    ] = None
    arm: Annotated[
        str, typer.Option(metavar="RUN", help="The run folder of the bare arm's model, which is taken as exact.")
    ] = ""
    sensor: Annotated[
        bool, typer.Option("--sensor", help="Weigh by the force–torque sensor at --frame instead of by the joints.")
    ] = False
    integral: Annotated[
        float | None, typer.Option(metavar="S", help="With --sensor: integrals over S seconds, without accelerations.")
    ] = None
    known: Annotated[
        str, typer.Option(metavar="LOAD", help="A known load (load.yaml): find the gains of the torques instead.")
    ] = ""
    design: Annotated[
        bool, typer.Option("--design", help="Instead of weighing, design the motion to weigh by with a sensor.")
    ] = False
    duration: Annotated[float, typer.Option(metavar="S", help="With --design: length of the motion.")] = 5.0
    rate: Annotated[float, typer.Option(metavar="HZ", help="With --design: samples a second of motion.csv.")] = 100.0
    frame: Annotated[str, typer.Option(metavar="FRAME", help="Where the load is described; default: last link.")] = ""
    friction: Annotated[str, typer.Option(metavar="F", help="own (every log has its own friction) or common.")] = "own"
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    physical: Annotated[bool, typer.Option("--physical/--free", help="A body that can exist, or the free fit.")] = True
    delay: opt.OpenDelay = None
    torque_between: opt.BetweenSamples = "auto"
    targets: Annotated[
        str, typer.Option("--for", metavar="C,…", help="Controllers to write the load for: {payload_targets:,}.")
    ] = ""
    end: opt.End = opt.END


@command(
    "payload", epilog="Example: steelyard payload arm.urdf --without empty.csv --with loaded.csv --frame tool0 -o load"
)
@opt.taking(PayloadOptions)
def payload(o: PayloadOptions) -> None:
    """Weigh what a robot carries: mass, centre of gravity and inertia, with error bars."""
    if o.friction not in ("own", "common"):
        raise SteelyardError(f"--friction is '{o.friction}'; choose own or common.")
    if o.integral is not None and not o.sensor:
        raise SteelyardError("--integral needs --sensor; the joint torques are always filtered.")
    if o.sensor and (o.delay or o.torque_between != "auto"):
        raise SteelyardError("--delay and --torque-between are about the torques of the joints, not of a --sensor.")
    if o.targets and (o.design or o.known):
        raise SteelyardError("--for writes an identified payload; it cannot be combined with --design or --known.")
    if not o.design and not o.with_load:
        raise SteelyardError("There is no log with the load; give one (--with), or --design a motion to weigh by.")
    o.end.deliver(lambda: _made(o, o.described.robot(o.robot)))


def _made(o: PayloadOptions, robot: Robot) -> Outcome:
    from steelyard.payload import PAYLOAD_TARGETS, PayloadRun, PayloadRuns
    from steelyard.signals.between import as_torque_between
    from steelyard.signals.prepare import Preparation

    if o.design:
        from steelyard.payload.excite import WRENCH_NOISE, excite_payload
        from steelyard.payload.run import PayloadMotion

        return PayloadMotion(robot, excite_payload(robot, o.frame, duration=o.duration, rate=o.rate), WRENCH_NOISE)
    targets = tuple(opt.words(o.targets))
    for name in targets:  # before logs are read
        PAYLOAD_TARGETS[name]
    groups = _groups(o.with_load or ())
    carrying = [opt.logs_from(paths, robot, o.mapping) for paths in groups.values()]
    bare = opt.logs_from(o.without, robot, o.mapping)
    terms = opt.words(o.term_names) or None
    how = Preparation(delay=o.delay, torque_between=as_torque_between(o.torque_between))
    if o.known:
        from steelyard.payload import drive_gains, read_payload

        loaded = [log for logs in carrying for log in logs]
        return drive_gains(robot, loaded, bare, read_payload(o.known), terms=terms, preparation=how)
    if o.sensor:
        from steelyard.payload import SensorModel, identify_payload_by_sensor

        felt = SensorModel() if o.integral is None else SensorModel("integral", window=o.integral)
        loads = [identify_payload_by_sensor(robot, logs, o.frame, felt, physical=o.physical) for logs in carrying]
    else:
        from steelyard.export import load_model
        from steelyard.payload import identify_payload

        loads = list(
            identify_payload(
                robot, carrying, bare, arm=load_model(o.arm) if o.arm else None, frame=o.frame, terms=terms,
                friction=cast(Any, o.friction), physical=o.physical, preparation=how,
            ).loads
        )  # fmt: skip
    runs = [PayloadRun(load, robot, opt.description(o.robot), targets) for load in loads]
    return runs[0] if list(groups) == [""] else PayloadRuns(dict(zip(groups, runs, strict=True)))


def _groups(texts: list[str] | tuple[()]) -> dict[str, list[str]]:
    """Logs by the name of the load that they carry; "" where none is named."""
    out: dict[str, list[str]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        named = bool(equals) and not Path(text).exists()
        out.setdefault(name if named else "", []).append(path if named else text)
    if "" in out and len(out) > 1:
        raise SteelyardError("Some of --with name a load (NAME=LOG) and some do not; name all of them, or none.")
    return out
