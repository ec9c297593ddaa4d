"""`steelyard local`: models for parts of the workspace."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver, exit_if_stopped, search_progress
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.local.design import Design
    from steelyard.local.run_folders import BankRun, RegionMotions
    from steelyard.local.validate_bank import BankValidation
    from steelyard.robot.robot import Robot

Regions = Annotated[str, typer.Argument(metavar="REGIONS", help="File with the regions (YAML, JSON, TOML).")]
BankFolder = Annotated[str, typer.Argument(metavar="BANK", help="Folder written by `local identify`.")]
RegionLogs = Annotated[
    list[str] | None, typer.Option("--log", metavar="REGION=LOG", help="Log of a region. May be repeated.")
]
Simulate = Annotated[
    bool, typer.Option("--simulate", help="Simulate the motions with the nominal model instead of reading logs.")
]
_How = Annotated[str, typer.Option("--how", metavar="HOW", help="Search for motions: gradient, via-points or evolved.")]
Duration = Annotated[float, typer.Option(metavar="S", help="Duration of each region's motion, s.")]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motions.")]
_Noise = Annotated[
    float, typer.Option(metavar="PERCENT", help="Simulated torque noise, in percent of the rated torque.")
]


@dataclass(frozen=True)
class MotionSearch:
    """Options of the search for motions of regions."""

    how: _How = "gradient"
    duration: Duration = 20.0
    seed: Seed = 0
    via_points: Annotated[int, typer.Option(metavar="K", help="Via-points of an evolved motion.")] = 6
    population: Annotated[int, typer.Option(metavar="N", help="Population of the evolution.")] = 150
    generations: Annotated[int, typer.Option(metavar="N", help="Largest number of generations.")] = 100
    patience: Annotated[
        int | None, typer.Option(metavar="N", help="Stop the evolution after N generations without improvement.")
    ] = None
    checkpoint: Annotated[
        str,
        typer.Option(metavar="FILE", help="Save the search there, one file per region; continue from existing files."),
    ] = ""

    def settings(self, progress: Any) -> Design:
        """Convert to settings of a search that reports to the callback `progress`."""
        from steelyard.local.design import Design

        return Design(
            how=self.how, duration=self.duration, seed=self.seed, points=self.via_points, population=self.population,
            generations=self.generations, patience=self.patience, checkpoint=self.checkpoint or None, progress=progress,
        )  # fmt: skip


_SEARCH = MotionSearch()


@dataclass(frozen=True)
class LocalDesignOptions:
    """Options of `steelyard local design`."""

    robot: opt.RobotSource
    regions: Regions
    output: opt.Output = ""
    search: MotionSearch = _SEARCH
    term_names: opt.TermNames = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command(
    "local design",
    epilog="Example: steelyard local design arm.urdf regions.yaml --how evolved --checkpoint bred.json -o motions",
)
@opt.with_options(LocalDesignOptions)
def design(o: LocalDesignOptions) -> None:
    """Design a motion inside every region, to be played on the robot."""
    from steelyard.local.identify import design_regions
    from steelyard.local.regions import read_regions

    def run() -> RegionMotions:
        robot = o.robot_options.robot(o.robot)
        regions, names = read_regions(o.regions, robot), opt.words(o.term_names) or None
        progress = stack.enter_context(search_progress("each region's best motion"))
        return design_regions(robot, regions, names, o.search.settings(progress))

    with ExitStack() as stack:
        deliver(run, o.output, o.overwrite, o.as_json)
    exit_if_stopped()


@dataclass(frozen=True)
class LocalIdentifyOptions:
    """Options of `steelyard local identify`."""

    robot: opt.RobotSource
    regions: Regions
    log: RegionLogs = None
    simulate: Simulate = False
    motions: Annotated[str, typer.Option(metavar="RUN", help="Folder written by `local design`.")] = ""
    search: MotionSearch = _SEARCH
    noise: _Noise = 2.0
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    term_names: opt.TermNames = ""
    physical: opt.Physical = True
    prior: opt.PriorOption = "nominal"
    cutoff: opt.Cutoff = None
    order: Annotated[int, typer.Option(metavar="N", help="Order of the Butterworth filter.")] = 4
    blend: Annotated[float, typer.Option(metavar="M", help="Width of the transition between models, m or rad.")] = 0.05
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "local identify",
    epilog="Example: steelyard local identify arm.urdf regions.yaml --log A=a.csv --log B=b.csv -o bank",
)
@opt.with_options(LocalIdentifyOptions)
def identify(o: LocalIdentifyOptions) -> None:
    """Identify one model per region, from logs or on a simulated robot."""
    from steelyard.local.identify import identify_locally
    from steelyard.local.regions import read_regions
    from steelyard.local.run_folders import BankRun, read_motions
    from steelyard.signals.prepare import Preparation

    def run() -> BankRun:
        robot = o.robot_options.robot(o.robot)
        regions = read_regions(o.regions, robot)
        motions: Any = read_motions(o.motions, robot) if o.motions else None
        if o.simulate and motions is None:
            motions = o.search.settings(stack.enter_context(search_progress("models of each region's best motion")))
        bank = identify_locally(
            robot,
            _source(robot, o.log, o.simulate, o.mapping, o.noise, o.search.seed),
            regions,
            terms=opt.words(o.term_names) or None,
            motions=motions,
            blend=o.blend,
            physical=o.physical,
            prior=o.prior,
            preparation=Preparation(cutoff_hz=o.cutoff, order=o.order),
        )
        return BankRun(bank)

    with ExitStack() as stack:
        o.out.deliver(run)
    exit_if_stopped()


@dataclass(frozen=True)
class ValidateOptions:
    """Options of `steelyard local validate`."""

    robot: opt.RobotSource
    bank: BankFolder
    log: RegionLogs = None
    simulate: Simulate = False
    trajectories: Annotated[int, typer.Option(metavar="N", help="Simulated motions per region.")] = 30
    points: Annotated[int, typer.Option(metavar="K", help="Via-points per motion.")] = 6
    against: Annotated[str, typer.Option(metavar="RUN", help="Run folder of a global model to compare with.")] = ""
    seed: Seed = 1
    noise: _Noise = 2.0
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command(
    "local validate",
    epilog="Example: steelyard local validate arm.urdf bank --log A=a2.csv --log B=b2.csv -o validation",
)
@opt.with_options(ValidateOptions)
def validate(o: ValidateOptions) -> None:
    """Validate a bank over many motions: errors, bands, transfer between regions, comparison with a global model."""
    from steelyard.dynamics.model import Model
    from steelyard.local.identify import GLOBAL
    from steelyard.local.run_folders import load_bank, whole_model
    from steelyard.local.validate_bank import validate_bank

    def run() -> BankValidation:
        bank = load_bank(o.bank, o.robot_options.robot(o.robot))
        return validate_bank(
            bank,
            _source(bank.robot, o.log, o.simulate, o.mapping, o.noise, o.seed),
            trajectories=o.trajectories,
            points=o.points,
            others={GLOBAL: whole_model(bank, o.against)} if o.against else {},
            nominal=Model.nominal(bank.robot) if bank.robot.has_inertia else None,
            seed=o.seed,
        )

    o.out.deliver(run)


@dataclass(frozen=True)
class RecalibrateOptions:
    """Options of `steelyard local recalibrate`."""

    robot: opt.RobotSource
    bank: BankFolder
    region: Annotated[str, typer.Argument(metavar="REGION", help="Region whose motion was played again.")]
    log: Annotated[list[str], typer.Option("--log", metavar="LOG", help="New log of the region. May be repeated.")]
    mapping: opt.MapFile = ""
    robot_options: opt.RobotOptions = opt.ROBOT_OPTIONS
    out: opt.OutputOptions = opt.OUTPUT_OPTIONS


@command("local recalibrate", epilog="Example: steelyard local recalibrate arm.urdf bank A --log again.csv -o bank-may")
@opt.with_options(RecalibrateOptions)
def recalibrate(o: RecalibrateOptions) -> None:
    """Identify a region's model again from a new log, and report its drift."""
    from steelyard.local.recalibrate import recalibrate as recalibrate_region
    from steelyard.local.run_folders import BankRun, load_bank

    def run() -> BankRun:
        robot = o.robot_options.robot(o.robot)
        bank = load_bank(o.bank, robot)
        bank.local(o.region)  # refuses an unknown region before the logs are read
        return BankRun(*recalibrate_region(bank, o.region, opt.logs_from(o.log, robot, o.mapping)))

    o.out.deliver(run)


def _source(robot: Robot, logs: list[str] | None, simulate: bool, mapping: str, noise: float, seed: int) -> Any:
    """A simulated arm, or logs by region."""
    if simulate == bool(logs):
        raise SteelyardError("Give either logs (--log REGION=LOG, one for every region) or --simulate.")
    if simulate:
        from steelyard.dynamics.model import Model
        from steelyard.local.identify import SimulatedArm, default_sensors

        return SimulatedArm(Model.nominal(robot), default_sensors(robot, noise), seed=seed)
    by_region: dict[str, list[Any]] = {}
    for text in logs or ():
        region, equals, path = text.partition("=")
        if not equals or not region or not path:
            raise SteelyardError(f"--log is '{text}'; write REGION=LOG, e.g. A=run.csv.")
        by_region.setdefault(region, []).extend(opt.logs_from([path], robot, mapping))
    return by_region
