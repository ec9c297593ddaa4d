"""Filters over state and parameters: common properties, the paper's robot, and a six-axis arm."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import prrrp_case as prrrp
import pytest
from experiment_cases import loop_case
from subjects import fitted

from steelyard.estimation import (
    EstimationError,
    Experiment,
    ExtendedKalman,
    ParticleFilter,
    Prior,
    Result,
    SigmaPointKalman,
    Tuning,
    estimator_names,
    make_estimator,
    make_experiment_estimator,
)
from steelyard.estimation.kalman.consistency_tests import Consistency
from steelyard.regression.base_parameters import base_parameters

FILTERS = estimator_names(family="filter")
GAUSSIAN = tuple(name for name in FILTERS if name != "pf")
gaussian = pytest.mark.parametrize("name", GAUSSIAN)
# Largest error relative to the largest parameter, for 1e-4 rad and 2 % torque noise over four seconds, and without
# noise; least squares: 0.7 %.
NOISY, CLEAN = 0.02, 0.005
# Lower limit of the root mean square of errors over standard errors, exceeded in all but one of a thousand cases: χ² of
# 21 (0.72 for 58 parameters). The upper limit is wider, since errors of one short log are correlated.
MIN_RATIO = 0.55


def rotradi():
    return loop_case("rotradi", seconds=3.0, rate=200.0)


def noisy() -> Experiment:
    return rotradi().experiment(rotradi().log(1e-4, 0.02))


def error(estimate, case) -> float:
    return float(np.abs(estimate.beta - case.beta).max() / np.abs(case.beta).max())


@gaussian
def test_known_parameters_come_back(name: str) -> None:
    c, estimate = rotradi(), fitted(name)
    assert estimate.result is Result.CONVERGED, estimate.notes
    assert error(estimate, c) < NOISY
    assert np.allclose(c.base.matrix @ estimate.theta, estimate.beta, rtol=1e-8, atol=1e-10)
    # Consistent: errors have the size of the standard errors, and innovations the expected size.
    assert MIN_RATIO < np.sqrt(np.mean(((estimate.beta - c.beta) / estimate.standard_errors) ** 2)) < 2.0
    assert 0.5 < estimate.details["consistency"] < 2.0


@pytest.mark.parametrize("name", ["ekf", "srukf"])
def test_clean_logs_give_better_parameters_than_least_squares(name: str) -> None:
    """Least squares is biased by the low-pass and by differentiation; the filter integrates instead."""
    c = rotradi()
    start = make_estimator("wls").fit(c.experiment().regression(c.base), c.base)
    estimate = make_experiment_estimator(name).fit(c.experiment(), c.base)
    assert error(estimate, c) < min(CLEAN, error(start, c))


@pytest.mark.parametrize("name", ["srekf", "ukf", "cdkf"])
def test_filters_converge_from_a_prior_that_is_twenty_percent_wrong(name: str) -> None:
    c = rotradi()
    estimate = make_experiment_estimator(name).fit(noisy(), c.base, Prior(1.2 * c.theta))
    assert np.allclose(estimate.details["start"], 1.2 * c.beta)
    assert error(estimate, c) < 0.03  # without least squares, and three seconds are short
    assert MIN_RATIO < np.sqrt(np.mean(((estimate.beta - c.beta) / estimate.standard_errors) ** 2)) < 2.0


@pytest.mark.parametrize("name", ["ekf", "ukf", "ckf", "cdkf"])
def test_square_roots_agree_to_rounding(name: str) -> None:
    whole, root = fitted(name), fitted(f"sr{name}")
    assert np.all(np.abs(whole.beta - root.beta) < 1e-4 * whole.standard_errors)
    assert np.allclose(whole.standard_errors, root.standard_errors, rtol=1e-4)


@pytest.mark.parametrize("name", FILTERS)
def test_bad_experiments_are_refused(name: str) -> None:
    c = rotradi()
    estimator = make_experiment_estimator(name, **({"most": 99} if name == "pf" else {}))
    good = c.experiment()
    run = good.runs[0]
    q = run.q.copy()
    q[17, 1] = np.nan
    with pytest.raises(EstimationError, match=f"Row 18 of equation '{c.robot.joint_names[1]}'"):
        estimator.fit(replace(good, runs=(replace(run, q=q),)), c.base)
    m = run.motion
    few = replace(m, t=m.t[:4], q=m.q[:4], dq=m.dq[:4], ddq=m.ddq[:4], tau=m.tau[:4])
    with pytest.raises(EstimationError, match="too few samples to start"):
        estimator.fit(replace(good, runs=(replace(run, motion=few, q=run.q[:4]),)), c.base)


def test_two_runs_give_smaller_errors_than_one() -> None:
    c = rotradi()
    one = noisy()
    both = replace(one, runs=(one.runs[0], c.experiment(c.log(1e-4, 0.02, seed=5)).runs[0]))
    single, double = (ExtendedKalman().fit(e, c.base, Prior(1.2 * c.theta)) for e in (one, both))
    assert np.all(double.standard_errors < single.standard_errors * 1.05)
    assert np.median(double.standard_errors / single.standard_errors) < 0.85  # √½ for the same motion, twice
    assert error(double, c) < NOISY


def test_smoothing_gives_better_states_and_the_same_parameters() -> None:
    c = rotradi()
    experiment = noisy()
    plain, smooth = (ExtendedKalman(smooth=s).fit(experiment, c.base) for s in (False, True))
    assert plain.beta.tobytes() == smooth.beta.tobytes()
    means, stds = smooth.details["smoothed"][0]
    n, p = c.robot.dof, c.base.rank
    start = int(np.searchsorted(c.t, experiment.runs[0].t[0] - 1e-9))
    truth = np.hstack([c.run.q, c.run.dq])[start : start + len(means)]
    off = means[:, p:] - truth
    assert np.sqrt(np.mean(off[:, :n] ** 2)) < 0.5e-4  # the sensors' noise is 1e-4
    assert 0.5 < np.sqrt(np.mean((off / stds[:, p:]) ** 2)) < 2.0
    assert np.allclose(means[0, :p], smooth.beta, atol=1e-3 * smooth.standard_errors.max())


def test_invalid_settings_are_refused() -> None:
    c = rotradi()
    for bad in ({"method": "rk5"}, {"torque": "cubic"}, {"substeps": 0}, {"tuning": Tuning(torque_noise=-1.0)}):
        with pytest.raises(EstimationError):
            ExtendedKalman(**bad).fit(c.experiment(), c.base)
    with pytest.raises(EstimationError, match="starts from the prior needs one"):
        ExtendedKalman(tuning=Tuning(start="prior")).fit(c.experiment(), c.base)
    with pytest.raises(EstimationError, match="start is"):
        Tuning(start="zero")  # type: ignore[arg-type]


# ---------------------------------------------------------------- Urrea & Pascal 2017

THETA = prrrp.ROBOT.inertial_parameters
# P0 of the nine parameters, similar to that of the paper's eight: wider than the parameters.
WIDE = (1.0, 1.0, 1.0, 0.1, 0.1, 1.0, 0.1, 0.1, 0.3)


def tuned(velocity_variance: float, std=WIDE) -> Tuning:
    return Tuning(
        position_noise=1e-3, torque_noise=0.0, state_noise=(1e-4, velocity_variance**0.5), drift=(1e-9 / 0.02) ** 0.5,
        parameter_std=std, state_std=(1e-3, 1e-2),
    )  # fmt: skip


def paper_fit(method, segment=1.0, variance=1e-8, **options):
    settings = ExtendedKalman(tuning=tuned(variance), method=method, substeps=1, **options)
    return settings.fit(prrrp.experiment(segment), base_parameters(prrrp.ROBOT), Prior(1.3 * THETA))


def test_the_parameters_of_the_paper_are_those_of_the_built_in_robot() -> None:
    assert np.allclose(prrrp.lambdas(THETA), prrrp.LAMBDA, atol=5e-7)


def test_euler_at_the_step_of_the_paper_diverges_and_reports_it() -> None:
    estimate = paper_fit("euler")
    assert estimate.result is Result.DIVERGED
    assert "diverged" in estimate.notes[0]
    assert "t = 0." in estimate.notes[0]
    assert np.all(np.isfinite(estimate.beta))
    assert np.all(np.isfinite(estimate.covariance))


def test_runge_kutta_at_the_same_step_is_accurate_to_a_fifth_of_a_percent() -> None:
    estimate = paper_fit("rk4")
    assert estimate.result is Result.CONVERGED
    assert prrrp.percent(prrrp.lambdas(estimate.theta)) < 0.2  # specification: 0.2 %


def test_slower_motion_or_more_process_noise_rescues_euler() -> None:
    assert prrrp.percent(prrrp.lambdas(paper_fit("euler", 5.0).theta)) < 1.0  # specification: 1.0 %
    assert prrrp.percent(prrrp.lambdas(paper_fit("euler", 2.5, 1e-4).theta)) < 0.7  # specification: ≤ 0.7 %


def test_tuning_from_the_data_is_as_accurate() -> None:
    estimate = ExtendedKalman().fit(prrrp.experiment(), base_parameters(prrrp.ROBOT), Prior(1.3 * THETA))
    assert prrrp.percent(prrrp.lambdas(estimate.theta)) < 0.2
    assert np.allclose(estimate.details["position_noise"], 1e-4, rtol=0.2)  # noise of the log


@pytest.mark.proof
def test_a_particle_filter_estimates_nine_parameters_overconfidently_and_refuses_more() -> None:
    base = base_parameters(prrrp.ROBOT)
    estimate = ParticleFilter().fit(prrrp.experiment(), base, Prior(1.3 * THETA))
    assert prrrp.percent(prrrp.lambdas(estimate.theta)) < 3.0  # 30 at the start; measured 1 to 2 with 2000 particles
    # Its error bars are too small by a factor of seven; its steps and an extended filter show it.
    assert estimate.result is Result.OVERCONFIDENT
    assert "an extended filter over the swarm" in estimate.notes[0]
    c = rotradi()
    with pytest.raises(EstimationError, match="21 parameters"):
        ParticleFilter().fit(noisy(), c.base)


def test_a_particle_filter_is_the_same_for_the_same_seed() -> None:
    base, experiment = base_parameters(prrrp.ROBOT), prrrp.experiment(seconds=2.0)
    prior = Prior(1.1 * THETA)
    one, two, other = (ParticleFilter(particles=200, seed=s).fit(experiment, base, prior) for s in (0, 0, 1))
    assert one.beta.tobytes() == two.beta.tobytes()
    assert one.beta.tobytes() != other.beta.tobytes()


def test_a_worse_particle_filter_returns_the_initial_values() -> None:
    """21 parameters are too many: least squares has an error of 3 %, the particle filter of more than 20 %."""
    c = rotradi()
    estimate = ParticleFilter(particles=100, most=99).fit(noisy(), c.base)
    assert estimate.result is Result.DIVERGED
    assert estimate.beta.tobytes() == estimate.details["start"].tobytes()
    assert "the initial values" in estimate.notes[0]


# ---------------------------------------------------------------- consistency tests


def linear_filter(seed: int, stated_noise: float = 1.0, stated_start: float = 1.0) -> Consistency:
    """Six constants; each sample measures a sum. The filter is exact except for the stated noise and start."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=6)
    beta, P, out = np.zeros(6), stated_start**2 * np.eye(6), Consistency()
    out.add_snapshot(0.0, beta, P)
    for k in range(1, 641):
        h = rng.normal(size=6)
        S = h @ P @ h + stated_noise**2
        innovation = h @ truth + rng.normal() - h @ beta
        beta, P = beta + P @ h * innovation / S, P - np.outer(P @ h, P @ h) / S
        out.innovations.append(np.array([innovation / S**0.5]))
        if k % 64 == 0:
            out.add_snapshot(float(k), beta, P)
    return out


