"""Designs a motion for the identification of a region."""

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
from steelyard.ground.short_repr import short_repr
from steelyard.local.motions import MotionLike, Repeated, ViaPointMotion, home_posture, random_motion, sample_postures
from steelyard.local.region import CartesianRegion, JointRegion, Region
from steelyard.parameters.terms import Terms
from steelyard.regression.base_parameters import BaseParameters, base_parameters
from steelyard.robot.kinematics.inverse import InverseKinematics
from steelyard.robot.robot import Robot

# Number of random postures; their bounding box is searched if inverse kinematics lacks a closed form.
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
    """Find a program of via-points in a region with the largest log det(HᵀH), by a genetic algorithm.

    Follows Pedrocchi et al. 2013.

    Args:
        robot: The robot.
        region: Where the motion stays.
        terms: Joint terms that shall be identifiable as well.
        points: Number of via-points.
        optimiser: Genetic algorithm and its settings.
        weights: Scaling of H: "torque" multiplies by the torque limits (as printed), "torque-inverse" divides (as
            meant); None: no scaling. Ignored for a robot without torque limits.
        model: Predicts torques, which must stay within the limits.
        rate: Sampling rate of the comparison of candidates [Hz].
        seed: Seed of the search.
        run: More arguments of `evolve`: `patience`, `progress`, `checkpoint`, `threads`.
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
        regions=_cartesian_constraints(robot, region),
        seed=seed,
        **run,
    )


def _cartesian_constraints(robot: Robot, region: Region | None) -> list[Any]:
    """The region in the form that `excite` and `evolve` need: points and the box that must contain them."""
    if not isinstance(region, CartesianRegion):
        return []
    return [([region.point(robot)], box(region.lower.tolist(), region.upper.tolist()))]


def _genes(robot: Robot, region: Region, home: Array) -> Genes:
    """Return the ranges of the genes. A region in space gives tool poses: positions in its box, and orientations that
    differ from that of the home posture by at most the half-width. A region of joints, or a robot without closed-form
    inverse kinematics, gives ranges of joint positions."""
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


DESIGN_METHODS: tuple[str, ...] = ("gradient", "via-points", "evolved")
# Sampling rate of the comparison of candidates [Hz].
_RATE = 50.0
# A short search: in a small box the first rounds bring most of the gain.
_SHORT = SearchSettings(starts=3, survivors=(1, 1), sharpness=(4.0, 8.0, 16.0), repeats=2, iterations=40)


@short_repr
@dataclass(frozen=True)
class Design:
    """Settings for the design of motions for regions.

    Attributes:
        how: "gradient": a Fourier series, optimised by `steelyard.excite`. "via-points": the best of random via-point
            programs. "evolved": a via-point program from a genetic algorithm, repeated to fill the duration.
        duration: Length of the log [s].
        harmonics: Harmonics of the Fourier series ("gradient").
        candidates: Number of random programs ("via-points").
        points: Number of via-points ("evolved").
        population: Size of the population ("evolved").
        generations: Number of generations ("evolved").
        criterion: Criterion of the search ("gradient"); the others use "d".
        weights: Weights of the equations (see `excite`).
        search: Settings of the search ("gradient").
        seed: Seed of the search.
        patience: End after this many generations without progress ("evolved"); None: never.
        progress: Callback for the progress of the search; the search ends if it returns True.
        checkpoint: File to resume from if it exists; it is written after every stage. With several regions each region
            has its own file, "NAME-REGION.json".
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
        if self.how not in DESIGN_METHODS:
            raise UnknownNameError("way to design a motion", self.how, DESIGN_METHODS)

    def for_region(self, index: int, region: Region) -> Design:
        """Return the settings for one of several regions: own seed, own checkpoint, region's name in progress reports.

        Args:
            index: Number of the region.
            region: The region.
        """
        file = None if self.checkpoint is None else Path(self.checkpoint)
        own = None if file is None else file.with_name(f"{file.stem}-{region.name}{file.suffix}")
        report = self.progress

        def with_name(p: Progress) -> Any:
            return report(replace(p, stage=f"{region.name}: {p.stage}")) if report is not None else None

        return replace(self, seed=self.seed + index, checkpoint=own, progress=None if report is None else with_name)


@dataclass(frozen=True, eq=False)
class SearchedMotion:
    """A motion and, if it is from a genetic algorithm, the fitness of each generation."""

    motion: MotionLike
    fitness: Fitness | None = None


def design(
    robot: Robot,
    region: Region | None,
    terms: Terms | None = None,
    how: Design | None = None,
    model: Model | None = None,
    base: BaseParameters | None = None,
) -> SearchedMotion:
    """Design a motion for one region, within the robot's limits, and return how the search went.

    Args:
        robot: The robot.
        region: Where the motion stays; None: the whole range of the joints.
        terms: Joint terms that shall be identifiable as well; None: links only.
        how: Settings of the search.
        model: Predicts torques, which must stay within the limits.
        base: Base parameters of the same robot and terms; saves computing them.
    """
    settings = how or Design()
    if settings.how == "gradient":
        return SearchedMotion(_gradient_motion(robot, region, terms, settings, model))
    whole = region if region is not None else JointRegion.of(robot, "everywhere")
    if settings.how == "evolved":
        return _evolved_motion(robot, whole, terms, settings, model)
    return SearchedMotion(_best_program(robot, whole, base or base_parameters(robot, terms), settings, model))


def _gradient_motion(
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
        regions=_cartesian_constraints(robot, region),
        progress=how.progress,
        checkpoint=how.checkpoint,
        **more,
    ).trajectory


def _evolved_motion(
    robot: Robot, region: Region, terms: Terms | None, how: Design, model: Model | None
) -> SearchedMotion:
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
    programs = (
        _long_enough_motion(robot, region, rng, how.duration, home, model) for _ in range(max(how.candidates, 1))
    )
    return max(programs, key=lambda motion: information(base, motion, how.duration, weights))


def _long_enough_motion(
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
    """Compute log10 det(HᵀH) of a motion (Pedrocchi et al. 2013, eqs. 6 and 7).

    H are the base columns of the torque rows. The value is −∞ if a base parameter is not identifiable from the motion.

    Args:
        base: Base parameters.
        motion: The motion.
        duration: Length of the part that counts [s].
        weights: Factor for each joint's rows, shape (joints,).
    """
    t = np.arange(0.0, min(duration, motion.duration), 1.0 / _RATE)
    Y = base.structure.dynamics.torque_regressor(*motion.sample(t))
    H = (base.regressor_columns(Y) * weights[None, :, None])[:, list(base.robot.torque_used)].reshape(-1, base.rank)
    sign, log = np.linalg.slogdet(H.T @ H)
    return float(log / np.log(10.0)) if sign > 0 else -np.inf


def _row_weights(robot: Robot, which: str | None) -> Array:
    """Weights of the joints' rows: proportional to the torque limits ("torque", as printed) or to their inverse."""
    effort = np.array([j.effort for j in robot.joints])
    if which is None or not np.all((effort > 0.0) & np.isfinite(effort)):
        return np.ones(robot.dof)
    share = effort / effort.max()
    return np.asarray(share if which == "torque" else 1.0 / share)
