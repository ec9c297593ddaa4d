"""Scores of a long log: pieces come and go."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import steelyard as sy
from steelyard.assessment.score import JointScore, Score, score_models
from steelyard.demo import simulated_log
from steelyard.ground.reasons import missing
from steelyard.robot.library import builtin
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


def test_a_torque_that_does_not_vary_has_no_share_and_says_why() -> None:
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
    assert "does not vary" in made["why_null"]["joints/*/nrmse_percent"]
