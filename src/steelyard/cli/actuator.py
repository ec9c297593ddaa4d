"""`steelyard actuator`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.actuators import ActuatorIdentification, CommandLog, Load


@dataclass(frozen=True)
class ActuatorOptions:
    """Options of `steelyard actuator`."""

    logs: Annotated[
        list[str], typer.Argument(metavar="LOG…", help="Runs: table, BAM's JSON, SAGE's or LeRobot's folder.")
    ]
    runs: Annotated[
        str, typer.Option(metavar="F", help="Table with a row per run: log, mass, length, kp, kd, vin, trajectory, ….")
    ] = ""
    kind: Annotated[str, typer.Option(metavar="K", help="Kind of drive: {drives:or}; default: by the logs.")] = ""
    friction: Annotated[
        str, typer.Option(metavar="M", help="Friction model: {frictions:or}; default: chosen by left-out runs.")
    ] = ""
    effects: Annotated[
        str, typer.Option(metavar="E,…", help="Effects: {drive_effects:,}, or none; default: chosen.")
    ] = ""
    leave_out: Annotated[
        str, typer.Option(metavar="NAME", help="Property whose values are left out in turn, such as kp or mass.")
    ] = ""
    holdout: Annotated[
        str, typer.Option(metavar="NAME=V,…", help="Runs that only judge, such as kp=400, mass=2 or trajectory=lift.")
    ] = ""
    given: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=X", help="Parameter with a known value, which is not fitted. May be repeated."),
    ] = None
    mass: Annotated[float | None, typer.Option(metavar="KG", help="Mass at the end of the lever, kg.")] = None
    length: Annotated[float | None, typer.Option(metavar="L", help="Length of the lever, m.")] = None
    arm_mass: Annotated[float, typer.Option(metavar="KG", help="Mass of the lever itself, kg.")] = 0.0
    inertia: Annotated[
        float | None, typer.Option(metavar="I", help="Instead of a mass: inertia of the load about the axis, kg m².")
    ] = None
    gravity_torque: Annotated[
        float, typer.Option(metavar="NM", help="With --inertia: largest torque of gravity, N m.")
    ] = 0.0
    rest_angle: Annotated[float, typer.Option(metavar="RAD", help="Position at which the load hangs at rest, rad.")] = (
        0.0
    )
    robot: Annotated[
        str, typer.Option(metavar="ROBOT", help="Instead of a mass: robot whose joint the drive moves, others at 0.")
    ] = ""
    joint: Annotated[str, typer.Option(metavar="JOINT", help="Joint of the robot, and of files with several.")] = ""
    kp: Annotated[float | None, typer.Option(metavar="KP", help="Position gain of all runs.")] = None
    kd: Annotated[float | None, typer.Option(metavar="KD", help="Velocity gain of all runs.")] = None
    volts: Annotated[float | None, typer.Option(metavar="V", help="Supply voltage of all runs, V.")] = None
    duty_gain: Annotated[
        float | None, typer.Option(metavar="G", help="Duty per unit of kp and radian, from the manual.")
    ] = None
    units: Annotated[
        list[str] | None, typer.Option(metavar="SIGNAL=UNIT", help="Unit of a signal: position=deg. May be repeated.")
    ] = None
    columns: Annotated[
        list[str] | None, typer.Option(metavar="SIGNAL=NAME", help="Column of a signal: goal=cmd. May be repeated.")
    ] = None
    simulators: Annotated[
        bool, typer.Option("--simulators", help="Also write files for MuJoCo, BAM, Isaac Lab, mjlab, USD and URDF.")
    ] = False
    into: Annotated[
        str, typer.Option(metavar="F", help="Robot file (MJCF, URDF, USD) to write the drive into, as a copy.")
    ] = ""
    physics_step: Annotated[
        float, typer.Option(metavar="S", help="Physics step of the simulator, for delays in whole steps, s.")
    ] = 0.005
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the drive.")] = "drive"
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same starts.")] = 0
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "actuator", epilog="Example: steelyard actuator raw.parquet --runs logs.parquet --holdout kp=400 -o servo",
    uses_project=False,
)  # fmt: skip
@opt.with_options(ActuatorOptions)
def actuator(o: ActuatorOptions) -> None:
    """Identify a drive (servo, quasi-direct drive) from its own goals and positions, without a torque sensor."""
    o.out.deliver(lambda: _run(o))


def _run(o: ActuatorOptions) -> ActuatorIdentification:
    from steelyard.actuators import identify_actuator

    if o.into and not o.joint:
        raise SteelyardError("--into also needs --joint, the joint of that file that the drive moves.")
    runs = _read(o)
    fitted, judges = _divided(runs, o.holdout)
    result = identify_actuator(
        fitted, o.kind, o.friction, holdout=judges, leave_out=o.leave_out,
        effects=None if not o.effects else tuple(e for e in opt.words(o.effects) if e != "none"),
        given={key: _number(f"--given {key}", x) for key, x in _pairs("--given", o.given).items()},
        name=o.name, seed=o.seed,
    )  # fmt: skip
    if not (o.simulators or o.into):
        return result
    return result.for_simulators(joint=o.joint or "joint", robot=o.into or None, step=o.physics_step)


def _read(o: ActuatorOptions) -> list[CommandLog]:
    from steelyard.actuators import read_command_logs

    load = _load(o)
    settings: dict[str, Any] = {
        "mass": o.mass, "length": o.length, "kp": o.kp, "kd": o.kd, "volts": o.volts, "duty_gain": o.duty_gain,
        "arm_mass": o.arm_mass or None, "rest_angle": o.rest_angle or None,
    }  # fmt: skip
    out: list[CommandLog] = []
    for path in o.logs:
        out += read_command_logs(
            path, joint=o.joint or None, load=load, settings=o.runs or None,
            units=_pairs("--units", o.units) or None, columns=_pairs("--columns", o.columns) or None, **settings,
        )  # fmt: skip
    return out


def _load(o: ActuatorOptions) -> Load | None:
    from steelyard.actuators import Load

    if o.robot:
        from steelyard.robot import load_robot

        if not o.joint:
            raise SteelyardError("--robot also needs --joint, the joint that the drive moves.")
        return Load.of_joint(load_robot(o.robot), o.joint)
    if o.inertia is not None:
        return Load(o.inertia, o.gravity_torque, o.rest_angle)
    if o.mass is not None and o.length is not None:
        return Load.pendulum(o.mass, o.length, o.arm_mass, o.rest_angle)
    return None


def _divided(runs: Sequence[CommandLog], holdout: str) -> tuple[list[CommandLog], list[CommandLog]]:
    if not holdout:
        return list(runs), []
    key, _, text = holdout.partition("=")
    wanted = opt.words(text)
    if not wanted:
        raise SteelyardError(f"--holdout {holdout} must be NAME=VALUE,…, such as kp=400.")
    judges = [run for run in runs if _matches(run.label(key), wanted)]
    if not judges:
        known = ", ".join(dict.fromkeys(str(run.label(key)) for run in runs))
        raise SteelyardError(f"--holdout {holdout}: no run has this {key}; known: {known}.")
    fitted = [run for run in runs if run not in judges]
    if not fitted:
        raise SteelyardError(f"--holdout {holdout} is true for all runs, and none is left for the fit.")
    return fitted, judges


def _matches(value: Any, wanted: Sequence[str]) -> bool:
    if isinstance(value, float):
        return any(_as_number(w) == value for w in wanted)
    return str(value) in wanted


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _number(where: str, text: str) -> float:
    value = _as_number(text)
    if value is None:
        raise SteelyardError(f"{where}: '{text}' is not a number.")
    return value


def _pairs(option: str, values: Sequence[str] | None) -> dict[str, str]:
    out = {}
    for text in values or ():
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SteelyardError(f"{option} {text} must be NAME=VALUE.")
        out[key] = value
    return out
