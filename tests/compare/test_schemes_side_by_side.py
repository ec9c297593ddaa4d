"""All schemes on one log: known truth, a page, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.compare.scheme_comparison import compare_schemes
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.robot import load_robot
from steelyard.signals.log import Log

ROBOT = load_robot("szabo3r")


def log() -> Log:
    """A motion with exact derivatives under the nominal model without friction."""
    model = Model(ROBOT, Model.nominal(ROBOT).terms, Model.nominal(ROBOT).theta)
    t = np.arange(0.0, 12.0, 0.005)
    w = np.array([[1.1, 1.7, 2.3], [2.9, 3.7, 4.1]])
    angle = t[:, None, None] * w + np.arange(6).reshape(2, 3)
    q = (0.5 * np.sin(angle)).sum(1)
    dq, ddq = (0.5 * w * np.cos(angle)).sum(1), -(0.5 * w**2 * np.sin(angle)).sum(1)
    noise = 0.02 * np.random.default_rng(0).normal(size=q.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=model.torque(q, dq, ddq) + noise)


def test_every_scheme_identifies_the_same_robot() -> None:
    terms = Model.nominal(ROBOT).terms
    comparison = compare_schemes(ROBOT, log(), terms=terms, physical=False)
    assert {r.scheme for r in comparison.results} >= {
        "dynamic",
        "filtered-dynamic",
        "energy",
        "power",
        "filtered-power",
    }
    truth = None
    for r in comparison.results:
        assert r.identification is not None, (r.scheme, r.reason)
        truth = r.identification.base.values(Model.nominal(ROBOT).theta)
        deviation = (r.identification.estimate.beta - truth) / r.identification.estimate.standard_errors
        # Standard errors of the scalar schemes are too small by a known factor of 1.4; 8 is a generous limit for all.
        assert np.max(np.abs(deviation)) < 8.0, r.scheme
    assert comparison.best is not None
    assert comparison.best.nrmse_percent is not None
    assert comparison.best.nrmse_percent < 5.0


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    log().save(tmp_path / "log.csv")
    target = tmp_path / "out"
    command = ["compare", "schemes", "szabo3r", str(tmp_path / "log.csv"), "--schemes", "dynamic,energy"]
    out = CliRunner().invoke(app, [*command, "-o", str(target), "--json"])
    assert out.exit_code == 0, out.output
    document = json.loads(out.stdout)
    assert [s["scheme"] for s in document["schemes"]] == ["dynamic", "energy"]
    assert "schemes compared" in (target / "report.html").read_text()
    wrong = CliRunner().invoke(app, [*command[:-1], "dinamic"])
    assert wrong.exit_code == 2
    assert "Did you mean 'dynamic'?" in wrong.stderr


def test_a_zero_horizon_is_refused() -> None:
    with pytest.raises(SteelyardError, match="horizon is 0 s"):
        compare_schemes(ROBOT, log(), horizon=0.0)
