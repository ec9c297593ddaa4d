"""`steelyard local`: models for parts of the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import Commands, app
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.local.identify import Logs
    from steelyard.robot.robot import Robot

local = typer.Typer(
    cls=Commands,
    help="Models for parts of the workspace: motions, identification, validation, recalibration.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(local, name="local")

Regions = Annotated[str, typer.Argument(metavar="REGIONS", help="A YAML, JSON or TOML file with the regions.")]
BankFolder = Annotated[str, typer.Argument(metavar="BANK", help="The folder that `local identify` wrote.")]
RegionLogs = Annotated[
    list[str] | None, typer.Option("--log", metavar="REGION=LOG", help="A log of a region. May be repeated.")
]
Simulate = Annotated[
    bool, typer.Option("--simulate", help="Play the motions on the robot's nominal model instead of reading logs.")
]
How = Annotated[str, typer.Option("--how", metavar="HOW", help="gradient, via-points or evolved.")]
Duration = Annotated[float, typer.Option(metavar="S", help="Length of each region's motion.")]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motions.")]
Noise = Annotated[float, typer.Option(metavar="PERCENT", help="Simulated torque noise, of the stated torque.")]
Needed = Annotated[str, typer.Option("-o", "--output", metavar="RUN", help="The folder to write.", show_default=False)]


@local.command(epilog="Example: steelyard local design arm.urdf regions.yaml --duration 20 -o motions")
def design(
    robot: opt.RobotSource,
    regions: Regions,
    output: Needed = "",
    how: How = "gradient",
    duration: Duration = 20.0,
    seed: Seed = 0,
    term_names: opt.TermNames = "",
    gravity: opt.Gravity = "",
    snap: opt.Snap = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Design a motion inside every region, to be played on the robot."""
    from steelyard.local.design import Design
    from steelyard.local.identify import planned
    from steelyard.local.regions import read_regions
    from steelyard.local.write import motions_json, write_motions
    from steelyard.parameters.terms import identification_terms

    target = _target(output, overwrite)
    loaded = opt.robot_from(robot, "", gravity, snap)
    found = read_regions(regions, loaded)
    bound = identification_terms(loaded, opt.words(term_names) or None)
    motions = planned(loaded, found, bound, Design(how=how, duration=duration, seed=seed))
    if target is not None:
        write_motions(loaded, found, motions, target, overwrite=overwrite)
    if as_json:
        opt.print_json(motions_json(loaded, found, motions))
        return
    for region in found:
        typer.echo(f"{region.name}: {motions[region.name].duration:.2f} s")
    if output:
        typer.echo(f"Written to {output}: result.json, a trajectory (JSON, CSV) per region")


