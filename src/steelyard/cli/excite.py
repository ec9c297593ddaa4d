"""`steelyard excite`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver, exit_if_stopped, search_progress
from steelyard.errors import SteelyardError
from steelyard.excitation.excite_options import ExciteOptions
from steelyard.robot.limit_options import LimitOptions

if TYPE_CHECKING:
    from steelyard.calibration import CalibrationPoses
    from steelyard.excitation.motion_design import MotionDesign
    from steelyard.excitation.play_files import Play
    from steelyard.excitation.search import SearchSettings
    from steelyard.excitation.static_poses import Poses
    from steelyard.floating.stance_motion import StanceMotion
    from steelyard.parameters.terms import Terms
    from steelyard.robot.robot import Robot


@dataclass(frozen=True, kw_only=True)
class ExciteCommand:
    """Options of `steelyard excite`."""

    robot: opt.RobotSource
    output: opt.Output = ""
    limits: opt.Typed[LimitOptions]
    design: opt.Typed[ExciteOptions]
    poses: Annotated[
        int, typer.Option(metavar="N", help="Instead of a motion, design N static postures, which identify gravity.")
    ] = 0
    calibrate: Annotated[
        int, typer.Option(metavar="N", help="Instead of a motion, design N poses for `steelyard calibrate`.")
    ] = 0
    sensor: Annotated[
        str, typer.Option(metavar="X,Y,Z", help="With --calibrate: place of the sensor, which must see the tool, m.")
    ] = ""
    feet: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Floating base that stands on these frames (A: a point, A:flat): the feet stay, the base sways; "
            "--posture: joints of the legs when it stands.",
        ),
    ] = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    given: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="Existing log that the motion complements. May be repeated.")
    ] = None
    mapping: opt.MapFile = ""
    motions: Annotated[int, typer.Option(metavar="N", help="Number of motions that complement each other.")] = 1
    noise: Annotated[
        str, typer.Option(metavar="X[,…]", help="Standard deviation of the torque noise for expected errors, N m (N).")
    ] = ""
    starts: Annotated[
        int | None, typer.Option(metavar="N", help="Random starting motions of the search; default: 6.")
    ] = None
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Optimise all starts at once on an NVIDIA GPU; default: 1000 starts.")
    ] = False
    search_time: Annotated[float | None, typer.Option(metavar="S", help="Time limit of the search, s.")] = None
    checkpoint: Annotated[
        str, typer.Option(metavar="FILE", help="Save the state of the search there; continue from an existing file.")
    ] = ""
    targets: Annotated[
        str, typer.Option("--for", metavar="C,…", help="Controllers to write the motion for: {motion_targets:,}.")
    ] = "csv"
    motion: Annotated[
        str, typer.Option(metavar="RUN", help="Instead of a search: a run of excite to write --for controllers.")
    ] = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


# Default number of starts on a GPU; it takes one or two seconds for a six-axis arm.
_GPU_STARTS = 1000
# Options with comma-separated words, and their names in the stored settings.
_LISTS = {"terms": "terms", "moving": "joints", "equations": "equations", "parameters": "parameters",
          "wanted": "wanted"}  # fmt: skip
# Options of the command that are stored with the result, beside those of the design.
_STORED = ("poses", "calibrate", "sensor", "mapping", "motions", "noise", "starts", "gpu")


@command(
    "excite",
    epilog="Example: steelyard excite arm.urdf --dq 1.5 --box 0.2,0.9,-0.5,0.5,0.1,1.2 --floor 0.05 -o motion",
)
@opt.with_options(ExciteCommand)
def excite(o: ExciteCommand) -> None:
    """Design the most informative motion for a robot within its limits, which hold between samples too."""
    with ExitStack() as stack:  # also while writing, so that Ctrl-C does not lose the motion
        deliver(lambda: _design(o, stack), o.output, o.overwrite, o.as_json)
    exit_if_stopped()


def _search(starts: int | None, gpu: bool) -> SearchSettings | None:
    """Settings of the search; None: the default."""
    if starts is None and not gpu:
        return None
    from steelyard.excitation.search import SearchSettings

    return SearchSettings(starts=_GPU_STARTS if starts is None else starts, gpu=gpu)


def _design(o: ExciteCommand, stack: ExitStack) -> MotionDesign | Poses | Play | CalibrationPoses | StanceMotion:
    if o.poses and (o.motion or o.targets != "csv" or o.gpu or o.starts):
        raise SteelyardError(
            "--poses designs static postures; it cannot be combined with --for, --motion, --starts or --gpu."
        )
    if o.sensor and not o.calibrate:
        raise SteelyardError("--sensor belongs to --calibrate N, which designs poses that the sensor must see.")
    if o.calibrate and (o.poses or o.motion or o.given or o.targets != "csv" or o.gpu or o.starts or o.motions > 1):
        raise SteelyardError(
            "--calibrate designs poses; it cannot be combined with --poses, --motion, --given, --for, --gpu, --starts "
            "or --motions."
        )
    if o.feet:
        return _stance(o)
    if o.motion:
        return _play(o)
    robot = o.robot_options.robot(o.robot)
    if o.calibrate:
        return _calibration_poses(o, robot)
    given = opt.logs_from(o.given, robot, o.mapping)
    noise = opt.per_joint("--noise", o.noise) if o.noise else None
    options = o.design.options(
        terms=_terms(robot, o.design["terms"]),
        limits=o.limits.stated(),
        posture=opt.numbers("--posture", o.design["posture"], robot.dof) if o.design["posture"] else None,
        search=_search(o.starts, o.gpu),
    )
    if o.poses:
        from steelyard.excitation.static_poses import static_poses

        return static_poses(robot, o.poses, options)
    from steelyard.excitation.motion_design import design_motions

    progress = stack.enter_context(search_progress("the best motion", o.search_time))
    return design_motions(
        robot, options, motions=o.motions, given=given, noise=noise, settings=_settings(o),
        targets=opt.words(o.targets), progress=progress, checkpoint=o.checkpoint or None,
    )  # fmt: skip


def _stance(o: ExciteCommand) -> StanceMotion:
    """A sway on fixed feet; the limits are those of the description."""
    from steelyard.floating import design_stance_motion

    if o.poses or o.calibrate or o.motion or o.given or o.targets != "csv" or o.gpu or o.starts or o.motions > 1:
        raise SteelyardError(
            "--feet designs a sway; it cannot be combined with --poses, --calibrate, --motion, --given, --for, --gpu, "
            "--starts or --motions."
        )
    robot = o.robot_options.robot(o.robot, free=True, floating=True)
    d = o.design.options()
    count = robot.dof - 6
    posture = opt.numbers("--posture", o.design["posture"], count) if o.design["posture"] else [0.0] * count
    return design_stance_motion(robot, opt.words(o.feet), posture, duration=d.duration, rate=d.rate, seed=d.seed)


def _calibration_poses(o: ExciteCommand, robot: Robot) -> CalibrationPoses:
    """Poses that determine the geometry; limits and space are those of a motion."""
    from steelyard.calibration import design_poses

    d = o.design.options()
    return design_poses(
        robot, o.calibrate, frame=d.frame, limits=o.limits.stated(), box=d.box, floor=d.floor, collision=d.collision,
        clearance=d.clearance, packages=d.packages, srdf=d.srdf, seed=d.seed,
        sensor=opt.numbers("--sensor", o.sensor, 3) if o.sensor else None,
    )  # fmt: skip


def _terms(robot: Robot, text: str) -> Terms | None:
    from steelyard.parameters.terms import identification_terms

    names = opt.words(text)
    return identification_terms(robot, None if names == ["default"] else names) if names else None


def _settings(o: ExciteCommand) -> dict[str, Any]:
    """Return the settings to store with the result, as they were typed."""
    lists = {name: opt.words(o.design[option]) for option, name in _LISTS.items()}
    typed = {name: value for name, value in o.design.values.items() if name not in _LISTS}
    others = {name: getattr(o, name) for name in _STORED}
    return {"source": o.robot, "limits": dict(o.limits.values), **typed, **others, **lists, "given": o.given or []}


def _play(o: ExciteCommand) -> Play:
    from steelyard.excitation.motion_design import read_design
    from steelyard.excitation.play_files import Play

    robot = o.robot_options.robot(o.robot)
    run = read_design(o.motion, robot)
    return Play(robot, run.trajectories, opt.words(o.targets), o.design["rate"], run.limits.tau)
