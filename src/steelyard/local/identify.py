"""`identify_locally`: one model per region of a robot's workspace, and one for comparison that is for all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError, UnknownNameError
from steelyard.ground.progress import ProgressCallback, part, reports_progress, steps
from steelyard.ground.renamed import renamed
from steelyard.identification.identify import identify
from steelyard.local.bank import BLEND, Bank, LocalModel
from steelyard.local.design import Design, SearchedMotion, design, design_motion
from steelyard.local.files import RegionMotions
from steelyard.local.motions import MotionLike
from steelyard.local.region import JointRegion, Region
from steelyard.local.regions import checked_regions
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, identification_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation.play import ENCODER, play
from steelyard.simulation.sensors import Sensors
from steelyard.study import Study

# What plays motions: your robot's driver, or a simulated arm. It is given the motion and a number that differs from
# run to run, and returns the log.
Player = Callable[[MotionLike, int], Log]


def default_sensors(robot: Robot, percent: float = 2.0) -> Sensors:
    """Of `robot`: 19-bit encoders, torque noise in `percent` of the stated torque (0.1 N m or N if none is stated)."""
    noise = tuple(0.01 * percent * j.effort if np.isfinite(j.effort) and j.effort > 0 else 0.1 for j in robot.joints)
    return Sensors(position_resolution=ENCODER, torque_noise=noise)


@renamed(bandwidth="bandwidth_rad_s")
@dataclass(frozen=True, eq=False)
class SimulatedArm:
    """Plays motions under computed torque control; `truth` may rub and bend in ways that the fit knows nothing of.

    `rate` (Hz) is that of the log, `substeps` steps of control and integration lie between two samples. A call plays a
    `motion` and gives its log; `run` counts the calls, so that each has noise of its own.
    """

    truth: Model
    sensors: Sensors | None = None
    rate: float = 500.0
    substeps: int = 4
    bandwidth_rad_s: float = 20.0
    seed: int = 0
    smoothing: float = field(default=1e-2)

    def __call__(self, motion: MotionLike, run: int) -> Log:
        sensors = self.sensors if self.sensors is not None else default_sensors(self.truth.robot)
        run_of = play(self.truth, motion, self.rate, bandwidth_rad_s=self.bandwidth_rad_s, loops=self.substeps,
                      smoothing=self.smoothing)  # fmt: skip
        return run_of.log(sensors=replace(sensors, seed=1000 * self.seed + run))


# What local models are made from: a model that is simulated, your robot's driver, or logs by region.
PlantLike = Model | Player
Logs = Mapping[str, Log | Sequence[Log]]
GLOBAL = "global"
# A log of which less than this lies in its region is probably another region's.
_LEAST_INSIDE = 0.5


@reports_progress
def identify_locally(
    robot: Robot,
    source: PlantLike | Logs,
    regions: Sequence[Region],
    *,
    terms: Sequence[str | Term] | Terms | None = None,
    motions: Mapping[str, MotionLike] | Design | None = None,
    blend: float = BLEND,
    nominal: Model | None = None,
    base: BaseParameters | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Bank:
    """One model for each region.

    Args:
        robot: the robot.
        source: a `Model` (it is simulated), a function that plays a motion and returns the log (your robot's driver),
            or logs by the names of the regions.
        regions: where the models shall hold.
        terms: joint terms, as for `identify`.
        motions: what to play in each region, by name, or how to design it (default: optimised by gradient).
        blend: m (rad): over this distance on both sides of a border one model fades into the next.
        nominal: a model by which designed motions keep to the torques that the robot has (default: the robot's own).
        base: base parameters of the same robot and terms, where they are known: saves finding them.
        progress: told how far it is (`steelyard.ground.progress`); None: nobody.
        options: of `identify`: `physical`, `estimator`, `prior`, `preparation`, ….
    """
    where = checked_regions(robot, regions)
    bound = identification_terms(robot, terms)
    if isinstance(source, Mapping):
        logs = _logs_by_region(source, where)
        known = motions if isinstance(motions, Mapping) else {}
    else:
        with part(0.0, 0.5):
            known = _planned(robot, where, bound, motions, nominal)
        player = player_of(source)
        seconds = np.inf if isinstance(motions, Mapping) else (motions or Design()).duration
        played = steps(enumerate(where), "Playing motions", lambda one: f"region {one[1].name}", 0.5, 0.7)
        logs = {r.name: [beginning(player(known[r.name], k), seconds)] for k, r in played}
    shared = base or base_parameters(robot, bound)
    fitted = steps(where, "Identifying", lambda r: f"region {r.name}", 0.0 if isinstance(source, Mapping) else 0.7)
    made = [fit_region(robot, r, logs[r.name], bound, known.get(r.name), shared, **options) for r in fitted]
    return Bank(made[0].model.robot, tuple(made), blend)


def identify_globally(
    robot: Robot,
    source: PlantLike | Logs,
    *,
    terms: Sequence[str | Term] | Terms | None = None,
    motion: MotionLike | Design | None = None,
    nominal: Model | None = None,
    run: int = 900,
    base: BaseParameters | None = None,
    **options: Any,
) -> LocalModel:
    """One model for the whole workspace, to hold local ones against: from a motion over all of it, or from all logs.

    `robot`, `source`, `terms`, `nominal`, `base` and `options` are those of `identify_locally`; `motion` is what is
    played, or how to design it (None: as usual); `run` is its number, for its noise.
    """
    bound = identification_terms(robot, terms)
    everywhere = JointRegion.of(robot, GLOBAL)
    if isinstance(source, Mapping):
        logs = [log for one in source.values() for log in ([one] if isinstance(one, Log) else one)]
        return fit_region(robot, everywhere, logs, bound, None, base, **options)
    seconds = np.inf
    if motion is None or isinstance(motion, Design):
        seconds = (motion or Design()).duration
        motion = design(robot, None, bound, motion, _nominal(robot, nominal))
    logs = [beginning(player_of(source)(motion, run), seconds)]
    return fit_region(robot, everywhere, logs, bound, motion, base, **options)


def _planned(
    robot: Robot,
    regions: Sequence[Region],
    terms: Terms,
    motions: Mapping[str, MotionLike] | Design | None,
    nominal: Model | None = None,
) -> dict[str, MotionLike]:
    """A motion for every region: those given, or designed ones."""
    if isinstance(motions, Mapping):
        for region in regions:
            if region.name not in motions:
                raise UnknownNameError("motion for region", region.name, motions)
        return {region.name: motions[region.name] for region in regions}
    return {name: made.motion for name, made in _designed(robot, regions, terms, motions or Design(), nominal).items()}


def _designed(
    robot: Robot, regions: Sequence[Region], terms: Terms, how: Design, nominal: Model | None = None
) -> dict[str, SearchedMotion]:
    model = _nominal(robot, nominal)
    numbered = steps(enumerate(regions), "Designing motions", lambda one: f"region {one[1].name}")
    return {r.name: design_motion(robot, r, terms, how.for_region(k, r), model) for k, r in numbered}


def design_regions(
    robot: Robot,
    regions: Sequence[Region],
    terms: Sequence[str | Term] | Terms | None = None,
    how: Design | None = None,
) -> RegionMotions:
    """A motion inside every region, to be played on the robot: what `steelyard local design` does.

    Args:
        robot: the robot.
        regions: where the motions shall stay.
        terms: joint terms that are to be identified, as for `identify`.
        how: how they are designed (default: optimised by gradient).
    """
    made = _designed(robot, regions, identification_terms(robot, terms), how or Design())
    fitness = {name: one.fitness for name, one in made.items() if one.fitness is not None}
    return RegionMotions(robot, regions, {name: one.motion for name, one in made.items()}, fitness)


def fit_region(
    robot: Robot, region: Region, logs: Sequence[Log], terms: Terms, motion: MotionLike | None,
    base: BaseParameters | None = None, **options: Any,
) -> LocalModel:  # fmt: skip
    """Identify `robot` with `terms` from `logs` of one `region`, where `motion` was played; `options` of `identify`,
    `base` as for `identify_locally`."""
    inside = np.concatenate([region.contains(robot, log.q) for log in logs])
    share = float(inside.mean())
    if share < _LEAST_INSIDE and region.name != GLOBAL:
        raise LocalError(
            f"Only {100 * share:.0f} % of the log lies in region '{region.name}'; is it the log of another region, or "
            "is the region about another frame?"
        )
    # Models of all regions have the same terms, or they could not be joined.
    study = replace(Study.of(robot, logs, terms, options.get("preparation")), known_base=base)
    found = identify(
        robot, study, terms=terms, names=[region.name] * len(logs), files=False, **{"plain": True} | options
    )
    seconds = float(sum(log.t[-1] - log.t[0] for log in logs))
    return LocalModel.of(region, found, seconds, share, motion)


def beginning(log: Log, seconds: float) -> Log:
    """The first `seconds` of a `log`: models that are compared shall have seen the same amount of data."""
    count = int(np.searchsorted(log.t, log.t[0] + seconds + 1e-9, side="right"))
    if count >= len(log):
        return log
    signals = {name: None if x is None else x[:count] for name, x in log.signals.items()}
    return Log(log.joints, log.t[:count], **signals, meta=log.meta)  # type: ignore[arg-type]


def player_of(source: PlantLike) -> Player:
    """A simulated arm where `source` is a model; what plays already is left alone."""
    return SimulatedArm(source) if isinstance(source, Model) else source


def _nominal(robot: Robot, given: Model | None) -> Model | None:
    return given if given is not None else Model.nominal(robot) if robot.has_inertia else None


def _logs_by_region(source: Logs, regions: Sequence[Region]) -> dict[str, list[Log]]:
    names = [region.name for region in regions]
    for name in source:
        if name not in names:
            raise UnknownNameError("region", name, names)
    for name in names:
        if name not in source:
            raise LocalError(f"There is no log for region '{name}'; give one, or leave the region out.")
    return {name: [one] if isinstance(one := source[name], Log) else list(one) for name in names}
