"""`steelyard excite`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.completions import one_of, some_of
from steelyard.cli.deliver import deliver, told_if_stopped, watching
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.excitation.motion_design import MotionDesign
    from steelyard.excitation.play import Play
    from steelyard.excitation.poses import Poses
    from steelyard.excitation.search import SearchSettings
    from steelyard.robot.robot import Robot


def _limit(what: str) -> Any:
    return typer.Option(metavar="X[,…]", help=f"{what}; one number or one per joint, none to lift.")


@dataclass(frozen=True)
class ExciteOptions:
    """What may be typed."""

    robot: opt.RobotSource
    output: opt.Output = ""
    q: Annotated[
        str,
        typer.Option(metavar="X[,…]", help="Positions ± X, one per joint, or low:high pairs; rad, m."),
        opt.FromProject("limits.q"),
    ] = ""
    dq: Annotated[str, _limit("Velocities, rad/s (m/s)"), opt.FromProject("limits.dq")] = ""
    ddq: Annotated[
        str, _limit("Accelerations; default three times the velocities per s"), opt.FromProject("limits.ddq")
    ] = ""
    jerk: Annotated[str, _limit("Jerks"), opt.FromProject("limits.jerk")] = ""
    tau: Annotated[str, _limit("Torques, N m (N), of the nominal model"), opt.FromProject("limits.tau")] = ""
    power: Annotated[str, _limit("Powers, W"), opt.FromProject("limits.power")] = ""
    torque_margin: Annotated[float, typer.Option(metavar="SHARE", help="Part of the torque limits to keep free.")] = 0.0
    duration: Annotated[float, typer.Option(metavar="S", help="Length of the motion.")] = 10.0
    rate: Annotated[float, typer.Option(metavar="HZ", help="Samples of the motion per second.")] = 100.0
    harmonics: Annotated[int, typer.Option(metavar="N", help="Harmonics of a series (spans, knots).")] = 5
    family: Annotated[
        str,
        typer.Option(
            metavar="F", help="{families:or}; or by joint: q1=quintic,q3=bspline.", autocompletion=one_of("families")
        ),
    ] = "fourier"
    scheme: Annotated[
        str, typer.Option(metavar="S", help="Rows to design for: dynamic, momentum or energy (integrals).")
    ] = "dynamic"
    window: Annotated[
        float | None, typer.Option(metavar="S", help="Length of the integrals of momentum and energy.")
    ] = None
    poses: Annotated[
        int, typer.Option(metavar="N", help="Instead of a motion, N postures to stand in, which show gravity.")
    ] = 0
    criterion: Annotated[str, typer.Option(metavar="C", help="{criteria:or}.", autocompletion=one_of("criteria"))] = (
        "cond"
    )
    scaling: Annotated[str, typer.Option(metavar="S", help="natural, unit or orthonormal columns.")] = "natural"
    weights: Annotated[str, typer.Option(metavar="W", help="torque, torque-inverse, or 1/σ of each equation.")] = ""
    term_names: Annotated[
        str,
        typer.Option(
            "--terms",
            metavar="T,…",
            help="Joint terms beside the links; 'default': those of identify.",
            autocompletion=some_of("terms"),
        ),
        opt.FromProject("terms"),
    ] = ""
    described: opt.Described = opt.DESCRIBED
    moving: Annotated[
        str, typer.Option(metavar="A,B,…", help="Of these joints, those that move here; the others stand.")
    ] = ""
    equations: Annotated[str, typer.Option(metavar="A,B,…", help="The joints whose torque rows count.")] = ""
    parameters: Annotated[str, typer.Option(metavar="P,…", help="Design for these base parameters alone.")] = ""
    wanted: Annotated[str, typer.Option(metavar="P,…", help="These count; the others must be found too.")] = ""
    posture: Annotated[str, typer.Option(metavar="Q,…", help="A posture the motion shall be about, rad (m).")] = ""
    box: Annotated[str, typer.Option(metavar="X0,X1,Y0,Y1,Z0,Z1", help="A box that the frame stays in, m.")] = ""
    frame: Annotated[str, typer.Option(metavar="LINK", help="The frame that the box is for; default: last link.")] = ""
    floor: Annotated[float | None, typer.Option(metavar="Z", help="No link's origin comes below this height, m.")] = (
        None
    )
    collision: Annotated[
        bool | None,
        typer.Option("--collision/--no-collision", help="Bodies keep apart; default: where the file has any."),
    ] = None
    clearance: Annotated[float, typer.Option(metavar="M", help="How far bodies keep apart.")] = 0.02
    srdf: Annotated[str, typer.Option(metavar="FILE", help="MoveIt's file: pairs that it disables may collide.")] = ""
    packages: Annotated[
        str, typer.Option(metavar="DIR,…", help="Where package:// meshes are found."), opt.FromProject("packages")
    ] = ""
    bandwidth: Annotated[float | None, typer.Option(metavar="HZ", help="No harmonic above this frequency.")] = None
    optimiser: Annotated[
        str, typer.Option(metavar="O", help="{optimisers:or}.", autocompletion=one_of("optimisers"))
    ] = "gradient"
    via_points: Annotated[
        int, typer.Option(metavar="K", help="Breed programs of K via-points (ga, cma), in --box or in joint space.")
    ] = 0
    generations: Annotated[int, typer.Option(metavar="N", help="Of ga and cma.")] = 100
    population: Annotated[int, typer.Option(metavar="N", help="Of ga and cma.")] = 150
    patience: Annotated[
        int | None, typer.Option(metavar="N", help="Of ga and cma: end after N generations that brought nothing.")
    ] = None
    given: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log: design for what it leaves unknown. May be repeated.")
    ] = None
    mapping: opt.MapFile = ""
    motions: Annotated[int, typer.Option(metavar="N", help="Several motions that complement each other.")] = 1
    noise: Annotated[str, typer.Option(metavar="X[,…]", help="Torque noise for the expected errors, N m (N).")] = ""
    starts: Annotated[
        int | None, typer.Option(metavar="N", help="Random motions that the search improves; default: 6.")
    ] = None
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Improve all of them at once on an NVIDIA GPU; default: 1000 of them.")
    ] = False
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motion.")] = 0
    time: Annotated[float | None, typer.Option(metavar="S", help="Stop searching after so many seconds.")] = None
    checkpoint: Annotated[
        str, typer.Option(metavar="FILE", help="Write progress there; go on from it if it exists.")
    ] = ""
    targets: Annotated[
        str, typer.Option("--for", metavar="C,…", help="Controllers to write the motion for: {motion_targets:,}.")
    ] = "csv"
    motion: Annotated[
        str, typer.Option(metavar="RUN", help="Instead of a search: a run of excite, to be written --for controllers.")
    ] = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


# Starts on a GPU, which takes a second or two for a six-axis arm.
_ON_A_GPU = 1000
_LIMITS = ("q", "dq", "ddq", "jerk", "tau", "power")
# ExciteOptions that hold words between commas, and what `excite` calls them.
_LISTS = {"term_names": "terms", "moving": "joints", "equations": "equations", "parameters": "parameters",
          "wanted": "wanted"}  # fmt: skip
# ExciteOptions that are arguments of `excite` by the same name.
_PASSED_ON = (
    "torque_margin", "duration", "rate", "harmonics", "scheme", "window", "criterion", "scaling", "frame", "floor",
    "collision", "clearance", "optimiser", "via_points", "generations", "population", "patience", "seed",
)  # fmt: skip
# Not kept with the result: where it goes, how long the search may take, and what the robot itself tells.
_NOT_KEPT = ("robot", "output", "described", "time", "checkpoint", "targets", "motion", "overwrite", "as_json",
             *_LIMITS)  # fmt: skip


@command(
    "excite",
    epilog="Example: steelyard excite arm.urdf --dq 1.5 --box 0.2,0.9,-0.5,0.5,0.1,1.2 --floor 0.05 -o motion",
)
@opt.taking(ExciteOptions)
def excite(o: ExciteOptions) -> None:
    """Design the motion that shows a robot's parameters best, within limits that hold at every instant."""
    with ExitStack() as held:  # Ctrl-C while the motion is being written must not lose it
        deliver(lambda: _designed(o, held), o.output, o.overwrite, o.as_json)
    told_if_stopped()


