"""Settings chosen by cross-validation: the truth of a simulated robot is found again, and nothing else is looked at."""

from __future__ import annotations

import json

import numpy as np
import pytest

import steelyard as sy
from steelyard.assessment.cross_validate import CrossValidation, ScoringFilter, left_out, stretches_of
from steelyard.assessment.holdout import part_of
from steelyard.assessment.score import score
from steelyard.dynamics.engine import Dynamics
from steelyard.dynamics.model import Model
from steelyard.identification._tune import SMOOTHINGS, tuned
from steelyard.identification.identify import identify
from steelyard.parameters.terms import identification_terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.regression.schemes import make_scheme
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation, prepare
from steelyard.study import Study

ROBOT = load_robot("szabo3r")
SECONDS, PERIOD = 30.0, 0.01


def a_log(smooth: float, seed: int = 0, velocity_noise: float = 0.0) -> Log:
    """Three joints in slow sines, through zero velocity many times; dry friction as given, a little torque noise."""
    rng = np.random.default_rng(seed)
    t = PERIOD * np.arange(int(SECONDS / PERIOD))
    rates = 2.0 * np.pi * rng.uniform(0.05, 0.3, (3, 4))
    size, phase = rng.uniform(0.2, 0.6, (3, 4)), rng.uniform(0.0, 6.0, (3, 4))
    angle = t[:, None, None] * rates + phase
    q, dq, ddq = (
        (size * rates**k * f(angle)).sum(axis=2) for k, f in enumerate((np.sin, np.cos, lambda x: -np.sin(x)))
    )
    bound = identification_terms(ROBOT, ("viscous", f"coulomb:smooth={smooth}"))
    friction = np.concatenate([np.full(3, 0.4), np.full(3, 2.0)])
    model = Model(ROBOT, bound, np.concatenate([ROBOT.inertial_parameters, friction]))
    tau = model.torque(q, dq, ddq) + 0.02 * rng.normal(size=q.shape)
    measured = dq + velocity_noise * rng.normal(size=q.shape)
    return Log(ROBOT.joint_names, t, q, dq=measured if velocity_noise else None, tau=tau)


@pytest.mark.parametrize("factor", [0.0, 10.0])
def test_the_rounding_of_dry_friction_is_found(factor: float) -> None:
    found = tuned(Study.of(ROBOT, [a_log(0.01 * factor)], preparation=Preparation()), ("viscous", "coulomb"))
    assert found.chosen.smoothing == factor
    assert found.trial(found.chosen).error < found.trials[0].error


def test_the_default_stands_where_it_is_right() -> None:
    found = tuned(Study.of(ROBOT, [a_log(0.01)], preparation=Preparation()), ("viscous", "coulomb"))
    assert found.chosen.smoothing == 1.0


def test_a_useless_velocity_is_left_aside() -> None:
    log = a_log(0.01, velocity_noise=0.3)
    noisy = tuned(Study.of(ROBOT, [log], preparation=Preparation()), ("viscous", "coulomb"))
    forced = [t for t in noisy.trials if t.choice.velocity == "measured"]
    assert noisy.chosen.velocity != "measured"
    assert all(t.error > noisy.trial(noisy.chosen).error for t in forced)


def test_what_is_fixed_stays_fixed() -> None:
    found = tuned(
        Study.of(ROBOT, [a_log(0.01)], preparation=Preparation(cutoff_hz=5.0)), ("viscous", "coulomb:smooth=0.02")
    )
    assert len(found.trials) == 1
    assert "defaults stand" in found.sentence


def test_a_log_too_short_is_refused() -> None:
    log = a_log(0.01)
    short = part_of(log, [(0, 100)])
    assert short is not None
    with pytest.raises(sy.SteelyardError, match="without tuning"):
        tuned(Study.of(ROBOT, [short], preparation=Preparation(cutoff_hz=2.0)), None)


def test_validation_takes_no_part_and_the_result_says_what_was_tried() -> None:
    from steelyard.identification.run import result_json

    used, judged = a_log(0.1), a_log(0.0, seed=1)
    alone = identify(ROBOT, used, terms=("viscous", "coulomb"), tune=True)
    both = identify(ROBOT, used, [judged], terms=("viscous", "coulomb"), tune=True)
    assert both.tuning is not None
    assert both.tuning == alone.tuning
    np.testing.assert_array_equal(both.model.theta, alone.model.theta)
    told = json.loads(json.dumps(result_json(both)))["tuning"]
    assert told["chosen"]["smoothing"] == 10.0
    assert {t["smoothing"] for t in told["trials"]} == set(SMOOTHINGS)
    assert both.cutoff_hz == told["chosen"]["cutoff_hz"]


def test_leaving_out_on_triangles_is_identifying_and_scoring() -> None:
    """The short cut over merged factors against the long way: identify from the rest, score what was left out."""
    log, cutoff_hz, at = a_log(0.01), 10.0, 20.0  # at 20 Hz the judge keeps every row, as the score does
    terms = ("viscous", "coulomb")
    bound = identification_terms(ROBOT, terms)
    base = base_parameters(ROBOT, bound)
    judge = ScoringFilter(at, 1.0 / cutoff_hz)
    stretches = stretches_of([log], 3, 1.0)
    bench = CrossValidation(make_scheme("dynamic"), Dynamics(ROBOT, bound), base)
    settings = Preparation(cutoff_hz=cutoff_hz)
    errors = left_out([bench.stretch(s, settings, cutoff_hz, judge) for s in stretches], base)
    for k, ((judged,), row) in enumerate(zip(stretches, errors, strict=True)):
        rest = [s[0] for i, s in enumerate(stretches) if i != k]
        found = identify(ROBOT, rest, terms=terms, physical=False, preparation=settings)
        direct = score(found.model, judged, settings, cutoff_hz, at)
        # The weights are iterated less far in the short cut: a thousandth of them.
        np.testing.assert_allclose(row, [j.rmse for j in direct.joints], rtol=1e-3)


@pytest.mark.parametrize("late", [-7, 0, 5])
def test_a_stated_delay_puts_torque_and_motion_in_step(late: int) -> None:
    log = a_log(0.01)
    assert log.tau is not None
    shifted = Log(log.joints, log.t, log.q, tau=np.roll(log.tau, late, axis=0))
    inner = slice(50, -50)  # what was rolled around the ends does not count
    (a,) = prepare(log, Preparation(), 5.0)
    (b,) = prepare(shifted, Preparation(delay=late * PERIOD), 5.0)
    first = max(-late, 0)
    np.testing.assert_array_equal(b.tau[inner], a.tau[first : first + len(b.t)][inner])
    np.testing.assert_array_equal(b.t, a.t[first : first + len(b.t)])
