"""`steelyard local`: models for parts of the workspace."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli import options as opt
from steelyard.cli.app import command
from steelyard.cli.deliver import deliver, told_if_stopped, watching
from steelyard.errors import SteelyardError

if TYPE_CHECKING:
    from steelyard.local.design import Design
    from steelyard.local.files import BankRun, RegionMotions
    from steelyard.local.validate import BankValidation
    from steelyard.robot.robot import Robot

Regions = Annotated[str, typer.Argument(metavar="REGIONS", help="A YAML, JSON or TOML file with the regions.")]
BankFolder = Annotated[str, typer.Argument(metavar="BANK", help="The folder that `local identify` wrote.")]
RegionLogs = Annotated[
    list[str] | None, typer.Option("--log", metavar="REGION=LOG", help="A log of a region. May be repeated.")
]
Simulate = Annotated[
    bool, typer.Option("--simulate", help="Play the motions on the robot's nominal model instead of reading logs.")
]
_How = Annotated[str, typer.Option("--how", metavar="HOW", help="gradient, via-points or evolved.")]
Duration = Annotated[float, typer.Option(metavar="S", help="Length of each region's motion.")]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same motions.")]
_Noise = Annotated[float, typer.Option(metavar="PERCENT", help="Simulated torque noise, of the stated torque.")]


@dataclass(frozen=True)
class Designing:
    """How motions of regions are searched for."""

    how: _How = "gradient"
    duration: Duration = 20.0
    seed: Seed = 0
    via_points: Annotated[int, typer.Option(metavar="K", help="Via-points of an evolved program.")] = 6
    population: Annotated[int, typer.Option(metavar="N", help="Of evolved programs.")] = 150
    generations: Annotated[int, typer.Option(metavar="N", help="For which they evolve, at most.")] = 100
    patience: Annotated[
        int | None, typer.Option(metavar="N", help="End an evolution after N generations that brought nothing.")
    ] = None
    checkpoint: Annotated[
        str, typer.Option(metavar="FILE", help="Write progress there, a file per region; go on where they exist.")
    ] = ""

    def settings(self, progress: Any) -> Design:
        """As the room knows them; a search tells `progress` how far it is."""
        from steelyard.local.design import Design

        return Design(
            how=self.how, duration=self.duration, seed=self.seed, points=self.via_points, population=self.population,
            generations=self.generations, patience=self.patience, checkpoint=self.checkpoint or None, progress=progress,
        )  # fmt: skip


_DESIGNING = Designing()


@dataclass(frozen=True)
class LocalDesignOptions:
    """What may be typed."""

    robot: opt.RobotSource
    regions: Regions
    output: opt.Output = ""
    designing: Designing = _DESIGNING
    term_names: opt.TermNames = ""
    described: opt.Described = opt.DESCRIBED
    overwrite: opt.Overwrite = False
    as_json: opt.AsJson = False


@command(
    "local design",
    epilog="Example: steelyard local design arm.urdf regions.yaml --how evolved --checkpoint bred.json -o motions",
)
@opt.taking(LocalDesignOptions)
def design(o: LocalDesignOptions) -> None:
    """Design a motion inside every region, to be played on the robot."""
    from steelyard.local.identify import design_regions
    from steelyard.local.regions import read_regions

    def designed() -> RegionMotions:
        loaded = o.described.robot(o.robot)
        found, named = read_regions(o.regions, loaded), opt.words(o.term_names) or None
        watch = held.enter_context(watching("each region's best motion"))
        return design_regions(loaded, found, named, o.designing.settings(watch))

    with ExitStack() as held:
        deliver(designed, o.output, o.overwrite, o.as_json)
    told_if_stopped()


@dataclass(frozen=True)
class LocalIdentifyOptions:
    """What may be typed."""

    robot: opt.RobotSource
    regions: Regions
    log: RegionLogs = None
    simulate: Simulate = False
    motions: Annotated[str, typer.Option(metavar="RUN", help="The folder of `local design`.")] = ""
    designing: Designing = _DESIGNING
    noise: _Noise = 2.0
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    term_names: opt.TermNames = ""
    physical: opt.Physical = True
    prior: opt.PriorOption = "nominal"
    cutoff: opt.Cutoff = None
    order: Annotated[int, typer.Option(metavar="N", help="Order of the Butterworth filter.")] = 4
    blend: Annotated[float, typer.Option(metavar="M", help="Width over which models are blended, m or rad.")] = 0.05
    end: opt.End = opt.END


@command(
    "local identify",
    epilog="Example: steelyard local identify arm.urdf regions.yaml --log A=a.csv --log B=b.csv -o bank",
)
@opt.taking(LocalIdentifyOptions)
def identify(o: LocalIdentifyOptions) -> None:
    """Identify one model per region, from logs of each or on a simulated robot."""
    from steelyard.local.files import BankRun, read_motions
    from steelyard.local.identify import identify_locally
    from steelyard.local.regions import read_regions
    from steelyard.signals.prepare import Preparation

    def identified() -> BankRun:
        loaded = o.described.robot(o.robot)
        found = read_regions(o.regions, loaded)
        known: Any = read_motions(o.motions, loaded) if o.motions else None
        if o.simulate and known is None:
            known = o.designing.settings(held.enter_context(watching("models of each region's best motion")))
        bank = identify_locally(
            loaded,
            _source(loaded, o.log, o.simulate, o.mapping, o.noise, o.designing.seed),
            found,
            terms=opt.words(o.term_names) or None,
            motions=known,
            blend=o.blend,
            physical=o.physical,
            prior=o.prior,
            preparation=Preparation(cutoff_hz=o.cutoff, order=o.order),
        )
        return BankRun(bank)

    with ExitStack() as held:
        o.end.deliver(identified)
    told_if_stopped()


@dataclass(frozen=True)
class ValidateOptions:
    """What may be typed."""

    robot: opt.RobotSource
    bank: BankFolder
    log: RegionLogs = None
    simulate: Simulate = False
    trajectories: Annotated[int, typer.Option(metavar="N", help="Simulated motions per region.")] = 30
    points: Annotated[int, typer.Option(metavar="K", help="Via-points of each.")] = 6
    against: Annotated[str, typer.Option(metavar="RUN", help="The run folder of a global model.")] = ""
    seed: Seed = 1
    noise: _Noise = 2.0
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command(
    "local validate",
    epilog="Example: steelyard local validate arm.urdf bank --log A=a2.csv --log B=b2.csv -o validation",
)
@opt.taking(ValidateOptions)
def validate(o: ValidateOptions) -> None:
    """Validate a bank over many motions: errors, bands, transfer between regions, a global model beside it."""
    from steelyard.dynamics.model import Model
    from steelyard.local.files import load_bank, whole_model
    from steelyard.local.identify import GLOBAL
    from steelyard.local.validate import validate_bank

    def validated() -> BankValidation:
        found = load_bank(o.bank, o.described.robot(o.robot))
        return validate_bank(
            found,
            _source(found.robot, o.log, o.simulate, o.mapping, o.noise, o.seed),
            trajectories=o.trajectories,
            points=o.points,
            others={GLOBAL: whole_model(found, o.against)} if o.against else {},
            nominal=Model.nominal(found.robot) if found.robot.has_inertia else None,
            seed=o.seed,
        )

    o.end.deliver(validated)


@dataclass(frozen=True)
class RecalibrateOptions:
    """What may be typed."""

    robot: opt.RobotSource
    bank: BankFolder
    region: Annotated[str, typer.Argument(metavar="REGION", help="The region whose motion was played again.")]
    log: Annotated[list[str], typer.Option("--log", metavar="LOG", help="A new log of it. May be repeated.")]
    mapping: opt.MapFile = ""
    described: opt.Described = opt.DESCRIBED
    end: opt.End = opt.END


@command("local recalibrate", epilog="Example: steelyard local recalibrate arm.urdf bank A --log again.csv -o bank-may")
@opt.taking(RecalibrateOptions)
def recalibrate(o: RecalibrateOptions) -> None:
    """Make a region's model anew from a new log, and say what has drifted."""
    from steelyard.local.files import BankRun, load_bank
    from steelyard.local.recalibrate import recalibrate as again

    def recalibrated() -> BankRun:
        loaded = o.described.robot(o.robot)
        found = load_bank(o.bank, loaded)
        found.local(o.region)
        return BankRun(*again(found, o.region, opt.logs_from(o.log, loaded, o.mapping)))

    o.end.deliver(recalibrated)


def _source(robot: Robot, logs: list[str] | None, simulate: bool, mapping: str, noise: float, seed: int) -> Any:
    """A simulated arm, or logs by region."""
    if simulate == bool(logs):
        raise SteelyardError("Give logs (--log REGION=LOG, one for every region), or --simulate; one of the two.")
    if simulate:
        from steelyard.dynamics.model import Model
        from steelyard.local.identify import SimulatedArm, default_sensors

        return SimulatedArm(Model.nominal(robot), default_sensors(robot, noise), seed=seed)
    found: dict[str, list[Any]] = {}
    for text in logs or ():
        region, equals, path = text.partition("=")
        if not equals or not region or not path:
            raise SteelyardError(f"--log is '{text}'; write REGION=LOG, e.g. A=run.csv.")
        found.setdefault(region, []).extend(opt.logs_from([path], robot, mapping))
    return found
