"""From the wishes of a command line to designed motions."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from steelyard.cli.excite_options import collision_of, family_of, limit, limits_of, regions_of
from steelyard.cli.options import numbers
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.excitation import Progress, excite, excite_next, excite_several, given_by
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.designed import Designed
from steelyard.excitation.evolution import Covariance, Genetic, ViaPoints, evolve
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.interpolator import Region
from steelyard.excitation.plan import Plan
from steelyard.parameters.terms import Terms, identification_terms
from steelyard.robot.kinematics.inverse import InverseKinematics
from steelyard.robot.robot import Robot

OPTIMISERS = ("gradient", "ga", "cma")
# How far the tool turns about the orientation it has in the middle of a box (rad).
_TURN = 0.8


@dataclass(frozen=True)
class Wishes:
    """What was typed."""

    source: str
    limits: dict[str, str]
    torque_margin: float
    duration: float
    rate: float
    harmonics: int
    family: str
    criterion: str
    scaling: str
    weights: str
    terms: Sequence[str]
    joints: Sequence[str]
    equations: Sequence[str]
    parameters: Sequence[str]
    wanted: Sequence[str]
    posture: str
    box: str
    frame: str
    floor: float | None
    collision: bool | None
    clearance: float
    packages: str
    bandwidth: float | None
    optimiser: str
    via_points: int
    generations: int
    population: int
    given: Sequence[str]
    mapping: str
    motions: int
    noise: str
    seed: int
    time: float | None
    checkpoint: str


def design(robot: Robot, w: Wishes, quiet: bool = False) -> Designed:
    """The motions that are wished for."""
    _check(w)
    terms = _terms(robot, w)
    notes: list[str] = []
    common: dict[str, Any] = {
        "terms": terms,
        "criterion": w.criterion,
        "scaling": w.scaling,
        "equations": list(w.equations) or None,
        "parameters": list(w.parameters) or None,
        "wanted": list(w.wanted) or None,
        "torque_margin": w.torque_margin,
        "regions": regions_of(robot, w.box, w.floor, w.frame),
        "constraints": collision_of(robot, w.source, w.collision, w.clearance, w.packages, notes),
        "seed": w.seed,
        "checkpoint": w.checkpoint or None,
    }
    if w.weights:
        common["weights"] = w.weights if w.weights.startswith("torque") else np.array(limit("--weights", w.weights))
    with _progress(w, quiet) as watch:
        plans = _plans(robot, w, {**common, "progress": watch})
    if not robot.has_inertia:
        notes.append("The robot's file states no inertias: torques are unknown, and their limits were not kept.")
    settings = {k: v for k, v in asdict(w).items() if k not in ("checkpoint", "time")}
    return Designed(robot, plans, _noise(robot, w.noise), {**settings, "bound_terms": terms}, tuple(notes))


def _check(w: Wishes) -> None:
    if w.optimiser not in OPTIMISERS:
        raise UnknownNameError("optimiser", w.optimiser, OPTIMISERS)
    if w.via_points and w.optimiser == "gradient":
        raise SteelyardError("No gradient leads through via-points; add --optimiser ga or --optimiser cma.")
    if w.motions > 1 and (w.optimiser != "gradient" or w.given or w.checkpoint):
        raise SteelyardError("Several motions at once go with --optimiser gradient, without --given or --checkpoint.")
    if w.given and w.weights:
        raise SteelyardError("With --given the weights follow from the log; leave --weights out.")
    if w.optimiser != "gradient" and (w.joints or w.posture or w.bandwidth):
        raise SteelyardError("--moving, --posture and --bandwidth go with --optimiser gradient.")


def _terms(robot: Robot, w: Wishes) -> Terms | None:
    if not w.terms:
        return None
    return identification_terms(robot, None if list(w.terms) == ["default"] else w.terms)


def _plans(robot: Robot, w: Wishes, common: dict[str, Any]) -> tuple[Plan, ...]:
    limits = limits_of(**w.limits)
    if w.optimiser == "gradient":
        options = {
            **common,
            "duration": w.duration,
            "rate": w.rate,
            "limits": limits,
            "family": family_of(w.family, w.harmonics, w.duration),
            "joints": list(w.joints) or None,
            "posture": numbers("--posture", w.posture, robot.dof) if w.posture else None,
            "bandwidth": w.bandwidth,
        }
        if w.motions > 1:
            return excite_several(robot, w.motions, **{k: v for k, v in options.items() if k != "checkpoint"})
        if w.given:
            return (excite_next(robot, _given(robot, w, common["terms"]), **options),)
        return (excite(robot, **options),)
    bounds = limits_from(robot, limits)
    genome: Any = family_of(w.family, w.harmonics, w.duration)
    if w.via_points:
        bounds = with_jerk(bounds)
        genome = ViaPoints(robot, _region(robot, w, bounds), w.via_points, bounds, link=w.frame or None)
    optimiser: Any = (Genetic if w.optimiser == "ga" else Covariance)(w.population, w.generations)
    options = {**common, "optimiser": optimiser, "limits": bounds, "rate": w.rate}
    if w.given:
        known = _given(robot, w, common["terms"])
        return (excite_next(robot, known, design=lambda r, **o: evolve(r, genome, **o), **options),)
    return (evolve(robot, genome, **options),)


def _given(robot: Robot, w: Wishes, terms: Terms | None) -> Any:
    from steelyard.signals.read import read_log

    return given_by(robot, [read_log(path, robot, w.mapping or None) for path in w.given], terms)


def _region(robot: Robot, w: Wishes, bounds: Any) -> Region:
    """The box with the orientation that the tool has when the arm stands in its middle, or the joints' own ranges."""
    if not w.box:
        low, high = np.maximum(bounds.lower, -np.pi), np.minimum(bounds.upper, np.pi)
        return Region(low, high, (0.1, 1.0), "joints")
    from steelyard.excitation.interpolator import rpy
    from steelyard.robot.kinematics.inverse import Pose

    x0, x1, y0, y1, z0, z1 = numbers("--box", w.box, 6)
    low, high = np.array([x0, y0, z0]), np.array([x1, y1, z1])
    solver = InverseKinematics.of(robot, w.frame or None)
    q = solver.solve(Pose(0.5 * (low + high)), bounds.middle)
    rotation, _ = solver.tip.forward(q)
    turn = np.array(rpy(rotation), dtype=float)
    return Region(np.concatenate([low, turn - _TURN]), np.concatenate([high, turn + _TURN]), (0.1, 1.0))


def _noise(robot: Robot, text: str) -> Any:
    from steelyard.rehearse.rehearse import expected_noise

    return expected_noise(robot, limit("--noise", text) if text else None)


@contextmanager
def _progress(w: Wishes, quiet: bool) -> Iterator[Callable[[Progress], Any]]:
    """A bar on standard error with the best value, and the end of the time that was given."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    begun = clock.monotonic()
    console = Console(stderr=True, quiet=quiet)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("best {task.fields[best]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Looking for a motion", total=None, best="–")

        def watch(p: Progress) -> bool:
            bar.update(task, completed=p.stage, total=p.stages, description=p.doing, best=f"{p.best:.5g}")
            return w.time is not None and clock.monotonic() - begun > w.time

        yield watch
