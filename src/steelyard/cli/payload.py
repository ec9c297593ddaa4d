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
    """Options of `steelyard payload`."""

    robot: opt.RobotSource
    with_load: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="LOG", help="Log with the payload; NAME=LOG for several payloads. May be repeated."
        ),
        opt.FromProject("logs.payload", unless=("design",)),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="Log without the payload. May be repeated."),
        opt.FromProject("logs.bare", unless=("design", "arm", "sensor")),
    ] = None
    arm: Annotated[
        str, typer.Option(metavar="RUN", help="Run folder of the model without payload, assumed to be exact.")
    ] = ""
    sensor: Annotated[
        bool, typer.Option("--sensor", help="Use the force–torque sensor at --frame instead of the joint torques.")
    ] = False
    at_rest: Annotated[
        bool,
        typer.Option(
            "--at-rest", help="Use only the times at which the robot stands; tables of held poses need no option."
        ),
    ] = False
    goal: opt.GoalColumns = ""
    integral: Annotated[
        float | None,
        typer.Option(metavar="S", help="With --sensor: integrate over S seconds, which needs no accelerations."),
    ] = None
    known: Annotated[
        str, typer.Option(metavar="LOAD", help="Known payload (load.yaml): identify the torque gains instead.")
    ] = ""
    design: Annotated[bool, typer.Option("--design", help="Instead of identifying, design a motion for --sensor.")] = (
        False
    )
    duration: Annotated[float, typer.Option(metavar="S", help="With --design: duration of the motion, s.")] = 5.0
    rate: Annotated[float, typer.Option(metavar="HZ", help="With --design: sampling rate of motion.csv, Hz.")] = 100.0
    frame: Annotated[str, typer.Option(metavar="FRAME", help="Reference frame of the payload; default: last link.")] = (
        ""
    )
    friction: Annotated[
        str, typer.Option(metavar="F", help="Friction of the logs: own (different in each log) or common.")
    ] = "own"
    mapping: opt.MapFile = ""
    floating: opt.Floating = False
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: opt.TermNames = ""
    physical: Annotated[
        bool, typer.Option("--physical/--free", help="Physically consistent, or unconstrained fit.")
    ] = True
    delay: opt.OpenDelay = None
    torque_between: opt.BetweenSamples = "auto"
    targets: Annotated[
        str, typer.Option("--for", metavar="C,…", help="Controllers to write the payload for: {payload_targets:,}.")
    ] = ""
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "payload", epilog="Example: steelyard payload arm.urdf --without empty.csv --with loaded.csv --frame tool0 -o load"
)
@opt.with_options(PayloadOptions)
def payload(o: PayloadOptions) -> None:
    """Identify the payload of a robot: mass, centre of gravity and inertia, with error bars."""
    if o.friction not in ("own", "common"):
        raise SteelyardError(f"--friction is '{o.friction}'; choose own or common.")
    if o.integral is not None and not o.sensor:
        raise SteelyardError("--integral is only for --sensor; joint torques are filtered instead.")
    if o.sensor and (o.delay or o.torque_between != "auto"):
        raise SteelyardError("--delay and --torque-between are for joint torques; remove them, or remove --sensor.")
    if o.at_rest and (o.sensor or o.design):
        raise SteelyardError("--at-rest is for joint torques; remove it, or remove --sensor or --design.")
    if o.targets and (o.design or o.known):
        raise SteelyardError("--for writes an identified payload; it cannot be combined with --design or --known.")
    if not o.design and not o.with_load:
        raise SteelyardError("There is no log with the payload; give one (--with), or --design a motion.")
    o.out.deliver(lambda: _run(o, o.robot_options.robot(o.robot, True, floating=o.floating)))


def _run(o: PayloadOptions, robot: Robot) -> Outcome:
    from steelyard.floating import is_floating
    from steelyard.payload import PAYLOAD_TARGETS, PayloadRun, PayloadRuns
    from steelyard.signals.between import as_torque_between
    from steelyard.signals.prepare import Preparation

    if is_floating(robot, o.mapping):
        return _floating(o, robot)
    if o.design:
        from steelyard.payload.excite import WRENCH_NOISE, excite_payload
        from steelyard.payload.payload_results import PayloadMotion

        return PayloadMotion(robot, excite_payload(robot, o.frame, duration=o.duration, rate=o.rate), WRENCH_NOISE)
    targets = tuple(opt.words(o.targets))
    for name in targets:  # refuse unknown names before the logs are read
        PAYLOAD_TARGETS[name]
    groups = _groups(o.with_load or ())
    with_payload = [opt.servo_logs(paths, robot, o.mapping, o.goal) for paths in groups.values()]
    bare = opt.servo_logs(o.without, robot, o.mapping, o.goal)
    terms = opt.words(o.term_names) or None
    preparation = Preparation(delay=o.delay, torque_between=as_torque_between(o.torque_between))
    if o.known:
        from steelyard.payload import drive_gains, read_payload

        loaded = [log for logs in with_payload for log in logs]
        load, at_rest = read_payload(o.known), o.at_rest or bool(o.goal) or None
        return drive_gains(robot, loaded, bare, load, terms=terms, preparation=preparation, at_rest=at_rest)
    if o.sensor:
        from steelyard.payload import SensorModel, identify_payload_by_sensor

        sensor = SensorModel() if o.integral is None else SensorModel("integral", window=o.integral)
        loads = [identify_payload_by_sensor(robot, logs, o.frame, sensor, physical=o.physical) for logs in with_payload]
    else:
        from steelyard.export import load_model
        from steelyard.payload import identify_payload

        loads = list(
            identify_payload(
                robot, with_payload, bare, arm=load_model(o.arm) if o.arm else None, frame=o.frame, terms=terms,
                friction=cast(Any, o.friction), physical=o.physical, preparation=preparation,
                at_rest=o.at_rest or bool(o.goal) or None,
            ).loads
        )  # fmt: skip
    runs = [PayloadRun(load, robot, opt.description(o.robot), targets) for load in loads]
    return runs[0] if list(groups) == [""] else PayloadRuns(dict(zip(groups, runs, strict=True)))


def _floating(o: PayloadOptions, robot: Robot) -> Outcome:
    """Identify what a robot with a floating base carries."""
    from steelyard.export import load_model
    from steelyard.payload import PayloadRun, PayloadRuns, identify_payload

    others = {"--design": o.design, "--sensor": o.sensor, "--known": o.known, "--at-rest": o.at_rest}
    if stated := [name for name, value in (others | {"--for": o.targets}).items() if value]:
        raise SteelyardError(f"{stated[0]} is not available for robots with a floating base yet; remove it.")
    groups = _groups(o.with_load or ())
    loads = identify_payload(
        robot, list(groups.values()), list(o.without or ()), arm=load_model(o.arm) if o.arm else None, frame=o.frame,
        terms=opt.words(o.term_names) or None, physical=o.physical, mapping=o.mapping or None,
    ).loads  # fmt: skip
    runs = [PayloadRun(load, robot, opt.description(o.robot)) for load in loads]
    return runs[0] if list(groups) == [""] else PayloadRuns(dict(zip(groups, runs, strict=True)))


def _groups(texts: list[str] | tuple[()]) -> dict[str, list[str]]:
    """Group logs by the name of their payload; "" without a name."""
    out: dict[str, list[str]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        has_name = bool(equals) and not Path(text).exists()
        out.setdefault(name if has_name else "", []).append(path if has_name else text)
    if "" in out and len(out) > 1:
        raise SteelyardError("Some --with options name a payload (NAME=LOG) and some do not; name all or none.")
    return out
