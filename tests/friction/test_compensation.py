"""Known friction: read from a run, subtracted in every scheme, and part of the model."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from planted import CURVES, RIGID, ROBOT, log_of, sweeps
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dynamics.model import Model
from steelyard.errors import SteelyardError
from steelyard.estimation.recursion.stream import recursive
from steelyard.friction import measure_friction
from steelyard.friction.compensation import add_friction, read_friction, smoothed_curves
from steelyard.identification.identify import identify
from steelyard.parameters.terms import terms
from steelyard.robot import load_robot
from steelyard.signals.log import Log


def motion(seed: int, duration: float = 12.0, rate: float = 200.0) -> Log:
    """A log of all joints with the simulated friction."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    w = 2 * np.pi * np.array([0.25, 0.5, 0.75, 1.0])
    a, p = rng.uniform(0.1, 0.25, (4, 3)) / w[:, None], rng.uniform(0, 6, (4, 3))
    angle = t[:, None, None] * w[:, None] + p
    q, dq = (a * np.sin(angle)).sum(1), (a * w[:, None] * np.cos(angle)).sum(1)
    ddq = -(a * w[:, None] ** 2 * np.sin(angle)).sum(1)
    friction = np.column_stack([c(v) for c, v in zip(CURVES, dq.T, strict=True)])
    tau = RIGID.torque(q, dq, ddq) + friction + 0.3 * rng.normal(size=q.shape)
    return Log(ROBOT.joint_names, t, q, dq=dq, tau=tau)


@pytest.mark.parametrize("scheme", ["dynamic", "filtered-dynamic", "momentum", "energy", "power", "filtered-power"])
def test_every_scheme_subtracts_known_friction(scheme: str) -> None:
    curves = dict(zip(ROBOT.joint_names, CURVES, strict=True))
    found = identify(ROBOT, motion(0), [motion(1)], scheme=scheme, known_friction=curves, physical=False)
    assert [t.kind for t in found.base.terms.terms] == ["rotor", "offset"]
    assert [t.kind for t in found.model.terms.terms].count("friction-table") == 3
    assert found.settings.known_friction == ROBOT.joint_names
    # The model predicts the whole torque with friction; noise of 0.3 N m (1 %) and reversals remain.
    assert found.validation[0].mean_nrmse_percent < 6.0
    assert found.settings.known_friction


def test_reading_a_run_folder(tmp_path) -> None:
    measured = measure_friction(ROBOT, [log_of(sweeps(k)) for k in range(3)], model=RIGID)
    measured.save(tmp_path / "run")
    again = read_friction(tmp_path / "run")
    v = np.linspace(-1.0, 1.0, 41)
    for name, law in measured.curves.items():
        np.testing.assert_array_equal(again[name](v), law(v))
        np.testing.assert_allclose(again[name].band(v), law.band(v))
    # Measured curves predict better than fitted Coulomb and viscous friction.
    given = identify(ROBOT, motion(0), [motion(1)], known_friction=again, physical=False).validation[0]
    plain = identify(ROBOT, motion(0), [motion(1)], physical=False, plain=True).validation[0]
    assert given.mean_nrmse_percent < plain.mean_nrmse_percent


@pytest.mark.parametrize(("times", "grade"), [(1.0, "good"), (3.0, "poor")])
def test_wrong_known_friction_is_reported(times: float, grade: str) -> None:
    """With three times the true friction the verdict is poor and gives the reason."""
    curves = {n: lambda v, c=c: times * c(v) for n, c in zip(ROBOT.joint_names, CURVES, strict=True)}
    found = identify(ROBOT, motion(0), [motion(1)], known_friction=curves)
    assert found.without_known_friction is not None
    reasons = [r for r in found.verdict.reasons if "with the known friction" in r]
    assert bool(reasons) == (grade == "poor")
    assert found.verdict.grade == grade


def test_reading_temperatures_of_a_run_folder(tmp_path) -> None:
    plan = sweeps(0, fractions=(0.1, 0.2, 0.5, 1.0))
    logs = [log_of(plan, k, temperature=T) for k, T in enumerate((20.0, 32.0, 45.0))]
    measured = measure_friction(ROBOT, logs, joints=["q1"], model=RIGID, law="coulomb-viscous")
    measured.save(tmp_path / "run")
    law = read_friction(tmp_path / "run")["q1"]
    assert law(0.5, 25.0) == measured.curves["q1"](0.5, 25.0)
    with pytest.raises(SteelyardError, match="is outside this range"):
        law(0.5, 60.0)


def test_tables_agree_with_the_curves() -> None:
    known = smoothed_curves(ROBOT, dict(zip(ROBOT.joint_names, CURVES, strict=True)))
    model = add_friction(RIGID, known)
    v = np.linspace(-1.2, 1.2, 201)[:, None] * np.ones(3)
    none = np.zeros_like(v)
    friction = model.torque(none, v, none) - RIGID.torque(none, v, none)
    expected = np.column_stack([known[n](x) for n, x in zip(ROBOT.joint_names, v.T, strict=True)])
    np.testing.assert_allclose(friction, expected, atol=0.15)  # linear between 24 knots


