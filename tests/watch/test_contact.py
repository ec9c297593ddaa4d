"""Limits that hold what they promise, and contacts that are found, on the link and from where they were made."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import pinocchio_of
from worked import as_log, at_work, believed, truth

from steelyard.dynamics import Model
from steelyard.dynamics.momentum import momentum_balance
from steelyard.ground.arrays import Array
from steelyard.watch.batch import SampleBatch
from steelyard.watch.observer import MomentumObserver, dry_friction
from steelyard.watch.parts import WatchEvent, WatchSetup
from steelyard.watch.threshold import Calibration, CalibrationError, calibrate, read_calibration
from steelyard.watch.told.contact import ContactPart

PER_HOUR = 1.0 / 3600.0


@cache
def calibration() -> Calibration:
    return calibrate(believed(), [as_log(at_work(150.0, seed)) for seed in (1, 2)])


def watch(batch: SampleBatch, rate_hz: float, places: tuple[int, ...] = ()) -> tuple[ContactPart, list[WatchEvent]]:
    part = ContactPart(WatchSetup(believed().model, None, rate_hz, calibration()))
    observer = MomentumObserver(believed().model, calibration().cutoff_hz)
    for a, b in pairwise([0, *places, len(batch)]):
        if b > a:
            piece = SampleBatch(batch.t[a:b], batch.q[a:b], batch.dq[a:b], batch.tau[a:b], a == 0)
            part.take(observer.take(piece))
    return part, part.fetch_events()


def pushed(batch: SampleBatch, link: str, force: Array, begin: float, seconds: float = 0.6) -> SampleBatch:
    """The same motion, held against a force at the far end of a link: it rises in 50 ms and falls as fast.

    Pinocchio's Jacobian says what the joints feel.
    """
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
        place = data.oMi[index + 1]
        x = data.oMi[child + 1].translation if child is not None else place.act(np.array([0.05, 0.0, 0.1]))
        J = pin.getJointJacobian(model, data, index + 1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        arm = x - place.translation
        tau[k] -= ramp[k] * (J[:3].T @ force + J[3:].T @ np.cross(arm, force))
    return SampleBatch(batch.t, batch.q, batch.dq, tau, batch.fresh)


def test_no_more_false_alarms_than_were_asked_for() -> None:
    """A quarter of an hour of work that was not calibrated on, at 60 an hour: 15 are expected at most.

    Limits are on the safe side, so fewer come; more than 23 would have a probability of 2 % at the stated rate.
    """
    _, events = watch(at_work(900.0, 50), 60.0 * PER_HOUR)
    assert sum(e.kind == "contact" for e in events) <= 23


def test_a_rarer_rate_has_higher_limits_and_the_law_is_that_of_its_tail() -> None:
    made = calibration()
    daily, hourly = made.limits(PER_HOUR / 24.0), made.limits(PER_HOUR)
    assert np.all(daily > hourly)
    one = Calibration(("a",), 5.0, np.ones((1, 7)), np.array([[3.0, 0.2, 0.5, 0.0]]), 100.0)
    # Exponential: P(z > c) per second = 0.2 exp(−(c − 3)/0.5).
    assert 0.2 * np.exp(-(one.limits(1e-4)[0] - 3.0) / 0.5) == pytest.approx(1e-4, rel=1e-9)


# Number of the link, and force in the base frame (N).
PUSHES = [(7, (0.0, 60.0, 0.0)), (7, (50.0, 0.0, -40.0)), (5, (0.0, -80.0, 30.0)), (4, (90.0, 30.0, 0.0))]


@pytest.mark.parametrize(("number", "force"), PUSHES)
@pytest.mark.parametrize("begin", [4.0, 5.3])  # in motion, and at rest
def test_a_push_is_found_on_its_link_and_from_its_side(number: int, force: tuple[float, ...], begin: float) -> None:
    link, given_force = truth().robot.link_names[number - 1], np.array(force)
    _, events = watch(pushed(at_work(9.0, 5), link, given_force, begin), PER_HOUR)
    begun = [e for e in events if e.kind == "contact"]
    over = [e for e in events if e.kind == "contact over"]
    assert len(begun) == len(over) == 1
    # Found within 0.1 s of its begin; dated to within as much. It is over when r has fallen to half its limit: from
    # forty times as much, through a low-pass of 3 Hz, in 53 ms · ln 40 = 0.2 s.
    assert 0.0 <= begun[0].detail["found"] - begin < 0.1
    assert abs(begun[0].t - begin) < 0.1
    assert -0.1 < over[0].t - (begin + 0.6) < 0.25
    # A force whose line passes the last axes is felt as one on a link further in, never further out.
    names = list(truth().robot.link_names)
    assert names.index(over[0].detail["link"]) in (number - 2, number - 1)
    way, told = given_force / np.linalg.norm(given_force), np.array(over[0].detail["direction"])
    # Roughly: with the point on the link unknown, half a right angle; and twice the standard deviation that is told.
    angle = np.degrees(np.arccos(np.clip(way @ told, -1.0, 1.0)))
    assert angle < min(45.0, 2.0 * over[0].detail["angle_error_deg"])
    assert over[0].detail["force"] == pytest.approx(np.linalg.norm(given_force), rel=0.3)


def test_what_friction_holds_at_rest_is_no_contact_and_a_push_on_top_is() -> None:
    """The robot stands with half of its dry friction on every joint from the first sample on."""
    batch = at_work(3.0, 7, noise=0.05)
    still = np.broadcast_to(batch.q[-1], (1200, 7))
    rng = np.random.default_rng(0)
    F = np.array(dry_friction(believed().model, momentum_balance(believed().model), list(still[0])), dtype=float)
    tau = truth().torque(still, 0 * still, 0 * still) + 0.5 * F + 0.05 * rng.normal(size=still.shape)
    stand = SampleBatch(np.arange(1200) / 100.0, still, 0.0 * still, tau, fresh=True)
    _, quiet = watch(stand, PER_HOUR)
    assert quiet == []
    _, found = watch(pushed(stand, truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 6.0), PER_HOUR)
    assert [e.kind for e in found] == ["contact", "contact over"]


@settings(max_examples=4, deadline=None)
@given(places=st.lists(st.integers(1, 899), max_size=6))
def test_what_is_told_does_not_depend_on_batches(places: list[int]) -> None:
    batch = pushed(at_work(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    part, events = watch(batch, PER_HOUR)
    other, same = watch(batch, PER_HOUR, tuple(sorted(places)))
    assert [(e.t, e.kind, e.message) for e in same] == [(e.t, e.kind, e.message) for e in events]
    for name, value in part.state().items():
        np.testing.assert_allclose(other.state()[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_snapshot_within_a_contact_goes_on() -> None:
    batch = pushed(at_work(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    _, events = watch(batch, PER_HOUR)
    setup = WatchSetup(believed().model, None, PER_HOUR, calibration())
    observer = MomentumObserver(believed().model, calibration().cutoff_hz)
    told = []
    part = ContactPart(setup)
    for a, b in ((0, 430), (430, len(batch))):
        after = ContactPart(setup)
        after.restore(part.state())
        part = after
        piece = SampleBatch(batch.t[a:b], batch.q[a:b], batch.dq[a:b], batch.tau[a:b], a == 0)
        part.take(observer.take(piece))
        told += part.fetch_events()
    assert [(e.t, e.message) for e in told] == [(e.t, e.message) for e in events]


def test_without_any_calibration_the_torque_is_told_and_no_contact() -> None:
    batch = pushed(at_work(6.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    part = ContactPart(WatchSetup(believed().model))
    part.take(MomentumObserver(believed().model).take(batch))
    assert part.fetch_events() == []
    assert part.telling()["calibrated"] is False
    assert len(part.telling()["external_torque"]) == 7


def test_a_clock_that_begins_anew_ends_a_contact_and_dates_the_next_by_itself() -> None:
    batch = pushed(at_work(9.0, 5), truth().robot.link_names[6], np.array([0.0, 60.0, 0.0]), 4.0)
    part = ContactPart(WatchSetup(believed().model, None, PER_HOUR, calibration()))
    observer = MomentumObserver(believed().model, calibration().cutoff_hz)
    cut = SampleBatch(batch.t[:430] + 1000.0, batch.q[:430], batch.dq[:430], batch.tau[:430], fresh=True)
    for piece in (cut, batch):
        part.take(observer.take(piece))
    events = part.fetch_events()
    assert [e.kind for e in events] == ["contact", "contact over"] * 2
    assert abs(events[0].t - 1004.0) < 0.1
    assert 1004.0 < events[1].t < 1004.31
    assert abs(events[2].t - 4.0) < 0.1


def test_a_joint_whose_torque_is_not_used_alarms_nobody_and_hides_nothing() -> None:
    """The last joint's torque is nonsense; a push on the link before it is found all the same."""
    model = believed().model
    robot = model.robot.with_torque_used(model.robot.joint_names[:6])
    blind = Model(robot, model.terms, model.theta)
    batch = pushed(at_work(9.0, 5), robot.link_names[5], np.array([0.0, 80.0, 0.0]), 4.0)
    batch.tau[:, 6] += 500.0 * np.sin(batch.t)
    part = ContactPart(WatchSetup(blind, None, PER_HOUR, calibration()))
    part.take(MomentumObserver(blind, calibration().cutoff_hz).take(batch))
    begun = [e for e in part.fetch_events() if e.kind == "contact"]
    assert len(begun) == 1
    assert 4.0 < begun[0].detail["found"] < 4.1
    assert "joint7" not in begun[0].detail["joints"]
    assert part.telling()["limit"][6] == 0.0


def test_a_run_folder_stands_in_for_a_calibration(arm_found, tmp_path: Path) -> None:
    arm_found.save(tmp_path / "run")
    part = ContactPart(WatchSetup(arm_found.model, tmp_path / "run"))
    level = part.calibration.coefficients[:, 0]
    np.testing.assert_allclose(np.sqrt(level), arm_found.estimate.residual_std, rtol=1e-12)


def test_a_calibration_is_read_back_and_another_robots_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    calibration().write(file)
    back = read_calibration(file)
    np.testing.assert_array_equal(back.limits(PER_HOUR), calibration().limits(PER_HOUR))
    assert back.cutoff_hz == calibration().cutoff_hz
    other = Calibration(("a",), 5.0, np.ones((1, 7)), np.ones((1, 4)), 100.0)
    with pytest.raises(CalibrationError, match="calibrate anew"):
        ContactPart(WatchSetup(believed().model, None, PER_HOUR, other))
    file.write_text('{"format": "else"}')
    with pytest.raises(CalibrationError, match="calibrate anew"):
        read_calibration(file)


def test_too_short_a_log_is_refused() -> None:
    with pytest.raises(CalibrationError, match="too few"):
        calibrate(believed(), [as_log(at_work(20.0, 1))])
