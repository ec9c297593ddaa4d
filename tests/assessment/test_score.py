"""Scores of a long log: pieces come and go."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace

import steelyard as sy
from steelyard.assessment.score import score_models
from steelyard.demo import simulated_log
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
