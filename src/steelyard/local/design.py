"""`design`: the motion that a region is identified with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.errors import UnknownNameError
from steelyard.excitation import Criterion, Plan, SearchSettings, box, default_limits, excite
from steelyard.excitation.evolution import Genetic, ViaPoints, evolve
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.fitness import Fitness
from steelyard.excitation.interpolator import ProgramRegion as Genes
from steelyard.excitation.interpolator.program_text import rpy
from steelyard.excitation.search import Progress
from steelyard.ground.arrays import Array
from steelyard.local.motions import MotionLike, Repeated, ViaPointMotion, home_posture, random_motion, sample_postures
from steelyard.local.region import CartesianRegion, JointRegion, Region
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.kinematics.inverse import InverseKinematics
from steelyard.robot.robot import Robot

# Postures whose box is searched where poses have no closed form.
_SAMPLES = 100
_SEED = 0


def evolved_plan(
    robot: Robot,
    region: Region,
    terms: Terms | None = None,
    *,
    points: int = 6,
    optimiser: Genetic | None = None,
    weights: str | None = "torque",
    model: Model | None = None,
    rate: float = 50.0,
    seed: int = 0,
    **run: Any,
) -> Plan:
    """The best program of `points` via-points in a `region` of `robot` by log det(HᵀH), bred as Pedrocchi et al. do.

    `weights` scale H by nominal torques where these are known ("torque": as printed; "torque-inverse": as meant; None:
    not at all). `terms`, `optimiser`, `model`, `rate` (Hz), `seed` and what else may be given (`run`: `patience`,
    `progress`, `checkpoint`, `threads`) are those of `evolve`.
    """
    limits = with_jerk(default_limits(robot))
    finite = bool(np.all(np.isfinite(limits.tau)))
    home = home_posture(robot, region)
    tip = region.tip(robot) if isinstance(region, CartesianRegion) else None
    at = {} if tip is None else {"link": tip.link, "tool": tip.tool}
    return evolve(
        robot,
        ViaPoints(robot, _genes(robot, region, home), points, limits, start=home, **at),  # type: ignore[arg-type]
        optimiser=optimiser or Genetic(),
        terms=terms,
        rate=rate,
        criterion="d",
        weights=weights if finite else None,
        model=model,
        regions=_in_space(robot, region),
        seed=seed,
        **run,
    )


def _in_space(robot: Robot, region: Region | None) -> list[Any]:
    """The region as `excite` and `evolve` know it: points, and the box that they stay in."""
    if not isinstance(region, CartesianRegion):
        return []
    return [([region.point(robot)], box(region.lower.tolist(), region.upper.tolist()))]


def _genes(robot: Robot, region: Region, home: Array) -> Genes:
    """The box of genes: poses in a box of space, orientations within the region's half-width about the home posture's;
    postures where the region is one of joints, or where poses have no closed form."""
    if not isinstance(region, CartesianRegion):
        return Genes(region.lower, region.upper, space="joints")
    tip = region.tip(robot)
    if InverseKinematics(tip).arm is None:
        q = sample_postures(robot, region, _SAMPLES, np.random.default_rng(_SEED), home)
        return Genes(q.min(axis=0), q.max(axis=0), space="joints")
    turn: Array = np.array(rpy(tip.forward(home)[0]))
    low = np.concatenate([region.lower, turn - region.half_width])
    high = np.concatenate([region.upper, turn + region.half_width])
    return Genes(low, high)


HOWS: tuple[str, ...] = ("gradient", "via-points", "evolved")
# Rows per second at which candidates are compared.
_RATE = 50.0
# A short search: most of what there is to gain in a small box is gained in the first rounds.
_SHORT = SearchSettings(starts=3, survivors=(1, 1), sharpness=(4.0, 8.0, 16.0), repeats=2, iterations=40)


@dataclass(frozen=True)
class Design:
    """How motions for regions are made.

    "gradient": a Fourier series of `harmonics`, optimised (`steelyard.excite`) for `criterion` inside the region.
    "via-points": the best of `candidates` random via-point programs by the same criterion's D-value, each of as many
    via-points as fill the time. "evolved": a program of `points` via-points, bred by a genetic algorithm of
    `population` over `generations`, ended where `patience` of them brought nothing (None: never), and repeated to fill
    the time. `duration` (s) is that of the log; `weights` are the equations' (see `excite`).

    A search tells `progress` how far it is, and ends where that returns True; it goes on from `checkpoint` where this
    file exists, and writes it after every stage. With several regions each has its own, "NAME-REGION.json".
    """

    how: str = "gradient"
    duration: float = 20.0
    harmonics: int = 5
    candidates: int = 10
    points: int = 6
    population: int = 150
    generations: int = 100
    criterion: str | Criterion = "d"
    weights: str | None = "torque-inverse"
    search: SearchSettings = _SHORT
    seed: int = 0
    patience: int | None = None
    progress: Callable[[Progress], Any] | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        if self.how not in HOWS:
            raise UnknownNameError("way to design a motion", self.how, HOWS)

    def for_region(self, index: int, region: Region) -> Design:
        """The same for one `region` of several: a seed and a checkpoint of its own, its name in what is told. `index`
        counts the regions."""
        file = None if self.checkpoint is None else Path(self.checkpoint)
        own = None if file is None else file.with_name(f"{file.stem}-{region.name}{file.suffix}")
        tell = self.progress

        def named(p: Progress) -> Any:
            return tell(replace(p, stage=f"{region.name}: {p.stage}")) if tell is not None else None

        return replace(self, seed=self.seed + index, checkpoint=own, progress=None if tell is None else named)


@dataclass(frozen=True, eq=False)
class SearchedMotion:
    """A `motion` and, where a population was bred, its `fitness` generation by generation."""

    motion: MotionLike
    fitness: Fitness | None = None


def design(
    robot: Robot,
    region: Region | None,
    terms: Terms | None = None,
    how: Design | None = None,
    model: Model | None = None,
    base: BaseParameters | None = None,
) -> MotionLike:
    """A motion for one `region` of `robot` (None: the whole range of its joints), within the robot's limits.

    `terms` are to be seen as well (None: links alone), `how` says by which search (None: the usual one), `model`
    foretells torques, `base` are known base parameters of the same robot and terms, which saves finding them.
    """
    return design_motion(robot, region, terms, how, model, base).motion


def design_motion(
    robot: Robot,
    region: Region | None,
    terms: Terms | None = None,
    how: Design | None = None,
    model: Model | None = None,
    base: BaseParameters | None = None,
) -> SearchedMotion:
    """Design a motion as `design` does, and tell how the search went.

    Args:
        robot: The robot.
        region: Where the motion stays; None: the whole range of the joints.
        terms: Joint terms that are to be seen as well; None: links alone.
        how: By which search; None: the usual one.
        model: Foretells torques.
        base: Known base parameters of the same robot and terms, which saves finding them.
    """
    settings = how or Design()
    if settings.how == "gradient":
        return SearchedMotion(_optimised(robot, region, terms, settings, model))
    whole = region if region is not None else JointRegion.of(robot, "everywhere")
    if settings.how == "evolved":
        return _bred(robot, whole, terms, settings, model)
    return SearchedMotion(_best_program(robot, whole, base or base_parameters(robot, terms), settings, model))


def _optimised(
    robot: Robot, region: Region | None, terms: Terms | None, how: Design, model: Model | None
) -> MotionLike:
    more: dict[str, Any] = {}
    if isinstance(region, CartesianRegion):
        more["posture"] = home_posture(robot, region)
    elif region is not None:
        own = np.array([[j.lower, j.upper] for j in robot.joints])
        low, high = np.maximum(region.lower, own[:, 0]), np.minimum(region.upper, own[:, 1])
        more["limits"] = {"q": np.column_stack([low, high])}
    finite = all(0.0 < j.effort < np.inf for j in robot.joints)
    return excite(
        robot,
        terms=terms,
        harmonics=how.harmonics,
        duration=how.duration,
        rate=_RATE,
        criterion=how.criterion,
        weights=how.weights if finite else None,
        model=model,
        seed=how.seed,
        search=how.search,
        regions=_in_space(robot, region),
        progress=how.progress,
        checkpoint=how.checkpoint,
        **more,
    ).trajectory


def _bred(robot: Robot, region: Region, terms: Terms | None, how: Design, model: Model | None) -> SearchedMotion:
    plan = evolved_plan(
        robot,
        region,
        terms,
        points=how.points,
        optimiser=Genetic(population=how.population, generations=how.generations),
        weights=how.weights,
        model=model,
        rate=_RATE,
        seed=how.seed,
        patience=how.patience,
        progress=how.progress,
        checkpoint=how.checkpoint,
    )
    times = int(np.ceil(how.duration / plan.trajectory.duration))
    return SearchedMotion(Repeated(plan.trajectory, times), plan.fitness)


def _best_program(robot: Robot, region: Region, base: BaseParameters, how: Design, model: Model | None) -> MotionLike:
    rng = np.random.default_rng(how.seed)
    home = home_posture(robot, region)
    weights = _row_weights(robot, how.weights)
    found = (_filling_motion(robot, region, rng, how.duration, home, model) for _ in range(max(how.candidates, 1)))
    return max(found, key=lambda motion: information(base, motion, how.duration, weights))


def _filling_motion(
    robot: Robot, region: Region, rng: np.random.Generator, duration: float, home: Array, model: Model | None
) -> ViaPointMotion:
    """A random via-point motion that takes at least `duration` seconds."""
    points = 6
    while True:
        motion = random_motion(robot, region, rng, points=points, home=home, model=model)
        if motion.duration >= duration:
            return motion
        points = int(np.ceil(1.1 * points * duration / motion.duration)) + 1


def information(base: BaseParameters, motion: MotionLike, duration: float, weights: Array) -> float:
    """log10 det(HᵀH), H being the `base` columns of the torque rows of `motion`, times `weights` joint by joint. Of the
    first `duration` s. Pedrocchi et al. 2013, eqs. (6), (7); −∞ where the motion leaves something unseen."""
    t = np.arange(0.0, min(duration, motion.duration), 1.0 / _RATE)
    Y = base.structure.dynamics.torque_regressor(*motion.sample(t))
    H = (base.regressor_columns(Y) * weights[None, :, None])[:, list(base.robot.torque_used)].reshape(-1, base.rank)
    sign, log = np.linalg.slogdet(H.T @ H)
    return float(log / np.log(10.0)) if sign > 0 else -np.inf


def _row_weights(robot: Robot, which: str | None) -> Array:
    """Of each joint's rows: by the torques that it states to have, as printed ("torque") or the other way round."""
    effort = np.array([j.effort for j in robot.joints])
    if which is None or not np.all((effort > 0.0) & np.isfinite(effort)):
        return np.ones(robot.dof)
    share = effort / effort.max()
    return np.asarray(share if which == "torque" else 1.0 / share)
