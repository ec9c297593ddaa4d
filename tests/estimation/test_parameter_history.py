"""The history of an estimate from networks and recursive least squares, in files and on pages."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import prrrp_case as prrrp
import pytest
from estimation_cases import case
from report_pages import figures

import steelyard as sy
from steelyard.estimation import Adaline, Hopfield, RecursiveLeastSquares
from steelyard.ground.moments import Moments
from steelyard.identification.identification_run import IdentificationRun
from steelyard.regression.data import RegressionData


def adaline(epochs: int, **options) -> Adaline:
    return Adaline(step=0.003, epochs=epochs, scaled=False, **options)


def hopfield(passes: int) -> Hopfield:
    return Hopfield(form="tanh", bound=10.0, gain=10.0, passes=passes, scaled=False, moments=2000)


@pytest.mark.parametrize("count", [1, 5, 17, 256, 257, 1000, 4097])
def test_moments_are_spread_evenly_and_end_with_the_newest(count: int) -> None:
    moments: Moments[int] = Moments(16)
    for k in range(count):
        moments.add(k)
    all_ = np.array(moments.all)
    assert (all_[0], all_[-1]) == (0, count - 1)
    assert len(all_) == len(moments) <= 18
    steps = np.diff(all_)
    assert len(set(steps[:-1].tolist())) <= 1
    assert np.all(steps > 0)


@pytest.mark.parametrize("made", [adaline, hopfield, lambda k: adaline(k, networks="per-row")])
def test_the_history_after_one_pass_equals_a_fit_of_one_pass(made) -> None:
    data = prrrp.clean_rows()
    whole, short = (made(k).free(data, prrrp.NAMES) for k in (5, 1))
    at = np.array([m["pass"] for m in whole.history])
    beta = np.array([m["beta"] for m in whole.history])
    assert at[0] == 0.0
    assert np.all(beta[0] == 0.0)  # the start
    assert (at[-1], len(at) > 6) == (5.0, True)  # each pass, and some moments of the first
    assert np.allclose(beta[-1], whole.beta, rtol=1e-12)
    assert np.allclose(beta[np.isclose(at, 1.0)][0], short.beta, rtol=1e-10)


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_the_history_of_recursive_least_squares_equals_partial_fits(forgetting: float) -> None:
    """Compared with weighted least squares over the first rows."""
    rng = np.random.default_rng(0)
    c = case("rotradi")
    p, n = c.base.rank, len(c.robot.joint_names)
    A, truth = rng.normal(size=(600, n, p)), rng.normal(size=p)
    y = A @ truth + 0.1 * rng.normal(size=(600, n))
    data = RegressionData.from_arrays(
        c.robot.joint_names, c.base.independent, list(A.transpose(1, 0, 2)), list(y.T), len(c.base.parameters), 0.01
    )
    estimate = RecursiveLeastSquares(forgetting=forgetting).fit(data, c.base)
    assert len(estimate.history) > 30
    assert estimate.history[-1]["t"] == pytest.approx(6.0)
    for moment in (estimate.history[3], estimate.history[len(estimate.history) // 2], estimate.history[-1]):
        k = moment["updates"]
        w = np.sqrt(forgetting ** np.arange(k - 1, -1, -1))
        expected = np.linalg.lstsq((w[:, None, None] * A[:k]).reshape(-1, p), (w[:, None] * y[:k]).ravel(), rcond=None)[
            0
        ]
        assert np.allclose(moment["beta"], expected, rtol=1e-7, atol=1e-9)


def moving() -> tuple[sy.Model, sy.Log]:
    model = sy.Model.nominal(sy.load_robot("rotradi"))
    t = np.arange(2000) / 400.0
    w, phase = 2.0 * np.pi * np.array([[0.3], [0.7], [1.3]]), np.random.default_rng(0).uniform(0.0, 6.0, (3, 3))
    angle = t[:, None, None] * w + phase
    q, dq, ddq = (0.4 * (w**k * np.sin(angle + k * np.pi / 2)).sum(axis=1) for k in range(3))
    tau = model.torque(q, dq, ddq) + 0.1 * np.random.default_rng(1).normal(size=q.shape)
    return model, sy.Log(model.robot.joint_names, t, q, dq=dq, tau=tau)


def read(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return head, np.array([[float(x or "nan") for x in row] for row in rows])


@pytest.mark.parametrize(("name", "physical", "axis"), [
    ("rls", True, "time [s]"), ("adaline", False, "passes over the log"), ("hopfield", False, "passes over the log"),
])  # fmt: skip
def test_identify_writes_and_draws_the_history(name: str, physical: bool, axis: str, tmp_path: Path) -> None:
    model, log = moving()
    estimate = sy.identify(model.robot, log, terms=model.terms, estimator=name, physical=physical, check=False)
    IdentificationRun(estimate).save(tmp_path / "run")
    head, rows = read(tmp_path / "run" / "history.csv")
    assert head[0] == axis
    assert head[1] == f"{estimate.base.names[0]} [{estimate.base.units[0]}]"
    assert np.allclose(rows[-1, 1:], estimate.free.beta, rtol=1e-9)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "History of the estimate" in page


def test_an_estimator_without_history_writes_none(tmp_path: Path) -> None:
    model, log = moving()
    estimate = sy.identify(model.robot, log, terms=model.terms, check=False)
    assert estimate.free.parameter_history is None
    IdentificationRun(estimate).save(tmp_path / "run", report=False)
    assert not (tmp_path / "run" / "history.csv").exists()


def test_live_estimation_has_the_same_figure(tmp_path: Path) -> None:
    model, log = moving()
    run = sy.recursive(model.robot, log, terms=model.terms, P0=np.inf)
    *_, last = run
    run.parameter_history.save(tmp_path / "live")
    head, rows = read(tmp_path / "live" / "history.csv")
    assert head[0] == "time [s]"
    assert len(rows) > 100
    assert np.allclose(rows[-1, 1:], last.beta, rtol=0.2, atol=0.05)  # at most a stride before the end
    drawn = figures((tmp_path / "live" / "report.html").read_text(encoding="utf-8"))
    assert len(drawn) == 2  # parameters, and the eigenvalues of P
    names = {trace["name"] for trace in drawn[0]["data"]}
    assert set(run.base.names) <= names
