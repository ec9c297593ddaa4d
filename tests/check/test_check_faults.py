"""The check finds faults planted into sound simulated logs, and names the joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from checked_logs import clean, column, exchanged, later, robot_of, spoiled

from steelyard.check import Check, check_log
from steelyard.check._artefacts import check_drop_outs, check_hidden_limit
from steelyard.estimation.estimate import EstimationError
from steelyard.identification.identify import identify
from steelyard.robot.robot import Joint, Link, Robot
from steelyard.robot.spatial import rotation_about
from steelyard.signals.log import Finding, Log

SIDEWAYS = [(9.81, 0.0, 0.0), (0.0, -9.81, 0.0), (0.0, 0.0, 9.81), (0.0, -6.94, -6.94)]


def _joints(found: Check, kind: str) -> list[str | None]:
    return [e.joint for e in found.of(kind) if e.severity in ("warning", "problem")]


def _check(name: str, log: Log) -> Check:
    return check_log(robot_of(name), log)


@pytest.mark.parametrize("name", ["rotradi", "prrrp"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sound_log_has_no_problem(name: str, seed: int) -> None:
    found = _check(name, clean(name, seed))
    assert [e for e in found.complaints if e.kind not in ("hidden", "condition")] == []
    assert found.grade in ("good", "usable")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sound_log_of_a_large_arm_is_good(seed: int) -> None:
    found = _check("arm7", clean("arm7", seed))
    assert found.complaints == ()
    assert found.grade == "good"
    assert found.excitation.rank == found.excitation.count == 69


@pytest.mark.parametrize("torque_only", [True, False])
@pytest.mark.parametrize(("name", "a", "b"), [("rotradi", 1, 2), ("rotradi", 0, 1), ("prrrp", 2, 3), ("arm7", 1, 3)])
def test_two_exchanged_joints(name: str, a: int, b: int, torque_only: bool) -> None:
    log = clean(name)
    changed = {"tau": exchanged(log.tau, a, b)}
    if not torque_only:
        changed |= {"q": exchanged(log.q, a, b), "dq": exchanged(log.dq, a, b)}
    found = _check(name, spoiled(log, **changed))
    names = robot_of(name).joint_names
    assert _joints(found, "order") == [f"{names[a]}, {names[b]}"]
    assert not found.of("sign")
    assert found.grade == "mend"


@pytest.mark.parametrize(("name", "joint"), [("rotradi", 0), ("rotradi", 2), ("prrrp", 1), ("arm7", 1), ("arm7", 6)])
def test_a_wrong_sign_of_the_torque(name: str, joint: int) -> None:
    """Joint 7 of the arm carries hardly any weight: negative friction reveals the sign."""
    log = clean(name)
    found = _check(name, spoiled(log, tau=column(log.tau, joint, np.negative)))
    assert _joints(found, "sign") == [robot_of(name).joint_names[joint]]
    assert not found.of("order")
    assert not found.of("gravity")


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_a_motor_that_brakes_has_no_wrong_sign(joint: int) -> None:
    """Something else drives the joint, or friction is compensated twice: friction is negative, inertia is not."""
    log = clean("rotradi")
    assert log.dq is not None
    assert log.tau is not None
    driven = column(log.tau, joint, lambda x: x - np.std(x) * np.tanh(log.dq[:, joint] / 0.02))
    found = _check("rotradi", spoiled(log, tau=driven))
    assert not found.of("sign")
    assert not found.of("position_sign")


def test_all_signs_wrong_is_not_reported_as_gravity() -> None:
    log = clean("rotradi")
    found = _check("rotradi", spoiled(log, tau=-log.tau))
    assert sorted(_joints(found, "sign")) == ["q1", "q2", "q3"]
    assert not found.of("gravity")


@pytest.mark.parametrize("gravity", SIDEWAYS)
def test_gravity_from_another_side(gravity: tuple[float, float, float]) -> None:
    found = _check("rotradi", clean("rotradi", 0, gravity))
    (entry,) = found.of("gravity")
    assert entry.severity == "problem"
    vector = np.array([float(x) for x in entry.message.split("(")[1].split(")")[0].split(",")])
    # The noise of the torque is small against 9.81; inertias are exact here.
    np.testing.assert_allclose(vector, gravity, atol=0.5)
    assert _check("rotradi", spoiled(clean("rotradi", 0, gravity), meta={"gravity": list(gravity)})).complaints == ()


def test_degrees() -> None:
    log = clean("rotradi")
    both = _check("rotradi", spoiled(log, q=np.rad2deg(log.q), dq=np.rad2deg(log.dq)))
    assert _joints(both, "degrees") == ["q1", "q2", "q3"]
    positions = _check("prrrp", spoiled(clean("prrrp"), q=column(clean("prrrp").q, 2, np.rad2deg)))
    assert _joints(positions, "degrees") == ["theta3"]
    velocity = _check("rotradi", spoiled(log, dq=column(log.dq, 1, np.rad2deg)))
    assert _joints(velocity, "velocity_degrees") == ["q2"]


def test_small_motion_in_degrees_shows_against_the_velocity() -> None:
    log = clean("rotradi")
    found = _check("rotradi", spoiled(log, q=np.rad2deg(0.1 * log.q), dq=0.1 * log.dq))
    assert _joints(found, "degrees") == ["q1", "q2", "q3"]


def test_velocity_that_is_not_the_derivative() -> None:
    log = clean("rotradi")
    assert _joints(_check("rotradi", spoiled(log, dq=column(log.dq, 0, np.negative))), "velocity_sign") == ["q1"]
    assert _joints(_check("rotradi", spoiled(log, dq=column(log.dq, 1, lambda x: 2.0 * x))), "velocity_factor") == [
        "q2"
    ]
    assert set(_joints(_check("rotradi", spoiled(log, dq=exchanged(log.dq, 0, 1))), "velocity_unlike")) == {"q1", "q2"}
    (late,) = _check("rotradi", spoiled(log, dq=later(log.dq, 40))).of("velocity_delay")
    assert "80.0 ms behind" in late.message.replace("79.9", "80.0").replace("80.1", "80.0")
    assert late.severity == "warning"
    assert _joints(_check("rotradi", spoiled(log, dq=column(log.dq, 2, np.zeros_like))), "dead_velocity") == ["q3"]


def test_useless_torque_channels() -> None:
    log = clean("rotradi")
    dead = _check("rotradi", spoiled(log, tau=column(log.tau, 1, np.zeros_like)))
    assert _joints(dead, "dead_torque") == ["q2"]
    assert not dead.of("unexplained")
    coarse = _check("rotradi", spoiled(log, tau=column(log.tau, 2, lambda x: np.round(x / (0.4 * x.std())) * x.std())))
    assert _joints(coarse, "quantised") == ["q3"]
    noise = np.random.default_rng(0).normal(size=len(log))
    foreign = _check("rotradi", spoiled(log, tau=column(log.tau, 0, lambda x: np.cumsum(noise))))
    assert "q1" in _joints(foreign, "unexplained")
    unused = spoiled(log, tau=column(log.tau, 1, np.zeros_like), meta={"torque_used": ["q1", "q3"]})
    assert not _check("rotradi", unused).of("dead_torque")


def test_a_torque_cut_off_at_its_limit() -> None:
    log = clean("rotradi")
    cut = _check("rotradi", spoiled(log, tau=column(log.tau, 1, lambda x: x.clip(*np.quantile(x, [0.0, 0.93])))))
    assert _joints(cut, "saturated") == ["q2"]
    assert "above" in cut.of("saturated")[0].message


@pytest.mark.parametrize("limited", [False, True])
def test_a_plateau_of_dry_friction_is_no_limit_of_the_torque(limited: bool) -> None:
    """A wrist that is all friction stays at two levels; one that weighs more and is limited stays at one as well."""
    log, rng = clean("rotradi"), np.random.default_rng(0)
    noise = 0.02 * rng.normal(size=len(log))
    rubs = 2.0 * np.tanh(log.dq[:, 2] / 0.02) + noise
    cut = np.minimum(log.tau[:, 2], np.quantile(log.tau[:, 2], 0.85)) + noise
    tau = column(log.tau, 2, lambda _: cut if limited else rubs)
    raw = check_hidden_limit(robot_of("rotradi"), replace(log, tau=tau))
    assert [e.joint for e in raw] == ["q3"]
    assert _joints(_check("rotradi", spoiled(log, tau=tau)), "saturated") == (["q3"] if limited else [])


@pytest.mark.parametrize("lost", [False, True])
def test_a_torque_that_passes_through_zero_does_not_drop_out(lost: bool) -> None:
    """Coarse friction jumps from one side to the other, and rests at zero for a sample on the way."""
    log = clean("rotradi")
    rubs = np.round(np.tanh(log.dq[:, 2] / 0.005) + 0.1 * np.sin(log.q[:, 1]), 1)
    turns = np.flatnonzero(np.diff(np.sign(rubs)) != 0)
    assert len(turns) > 5
    rubs[turns + 1] = 0.0
    rubs[100:2000:200] = 0.0 if lost else rubs[101:2001:200]
    found = check_drop_outs(robot_of("rotradi"), replace(log, tau=column(log.tau, 2, lambda _: rubs)))
    assert [e.joint for e in found] == (["q3"] if lost else [])


def test_currents_instead_of_torques() -> None:
    log = clean("rotradi")
    amperes = _check("rotradi", spoiled(log, tau=log.tau / np.array([9.0, 10.0, 12.0]))).of("torque_scale")
    assert "ampere" in next(e for e in amperes if e.joint is None).message
    stated = _check("rotradi", spoiled(log, meta={"torque_kind": "current"}))
    assert stated.grade == "unusable"
    assert stated.of("current")
    one = _check("rotradi", spoiled(log, tau=column(log.tau, 1, lambda x: x / 10.0)))
    assert _joints(one, "torque_scale") == ["q2"]


@pytest.mark.parametrize("name", ["rotradi", "arm7"])
def test_a_delayed_torque(name: str) -> None:
    log = clean(name)
    (entry,) = _check(name, spoiled(log, tau=later(log.tau, 5))).of("delay")
    assert entry.severity == "warning"
    # Five samples at 500 Hz; friction at reversals blurs a millisecond or two.
    assert float(entry.message.split()[3]) == pytest.approx(10.0, abs=2.5)


def test_one_delayed_torque() -> None:
    log = clean("rotradi")
    found = _check("rotradi", spoiled(log, tau=column(log.tau, 1, lambda x: later(x, 5))))
    assert _joints(found, "delay") == ["q2"]


def test_a_joint_that_does_not_move() -> None:
    found = _check("rotradi", clean("rotradi", still=1))
    assert _joints(found, "motionless") == ["q2"]
    held = next(j for j in found.excitation.joints if j.joint == "q2")
    assert held.hidden
    assert found.advice[0].startswith("Move 'q2'")


@pytest.mark.parametrize("name", ["rotradi", "arm7"])
def test_a_joint_held_by_its_brake(name: str) -> None:
    """Its position is constant to the last bit: what filters leave of it is rounding, not motion."""
    log = clean(name)
    log = spoiled(log, q=column(log.q, 0, lambda x: np.full_like(x, 0.3)), dq=column(log.dq, 0, np.zeros_like))
    found = _check(name, log)
    joint = robot_of(name).joint_names[0]
    assert found.of("motionless")[0].message == f"'{joint}' does not move."
    with pytest.raises(EstimationError, match=f"'{joint}' does not move. Move '{joint}' as well, or lock it"):
        identify(robot_of(name), log)


def _with_spike(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[1000:1002] += 5.0 * np.ptp(x)
    return out


@pytest.mark.parametrize("what", ["tau", "q"])
def test_a_spike_of_one_or_two_samples(what: str) -> None:
    log = clean("rotradi")
    found = _check("rotradi", spoiled(log, **{what: column(getattr(log, what), 1, _with_spike)}))
    assert _joints(found, "spike") == ["q2"]
    assert f"t = {log.t[1000]:.4g} s" in found.of("spike")[0].message
    assert found.grade == "mend"
    # A step stays where it is.
    step = _check("rotradi", spoiled(log, tau=column(log.tau, 1, lambda x: np.where(log.t > 3.0, x + 9.0, x))))
    assert not step.of("spike")


def test_beyond_the_limits() -> None:
    log = clean("prrrp")
    found = _check("prrrp", spoiled(log, q=column(log.q, 1, lambda x: x + 2.0)))
    assert "theta2" in _joints(found, "position_limit")
    strong = _check("rotradi", spoiled(clean("rotradi"), tau=1e3 * clean("rotradi").tau))
    assert _joints(strong, "torque_limit")


def test_unusable_logs() -> None:
    log = clean("rotradi")
    assert _check("rotradi", spoiled(log, tau=None)).grade == "unusable"
    assert _check("rotradi", spoiled(log, q=np.full_like(log.q, 0.3), dq=None)).grade == "unusable"
    assert _check("rotradi", spoiled(log, tau=np.zeros_like(log.tau))).grade == "unusable"
    short = Log(log.joints, log.t[:12], log.q[:12], tau=log.tau[:12])
    assert _check("rotradi", short).grade == "unusable"


def test_findings_of_the_reader_have_advice() -> None:
    gap = Finding("gap", "warning", "1 gap of more than 0.02 s.", count=1, row=7)
    found = _check("rotradi", spoiled(clean("rotradi"), findings=(gap,)))
    assert found.of("gap")[0].advice
    assert found.grade == "usable"


def test_a_description_of_few_digits_gets_the_advice_to_snap() -> None:
    """A double pendulum whose second axis is off by 3 µrad, as angles written with few digits are."""
    z, joints = np.array([0.0, 0.0, 1.0]), (Joint("a", "revolute"), Joint("b", "revolute"))
    links = (
        Link("one", "a", "revolute", -1, np.eye(3), np.zeros(3), z, 0),
        Link("two", "b", "revolute", 0, rotation_about([1.0, 0.0, 0.0], 3e-6), np.array([0.5, 0.0, 0.0]), z, 1),
    )
    robot = Robot("askew", joints, links, gravity=np.array([0.0, -9.81, 0.0]))
    t = np.arange(0.0, 10.0, 0.01)
    q = np.column_stack([np.sin(t), np.cos(2.0 * t)])
    found = check_log(robot, Log(("a", "b"), t, q, tau=10.0 * q))
    assert found.grade == "unusable"
    assert [e.kind for e in found.complaints] == ["aligned"]
    assert "--snap" in found.complaints[0].advice
    assert not any("longer motion" in advice for advice in found.advice)
