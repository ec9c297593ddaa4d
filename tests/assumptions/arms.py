"""A three-joint arm that Pinocchio moves, with mistakes in its log that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from torque_plants import Plant

from steelyard.assumptions import Ledger, examine_assumptions
from steelyard.dynamics.model import Model
from steelyard.parameters.terms import identification_terms
from steelyard.signals.log import Log
from steelyard.signals.prepare import Preparation
from steelyard.study import Study

Change = Callable[[Log], Log]


@cache
def plant(seed: int = 0, duration: float = 20.0) -> Plant:
    return Plant(100.0, seed=seed, torque_noise=0.008, duration=duration)


def of_torque(joint: int, factor: float) -> Change:
    return lambda log: replace(log, tau=log.tau * np.where(np.arange(3) == joint, factor, 1.0))


def of_position(joint: int, shift: float, factor: float = 1.0) -> Change:
    mine = np.arange(3) == joint
    return lambda log: replace(log, q=log.q * np.where(mine, factor, 1.0) + np.where(mine, shift, 0.0))


def of_slip(joint: int, shift: float, since: float = 0.43) -> Change:
    """The zero of a joint slips at a share of the log that is no border of the ledger's blocks."""
    mine = np.arange(3) == joint
    return lambda log: replace(log, q=log.q + shift * mine * (np.arange(len(log)) > since * len(log))[:, None])


def of_clock(factor: float) -> Change:
    return lambda log: replace(log, t=log.t * factor)


def friction_alone(log: Log) -> Log:
    """The torque of the second joint is that of its friction."""
    tau, rng = np.array(log.tau), np.random.default_rng(0)
    rubs = np.tanh(np.gradient(log.q[:, 1], log.t) / 0.05) + 0.05 * rng.normal(size=len(log))
    tau[:, 1] = 0.3 * np.std(tau[:, 1]) * rubs
    return replace(log, tau=tau)


def light_wrist(log: Log) -> Log:
    """The friction of the third joint is ten times its other torques."""
    tau = np.array(log.tau)
    tau[:, 2] += 10.0 * np.std(tau[:, 2]) * np.tanh(np.gradient(log.q[:, 2], log.t) / 0.05)
    tau[:, 2] += 0.3 * np.std(log.tau[:, 2]) * np.random.default_rng(0).normal(size=len(log))
    return replace(log, tau=tau)


def exchanged_positions(log: Log) -> Log:
    return replace(log, q=log.q[:, [0, 2, 1]])


def unchanged(log: Log) -> Log:
    return log


def ledger(change: Change = unchanged, seed: int = 0, delay: float = 0.0, judged: bool = True) -> Ledger:
    """The ledger of a fit with the usual terms to a log of the arm; another motion judges, with the same mistake."""
    robot = plant(seed).robot
    logs = [change(plant(seed + k).sampled(delay)) for k in (0, 1000)]
    preparation = Preparation(cutoff_hz=8.0).for_rows(torques=True, one_by_one=True)
    study = Study.of(robot, logs[0], identification_terms(robot), preparation)
    model, left = study.quick_fit()
    judges = study.for_validation([logs[1]] if judged else [])
    errors = np.full(study.base.rank, np.inf)
    found = examine_assumptions(study, model, judges, left, left / np.std(logs[1].tau, axis=0), errors)
    assert found is not None
    assert isinstance(model, Model)
    return found
