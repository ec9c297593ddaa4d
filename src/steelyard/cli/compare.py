"""`steelyard compare`: several ways to the same end, side by side."""

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
from steelyard.cli.deliver import say_not_written, show, shown_as_bar
from steelyard.errors import SteelyardError
from steelyard.ground.folders import check_target

if TYPE_CHECKING:
    from steelyard.compare.comparison import Comparison
    from steelyard.compare.on_log import LogComparison
    from steelyard.compare.schemes import SchemeComparison
    from steelyard.robot.robot import Robot

_EPILOG = (
    "Examples: steelyard compare estimators ns16 --starts 25 -o estimators; "
    "steelyard compare estimators arm.urdf run.csv --estimators rows,ml,ekf -o estimators"
)


@dataclass(frozen=True)
class SchemesOptions:
    """What may be typed."""

    robot: opt.RobotSource
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="The log to identify from."), opt.FromProject("logs.identify")
    ]
    validate: opt.Validate = None
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Without --validate: the last part of the log to judge by.")
    ] = 0.3
    only: Annotated[
        str,
        typer.Option(
            "--schemes",
            metavar="S,…",
            help="Those to run, e.g. dynamic,energy; default: all.",
            autocompletion=some_of("schemes"),
        ),
    ] = ""
    horizon: opt.Horizon = 0.5
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    physical: opt.Physical = True
    cutoff: opt.Cutoff = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    end: opt.End = opt.END


@command(
    "compare schemes", epilog="Example: steelyard compare schemes arm.urdf run.parquet --map columns.toml -o schemes"
)
@opt.taking(SchemesOptions)
def schemes(o: SchemesOptions) -> None:
    """Identify by every scheme from one log: parameters, intervals, errors on held-out data, time."""
    from steelyard.compare.schemes import compare_schemes
    from steelyard.regression.schemes import SCHEMES
    from steelyard.signals.between import as_torque_between
    from steelyard.signals.prepare import Preparation

    def compared() -> SchemeComparison:
        loaded = o.described.robot(o.robot)
        first, *others = opt.logs_from([o.log, *(o.validate or ())], loaded, o.mapping)
        return compare_schemes(
            loaded,
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

    o.end.deliver(compared)


# Options that are fields of `Protocol` by the same name.
_PASSED_ON = (
    "trajectories", "starts", "duration", "seed", "harmonics", "control_rate", "horizon", "limit",
)  # fmt: skip


@dataclass(frozen=True)
class EstimatorsOptions:
    """What may be typed of `compare estimators`."""

    robot: opt.RobotSource
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="A log to identify from; without one, experiments are simulated."),
        opt.FromProject("logs.identify", unless=("noise", "trajectories", "starts", "controllers", "rates", "resume")),
    ] = ""
    only: Annotated[
        str,
        typer.Option(
            "--estimators",
            metavar="E,…",
            help="Names or groups ({groups}); -NAME takes one away.",
            autocompletion=some_of("estimators"),
        ),
    ] = "all"
    noise: Annotated[str, typer.Option(metavar="N,…", help="{noises}; or NAME=DEG:NM.")] = ""
    trajectories: Annotated[int, typer.Option(metavar="N", help="Motions to play.")] = 2
    starts: Annotated[int, typer.Option(metavar="N", help="Repetitions: other noise, another initial estimate.")] = 5
    controllers: Annotated[str, typer.Option(metavar="C,…", help="{controllers}.")] = "pd"
    rates: Annotated[str, typer.Option(metavar="HZ,…", help="Sampling rates.")] = "1000"
    cutoffs: Annotated[str, typer.Option(metavar="HZ,…", help="Low-passes: Hz, auto, none.")] = "50"
    duration: Annotated[float, typer.Option(metavar="S", help="Length of a motion.")] = 10.0
    harmonics: Annotated[int, typer.Option(metavar="N", help="Of the Fourier motions.")] = 20
    control_rate: Annotated[float, typer.Option(metavar="HZ", help="Of the controller.")] = 5000.0
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Of the controller.")] = 60.0
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same comparison.")] = 0
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; default: one per core.")] = 0
    limit: Annotated[float, typer.Option(metavar="S", help="Processor time that a single fit may take.")] = 120.0
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the runs in RUN that were broken off.")] = False
    validate: Annotated[
        list[str] | None,
        typer.Option(metavar="LOG", help="With a log: another one to judge by. May be repeated."),
        opt.FromProject("logs.validate", unless=("holdout",)),
    ] = None
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="With a log, without --validate: its last part to judge by.")
    ] = 0.3
    horizon: opt.Horizon = 0.5
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="With a log: low-pass of the fit.")] = None
    delay: opt.Delay = 0.0
    torque_between: opt.BetweenSamples = "auto"
    mapping: opt.MapFile = ""
    controller: opt.ControllerFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    end: opt.End = opt.END


@command("compare estimators", epilog=_EPILOG)
@opt.taking(EstimatorsOptions)
def estimators(o: EstimatorsOptions) -> None:
    """Let all estimators find the same robot: errors of parameters, torque and position, time, and what to use when."""
    if o.log:
        o.end.deliver(lambda: _on_log(o.described.robot(o.robot), o))
        return
    if o.end.output and not os.path.lexists(o.end.output):
        check_target(Path(o.end.output), False)  # before anything large is imported
    show(_simulated(o.described.robot(o.robot), o), o.end.output, o.end.as_json)
    if not o.end.output and not o.end.as_json:
        say_not_written()


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
    folder = Path(o.end.output) if o.end.output else None
    if folder is None and o.resume:
        raise SteelyardError("--resume needs the folder of the broken-off comparison: add -o RUN.")
    kept = nullcontext() if folder is None else records_folder(folder, o.end.overwrite, o.resume)
    with kept, shown_as_bar(o.end.as_json):
        found = monte_carlo(
            robot,
            protocol,
            records=None if folder is None else folder / RUNS,
            workers=o.workers or None,
        )
    if folder is not None:
        found.save(folder, overwrite=True, keep=[RUNS])
    return found


def _frequency(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SteelyardError(f"--rates: '{text}' is not a frequency in Hz.") from None
