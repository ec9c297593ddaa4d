"""Friction of drives that move several joints: the IRp-6, with motor 3 at q2 + q3."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted import CURVES, RIGID, ROBOT
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.errors import SteelyardError, UnknownNameError
from steelyard.friction import design_sweeps, measure_friction, read_friction
from steelyard.friction.compensation import remaining_terms, smoothed_curves
from steelyard.friction.design_sweeps import FrictionExperiment
from steelyard.robot import Transmission, load_robot
from steelyard.signals.log import Log

MOTORS = ROBOT.transmission.motors
# From joint speeds to motor speeds: u2 = −q2, u3 = q2 + q3.
U = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 1.0]])


def rubbed(q, dq, ddq, t, seed: int = 0, noise: float = 1.0) -> Log:
    """A log with the simulated friction on the drives: joint torques are Uᵀ F(U q̇) plus rigid-body torques."""
    rng = np.random.default_rng(seed)
    speeds = dq @ U.T
    speeds[np.abs(speeds) < 1e-9] = 0.0  # no friction of standing motors from rounding errors
    friction = np.column_stack([c(v) for c, v in zip(CURVES, speeds.T, strict=True)]) @ U
    tau = RIGID.torque(q, dq, ddq) + friction + noise * rng.normal(size=q.shape)
    noise_q, noise_v = 1e-5 * rng.normal(size=q.shape), 1e-3 * rng.normal(size=q.shape)
    return Log(ROBOT.joint_names, t, q + noise_q, dq=dq + noise_v, tau=tau)


def swept(plan: FrictionExperiment, seed: int = 0) -> Log:
    t = plan.times(250.0)
    return rubbed(*plan.sample(t), t, seed)


def everything(seed: int = 0, noise: float = 0.3) -> Log:
    """A log of 20 s with motion of all joints at once."""
    rng = np.random.default_rng(seed)
    t = np.arange(4000) / 200.0
    w = 2 * np.pi * np.array([0.2, 0.35, 0.55, 0.8])
    a, p = rng.uniform(0.1, 0.25, (4, 3)) / w[:, None], rng.uniform(0, 6, (4, 3))
    angle = t[:, None, None] * w[:, None] + p
    q, dq = (a * np.sin(angle)).sum(1), (a * w[:, None] * np.cos(angle)).sum(1)
    return rubbed(q, dq, -(a * w[:, None] ** 2 * np.sin(angle)).sum(1), t, seed, noise)


def test_one_motor_moves_at_a_time_within_the_limits_of_its_joints() -> None:
    plan = design_sweeps(ROBOT, on="drive", fractions=(0.2, 1.0))
    t = plan.times(100.0)
    _, dq, ddq = plan.sample(t)
    assert tuple(plan.speeds) == MOTORS
    turning = np.abs(dq @ U.T) > 1e-9
    assert np.all(turning.sum(axis=1) <= 1)
    assert turning.any(axis=0).all()
    bounds = sy.excitation.default_limits(ROBOT)
    assert np.all(np.abs(dq) <= bounds.dq * (1.0 + 1e-9))
    assert np.all(np.abs(ddq) <= bounds.ddq * (1.0 + 1e-9))
    # Motor 2 also moves q3, so the slower of both joints sets the limit.
    assert plan.speeds["motor2"][-1] <= 1.0 + 1e-9


@pytest.mark.parametrize("k", [1, 2])
def test_sweeps_of_a_motor_give_its_curve(k: int) -> None:
    """Motor 2 also moves q3, without friction of q3 as long as motor 3 stands still."""
    log = swept(design_sweeps(ROBOT, [MOTORS[k]], on="drive", dwell=0.6), k)
    found = measure_friction(ROBOT, log, joints=[MOTORS[k]], on="drive", how="plateaus", model=RIGID,
                             law="tustin-asymmetric")  # fmt: skip
    law = found.curves[MOTORS[k]]
    v = np.linspace(0.1, 0.9 * law.fastest, 20)
    for side in (v, -v):
        # Noise of 1 N m over half a second at 250 Hz is 0.1 N m; curves are of 10 to 30 N m.
        np.testing.assert_allclose(law(side), CURVES[k](side), rtol=0.05)
    assert found.to_json()["on"] == "drive"
    if k == 1:
        still = measure_friction(ROBOT, log, joints=["q3"], how="plateaus", model=RIGID, law="coulomb-viscous")
        assert np.max(np.abs(still.curves["q3"](v))) < 0.3


def test_any_motion_gives_the_curves_of_all_drives() -> None:
    found = measure_friction(ROBOT, everything(), on="drive", how="table")
    assert tuple(j.joint for j in found.joints) == MOTORS
    for joint, curve in zip(found.joints, CURVES, strict=True):
        points = dict(zip(joint.velocity, joint.torque, strict=True))
        # The mean of both directions may include gravity of a link that hardly moves.
        for v in (v for v in points if v > 0.15):
            assert (points[v] - points[-v]) / 2.0 == pytest.approx(
                float(curve(np.array([v, -v])) @ [0.5, -0.5]), rel=0.05
            )


def test_known_friction_of_drives_is_subtracted_and_part_of_the_model() -> None:
    curves = dict(zip(MOTORS, CURVES, strict=True))
    found = sy.identify(ROBOT, everything(0), [everything(1)], known_friction=curves, physical=False)
    assert [t.kind for t in found.base.terms.terms] == ["rotor", "offset", "rotor"]
    tables = [t for t in found.model.terms.terms if t.kind == "friction-table"]
    assert [(t.on, t.where) for t in tables] == [("drive", (name,)) for name in MOTORS]
    # The model predicts the whole torque; noise of 1 % and reversals remain.
    assert found.validation[0].mean_nrmse_percent < 6.0
    # The same curves on the joints are wrong.
    wrong = dict(zip(ROBOT.joint_names, CURVES, strict=True))
    other = sy.identify(ROBOT, everything(0), [everything(1)], known_friction=wrong, physical=False)
    assert other.validation[0].mean_nrmse_percent > 2.0 * found.validation[0].mean_nrmse_percent


def test_remaining_terms_with_known_friction_of_drives() -> None:
    def remaining(*names: str) -> tuple[str, ...]:
        found = remaining_terms(ROBOT, smoothed_curves(ROBOT, {name: CURVES[0] for name in names}))
        return tuple(t if isinstance(t, str) else f"{t.kind}@{t.on}:where={'+'.join(t.where or ())}" for t in found)

    assert remaining("q1") == ("rotor", "viscous@joint:where=q2+q3", "coulomb@joint:where=q2+q3", "offset")
    # Motor 3 acts on q2 and q3: its friction remains, and so does other friction of these joints.
    assert remaining("motor1", "motor2") == (
        "rotor", "viscous@joint:where=q2+q3", "coulomb@joint:where=q2+q3", "offset",
        "rotor@drive:where=motor3", "viscous@drive:where=motor3", "coulomb@drive:where=motor3",
    )  # fmt: skip
    assert remaining(*MOTORS) == ("rotor", "offset", "rotor@drive:where=motor3")


def test_known_friction_of_a_stream_equals_that_of_a_log() -> None:
    """Live samples, the log, and a log with manually corrected torque give the same estimate."""
    log, terms = everything(noise=0.0), sy.terms(ROBOT, "rotor")
    base = sy.base_parameters(ROBOT, terms)
    known = dict(zip(MOTORS, CURVES, strict=True))
    off = np.column_stack([c(v) for c, v in zip(CURVES, (log.dq @ U.T).T, strict=True)]) @ U
    free = sy.Log(log.joints, log.t, log.q, dq=log.dq, tau=log.tau - off)
    samples = list(zip(log.t, log.q, log.dq, log.tau, strict=True))
    last = []
    for stream, curves in [(log, known), (samples, known), (free, None)]:
        run = sy.recursive(ROBOT, stream, base=base, known_friction=curves, every=10**9)
        for _ in run:
            pass
        last.append(run.information.theta())
    np.testing.assert_allclose(last[0], last[2], rtol=1e-9)
    np.testing.assert_allclose(last[1], last[2], rtol=1e-9)
    with pytest.raises(SteelyardError, match="needs dq and tau"):
        sy.recursive(ROBOT, sy.Log(log.joints, log.t, log.q, tau=log.tau), base=base, known_friction=known)


def test_the_command_measures_drives(tmp_path) -> None:
    drive = ["friction", "irp6", "--on", "drive", "--only", "motor3"]
    run = CliRunner().invoke(app, [*drive, "--design", "--dwell", "0.6", "--rate", "250", "-o", str(tmp_path / "plan")])
    assert run.exit_code == 0, run.output
    assert "motor3: 11 speeds" in run.output
    log = swept(design_sweeps(ROBOT, ["motor3"], on="drive", dwell=0.6), 2)
    log.save(tmp_path / "log.npz")
    run = CliRunner().invoke(app, [*drive, str(tmp_path / "log.npz"), "-o", str(tmp_path / "run")])
    assert run.exit_code == 0, run.output
    assert set(read_friction(tmp_path / "run")) == {"motor3"}


def test_drives_that_joint_torques_do_not_determine_are_refused() -> None:
    with pytest.raises(SteelyardError, match="has no transmission"):
        measure_friction(load_robot("rotradi"), everything(), on="drive")
    with pytest.raises(SteelyardError, match="not on 'motor'"):
        design_sweeps(ROBOT, on="motor")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="There is no motor 'q3'"):
        design_sweeps(ROBOT, ["q3"], on="drive")
    with pytest.raises(UnknownNameError, match=r"no joint or motor .motr3.*Did you mean .motor3"):
        smoothed_curves(ROBOT, {"motr3": CURVES[2]})
    tendons = replace(ROBOT, transmission=Transmission(np.vstack([U, [[0.0, 1.0, -1.0]]])), nominal_terms=())
    with pytest.raises(SteelyardError, match="4 motors for 3 joints"):
        design_sweeps(tendons, on="drive")
