"""`steelyard compare`: schemes or estimators on the same data."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.completions import some_of
from steelyard.cli.deliver import print_not_saved, progress_bar, show
from steelyard.errors import SteelyardError
from steelyard.ground.folders import check_target

if TYPE_CHECKING:
    from steelyard.compare.comparison import Comparison
    from steelyard.compare.on_log import LogComparison
    from steelyard.compare.scheme_comparison import SchemeComparison
    from steelyard.robot.robot import Robot

_EPILOG = (
    "Examples: steelyard compare estimators ns16 --starts 25 -o estimators; "
    "steelyard compare estimators arm.urdf run.csv --estimators rows,ml,ekf -o estimators"
)


@dataclass(frozen=True)
class SchemesOptions:
    """Options of `steelyard compare schemes`."""

    robot: opt.RobotSource
    log: Annotated[str, typer.Argument(metavar="LOG", help="Log to identify from."), opt.FromProject("logs.identify")]
    validate: opt.Validate = None
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Without --validate: last part of the log as hold-out.")
    ] = 0.3
    only: Annotated[
        str,
        typer.Option(
            "--schemes",
            metavar="S,…",
            help="Schemes to run, e.g. dynamic,energy; default: all.",
            autocompletion=some_of("schemes"),
        ),
    ] = ""
    horizon: opt.Horizon = 0.5
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: opt.TermNames = ""
    physical: opt.Physical = True
    cutoff: opt.Cutoff = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "compare schemes", epilog="Example: steelyard compare schemes arm.urdf run.parquet --map columns.toml -o schemes"
)
@opt.with_options(SchemesOptions)
def schemes(o: SchemesOptions) -> None:
    """Identify with every scheme from one log: parameters, intervals, hold-out errors, time."""
    from steelyard.compare.scheme_comparison import compare_schemes
    from steelyard.regression.schemes import SCHEMES
    from steelyard.signals.between import as_torque_between
    from steelyard.signals.prepare import Preparation

    def run() -> SchemeComparison:
        robot = o.robot_options.robot(o.robot)
        first, *others = opt.logs_from([o.log, *(o.validate or ())], robot, o.mapping)
        return compare_schemes(
            robot,
            first,
            others,
            schemes=opt.words(o.only) or tuple(SCHEMES),
            holdout=o.holdout,
            horizon=o.horizon,
            terms=opt.words(o.term_names) or None,
            physical=o.physical,
            preparation=Preparation(
                cutoff_hz=o.cutoff, delay=o.delay, torque_between=as_torque_between(o.torque_between)
            ),
        )

    o.out.deliver(run)


# Options that are fields of `Protocol` with the same name.
_PASSED_ON = (
    "trajectories", "starts", "duration", "seed", "harmonics", "control_rate", "horizon", "limit",
)  # fmt: skip


@dataclass(frozen=True)
class EstimatorsOptions:
    """Options of `steelyard compare estimators`."""

    robot: opt.RobotSource
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="Log to identify from; without one, experiments are simulated."),
        opt.FromProject("logs.identify", unless=("noise", "trajectories", "starts", "controllers", "rates", "resume")),
    ] = ""
    only: Annotated[
        str,
        typer.Option(
            "--estimators",
            metavar="E,…",
            help="Names or groups ({groups}); -NAME excludes one.",
            autocompletion=some_of("estimators"),
        ),
    ] = "all"
    noise: Annotated[str, typer.Option(metavar="N,…", help="Noise levels: {noises}; or NAME=DEG:NM.")] = ""
    trajectories: Annotated[int, typer.Option(metavar="N", help="Number of motions.")] = 2
    starts: Annotated[int, typer.Option(metavar="N", help="Repetitions with other noise and initial estimate.")] = 5
    controllers: Annotated[str, typer.Option(metavar="C,…", help="Controllers: {controllers}.")] = "pd"
    rates: Annotated[str, typer.Option(metavar="HZ,…", help="Sampling rates, Hz.")] = "1000"
    cutoffs: Annotated[str, typer.Option(metavar="HZ,…", help="Cut-offs of the low-pass: Hz, auto, none.")] = "50"
    duration: Annotated[float, typer.Option(metavar="S", help="Duration of a motion, s.")] = 10.0
    harmonics: Annotated[int, typer.Option(metavar="N", help="Harmonics of the Fourier motions.")] = 20
    control_rate: Annotated[float, typer.Option(metavar="HZ", help="Rate of the controller, Hz.")] = 5000.0
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Bandwidth of the controller.")] = 60.0
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same comparison.")] = 0
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; default: one per core.")] = 0
    limit: Annotated[float, typer.Option(metavar="S", help="Limit of the processor time per fit, s.")] = 120.0
    resume: Annotated[bool, typer.Option("--resume", help="Continue the interrupted comparison in RUN.")] = False
    validate: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="With LOG: another log for validation. May be repeated."),
        opt.FromProject("logs.validate", unless=("holdout",)),
    ] = None
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="With LOG, without --validate: its last part as hold-out.")
    ] = 0.3
    horizon: opt.Horizon = 0.5
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="With LOG: low-pass cut-off of the fit.")] = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    controller: opt.ControllerFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: opt.TermNames = ""
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("compare estimators", epilog=_EPILOG)
@opt.with_options(EstimatorsOptions)
def estimators(o: EstimatorsOptions) -> None:
    """Identify the same robot with all estimators: errors of parameters, torque and position, time, recommendations."""
    if o.log:
        o.out.deliver(lambda: _on_log(o.robot_options.robot(o.robot), o))
        return
    if o.out.output and not os.path.lexists(o.out.output):
        check_target(Path(o.out.output), False)  # before the slow imports
    show(_simulated(o.robot_options.robot(o.robot), o), o.out.output, o.out.as_json)
    if not o.out.output and not o.out.as_json:
        print_not_saved()


def _on_log(robot: Robot, o: EstimatorsOptions) -> LogComparison:
    from steelyard.compare.on_log import compare_on_log
    from steelyard.signals.between import as_torque_between
    from steelyard.signals.prepare import Preparation

    log, *others = opt.logs_from([o.log, *(o.validate or ())], robot, o.mapping)
    return compare_on_log(
        robot,
        log,
        others,
        estimators=opt.words(o.only),
        holdout=o.holdout,
        horizon=o.horizon,
        terms=opt.words(o.term_names) or None,
        preparation=Preparation(cutoff_hz=o.cutoff, delay=o.delay, torque_between=as_torque_between(o.torque_between)),
        controller=o.controller or None,
        limit=o.limit,
    )


def _simulated(robot: Robot, o: EstimatorsOptions) -> Comparison:
    from steelyard.compare.monte_carlo import RUNS, monte_carlo, records_folder
    from steelyard.compare.protocol import NOISES, Protocol, parse_noise

    protocol = Protocol(
        estimators=tuple(opt.words(o.only)),
        noises=tuple(parse_noise(text) for text in opt.words(o.noise) or NOISES),
        controllers=tuple(opt.words(o.controllers)),
        rates=tuple(_frequency(text) for text in opt.words(o.rates)),
        cutoffs=tuple(opt.words(o.cutoffs)),
        bandwidth_rad_s=o.bandwidth,
        **{name: getattr(o, name) for name in _PASSED_ON},
    )
    folder = Path(o.out.output) if o.out.output else None
    if folder is None and o.resume:
        raise SteelyardError("--resume needs the folder of the interrupted comparison: add -o RUN.")
    records = nullcontext() if folder is None else records_folder(folder, o.out.overwrite, o.resume)
    with records, progress_bar(o.out.as_json):
        result = monte_carlo(
            robot,
            protocol,
            records=None if folder is None else folder / RUNS,
            workers=o.workers or None,
        )
    if folder is not None:
        result.save(folder, overwrite=True, keep=[RUNS])
    return result


def _frequency(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SteelyardError(f"--rates: '{text}' is not a frequency in Hz.") from None
