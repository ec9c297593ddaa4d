"""`steelyard identify`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError
from steelyard.ground.display import DisplayMixin
from steelyard.identification import IdentifyOptions

if TYPE_CHECKING:
    from steelyard.floating import FloatingIdentification
    from steelyard.gravity import GravityModel
    from steelyard.identification import IdentificationRun
    from steelyard.robot import Robot

# Options of a fit that also apply to floating bases, contacts and closed loops, and those for bodies without a robot.
_FLOATING_OPTIONS = {"terms", "prior", "cutoff_hz", "holdout"}
_BODY_OPTIONS = {"holdout", "holdout_blocks"}


@dataclass(frozen=True, kw_only=True)
class IdentifyCommand:
    """Options of `steelyard identify`."""

    robot: opt.RobotSource
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG", help="Logs to identify from."), opt.FromProject("logs.identify")
    ]
    validate: opt.Validate = None
    output: opt.Output = ""
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    floating: opt.Floating = False
    loops: opt.Loops = ""
    torque_used: Annotated[
        str, typer.Option(metavar="A,B,…", help="Joints whose measured torque is used; the others still move.")
    ] = ""
    fit: opt.Typed[IdentifyOptions]
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command(
    "identify",
    epilog="Example: steelyard identify arm.urdf a.parquet --validate b.parquet --map columns.toml -o run\n\n"
    "Exit code: 0 model written, 1 model written but not to be used (see the verdict), 2 error.",
)
@opt.with_options(IdentifyCommand)
def identify(o: IdentifyCommand) -> None:
    """Identify a robot's parameters from logs, validate them, and write a run folder."""
    delivered = deliver(lambda: _run(o), o.output, o.overwrite, o.as_json)
    # The run folder is written, so a script can look at it; the next command of the script must not run.
    judged = delivered if isinstance(delivered, DisplayMixin) else delivered.identification
    if judged.headline().kind == "bad":
        raise typer.Exit(1)


def _run(o: IdentifyCommand) -> IdentificationRun | GravityModel | FloatingIdentification:
    from steelyard.floating import identify_bodies, is_body_table, is_floating
    from steelyard.signals.held_poses import HeldPosesError

    if is_body_table(o.robot):
        if o.mapping or o.torque_used:
            raise SteelyardError(f"{o.robot} is a table of bodies; remove --map and --torque-used.")
        _refuse_others(o, _BODY_OPTIONS, "a table of bodies")
        blocks = o.fit["holdout_blocks"]
        return identify_bodies(o.robot, o.logs, o.validate or (), holdout=o.fit["holdout"], holdout_blocks=blocks)
    used = opt.words(o.torque_used) or None
    robot = o.robot_options.robot(o.robot, True, torque_used=used, floating=o.floating, loops=o.loops or True)
    if is_floating(robot, o.mapping):
        return _floating(o, robot)
    try:
        return _arm(o, robot)
    except HeldPosesError:
        from steelyard.gravity import identify_gravity

        warnings.warn(
            "The rows are held poses, not samples of a motion: this identifies gravity alone, as `steelyard gravity`.",
            stacklevel=2,
        )
        return identify_gravity(robot, list(o.logs), list(o.validate or ()), mapping=o.mapping or None)


def _refuse_others(o: IdentifyCommand, allowed: set[str], what: str) -> None:
    defaults = IdentifyOptions()
    changed = sorted(n for n, v in o.fit.stated().items() if n not in allowed and v != getattr(defaults, n))
    if changed:
        raise SteelyardError(f"'{changed[0]}' is not available for {what} yet; remove this option.")


def _floating(o: IdentifyCommand, robot: Robot) -> FloatingIdentification:
    """Identify a robot with a floating base, passive joints, contacts or closed loops."""
    from steelyard.floating import identify_floating

    _refuse_others(o, _FLOATING_OPTIONS, "floating bases, contacts and closed loops")
    stated = {n: v for n, v in o.fit.stated().items() if n in _FLOATING_OPTIONS}
    return identify_floating(
        robot, o.logs, o.validate or (), mapping=o.mapping or None, source=opt.description(o.robot), **stated
    )


def _arm(o: IdentifyCommand, robot: Robot) -> IdentificationRun:
    from steelyard.ground.arrays import one_heap
    from steelyard.identification import IdentificationRun, identify_files

    one_heap()
    result = identify_files(
        robot,
        [Path(p) for p in o.logs],
        [Path(p) for p in o.validate or ()],
        o.fit.options(),
        mapping=o.mapping or None,
    )
    friction = [str(Path(o.fit["friction"]) / "result.json")] if o.fit["friction"] else []
    inputs = [Path(p) for p in [o.robot, *o.logs, *(o.validate or ()), o.mapping, o.fit["controller"], *friction] if p]
    return IdentificationRun(result, inputs, opt.description(o.robot))
