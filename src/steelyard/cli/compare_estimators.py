"""`steelyard compare estimators`: on simulated experiments of a robot, or on a log of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.compare import compare
from steelyard.errors import SteelyardError

_EPILOG = (
    "Examples: steelyard compare estimators ns16 --starts 25 -o estimators; "
    "steelyard compare estimators arm.urdf run.csv --estimators rows,ml,ekf -o estimators"
)


@compare.command(epilog=_EPILOG)
def estimators(
    robot: opt.RobotSource,
    log: Annotated[
        str, typer.Argument(metavar="[LOG]", help="A log to identify from; without one, experiments are simulated.")
    ] = "",
    only: Annotated[
        str,
        typer.Option(
            "--estimators",
            metavar="E,…",
            help="Names or groups (all, rows, networks, loops, filters, physical); -NAME takes one away.",
        ),
    ] = "all",
    noise: Annotated[
        str, typer.Option(metavar="N,…", help="low, standard, high-torque, high-position, high-both; or NAME=DEG:NM.")
    ] = "",
    trajectories: Annotated[int, typer.Option(metavar="N", help="Motions to play.")] = 2,
    starts: Annotated[int, typer.Option(metavar="N", help="Repetitions: other noise, another initial estimate.")] = 5,
    controllers: Annotated[str, typer.Option(metavar="C,…", help="pd, pid, computed-torque, …")] = "pd",
    rates: Annotated[str, typer.Option(metavar="HZ,…", help="Sampling rates.")] = "1000",
    cutoffs: Annotated[str, typer.Option(metavar="HZ,…", help="Low-passes: Hz, auto, none.")] = "50",
    duration: Annotated[float, typer.Option(metavar="S", help="Length of a motion.")] = 10.0,
    harmonics: Annotated[int, typer.Option(metavar="N", help="Of the Fourier motions.")] = 20,
    control_rate: Annotated[float, typer.Option(metavar="HZ", help="Of the controller.")] = 5000.0,
    bandwidth: Annotated[float, typer.Option(metavar="RAD/S", help="Of the controller.")] = 60.0,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same comparison.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; default: one per core.")] = 0,
    limit: Annotated[float, typer.Option(metavar="S", help="Processor time that a single fit may take.")] = 120.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the runs in RUN that were broken off.")] = False,
    validate: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="With a log: another one to judge by. May be repeated.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="With a log, without --validate: its last part to judge by.")
    ] = 0.3,
    horizon: Annotated[float, typer.Option(metavar="S", help="Length of the open-loop replays.")] = 0.5,
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="With a log: low-pass of the fit.")] = None,
    mapping: opt.MapFile = "",
    controller: opt.ControllerFile = "",
    joints: opt.Joints = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Let all estimators find the same robot: errors of parameters, torque and position, time, and what to use when."""
    loaded = opt.robot_from(robot, joints, gravity, snap)
    if log:
        from steelyard.signals.prepare import Preparation
        from steelyard.signals.read import read_log

        options = {
            "estimators": opt.words(only), "holdout": holdout, "horizon": horizon, "limit": limit,
            "terms": opt.words(term_names) or None, "preparation": Preparation(cutoff=cutoff),
            "controller": controller or None,
        }  # fmt: skip
        logs = [read_log(path, loaded, mapping or None) for path in (log, *(validate or ()))]
        _on_log(loaded, logs, options, output, overwrite, as_json)
        return
    from steelyard.compare import NOISES, Protocol, noise_from

    protocol = Protocol(
        estimators=tuple(opt.words(only)),
        trajectories=trajectories,
        starts=starts,
        duration=duration,
        seed=seed,
        noises=tuple(noise_from(text) for text in opt.words(noise) or NOISES),
        controllers=tuple(opt.words(controllers)),
        rates=tuple(_frequency(text) for text in opt.words(rates)),
        cutoffs=tuple(opt.words(cutoffs)),
        harmonics=harmonics,
        control_rate=control_rate,
        bandwidth=bandwidth,
        horizon=horizon,
        limit=limit,
    )
    _simulated(loaded, protocol, workers, output, overwrite, resume, as_json)


def _frequency(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SteelyardError(f"--rates: '{text}' is not a frequency in Hz.") from None


def _simulated(
    robot: Any, protocol: Any, workers: int, output: str, overwrite: bool, resume: bool, as_json: bool
) -> None:
    from steelyard.compare.monte_carlo import monte_carlo
    from steelyard.compare.write import RUNS, begin, finish
    from steelyard.report.estimators import estimators_report, print_estimators
    from steelyard.report.terminal import console, counted

    out = console()
    folder = Path(output) if output else None
    if folder is not None:
        begin(folder, overwrite, resume)
    elif resume:
        raise SteelyardError("--resume needs the folder of the broken-off comparison: add -o RUN.")
    with counted("Runs", quiet=as_json) as progress:
        found = monte_carlo(
            robot,
            protocol,
            records=None if folder is None else folder / RUNS,
            workers=workers or None,
            progress=lambda done, total, run: progress(done, total, run.estimator if run else ""),
        )
    if folder is not None:
        finish(folder, found.to_json(), estimators_report(found))
    if as_json:
        opt.print_json(found.to_json())
        return
    print_estimators(found, out, output)


def _on_log(robot: Any, logs: list[Any], options: dict[str, Any], output: str, overwrite: bool, as_json: bool) -> None:
    from steelyard.compare.on_log import compare_on_log
    from steelyard.ground.files import check_target
    from steelyard.report.on_log import log_report, print_log_estimators
    from steelyard.report.terminal import console
    from steelyard.write_comparison import write_comparison

    if output:
        check_target(Path(output), overwrite)
    out = console()
    with out.status("Comparing estimators …") as status:
        found = compare_on_log(
            robot, logs[0], logs[1:], progress=lambda name: status.update(f"Estimator {name} …"), **options
        )
    if output:
        write_comparison(found.to_json(), log_report(found), Path(output), overwrite=overwrite)
    if as_json:
        opt.print_json(found.to_json())
        return
    print_log_estimators(found, out, output)
