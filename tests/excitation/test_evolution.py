"""Populations: operators work as documented, motions keep their limits, runs repeat and resume."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from steelyard.excitation.constraints.limits import limits_from
from steelyard.excitation.evolution import CovarianceAdaptation, Genetic, ViaPoints, evolve
from steelyard.excitation.evolution._score import SampleTests, peaks, reversals
from steelyard.excitation.evolution.via_points import with_jerk
from steelyard.excitation.interpolator import ProgramRegion
from steelyard.excitation.trajectories import Fixed, Fourier, Trajectory

LIMITS = {"q": [2.5, 1.2, 2.5], "dq": 3.0, "ddq": 12.0}
OPTIMISERS = [Genetic(population=12, generations=4), CovarianceAdaptation(population=12, generations=4)]


def joints_genome(limits=LIMITS, points=3, fly=0.0):
    """Return a genome in joint space; stopping at via-points is five times faster to interpolate than flying by."""
    robot = sy.load_robot("szabo3r")
    bounds = with_jerk(limits_from(robot, limits))
    return robot, ViaPoints(
        robot, ProgramRegion(bounds.lower, bounds.upper, (0.2, 1.0), "joints"), points, bounds, fly=fly
    )


def settings(optimiser):
    if isinstance(optimiser, CovarianceAdaptation):
        pytest.importorskip("cmaes", reason="CMA-ES needs the extra cma")
    return optimiser


def test_both_minimise_a_sphere_and_infeasible_points_never_win():
    """f = |x − 0.7|², rejecting a first gene below 0.5; the minimum is inside."""
    for optimiser in (
        Genetic(population=60, generations=40),
        settings(CovarianceAdaptation(population=10, generations=60)),
    ):
        strategy = optimiser.start(5, 3)
        best = np.inf
        for _ in range(optimiser.generations):
            x = strategy.ask()
            assert np.all((x >= 0.0) & (x <= 1.0))
            values = np.where(x[:, 0] < 0.5, np.inf, np.sum((x - 0.7) ** 2, axis=1))
            best = min(best, float(values.min()))
            strategy.tell(values)
        # A random search of as many points reaches 0.05 in five dimensions.
        assert best < 0.005


def test_elites_survive_and_children_are_within_the_widened_box_of_their_parents():
    """Without mutation a child is inside its parents' box widened by half on both sides, so inside that of all."""
    strategy = Genetic(population=30, generations=5, mutation=0.0).start(4, 0)
    first = strategy.ask().copy()
    values = np.sum(first, axis=1)
    values[10:] = np.inf  # ten feasible ones
    strategy.tell(values)
    second = strategy.ask()
    order = np.argsort(values[:10])
    assert np.array_equal(second[:2], first[order[:2]])
    low, high = first[:10].min(axis=0), first[:10].max(axis=0)
    margin = 0.5 * (high - low)
    assert np.all((second >= np.maximum(low - margin, 0.0)) & (second <= np.minimum(high + margin, 1.0)))


def test_a_generation_of_rejected_individuals_is_drawn_again():
    strategy = Genetic(population=10, generations=5).start(3, 0)
    first = strategy.ask().copy()
    strategy.tell(np.full(10, np.inf))
    assert not np.any(np.all(strategy.ask() == first, axis=1))


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["genetic", "cma"])
def test_via_points_keep_every_limit_on_a_dense_grid(optimiser):
    fly = 0.5 if isinstance(optimiser, Genetic) else 0.0
    robot, genome = joints_genome({**LIMITS, "tau": [6.0, 25.0, 12.0]}, points=2, fly=fly)
    plan = evolve(robot, genome, optimiser=replace(settings(optimiser), generations=2), rate=50.0, criterion="d")
    t = np.linspace(0.0, plan.trajectory.duration, 20001)
    q, dq, ddq = plan.trajectory.sample(t)
    own = plan.limits
    assert plan.violation == 0.0
    assert set(plan.margins) == {"joint limits", "torque limits"}
    assert np.all((q >= own.lower - 1e-9) & (q <= own.upper + 1e-9))
    assert np.all(np.abs(dq) <= own.dq * (1 + 1e-9))
    assert np.all(np.abs(ddq) <= own.ddq * (1 + 1e-9))
    assert np.all(np.abs(sy.Model.nominal(robot).torque(q, dq, ddq)) <= own.tau)
    assert np.array_equal(q[0], q[-1]) or np.abs(q[0] - q[-1]).max() < 1e-9  # the program is closed
    W = sy.base_parameters(robot).regressor_columns(
        robot.torque_regressor(*plan.trajectory.sample(plan.trajectory.times(50.0)))
    )
    dense = W.reshape(-1, len(plan.columns))
    assert plan.value == pytest.approx(-np.linalg.slogdet(dense.T @ dense)[1], rel=1e-9)
    assert plan.value <= plan.start_value + 1e-9  # rounding
    assert len(plan.program.moves) == 3  # two via-points and the return