def _families(text: str) -> str | dict[str, str]:
    """One family for all joints, or those that are named by joint."""
    if "=" not in text:
        return text
    pairs = [word.partition("=") for word in opt.words(text)]
    if any(not joint or not kind for joint, _, kind in pairs):
        raise SteelyardError(f"--family is '{text}'; write one family, or JOINT=FAMILY with commas between.")
    return {joint: kind for joint, _, kind in pairs}


def _search(starts: int | None, gpu: bool) -> SearchSettings | None:
    """How hard to look; None: as by default."""
    if starts is None and not gpu:
        return None
    from steelyard.excitation.search import SearchSettings

    return SearchSettings(starts=_ON_A_GPU if starts is None else starts, gpu=gpu)


def _designed(o: ExciteOptions, held: ExitStack) -> MotionDesign | Poses | Play:
    if o.poses and (o.motion or o.targets != "csv" or o.gpu or o.starts):
        raise SteelyardError(
            "Postures to stand in have no speeds; --poses does not go with --for, --motion, --starts or --gpu."
        )
    if o.motion:
        return _play(o)
    from steelyard.excitation.motion_design import design_motions
    from steelyard.parameters.terms import identification_terms

    robot = o.described.robot(o.robot)
    lists = {name: opt.words(getattr(o, option)) for option, name in _LISTS.items()}
    limits = {name: getattr(o, name) for name in _LIMITS}
    named = None if lists["terms"] == ["default"] else lists["terms"]
    typed = {_LISTS.get(name, name): value for name, value in vars(o).items() if name not in _NOT_KEPT}
    settings = {"source": o.robot, "limits": limits, **typed, **lists, "given": o.given or []}
    read: dict[str, Any] = {
        "given": opt.logs_from(o.given, robot, o.mapping),
        "noise": opt.per_joint("--noise", o.noise) if o.noise else None,
        "terms": identification_terms(robot, named) if lists["terms"] else None,
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
        return _poses(robot, o.poses, read)
    watch = held.enter_context(watching("the best motion", o.time))
    return design_motions(robot, settings=settings, targets=opt.words(o.targets), progress=watch, **read)


def _play(o: ExciteOptions) -> Play:
    from steelyard.excitation.motion_design import read_design
    from steelyard.excitation.play import Play

    robot = o.described.robot(o.robot)
    read = read_design(o.motion, robot)
    return Play(robot, read.trajectories, opt.words(o.targets), o.rate, read.limits.tau)


def _poses(robot: Robot, count: int, read: dict[str, Any]) -> Poses:
    from steelyard.excitation.poses import static_poses

    shared = (
        "terms",
        "limits",
        "torque_margin",
        "box",
        "floor",
        "frame",
        "collision",
        "clearance",
        "packages",
        "srdf",
        "seed",
    )
    return static_poses(robot, count, **{name: read[name] for name in shared})
