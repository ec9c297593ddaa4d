"""Scores of a long log: pieces come and go."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import steelyard as sy
from steelyard.assessment.score import JointScore, Score, score_models
from steelyard.assessment.torque_error import pool_scores
from steelyard.demo import simulated_log
from steelyard.ground.reasons import missing
from steelyard.robot.library import builtin
from steelyard.signals.filters import LowPass
from steelyard.signals.prepare import Motion
from steelyard.study import Study


def test_no_piece_outlives_its_turn() -> None:
    model = sy.Model.nominal(builtin("rotradi"))
    (motion,) = Study.of(model.robot, simulated_log(model, 1), ()).motions()
    given: list[weakref.ref[object]] = []

    def stream() -> Iterator[Motion]:
        for _ in range(4):
            assert not [ref for ref in given if ref() is not None]  # what plots show is copied out of it
            piece = replace(motion, q=motion.q.copy(), t=motion.t.copy())
            given.extend([weakref.ref(piece.q), weakref.ref(piece.t), weakref.ref(piece)])
            yield piece
            del piece

    found = score_models([model, model], stream(), 10.0)[0]
    once = score_models([model], [motion], 10.0)[0]
    assert found.samples == 4 * once.samples
    assert len(found.t) == 4 * len(once.t)


def test_a_torque_that_is_constant_has_no_relative_errors() -> None:
    """A share of nothing was written as millions of percent."""
    still = JointScore("q1", 1e-7, 1e7, -1e10, 2e-6, {"rmse": 1e-7, "nrmse_percent": 1e7, "r2": -1e10})
    moved = JointScore("q2", 0.3, 2.2, 0.9995, 2.2)
    nothing = np.zeros((0, 2))
    made = Score("log", 10.0, 100, (still, moved), nothing[:, 0], *[nothing] * 4).to_json()
    first, second = made["joints"]
    assert (first["nrmse_percent"], first["r2"], first["raw"]["r2"]) == (None, None, None)
    assert (first["rmse"], first["relative_error_percent"]) == (1e-7, 2e-6)
    assert (second["nrmse_percent"], second["r2"]) == (2.2, 0.9995)
    assert list(missing(made)) == []
    assert "is constant" in made["why_null"]["joints/*/nrmse_percent"]


def pooled_pair() -> tuple[Score, Score, np.ndarray, np.ndarray]:
    """Scores of a fast log and a slow one of a joint, each against a known torque; and all rows of both."""
    rng = np.random.default_rng(0)
    model = sy.Model.nominal(builtin("rotradi"))
    (motion,) = Study.of(model.robot, simulated_log(model, 1), ()).motions()
    scores, measured, predicted = [], [], []
    for name, size, rows in (("fast", 10.0, 4000), ("slow", 0.1, 1000)):
        piece = slice(motion.keep.start, motion.keep.start + rows)
        tau = size * motion.tau + rng.normal(0.0, 0.3, motion.tau.shape)
        changed = replace(motion, tau=tau, keep=slice(piece.start, piece.stop, 1))
        (made,) = score_models([model], [changed], 10.0, name)
        scores.append(made)
        smooth = LowPass(10.0, motion.filter.period)
        measured.append(smooth(tau)[piece])
        predicted.append(smooth(model.torque(motion.q, motion.dq, motion.ddq))[piece])
    return scores[0], scores[1], np.concatenate(measured), np.concatenate(predicted)


def test_logs_are_pooled_row_by_row() -> None:
    """A slow log's small torque decided: its error was a share of next to nothing."""
    fast, slow, measured, predicted = pooled_pair()
    error = pool_scores([fast, slow], unseen=True)
    rmse = np.sqrt(np.mean((measured - predicted) ** 2, axis=0))
    expected = 100.0 * rmse / np.std(measured, axis=0)
    np.testing.assert_allclose([j.nrmse_percent for j in error.joints], expected, rtol=1e-9)
    np.testing.assert_allclose([j.moving_nrmse_percent for j in error.joints], expected, rtol=1e-9)
    assert all(slow.joints[k].nrmse_percent > 2.0 * expected[k] for k in range(3))
    assert pool_scores([fast], unseen=True).joints == fast.joints
