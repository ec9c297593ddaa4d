"""Rows filtered in chunks, against the whole regressor filtered by SciPy and then decimated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from steelyard.dynamics.engine import Dynamics
from steelyard.parameters.terms import identification_terms
from steelyard.regression import observe as room
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, prepare

PERIOD = 0.002


def motion_of(samples: int, settings: Preparation, cutoff_hz: float) -> tuple[Dynamics, Motion]:
    robot = load_robot("szabo3r")
    t = PERIOD * np.arange(samples)
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.5, 4.0, (3, robot.dof))
    q = np.sin(t[:, None, None] * rates + rng.uniform(0.0, 6.0, rates.shape)).sum(axis=1)
    log = Log(robot.joint_names, t, q, tau=rng.normal(size=q.shape))
    (motion,) = prepare(log, settings, cutoff_hz)
    return Dynamics(robot, identification_terms(robot, None)), motion


@pytest.mark.parametrize(
    ("cutoff_hz", "order", "decimation", "chunk"), [(8.0, 4, None, 700), (20.0, 2, 7, 1000), (5.0, 5, 1, 900)]
)
def test_rows_are_those_of_filtering_everything_at_the_full_rate(
    monkeypatch: pytest.MonkeyPatch, cutoff_hz: float, order: int, decimation: int | None, chunk: int
) -> None:
    """Small chunks create borders; samples beyond the filter's reach weigh less than 1e-9.

    Columns of links are computed at some of the samples: aliasing is below 1e-7 of them. At the end of a log, which its
    reflection continues, a few more samples weigh 1e-6.
    """
    monkeypatch.setattr(room, "_CHUNK", chunk)
    monkeypatch.setattr(room, "_LONGEST_CHUNK", chunk)
    dynamics, motion = motion_of(6000, Preparation(order=order, decimation=decimation), cutoff_hz)
    base = base_parameters(dynamics.robot, dynamics.terms)
    data = room.observe(dynamics, base, lambda: [motion])
    Y = dynamics.torque_regressor(motion.q, motion.dq, motion.ddq)
    sections = butter(order, 2.0 * cutoff_hz * PERIOD, output="sos")
    blocks = list(data.blocks())
    for e, equation in enumerate(data.equations):
        whole = np.column_stack([Y[:, e, equation.columns], motion.tau[:, e]])
        expected = sosfiltfilt(sections, whole, axis=0, padlen=motion.filter.memory)[motion.keep]
        mine = [np.column_stack([b.A, b.y]) for b in blocks if b.equation == e]
        found = np.concatenate(mine)
        assert len(mine) > 5
        assert found.shape == expected.shape
        size, links = np.max(np.abs(whole), axis=0), equation.columns < dynamics.robot.inertial_count
        for rows, share in ((slice(None), 3e-6), (slice(30, -30), 1e-7)):
            part = np.where(np.append(links, False), share if decimation is None else 2e-9, 2e-9)
            assert np.all(np.abs(found - expected)[rows] <= part * size + 1e-12)


def test_slow_joints_are_masked() -> None:
    dynamics, motion = motion_of(3000, Preparation(), 8.0)
    base = base_parameters(dynamics.robot, dynamics.terms)
    data = room.observe(dynamics, base, lambda: [motion], mask=0.5)
    fast = np.count_nonzero(np.abs(motion.dq[motion.keep]) >= 0.5, axis=0)
    counts = [sum(len(b.y) for b in data.blocks() if b.equation == e) for e in range(dynamics.robot.dof)]
    assert counts == fast.tolist()
