"""`excite`: the motion that makes a robot's parameters identifiable, within its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.dynamics.model import Model
from steelyard.errors import ExcitationError, UnknownNameError
from steelyard.excitation._search_state import search_key
from steelyard.excitation.constraints import Constraint, Limits
from steelyard.excitation.constraints._space import collision_constraints, free_spaces
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.criteria import Criterion
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.plan import Plan
from steelyard.excitation.problem import FreeSpace, SearchProblem, families_of, requirements
from steelyard.excitation.search import Progress, Search, SearchSettings
from steelyard.excitation.settle import find_centre
from steelyard.excitation.trajectories import Acceleration, BSpline, Family, Fourier, SplinedQuintic
from steelyard.excitation.trajectories.fixed import Idle
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.field import Field
from steelyard.parameters.terms import TermsLike, as_terms
from steelyard.regression.factor import Factor
from steelyard.robot.free import refuse_free
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot

FAMILIES = ("fourier", "bspline", "quintic", "acceleration")
_MOST_SAMPLES = 1e6
OPTIMISERS = ("gradient", "ga", "cma")


def excite(
    robot: RobotLike,
    *,
    terms: TermsLike | None = None,
    harmonics: int = 5,
    duration: float = 10.0,
    rate: float = 100.0,
    limits: Mapping[str, ArrayLike] | Limits | None = None,
    criterion: str | Criterion = "cond",
    scaling: str = "natural",
    family: str | Mapping[str, str] | Family | Sequence[Family] | None = None,
    joints: Sequence[str] | None = None,
    posture: ArrayLike | None = None,
    equations: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None,
    wanted: Sequence[str] | None = None,
    weights: str | ArrayLike | None = None,
    prior: Array | Factor | None = None,
    scheme: str = "dynamic",
    window: float | None = None,
    long_windows: bool = False,
    model: Model | None = None,
    torque_margin: float = 0.0,
    box: Sequence[float] | None = None,
    frame: str = "",
    floor: float | None = None,
    collision: bool | None = False,
    clearance: float = 0.02,
    packages: Sequence[str | Path] = (),
    srdf: str | Path | None = None,
    regions: Sequence[FreeSpace] = (),
    bandwidth_hz: float | None = None,
    constraints: Sequence[Constraint | Callable[[Sequence[Family]], Constraint]] = (),
    optimiser: str = "gradient",
    via_points: int = 0,
    generations: int = 100,
    population: int = 150,
    patience: int | None = None,
    seed: int = 0,
    search: SearchSettings | None = None,
    progress: Callable[[Progress], Any] | None = None,
    checkpoint: str | Path | None = None,
) -> Plan:
    """Design a motion for identification.

    Args:
        robot: The robot, as `load_robot` takes it; torque rows of joints with unused torque do not count.
        terms: Joint terms to be identified with the links, "viscous,coulomb" or objects (default none).
        harmonics: Harmonics of a Fourier series that starts and ends at rest.
        duration: Duration of the motion [s].
        rate: Sampling rate [Hz].
        limits: `q` (± or pairs), `dq`, `ddq`, `jerk`, `tau`, `power`, one number or one per joint; the robot's own
            limits replace missing ones (see `default_limits`; acceleration: three times the velocity limit per second).
        criterion: "cond", "information", "frobenius", "d", "a", "e", "sigma", or a `Criterion`.
        scaling: Scaling of the columns: "natural", "unit" (norms), or "orthonormal" (basis of all identifiable
            combinations).
        family: Other motions than a Fourier series: "bspline", "quintic" or "acceleration" of as many `harmonics`
            (spans,
            knots), names of families by joint (Fourier series for the others), a family, or one per joint.
        joints: The joints that move (default all); the others stay at `posture`, or at an optimised position.
        posture: Preferred posture in the middle of the motion, one position per joint [rad, m]; exact for joints that
            do not move.
        equations: The joints whose torque rows count (default all used ones).
        parameters: Design for these base parameters alone; the others are known.
        wanted: Only these parameters count, but the others are estimated with them.
        weights: Weights of the equations: numbers (1/σ of each joint), "torque" (Pedrocchi 2013 as printed) or
            "torque-inverse" (the normalisation that the paper describes).
        prior: Known information: the factor of an earlier log, or a matrix that is added to WᵀW.
        scheme: "dynamic" (torque rows), "momentum" or "energy" (integrals over windows).
        window: Length of the windows [s] (default: one sample).
        long_windows: Let all windows start at the beginning.
        model: Model for torque and power limits (default: the robot's nominal model, if inertias are known).
        torque_margin: Share of the torque limits reserved for errors of the nominal model.
        box: (x0, x1, y0, y1, z0, z1) [m] in the base frame: the origin of link `frame` stays inside.
        frame: Link of the box (default: the last one).
        floor: Smallest height of all link origins [m].
        collision: Keep bodies `clearance` apart, by the collision geometry in the robot's own URDF: True, False, or
            None:
            if it has any (`notes` of the plan name unchecked bodies). Needs Pinocchio.
        clearance: Smallest distance of bodies [m]; bodies that are always nearer must not touch.
        packages: Folders with `package://` meshes (default: those above the robot's file).
        srdf: MoveIt's file of the robot: pairs of bodies that it disables are left out.
        regions: Further (points, planes); the points must stay inside.
        bandwidth_hz: Highest allowed frequency of a harmonic [Hz].
        constraints: Further constraints, or functions that make them for the families (`collision(…)`).
        optimiser: "gradient", or a population: "ga" (genetic) or "cma" (covariance adaptation, CMA-ES).
        via_points: Number of via-points of programs in `box` or in joint space, for populations; 0: the family's
            coefficients.
        generations: Number of generations of a population.
        population: Number of motions in a generation.
        patience: Number of generations with a gain below 1 % after which a population stops (default: never).
        seed: Seed of all random numbers; the same seed gives the same motion.
        search: Effort of the search by gradients.
        progress: Function that gets a `Progress` after every stage; return True to stop with the best motion so far.
        checkpoint: JSON file written after every stage; an existing one is resumed.
    """
    robot = refuse_free(as_robot(robot), "motions for free joints cannot be designed", "lock the base.")
    terms = as_terms(robot, terms)
    _check_times(duration, rate)
    numbers = {"harmonics": (harmonics, 1, 1000), "via_points": (via_points, 0, 1000), "seed": (seed, 0, 2**63),
               "generations": (generations, 1, 10**6), "population": (population, 1, 10**6)}  # fmt: skip
    for name, (value, low, high) in numbers.items():
        Field(value, name, error=ExcitationError).whole(low, high)
    for name, length in {"floor": floor, "clearance": clearance, "torque_margin": torque_margin}.items():
        Field(length or 0.0, name, error=ExcitationError).number()
    bounds = limits_from(robot, limits)
    if isinstance(family, Mapping):
        kinds = [FAMILIES[0]] * robot.dof
        for name, kind in family.items():
            kinds[robot.joint_index(name)] = kind
        family = [_family_named(kind, harmonics, duration) for kind in kinds]
    elif family is None or isinstance(family, str):
        family = _family_named(family or FAMILIES[0], harmonics, duration)
    apart, notes = collision_constraints(robot, collision, clearance, packages, srdf)
    regions, constraints = [*free_spaces(robot, box, floor, frame), *regions], [*apart, *constraints]
    if optimiser != "gradient":
        _check_population(optimiser, joints, posture, bandwidth_hz, scheme, search)
        from steelyard.excitation.evolution import CovarianceAdaptation, Genetic, evolve, programs_in

        genome = programs_in(robot, via_points, bounds, box, frame) if via_points else family
        plan = evolve(
            robot, genome, optimiser=(Genetic if optimiser == "ga" else CovarianceAdaptation)(population, generations),
            terms=terms, rate=rate, limits=bounds, criterion=criterion, scaling=scaling, equations=equations,
            parameters=parameters, wanted=wanted, weights=weights, prior=prior, model=model, regions=regions,
            torque_margin=torque_margin, constraints=constraints, seed=seed, progress=progress, checkpoint=checkpoint,
            patience=patience,
        )  # fmt: skip
        return replace(plan, notes=(*notes, *plan.notes))
    if via_points:
        raise ExcitationError("Via-points have no gradient; choose the optimiser ga or cma (--optimiser).")
    position = None if posture is None else _posture(robot, bounds, posture)
    families = _families(robot, family, joints, position)
    _check_bandwidth(families, bandwidth_hz)
    with one_blas_thread(), compiled_at_once():  # else a resumed search would differ in the last digits
        design = DesignColumns(
            robot, terms, families, rate, bounds, equations, parameters, scheme, window, long_windows, seed
        )
        goal = design.goal(criterion, scaling, weights, prior, wanted)
        needs = requirements(robot, families, bounds, model, torque_margin, regions, constraints)
        centre = find_centre(families, bounds, needs, seed, position)
        problem = SearchProblem(goal, centre, needs)
        about = [f.settings() for f in families], search or SearchSettings(), [c.name for c in needs]
        other_numbers = rate, list(regions), torque_margin, clearance, goal.about
        key = search_key(bounds, robot.fingerprint, design.columns, goal.label, *about, *other_numbers)
        hunt = Search(problem, search or SearchSettings(), seed, progress, checkpoint, key)
        return hunt.plan(
            design.columns, design.units, joint_names=robot.joint_names, rate=rate, limits=bounds, notes=tuple(notes)
        )


def _family_named(kind: str, harmonics: int, duration: float) -> Family:
    """Return a family by name, with as many coefficients as a series of that many harmonics; `duration` in s."""
    if kind not in FAMILIES:
        raise UnknownNameError("family", kind, FAMILIES)
    if kind == "bspline":
        return BSpline(duration, spans=2 * harmonics, closed=True)
    if kind == "quintic":
        return SplinedQuintic(duration, harmonics)
    if kind == "acceleration":
        return Acceleration(duration, 4 * harmonics)
    return Fourier(harmonics, duration)


def _check_population(
    optimiser: str, joints: Any, posture: Any, bandwidth_hz: float | None, scheme: str, search: SearchSettings | None
) -> None:
    if optimiser not in OPTIMISERS:
        raise UnknownNameError("optimiser", optimiser, OPTIMISERS)
    if search is not None:
        raise ExcitationError("`search` (starts, gpu) needs the optimiser gradient; populations use generations.")
    if joints is not None or posture is not None or bandwidth_hz is not None or scheme != "dynamic":
        raise ExcitationError(
            "joints (--moving), posture, bandwidth and scheme need the optimiser gradient; populations move all joints "
            "and use torque rows."
        )


def _check_times(duration: float, rate: float) -> None:
    if not (0.0 < duration < np.inf and 0.0 < rate < np.inf):
        raise ExcitationError(f"duration is {duration:g} s and rate {rate:g} Hz; both must be positive and finite.")
    if duration * rate > _MOST_SAMPLES:
        raise ExcitationError(f"{duration:g} s at a rate of {rate:g} Hz are more than {_MOST_SAMPLES:g} samples.")
    if duration * rate < 8:
        raise ExcitationError(
            f"{duration:g} s at {rate:g} Hz are too few samples; give a longer motion or a higher rate."
        )


def _families(
    robot: Robot, family: Family | Sequence[Family], joints: Sequence[str] | None, posture: Array | None
) -> tuple[Family, ...]:
    """Return one family per joint; joints that do not move stay at the posture, or at an optimised position."""
    families = families_of(robot, family)
    if joints is None:
        return families
    moving = {robot.joint_index(name) for name in joints}
    if not moving:
        raise ExcitationError("At least one joint must move; name it in `joints`.")
    positions = [None] * robot.dof if posture is None else posture.tolist()
    still = [Idle(f.duration, p) for f, p in zip(families, positions, strict=True)]
    return tuple(f if j in moving else still[j] for j, f in enumerate(families))


def _check_bandwidth(families: Sequence[Family], bandwidth_hz: float | None) -> None:
    for family in families if bandwidth_hz is not None else ():
        if isinstance(family, Idle):
            continue
        omega = getattr(family, "omega", None)
        if omega is None:
            raise ExcitationError(
                f"The family '{family.kind}' has no highest frequency; leave `bandwidth_hz` (--bandwidth) out."
            )
        highest = float(np.max(omega)) / (2.0 * np.pi)
        assert bandwidth_hz is not None
        if highest > bandwidth_hz * (1.0 + 1e-12):
            count = int(bandwidth_hz * len(omega) / highest + 1e-9)
            raise ExcitationError(
                f"The highest harmonic has {highest:g} Hz, above the bandwidth of {bandwidth_hz:g} Hz; "
                f"use at most {count} harmonics or a longer period."
            )


def _posture(robot: Robot, limits: Limits, posture: ArrayLike) -> Array:
    q = np.asarray(posture, dtype=float)
    if q.shape != (robot.dof,):
        raise ExcitationError(f"posture has shape {q.shape}; give one position per joint, ({robot.dof},).")
    for joint, x, low, high in zip(robot.joints, q, limits.lower, limits.upper, strict=True):
        if not low <= x <= high:
            raise ExcitationError(
                f"The posture puts joint '{joint.name}' at {x:g} {joint.unit}, outside its limits {low:g} … {high:g}."
            )
    return q
