"""Identifies one model per region of a robot's workspace, and a global model for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import LocalError, UnknownNameError
from steelyard.ground.progress import ProgressCallback, part, reports_progress, steps
from steelyard.ground.short_repr import short_repr
from steelyard.identification.identify import identify
from steelyard.local.bank import BLEND, Bank, LocalModel
from steelyard.local.design import Design, SearchedMotion, design
from steelyard.local.motions import MotionLike
from steelyard.local.region import JointRegion, Region
from steelyard.local.regions import check_regions
from steelyard.local.run_folders import RegionMotions
from steelyard.parameters.term import Term
from steelyard.parameters.terms import Terms, identification_terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.robot import Robot
from steelyard.signals.log import Log
from steelyard.simulation.play import ENCODER, play
from steelyard.simulation.sensors import Sensors
from steelyard.study import Study

# Plays a motion and returns the log: the robot's driver or a simulated arm. The second argument is the number of the
# run.
Player = Callable[[MotionLike, int], Log]


def default_sensors(robot: Robot, percent: float = 2.0) -> Sensors:
    """Return the sensors of a simulated robot: 19-bit encoders and torque noise.

    Args:
        robot: The robot.
        percent: Standard deviation of the torque noise, in percent of the torque limit (0.1 N m or N without a limit).
    """
    noise = tuple(0.01 * percent * j.effort if np.isfinite(j.effort) and j.effort > 0 else 0.1 for j in robot.joints)
    return Sensors(position_resolution=ENCODER, torque_noise=noise)


@short_repr
@dataclass(frozen=True, eq=False)
class SimulatedArm:
    """Plays motions under computed torque control and returns their logs.

    The model may have friction and elasticity that the fit does not model.

    Attributes:
        truth: Model of the simulated arm.
        sensors: Sensors of the log; None: `default_sensors`.
        rate: Sampling rate of the log [Hz].
        substeps: Steps of control and integration between two samples.
        bandwidth_rad_s: Bandwidth of the controller [rad/s].
        seed: Seed of the noise; each run has different noise.
        smoothing: Width of the smoothed friction at zero speed [rad/s].
    """

    truth: Model
    sensors: Sensors | None = None
    rate: float = 500.0
    substeps: int = 4
    bandwidth_rad_s: float = 20.0
    seed: int = 0
    smoothing: float = field(default=1e-2)

    def __call__(self, motion: MotionLike, run: int) -> Log:
        """Play a motion and return its log.

        Args:
            motion: The motion.
            run: Number of the run, which selects its noise.
        """
        sensors = self.sensors if self.sensors is not None else default_sensors(self.truth.robot)
        simulated = play(self.truth, motion, self.rate, bandwidth_rad_s=self.bandwidth_rad_s, loops=self.substeps,
                                       smoothing=self.smoothing)  # fmt: skip
        return simulated.log(sensors=replace(sensors, seed=1000 * self.seed + run))


# Sources of the logs: a model to simulate, the robot's driver, or logs by region.
PlantLike = Model | Player
Logs = Mapping[str, Log | Sequence[Log]]
GLOBAL = "global"
# A log with a smaller share of samples inside its region probably belongs to another region.
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
    """Identify one model for each region.

    Args:
        robot: The robot.
        source: A `Model` to simulate, a function that plays a motion and returns the log (the robot's driver), or logs
            by region name.
        regions: Regions where the models shall be valid.
        terms: Joint terms, as for `identify`.
        motions: Motions by region name, or settings for their design (default: optimised by gradient).
        blend: Models are blended over this distance on both sides of a border [m, rad].
        nominal: Model that keeps designed motions within the torque limits (default: the robot's own).
        base: Base parameters of the same robot and terms; saves computing them.
        progress: Callback for progress (`steelyard.ground.progress`).
        options: Arguments of `identify`: `physical`, `estimator`, `prior`, `preparation`, ….
    """
    checked = check_regions(robot, regions)
    bound = identification_terms(robot, terms)
    if isinstance(source, Mapping):
        logs = _logs_by_region(source, checked)
        known = motions if isinstance(motions, Mapping) else {}
    else:
        with part(0.0, 0.5):
            known = _region_motions(robot, checked, bound, motions, nominal)
        player = player_of(source)
        seconds = np.inf if isinstance(motions, Mapping) else (motions or Design()).duration
        runs = steps(enumerate(checked), "Playing motions", lambda one: f"region {one[1].name}", 0.5, 0.7)
        logs = {r.name: [first_seconds(player(known[r.name], k), seconds)] for k, r in runs}
    shared = base or base_parameters(robot, bound)
    fits = steps(checked, "Identifying", lambda r: f"region {r.name}", 0.0 if isinstance(source, Mapping) else 0.7)
    models = [fit_region(robot, r, logs[r.name], bound, known.get(r.name), shared, **options) for r in fits]
    return Bank(models[0].model.robot, tuple(models), blend)


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
    """Identify one model for the whole workspace, to compare it with local ones.

    Args:
        robot: The robot.
        source: As for `identify_locally`; with logs, all of them are used.
        terms: Joint terms, as for `identify`.
        motion: Motion through the whole workspace, or settings for its design.
        nominal: Model that keeps a designed motion within the torque limits (default: the robot's own).
        run: Number of the run, which selects its noise.
        base: Base parameters of the same robot and terms; saves computing them.
        options: Arguments of `identify`.
    """
    bound = identification_terms(robot, terms)
    everywhere = JointRegion.of(robot, GLOBAL)
    if isinstance(source, Mapping):
        logs = [log for one in source.values() for log in ([one] if isinstance(one, Log) else one)]
        return fit_region(robot, everywhere, logs, bound, None, base, **options)
    seconds = np.inf
    if motion is None or isinstance(motion, Design):
        seconds = (motion or Design()).duration
        motion = design(robot, None, bound, motion, _nominal(robot, nominal)).motion
    logs = [first_seconds(player_of(source)(motion, run), seconds)]
    return fit_region(robot, everywhere, logs, bound, motion, base, **options)


def _region_motions(
    robot: Robot,
    regions: Sequence[Region],
    terms: Terms,
    motions: Mapping[str, MotionLike] | Design | None,
    nominal: Model | None = None,
) -> dict[str, MotionLike]:
    """Return a motion for every region, from the mapping or designed."""
    if isinstance(motions, Mapping):
        for region in regions:
            if region.name not in motions:
                raise UnknownNameError("motion for region", region.name, motions)
        return {region.name: motions[region.name] for region in regions}
    return {
        name: designed.motion
        for name, designed in _design_all(robot, regions, terms, motions or Design(), nominal).items()
    }


def _design_all(
    robot: Robot, regions: Sequence[Region], terms: Terms, how: Design, nominal: Model | None = None
) -> dict[str, SearchedMotion]:
    model = _nominal(robot, nominal)
    numbered = steps(enumerate(regions), "Designing motions", lambda one: f"region {one[1].name}")
    return {r.name: design(robot, r, terms, how.for_region(k, r), model) for k, r in numbered}


def design_regions(
    robot: Robot,
    regions: Sequence[Region],
    terms: Sequence[str | Term] | Terms | None = None,
    how: Design | None = None,
) -> RegionMotions:
    """Design a motion inside every region, as `steelyard local design` does.

    Args:
        robot: The robot.
        regions: Where the motions shall stay.
        terms: Joint terms that shall be identifiable, as for `identify`.
        how: Settings of the design (default: optimised by gradient).
    """
    designed = _design_all(robot, regions, identification_terms(robot, terms), how or Design())
    fitness = {name: one.fitness for name, one in designed.items() if one.fitness is not None}
    return RegionMotions(robot, regions, {name: one.motion for name, one in designed.items()}, fitness)


def fit_region(
    robot: Robot, region: Region, logs: Sequence[Log], terms: Terms, motion: MotionLike | None,
    base: BaseParameters | None = None, **options: Any,
) -> LocalModel:  # fmt: skip
    """Identify the model of one region.

    Args:
        robot: The robot.
        region: The region.
        logs: Logs inside the region.
        terms: Joint terms.
        motion: Motion that was played, if known.
        base: Base parameters of the same robot and terms; saves computing them.
        options: Arguments of `identify`.
    """
    inside = np.concatenate([region.contains(robot, log.q) for log in logs])
    share = float(inside.mean())
    if share < _LEAST_INSIDE and region.name != GLOBAL:
        raise LocalError(
            f"Only {100 * share:.0f} % of the samples are inside region '{region.name}'. Check that the log belongs "
            "to this region and that the region is defined in the right frame."
        )
    # All regions need the same terms, or their models cannot be blended.
    study = replace(Study.of(robot, logs, terms, options.get("preparation")), known_base=base)
    found = identify(
        robot, study, terms=terms, names=[region.name] * len(logs), files=False, **{"plain": True} | options
    )
    seconds = float(sum(log.t[-1] - log.t[0] for log in logs))
    return LocalModel.of(region, found, seconds, share, motion)


def first_seconds(log: Log, seconds: float) -> Log:
    """Return the beginning of a log, so that models can be compared on equal amounts of data.

    Args:
        log: The log.
        seconds: Length of the result [s].
    """
    count = int(np.searchsorted(log.t, log.t[0] + seconds + 1e-9, side="right"))
    if count >= len(log):
        return log
    signals = {name: None if x is None else x[:count] for name, x in log.signals.items()}
    return Log(log.joints, log.t[:count], **signals, meta=log.meta)  # type: ignore[arg-type]


def player_of(source: PlantLike) -> Player:
    """Return a simulated arm if `source` is a model, else `source` itself."""
    return SimulatedArm(source) if isinstance(source, Model) else source


def _nominal(robot: Robot, model: Model | None) -> Model | None:
    return model if model is not None else Model.nominal(robot) if robot.has_inertia else None


def _logs_by_region(source: Logs, regions: Sequence[Region]) -> dict[str, list[Log]]:
    names = [region.name for region in regions]
    for name in source:
        if name not in names:
            raise UnknownNameError("region", name, names)
    for name in names:
        if name not in source:
            raise LocalError(f"No log for region '{name}'; add one, or leave the region out.")
    return {name: [one] if isinstance(one := source[name], Log) else list(one) for name in names}
