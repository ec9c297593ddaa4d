"""The demo tells the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.demo import DURATION, _find_motion, run_demo
from steelyard.robot.library import builtin


def test_the_demo_finds_the_arm_it_simulated(tmp_path: Path) -> None:
    demo = run_demo(tmp_path / "run")
    # Torque noise is half a percent of the motors' limits; the torques themselves are some ten percent of them.
    assert max(j.nrmse_percent for j in demo.found.validation[0].joints) < 10.0
    rows = demo.rows
    errors = np.array([abs(r["found"] - r["true"]) for r in rows])
    sizes = np.array([abs(r["true"]) for r in rows])
    large = sizes > 5.0
    assert np.median(errors[large] / sizes[large]) < 0.03
    assert (tmp_path / "run" / "report.html").exists()
    # The plant rubs by the law that is fitted, so the error bars hold: 95 % of 58, less three standard deviations of
    # a share whose members err together in groups of about three.
    assert demo.covered >= 0.80 * len(rows)
    # Nor are they wider than they need be: deviations of standard size, within the scatter of some twenty groups.
    deviations = errors / [r["standard_error"] for r in rows]
    assert 0.6 < np.sqrt(np.mean(deviations**2)) < 1.4
    friction = [r for r in rows if r["formula"].startswith(("Fv", "Fc"))]
    assert all(abs(r["found"] - r["true"]) < 4.0 * r["standard_error"] for r in friction)


def test_its_motion_keeps_the_limits_and_starts_at_rest() -> None:
    robot = builtin("ns16")
    motion = _find_motion(robot, 1)
    q, dq, ddq = motion.sample(np.linspace(0.0, DURATION, 20_001))
    for k, joint in enumerate(robot.joints):
        assert joint.lower <= q[:, k].min()
        assert q[:, k].max() <= joint.upper
        assert np.max(np.abs(dq[:, k])) <= joint.velocity
    assert np.allclose([dq[0], ddq[0], dq[-1], ddq[-1]], 0.0)
    numeric = np.gradient(q, DURATION / 20_000, axis=0)
    assert np.max(np.abs(numeric[1:-1] - dq[1:-1])) < 1e-4  # the formulas are derivatives of each other