def test_a_consistent_filter_passes() -> None:
    """The false-alarm rate is at most one in a thousand: none in two hundred."""
    ratios = [linear_filter(seed).ratios() for seed in range(200)]
    assert all(r.passes for one in ratios for r in one.values())
    for name in ratios[0]:  # the expected value is one; each has at least some thousand squares
        assert np.mean([one[name].value for one in ratios]) == pytest.approx(1.0, abs=0.06), name


@pytest.mark.parametrize(("wrong", "name"), [
    ({"stated_noise": 0.6}, "innovations"), ({"stated_noise": 0.6}, "later steps of the parameters"),
    ({"stated_start": 0.1}, "first step of the parameters"),
])  # fmt: skip
def test_an_overconfident_filter_is_named(wrong: dict[str, float], name: str) -> None:
    assert sum(not linear_filter(seed, **wrong).ratios()[name].passes for seed in range(20)) >= 19


@pytest.mark.parametrize(("tuning", "why"), [
    (Tuning(torque_noise=0.02, position_noise=1e-4), "later steps"),  # the true one is 0.3 to 1 N m
    (Tuning(prior_relative_std=0.01), "first step"),  # the true error is 20 %
])  # fmt: skip
def test_a_filter_with_too_small_noise_or_start_errors_is_overconfident(tuning: Tuning, why: str) -> None:
    c = rotradi()
    estimate = ExtendedKalman(tuning=tuning).fit(noisy(), c.base, Prior(1.2 * c.theta))
    assert estimate.result is Result.OVERCONFIDENT
    assert why in estimate.notes[0]
    assert np.all(estimate.details["inflation"] > 1.25)


