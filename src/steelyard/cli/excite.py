"""`steelyard excite`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.completions import one_of, some_of
from steelyard.cli.deliver import deliver, exit_if_stopped, search_progress
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.excitation.motion_design import MotionDesign
    from steelyard.excitation.play_files import Play
    from steelyard.excitation.search import SearchSettings
    from steelyard.excitation.static_poses import Poses
    from steelyard.robot.robot import Robot


def _limit(quantity: str) -> Any:
    return typer.Option(metavar="X[,…]", help=f"{quantity}; one number or one per joint; none: no limit.")


@dataclass(frozen=True)
class ExciteOptions:
    """Options of `steelyard excite`."""

    robot: opt.RobotSource
    output: opt.Output = ""
    q: Annotated[
        str,
        typer.Option(metavar="X[,…]", help="Positions ± X, one or one per joint, or low:high pairs; rad, m."),
        opt.FromProject("limits.q"),
    ] = ""
    dq: Annotated[str, _limit("Velocities, rad/s (m/s)"), opt.FromProject("limits.dq")] = ""
    ddq: Annotated[
        str, _limit("Accelerations, rad/s² (m/s²); default: three times the velocities"), opt.FromProject("limits.ddq")
    ] = ""
    jerk: Annotated[str, _limit("Jerks, rad/s³ (m/s³)"), opt.FromProject("limits.jerk")] = ""
    tau: Annotated[str, _limit("Torques of the nominal model, N m (N)"), opt.FromProject("limits.tau")] = ""
    power: Annotated[str, _limit("Powers, W"), opt.FromProject("limits.power")] = ""
    torque_margin: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the torque limits to leave unused.")
    ] = 0.0
    duration: Annotated[float, typer.Option(metavar="S", help="Duration of the motion, s.")] = 10.0
    rate: Annotated[float, typer.Option(metavar="HZ", help="Sampling rate of the motion, Hz.")] = 100.0
    harmonics: Annotated[
        int, typer.Option(metavar="N", help="Harmonics of a Fourier series, or spans or knots of other families.")
    ] = 5
    family: Annotated[
        str,
        typer.Option(
            metavar="F",
            help="Trajectories: {families:or}; or by joint: q1=quintic,q3=bspline.",
            autocompletion=one_of("families"),
        ),
    ] = "fourier"
    scheme: Annotated[
        str, typer.Option(metavar="S", help="Rows of the regressor: dynamic, momentum or energy (integrals).")
    ] = "dynamic"
    window: Annotated[float | None, typer.Option(metavar="S", help="Integration time of momentum and energy, s.")] = (
        None
    )
    poses: Annotated[
        int, typer.Option(metavar="N", help="Instead of a motion, design N static postures, which identify gravity.")
    ] = 0
    criterion: Annotated[
        str, typer.Option(metavar="C", help="Criterion: {criteria:or}.", autocompletion=one_of("criteria"))
    ] = "cond"
    scaling: Annotated[str, typer.Option(metavar="S", help="Scaling of the columns: natural, unit or orthonormal.")] = (
        "natural"
    )
    weights: Annotated[
        str, typer.Option(metavar="W", help="Weights of the rows: torque, torque-inverse, or 1/σ per joint.")
    ] = ""
    term_names: Annotated[
        str,
        typer.Option(
            "--terms",
            metavar="T,…",
            help="Joint terms in addition to the links; 'default': those of identify.",
            autocompletion=some_of("terms"),
        ),
        opt.FromProject("terms"),
    ] = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    moving: Annotated[
        str, typer.Option(metavar="A,B,…", help="Joints that move in this motion; the others stand still.")
    ] = ""
    equations: Annotated[str, typer.Option(metavar="A,B,…", help="Joints whose torque rows are used.")] = ""
    parameters: Annotated[str, typer.Option(metavar="P,…", help="Design for these base parameters only.")] = ""
    wanted: Annotated[
        str, typer.Option(metavar="P,…", help="Optimise for these; the others are estimated as well.")
    ] = ""
    posture: Annotated[str, typer.Option(metavar="Q,…", help="Centre of the motion, rad (m).")] = ""
    box: Annotated[str, typer.Option(metavar="X0,X1,Y0,Y1,Z0,Z1", help="Box that the frame must not leave, m.")] = ""
    frame: Annotated[str, typer.Option(metavar="LINK", help="Frame for --box; default: last link.")] = ""
    floor: Annotated[float | None, typer.Option(metavar="Z", help="Lowest height of any link's origin, m.")] = None
    collision: Annotated[
        bool | None,
        typer.Option("--collision/--no-collision", help="Avoid collisions of bodies; default: if the file has bodies."),
    ] = None
    clearance: Annotated[float, typer.Option(metavar="M", help="Smallest distance between bodies, m.")] = 0.02
    srdf: Annotated[str, typer.Option(metavar="FILE", help="MoveIt's file with pairs of bodies to ignore.")] = ""
    packages: Annotated[
        str, typer.Option(metavar="DIR,…", help="Folders for package:// meshes."), opt.FromProject("packages")
    ] = ""
    bandwidth: Annotated[float | None, typer.Option(metavar="HZ", help="Highest frequency of a harmonic, Hz.")] = None
    optimiser: Annotated[
        str, typer.Option(metavar="O", help="Optimiser: {optimisers:or}.", autocompletion=one_of("optimisers"))
    ] = "gradient"
    via_points: Annotated[
        int, typer.Option(metavar="K", help="Optimise K via-points (ga, cma), in --box or in joint space.")
    ] = 0
    generations: Annotated[int, typer.Option(metavar="N", help="Generations of ga and cma.")] = 100
    population: Annotated[int, typer.Option(metavar="N", help="Population of ga and cma.")] = 150
    patience: Annotated[
        int | None, typer.Option(metavar="N", help="Stop ga and cma after N generations without improvement.")
    ] = None
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
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motion.")] = 0
    time: Annotated[float | None, typer.Option(metavar="S", help="Time limit of the search, s.")] = None
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
_LIMITS = ("q", "dq", "ddq", "jerk", "tau", "power")
# Options with comma-separated words, and the names of these arguments in `excite`.
_LISTS = {"term_names": "terms", "moving": "joints", "equations": "equations", "parameters": "parameters",
          "wanted": "wanted"}  # fmt: skip
# Options that are arguments of `excite` with the same name.
_PASSED_ON = (
    "torque_margin", "duration", "rate", "harmonics", "scheme", "window", "criterion", "scaling", "frame", "floor",
    "collision", "clearance", "optimiser", "via_points", "generations", "population", "patience", "seed",
)  # fmt: skip
# Options not stored with the result: output, time limit, and data that the robot contains.
_NOT_STORED = ("robot", "output", "robot_options", "time", "checkpoint", "targets", "motion", "overwrite", "as_json",
               *_LIMITS)  # fmt: skip


@command(
    "excite",
    epilog="Example: steelyard excite arm.urdf --dq 1.5 --box 0.2,0.9,-0.5,0.5,0.1,1.2 --floor 0.05 -o motion",
)
@opt.with_options(ExciteOptions)
def excite(o: ExciteOptions) -> None:
    """Design the most informative motion for a robot within its limits, which hold between samples too."""
    with ExitStack() as stack:  # also while writing, so that Ctrl-C does not lose the motion
        deliver(lambda: _design(o, stack), o.output, o.overwrite, o.as_json)
    exit_if_stopped()


def _families(text: str) -> str | dict[str, str]:
    """Parse one family for all joints, or families by joint."""
    if "=" not in text:
        return text
    pairs = [word.partition("=") for word in opt.words(text)]
    if any(not joint or not kind for joint, _, kind in pairs):
        raise SteelyardError(f"--family is '{text}'; write one family, or comma-separated JOINT=FAMILY pairs.")
    return {joint: kind for joint, _, kind in pairs}


def _search(starts: int | None, gpu: bool) -> SearchSettings | None:
    """Settings of the search; None: the default."""
    if starts is None and not gpu:
        return None
    from steelyard.excitation.search import SearchSettings

    return SearchSettings(starts=_GPU_STARTS if starts is None else starts, gpu=gpu)


def _design(o: ExciteOptions, stack: ExitStack) -> MotionDesign | Poses | Play:
    if o.poses and (o.motion or o.targets != "csv" or o.gpu or o.starts):
        raise SteelyardError(
            "--poses designs static postures; it cannot be combined with --for, --motion, --starts or --gpu."
        )
    if o.motion:
        return _play(o)
    from steelyard.excitation.motion_design import design_motions
    from steelyard.parameters.terms import identification_terms

    robot = o.robot_options.robot(o.robot)
    lists = {name: opt.words(getattr(o, option)) for option, name in _LISTS.items()}
    limits = {name: getattr(o, name) for name in _LIMITS}
    names = None if lists["terms"] == ["default"] else lists["terms"]
    typed = {_LISTS.get(name, name): value for name, value in vars(o).items() if name not in _NOT_STORED}
    settings = {"source": o.robot, "limits": limits, **typed, **lists, "given": o.given or []}
    arguments: dict[str, Any] = {
        "given": opt.logs_from(o.given, robot, o.mapping),
        "noise": opt.per_joint("--noise", o.noise) if o.noise else None,
        "terms": identification_terms(robot, names) if lists["terms"] else None,
        "limits": {name: opt.per_joint(f"--{name}", text) for name, text in limits.items() if text},
        "posture": opt.numbers("--posture", o.posture, robot.dof) if o.posture else None,
        "weights": o.weights if o.weights.startswith("torque") else opt.per_joint("--weights", o.weights or "none"),
        "box": opt.numbers("--box", o.box, 6) if o.box else None,
        "bandwidth_hz": o.bandwidth,
        "packages": opt.words(o.packages),
        "srdf": o.srdf or None,
        "family": _families(o.family),
        "checkpoint": o.checkpoint or None,
        "search": _search(o.starts, o.gpu),
        **{name: lists[name] or None for name in ("joints", "equations", "parameters", "wanted")},
        **{name: getattr(o, name) for name in ("motions", *_PASSED_ON)},
    }
    if o.poses:
        return _poses(robot, o.poses, arguments)
    progress = stack.enter_context(search_progress("the best motion", o.time))
    return design_motions(robot, settings=settings, targets=opt.words(o.targets), progress=progress, **arguments)


def _play(o: ExciteOptions) -> Play:
    from steelyard.excitation.motion_design import read_design
    from steelyard.excitation.play_files import Play

    robot = o.robot_options.robot(o.robot)
    run = read_design(o.motion, robot)
    return Play(robot, run.trajectories, opt.words(o.targets), o.rate, run.limits.tau)


def _poses(robot: Robot, count: int, arguments: dict[str, Any]) -> Poses:
    from steelyard.excitation.static_poses import static_poses

    shared = (
        "terms", "limits", "torque_margin", "box", "floor", "frame", "collision", "clearance", "packages", "srdf",
        "seed",
    )  # fmt: skip
    return static_poses(robot, count, **{name: arguments[name] for name in shared})
