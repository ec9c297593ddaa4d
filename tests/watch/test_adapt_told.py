"""The model that goes along: it finds what has changed, is written whole, and goes on after a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steelyard.dynamics import Model
from steelyard.export import as_model
from steelyard.robot.library import builtin
from steelyard.simulation.work import WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver
from steelyard.watch.parts import WatchSetup
from steelyard.watch.told.adapt import AdaptPart

ARM = Model.nominal(builtin("rotradi"))


def run(part: AdaptPart, seconds: float, size: int = 500) -> AdaptPart:
    model = part.setup.model
    life = WorkingLife(ARM, shift_s=seconds, begins_s=0.0, cold=0.0, ripple=0.0, noise=0.005)
    observer = MomentumObserver(model)
    t, q, dq, tau = (np.concatenate(x) for x in zip(*life.blocks(0, 1), strict=True))
    for a in range(0, len(t), size):
        some = slice(a, a + size)
        part.take(observer.take(SampleBatch(t[some], q[some], dq[some], tau[some], a == 0)))
    return part


def test_friction_that_was_wrong_is_found_and_the_model_is_written(tmp_path: Path) -> None:
    wrong = ARM.theta.copy()
    wrong[30:] *= 1.3
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 60.0}
    part = run(AdaptPart(WatchSetup(Model(ARM.robot, ARM.terms, wrong), options=options)), 180.0)
    assert part.telling()["adapts"] is True
    assert part.fetch_events() == []
    found = as_model(tmp_path / "adapted" / "rotradi.urdf")
    rng = np.random.default_rng(0)
    q, dq = rng.uniform(-1.0, 1.0, (2, 50, 3))
    still = np.zeros_like(q)
    error = [
        np.sqrt(np.mean((m.torque(q, dq, still) - ARM.torque(q, dq, still)) ** 2)) for m in (found, part.setup.model)
    ]
    assert error[0] < 0.2 * error[1]


def test_without_a_folder_it_does_nothing() -> None:
    part = run(AdaptPart(WatchSetup(ARM)), 60.0)
    assert part.telling() == {"adapts": False}


def test_batches_and_restarts_make_no_difference(tmp_path: Path) -> None:
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}
    whole, parts = (AdaptPart(WatchSetup(ARM, options=options)) for _ in range(2))
    run(whole, 60.0)
    life = WorkingLife(ARM, shift_s=60.0, begins_s=0.0, cold=0.0, ripple=0.0, noise=0.005)
    (block,) = life.blocks(0, 1)
    observer = MomentumObserver(ARM)
    for a in range(0, len(block[0]), 731):
        parts.take(observer.take(SampleBatch(*(x[a : a + 731] for x in block), fresh=a == 0)))
        state = parts.state()
        parts = AdaptPart(WatchSetup(ARM, options=options))
        parts.restore(state)
    assert parts.model.theta == pytest.approx(whole.model.theta, rel=1e-9, abs=1e-12)