def test_a_start_from_a_prior_is_independent_of_the_log() -> None:
    c = rotradi()
    logs = [c.experiment(c.log(1e-4, 0.02, seed=s)) for s in (1, 2)]
    one, two = (ExtendedKalman().fit(e, c.base, Prior(1.2 * c.theta)) for e in logs)
    assert one.details["started_from"] == "prior"
    for what in ("start", "start_std"):
        assert one.details[what].tobytes() == two.details[what].tobytes()
    assert fitted("ekf").details["started_from"] == "least squares"


def test_a_prior_without_friction_is_refused_as_start() -> None:
    c = loop_case("ns16", seconds=2.0, rate=500.0)
    links = np.where(np.arange(len(c.theta)) < c.robot.inertial_count, c.theta, 0.0)
    with pytest.raises(EstimationError, match=r"no size for .*Fc1"):
        ExtendedKalman().fit(c.experiment(c.log(1e-5, 0.01)), c.base, Prior(links))


# ---------------------------------------------------------------- a six-axis arm with friction


def test_the_extended_filter_on_a_six_axis_arm_from_a_wrong_prior() -> None:
    """20 % error of the prior; `benchmarks/filters.py` has twenty logs and all filters."""
    c = loop_case("ns16", seconds=4.0, rate=500.0)
    estimate = ExtendedKalman().fit(c.experiment(c.log(1e-5, 0.01)), c.base, Prior(1.2 * c.theta))
    assert len(estimate.beta) == 58
    assert estimate.result is Result.CONVERGED, estimate.notes
    # Errors of one log are correlated: over twenty logs the root mean square is 1, of single ones 0.6 to 1.5.
    assert 0.5 < np.sqrt(np.mean(((estimate.beta - c.beta) / estimate.standard_errors) ** 2)) < 1.6
    # The most likely noise is that of the sensors, within the accuracy of short logs; least squares: 2 to 10 times.
    ratio = estimate.details["torque_noise"] / (0.01 * np.std(c.run.tau, axis=0))
    assert 0.7 < ratio.min() < ratio.max() < 1.6
    assert np.median(ratio) == pytest.approx(1.0, abs=0.15)
    assert np.allclose(estimate.details["position_noise"], 1e-5, rtol=0.1)


@pytest.mark.proof
@pytest.mark.parametrize("name", [*GAUSSIAN])
def test_all_filters_on_a_six_axis_arm_with_friction(name: str) -> None:
    c = loop_case("ns16", seconds=10.0, rate=1000.0)
    experiment = c.experiment(c.log(1e-5, 0.01))
    start = time.process_time()
    estimate = make_experiment_estimator(name).fit(experiment, c.base)
    spent = time.process_time() - start
    z = float(np.sqrt(np.mean(((estimate.beta - c.beta) / estimate.standard_errors) ** 2)))
    print(
        f"{name}: error {error(estimate, c):.2e}, z {z:.2f}, {estimate.details['consistency']:.2f}, "
        f"{spent:.1f} s for 10 s"
    )
    assert estimate.result is Result.CONVERGED, estimate.notes
    assert error(estimate, c) < 0.01  # measured 0.3 %, least squares 3 %
    assert MIN_RATIO < z < 2.0


def test_defaults_are_those_of_the_names() -> None:
    assert make_experiment_estimator("srukf") == SigmaPointKalman(square_root=True)
    assert make_experiment_estimator("ekf") == ExtendedKalman()
