"""`excite`: the motion that makes a robot's parameters identifiable, within its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.dynamics.evaluate import compiled_at_once
from steelyard.errors import ExcitationError, ShapeError, UnknownNameError
from steelyard.excitation._search_state import search_key
from steelyard.excitation.constraints import Limits
from steelyard.excitation.constraints._space import options_in_space
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.design_columns import DesignColumns
from steelyard.excitation.excite_options import FAMILIES, OPTIMISERS, ExciteOptions
from steelyard.excitation.plan import Plan
from steelyard.excitation.search import Progress, Search, SearchSettings
from steelyard.excitation.search_problem import SearchProblem, families_of, requirements
from steelyard.excitation.settle import find_centre
from steelyard.excitation.trajectories import Acceleration, BSpline, Family, Fourier, SplinedQuintic
from steelyard.excitation.trajectories.fixed_pieces import Idle
from steelyard.ground.arrays import Array, one_blas_thread
from steelyard.ground.verb_options import with_changes, with_signature
from steelyard.parameters.terms import as_terms
from steelyard.robot.free import refuse_free
from steelyard.robot.load import RobotLike, as_robot
from steelyard.robot.robot import Robot


@with_signature(ExciteOptions)
def excite(
    robot: RobotLike,
    options: ExciteOptions | None = None,
    *,
    progress: Callable[[Progress], Any] | None = None,
    checkpoint: str | Path | None = None,
    **changes: Any,
) -> Plan:
    """Design a motion for identification.

    Args:
        robot: The robot, as `load_robot` takes it; torque rows of joints with unused torque do not count.
        options: Options of the design; None: the defaults.
        progress: Function that gets a `Progress` after every stage; return True to stop with the best motion so far.
        checkpoint: JSON file written after every stage; an existing one is resumed.
        **changes: Fields of `ExciteOptions` that replace those of `options`, such as `duration=20.0`.
    """
    o = with_changes(options or ExciteOptions(), changes, "excite")
    robot = refuse_free(as_robot(robot), "motions of free joints cannot be designed", "hold the base (joints=…).")
    o = replace(o, terms=as_terms(robot, o.terms))
    o.check()
    bounds = limits_from(robot, o.limits)
    family = _family(robot, o)
    if o.optimiser != "gradient":
        _check_population(o)
        from steelyard.excitation.evolution import CovarianceAdaptation, Genetic, evolve, programs_in

        genome = programs_in(robot, o.via_points, bounds, o.box, o.frame) if o.via_points else family
        optimiser = (Genetic if o.optimiser == "ga" else CovarianceAdaptation)(o.population, o.generations)
        o = replace(o, limits=bounds)
        return evolve(robot, genome, o, optimiser=optimiser, progress=progress, checkpoint=checkpoint)
    o, notes = options_in_space(robot, o)
    if o.via_points:
        raise ExcitationError("Via-points have no gradient; choose the optimiser ga or cma (--optimiser).")
    position = None if o.posture is None else _posture(robot, bounds, o.posture)
    families = _families(robot, family, o.joints, position)
    _check_bandwidth(families, o.bandwidth_hz)
    with one_blas_thread(), compiled_at_once():  # else a resumed search would differ in the last digits
        design = DesignColumns(robot, families, bounds, o)
        goal = design.goal(o)
        needs = requirements(robot, families, bounds, o)
        centre = find_centre(families, bounds, needs, o.seed, position)
        problem, search = SearchProblem(goal, centre, needs), o.search or SearchSettings()
        about = [f.settings() for f in families], search, [c.name for c in needs]
        other_numbers = o.rate, list(o.regions), o.torque_margin, o.clearance, goal.about
        key = search_key(bounds, robot.fingerprint, design.columns, goal.label, *about, *other_numbers)
        return Search(problem, search, o.seed, progress, checkpoint, key).plan(
            design.columns, design.units, joint_names=robot.joint_names, rate=o.rate, limits=bounds, notes=tuple(notes)
        )


def _family(robot: Robot, o: ExciteOptions) -> Family | Sequence[Family]:
    """Return the family of the options, or one per joint."""
    if isinstance(o.family, Mapping):
        kinds = [FAMILIES[0]] * robot.dof
        for name, kind in o.family.items():
            kinds[robot.joint_index(name)] = kind
        return [_family_named(kind, o.harmonics, o.duration) for kind in kinds]
    if o.family is None or isinstance(o.family, str):
        return _family_named(o.family or FAMILIES[0], o.harmonics, o.duration)
    return o.family


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


def _check_population(o: ExciteOptions) -> None:
    if o.optimiser not in OPTIMISERS:
        raise UnknownNameError("optimiser", o.optimiser, OPTIMISERS)
    if o.search is not None:
        raise ExcitationError("`search` (starts, gpu) needs the optimiser gradient; populations use generations.")
    if o.joints is not None or o.posture is not None or o.bandwidth_hz is not None or o.scheme != "dynamic":
        raise ExcitationError(
            "joints (--moving), posture, bandwidth and scheme need the optimiser gradient; populations move all joints "
            "and use torque rows."
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
        raise ShapeError(f"posture has shape {q.shape}; give one position per joint, ({robot.dof},).")
    for joint, x, low, high in zip(robot.joints, q, limits.lower, limits.upper, strict=True):
        if not low <= x <= high:
            raise ExcitationError(
                f"The posture puts joint '{joint.name}' at {x:g} {joint.unit}, outside its limits {low:g} … {high:g}."
            )
    return q