def test_wrong_friction_is_refused(tmp_path) -> None:
    with pytest.raises(SteelyardError, match="There is no joint or motor 'elbow'"):
        identify(ROBOT, motion(0), known_friction={"elbow": CURVES[0]})
    with pytest.raises(SteelyardError, match="Remove it or the known friction"):
        identify(ROBOT, motion(0), known_friction={"q1": CURVES[0]}, tune=True)
    with pytest.raises(SteelyardError, match="steelyard friction"):
        read_friction(tmp_path / "nothing")
    (tmp_path / "result.json").write_text('{"joints": [{}]}')
    with pytest.raises(SteelyardError, match=r"result\.json: joints: joint 1: 'joint' is missing"):
        read_friction(tmp_path)


def test_on_the_command_line(tmp_path) -> None:
    """From sweeps to curves to an identification with them, and an identification that tunes the shapes."""
    measure_friction(ROBOT, log_of(sweeps(0)), joints=["q1"], model=RIGID).save(tmp_path / "curves")
    motion(0).save(tmp_path / "run.csv")
    call = ["identify", "irp6", str(tmp_path / "run.csv"), "--free", "--holdout", "0.3", "--json"]
    run = CliRunner().invoke(app, [*call, "--friction", str(tmp_path / "curves")])
    assert run.exit_code == 1, run.output  # the friction has changed, so the model must not be used
    found = json.loads(run.output)
    assert "The friction has changed" in " ".join(found["verdict"]["reasons"])
    assert found["settings"]["known_friction"] == ["q1"]
    assert {p["class"] for p in found["parameters"] if p["name"].startswith("Fp")} == {"known"}
    assert not any(b["name"] in ("Fc1", "Fv1") for b in found["base_parameters"]["list"])
    run = CliRunner().invoke(app, [*call, "--tune", "--terms", "rotor,viscous,coulomb,offset"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["structure"]["steps"]
    run = CliRunner().invoke(app, [*call, "--friction", str(tmp_path / "nothing")])
    assert run.exit_code != 0
    assert "steelyard friction" in run.output


def test_known_friction_speeds_up_convergence_but_does_not_reduce_the_final_error() -> None:
    """Kozłowski & Dutkiewicz 1996, Fig. 5: joint 1, with a curve known to 2 %."""
    arm = load_robot(ROBOT, joints=["q1"], locked={"q2": 0.0, "q3": 0.0})
    bound = terms(arm, "coulomb", "viscous")
    Ts, rounds = 1e-3, 5
    s = np.arange(0.0, 0.5, Ts) / 0.5
    knots = np.deg2rad([0, 40, -40, 30, 0])
    steps = np.diff(knots)
    dq = np.concatenate([d * (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.5 for d in steps])[:, None]
    ddq = np.concatenate([d * (60 * s - 180 * s**2 + 120 * s**3) / 0.25 for d in steps])[:, None]
    q = np.concatenate([k + d * (10 * s**3 - 15 * s**4 + 6 * s**5) for k, d in zip(knots, steps, strict=False)])[
        :, None
    ]
    t = np.arange(len(q)) * Ts
    inertia = float(RIGID.mass_matrix(np.zeros((1, 3)))[0, 0, 0])
    truth = Model(arm, bound, np.concatenate([arm.inertial_parameters, [12.0, 20.0]]))
    settled: dict[bool, list[float]] = {True: [], False: []}
    last: dict[bool, list[float]] = {True: [], False: []}
    scheme = "energy:samples=5,consecutive=yes,work=trapezoid"
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        v = dq + 1e-3 * rng.normal(size=dq.shape)
        tau = truth.torque(q, dq, ddq) + 1.5 * rng.normal(size=dq.shape)
        log = Log(("q1",), t, q, dq=v, tau=tau)
        curve = 12.0 * (1 + 0.02 * rng.normal()) * np.sign(v) + 20.0 * (1 + 0.02 * rng.normal()) * v
        for known in (True, False):
            used = replace(log, tau=tau - curve) if known else log
            run = recursive(arm, used, terms=None if known else bound, scheme=scheme, moments=2000)
            for _ in run:
                pass
            error = np.abs(run.history.beta[:, 0] / inertia - 1.0)
            far = np.flatnonzero(error > 0.1)
            settled[known].append(float(run.history.t[far[-1]]) if len(far) else 0.0)
            last[known].append(run.history.beta[-1, 0])
    assert np.median(settled[True]) < 0.5 * np.median(settled[False])
    std = {k: np.std(x, ddof=1) for k, x in last.items()}
    assert 0.3 < std[True] / std[False] < 3.0  # five runs know a standard deviation to a third
    assert np.mean(last[True]) == pytest.approx(inertia, rel=0.01)
