"""`steelyard calibrate`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.ground.outcome import Outcome


@dataclass(frozen=True)
class CalibrateOptions:
    """Options of `steelyard calibrate`."""

    robot: opt.RobotSource
    poses: Annotated[
        str,
        typer.Argument(metavar="POSES", help="Table of held poses: joint positions and readings, one row per pose."),
    ] = ""
    design: Annotated[
        int, typer.Option(metavar="N", help="Instead of calibrating, design N poses that determine the geometry best.")
    ] = 0
    q: Annotated[
        str,
        typer.Option(metavar="X[,…]", help="With --design: positions ± X, one or one per joint, or low:high pairs."),
        opt.FromProject("limits.q"),
    ] = ""
    box: Annotated[
        str, typer.Option(metavar="X0,X1,Y0,Y1,Z0,Z1", help="With --design: box that the tool must not leave, m.")
    ] = ""
    floor: Annotated[
        float | None, typer.Option(metavar="Z", help="With --design: lowest height of any link's origin, m.")
    ] = None
    sensor: Annotated[
        str, typer.Option(metavar="X,Y,Z", help="With --design: place of the sensor, which must see the tool, m.")
    ] = ""
    packages: Annotated[
        str, typer.Option(metavar="DIR,…", help="Folders for package:// meshes."), opt.FromProject("packages")
    ] = ""
    frame: Annotated[str, typer.Option(metavar="FRAME", help="Frame that carries the tool; default: last link.")] = ""
    kind: Annotated[
        str, typer.Option(metavar="K", help="Kind of readings: {measurements:or}; default: by the columns.")
    ] = ""
    points: Annotated[str, typer.Option(metavar="P,…", help="Prefixes of the columns to use, such as p1,p2.")] = ""
    only: Annotated[
        str, typer.Option(metavar="C,…", help="Use only rows in which these columns are true, or COLUMN=VALUE.")
    ] = ""
    effects: Annotated[
        str, typer.Option(metavar="E,…", help="Effects of the model: {effects:,}; default: chosen by left-out poses.")
    ] = ""
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the poses to leave out of everything and to judge by.")
    ] = 0.0
    sigma: Annotated[
        float | None,
        typer.Option(metavar="M", help="Standard deviation of the sensor, m; default: a column sigma_m, or unknown."),
    ] = None
    torques: Annotated[
        str,
        typer.Option(
            metavar="LOG",
            help="Table of held poses with torques (with --map: a log): gravity for compliance and for the report.",
        ),
    ] = ""
    mapping: opt.MapFile = ""
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same division.")] = 0
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("calibrate", epilog="Example: steelyard calibrate arm.urdf poses.csv --holdout 0.3 -o calibrated")
@opt.with_options(CalibrateOptions)
def calibrate(o: CalibrateOptions) -> None:
    """Calibrate a robot's geometry from held poses that a tracker, a camera or a probe measured."""
    o.out.deliver(lambda: _run(o))


def _run(o: CalibrateOptions) -> Outcome:
    own = o.robot_options if o.robot_options.snap is not None else replace(o.robot_options, snap=0.0)
    if o.design:
        from steelyard.calibration import design_poses

        return design_poses(
            own.robot(o.robot), o.design, frame=o.frame, kind=o.kind or "points", seed=o.seed,
            limits={"q": opt.per_joint("--q", o.q)} if o.q else None, floor=o.floor,
            effects=opt.words(o.effects) or ("offsets", "axes"), packages=opt.words(o.packages),
            box=opt.numbers("--box", o.box, 6) if o.box else None,
            sensor=opt.numbers("--sensor", o.sensor, 3) if o.sensor else None,
        )  # fmt: skip
    if not o.poses:
        raise SteelyardError("There is no table of poses; give one, or --design poses first.")
    from steelyard.calibration import calibrate as run

    robot = own.robot(o.robot)
    weights = None
    if o.torques:
        from steelyard.calibration import read_torques
        from steelyard.gravity import identify_gravity

        # With a mapping it is a log, which may be that of a motion with stops; else a table of poses.
        held = o.torques if o.mapping else read_torques(o.torques, robot)
        weights = identify_gravity(robot, held, mapping=o.mapping or None, rows=None if o.mapping else True)
    return run(
        robot, o.poses, frame=o.frame, kind=o.kind, points=opt.words(o.points), only=opt.words(o.only),
        effects=opt.words(o.effects) or None, holdout=o.holdout, sigma=o.sigma,
        gravity=weights, seed=o.seed,
    )  # fmt: skip
