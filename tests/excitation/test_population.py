"""Populations decoded in machine code: the same motions as those of the interpolator of single programs."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import public_robot_path

import steelyard as sy
from steelyard.excitation import default_limits
from steelyard.excitation.constraints import Limits
from steelyard.excitation.evolution import Genetic, ViaPoints, evolve
from steelyard.excitation.evolution._score import MotionScore
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.interpolator import ProgramRegion

RATE = 50.0
# Times of motions agree to 1e-12 or so; accelerations on ramps change by their jerk, some 1e3 rad/s³, times that.
SAME = 1e-8


def joints_of(name, low=-1.2, high=1.2):
    robot = sy.load_robot(name)
    limits = with_jerk(default_limits(robot))
    inside = np.clip(low, limits.lower, limits.upper), np.clip(high, limits.lower, limits.upper)
    return robot, ProgramRegion(*inside, space="joints"), limits


def poses_of(name, low, high):
    robot = sy.load_robot(name) if name == "ns16" else sy.load_robot(public_robot_path(name))
    return robot, ProgramRegion(np.array(low), np.array(high)), with_jerk(default_limits(robot))


NS16 = ("ns16", [0.7, -0.3, 1.05, 2.4, -0.8, -0.8], [1.2, 0.3, 1.55, 3.9, 0.8, 0.8])
UR10 = ("ur10", [0.3, -0.5, 0.2, -0.8, -0.8, -0.8], [0.9, 0.5, 0.9, 0.8, 0.8, 0.8])


def trapezoids(limits):
    return Limits(limits.lower, limits.upper, limits.dq, limits.ddq, np.full_like(limits.ddq, np.inf), limits.tau,
                  limits.power)  # fmt: skip


def test_a_generation_out_of_reach_is_rejected():
    robot, _, limits = poses_of(*NS16)
    far = ProgramRegion(np.array([5.0, 5.0, 5.0, 0.0, 0.0, 0.0]), np.array([6.0, 6.0, 6.0, 1.0, 1.0, 1.0]))
    genome = ViaPoints(robot, far, 3, limits, start=0.5 * (limits.lower + limits.upper))
    assert genome.signals(np.full((4, genome.size), 0.5), RATE) == [None] * 4


@pytest.mark.parametrize(
    ("case", "fly", "smooth"),
    [
        (lambda: poses_of(*NS16), 0.5, True),
        (lambda: poses_of(*NS16), 0.0, True),
        (lambda: poses_of(*UR10), 0.5, True),
        (lambda: joints_of("szabo3r"), 0.5, False),
        (lambda: joints_of("szabo3r"), 1.0, True),
        (lambda: joints_of("arm7"), 0.8, True),
        (lambda: joints_of("prrrp", -0.1, 0.3), 0.5, True),
    ],
    ids=["ns16", "ns16 stopping", "ur10", "trapezoids", "wide", "seven axes", "sliding joints"],
)
def test_a_population_moves_like_single_programs(case, fly, smooth):
    """`interpolate`, which finds profiles by root search, shares no line with the machine code."""
    robot, region, limits = case()
    genome = ViaPoints(robot, region, 4, limits if smooth else trapezoids(limits), fly=fly)
    population = np.random.default_rng(3).uniform(size=(12, genome.size))
    population[0, : len(region.low)] = population[0, len(region.low) : 2 * len(region.low)]  # a move of no length
    played = genome.signals(population, RATE)
    alone = [genome.motion(genes) for genes in population]
    assert [m is None for m in played] == [m is None for m in alone]
    assert sum(m is not None for m in played) > 4
    for batch, motion in zip(played, alone, strict=True):
        if batch is None:
            continue
        expected = motion.sample(np.arange(int(motion.duration * RATE) + 1) / RATE)
        for signal, one, bound in zip(batch, expected, (1.0, limits.dq, limits.ddq), strict=True):
            assert signal.shape == one.shape
            assert np.abs((signal - one) / bound).max() < SAME


def test_no_program_exceeds_a_limit_at_any_time():
    robot, region, limits = poses_of(*NS16)
    genome = ViaPoints(robot, region, 6, limits, fly=1.0)
    played = genome.signals(np.random.default_rng(5).uniform(size=(40, genome.size)), 5000.0)
    alive = [m for m in played if m is not None]
    assert len(alive) > 10
    touched = 0.0
    for q, dq, ddq in alive:
        assert np.all((q >= limits.lower - 1e-9) & (q <= limits.upper + 1e-9))
        for values, bound in ((dq, limits.dq), (ddq, limits.ddq), (np.diff(ddq, axis=0) * 5000.0, limits.jerk)):
            assert np.all(np.abs(values) <= bound * (1.0 + 1e-9))
        touched = max(touched, float(np.max(np.abs(ddq) / limits.ddq)))
        # Velocities are derivatives: a mean of two samples deviates by at most a quarter of the next rate's change.
        for values, rates, next_bound in ((q, dq, limits.ddq), (dq, ddq, limits.jerk)):
            middle = 0.5 * (rates[1:] + rates[:-1])
            assert np.all(np.abs(np.diff(values, axis=0) * 5000.0 - middle) <= next_bound / 5000.0 / 4.0)
    assert touched > 0.95  # as fast as the limits allow


def test_values_are_determinants_of_rows():
    """Compare with rows built by NumPy: det(HᵀH), H scaled by nominal torques (Pedrocchi et al. 2013, (6), (7))."""
    robot, region, limits = poses_of(*NS16)
    terms = sy.nominal_terms(robot)[0]
    genome = ViaPoints(robot, region, 5, limits)
    from steelyard.excitation.design_columns import DesignColumns
    from steelyard.excitation.excite_options import ExciteOptions
    from steelyard.excitation.trajectories import Fourier

    options = ExciteOptions(terms=terms, rate=RATE, criterion="d", weights="torque")
    design = DesignColumns(robot, (Fourier(5, 10.0),) * 6, limits, options)
    score = MotionScore(design, design.goal(options), threads=2)
    motions = genome.signals(np.random.default_rng(7).uniform(size=(6, genome.size)), RATE)
    values = score([None, *motions])
    assert values[0] == np.inf
    base = sy.base_parameters(robot, terms)
    share = limits.tau / limits.tau.max()
    for value, motion in zip(values[1:], motions, strict=True):
        rows = base.regressor_columns(base.structure.dynamics.torque_regressor(*motion)) * share[:, None]
        H = rows.reshape(-1, base.rank)
        assert value == pytest.approx(-np.linalg.slogdet(H.T @ H)[1], rel=1e-8)


def test_an_evolution_without_progress_ends():
    """One via-point on one axis: the search converges within a few generations."""
    robot, region, limits = joints_of("rotradi", -0.3, 0.3)
    genome = ViaPoints(robot, region, 1, limits)
    patient = evolve(robot, genome, optimiser=Genetic(20, 60), rate=RATE, criterion="d", patience=5)
    whole = evolve(robot, genome, optimiser=Genetic(20, 60), rate=RATE, criterion="d")
    assert patient.evaluations < whole.evaluations == 1200
    assert patient.history == whole.history[: len(patient.history)]
    best = [value for _, value in patient.history]
    assert best[-6] - best[-1] < 0.01
    assert all(best[k] - best[k + 5] >= 0.01 for k in range(len(best) - 6))
