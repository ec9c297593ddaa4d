"""An undescribed counterbalance is found if gravity alone is physically impossible, and only then."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from steelyard.dynamics.model import Model
from steelyard.estimation.estimate import EstimationError
from steelyard.identification._balance import add_counterbalance
from steelyard.identification.identify import identify
from steelyard.parameters import Coulomb, Counterbalance, Viscous, terms
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

ROBOT = builtin("ns16")
JOINT = 1  # the shoulder, which gravity loads most


def log_of(balance: float) -> tuple[Log, Model]:
    """Sines on all joints; a balancer that takes `balance` times the largest gravity torque off the shoulder."""
    rng = np.random.default_rng(0)
    n = ROBOT.dof
    rates = 2.0 * np.pi * np.array([0.11, 0.23, 0.37])
    size, phase = rng.uniform(0.1, 0.4, (3, n)), rng.uniform(0.0, 6.0, (3, n))
    t = np.arange(6000) / 150.0
    angle = t[:, None, None] * rates[:, None] + phase
    q, dq = (size * np.sin(angle)).sum(1), (size * rates[:, None] * np.cos(angle)).sum(1)
    bound = terms(ROBOT, Viscous(), Coulomb(smooth=0.01), Counterbalance(where=(ROBOT.joint_names[JOINT],)))
    gravity = Model.nominal(ROBOT).gravity_torque(q)[:, JOINT]
    along = np.column_stack([np.sin(q[:, JOINT]), np.cos(q[:, JOINT])])
    mean = np.linalg.lstsq(along, gravity, rcond=None)[0]
    theta = np.concatenate([ROBOT.inertial_parameters, np.full(n, 2.0), np.full(n, 1.0), -balance * mean])
    truth = Model(ROBOT, bound, theta)
    tau = truth.torque(q, dq, -(size * rates[:, None] ** 2 * np.sin(angle)).sum(1))
    noise = 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau + noise), truth


@pytest.mark.parametrize("balance", [0.0, 1.6])
def test_a_counterbalance_is_found_where_there_is_one(balance: float) -> None:
    log, _ = log_of(balance)
    found = identify(ROBOT, log, check=False)
    where = [t.where for t in found.model.terms.terms if t.kind == "counterbalance"]
    assert where == ([(ROBOT.joint_names[JOINT],)] if balance else [])
    assert found.possible
    # With it, possible links explain the log as well as free ones do, up to a few parameters' worth of noise.
    assert found.estimate.cost < 1.2 * found.free.cost


def test_a_motion_too_small_for_a_counterbalance_leaves_the_terms_as_they_are() -> None:
    """The trial's parameters are then not identifiable; the fit without it must not be lost."""
    log, _ = log_of(0.0)
    study = Study.of(ROBOT, log, terms(ROBOT, Viscous(), Coulomb(smooth=0.01)), Preparation())
    rms = np.ones(ROBOT.dof)
    pair = tuple(SimpleNamespace(cost=cost, residual_std=rms) for cost in (1.0, 2.0))

    def fits(trial: Study) -> None:
        raise EstimationError("Not all base parameters are identifiable from the data.")

    assert add_counterbalance(study, fits, pair) == (study, pair)
