"""Creation of experiments, and input that is refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiment_cases import loop_case

from steelyard.errors import ShapeError
from steelyard.estimation import EstimationError, OutputError, estimator_names, make_experiment_estimator
from steelyard.estimation.simulation_error._closed_loop import ClosedLoop, ClosedLoopError
from steelyard.signals.log import Log

CLOSED = estimator_names(needs_controller=True)
closed = pytest.mark.parametrize("name", CLOSED)


def test_raw_positions_and_references_use_the_clock_of_the_motion() -> None:
    c = loop_case("rotradi")
    log = c.log(1e-4, 0.02)
    made = c.experiment(log)
    (run,) = made.runs
    assert np.array_equal(run.q, log.q)
    assert np.array_equal(run.tau, log.tau)
    assert run.reference is not None
    assert np.allclose(run.reference[0], c.reference.sample(log.t)[0])
    assert run.period == pytest.approx(2e-3)
    assert made.regression(c.base).factor().samples == run.motion.rows


def test_a_reference_may_be_arrays_and_controllers_may_be_faster_than_the_log() -> None:
    c = loop_case("rotradi")
    log = c.log()
    arrays = c.experiment(log, references=c.reference.sample(log.t)).runs[0].reference
    assert arrays is not None
    assert np.allclose(arrays[1], c.reference.sample(log.t)[1])
    fast = c.experiment(log, control_period=5e-4).runs[0].reference
    assert fast is not None
    assert len(fast[0]) == 4 * (len(log) - 1) + 1


def test_a_gap_makes_two_runs_with_their_own_references() -> None:
    c = loop_case("rotradi")
    log = c.log()
    half = len(log) // 2
    t = log.t + np.where(np.arange(len(log)) >= half, 1.0, 0.0)
    cut = Log(log.joints, t, log.q, tau=log.tau, segments=((0, half), (half, len(log))))
    reference = c.reference.sample(log.t)
    first, second = c.experiment(cut, references=reference).runs
    assert first.reference is not None
    assert second.reference is not None
    assert np.allclose(first.reference[0], reference[0][:half])
    assert np.allclose(second.reference[0], reference[0][half:])
    estimate = make_experiment_estimator("clie").fit(c.experiment(cut, references=reference), c.base)
    assert np.abs(estimate.beta - c.beta).max() < 1e-3 * np.abs(c.beta).max()


@closed
def test_a_missing_controller_or_reference_is_refused(name: str) -> None:
    c = loop_case("rotradi")
    with pytest.raises(EstimationError, match="needs the robot's controller"):
        make_experiment_estimator(name).fit(c.experiment(controller=None), c.base)
    with pytest.raises(EstimationError, match="needs the robot's reference"):
        make_experiment_estimator(name).fit(c.experiment(references=None), c.base)


@closed
def test_a_controller_that_does_not_match_is_refused(name: str) -> None:
    c = loop_case("rotradi")
    wrong = replace(c.controller, kp=2.0 * c.controller.kp)
    with pytest.raises(ClosedLoopError, match="does not explain the log"):
        make_experiment_estimator(name).fit(c.experiment(controller=wrong), c.base)


def test_a_loop_that_is_far_from_the_log_is_refused() -> None:
    """The right controller with a robot ten times as heavy, which sags and lags."""
    c = loop_case("rotradi")
    loop = ClosedLoop.of(c.experiment(), c.base, c.theta, 0.25)
    loop.motions(c.theta)
    with pytest.raises(ClosedLoopError, match=r"far from the log: joint 'q\d' differs by \d+ % of its motion"):
        loop.motions(10.0 * c.theta)
    with pytest.raises(ClosedLoopError, match="mass matrix is not positive definite"):
        loop.motions(-c.theta)


@closed
def test_an_unstable_loop_is_reported(name: str) -> None:
    """Gains that are stable only for a shorter control period."""
    c = loop_case("rotradi")
    unstable = replace(c.controller, kd=300.0 * c.controller.kd)
    with pytest.raises(ClosedLoopError, match="unstable"):
        make_experiment_estimator(name, mismatch=1e6).fit(c.experiment(controller=unstable), c.base)


@pytest.mark.parametrize(("option", "value"), [("position_noise", -1e-4), ("torque_noise", np.nan)])
def test_invalid_noise_levels_are_refused(option: str, value: float) -> None:
    with pytest.raises(EstimationError, match="standard deviation"):
        loop_case("rotradi").experiment(**{option: value})


def test_wrong_shapes_are_named() -> None:
    c = loop_case("rotradi")
    with pytest.raises(ShapeError, match="position_noise"):
        c.experiment(position_noise=[1e-4, 1e-4])
    with pytest.raises(EstimationError, match="2 references"):
        c.experiment([c.log()], references=[c.reference] * 2)
    with pytest.raises(EstimationError, match="gains for 5 joints"):
        c.experiment(controller=loop_case("prrrp", bandwidth_rad_s=80.0).controller)
    with pytest.raises(EstimationError, match="smoothing"):
        c.experiment(smoothing=0.0)
    with pytest.raises(EstimationError, match="strength"):
        OutputError(strength=-1.0).fit(c.experiment(), c.base)
