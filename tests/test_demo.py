"""The demo tells the truth."""

from __future__ import annotations

import numpy as np

from steelyard.demo import run_demo


def test_the_demo_finds_the_arm_it_simulated() -> None:
    found = run_demo()
    assert found.rank == len(found.rows)
    # Torque noise is 0.1 N m; on the wrist, whose torques are a few N m, that alone is 5–8 % of their spread.
    assert max(found.error_percent.values()) < 10.0
    errors = np.array([abs(r["found"] - r["true"]) for r in found.rows])
    sizes = np.array([abs(r["true"]) for r in found.rows])
    large = sizes > 1.0
    assert np.median(errors[large] / sizes[large]) < 0.03
    assert found.to_json()["base_parameters"]["count"] == found.rank
