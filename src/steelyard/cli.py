"""The command line. It joins the rooms of the house and does nothing itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from steelyard.errors import SteelyardError
from steelyard.parameters.library import make_term
from steelyard.parameters.term import Side, Term
from steelyard.parameters.terms import Terms, nominal_terms, terms
from steelyard.robot.load import load_robot
from steelyard.robot.robot import Robot


class Commands(TyperGroup):
    """Commands whose errors are one sentence on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SteelyardError as error:
            message = str(error)
        except OSError as error:
            message = f"{error.filename or 'A file'}: {error.strerror or error}."
        typer.echo(f"steelyard: {' '.join(message.split())}", err=True)
        raise typer.Exit(2)


app = typer.Typer(
    cls=Commands,
    name="steelyard",
    help="Find the true dynamic model of a robot from its own motion.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The program `steelyard`."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"steelyard {installed_version('steelyard')}")
        raise typer.Exit()


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


RobotSource = Annotated[
    str, typer.Argument(metavar="ROBOT", help="A .urdf, .xml (MJCF), .yaml or .toml file, or a built-in robot.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command(epilog="Example: steelyard inspect ns16 --terms rotor,viscous,coulomb")
def inspect(
    robot: RobotSource,
    joints: Annotated[
        str, typer.Option(metavar="A,B,…", help="The joints that move, with commas between; others are locked.")
    ] = "",
    lock: Annotated[
        list[str] | None,
        typer.Option(metavar="JOINT=VALUE", help="Lock a joint at a value in rad or m. May be repeated."),
    ] = None,
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s².")] = "",
    term_names: Annotated[
        str,
        typer.Option(
            "--terms",
            metavar="T,…",
            help="Joint terms, e.g. viscous,coulomb or rotor@drive; 'nominal' for those of the description.",
        ),
    ] = "",
    method: Annotated[
        str, typer.Option(metavar="METHOD", help="How the base parameters are found: qr, rref, svd or kernel.")
    ] = "qr",
    snap: Annotated[
        float | None,
        typer.Option(metavar="TOL", help="Make rotations and axes this close to right angles exact, e.g. 1e-4."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a robot's joints, links and drives, and which parameters its motion can show."""
    from steelyard.inspection import inspect_robot
    from steelyard.regression.base_parameters import Method

    loaded = load_robot(
        robot,
        joints=_words(joints) or None,
        locked=dict(_lock(text) for text in lock or ()),
        gravity=_numbers("--gravity", gravity, 3) if gravity else None,
        snap=snap,
    )
    seen = inspect_robot(loaded, _terms(loaded, term_names), cast(Method, method))
    if as_json:
        _print_json(seen.to_json())
        return
    from steelyard.report.inspection import print_inspection
    from steelyard.report.terminal import console

    print_inspection(seen, console())


@app.command(epilog="Example: steelyard robots --json")
def robots(as_json: AsJson = False) -> None:
    """List the robots that come with the package."""
    from steelyard.catalogue import catalogue

    entries = catalogue()
    if as_json:
        _print_json([{"name": e.name, "joints": e.joints, "description": e.description} for e in entries])
        return
    from steelyard.report.terminal import console, table

    rows = [[e.name, str(e.joints), e.description] for e in entries]
    console().print(table("Built-in robots", ["name", "joints", "what it is"], rows, right=("joints",)))


@app.command(epilog="Example: steelyard check arm.urdf run.parquet --map columns.toml")
def check(
    robot: RobotSource,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log to look at.")],
    mapping: Annotated[str, typer.Option("--map", metavar="F", help="What the log's columns mean (TOML, JSON).")] = "",
    joints: Annotated[str, typer.Option(metavar="A,B,…", help="The joints that move; others are locked.")] = "",
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s².")] = "",
    term_names: Annotated[
        str,
        typer.Option("--terms", metavar="T,…", help="Joint terms; default rotor,viscous,coulomb,offset."),
    ] = "",
    snap: Annotated[
        float | None, typer.Option(metavar="TOL", help="Make nearly right angles exact, e.g. 1e-4.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at a log before identifying from it: is it sound, what can it show, what to do."""
    from steelyard.check import check_log
    from steelyard.signals.read import read_log

    loaded = load_robot(
        robot,
        joints=_words(joints) or None,
        gravity=_numbers("--gravity", gravity, 3) if gravity else None,
        snap=snap,
    )
    found = check_log(loaded, read_log(log, loaded, mapping or None), _words(term_names) or None)
    if as_json:
        _print_json(found.to_json())
        return
    from steelyard.report.check import print_check
    from steelyard.report.terminal import console

    print_check(found, console())


@app.command(epilog="Example: steelyard identify arm.urdf a.parquet --validate b.parquet --map columns.toml -o run")
def identify(
    robot: RobotSource,
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs to identify from.")],
    validate: Annotated[
        list[str] | None, typer.Option(metavar="LOG", help="A log to judge by. May be repeated.")
    ] = None,
    output: Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write.")] = "",
    mapping: Annotated[str, typer.Option("--map", metavar="F", help="What the logs' columns mean (TOML, JSON).")] = "",
    joints: Annotated[str, typer.Option(metavar="A,B,…", help="The joints that move; others are locked.")] = "",
    torque_used: Annotated[
        str, typer.Option(metavar="A,B,…", help="The joints whose torque can be trusted; the others still move.")
    ] = "",
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", help="Gravity in the base frame, m/s².")] = "",
    term_names: Annotated[
        str,
        typer.Option("--terms", metavar="T,…", help="Joint terms; default rotor,viscous,coulomb,offset."),
    ] = "",
    scheme: Annotated[str, typer.Option(metavar="S", help="How the physics is written: dynamic.")] = "dynamic",
    estimator: Annotated[str, typer.Option(metavar="E", help="ols, wls, huber, bisquare, tls or ridge.")] = "wls",
    physical: Annotated[bool, typer.Option("--physical/--free", help="Physically possible, or the free fit.")] = True,
    prior: Annotated[str, typer.Option(metavar="P", help="nominal (the description's inertias) or none.")] = "nominal",
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass of the fit; default by a rule.")] = None,
    score_cutoff: Annotated[
        float | None, typer.Option(metavar="HZ", help="Low-pass of the scores; default: that of the fit.")
    ] = None,
    mask: Annotated[float, typer.Option(metavar="SPEED", help="Leave out rows slower than this, rad/s or m/s.")] = 0.0,
    period: Annotated[
        float | None, typer.Option(metavar="S", help="Average a periodic motion over its periods of S seconds.")
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Keep the last part of each log to judge by, e.g. 0.3.")
    ] = None,
    holdout_blocks: Annotated[
        str, typer.Option(metavar="S:K", help="Keep every K-th block of S seconds to judge by, e.g. 0.5:3.")
    ] = "",
    snap: Annotated[
        float | None, typer.Option(metavar="TOL", help="Make nearly right angles exact, e.g. 1e-4.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing run, whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find a robot's parameters from logs, judge them, and write a run folder."""
    from pathlib import Path

    from steelyard.identify_files import identify_files
    from steelyard.result import result_json
    from steelyard.run_folder import check_target

    if output:
        check_target(Path(output), overwrite)
    loaded = load_robot(
        robot,
        joints=_words(joints) or None,
        gravity=_numbers("--gravity", gravity, 3) if gravity else None,
        torque_used=_words(torque_used) or None,
        snap=snap,
    )
    found = identify_files(
        loaded,
        [Path(p) for p in logs],
        [Path(p) for p in validate or ()],
        mapping=mapping or None,
        holdout=holdout,
        holdout_blocks=holdout_blocks,
        terms=_words(term_names) or None,
        scheme=scheme,
        estimator=estimator,
        physical=physical,
        prior=prior,
        cutoff=cutoff,
        score_cutoff=score_cutoff,
        mask=mask,
        period=period,
    )
    inputs = [Path(p) for p in [robot, *logs, *(validate or ()), mapping] if p]
    if output:
        from steelyard.write_run import write_run

        source = Path(robot) if robot.lower().endswith((".urdf", ".xml")) else None
        write_run(found, output, overwrite=overwrite, inputs=inputs, source=source)
    if as_json:
        _print_json(result_json(found, inputs))
        return
    from steelyard.report.identified import print_identification
    from steelyard.report.terminal import console

    print_identification(found, console(), output)


@app.command(epilog="Example: steelyard demo -o demo-run")
def demo(
    output: Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write.")] = "demo-run",
    as_json: AsJson = False,
) -> None:
    """The whole story on a simulated 6-axis arm: motion, log, check, identification, report."""
    from pathlib import Path

    from steelyard.demo import print_demo, run_demo

    found = run_demo(Path(output))
    if as_json:
        _print_json(found.to_json())
        return
    from steelyard.report.terminal import console

    print_demo(found, console())


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(option: str, text: str, count: int) -> Sequence[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count:
        raise SteelyardError(f"{option} is '{text}'; give {count} numbers with commas between, e.g. 0,0,-9.81.")
    return values


def _lock(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise SteelyardError(f"--lock is '{text}'; give joint=value, e.g. --lock elbow=0.5.") from None


def _terms(robot: Robot, text: str) -> Terms | None:
    made: list[Term] = []
    for word in _words(text):
        if word == "nominal":
            made.extend(nominal_terms(robot)[0].terms)
        else:
            kind, _, side = word.partition("@")
            made.append(make_term(kind, on=cast(Side, side or "joint")))
    return terms(robot, *made) if made else None
