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
from steelyard.ground.display import DisplayMixin
from steelyard.identification.identify_options import IdentifyOptions

if TYPE_CHECKING:
    from steelyard.gravity import GravityModel
    from steelyard.identification.identification_run import IdentificationRun


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


def _run(o: IdentifyCommand) -> IdentificationRun | GravityModel:
    from steelyard.signals.held_poses import HeldPosesError

    try:
        return _model(o)
    except HeldPosesError:
        from steelyard.gravity import identify_gravity

        warnings.warn(
            "The rows are held poses, not samples of a motion: this identifies gravity alone, as `steelyard gravity`.",
            stacklevel=2,
        )
        robot = o.robot_options.robot(o.robot, torque_used=opt.words(o.torque_used) or None)
        return identify_gravity(robot, list(o.logs), list(o.validate or ()), mapping=o.mapping or None)


def _model(o: IdentifyCommand) -> IdentificationRun:
    from steelyard.ground.arrays import one_heap
    from steelyard.identification.identification_run import IdentificationRun
    from steelyard.identification.identify_files import identify_files

    one_heap()
    robot = o.robot_options.robot(o.robot, torque_used=opt.words(o.torque_used) or None)
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
