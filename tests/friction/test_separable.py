"""Shapes of friction found outside, everything linear inside; rows that count less at reversals."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.identification.identify import identify
from steelyard.parameters.friction import Coulomb, Stribeck
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot("szabo3r")
SPEEDS = (0.08, 0.2, 0.12)
TERMS = ("rotor", "viscous", "coulomb", "stribeck", "offset")


def log(seed: int, noise: float = 0.05) -> Log:
    """Slow and fast parts, so that every speed of the curve is visited."""
    made = [Stribeck(where=(n,), speed=s, smooth=0.01) for n, s in zip(ROBOT.joint_names, SPEEDS, strict=True)]
    bound = terms(ROBOT, "viscous", Coulomb(smooth=0.01), *made)
    values = [0.5, 0.4, 0.3, 3.0, 2.5, 2.0, 2.0, 2.0, 1.5]
    model = Model(ROBOT, bound, np.concatenate([ROBOT.inertial_parameters, values]))
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 20.0, 0.005)
    w = 2 * np.pi * np.array([0.1, 0.3, 0.5])
    a, p = rng.uniform(0.2, 0.4, (3, 3)) / w[:, None], rng.uniform(0, 6, (3, 3))
    angle = t[:, None, None] * w[:, None] + p
    q, dq = (a * np.sin(angle)).sum(1), (a * w[:, None] * np.cos(angle)).sum(1)
    ddq = -(a * w[:, None] ** 2 * np.sin(angle)).sum(1)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=model.torque(q, dq, ddq) + noise * rng.normal(size=q.shape))


@pytest.fixture(scope="module")
def found():
    return identify(ROBOT, log(0), [log(1)], terms=TERMS, fit_shapes=True)


def test_the_planted_speeds_are_found(found) -> None:
    shapes = {(s.joint, s.option): s for s in found.shapes.found}
    for name, speed in zip(ROBOT.joint_names, SPEEDS, strict=True):
        got = shapes[(name, "speed")]
        # Error bars are those of white noise; filtered rows are not, hence five of them beside 3 % of the grid.
        assert abs(np.log(got.value / speed)) < 5.0 * got.relative_error + 0.03


def test_the_result_is_physical_and_predicts_better(found) -> None:
    plain = identify(ROBOT, log(0), [log(1)], terms=TERMS)
    assert found.possible
    assert found.validation[0].mean_nrmse_percent <= plain.validation[0].mean_nrmse_percent
    assert found.shapes.lowered_percent > 0.0
    used = [t.speed for t in found.model.terms.terms if isinstance(t, Stribeck)]
    assert used == [s.value for s in found.shapes.found if s.option == "speed"]


def test_what_the_data_do_not_show_stays_as_it_was() -> None:
    """Without any Stribeck friction the speed keeps its default."""
    made = log(0)
    ddq = np.gradient(made.dq, made.t, axis=0)
    tau = Model(ROBOT, terms(ROBOT), ROBOT.inertial_parameters).torque(made.q, made.dq, ddq)
    tau += 0.05 * np.random.default_rng(5).normal(size=tau.shape)
    quiet = Log(made.joints, made.t, made.q, dq=made.dq, tau=tau)
    shapes = identify(ROBOT, quiet, terms=("rotor", "viscous", "stribeck"), fit_shapes=True, physical=False).shapes
    assert [s.value for s in shapes.found] == [0.1, 0.1, 0.1]


def test_without_shapes_there_is_nothing_to_fit() -> None:
    with pytest.raises(SteelyardError, match="shape to fit"):
        identify(ROBOT, log(0), terms=("rotor", "viscous"), fit_shapes=True)
    with pytest.raises(SteelyardError, match="zero or positive"):
        identify(ROBOT, log(0), scheme="dynamic:reversals=-1")


def test_reversals_count_less_but_are_not_thrown_away() -> None:
    """With a wrong curve near zero (a bare sign), rows that count less there spoil the rest less."""
    sign = ("rotor", "viscous", "coulomb:smooth=0", "offset")
    data = log(0)
    plain = identify(ROBOT, data, terms=sign, physical=False)
    soft = identify(ROBOT, data, terms=sign, physical=False, scheme="dynamic:reversals=0.1")
    assert soft.estimate.details["rows"] == plain.estimate.details["rows"]
    fast = np.abs(data.dq[:, 0]) > 0.5
    errors = [
        np.std((x.predict(data.q, data.dq, np.gradient(data.dq, data.t, axis=0)) - data.tau)[fast, 0])
        for x in (plain, soft)
    ]
    assert errors[1] < errors[0]
