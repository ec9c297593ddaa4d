"""A region's motion bred as Pedrocchi et al. 2013 do: via-point programs, a genetic algorithm, D-optimality."""

from __future__ import annotations

import numpy as np

from steelyard.dynamics.model import Model
from steelyard.excitation import Plan, box, default_limits
from steelyard.excitation.evolution import Genetic, ViaPoints, evolve
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.interpolator import Region as Genes
from steelyard.excitation.interpolator.program_text import rpy
from steelyard.local.postures import home_posture, sample_postures
from steelyard.local.region import CartesianRegion, Region
from steelyard.parameters.terms import Terms
from steelyard.robot.inverse_kinematics import InverseKinematics
from steelyard.robot.robot import Robot
from steelyard.robot.spatial import Array

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
) -> Plan:
    """The best program of `points` via-points in a region by log det(HᵀH), H scaled by nominal torques if they are
    known ("torque": as printed; "torque-inverse": as meant)."""
    limits = with_jerk(default_limits(robot))
    finite = bool(np.all(np.isfinite(limits.tau)))
    home = home_posture(robot, region)
    tip = region.tip(robot) if isinstance(region, CartesianRegion) else None
    genome = ViaPoints(
        robot,
        genes(robot, region, home),
        points,
        limits,
        start=home,
        link=None if tip is None else tip.link,
        tool=None if tip is None else tip.tool,
    )
    inside = []
    if isinstance(region, CartesianRegion):
        inside.append(([region.point(robot)], box(region.lower.tolist(), region.upper.tolist())))
    return evolve(
        robot,
        genome,
        optimiser=optimiser or Genetic(),
        terms=terms,
        rate=rate,
        criterion="d",
        weights=weights if finite else None,
        model=model,
        regions=inside,
        seed=seed,
    )


def genes(robot: Robot, region: Region, home: Array) -> Genes:
    """The box of genes: poses in a box of space, orientations within the region's spread about the home posture's;
    postures where the region is one of joints, or where poses have no closed form."""
    if not isinstance(region, CartesianRegion):
        return Genes(region.lower, region.upper, space="joints")
    tip = region.tip(robot)
    if InverseKinematics(tip).arm is None:
        q = sample_postures(robot, region, _SAMPLES, np.random.default_rng(_SEED), home)
        return Genes(q.min(axis=0), q.max(axis=0), space="joints")
    turn: Array = np.array(rpy(tip.forward(home)[0]))
    low, high = (np.concatenate([x, turn + s * region.spread]) for x, s in ((region.lower, -1.0), (region.upper, 1.0)))
    return Genes(low, high)
