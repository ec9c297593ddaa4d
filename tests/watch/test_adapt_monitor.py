"""Adaptive model: it corrects parameters, is written to a folder, and continues after a restart."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from steelyard.dynamics import Model
from steelyard.export import as_model
from steelyard.parameters import StopElement, terms
from steelyard.regression.base_parameters import base_parameters
from steelyard.robot.library import builtin
from steelyard.simulation.working_life import WorkingLife
from steelyard.watch.batch import SampleBatch
from steelyard.watch.monitor_base import WatchSetup
from steelyard.watch.monitors.adapt import AdaptMonitor
from steelyard.watch.observer import MomentumObserver

ARM = Model.nominal(builtin("rotradi"))


def run(monitor: AdaptMonitor, seconds: float, size: int = 500) -> AdaptMonitor:
    model = monitor.setup.model
    life = WorkingLife(ARM, shift_s=seconds, begins_s=0.0, cold=0.0, ripple=0.0, noise=0.005)
    observer = MomentumObserver(model)
    t, q, dq, tau = (np.concatenate(x) for x in zip(*life.blocks(0, 1), strict=True))
    for a in range(0, len(t), size):
        some = slice(a, a + size)
        monitor.update(observer.observe(SampleBatch(t[some], q[some], dq[some], tau[some], a == 0)))
    return monitor


def test_friction_is_corrected_and_the_model_is_written(tmp_path: Path) -> None:
    wrong = ARM.theta.copy()
    wrong[30:] *= 1.3
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 60.0}
    monitor = run(AdaptMonitor(WatchSetup(Model(ARM.robot, ARM.terms, wrong), options=options)), 180.0)
    assert monitor.report()["adapts"] is True
    assert monitor.fetch_events() == []
    adapted = as_model(tmp_path / "adapted" / "rotradi.urdf")
    rng = np.random.default_rng(0)
    q, dq = rng.uniform(-1.0, 1.0, (2, 50, 3))
    still = np.zeros_like(q)
    wrong_model = monitor.setup.model
    error = [np.sqrt(np.mean((m.torque(q, dq, still) - ARM.torque(q, dq, still)) ** 2)) for m in (adapted, wrong_model)]
    assert error[0] < 0.2 * error[1]


def test_parameter_history_is_written(tmp_path: Path) -> None:
    wrong = ARM.theta.copy()
    wrong[30:] *= 1.3
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 60.0}
    monitor = run(AdaptMonitor(WatchSetup(Model(ARM.robot, ARM.terms, wrong), options=options)), 180.0)
    history = monitor.parameter_history
    assert history is not None
    assert {p.name for p in (tmp_path / "adapted").iterdir()} == {
        "rotradi.urdf", "rotradi.steelyard.json", "history.csv", "report.html", "manifest.json"
    }  # fmt: skip
    with (tmp_path / "adapted" / "history.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["time [s]", *(f"{n} [{u}]" for n, u in zip(history.names, history.units, strict=True))]
    path = np.array(rows, dtype=float)
    assert 64 < len(path) <= 257  # stored points and the newest
    assert np.all(np.diff(path[:, 0]) > 0.0)
    # The last row is the written model; the first one is close to the initial model.
    written = as_model(tmp_path / "adapted" / "rotradi.urdf")
    base = base_parameters(ARM.robot, ARM.terms)
    assert path[-1, 1:] == pytest.approx(base.values(written.theta), rel=1e-6, abs=1e-9)
    q, dq = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 50, 3))
    Y = base.regressor_columns(ARM.dynamics.torque_regressor(q, dq, np.zeros_like(q)))
    began, ended = (np.linalg.norm(Y @ (row[1:] - base.values(ARM.theta))) for row in (path[0], path[-1]))
    assert ended < 0.2 * began
    assert "History of the estimate" in (tmp_path / "adapted" / "report.html").read_text("utf-8")


def test_without_a_folder_it_is_off() -> None:
    monitor = run(AdaptMonitor(WatchSetup(ARM)), 60.0)
    assert monitor.report() == {"adapts": False}


def test_result_does_not_depend_on_batches_and_restarts(tmp_path: Path) -> None:
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}
    whole, restarted = (AdaptMonitor(WatchSetup(ARM, options=options)) for _ in range(2))
    run(whole, 60.0)
    life = WorkingLife(ARM, shift_s=60.0, begins_s=0.0, cold=0.0, ripple=0.0, noise=0.005)
    (block,) = life.blocks(0, 1)
    observer = MomentumObserver(ARM)
    for a in range(0, len(block[0]), 731):
        restarted.update(observer.observe(SampleBatch(*(x[a : a + 731] for x in block), fresh=a == 0)))
        state = restarted.state()
        restarted = AdaptMonitor(WatchSetup(ARM, options=options))
        restarted.restore(state)
    assert restarted.model.theta == pytest.approx(whole.model.theta, rel=1e-9, abs=1e-12)
    one, other = whole.parameter_history, restarted.parameter_history
    assert one is not None
    assert other is not None
    assert np.array_equal(one.at, other.at)
    assert other.beta == pytest.approx(one.beta, rel=1e-9, abs=1e-12)


def test_history_in_a_snapshot_is_small_and_optional(tmp_path: Path) -> None:
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}
    monitor = run(AdaptMonitor(WatchSetup(ARM, options=options)), 60.0)
    state = monitor.state()
    assert sum(x.nbytes for name, x in state.items() if name.startswith("history.")) < 64e3
    # A snapshot of an older version without history.
    size = len(monitor.parameter_history.names) + 1  # type: ignore[union-attr]
    old = {name: x for name, x in state.items() if name != "history.beta"}
    old |= {"history.moments": np.zeros((0, 2)), "history.triangles": np.zeros((0, size, size))}
    old["history.stride"] = np.array(1)
    later = AdaptMonitor(WatchSetup(ARM, options=options))
    later.restore(old)
    assert later.parameter_history is None
    run(later, 60.0)
    assert later.parameter_history is not None


def test_short_watch_writes_its_model_at_the_end(tmp_path: Path) -> None:
    monitor = run(AdaptMonitor(WatchSetup(ARM, options={"adapt": str(tmp_path / "adapted")})), 60.0)
    assert not (tmp_path / "adapted").exists()  # before the first period of ten minutes
    before = {name: np.copy(x) for name, x in monitor.state().items()}
    monitor.finish()
    assert as_model(tmp_path / "adapted" / "rotradi.urdf").robot.dof == 3
    assert all(np.array_equal(x, monitor.state()[name], equal_nan=True) for name, x in before.items())


def hysteresis_case() -> tuple[Model, Model, tuple[np.ndarray, ...]]:
    """Arm with stop elements as dry friction, the same with wrong damping, and 200 s of motion at 100 Hz."""
    robot = builtin("rotradi")
    bound = terms(robot, "viscous", StopElement(width=0.05))
    stops = 0.2 * np.std(Model.nominal(robot).rigid_torque(*np.random.default_rng(0).normal(size=(3, 200, 3))), axis=0)
    values = np.concatenate([robot.inertial_parameters, 0.5 * stops, stops])
    wrong = values.copy()
    wrong[30:33] *= 1.5
    t = 0.01 * np.arange(20_000)
    w, phase = np.array([0.9, 1.3, 1.7]), np.array([0.0, 1.0, 2.0])
    angle = t[:, None] * w + phase + 0.5 * np.sin(0.11 * t)[:, None]
    q = np.sin(angle)
    dq = np.gradient(q, 0.01, axis=0)
    tau = Model(robot, bound, values).torque(q, dq, np.gradient(dq, 0.01, axis=0))
    return Model(robot, bound, values), Model(robot, bound, wrong), (t, q, dq, tau)


def test_model_with_hysteresis_is_adapted(tmp_path: Path) -> None:
    truth, wrong, (t, q, dq, tau) = hysteresis_case()
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}

    def adapt(size: int, restart: bool) -> AdaptMonitor:
        monitor, observer = AdaptMonitor(WatchSetup(wrong, options=options)), MomentumObserver(wrong)
        for a in range(0, len(t), size):
            some = slice(a, a + size)
            monitor.update(observer.observe(SampleBatch(t[some], q[some], dq[some], tau[some], a == 0)))
            if restart:
                state = monitor.state()
                monitor = AdaptMonitor(WatchSetup(wrong, options=options))
                monitor.restore(state)
        return monitor

    monitor = adapt(500, restart=False)
    monitor.finish()
    adapted = as_model(tmp_path / "adapted" / "rotradi.urdf")
    named = dict(zip(adapted.terms.names, adapted.theta[30:], strict=True))
    # Stops keep their level, and the torques of the model are correct.
    assert [named[f"Fm{k}"] for k in (1, 2, 3)] == truth.theta[33:].tolist()
    some = slice(2000, 4000)
    state = (q[some], dq[some], np.gradient(dq[some], 0.01, axis=0))
    error = [np.sqrt(np.mean((m.torque(*state) - truth.torque(*state)) ** 2)) for m in (adapted, wrong)]
    assert error[0] < 0.15 * error[1]
    assert adapt(733, restart=True).model.theta == pytest.approx(monitor.model.theta, rel=1e-7, abs=1e-9)