def test_peaks_between_samples_are_not_missed():
    """Compare with dense samples of hills of every phase, corners, and steps such as those of friction."""
    fine, h, none, rows = 200, 0.02, np.array([], dtype=int), np.arange(51)
    t = np.arange(0.0, 1.0 + 0.5 * h / fine, h / fine)
    middles = 0.5 + h * np.linspace(0.0, 1.0, 41)
    bows = np.stack([-8.0 * (t - m) ** 2 for m in middles], axis=1)
    corners = np.stack([np.minimum(3.0 * (t - m), 7.0 * (m - t)) for m in middles], axis=1)
    steps = np.stack([np.where(t > m, 1.0, 0.0) + np.minimum(2.0 * (t - m), 5.0 * (m - t)) for m in middles], axis=1)
    shares = reversals(t[::fine, None] - middles, rows)  # where the step is
    for f, jumps in ((bows, None), (corners, None), (steps, shares)):
        most = peaks(f[::fine], none, rows, jumps)[:-1]
        within = np.array([f[k : k + fine + 1].max(axis=0) for k in range(0, len(f) - 1, fine)])
        assert np.all(most >= within - 1e-12)
        assert np.any(f[::fine].max(axis=0) < f.max(axis=0) - 5e-4)  # the samples alone miss them
    # The line before a step ends at the step, so the bound is tight.
    assert np.allclose(peaks(steps[::fine], none, rows, shares).max(axis=0), steps.max(axis=0), atol=1e-3)
    # With curvature A per s² a value rises by at most A·h²/8 between samples; the two lines allow four times that.
    room = peaks(bows[::fine], none, rows).max(axis=0) - bows[::fine].max(axis=0)
    assert 0.0 < room.max() <= 0.5 * 16.0 * h**2 + 1e-12
    # A batch of two motions gives the same result as two calls.
    both = peaks(np.concatenate([bows[::fine], steps[::fine]]), np.array([51]), np.arange(102))
    single = [peaks(f[::fine], none, rows) for f in (bows, steps)]
    assert np.array_equal(both, np.concatenate(single))


def test_the_best_individual_keeps_torque_limits_between_samples(monkeypatch):
    """Active torque limits, and dry friction that jumps between samples."""
    robot, genome = joints_genome({**LIMITS, "tau": [6.0, 25.0, 12.0]}, points=2, fly=0.5)
    model = sy.Model.nominal(robot)
    monkeypatch.setattr(ViaPoints, "calmer", lambda *_: pytest.fail("the best individual had to be slowed down"))
    for seed in range(8):
        plan = evolve(robot, genome, optimiser=Genetic(12, 4), rate=50.0, model=model, seed=seed)
        # The result may have one more sample, its end, which can only add information.
        assert plan.value <= plan.history[-1][1] + 1e-9
        assert plan.margins["torque limits"] <= 0.0


