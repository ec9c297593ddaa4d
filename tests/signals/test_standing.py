"""Standing joints: their rows are omitted from the fit and scored separately."""

from __future__ import annotations

import numpy as np
import pytest
from log_files import real_logs

import steelyard as sy
from steelyard.errors import SteelyardError
from steelyard.identification.identify import identify
from steelyard.robot.library import builtin
from steelyard.signals.log import Log
from steelyard.signals.prepare import Motion, Preparation, as_velocity, chosen_cutoff, prepare

RATE = 200.0
FRICTION = np.array([2.0, 1.5, 0.8])


def trips(seed: int, seconds: float = 60.0, rest: float = 2.5) -> tuple[np.ndarray, ...]:
    """Smooth motions between random postures with rests: t, q, dq, ddq, and where all joints rest."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, seconds, 1.0 / RATE)
    q, dq, ddq = (np.zeros((len(t), 3)) for _ in range(3))
    resting = np.ones(len(t), dtype=bool)
    here, begin = np.zeros(3), rest
    while begin < seconds:
        there, length = rng.uniform(-1.5, 1.5, 3), rng.uniform(0.8, 1.6)
        s = np.clip((t - begin) / length, 0.0, 1.0)[:, None]
        now = t >= begin
        q[now] = (here + (there - here) * (s**3 * (10.0 - 15.0 * s + 6.0 * s**2)))[now]
        dq[now] = ((there - here) * 30.0 * s**2 * (1.0 - s) ** 2 / length)[now]
        ddq[now] = ((there - here) * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / length**2)[now]
        resting &= (t < begin) | (t > begin + length)
        here, begin = there, begin + length + rest
    return t, q, dq, ddq, resting


def truth() -> sy.Model:
    robot = builtin("rotradi")
    terms = sy.terms(robot, "viscous", "coulomb")
    return sy.Model(robot, terms, np.concatenate([robot.inertial_parameters, np.tile([1.0], 3), FRICTION]))


def log_of(seed: int, noise: float = 0.05) -> tuple[Log, np.ndarray]:
    """At rest, each joint has a random static friction up to its limit, different every time."""
    model = truth()
    t, q, dq, ddq, resting = trips(seed)
    rng = np.random.default_rng(100 + seed)
    number = np.cumsum(np.diff(resting.astype(int), prepend=0) == 1)
    held = (rng.uniform(0.2, 1.0, (number.max() + 1, 3)) * FRICTION)[number]
    tau = model.torque(q, dq, ddq) + np.where(resting[:, None], held, 0.0) + noise * rng.normal(size=q.shape)
    return Log(model.robot.joint_names, t, q + 1e-5 * rng.normal(size=q.shape), tau=tau), resting


def motion_of(log: Log) -> Motion:
    (motion,) = prepare(log, Preparation(), chosen_cutoff([log], Preparation()))
    return motion


def test_rests_are_distinguished_from_motion() -> None:
    log, resting = log_of(1)
    motion = motion_of(log)
    assert motion.standing is not None
    moving = np.abs(motion.dq) > 0.05 * np.abs(motion.dq).max(axis=0)
    assert not np.any(motion.standing & moving)
    found = np.mean(motion.standing[resting], axis=0)
    # The ends of a rest are within the memory of the filter.
    assert np.all(found > 0.6)


def test_creeping_is_motion() -> None:
    """A joint at 0.5 % of its top speed still moves."""
    t = np.arange(0.0, 40.0, 1.0 / RATE)
    q = np.column_stack([np.sin(2.0 * np.pi * 0.3 * np.minimum(t, 20.0)) + 0.005 * 1.9 * np.maximum(t - 20.0, 0.0)])
    motion = motion_of(Log(("a",), t, q, tau=np.zeros_like(q)))
    assert motion.standing is not None
    assert not motion.standing[t > 21.0].any()
    still = motion_of(Log(("a",), t, np.sin(2.0 * np.pi * 0.3 * np.minimum(t, 20.0))[:, None], tau=np.zeros_like(q)))
    assert still.standing is not None
    assert still.standing[t > 22.0].all()


def test_static_friction_at_rest_does_not_bias_the_parameters() -> None:
    model = truth()
    log, _ = log_of(1)
    names = {p.name: v for p, v in zip(model.dynamics.parameters, model.theta, strict=True)}
    worst = {}
    for standing in ("leave_out", "keep"):
        found = identify(
            model.robot, log, terms=("viscous", "coulomb", "offset"), physical=False, check=False,
            preparation=Preparation(standing=standing),
        )  # fmt: skip
        wanted = found.base.values(np.array([names.get(p.name, 0.0) for p in found.base.parameters]))
        worst[standing] = np.max(np.abs(found.estimate.beta - wanted) / np.maximum(np.abs(wanted), 1.0))
    # Static friction up to 2 N m acts in two thirds of the rows.
    assert worst["leave_out"] < 0.01
    assert worst["keep"] > 0.3


def test_separate_scores_for_standing_joints() -> None:
    model = truth()
    found = identify(model.robot, log_of(1)[0], [log_of(2)[0]], terms=("viscous", "coulomb", "offset"), check=False)
    assert found.settings.preparation.standing == "leave_out"
    (score,) = found.validation
    assert score.stands
    for joint in score.joints:
        assert joint.moving["share"] + joint.standing["share"] == pytest.approx(1.0)
        whole = sum(part["share"] * part["rmse"] ** 2 for part in (joint.moving, joint.standing))
        assert np.sqrt(whole) == pytest.approx(joint.rmse, rel=1e-9)
        assert joint.moving["nrmse_percent"] < joint.nrmse_percent < joint.standing["nrmse_percent"]
        assert joint.moving_nrmse_percent == joint.moving["nrmse_percent"]
    plain = score.to_json()["joints"][0]
    assert {"moving", "standing"} <= set(plain)


def test_other_estimators_use_all_rows_of_a_sample() -> None:
    log, _ = log_of(1)
    found = identify(truth().robot, log, terms=("viscous", "coulomb"), estimator="adaline", physical=False, check=False)
    assert found.settings.preparation.standing == "auto"


def test_the_source_of_the_velocity_can_be_set() -> None:
    assert as_velocity("measured") == "measured"
    with pytest.raises(SteelyardError, match="differentiated"):
        as_velocity("diferentiated")


def test_the_kr300_stands_a_sixth_of_the_time() -> None:
    """It stands before the first and after the last motion; 28 to 43 % of the time is slower than 0.02 rad/s."""
    folder = real_logs("kuka_kr300")
    robot = sy.load_robot(folder / "robot.urdf")
    log = sy.read_log(folder / "trajectory_A.parquet", robot)
    standing = motion_of(log).standing
    assert standing is not None
    slow = np.mean(np.abs(log.dq) < 0.02, axis=0)  # type: ignore[arg-type]
    assert np.all(standing.mean(axis=0) <= slow)
    assert 0.1 < standing.mean() < 0.3
