"""The model that goes along: it finds what has changed, is written whole, and goes on after a restart."""

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


def test_the_way_of_the_parameters_is_written_beside_the_model(tmp_path: Path) -> None:
    wrong = ARM.theta.copy()
    wrong[30:] *= 1.3
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 60.0}
    part = run(AdaptPart(WatchSetup(Model(ARM.robot, ARM.terms, wrong), options=options)), 180.0)
    history = part.parameter_history
    assert history is not None
    assert {p.name for p in (tmp_path / "adapted").iterdir()} == {
        "rotradi.urdf", "rotradi.steelyard.json", "history.csv", "report.html", "manifest.json"
    }  # fmt: skip
    with (tmp_path / "adapted" / "history.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["time [s]", *(f"{n} [{u}]" for n, u in zip(history.names, history.units, strict=True))]
    way = np.array(rows, dtype=float)
    assert 64 < len(way) <= 257  # moments that are kept, and the newest
    assert np.all(np.diff(way[:, 0]) > 0.0)
    # The last row is the model that lies beside it, the first one is near the one that was wrong.
    written = as_model(tmp_path / "adapted" / "rotradi.urdf")
    base = base_parameters(ARM.robot, ARM.terms)
    assert way[-1, 1:] == pytest.approx(base.values(written.theta), rel=1e-6, abs=1e-9)
    q, dq = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 50, 3))
    Y = base.regressor_columns(ARM.dynamics.torque_regressor(q, dq, np.zeros_like(q)))
    began, ended = (np.linalg.norm(Y @ (row[1:] - base.values(ARM.theta))) for row in (way[0], way[-1]))
    assert ended < 0.2 * began
    assert "How the estimate came about" in (tmp_path / "adapted" / "report.html").read_text("utf-8")


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
    one, other = whole.parameter_history, parts.parameter_history
    assert one is not None
    assert other is not None
    assert np.array_equal(one.at, other.at)
    assert other.beta == pytest.approx(one.beta, rel=1e-9, abs=1e-12)


def test_a_snapshot_holds_the_way_in_little_room_and_one_without_it_goes_on(tmp_path: Path) -> None:
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}
    part = run(AdaptPart(WatchSetup(ARM, options=options)), 60.0)
    state = part.state()
    assert sum(x.nbytes for name, x in state.items() if name.startswith("history.")) < 64e3
    # As snapshots were before they had a way.
    size = len(part.parameter_history.names) + 1  # type: ignore[union-attr]
    old = {name: x for name, x in state.items() if name != "history.beta"}
    old |= {"history.moments": np.zeros((0, 2)), "history.triangles": np.zeros((0, size, size))}
    old["history.stride"] = np.array(1)
    later = AdaptPart(WatchSetup(ARM, options=options))
    later.restore(old)
    assert later.parameter_history is None
    run(later, 60.0)
    assert later.parameter_history is not None


def test_a_watch_that_was_short_leaves_its_model_when_it_ends(tmp_path: Path) -> None:
    part = run(AdaptPart(WatchSetup(ARM, options={"adapt": str(tmp_path / "adapted")})), 60.0)
    assert not (tmp_path / "adapted").exists()  # ten minutes are not over
    before = {name: np.copy(x) for name, x in part.state().items()}
    part.end()
    assert as_model(tmp_path / "adapted" / "rotradi.urdf").robot.dof == 3
    assert all(np.array_equal(x, part.state()[name], equal_nan=True) for name, x in before.items())


def remembering() -> tuple[Model, Model, tuple[np.ndarray, ...]]:
    """An arm whose dry friction is a stop, the same with wrong damping, and three minutes of it at 100 Hz."""
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


def test_a_model_whose_friction_remembers_goes_along_too(tmp_path: Path) -> None:
    truth, wrong, (t, q, dq, tau) = remembering()
    options = {"adapt": str(tmp_path / "adapted"), "adapt_every_s": 1e6}

    def watched(size: int, restart: bool) -> AdaptPart:
        part, observer = AdaptPart(WatchSetup(wrong, options=options)), MomentumObserver(wrong)
        for a in range(0, len(t), size):
            some = slice(a, a + size)
            part.take(observer.take(SampleBatch(t[some], q[some], dq[some], tau[some], a == 0)))
            if restart:
                state = part.state()
                part = AdaptPart(WatchSetup(wrong, options=options))
                part.restore(state)
        return part

    part = watched(500, restart=False)
    part.end()
    found = as_model(tmp_path / "adapted" / "rotradi.urdf")
    named = dict(zip(found.terms.names, found.theta[30:], strict=True))
    # Stops keep their level, and the model with its memory has the torques of the truth.
    assert [named[f"Fm{k}"] for k in (1, 2, 3)] == truth.theta[33:].tolist()
    some = slice(2000, 4000)
    state = (q[some], dq[some], np.gradient(dq[some], 0.01, axis=0))
    error = [np.sqrt(np.mean((m.torque(*state) - truth.torque(*state)) ** 2)) for m in (found, wrong)]
    assert error[0] < 0.15 * error[1]
    assert watched(733, restart=True).model.theta == pytest.approx(part.model.theta, rel=1e-7, abs=1e-9)
