"""All estimators that can run on a log, evaluated on its end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.compare.on_log import compare_on_log
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.robot import load_robot
from steelyard.signals.log import Log
from steelyard.simulation import PD, Sensors, simulate
from steelyard.simulation.dry_friction import smooth_terms

PENDULUM = str(Path(__file__).with_name("pendulum.yaml"))
ROBOT = load_robot(PENDULUM)
TERMS = smooth_terms(Model.nominal(ROBOT).terms, 0.05)
NAMES = ("ols", "wls", "wls-physical", "rtls", "rls", "adaline", "ml", "iv")


class Swing:
    """A motion of three sines."""

    def sample(self, t):
        w = np.array([2.0, 5.0, 7.0])
        angle = np.asarray(t)[:, None] * w
        parts = 0.4 * np.sin(angle), 0.4 * w * np.cos(angle), -0.4 * w**2 * np.sin(angle)
        return tuple(x.sum(axis=1, keepdims=True) for x in parts)


def log() -> Log:
    model = Model(ROBOT, TERMS, Model.nominal(ROBOT).theta)
    sensors = Sensors(position_noise=1e-5, torque_noise=0.05, seed=1)
    controller = PD.for_model(model, bandwidth_rad_s=40.0)
    log_ = simulate(model, controller, duration=8.0, step=2e-3, dq0=[5.6], reference=Swing(), sensors=sensors).log()
    return replace(log_, dq=None)


def test_estimators_are_compared_on_hold_out_data() -> None:
    comparison = compare_on_log(ROBOT, log(), estimators=NAMES, terms=TERMS)
    by_name = {r.run.estimator: r for r in comparison.results}
    assert by_name["iv"].run.result == "refused"
    assert "controller" in by_name["iv"].run.reason
    assert by_name["wls-physical"].run.possible
    assert comparison.best is not None
    for name in set(NAMES) - {"iv", "adaline", "tls", "rtls"}:
        error = by_name[name].nrmse_percent
        # Torque noise of 1 % and the low-pass cause an error of a few percent.
        assert error is not None, (name, by_name[name].run.reason)
        assert error < 5.0, name
    # Without forgetting the recursive fit equals ordinary least squares.
    assert by_name["rls"].nrmse_percent == pytest.approx(by_name["ols"].nrmse_percent, rel=1e-9)


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    log().save(tmp_path / "log.csv")
    target = tmp_path / "out"
    command = ["compare", "estimators", PENDULUM, str(tmp_path / "log.csv"), "--estimators", "wls,ols,didim"]
    out = CliRunner().invoke(app, [*command, "-o", str(target), "--json"])
    assert out.exit_code == 0, out.output
    document = json.loads(out.stdout)
    assert {e["estimator"] for e in document["estimators"]} == {"wls", "ols", "didim"}
    assert "compared on a log" in (target / "report.html").read_text()
    wrong = CliRunner().invoke(app, [*command[:-1], "wlss"])
    assert wrong.exit_code == 2
    assert "Did you mean 'wls'?" in wrong.stderr


def test_unusable_logs_and_options_are_refused() -> None:
    with pytest.raises(SteelyardError, match="torque"):
        compare_on_log(ROBOT, replace(log(), tau=None), estimators=("wls",))
    with pytest.raises(SteelyardError, match="positive"):
        compare_on_log(ROBOT, log(), estimators=("wls",), horizon=0.0)
    few = replace(log(), t=log().t[:20], q=log().q[:20], tau=np.asarray(log().tau)[:20])
    with pytest.raises(SteelyardError):
        compare_on_log(ROBOT, few, estimators=("wls",))