def test_few_feasible_programs_are_rejected():
    """Compare with the torques of the same programs at 1 kHz."""
    robot, genome = joints_genome({**LIMITS, "tau": [6.0, 25.0, 12.0]}, points=2, fly=0.5)
    model, limit = sy.Model.nominal(robot), genome.limits.tau
    population = np.random.default_rng(0).uniform(size=(150, genome.size))
    accepted = np.array(
        [m is not None for m in SampleTests(robot, model, limit, ()).reject(genome.signals(population, 50.0))]
    )
    dense = genome.signals(population, 1000.0)
    holds = np.array([m is not None and bool(np.all(np.abs(model.torque(*m)) <= limit)) for m in dense])
    assert holds.sum() > 50
    assert np.sum(accepted & ~holds) <= 0.02 * holds.sum()
    assert np.sum(~accepted & holds) <= 0.1 * holds.sum()


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["genetic", "cma"])
def test_populations_of_smooth_families(optimiser):
    robot = sy.load_robot("szabo3r")
    plan = evolve(robot, Fourier(3, 4.0), optimiser=settings(optimiser), rate=50.0, limits=LIMITS, criterion="cond")
    t = np.linspace(0.0, 4.0, 8001)
    for values, limit in zip(plan.trajectory.sample(t), (np.array([2.5, 1.2, 2.5]), 3.0, 12.0), strict=True):
        assert np.all(np.abs(values) <= limit)
    assert plan.violation == 0.0
    assert plan.value == pytest.approx(plan.condition_number, rel=1e-6)
    assert plan.value <= plan.start_value * (1.0 + 1e-3)  # settled between samples afterwards


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=["genetic", "cma"])
def test_a_run_repeats_and_resumes_to_the_same_motion(optimiser, tmp_path):
    robot = sy.load_robot("szabo3r")
    options = {"optimiser": settings(optimiser), "rate": 50.0, "limits": LIMITS}
    whole = evolve(robot, Fourier(3, 4.0), **options)
    again = evolve(robot, Fourier(3, 4.0), threads=2, **options)
    assert np.array_equal(whole.trajectory.coefficients, again.trajectory.coefficients)
    file, reports = tmp_path / "run.json", []

    def stop(progress):
        reports.append(progress)
        return len(reports) == 2

    early = evolve(robot, Fourier(3, 4.0), checkpoint=file, progress=stop, **options)
    assert early.evaluations == 24
    assert early.violation == 0.0
    resumed = evolve(robot, Fourier(3, 4.0), checkpoint=file, progress=reports.append, **options)
    assert [p.number for p in reports] == [1, 2, 3, 4]
    assert [p.best for p in reports] == sorted((p.best for p in reports), reverse=True)
    assert np.array_equal(resumed.trajectory.coefficients, whole.trajectory.coefficients)
    with pytest.raises(sy.ExcitationError, match="belongs to another search"):
        evolve(robot, Fourier(3, 4.0), checkpoint=file, seed=7, **options)
    file.write_text("[]")
    with pytest.raises(sy.ExcitationError, match="not a table"):
        evolve(robot, Fourier(3, 4.0), checkpoint=file, **options)


def test_poses_of_a_region_are_reached_by_the_program():
    """By forward kinematics, the tool is at the poses of the genes."""
    robot = sy.load_robot("ns16")
    low, high = np.array([0.7, -0.3, 1.05, 2.4, -0.8, -0.8]), np.array([1.2, 0.3, 1.55, 3.9, 0.8, 0.8])
    genome = ViaPoints(robot, ProgramRegion(low, high, (0.2, 1.0)), 2, limits_from(robot, None))
    assert genome.size == 13
    genes = np.random.default_rng(1).uniform(size=13)
    program = genome.program(genes)
    targets = low + genes[:-1].reshape(2, 6) * (high - low)
    for move, point in zip(program.moves, targets, strict=False):
        assert genome.solver.tip.pose(move.target).position == pytest.approx(point[:3], abs=1e-9)
    assert program.moves[-1].target == pytest.approx(genome.home)


def test_a_fixed_motion_survives_json():
    _, genome = joints_genome()
    motion = genome.motion(np.full(genome.size, 0.8))
    trajectory = genome.trajectory(np.full(genome.size, 0.8))
    again = Trajectory.from_json(trajectory.to_json())
    assert isinstance(again.families[0], Fixed)
    t = np.linspace(0.0, motion.duration, 301)
    for k in range(3):
        assert again.derivative(t, k) == pytest.approx(motion.derivative(t, k), abs=1e-12)
        assert np.all(again.peak_bounds(k) >= np.abs(motion.derivative(t, k)).max(axis=0) - 1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda g: ViaPoints(g.robot, g.region, 0, g.limits), "does not move"),
        (
            lambda g: ViaPoints(g.robot, ProgramRegion(np.zeros(2), np.ones(2), space="joints"), 2, g.limits),
            "bounds 2 joints",
        ),
        (lambda g: Genetic(population=2), "4 individuals"),
        (lambda g: CovarianceAdaptation(initial_std=-1.0), "positive initial_std"),
    ],
)
def test_bad_settings_are_refused(change, sentence):
    _, genome = joints_genome()
    with pytest.raises(sy.SteelyardError, match=sentence):
        change(genome)


def test_a_region_out_of_reach_and_impossible_limits_are_refused():
    robot = sy.load_robot("ns16")
    far = ProgramRegion(np.array([5.0, 5, 5, 0, 0, 0]), np.array([6.0, 6, 6, 1, 1, 1]))
    with pytest.raises(sy.ExcitationError, match="out of reach"):
        evolve(robot, ViaPoints(robot, far, 2, limits_from(robot, None)), optimiser=Genetic(8, 2))
    arm, genome = joints_genome({**LIMITS, "tau": 0.01})
    with pytest.raises(sy.ExcitationError, match="is within all limits"):
        evolve(arm, genome, optimiser=Genetic(8, 12), rate=50.0)
