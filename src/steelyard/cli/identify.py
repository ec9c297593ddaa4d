"""`steelyard identify`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.completions import one_of
from steelyard.cli.deliver import deliver
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.ground.outcome import Outcome
    from steelyard.identification.run import IdentificationRun
    from steelyard.robot.robot import Robot


# Options that are arguments of `identify_files` with the same name.
_PASSED_ON = (
    "scheme", "estimator", "physical", "prior", "velocity", "mask", "delay", "torque_between", "period", "holdout",
    "holdout_blocks", "significant", "plain", "tune",
)  # fmt: skip
# Options that also apply to floating bases and contacts.
_FLOATING_OPTIONS = {
    "validate", "output", "mapping", "robot_options", "floating", "torque_used", "term_names", "prior", "cutoff",
    "holdout", "overwrite", "as_json",
}  # fmt: skip


@dataclass(frozen=True)
class IdentifyOptions:
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
    torque_used: Annotated[
        str, typer.Option(metavar="A,B,…", help="Joints whose measured torque is used; the others still move.")
    ] = ""
    term_names: opt.TermNames = ""
    scheme: Annotated[
        str,
        typer.Option(
            metavar="S",
            help="Scheme: {schemes:or}; options as name:key=value.",
            autocompletion=one_of("schemes"),
        ),
    ] = "dynamic"
    estimator: Annotated[str, typer.Option(metavar="E", help="{estimators}", autocompletion=one_of("estimators"))] = (
        "wls"
    )
    physical: opt.Physical = True
    prior: opt.PriorOption = "nominal"
    cutoff: opt.Cutoff = None
    score_cutoff: Annotated[
        float | None, typer.Option(metavar="HZ", help="Low-pass cut-off of the scores; default: that of the fit.")
    ] = None
    velocity: opt.Velocity = "auto"
    mask: Annotated[float, typer.Option(metavar="SPEED", help="Ignore rows slower than this, rad/s or m/s.")] = 0.0
    delay: opt.OpenDelay = None
    torque_between: opt.BetweenSamples = "auto"
    period: Annotated[
        float | None, typer.Option(metavar="S", help="Average a periodic motion over periods of S seconds.")
    ] = None
    holdout: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Last part of each log as hold-out, e.g. 0.3.")
    ] = None
    holdout_blocks: Annotated[
        str, typer.Option(metavar="S:K", help="Every K-th block of S seconds as hold-out, e.g. 0.5:3.")
    ] = ""
    significant: Annotated[
        bool, typer.Option("--significant", help="Remove insignificant parameters, and report the effect.")
    ] = False
    plain: Annotated[bool, typer.Option("--plain", help="Use the default terms without a search on LOG….")] = False
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Search for more terms than --terms on LOG…; without --terms this is the default."),
    ] = False
    friction: Annotated[
        str, typer.Option(metavar="RUN", help="Run of `steelyard friction`; its curves are subtracted from the torque.")
    ] = ""
    controller: opt.ControllerFile = ""
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command(
    "identify", epilog="Example: steelyard identify arm.urdf a.parquet --validate b.parquet --map columns.toml -o run"
)
@opt.with_options(IdentifyOptions)
def identify(o: IdentifyOptions) -> None:
    """Identify a robot's parameters from logs, validate them, and write a run folder."""
    deliver(lambda: _run(o), o.output, o.overwrite, o.as_json)


def _run(o: IdentifyOptions) -> Outcome:
    from steelyard.floating.bodies import is_body_table
    from steelyard.floating.setup import is_floating

    if is_body_table(o.robot):
        return _bodies(o)
    robot = o.robot_options.robot(o.robot, True, torque_used=opt.words(o.torque_used) or None, floating=o.floating)
    if is_floating(robot, o.mapping):
        return _floating(o, robot)
    return _arm(o, robot)


def _floating(o: IdentifyOptions, robot: Robot) -> Outcome:
    """Identify a robot with a floating base, passive joints or contacts."""
    from steelyard.floating import identify_floating

    changed = {f.name for f in fields(o) if f.default is not MISSING and getattr(o, f.name) != f.default}
    if refused := sorted(changed - _FLOATING_OPTIONS):
        option = refused[0].replace("_", "-").replace("term-names", "terms")
        raise SteelyardError(f"--{option} is not available for floating bases and contacts yet; remove it.")
    return identify_floating(
        robot, o.logs, o.validate or (), mapping=o.mapping or None, terms=opt.words(o.term_names) or None,
        prior=o.prior, cutoff_hz=o.cutoff, holdout=o.holdout, source=opt.description(o.robot),
    )  # fmt: skip


def _bodies(o: IdentifyOptions) -> Outcome:
    """Identify bodies without a robot; most options are about robots."""
    from steelyard.floating.bodies import identify_bodies

    for option in ("mapping", "torque_used", "term_names", "cutoff", "friction", "controller"):
        if getattr(o, option):
            raise SteelyardError(f"{o.robot} is a table of bodies; remove --{option.replace('_', '-')}.")
    return identify_bodies(o.robot, o.logs, o.validate or (), holdout=o.holdout, holdout_blocks=o.holdout_blocks)


def _arm(o: IdentifyOptions, robot: Robot) -> IdentificationRun:
    from steelyard.ground.arrays import one_heap
    from steelyard.identification.files import identify_files
    from steelyard.identification.run import IdentificationRun

    one_heap()
    result = identify_files(
        robot,
        [Path(p) for p in o.logs],
        [Path(p) for p in o.validate or ()],
        mapping=o.mapping or None,
        terms=opt.words(o.term_names) or None,
        known_friction=_curves(o.friction),
        controller=o.controller or None,
        cutoff_hz=o.cutoff,
        score_cutoff_hz=o.score_cutoff,
        **{name: getattr(o, name) for name in _PASSED_ON},
    )
    friction = [str(Path(o.friction) / "result.json")] if o.friction else []
    inputs = [Path(p) for p in [o.robot, *o.logs, *(o.validate or ()), o.mapping, o.controller, *friction] if p]
    return IdentificationRun(result, inputs, opt.description(o.robot))


def _curves(folder: str) -> Any:
    if not folder:
        return None
    from steelyard.friction.compensation import read_friction

    return read_friction(folder)
