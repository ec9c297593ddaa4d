"""Contacts: false-alarm rate, detection, link and direction."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import pinocchio_of
from simulated_work import as_log, inexact_model, truth, work_motion

from steelyard.dynamics import Model
from steelyard.dynamics.momentum import momentum_balance
from steelyard.ground.arrays import Array
from steelyard.watch.batch import SampleBatch
from steelyard.watch.monitor_base import WatchEvent, WatchSetup
from steelyard.watch.monitors.contact import ContactMonitor
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.threshold import CalibrationError, ContactCalibration, calibrate_contact, read_calibration

PER_HOUR = 1.0 / 3600.0


@cache
def calibration() -> ContactCalibration:
    return calibrate_contact(inexact_model(), [as_log(work_motion(150.0, seed)) for seed in (1, 2)])


def run_monitor(
    batch: SampleBatch, rate_hz: float, cuts: tuple[int, ...] = ()
) -> tuple[ContactMonitor, list[WatchEvent]]:
    monitor = ContactMonitor(WatchSetup(inexact_model().model, None, rate_hz, calibration()))
    observer = MomentumObserver(inexact_model().model, calibration().cutoff_hz)
    for a, b in pairwise([0, *cuts, len(batch)]):
        if b > a:
            piece = SampleBatch(batch.t[a:b], batch.q[a:b], batch.dq[a:b], batch.tau[a:b], a == 0)
            monitor.update(observer.observe(piece))
    return monitor, monitor.fetch_events()


def with_push(batch: SampleBatch, link: str, force: Array, begin: float, seconds: float = 0.6) -> SampleBatch:
    """Add a force at the far end of a link, with ramps of 50 ms; joint torques are from Pinocchio's Jacobian."""
    import pinocchio as pin

    robot = truth().robot
    index = robot.link_names.index(link)
    model = pinocchio_of(robot)
    data = model.createData()
    child = next((k for k, other in enumerate(robot.links) if other.parent == index), None)
    tau = batch.tau.copy()
    ramp = np.clip(np.minimum(batch.t - begin, begin + seconds - batch.t) / 0.05, 0.0, 1.0)
    for k in np.flatnonzero(ramp):
        pin.computeJointJacobians(model, data, batch.q[k])
        pin.updateGlobalPlacements(model, data)
        pose = data.oMi[index + 1]
        x = data.oMi[child + 1].translation if child is not None else pose.act(np.array([0.05, 0.0, 0.1]))
        J = pin.getJointJacobian(model, data, index + 1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        arm = x - pose.translation
        tau[k] -= ramp[k] * (J[:3].T @ force + J[3:].T @ np.cross(arm, force))
    return SampleBatch(batch.t, batch.q, batch.dq, tau, batch.fresh)


def test_false_alarm_rate() -> None:
    """At 60 per hour, 15 minutes of other data have at most 15 expected alarms.

    The limits are conservative, so fewer come. More than 23 have a probability of 2 % at the stated rate.
    """
    _, events = run_monitor(work_motion(900.0, 50), 60.0 * PER_HOUR)
    assert sum(e.kind == "contact" for e in events) <= 23


def test_lower_rate_has_higher_limits() -> None:
    calibrated = calibration()
    daily, hourly = calibrated.limits(PER_HOUR / 24.0), calibrated.limits(PER_HOUR)
    assert np.all(daily > hourly)
    one = ContactCalibration(("a",), 5.0, np.ones((1, 7)), np.array([[3.0, 0.2, 0.5, 0.0]]), 100.0)
    # Exponential: P(z > c) per second = 0.2 exp(−(c − 3)/0.5).
    assert 0.2 * np.exp(-(one.limits(1e-4)[0] - 3.0) / 0.5) == pytest.approx(1e-4, rel=1e-9)


# Number of the link, and force in the base frame (N).
PUSHES = [(7, (0.0, 60.0, 0.0)), (7, (50.0, 0.0, -40.0)), (5, (0.0, -80.0, 30.0)), (4, (90.0, 30.0, 0.0))]


@pytest.mark.parametrize(("number", "force"), PUSHES)
@pytest.mark.parametrize("begin", [4.0, 5.3])  # in motion, and at rest
def test_push_is_detected_with_link_and_direction(number: int, force: tuple[float, ...], begin: float) -> None:
    link, force_vector = truth().robot.link_names[number - 1], np.array(force)
    _, events = run_monitor(with_push(work_motion(9.0, 5), link, force_vector, begin), PER_HOUR)
    begun = [e for e in events if e.kind == "contact"]
    over = [e for e in events if e.kind == "contact over"]
    assert len(begun) == len(over) == 1
    # Detection and date are within 0.1 s. The contact ends when r has fallen to half of its limit: by a factor of 40,
    # through a low-pass of 3 Hz, in 53 ms · ln 40 = 0.2 s.
    assert 0.0 <= begun[0].detail["found"] - begin < 0.1
    assert abs(begun[0].t - begin) < 0.1
    assert -0.1 < over[0].t - (begin + 0.6) < 0.25
    # A force whose line passes through the last axes looks like one on an inner link, never on an outer one.
    names = list(truth().robot.link_names)
    assert names.index(over[0].detail["link"]) in (number - 2, number - 1)
    unit_force, direction = force_vector / np.linalg.norm(force_vector), np.array(over[0].detail["direction"])
    # The point on the link is unknown, so the direction is rough: within 45° and two reported standard deviations.
    angle = np.degrees(np.arccos(np.clip(unit_force @ direction, -1.0, 1.0)))
    assert angle < min(45.0, 2.0 * over[0].detail["angle_error_deg"])
    assert over[0].detail["force"] == pytest.approx(np.linalg.norm(force_vector), rel=0.3)


def test_static_friction_is_no_contact() -> None:
    """From the first sample on, friction holds half of its maximum on every joint of a robot at rest."""
    batch = work_motion(3.0, 7, noise=0.05)
    still = np.broadcast_to(batch.q[-1], (1200, 7))
    rng = np.random.default_rng(0)
    F = np.array(
        dry_friction(inexact_model().model, momentum_balance(inexact_model().model), list(still[0])), dtype=float
    )
    tau = truth().torque(still, 0 * still, 0 * still) + 0.5 * F + 0.05 * rng.normal(size=still.shape)
    stand = SampleBatch(np.arange(1200) / 100.0, still, 0.0 * still, tau, fresh=True)
    _, quiet = run_monitor(stand, PER_HOUR)
    assert quiet == []
    _, found = run_monitor(with_push(stand, truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 6.0), PER_HOUR)
    assert [e.kind for e in found] == ["contact", "contact over"]


@settings(max_examples=4, deadline=None)
@given(cuts=st.lists(st.integers(1, 899), max_size=6))
def test_result_does_not_depend_on_batches(cuts: list[int]) -> None:
    batch = with_push(work_motion(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    monitor, events = run_monitor(batch, PER_HOUR)
    other, same = run_monitor(batch, PER_HOUR, tuple(sorted(cuts)))
    assert [(e.t, e.kind, e.message) for e in same] == [(e.t, e.kind, e.message) for e in events]
    for name, value in monitor.state().items():
        np.testing.assert_allclose(other.state()[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_restart_within_a_contact() -> None:
    batch = with_push(work_motion(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    _, events = run_monitor(batch, PER_HOUR)
    setup = WatchSetup(inexact_model().model, None, PER_HOUR, calibration())
    observer = MomentumObserver(inexact_model().model, calibration().cutoff_hz)
    found = []
    monitor = ContactMonitor(setup)
    for a, b in ((0, 430), (430, len(batch))):
        after = ContactMonitor(setup)
        after.restore(monitor.state())
        monitor = after
        piece = SampleBatch(batch.t[a:b], batch.q[a:b], batch.dq[a:b], batch.tau[a:b], a == 0)
        monitor.update(observer.observe(piece))
        found += monitor.fetch_events()
    assert [(e.t, e.message) for e in found] == [(e.t, e.message) for e in events]


def test_without_calibration_there_are_no_contacts() -> None:
    batch = with_push(work_motion(6.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    monitor = ContactMonitor(WatchSetup(inexact_model().model))
    monitor.update(MomentumObserver(inexact_model().model).observe(batch))
    assert monitor.fetch_events() == []
    assert monitor.report()["calibrated"] is False
    assert len(monitor.report()["external_torque"]) == 7


def test_clock_reset_ends_a_contact() -> None:
    batch = with_push(work_motion(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    monitor = ContactMonitor(WatchSetup(inexact_model().model, None, PER_HOUR, calibration()))
    observer = MomentumObserver(inexact_model().model, calibration().cutoff_hz)
    cut = SampleBatch(batch.t[:430] + 1000.0, batch.q[:430], batch.dq[:430], batch.tau[:430], fresh=True)
    for piece in (cut, batch):
        monitor.update(observer.observe(piece))
    events = monitor.fetch_events()
    assert [e.kind for e in events] == ["contact", "contact over"] * 2
    assert abs(events[0].t - 1004.0) < 0.1
    assert 1004.0 < events[1].t < 1004.31
    assert abs(events[2].t - 4.0) < 0.1


def test_unused_joint_is_ignored() -> None:
    """The torque of the last joint is meaningless; a push on the link before it is still detected."""
    model = inexact_model().model
    robot = model.robot.with_torque_used(model.robot.joint_names[:6])
    blind = Model(robot, model.terms, model.theta)
    batch = with_push(work_motion(9.0, 5), robot.link_names[5], np.array([0.0, 80.0, 0.0]), 4.0)
    batch.tau[:, 6] += 500.0 * np.sin(batch.t)
    monitor = ContactMonitor(WatchSetup(blind, None, PER_HOUR, calibration()))
    monitor.update(MomentumObserver(blind, calibration().cutoff_hz).observe(batch))
    begun = [e for e in monitor.fetch_events() if e.kind == "contact"]
    assert len(begun) == 1
    assert 4.0 < begun[0].detail["found"] < 4.1
    assert "joint7" not in begun[0].detail["joints"]
    assert monitor.report()["limit"][6] == 0.0


def test_run_folder_replaces_a_calibration(identified_arm, tmp_path: Path) -> None:
    identified_arm.save(tmp_path / "run")
    monitor = ContactMonitor(WatchSetup(identified_arm.model, tmp_path / "run"))
    level = monitor.calibration.coefficients[:, 0]
    np.testing.assert_allclose(np.sqrt(level), identified_arm.estimate.residual_std, rtol=1e-12)


def test_calibration_round_trip_and_refusals(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    calibration().write(file)
    restored = read_calibration(file)
    np.testing.assert_array_equal(restored.limits(PER_HOUR), calibration().limits(PER_HOUR))
    assert restored.cutoff_hz == calibration().cutoff_hz
    other = ContactCalibration(("a",), 5.0, np.ones((1, 7)), np.ones((1, 4)), 100.0)
    with pytest.raises(CalibrationError, match="epeat the calibration"):
        ContactMonitor(WatchSetup(inexact_model().model, None, PER_HOUR, other))
    file.write_text('{"format": "else"}')
    with pytest.raises(CalibrationError, match="epeat the calibration"):
        read_calibration(file)


def test_short_log_is_refused() -> None:
    with pytest.raises(CalibrationError, match="too few"):
        calibrate_contact(inexact_model(), [as_log(work_motion(20.0, 1))])