@local.command(epilog="Example: steelyard local identify arm.urdf regions.yaml --log A=a.csv --log B=b.csv -o bank")
def identify(
    robot: opt.RobotSource,
    regions: Regions,
    log: RegionLogs = None,
    simulate: Simulate = False,
    motions: Annotated[str, typer.Option(metavar="RUN", help="The folder of `local design`.")] = "",
    how: How = "gradient",
    duration: Duration = 20.0,
    seed: Seed = 0,
    noise: Noise = 2.0,
    mapping: opt.MapFile = "",
    gravity: opt.Gravity = "",
    term_names: opt.TermNames = "",
    physical: Annotated[bool, typer.Option("--physical/--free", help="Physically possible, or the free fit.")] = True,
    prior: Annotated[str, typer.Option(metavar="P", help="nominal (the description's inertias) or none.")] = "nominal",
    cutoff: Annotated[float | None, typer.Option(metavar="HZ", help="Low-pass of the fit; default by a rule.")] = None,
    order: Annotated[int, typer.Option(metavar="N", help="Order of the Butterworth filter.")] = 4,
    blend: Annotated[float, typer.Option(metavar="M", help="Width over which models are blended, m or rad.")] = 0.05,
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Identify one model per region, from logs of each or on a simulated robot."""
    from steelyard.local.bank_files import bank_json, save_bank
    from steelyard.local.design import Design
    from steelyard.local.identify import identify_locally
    from steelyard.local.regions import read_regions
    from steelyard.local.write import read_motions
    from steelyard.report.local import bank_report, print_bank
    from steelyard.report.terminal import console
    from steelyard.signals.prepare import Preparation

    target = _target(output, overwrite)
    loaded = opt.robot_from(robot, "", gravity, snap)
    found = read_regions(regions, loaded)
    known = read_motions(motions, loaded) if motions else None
    bank = identify_locally(
        loaded,
        _source(loaded, log, simulate, mapping, noise, seed),
        found,
        terms=opt.words(term_names) or None,
        motions=known if known is not None else Design(how=how, duration=duration, seed=seed),
        blend=blend,
        physical=physical,
        prior=prior,
        preparation=Preparation(cutoff=cutoff, order=order),
    )
    if target is not None:
        save_bank(bank, target, overwrite=overwrite, report=bank_report(bank))
    if as_json:
        opt.print_json(bank_json(bank))
        return
    print_bank(bank, console(), output)


@local.command(epilog="Example: steelyard local validate arm.urdf bank --log A=a2.csv --log B=b2.csv -o validation")
def validate(
    robot: opt.RobotSource,
    bank: BankFolder,
    log: RegionLogs = None,
    simulate: Simulate = False,
    trajectories: Annotated[int, typer.Option(metavar="N", help="Simulated motions per region.")] = 30,
    points: Annotated[int, typer.Option(metavar="K", help="Via-points of each.")] = 6,
    against: Annotated[str, typer.Option(metavar="RUN", help="The run folder of a global model.")] = "",
    seed: Seed = 1,
    noise: Noise = 2.0,
    mapping: opt.MapFile = "",
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Validate a bank over many motions: errors, bands, transfer between regions, a global model beside it."""
    from steelyard.dynamics.model import Model
    from steelyard.local.bank_files import load_bank
    from steelyard.local.validate import validate_bank
    from steelyard.local.write import other_model, write_validation
    from steelyard.report.local import bank_report, print_validation
    from steelyard.report.terminal import console

    target = _target(output, overwrite)
    loaded = opt.robot_from(robot, "", "", snap)
    found = load_bank(bank, loaded)
    result = validate_bank(
        found,
        _source(found.robot, log, simulate, mapping, noise, seed),
        trajectories=trajectories,
        points=points,
        others=other_model(found, against),
        nominal=Model.nominal(found.robot) if found.robot.has_inertia else None,
        seed=seed,
    )
    if target is not None:
        write_validation(result, bank_report(found, result), target, overwrite=overwrite)
    if as_json:
        opt.print_json(result.to_json())
        return
    print_validation(result, console(), output)


@local.command(epilog="Example: steelyard local recalibrate arm.urdf bank A --log again.csv -o bank-may")
def recalibrate(
    robot: opt.RobotSource,
    bank: BankFolder,
    region: Annotated[str, typer.Argument(metavar="REGION", help="The region whose motion was played again.")],
    log: Annotated[list[str], typer.Option("--log", metavar="LOG", help="A new log of it. May be repeated.")],
    mapping: opt.MapFile = "",
    snap: opt.Snap = None,
    output: opt.Output = "",
    overwrite: opt.Overwrite = False,
    as_json: opt.AsJson = False,
) -> None:
    """Make a region's model anew from a new log, and say what has drifted."""
    from steelyard.local.bank_files import load_bank, save_bank
    from steelyard.local.recalibrate import recalibrate as again
    from steelyard.report.local import bank_report, print_drift
    from steelyard.report.terminal import console
    from steelyard.signals.read import read_log

    target = _target(output, overwrite)
    loaded = opt.robot_from(robot, "", "", snap)
    found = load_bank(bank, loaded)
    found.local(region)
    new, drift = again(found, region, [read_log(path, loaded, mapping or None) for path in log])
    if target is not None:
        page = bank_report(new, drift=drift)
        save_bank(new, target, overwrite=overwrite, more={"drift": drift.to_json()}, report=page)
    if as_json:
        opt.print_json(drift.to_json())
        return
    print_drift(drift, console(), output)


def _target(output: str, overwrite: bool) -> Any:
    """Where to write, refused early what would be refused at the end; None: nowhere."""
    from pathlib import Path

    from steelyard.ground.files import check_target

    if not output:
        return None
    check_target(Path(output), overwrite)
    return Path(output)


def _source(robot: Robot, logs: list[str] | None, simulate: bool, mapping: str, noise: float, seed: int) -> Any:
    """A simulated arm, or logs by region."""
    from steelyard.dynamics.model import Model
    from steelyard.local.identify import SimulatedArm, default_sensors

    if simulate == bool(logs):
        raise SteelyardError("Give logs (--log REGION=LOG, one for every region), or --simulate; one of the two.")
    if simulate:
        return SimulatedArm(Model.nominal(robot), default_sensors(robot, noise), seed=seed)
    return _logs(robot, logs or [], mapping)


def _logs(robot: Robot, given: list[str], mapping: str) -> Logs:
    from steelyard.signals.read import read_log

    found: dict[str, list[Any]] = {}
    for text in given:
        region, equals, path = text.partition("=")
        if not equals or not region or not path:
            raise SteelyardError(f"--log is '{text}'; write REGION=LOG, e.g. A=run.csv.")
        found.setdefault(region, []).append(read_log(path, robot, mapping or None))
    return found
